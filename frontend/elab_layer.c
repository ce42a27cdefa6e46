/* Layers, models and instances. A model is inlined at each call; its layers and parameters are made
 * by the first call and found again by the later ones, by name.
 *
 *     instance net = Mlp();      net(x)  makes  net.fc1.weight  f32[256, 64] from the last dimension of x
 */
#include "frontend/elab_core.h"
#include <math.h>
#include <string.h>

enum { MAX_DEPTH = 256 };

static const struct {
    const char *name, *attrs;
    LayerKind kind;
} kinds[] = {
    {"linear", "out,bias,init,layout", LAYER_LINEAR},
    {"embedding", "num,dim,init", LAYER_EMBEDDING},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

bool is_layer_kind(const char *name)
{
    return layer_attributes(name) != NULL;
}

const char *layer_attributes(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return kinds[i].attrs;
    return NULL;
}

/* --- parameters --- */

Param *param_make(Elab *e, Layer *layer, Str name, const Type *type, Init init, Span span)
{
    Param *p = new (e->arena, Param);
    size_t prefix = strlen(layer->instance->name) + 1;
    fits_limits(e, type, span);
    p->name = intern_printf(e->names, "%s.%s", layer->path, name);
    p->local = intern(e->names, p->name + prefix);
    p->instance = layer->instance;
    p->type = type;
    p->init = init;
    p->span = span;
    p->frozen = layer->instance->frozen;
    p->index = e->program->params.n;
    p->group = -1;
    p->copy = DT_NONE;
    p->master = DT_NONE;
    vec_push(e->arena, &e->program->params, p);
    vec_push(e->arena, &layer->params, p);
    return p;
}

static int version_of(Elab *e, const Param *p)
{
    return p->index < e->run->version.n ? e->run->version.at[p->index] : 0;
}

int param_next_version(Elab *e, Param *p)
{
    while (e->run->version.n <= p->index)
        vec_push(e->arena, &e->run->version, 0);
    return ++e->run->version.at[p->index];
}

Node *param_read(Elab *e, Param *p)
{
    if (!e->run)
        return error_node();
    Node *n = build_source(OP_READ, p->type, NULL, p, version_of(e, p));
    return is_real(p->type->dtype) && p->type->dtype != DT_FLOAT ? mark_pinned(n) : n;
}

/* --- declarations --- */

/* The attributes of a signature, from the slots of a call that begin at `first`, else by
 * default. */
static bool bind_attributes(Elab *e, Decl *d, Site *site, int first, Value *out)
{
    const Signature *s = &d->item->function.signature;
    bool ok = true;
    for (int i = 0; i < s->attributes.n; i++) {
        const ValueDecl *decl = &s->attributes.at[i];
        Slot *slot = &site->slot[first + i];
        if (!slot->given && !decl->value) {
            Diag *report = elab_error(e, CODE_ATTRIBUTE, site->name_span, "'%s' needs '%s'",
                                      site->what, decl->name);
            if (report)
                note_at(report, decl->span, "it is declared here");
            ok = false;
            continue;
        }
        if (slot->given)
            out[i] = slot_value(e, slot);
        Module *module = e->module;
        Scope *scope = e->scope;
        e->module = d->module;
        e->scope = NULL;
        Span span = slot->given ? slot->span : decl->value->span;
        if (!slot->given)
            out[i] = eval(e, decl->value);
        const char *what = slot_what(e, site, slot);
        out[i] = convert_value(e, out[i], decl->type, span, what);
        ok = check_range(e, decl->range, out[i], span, what,
                         decl->range ? decl->range->span : span) &&
             !is_error(out[i]) && ok;
        e->module = module;
        e->scope = scope;
    }
    return ok;
}

static Layer *fresh_layer(Elab *e, Str name, Layer *parent, Instance *instance, Span span)
{
    Layer *l = new (e->arena, Layer);
    l->name = name;
    l->parent = parent;
    l->instance = instance;
    l->path = parent ? intern_printf(e->names, "%s.%s", parent->path, name) : instance->name;
    l->span = span;
    return l;
}

static bool read_layout(Elab *e, Layer *l, Site *s, bool *ok)
{
    Str layout = site_string(e, s, "layout", "out_in", ok);
    l->in_out = !strcmp(layout, "in_out");
    if (l->in_out || !strcmp(layout, "out_in"))
        return true;
    elab_error(e, CODE_VALUE, site_find(s, "layout")->span,
               "'layout' of 'linear' is \"out_in\" or \"in_out\"");
    return false;
}

static bool read_size(Elab *e, Site *s, const char *name, int64_t *out)
{
    bool ok = true;
    if (!site_need(e, s, name))
        return false;
    *out = site_int(e, s, name, 0, &ok);
    if (ok && (*out < 1 || *out > INT32_MAX)) {
        elab_error(e, CODE_VALUE, site_find(s, name)->span, "%s must be within 1 .. %d",
                   slot_what(e, s, site_find(s, name)), INT32_MAX);
        return false;
    }
    return ok;
}

/* layer fc = linear(out, bias = true, init = …, layout = "out_in");   layer wte = embedding(num,
 * dim); */
static bool read_builtin(Elab *e, Layer *l, int kind, const Call *call)
{
    Site s;
    bool ok = true;
    l->kind = kinds[kind].kind;
    site_open(&s, call->name, call->span, call->name_span);
    site_slots(e, &s, kinds[kind].attrs);
    if (!site_bind(e, &s, &call->args, NULL, call->span))
        return false;
    if (l->kind == LAYER_LINEAR) {
        l->bias = site_bool(e, &s, "bias", true, &ok);
        ok = read_size(e, &s, "out", &l->out) && read_layout(e, l, &s, &ok) && ok;
    } else {
        ok = read_size(e, &s, "num", &l->in) && read_size(e, &s, "dim", &l->out);
    }
    Slot *init = site_find(&s, "init");
    if (init->given) {
        l->init = new (e->arena, InitRule);
        ok = parse_init(e, init->expr, l->init) && ok;
    }
    return ok;
}

static bool read_model(Elab *e, Layer *l, Decl *d, const Call *call)
{
    Site s;
    const Signature *signature = &d->item->function.signature;
    l->kind = LAYER_MODEL;
    l->model = d;
    l->attrs = new_array(e->arena, Value, signature->attributes.n + 1);
    site_open(&s, call->name, call->span, call->name_span);
    for (int i = 0; i < signature->attributes.n && i < MAX_SLOTS; i++)
        site_slot(&s, signature->attributes.at[i].name);
    return site_bind(e, &s, &call->args, NULL, call->span) &&
           bind_attributes(e, d, &s, 0, l->attrs);
}

static void unknown_kind(Elab *e, const Call *call)
{
    Candidates names = {0};
    for (int i = 0; i < KINDS; i++)
        vec_push(e->arena, &names, kinds[i].name);
    for (int m = 0; m < e->module->decls.n; m++)
        if (e->module->decls.at[m]->item->kind == ITEM_MODEL)
            vec_push(e->arena, &names, e->module->decls.at[m]->name);
    unknown_name(e, CODE_NAME, call->name_span,
                 arena_printf(e->arena, "there is no layer or model '%s'", call->name), call->name,
                 &names);
}

/* NULL: reported. */
Layer *layer_make(Elab *e, Str name, Layer *parent, Instance *instance, const Call *call, Span span)
{
    Layer *l = fresh_layer(e, name, parent, instance, span);
    Decl *d = find_decl(e->module, call->name);
    if (d && d->item->kind == ITEM_MODEL) {
        d->used = true;
        return read_model(e, l, d, call) ? l : NULL;
    }
    for (int i = 0; i < KINDS && parent; i++)
        if (!strcmp(kinds[i].name, call->name))
            return read_builtin(e, l, i, call) ? l : NULL;
    if (is_later_work(call->name)) {
        unsupported(e, call->name_span, call->name);
    } else if (d) {
        Diag *report = elab_error(e, CODE_TYPE, call->name_span, "'%s' is %s, not a model", d->name,
                                  a_word(e, d->item->kind));
        if (report)
            note_at(report, d->item->name_span, "it is declared here");
    } else {
        unknown_kind(e, call);
    }
    return NULL;
}

Value instance_value(Elab *e, Decl *d)
{
    if (d->state == DECL_DONE)
        return d->value;
    const Item *item = d->item;
    Module *module = e->module;
    Scope *scope = e->scope;
    Instance *instance = new (e->arena, Instance);
    e->module = d->module;
    e->scope = NULL;
    d->state = DECL_DONE;
    instance->name = d->full;
    instance->model = item->instance.call.name;
    instance->weights =
        item->instance.weights.text ? intern(e->names, item->instance.weights.text) : NULL;
    instance->frozen = item->instance.frozen;
    instance->span = item->name_span;
    Layer *root = layer_make(e, d->full, NULL, instance, &item->instance.call, item->name_span);
    e->module = module;
    e->scope = scope;
    vec_push(e->arena, &e->program->instances, instance);
    d->value = root ? (Value){.kind = VAL_LAYER, .layer = root} : value_error();
    if (root)
        vec_push(e->arena, &e->roots, root);
    return d->value;
}

/* --- built-in layers --- */

static Param *find_named(const Layer *layer, const char *name)
{
    for (int i = 0; i < layer->params.n; i++) {
        const char *dot = strrchr(layer->params.at[i]->name, '.');
        if (!strcmp(dot + 1, name))
            return layer->params.at[i];
    }
    return NULL;
}

static const Type *int_type(Elab *e, int64_t a, int64_t b)
{
    const Dim *dim[] = {dim_int(e->types, a), dim_int(e->types, b)};
    return type_make(e->types, DT_FLOAT, b ? 2 : 1, dim);
}

/* PyTorch's default: weight and bias uniform in ±1/sqrt(in). With `init` the bias is zero. */
static void make_linear(Elab *e, Layer *l)
{
    double bound = 1 / sqrt((double)l->in);
    InitRule even = {.kind = RULE_UNIFORM, .a = -bound, .b = bound, .span = l->span};
    InitRule zero = {.kind = RULE_ZEROS, .span = l->span};
    const Type *type = l->in_out ? int_type(e, l->in, l->out) : int_type(e, l->out, l->in);
    param_make(e, l, intern(e->names, "weight"), type,
               init_of(e, l->init ? l->init : &even, type, l->in_out), l->span);
    if (!l->bias)
        return;
    type = int_type(e, l->out, 0);
    param_make(e, l, intern(e->names, "bias"), type,
               init_of(e, l->init ? &zero : &even, type, false), l->span);
}

static void make_embedding(Elab *e, Layer *l)
{
    InitRule normal = {.kind = RULE_NORMAL, .a = 0, .b = 1, .span = l->span};
    const Type *type = int_type(e, l->in, l->out);
    param_make(e, l, intern(e->names, "weight"), type,
               init_of(e, l->init ? l->init : &normal, type, false), l->span);
}

static bool one_argument(Elab *e, Layer *l, const CallSite *c, Given *out)
{
    static ParamDecl input = {.name = "x"};
    Signature s = {.span = l->span};
    Site site;
    s.data.at = &input;
    s.data.n = 1;
    return bind_call(e, &s, c, l->name, &site, out);
}

/* The number of inputs of a linear layer: fixed by its first call. */
static bool fix_inputs(Elab *e, Layer *l, const Given *g, Node *x)
{
    int64_t in;
    const char *have = tensor_text(e, x);
    if (!x->type->rank || !dim_is_int(x->type->dim[x->type->rank - 1], &in)) {
        elab_error(e, CODE_SHAPE, g->span,
                   "'%s' needs a last dimension that is known when compiling, found %s", l->name,
                   have);
        return false;
    }
    if (!l->in) {
        l->in = in;
        l->first_call = g->span;
        make_linear(e, l);
        return true;
    }
    if (l->in == in)
        return true;
    const Dim *dim[MAX_RANK];
    memcpy(dim, x->type->dim, sizeof *dim * (size_t)x->type->rank);
    dim[x->type->rank - 1] = dim_int(e->types, l->in);
    const char *want =
        type_text(e->types, type_make(e->types, x->type->dtype, x->type->rank, dim), e->arena);
    Diag *d = g->giver ? elab_error(e, CODE_SHAPE, g->span, "'%s' takes %s but '%s' gives %s",
                                    l->name, want, g->giver, have)
                       : elab_error(e, CODE_SHAPE, g->span, "'%s' takes %s, found %s", l->name,
                                    want, have);
    if (d && g->mark.file)
        mark_at(d, g->mark);
    if (d)
        note_at(d, l->first_call, "the input of '%s' was fixed at %lld here", l->name,
                (long long)l->in);
    return false;
}

/* What a layer computes carries its name until it is bound to one of the user's. */
static Value named_after(Elab *e, const Layer *l, Node *n)
{
    if (n->type && !n->name) {
        n->name = l->name;
        e->nicknamed = n;
    }
    return value_node(n);
}

static Value call_linear(Elab *e, Layer *l, const CallSite *c)
{
    Given g;
    if (!one_argument(e, l, c, &g))
        return value_error();
    Node *x = as_tensor(e, g.value, g.span, DT_FLOAT);
    if (!x->type)
        return value_error();
    x = to_real(x);
    if (!fix_inputs(e, l, &g, x))
        return value_error();
    Node *w = param_read(e, find_named(l, "weight"));
    Node *in[] = {x, w, l->bias ? param_read(e, find_named(l, "bias")) : w};
    Attr attrs[] = {attr_bool(l->in_out), attr_bool(l->bias)};
    set_span(e, c->span);
    return named_after(e, l, build(OP_LINEAR, in, 3, attrs_make(OP_LINEAR, attrs, 2)));
}

static Value call_embedding(Elab *e, Layer *l, const CallSite *c)
{
    Given g;
    if (!one_argument(e, l, c, &g))
        return value_error();
    Node *index = as_tensor(e, g.value, g.span, DT_I32);
    if (!index->type)
        return value_error();
    if (dtype_info[index->type->dtype].kind != KIND_INT) {
        elab_error(e, CODE_TYPE, g.span, "'%s' takes integers, found %s", l->name,
                   tensor_text(e, index));
        return value_error();
    }
    if (!l->params.n)
        make_embedding(e, l);
    limit_classes(e, index, dim_int(e->types, l->in));
    Node *in[] = {param_read(e, find_named(l, "weight")), index};
    set_span(e, c->span);
    return named_after(e, l, build(OP_GATHER, in, 2, NULL));
}

/* --- models and defs --- */

static Node *boundary(Elab *e, Op op, Node *n, const Instance *instance)
{
    (void)e;
    if (!n->type || !is_real(n->type->dtype))
        return n;
    Attr attr = attr_str(instance->name);
    return build(op, &n, 1, attrs_make(op, &attr, 1));
}

static Value leave(Elab *e, Value v, const Instance *instance)
{
    if (v.kind == VAL_TENSOR)
        return value_node(boundary(e, OP_LEAVE, v.node, instance));
    for (int i = 0; v.kind == VAL_TUPLE && i < v.n; i++)
        v.at[i] = leave(e, v.at[i], instance);
    return v;
}

static bool may_enter(Elab *e, Decl *d, const CallSite *c)
{
    if (d->broken)
        return false;
    if (d->active) {
        Diag *report = elab_error(e, CODE_RULE, c->callee->span, "'%s' calls itself", d->name);
        note_calls(e, report);
        return false;
    }
    if (e->depth >= MAX_DEPTH) {
        elab_error(e, CODE_LIMIT, c->callee->span, "calls are nested more than %d deep", MAX_DEPTH);
        return false;
    }
    return true;
}

/* Elaborates the body with its signature bound; the scope and module are the callee's. */
static Value run_body(Elab *e, Decl *d, const Given *given, const char *who)
{
    const Item *item = d->item;
    if (!bind_signature(e, &item->function.signature, given, who))
        return value_error();
    int errors = e->diags->errors;
    exec_block(e, &item->function.body);
    Value v = e->frame->result;
    if (e->diags->errors > errors) {
        d->broken = true;
        return value_error();
    }
    if (!e->frame->returned) {
        elab_error(e, CODE_RULE, item->name_span, "'%s' returns nothing", d->name);
        d->broken = true;
        return value_error();
    }
    v = bind_result(e, item->function.result, v, e->frame->result_span, d->name);
    d->broken = is_error(v);
    return v;
}

/* A call of a model or def: attributes are known, data are given. */
static Value inline_body(Elab *e, Decl *d, Layer *layer, const Value *attrs, const Given *given,
                         const CallSite *c)
{
    const Signature *s = &d->item->function.signature;
    Frame frame = {
        .caller = e->frame, .decl = d, .layer = layer, .module = d->module, .call_span = c->span};
    Module *module = e->module;
    Scope *former = scope_push(e, SCOPE_CALL);
    e->frame = &frame;
    e->module = d->module;
    e->depth++;
    d->active = d->used = true;
    for (int i = 0; i < s->attributes.n; i++)
        bind_name(e, s->attributes.at[i].name, attrs[i], s->attributes.at[i].name_span)
            ->is_declared = true;
    Value v = run_body(e, d, given, layer ? layer->name : d->name);
    d->active = false;
    e->depth--;
    e->module = module;
    e->frame = frame.caller;
    scope_pop(e, former);
    return v;
}

static Value call_model(Elab *e, Layer *layer, const CallSite *c)
{
    Decl *d = layer->model;
    const Signature *full = &d->item->function.signature;
    Signature data_only = {.data = full->data, .span = full->span};
    Given given[MAX_SLOTS];
    Site site;
    bool outermost = !e->context.in_instance;
    if (!may_enter(e, d, c) || !bind_call(e, &data_only, c, layer->name, &site, given))
        return value_error();
    if (!layer->called)
        layer->first_call = c->span;
    layer->called = true;
    layer->next_child = 0;
    if (outermost) {
        e->context.in_instance = 1;
        set_span(e, c->span);
        for (int i = 0; i < full->data.n; i++)
            if (given[i].value.kind == VAL_TENSOR)
                given[i].value.node = boundary(e, OP_ENTER, given[i].value.node, layer->instance);
    }
    Value v = inline_body(e, d, layer, layer->attrs, given, c);
    layer->complete = true;
    if (!outermost)
        return v;
    set_span(e, c->span);
    v = leave(e, v, layer->instance);
    e->context.in_instance = 0;
    set_span(e, c->span);
    return v;
}

Value call_def(Elab *e, Decl *d, const CallSite *c)
{
    const Signature *s = &d->item->function.signature;
    Value *attrs = new_array(e->arena, Value, s->attributes.n + 1);
    Given given[MAX_SLOTS];
    Site site;
    if (!e->run) {
        elab_error(e, CODE_VALUE, c->span, "'%s' is not known when compiling", d->name);
        return value_error();
    }
    if (!may_enter(e, d, c) || !bind_call(e, s, c, d->name, &site, given) ||
        !bind_attributes(e, d, &site, s->data.n, attrs))
        return value_error();
    return inline_body(e, d, NULL, attrs, given, c);
}

Value call_layer(Elab *e, Layer *layer, const CallSite *c)
{
    if (!e->run) {
        elab_error(e, CODE_VALUE, c->span, "'%s' is called only in bodies", layer->name);
        return value_error();
    }
    switch (layer->kind) {
    case LAYER_MODEL:
        return call_model(e, layer, c);
    case LAYER_LINEAR:
        return call_linear(e, layer, c);
    case LAYER_EMBEDDING:
        return call_embedding(e, layer, c);
    }
    return value_error();
}

/* wte.weight, net.fc1, net.h: parameters and layers by name. */
Value layer_member(Elab *e, Layer *layer, Str name, Span span)
{
    Candidates names = {0};
    if (layer->kind == LAYER_EMBEDDING && !layer->params.n && e->run)
        make_embedding(e, layer);
    for (int i = 0; i < layer->params.n; i++) {
        Param *p = layer->params.at[i];
        const char *last = strrchr(p->name, '.') + 1;
        if (!strcmp(last, name))
            return value_node(param_read(e, p));
        vec_push(e->arena, &names, last);
    }
    for (int i = 0; i < layer->children.n; i++) {
        if (layer->children.at[i]->name == name)
            return (Value){.kind = VAL_LAYER, .layer = layer->children.at[i]};
        vec_push(e->arena, &names, layer->children.at[i]->name);
    }
    if (!names.n)
        elab_error(e, CODE_NAME, span, "'%s' has no parameters before its first call", layer->name);
    else
        unknown_name(e, CODE_NAME, span,
                     arena_printf(e->arena, "'%s' has no member '%s'", layer->name, name), name,
                     &names);
    return value_error();
}
