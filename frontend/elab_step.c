/* The statements of a step: backward, clip, update. Their order is checked here: an update needs a
 * backward since the last one, a clip stands between the two.
 */
#include "frontend/elab_core.h"
#include <assert.h>

static OptimizerState *find_state(Elab *e, const NameRef *name)
{
    Candidates names = {0};
    for (int i = 0; i < e->run->optimizers.n; i++) {
        OptimizerState *s = &e->run->optimizers.at[i];
        if (s->decl->name == name->name)
            return s;
        vec_push(e->arena, &names, s->decl->name);
    }
    const Binding *b = find_binding(e, name->name);
    if (b && b->is_declared && is_error(b->value))
        return NULL; /* an optimizer or scaler that was wrong itself, or a scaler */
    unknown_name(
        e, CODE_NAME, name->span,
        arena_printf(e->arena, "'%s' has no optimizer '%s'", e->run->entry->name, name->name),
        name->name, &names);
    return NULL;
}

/* "a,b": the optimizers, by their names in the program. NULL: reported. */
static Str optimizer_list(Elab *e, const Stmt *s, OptimizerState **out)
{
    Str list = NULL;
    for (int i = 0; i < s->names.n; i++) {
        out[i] = find_state(e, &s->names.at[i]);
        if (!out[i])
            return NULL;
        for (int k = 0; k < i; k++)
            if (out[k] == out[i]) {
                elab_error(e, CODE_NAME, s->names.at[i].span, "'%s' stands here twice",
                           s->names.at[i].name);
                return NULL;
            }
        Str name = out[i]->optimizer->name;
        list = list ? intern_printf(e->names, "%s,%s", list, name) : name;
    }
    return list;
}

static ScalerState *find_scaler(Elab *e, const NameRef *name)
{
    Candidates names = {0};
    for (int i = 0; i < e->run->scalers.n; i++) {
        ScalerState *s = &e->run->scalers.at[i];
        if (name->name ? s->local == name->name : s->scaler->is_default)
            return s;
        if (s->local)
            vec_push(e->arena, &names, s->local);
    }
    if (name->name) {
        unknown_name(
            e, CODE_NAME, name->span,
            arena_printf(e->arena, "'%s' has no scaler '%s'", e->run->entry->name, name->name),
            name->name, &names);
        return NULL;
    }
    /* the program's own scaler, one for all trains */
    Scaler *own = NULL;
    for (int i = 0; i < e->program->scalers.n; i++)
        if (e->program->scalers.at[i]->is_default)
            own = e->program->scalers.at[i];
    if (own) {
        ScalerState state = {.scaler = own};
        vec_push(e->arena, &e->run->entry->scalers, own);
        vec_push(e->arena, &e->run->scalers, state);
    } else {
        own = scaler_default(e);
        own->name = intern(e->names, "scaler");
        own->is_default = 1;
        scaler_add(e, own);
    }
    return &e->run->scalers.at[e->run->scalers.n - 1];
}

static bool loss_ok(Elab *e, Node *loss, Span span)
{
    if (!loss->type)
        return false;
    if (loss->type->rank) {
        Diag *d = elab_error(e, CODE_SHAPE, span, "a loss is one number, found %s; write mean(…)",
                             tensor_text(e, loss));
        if (d && loss->span.file && loss->span.begin != span.begin)
            note_at(d, loss->span, "it is computed here");
        return false;
    }
    if (is_real(loss->type->dtype))
        return true;
    elab_error(e, CODE_TYPE, span, "a loss is a real number, found %s", tensor_text(e, loss));
    return false;
}

static bool owns(const Optimizer *o, const Param *p)
{
    for (int i = 0; i < o->instance_count; i++)
        if (o->instances[i] == p->instance)
            return !p->is_buffer && !p->frozen;
    return false;
}

static void add_reached(Elab *e, OptimizerState *s, Param *p)
{
    while (s->is_reached.n <= p->index)
        vec_push(e->arena, &s->is_reached, false);
    if (s->is_reached.at[p->index])
        return;
    s->is_reached.at[p->index] = true;
    vec_push(e->arena, &s->reached, p);
}

/* Notes the parameters of the optimizer that the loss depends on; gives whether there are any. */
static bool reach(Elab *e, Node *loss, OptimizerState *s)
{
    bool found = false;
    int count = graph_now()->count, i = 0;
    Node **list = new_array(e->arena, Node *, count);
    for (Node *n = graph_now()->first; n; n = n->next)
        list[i++] = n;
    loss->mark = 1;
    while (i-- > 0) {
        Node *n = list[i];
        bool flows = n->mark && is_real(n->type->dtype) && n->op != OP_DETACH;
        n->mark = 0;
        if (!flows)
            continue;
        if (n->op == OP_READ && owns(s->optimizer, n->param)) {
            add_reached(e, s, n->param);
            found = true;
        }
        for (int k = 0; k < n->nin; k++)
            n->in[k]->mark = 1;
    }
    return found;
}

static void backward(Elab *e, const Stmt *s)
{
    OptimizerState **states = new_array(e->arena, OptimizerState *, s->names.n + 1);
    Value v = eval(e, s->value);
    Str list = optimizer_list(e, s, states);
    if (s->delay_unscale && !e->run->order_unknown) {
        unsupported(e, s->span, "delay_unscale");
        e->run->order_unknown = true;
    }
    if (s->names.n > 1)
        unsupported(e, s->word_span, "one backward into several optimizers");
    for (int i = 0; list && i < s->names.n; i++) {
        if (states[i]->backward.file && !e->run->order_unknown) {
            Diag *d = elab_error(e, CODE_UNSUPPORTED, s->word_span,
                                 "not supported yet: several backwards into '%s' before its update",
                                 s->names.at[i].name);
            if (d)
                note_at(d, states[i]->backward, "the other backward is here");
        }
        states[i]->backward = s->word_span;
    }
    ScalerState *scaler = find_scaler(e, &s->scaler);
    if (scaler)
        scaler->used = true;
    Node *loss = as_tensor(e, v, s->value->span, DT_FLOAT);
    if (!list || !scaler || !loss_ok(e, loss, s->value->span))
        return;
    for (int i = 0; i < s->names.n; i++)
        if (!reach(e, loss, states[i])) {
            elab_error(e, CODE_STEP_ORDER, s->value->span,
                       "this loss depends on no parameter of '%s'", s->names.at[i].name);
            return;
        }
    set_span(e, s->span);
    Attr attrs[] = {attr_str(list), attr_str(scaler->scaler->name)};
    build(OP_BACKWARD, &loss, 1, attrs_make(OP_BACKWARD, attrs, 2));
}

/* Says that no gradients are there for what a statement does. */
static void no_gradients(Elab *e, const Stmt *s, const OptimizerState *state, Str name)
{
    if (e->run->order_unknown)
        return;
    Diag *d;
    if (state->update.file) {
        d = elab_error(e, CODE_STEP_ORDER, s->word_span, "no backward into '%s' since its update",
                       name);
        if (d)
            note_at(d, state->update, "the update is here; it uses the gradients up");
    } else {
        elab_error(e, CODE_STEP_ORDER, s->word_span, "no backward into '%s' before this", name);
    }
}

static void clip(Elab *e, const Stmt *s)
{
    OptimizerState **states = new_array(e->arena, OptimizerState *, s->names.n + 1);
    double limit = 0;
    bool ok = want_real(e, eval(e, s->value), s->value->span, "the limit of a clip", &limit);
    Str list = optimizer_list(e, s, states);
    if (ok && !(limit > 0)) {
        elab_error(e, CODE_VALUE, s->value->span, "the limit of a clip must be above 0");
        ok = false;
    }
    if (s->names.n > 1)
        unsupported(e, s->span, "one clip of several optimizers");
    for (int i = 0; list && i < s->names.n; i++) {
        Str name = s->names.at[i].name;
        if (!states[i]->backward.file) {
            no_gradients(e, s, states[i], name);
            ok = false;
        } else if (states[i]->clip.file) {
            Diag *d = elab_error(e, CODE_UNSUPPORTED, s->word_span,
                                 "not supported yet: a second clip of '%s'", name);
            if (d)
                note_at(d, states[i]->clip, "the first is here");
            ok = false;
        }
        states[i]->clip = s->word_span;
    }
    if (!ok || !list)
        return;
    set_span(e, s->span);
    Attr attrs[] = {attr_str(list), attr_str(intern(e->names, s->by_value ? "value" : "norm")),
                    attr_real(limit)};
    build(OP_CLIP, NULL, 0, attrs_make(OP_CLIP, attrs, 3));
}

static void update(Elab *e, const Stmt *s)
{
    OptimizerState **states = new_array(e->arena, OptimizerState *, s->names.n + 1);
    Str list = optimizer_list(e, s, states), none = intern(e->names, "");
    if (s->value)
        unsupported(e, s->value->span, "update … if");
    for (int i = 0; list && i < s->names.n; i++) {
        OptimizerState *state = states[i];
        if (!state->backward.file)
            no_gradients(e, s, state, s->names.at[i].name);
        state->backward.file = state->clip.file = 0;
        state->update = s->word_span;
        state->updates++;
        for (int k = 0; k < state->reached.n; k++) {
            Param *p = state->reached.at[k];
            param_next_version(e, p);
            state->is_reached.at[p->index] = false;
        }
        state->reached.n = 0;
        set_span(e, s->span);
        Attr attrs[] = {attr_str(state->optimizer->name), attr_str(none), attr_str(none),
                        attr_real(0)};
        build(OP_UPDATE, NULL, 0, attrs_make(OP_UPDATE, attrs, 4));
    }
}

void step_statement(Elab *e, const Stmt *s)
{
    assert(e->run->entry->kind == ENTRY_TRAIN && "the parser has these in steps only");
    switch (s->kind) {
    case STMT_BACKWARD:
        backward(e, s);
        break;
    case STMT_CLIP:
        clip(e, s);
        break;
    case STMT_UPDATE:
        update(e, s);
        break;
    case STMT_ZERO:
        unsupported(e, s->word_span, "zero");
        break;
    default:
        unsupported(e, s->word_span, "accumulate");
        e->run->order_unknown = true;
        exec_block(e, &s->body);
    }
}

/* At the end of a step: what was declared or computed for nothing. */
void train_finish(Elab *e, const Item *item)
{
    (void)item;
    if (e->diags->errors)
        return;
    for (int i = 0; i < e->run->optimizers.n; i++) {
        const OptimizerState *s = &e->run->optimizers.at[i];
        if (s->backward.file)
            warn_at(e->diags, CODE_UNUSED, s->backward, "no update of '%s' uses these gradients",
                    s->decl->name);
        else if (!s->updates)
            warn_at(e->diags, CODE_UNUSED, s->decl->name_span, "optimizer '%s' is never used",
                    s->decl->name);
    }
    for (int i = 0; i < e->run->scalers.n; i++) {
        const ScalerState *s = &e->run->scalers.at[i];
        if (!s->used && s->local)
            warn_at(e->diags, CODE_UNUSED, s->scaler->span, "scaler '%s' is never used", s->local);
    }
}
