/* Calls: what a callee's name means, casts, and the binding of arguments to functions of the
 * language. */
#include "frontend/elab_core.h"
#include <math.h>
#include <string.h>

/* --- the table of functions --- */

typedef Value (*BuildFn)(Elab *e, Site *s, int op);
#define BUILTIN(name, least, most, attrs, build, op) Value builtin_##build(Elab *e, Site *s, int o);
#include "frontend/builtin.def"
#undef BUILTIN

static const struct Builtin {
    const char *name;
    int least, most;
    const char *attrs;
    BuildFn build;
    int op;
} builtins[] = {
#define BUILTIN(name, least, most, attrs, build, op)                                               \
    {name, least, most, attrs, builtin_##build, (int)op},
#include "frontend/builtin.def"
#undef BUILTIN
};
enum { BUILTINS = sizeof builtins / sizeof *builtins };

/* What the language has and this version has not. */
static const char *const later[] = {
    "conv1d",       "conv2d",       "conv3d",          "conv_transpose2d",
    "batch_norm1d", "batch_norm2d", "batch_norm3d",    "batch_norm",
    "layer_norm",   "group_norm",   "instance_norm2d", "rms_norm",
    "max_pool2d",   "avg_pool2d",   "attention",       "mask_causal",
    "scatter_add",  "tokens",       "cifar",           "lstm",
    "gru",          "einsum",       "cumsum",          "topk",
    "logsumexp",    "pad",          "stack",           "argmin",
    "prod",         "norm",         "recompute",       "upsample2d",
};

static const struct Builtin *find_builtin(const char *name)
{
    for (int i = 0; i < BUILTINS; i++)
        if (!strcmp(builtins[i].name, name))
            return &builtins[i];
    return NULL;
}

static int find_elementwise(const char *name)
{
    int op = op_find(name);
    if (op < 0 || !op_info((Op)op)->elementwise || op_is((Op)op, F_INTERNAL))
        return -1;
    return op;
}

bool is_builtin(const char *name)
{
    return find_builtin(name) || find_elementwise(name) >= 0 || !strcmp(name, "floor") ||
           !strcmp(name, "ceil") || !strcmp(name, "round");
}

bool is_later_work(const char *name)
{
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (!strcmp(later[i], name))
            return true;
    return false;
}

const char *builtin_attributes(Elab *e, const char *name)
{
    const struct Builtin *b = find_builtin(name);
    if (b)
        return b->attrs;
    int op = find_elementwise(name);
    if (op < 0)
        return NULL;
    const OpInfo *info = op_info((Op)op);
    const char *text = "";
    for (int i = 0; i < info->attrs; i++)
        text = arena_printf(e->arena, "%s%s%s", text, i ? "," : "", info->attr[i].name);
    return text;
}

void add_builtin_names(Candidates *out, Arena *arena)
{
    for (int i = 0; i < BUILTINS; i++)
        vec_push(arena, out, builtins[i].name);
    for (int op = 0; op < OP_COUNT; op++)
        if (op_info((Op)op)->elementwise && !op_is((Op)op, F_INTERNAL))
            vec_push(arena, out, op_info((Op)op)->spelling);
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        vec_push(arena, out, later[i]);
}

/* --- functions --- */

Node *site_tensor(Elab *e, Site *s, int i, DType peer)
{
    Value v = slot_value(e, &s->slot[i]);
    set_span(e, s->slot[i].span);
    Node *n = as_tensor(e, v, s->slot[i].span, peer);
    set_span(e, s->span);
    return n;
}

/* The operands of an element-wise op as tensors of one kind; numbers follow their peers. */
static bool elementwise_operands(Elab *e, Site *s, Op op, Node **in)
{
    const OpInfo *info = op_info(op);
    int first = op_is(op, F_CHOICE) ? 1 : 0;
    DType peer = DT_NONE;
    for (int i = first; i < info->arity; i++) {
        Value v = slot_value(e, &s->slot[i]);
        if (is_error(v))
            return false;
        if (v.kind == VAL_TENSOR && (peer == DT_NONE || is_real(v.node->type->dtype)))
            peer = v.node->type->dtype;
    }
    for (int i = 0; i < info->arity; i++) {
        in[i] = site_tensor(e, s, i, i < first ? DT_BOOL : peer);
        if (!in[i]->type)
            return false;
        if (op_is(op, F_REALS))
            in[i] = to_real(in[i]);
    }
    for (int i = first + 1; i < info->arity; i++) {
        unify(&in[first], &in[i]);
        if (i > first + 1)
            unify(&in[first + 1], &in[i]);
    }
    return true;
}

static Value elementwise(Elab *e, Site *s, Op op)
{
    const OpInfo *info = op_info(op);
    Node *in[3];
    Attr attrs[MAX_ATTRS];
    bool ok = elementwise_operands(e, s, op, in);
    for (int i = 0; i < info->attrs; i++)
        attrs[i] = attr_real(site_real(e, s, info->attr[i].name, info->attr[i].fallback, &ok));
    if (!ok)
        return value_error();
    set_span(e, s->span);
    int errors = e->diags->errors;
    Node *result = build(op, in, info->arity, attrs_make(op, attrs, info->attrs));
    note_operands(e, errors, in, info->arity);
    return value_node(result);
}

static bool need_tensors(Elab *e, Site *s, int least)
{
    int given = 0;
    while (given < s->positional && s->slot[given].given)
        given++;
    if (given >= least)
        return true;
    elab_error(e, CODE_ATTRIBUTE, s->span, "'%s' needs %d tensor%s, found %d", s->what, least,
               least == 1 ? "" : "s", given);
    return false;
}

/* All operands are numbers: computed now. */
static Value fold_call(Elab *e, Site *s, bool *known)
{
    Value in[3];
    int n = 0;
    *known = false;
    for (; n < s->positional && n < 3 && s->slot[n].given; n++) {
        in[n] = slot_value(e, &s->slot[n]);
        if (is_error(in[n])) {
            *known = true;
            return value_error();
        }
    }
    return fold_function(e, s->what, s->span, in, n, known);
}

Value call_builtin(Elab *e, const char *name, const CallSite *c)
{
    const struct Builtin *b = find_builtin(name);
    int op = b ? -1 : find_elementwise(name);
    bool known;
    Site s;
    site_open(&s, name, c->span, c->callee->span);
    s.positional = b ? b->most : op >= 0 ? op_info((Op)op)->arity : 1;
    for (int i = 0; i < s.positional; i++)
        site_slot(&s, i == 0 ? "x" : i == 1 ? "y" : "z");
    site_slots(e, &s, b ? b->attrs : op >= 0 ? builtin_attributes(e, name) : "");
    if (!site_bind(e, &s, c->args, c->piped, c->piped_span) ||
        !need_tensors(e, &s, b ? b->least : s.positional))
        return value_error();
    Value v = fold_call(e, &s, &known);
    if (known)
        return v;
    if (!e->run) {
        elab_error(e, CODE_VALUE, c->span, "'%s' is not known when compiling", name);
        return value_error();
    }
    set_span(e, c->span);
    if (b)
        return b->build(e, &s, b->op);
    if (op >= 0)
        return elementwise(e, &s, (Op)op);
    return unsupported(e, c->span, arena_printf(e->arena, "'%s' of tensors", name));
}

/* --- casts --- */

static Value cast_number(Elab *e, Value v, DType to, Span span)
{
    double r = v.kind == VAL_REAL ? v.r : (double)v.i;
    if (to == DT_FLOAT)
        return value_real(r);
    if (to == DT_BOOL)
        return value_bool(r != 0);
    if (!is_real(to)) {
        r = trunc(r);
        if (r < (dtype_info[to].is_signed ? -dtype_max(to) - 1 : 0) || r > dtype_max(to)) {
            elab_error(e, CODE_VALUE, span, "%s does not fit into %s", value_text(e, &v),
                       dtype_info[to].name);
            return value_error();
        }
        return value_int((int64_t)r);
    }
    return e->run ? value_node(mark_pinned(constant(r, to))) : value_real(r);
}

static Value call_cast(Elab *e, const CallSite *c)
{
    DType to = element_type(c->callee->scalar);
    const char *name = scalar_spelling(c->callee->scalar);
    Site s;
    if (to == DT_NONE)
        return unsupported(e, c->callee->span, arena_printf(e->arena, "the type %s", name));
    site_open(&s, name, c->span, c->callee->span);
    s.positional = 1;
    site_slot(&s, "x");
    if (!site_bind(e, &s, c->args, c->piped, c->piped_span) || !need_tensors(e, &s, 1))
        return value_error();
    Value v = slot_value(e, &s.slot[0]);
    if (is_number(v))
        return cast_number(e, v, to, c->span);
    if (v.kind == VAL_RUNTIME && !e->run)
        return v;
    Node *x = site_tensor(e, &s, 0, to);
    if (!x->type)
        return value_error();
    if (to == DT_BOOL && x->type->dtype != DT_BOOL)
        return value_node(build2(OP_NE, x, constant(0, x->type->dtype)));
    if (x->type->dtype == to) /* f32 so far: a level may still compute it in half */
        return value_node(is_real(to) && to != DT_FLOAT ? mark_pinned(x) : x);
    Node *r = cast_to(x, to);
    return value_node(is_real(to) && to != DT_FLOAT ? mark_pinned(r) : r);
}

/* --- what a name calls --- */

static Value unknown_function(Elab *e, const CallSite *c, const char *name)
{
    Candidates names = {0};
    for (Scope *s = e->scope; s; s = s->up)
        for (int i = 0; i < s->bindings.n; i++)
            if (s->bindings.at[i].value.kind == VAL_LAYER)
                vec_push(e->arena, &names, s->bindings.at[i].name);
    add_decl_names(e->module, &names, "", e->arena);
    add_builtin_names(&names, e->arena);
    unknown_name(e, CODE_NAME, c->callee->span,
                 arena_printf(e->arena, "there is no function '%s'", name), name, &names);
    return value_error();
}

static Value call_decl(Elab *e, const CallSite *c, Decl *d)
{
    d->used = true;
    switch (d->item->kind) {
    case ITEM_DEF:
        return call_def(e, d, c);
    case ITEM_INSTANCE: {
        Value v = instance_value(e, d);
        return v.kind == VAL_LAYER ? call_layer(e, v.layer, c) : v;
    }
    case ITEM_MODEL: {
        Diag *report =
            elab_error(e, CODE_TYPE, c->callee->span,
                       "'%s' is a model; call an instance or a layer made of it", d->name);
        if (report)
            note_at(report, d->item->name_span, "it is declared here");
        return value_error();
    }
    case ITEM_EXTERN_OP:
        return unsupported(e, c->callee->span, "extern ops");
    default:
        elab_error(e, CODE_TYPE, c->callee->span, "'%s' is %s and cannot be called", d->name,
                   a_word(e, d->item->kind));
        return value_error();
    }
}

/* What a function gives is called after its operand and itself, "fc1_relu", until the user names
 * it. */
static Value named_result(Elab *e, const CallSite *c, const char *name, Value v)
{
    if (v.kind != VAL_TENSOR || !v.node->type || v.node->name || op_is(v.node->op, F_GENERATOR) ||
        v.node->op == OP_READ)
        return v;
    Str of = c->piped && c->piped->kind == VAL_TENSOR ? c->piped->node->name : NULL;
    v.node->name = of && strlen(of) + strlen(name) < 24 ? intern_printf(e->names, "%s_%s", of, name)
                                                        : intern(e->names, name);
    e->nicknamed = v.node;
    return v;
}

static Value call_name(Elab *e, const CallSite *c, const char *name)
{
    const Binding *b = c->callee->kind == EXPR_NAME ? find_binding(e, c->callee->name) : NULL;
    if (b && b->value.kind == VAL_LAYER)
        return call_layer(e, b->value.layer, c);
    bool is_wrong = b && !b->param && is_error(b->value); /* reported where it was bound */
    if (b && !is_wrong && !is_builtin(name))
        elab_error(e, CODE_TYPE, c->callee->span, "'%s' is %s and cannot be called", name,
                   b->param ? "a parameter" : value_text(e, &b->value));
    if (b && (is_wrong || !is_builtin(name)))
        return value_error();
    Decl *d = find_decl(e->module, name);
    if (d)
        return call_decl(e, c, d);
    if (is_builtin(name))
        return named_result(e, c, name, call_builtin(e, name, c));
    if (is_later_work(name))
        return unsupported(e, c->callee->span, name);
    if (is_layer_kind(name)) {
        elab_error(e, CODE_TYPE, c->callee->span,
                   "'%s' has parameters; declare it: layer NAME = %s(…)", name, name);
        return value_error();
    }
    return unknown_function(e, c, name);
}

Value call_expr(Elab *e, const CallSite *c)
{
    if (c->callee->kind == EXPR_SCALAR)
        return call_cast(e, c);
    Str name = qualified_text(e, c->callee);
    if (c->callee->kind == EXPR_NAME ||
        (name && !find_binding(e, intern_n(e->names, name, strcspn(name, "."))) &&
         find_decl(e->module, name)))
        return call_name(e, c, name);
    Value v = eval(e, c->callee);
    if (v.kind == VAL_LAYER)
        return call_layer(e, v.layer, c);
    if (!is_error(v))
        elab_error(e, CODE_TYPE, c->callee->span, "%s cannot be called", value_text(e, &v));
    return value_error();
}

bool bind_call(Elab *e, const Signature *s, const CallSite *c, const char *who, Site *site,
               Given *given)
{
    site_open(site, who, c->span, c->callee->span);
    site->positional = s->data.n;
    if (s->data.n + s->attributes.n > MAX_SLOTS) {
        elab_error(e, CODE_LIMIT, s->span, "a signature has at most %d parameters", MAX_SLOTS);
        return false;
    }
    for (int i = 0; i < s->data.n; i++)
        site_slot(site, s->data.at[i].name);
    for (int i = 0; i < s->attributes.n; i++)
        site_slot(site, s->attributes.at[i].name);
    if (!site_bind(e, site, c->args, c->piped, c->piped_span))
        return false;
    for (int i = 0; i < s->data.n; i++) {
        Slot *slot = &site->slot[i];
        if (!slot->given) {
            Diag *d =
                elab_error(e, CODE_ATTRIBUTE, c->span, "'%s' needs %d argument%s: '%s' is missing",
                           who, s->data.n, s->data.n == 1 ? "" : "s", slot->name);
            if (d)
                note_at(d, s->span, "its parameters are declared here");
            return false;
        }
        bool is_piped = !slot->expr;
        given[i].value = slot_value(e, slot);
        given[i].span = is_piped ? c->callee->span : slot->span;
        given[i].mark = is_piped ? c->piped_span : (Span){.file = 0};
        given[i].giver = is_piped ? c->giver : giver_of(slot->expr);
        if (!is_piped && slot->expr->kind == EXPR_NAME)
            given[i].giver = NULL;
        if (is_error(given[i].value))
            return false;
    }
    return true;
}
