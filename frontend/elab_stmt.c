/* Statements of bodies: run in order, loops unrolled, conditions decided now. */
#include "frontend/elab_core.h"
#include <string.h>

enum { MAX_REPEAT = 65536, MAX_NODES = 2000000, MAX_WORK = 2000000 };

/* The calls that lead to the place being elaborated, outermost last. */
void note_calls(Elab *e, Diag *d)
{
    for (const Frame *f = e->frame; f && d; f = f->caller)
        if (f->call_span.file)
            note_at(d, f->call_span, "'%s' is called here",
                    f->layer ? f->layer->name : f->decl->name);
}

static bool in_model(Elab *e, const Stmt *s, const char *what)
{
    if (e->frame->layer)
        return true;
    elab_error(e, CODE_RULE, s->span, "only a model declares %s", what);
    return false;
}

/* Is the name free for a declaration? */
static bool is_free(Elab *e, const Stmt *s)
{
    const Binding *b = find_binding(e, s->name);
    if (b) {
        Diag *d = elab_error(e, CODE_NAME, s->name_span, "'%s' is declared twice", s->name);
        if (d)
            note_at(d, b->span, "the other declaration is here");
        return false;
    }
    for (const Scope *scope = e->scope; scope; scope = scope->up)
        if (scope->kind == SCOPE_REPEAT) {
            elab_error(e, CODE_RULE, s->span,
                       "'%s' is declared anew in each round; declare 'layer %s[n]' before the loop",
                       s->name, s->name);
            return false;
        }
    return true;
}

static void declare(Elab *e, const Stmt *s, Value v)
{
    bind_name(e, s->name, v, s->name_span)->is_declared = true;
}

static Param *find_param(const Layer *layer, Str local)
{
    for (int i = 0; i < layer->params.n; i++) {
        const char *dot = strrchr(layer->params.at[i]->name, '.');
        if (!strcmp(dot ? dot + 1 : layer->params.at[i]->name, local))
            return layer->params.at[i];
    }
    return NULL;
}

/* param w: float[K, D] = init;   buffer b: float[D] = init; */
static void exec_param(Elab *e, const Stmt *s)
{
    InitRule rule;
    if (!in_model(e, s, s->kind == STMT_PARAM ? "parameters" : "buffers") || !is_free(e, s))
        return;
    const Type *type = resolve_type(e, s->type, arena_printf(e->arena, "'%s'", s->name));
    Param *p = find_param(e->frame->layer, s->name);
    if (!type || !parse_init(e, s->value, &rule)) {
        declare(e, s, value_error());
        return;
    }
    for (int i = 0; i < type->rank; i++) {
        int64_t size;
        if (!dim_is_int(type->dim[i], &size)) {
            elab_error(e, CODE_SHAPE, s->type->span,
                       "the sizes of '%s' must be known when compiling, found %s", s->name,
                       type_text(e->types, type, e->arena));
            declare(e, s, value_error());
            return;
        }
    }
    if (p && p->type != type) {
        Diag *d =
            elab_error(e, CODE_SHAPE, s->type->span,
                       "'%s' is %s in this call, but was fixed as %s by the first one", s->name,
                       type_text(e->types, type, e->arena), type_text(e->types, p->type, e->arena));
        if (d)
            note_at(d, e->frame->layer->first_call, "the first call is here");
        declare(e, s, value_error());
        return;
    }
    if (!p) {
        p = param_make(e, e->frame->layer, s->name, type, init_of(e, &rule, type, false),
                       s->name_span);
        p->is_buffer = s->kind == STMT_BUFFER;
        p->frozen |= s->frozen;
    }
    declare(e, s, value_error());
    find_binding(e, s->name)->param = p;
}

/* A child by name: nearly always the next one, in the order of the call before. */
static Layer *find_child(Layer *layer, Str name)
{
    int next = layer->next_child;
    if (next < layer->children.n && layer->children.at[next]->name == name)
        return layer->children.at[layer->next_child++];
    if (next == layer->children.n && !layer->complete)
        return NULL;
    for (int i = 0; i < layer->children.n; i++)
        if (layer->children.at[i]->name == name)
            return layer->children.at[i];
    return NULL;
}

/* The layer of an earlier call of this model, or a new one. */
static Layer *layer_again(Elab *e, const Stmt *s, Str name)
{
    Layer *parent = e->frame->layer, *child = find_child(parent, name);
    if (child)
        return child;
    child = layer_make(e, name, parent, parent->instance, &s->call, s->name_span);
    if (child) {
        vec_push(e->arena, &parent->children, child);
        parent->next_child = parent->children.n;
    }
    return child;
}

static void exec_layer(Elab *e, const Stmt *s)
{
    if (!in_model(e, s, "layers") || !is_free(e, s))
        return;
    if (!s->count) {
        Layer *layer = layer_again(e, s, s->name);
        declare(e, s, layer ? (Value){.kind = VAL_LAYER, .layer = layer} : value_error());
        return;
    }
    int64_t count;
    Value v = {.kind = VAL_LAYERS};
    if (!want_int(e, eval(e, s->count), s->count->span, "the number of layers", &count)) {
        declare(e, s, value_error());
        return;
    }
    if (count < 1 || count > MAX_REPEAT) {
        elab_error(e, CODE_LIMIT, s->count->span, "the number of layers must be within 1 .. %d",
                   MAX_REPEAT);
        declare(e, s, value_error());
        return;
    }
    v.n = (int)count;
    v.layers = new_array(e->arena, Layer *, v.n);
    for (int i = 0; i < v.n; i++) {
        v.layers[i] = layer_again(e, s, intern_printf(e->names, "%s.%d", s->name, i));
        if (!v.layers[i]) {
            declare(e, s, value_error());
            return;
        }
    }
    declare(e, s, v);
}

static void exec_repeat(Elab *e, const Stmt *s)
{
    int64_t low, high;
    if (!want_int(e, eval(e, s->low), s->low->span, "the first round", &low) ||
        !want_int(e, eval(e, s->high), s->high->span, "the last round", &high))
        return;
    if (high > low && (uint64_t)high - (uint64_t)low > MAX_REPEAT) {
        elab_error(e, CODE_LIMIT, s->word_span, "a loop has at most %d rounds", MAX_REPEAT);
        return;
    }
    int errors = e->diags->errors;
    for (int64_t i = low; i < high && e->diags->errors == errors; i++) {
        Scope *former = scope_push(e, SCOPE_REPEAT);
        bind_name(e, s->name, value_int(i), s->name_span)->is_declared = true;
        exec_block(e, &s->body);
        scope_pop(e, former);
        if (e->frame->returned || e->stopped)
            return;
    }
}

static void exec_precision(Elab *e, const Stmt *s)
{
    unsigned char former = e->context.region;
    switch (s->scalar) {
    case SCALAR_NONE:
        e->context.region = REGION_OFF;
        break;
    case SCALAR_F32:
        e->context.region = REGION_F32;
        break;
    case SCALAR_F16:
        e->context.region = REGION_F16;
        break;
    case SCALAR_BF16:
        e->context.region = REGION_BF16;
        break;
    default:
        elab_error(e, CODE_RULE, s->scalar_span,
                   "a region computes in f32, f16 or bf16, or is off; found %s",
                   scalar_spelling(s->scalar));
    }
    exec_block(e, &s->body);
    e->context.region = former;
}

static bool decide(Elab *e, const Expr *x, bool *out)
{
    Value v = eval(e, x);
    if (v.kind == VAL_TENSOR) {
        elab_error(e, CODE_RULE, x->span,
                   "a condition must be known when compiling; where(c, a, b) chooses by data");
        return false;
    }
    return want_bool(e, v, x->span, "a condition", out);
}

static void exec_if(Elab *e, const Stmt *s)
{
    bool holds;
    if (!decide(e, s->value, &holds))
        return;
    const Block *block = holds ? &s->body : s->otherwise;
    if (!block)
        return;
    Scope *former = scope_push(e, SCOPE_BLOCK);
    exec_block(e, block);
    scope_pop(e, former);
}

static void exec_assert(Elab *e, const Stmt *s)
{
    bool holds;
    if (!decide(e, s->value, &holds) || holds)
        return;
    Diag *d = elab_error(e, CODE_RULE, s->value->span, "assertion failed%s%s",
                         s->text.text ? ": " : "", s->text.text ? s->text.text : "");
    note_calls(e, d);
}

/* --- assignments --- */

static void name_value(Elab *e, Value v, Str name)
{
    if (v.kind != VAL_TENSOR || v.node->op == OP_READ || v.node->op == OP_CONST)
        return;
    if (!v.node->name || v.node == e->nicknamed)
        v.node->name = name;
}

static bool keeps_type(Elab *e, const Binding *b, Value v, Span span)
{
    if (b->value.kind != VAL_TENSOR || v.kind != VAL_TENSOR || b->value.node->type == v.node->type)
        return true;
    Diag *d = elab_error(e, CODE_SHAPE, span, "'%s' changes from %s to %s in this block", b->name,
                         tensor_text(e, b->value.node), tensor_text(e, v.node));
    if (d)
        note_at(d, b->span, "it is bound before the block here");
    return false;
}

static void assign(Elab *e, const NameRef *target, Value v)
{
    for (Scope *s = e->scope; s; s = s->up)
        for (int i = 0; i < s->bindings.n; i++) {
            Binding *b = &s->bindings.at[i];
            if (b->name != target->name)
                continue;
            if (b->is_declared) {
                Diag *d =
                    elab_error(e, CODE_RULE, target->span, "'%s' cannot be assigned", b->name);
                if (d)
                    note_at(d, b->span, "it is declared here");
                return;
            }
            if (s != e->scope && !keeps_type(e, b, v, target->span))
                v = value_error();
            b->value = v;
            name_value(e, v, target->name);
            return;
        }
    Decl *d = find_decl(e->module, target->name);
    if (d && d->item->kind != ITEM_DATASET && d->item->kind != ITEM_TRAIN &&
        d->item->kind != ITEM_EVAL && d->item->kind != ITEM_INFER) {
        Diag *report = elab_error(e, CODE_NAME, target->span, "'%s' is %s already", d->name,
                                  a_word(e, d->item->kind));
        if (report)
            note_at(report, d->item->name_span, "it is declared here");
    }
    bind_name(e, target->name, v, target->span);
    name_value(e, v, target->name);
}

/* buffer := value; */
static void store(Elab *e, const Stmt *s, Value v)
{
    const NameRef *target = &s->names.at[0];
    const Binding *b = find_binding(e, target->name);
    bool ok;
    if (!b || !b->param || !b->param->is_buffer) {
        if (!b || !is_error(b->value) || b->param)
            elab_error(e, CODE_RULE, target->span, "':=' stores into a buffer, '%s' is none",
                       target->name);
        return;
    }
    Param *p = b->param;
    Node *n = as_tensor(e, v, s->value->span, p->type->dtype);
    if (!n->type)
        return;
    if (n->type->dtype != p->type->dtype)
        n = fit_dtype(e, n, p->type->dtype, &ok);
    if (!same_shape(n->type, p->type)) {
        Diag *d =
            elab_error(e, CODE_SHAPE, s->value->span, "buffer '%s' takes %s, found %s",
                       target->name, type_text(e->types, p->type, e->arena), tensor_text(e, n));
        if (d)
            note_at(d, b->span, "it is declared here");
        return;
    }
    set_span(e, s->span);
    Node *node = build1(OP_STORE, n);
    node->param = p;
    node->version = param_next_version(e, p);
}

static void exec_assign(Elab *e, const Stmt *s)
{
    Value v = eval(e, s->value);
    if (v.kind == VAL_LAYER || v.kind == VAL_LAYERS) {
        elab_error(e, CODE_RULE, s->value->span, "a layer has one name; it cannot be assigned");
        v = value_error();
    }
    if (s->to_buffer) {
        store(e, s, v);
        return;
    }
    if (!s->is_tuple) {
        assign(e, &s->names.at[0], v);
        return;
    }
    if (!is_error(v) && (v.kind != VAL_TUPLE || v.n != s->names.n)) {
        elab_error(e, CODE_TYPE, s->value->span, "%d names need %d values, found %s", s->names.n,
                   s->names.n, value_text(e, &v));
        v = value_error();
    }
    for (int i = 0; i < s->names.n; i++)
        assign(e, &s->names.at[i], is_error(v) ? v : v.at[i]);
}

/* --- report and return --- */

static bool has_report(const Entry *entry, Str name)
{
    for (int i = 0; i < entry->reports.n; i++)
        if (entry->reports.at[i] == name)
            return true;
    return false;
}

static void report(Elab *e, const Arg *arg)
{
    Entry *entry = e->run->entry;
    Str name = arg->name ? arg->name : arg->value->kind == EXPR_NAME ? arg->value->name : NULL;
    Value v = eval(e, arg->value);
    if (!name) {
        elab_error(e, CODE_RULE, arg->span, "a report needs a name: report NAME = …");
        return;
    }
    Node *n = as_tensor(e, v, arg->value->span, DT_FLOAT);
    if (!n->type)
        return;
    if (has_report(entry, name)) {
        elab_error(e, CODE_NAME, arg->span, "'%s' is reported twice", name);
        return;
    }
    if (n->type->rank) {
        elab_error(e, CODE_SHAPE, arg->value->span,
                   "a report is one number, found %s; write mean(…)", tensor_text(e, n));
        return;
    }
    set_span(e, arg->span);
    n = to_real(n);
    Attr attr = attr_str(name);
    vec_push(e->arena, &entry->reports, name);
    build(OP_REPORT, &n, 1, attrs_make(OP_REPORT, &attr, 1));
}

static void exec_report(Elab *e, const Stmt *s)
{
    ItemKind kind = e->frame->decl->item->kind;
    if (kind != ITEM_TRAIN && kind != ITEM_EVAL) {
        elab_error(e, CODE_RULE, s->word_span, "only train and eval report");
        return;
    }
    for (int i = 0; i < s->args.n; i++)
        report(e, &s->args.at[i]);
}

static void exec_return(Elab *e, const Stmt *s)
{
    ItemKind kind = e->frame->decl->item->kind;
    if (kind == ITEM_TRAIN || kind == ITEM_EVAL) {
        elab_error(e, CODE_RULE, s->word_span, "%s returns nothing", item_word(kind));
        return;
    }
    e->frame->result = eval(e, s->value);
    e->frame->result_span = s->value->span;
    e->frame->returned = true;
}

/* --- all of them --- */

static void exec(Elab *e, const Stmt *s)
{
    switch (s->kind) {
    case STMT_PARAM:
    case STMT_BUFFER:
        exec_param(e, s);
        break;
    case STMT_LAYER:
        exec_layer(e, s);
        break;
    case STMT_REPEAT:
        exec_repeat(e, s);
        break;
    case STMT_PRECISION:
        exec_precision(e, s);
        break;
    case STMT_IF:
        exec_if(e, s);
        break;
    case STMT_ASSERT:
        exec_assert(e, s);
        break;
    case STMT_REPORT:
        exec_report(e, s);
        break;
    case STMT_RETURN:
        exec_return(e, s);
        break;
    case STMT_ASSIGN:
        exec_assign(e, s);
        break;
    case STMT_BACKWARD:
    case STMT_CLIP:
    case STMT_UPDATE:
    case STMT_ZERO:
    case STMT_ACCUMULATE:
        step_statement(e, s);
        break;
    }
}

/* Functions that call others twice, and loops in loops, do much without adding one operation. */
static void count_work(Elab *e, Span span)
{
    if (++e->work <= MAX_WORK || e->stopped)
        return;
    elab_error(e, CODE_LIMIT, span, "this takes more than %d statements with all calls inlined",
               MAX_WORK);
    e->stopped = true;
}

void exec_block(Elab *e, const Block *block)
{
    count_work(e, block->span);
    for (int i = 0; i < block->stmts.n && !e->stopped; i++) {
        const Stmt *s = block->stmts.at[i];
        if (e->frame->returned) {
            warn_at(e->diags, CODE_UNUSED, s->span,
                    "this is never reached, the body returns before");
            return;
        }
        set_span(e, s->span);
        count_work(e, s->span);
        exec(e, s);
        if (graph_now()->count > MAX_NODES) {
            elab_error(e, CODE_LIMIT, s->span, "the program has more than %d operations",
                       MAX_NODES);
            e->stopped = true;
        }
    }
}
