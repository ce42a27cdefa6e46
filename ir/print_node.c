/* Nodes as text, one a line.
 *
 * A value is called what the user called it. The second value of that name in a segment is x_1, the
 * next x_2, so a trailing _NUMBER is no part of the name; the user's own x_1 is written x_1_0. A
 * value without a name is %ID.
 */
#include "ir/print_node.h"
#include "ir/text_word.h"
#include "support/map.h"
#include <string.h>

void print_string(Out *o, const char *s)
{
    out_text(o, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            out_printf(o, "\\%c", *s);
        else if ((unsigned char)*s < 32 || *s == 127)
            out_printf(o, "\\x%02x", (unsigned)*s);
        else
            out_printf(o, "%c", *s);
    }
    out_text(o, "\"");
}

void print_word(Out *o, const char *s)
{
    if (is_word(s))
        out_text(o, s);
    else
        print_string(o, s);
}

void print_span(Printer *w, Span span)
{
    if (!w->spans || !span.file || w->file[span.file - 1] < 0)
        return;
    out_printf(w->o, " @%d:%u", w->file[span.file - 1], span.begin);
    if (span.end > span.begin)
        out_printf(w->o, "..%u", span.end);
}

/* Names of values by id. */
static Str *name_values(Printer *w, Graph *g)
{
    Arena *arena = w->o->arena;
    Str *of = new_array(arena, Str, g->count + 1);
    int *seen = new_array(arena, int, g->count + 1); /* how often each distinct name came up */
    int distinct = 0;
    Map map = {0};
    for (Node *n = g->first; n; n = n->next) {
        if (!n->name || !is_word(n->name)) {
            of[n->id] = arena_printf(arena, "%%%d", n->id);
            continue;
        }
        int *count = map_get(&map, n->name);
        if (!count) {
            count = &seen[distinct++];
            map_put(arena, &map, n->name, count);
            *count = base_length(n->name) < strlen(n->name) ? 1 : 0;
            of[n->id] = *count ? arena_printf(arena, "%s_0", n->name) : n->name;
            *count = 1;
            continue;
        }
        of[n->id] = arena_printf(arena, "%s_%d", n->name, (*count)++);
    }
    return of;
}

static void print_attr(Out *o, Program *p, const Attr *a)
{
    switch (a->kind) {
    case ATTR_NONE:
        break;
    case ATTR_INT:
        out_printf(o, "%lld", (long long)a->i);
        break;
    case ATTR_BOOL:
        out_text(o, a->i ? "true" : "false");
        break;
    case ATTR_REAL:
        out_text(o, double_text(o->arena, a->r));
        break;
    case ATTR_STR:
        print_word(o, a->s);
        break;
    case ATTR_DTYPE:
        out_text(o, dtype_info[a->dtype].name);
        break;
    case ATTR_INTS:
        out_text(o, "[");
        for (int i = 0; i < a->ints.n; i++)
            out_printf(o, "%s%lld", i ? ", " : "", (long long)a->ints.at[i]);
        out_text(o, "]");
        break;
    case ATTR_DIMS:
        out_text(o, "[");
        for (int i = 0; i < a->dims.n; i++)
            out_printf(o, "%s%s", i ? ", " : "", dim_text(&p->types, a->dims.at[i], o->arena));
        out_text(o, "]");
        break;
    }
}

/* `of` NULL: names as the nodes have them. */
static void print_operands(Printer *w, const Node *n, const Str *of)
{
    const char *separator = "";
    const OpInfo *info = op_info(n->op);
    out_printf(w->o, "%s(", info->spelling);
    if (n->param) {
        print_word(w->o, n->param->name);
        out_printf(w->o, "#%d", n->version);
        separator = ", ";
    }
    for (int i = 0; i < n->nin; i++) {
        const char *plain = n->in[i]->name ? n->in[i]->name : "_";
        out_printf(w->o, "%s%s", separator, of ? of[n->in[i]->id] : plain);
        separator = ", ";
    }
    for (int i = 0; i < info->attrs; i++) {
        if (!n->attrs || n->attrs->at[i].kind == ATTR_NONE)
            continue;
        out_printf(w->o, "%s%s=", separator, info->attr[i].name);
        print_attr(w->o, w->program, &n->attrs->at[i]);
        separator = ", ";
    }
    out_text(w->o, ")");
}

static void print_node(Printer *w, const Node *n, const Str *of)
{
    Out *o = w->o;
    if (of && (n->name || !op_is(n->op, F_EFFECT)))
        out_printf(o, "%s: ", of[n->id]);
    if (!of || n->name || !op_is(n->op, F_EFFECT))
        out_printf(o, "%s = ", n->type ? type_text(&w->program->types, n->type, o->arena) : "?");
    print_operands(w, n, of);
    if (n->in_instance)
        out_text(o, " inside");
    if (n->pinned)
        out_text(o, " pinned");
    if (n->region)
        out_printf(o, " region=%s", region_name((Region)n->region));
    print_span(w, n->span);
    out_text(o, "\n");
}

void node_print(Out *o, Program *p, const Node *n)
{
    Printer w = {.o = o, .program = p};
    print_node(&w, n, NULL);
}

void print_nodes(Printer *w, Graph *g)
{
    Str *of = name_values(w, g);
    for (Node *n = g->first; n; n = n->next)
        print_node(w, n, of);
}
