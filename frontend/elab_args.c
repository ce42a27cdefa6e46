/* Arguments: positional ones fill the tensors, then the attributes in declared order; the rest
 * comes by name. */
#include "frontend/elab_core.h"
#include <string.h>

void site_open(Site *s, const char *what, Span span, Span name_span)
{
    memset(s, 0, sizeof *s);
    s->what = what;
    s->span = span;
    s->name_span = name_span;
}

void site_slot(Site *s, const char *name)
{
    if (s->slots < MAX_SLOTS)
        s->slot[s->slots++].name = name;
}

void site_slots(Elab *e, Site *s, const char *names)
{
    while (*names) {
        size_t length = strcspn(names, ",");
        site_slot(s, arena_copy(e->arena, names, length));
        names += length + (names[length] == ',');
    }
}

Slot *site_find(Site *s, const char *name)
{
    for (int i = s->positional; i < s->slots; i++)
        if (!strcmp(s->slot[i].name, name))
            return &s->slot[i];
    return NULL;
}

static void unknown_argument(Elab *e, Site *s, const Arg *arg)
{
    Candidates names = {0};
    for (int i = s->positional; i < s->slots; i++)
        vec_push(e->arena, &names, s->slot[i].name);
    for (int i = 0; i < s->positional; i++)
        if (!strcmp(s->slot[i].name, arg->name)) {
            elab_error(e, CODE_ATTRIBUTE, arg->name_span,
                       "'%s' of '%s' is data and is given by position, without a name", arg->name,
                       s->what);
            return;
        }
    unknown_name(e, CODE_ATTRIBUTE, arg->name_span,
                 arena_printf(e->arena, "unknown attribute '%s' of '%s'", arg->name, s->what),
                 arg->name, &names);
}

static bool fill(Elab *e, Site *s, Slot *slot, const Arg *arg)
{
    if (slot->given) {
        Diag *d = elab_error(e, CODE_ATTRIBUTE, arg->span, "'%s' of '%s' is given twice",
                             slot->name, s->what);
        if (d)
            note_at(d, slot->span, "it is given here already");
        return false;
    }
    slot->given = true;
    slot->expr = arg->value;
    slot->span = arg->value->span;
    return true;
}

bool site_bind(Elab *e, Site *s, const Args *args, const Value *piped, Span piped_span)
{
    int next = 0;
    bool ok = true;
    if (piped) {
        if (!s->slots) {
            elab_error(e, CODE_ATTRIBUTE, s->name_span, "'%s' takes no arguments", s->what);
            return false;
        }
        s->slot[next].given = true;
        s->slot[next].value = *piped;
        s->slot[next++].span = piped_span;
    }
    for (int i = 0; args && i < args->n; i++) {
        const Arg *arg = &args->at[i];
        if (arg->name) {
            Slot *slot = site_find(s, arg->name);
            if (slot) {
                ok &= fill(e, s, slot, arg);
            } else {
                unknown_argument(e, s, arg);
                ok = false;
            }
        } else if (next >= s->slots) {
            elab_error(e, CODE_ATTRIBUTE, arg->span, "'%s' takes at most %d argument%s", s->what,
                       s->slots, s->slots == 1 ? "" : "s");
            return false;
        } else {
            ok &= fill(e, s, &s->slot[next++], arg);
        }
    }
    return ok;
}

Value slot_value(Elab *e, Slot *slot)
{
    if (slot->value.kind == VAL_NONE && slot->expr)
        slot->value = eval(e, slot->expr);
    return slot->value;
}

const char *slot_what(Elab *e, const Site *s, const Slot *slot)
{
    return arena_printf(e->arena, "'%s' of '%s'", slot->name, s->what);
}

bool site_need(Elab *e, Site *s, const char *name)
{
    if (site_find(s, name)->given)
        return true;
    elab_error(e, CODE_ATTRIBUTE, s->name_span, "'%s' needs '%s'", s->what, name);
    return false;
}

int64_t site_int(Elab *e, Site *s, const char *name, int64_t fallback, bool *ok)
{
    Slot *slot = site_find(s, name);
    int64_t i = fallback;
    if (slot->given && !want_int(e, slot_value(e, slot), slot->span, slot_what(e, s, slot), &i))
        *ok = false;
    return i;
}

double site_real(Elab *e, Site *s, const char *name, double fallback, bool *ok)
{
    Slot *slot = site_find(s, name);
    double r = fallback;
    if (slot->given && !want_real(e, slot_value(e, slot), slot->span, slot_what(e, s, slot), &r))
        *ok = false;
    return r;
}

bool site_bool(Elab *e, Site *s, const char *name, bool fallback, bool *ok)
{
    Slot *slot = site_find(s, name);
    bool b = fallback;
    if (slot->given && !want_bool(e, slot_value(e, slot), slot->span, slot_what(e, s, slot), &b))
        *ok = false;
    return b;
}

Str site_string(Elab *e, Site *s, const char *name, const char *fallback, bool *ok)
{
    Slot *slot = site_find(s, name);
    Str text = intern(e->names, fallback);
    if (slot->given &&
        !want_string(e, slot_value(e, slot), slot->span, slot_what(e, s, slot), &text))
        *ok = false;
    return text;
}
