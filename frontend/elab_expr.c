/* Expressions: names, operators, indices. Numbers are folded, tensors become nodes of the open
 * graph. */
#include "frontend/elab_core.h"
#include <string.h>

void set_span(Elab *e, Span span)
{
    e->context.span = span;
    graph_context(e->context);
}

Node *mark_pinned(Node *n)
{
    if (n->type)
        n->pinned = 1;
    return n;
}

Node *like(double value, const Node *peer)
{
    return constant(value, peer->type && is_real(peer->type->dtype) ? peer->type->dtype : DT_FLOAT);
}

Node *to_real(Node *x)
{
    return x->type && !is_real(x->type->dtype) ? cast_to(x, DT_FLOAT) : x;
}

/* The name of what gives the value of x: of a call, the callee. */
const char *giver_of(const Expr *x)
{
    switch (x->kind) {
    case EXPR_NAME:
        return x->name;
    case EXPR_CALL:
        return giver_of(x->a);
    case EXPR_PIPE:
        return giver_of(x->b);
    case EXPR_MEMBER:
        return x->name;
    default:
        return NULL;
    }
}

/* --- names --- */

static Value predeclared(Elab *e, Str name, bool *found)
{
    *found = true;
    if (!strcmp(name, "true") || !strcmp(name, "false"))
        return value_bool(name[0] == 't');
    if (!strcmp(name, "pi"))
        return value_real(3.14159265358979323846);
    if (!strcmp(name, "training") && e->run)
        return value_bool(e->run->entry->kind == ENTRY_TRAIN);
    *found = false;
    return value_error();
}

static void unknown_variable(Elab *e, const Expr *x, const char *name)
{
    Candidates names = {0};
    for (Scope *s = e->scope; s; s = s->up)
        for (int i = 0; i < s->bindings.n; i++)
            vec_push(e->arena, &names, s->bindings.at[i].name);
    add_decl_names(e->module, &names, "", e->arena);
    unknown_name(e, CODE_NAME, x->span, arena_printf(e->arena, "'%s' is not declared", name), name,
                 &names);
}

static Value declared_value(Elab *e, const Expr *x, Decl *d)
{
    d->used = true;
    switch (d->item->kind) {
    case ITEM_CONST:
    case ITEM_OPTION:
        return decl_value(e, d, x->span);
    case ITEM_INSTANCE:
        return instance_value(e, d);
    default:
        elab_error(e, CODE_TYPE, x->span, "'%s' is %s, not a value", d->name,
                   a_word(e, d->item->kind));
        return value_error();
    }
}

static Value bound_value(Elab *e, const Binding *b)
{
    if (b->param)
        return value_node(param_read(e, b->param));
    return b->value;
}

static Value eval_name(Elab *e, const Expr *x)
{
    bool found;
    const Binding *b = find_binding(e, x->name);
    if (b)
        return bound_value(e, b);
    Value v = predeclared(e, x->name, &found);
    if (found)
        return v;
    Decl *d = find_decl(e->module, x->name);
    if (d)
        return declared_value(e, x, d);
    if (!strcmp(x->name, "training"))
        elab_error(e, CODE_VALUE, x->span, "'training' has a value only in bodies");
    else
        unknown_variable(e, x, x->name);
    return value_error();
}

static Value eval_member(Elab *e, const Expr *x)
{
    Str qualified = qualified_text(e, x);
    Str first = qualified ? intern_n(e->names, qualified, strcspn(qualified, ".")) : NULL;
    if (qualified && !find_binding(e, first)) {
        Decl *d = find_decl(e->module, qualified);
        if (d)
            return declared_value(e, x, d);
        bool is_prefix = false;
        for (int i = 0; i < e->module->imports.n; i++)
            is_prefix |= e->module->imports.at[i].prefix == first;
        if (is_prefix && x->a->kind == EXPR_NAME) {
            unknown_variable(e, x, qualified);
            return value_error();
        }
    }
    Value v = eval(e, x->a);
    if (v.kind == VAL_LAYER)
        return layer_member(e, v.layer, x->name, x->name_span);
    if (!is_error(v))
        elab_error(e, CODE_TYPE, x->name_span, "%s has no member '%s'", value_text(e, &v), x->name);
    return value_error();
}

/* --- operators --- */

/* Brings two operands to one kind: an integer that meets a real becomes real, a bool a number. */
void unify(Node **a, Node **b)
{
    if (!(*a)->type || !(*b)->type)
        return;
    DType p = (*a)->type->dtype, q = (*b)->type->dtype;
    if (is_real(p) && !is_real(q))
        *b = cast_to(*b, p);
    else if (is_real(q) && !is_real(p))
        *a = cast_to(*a, q);
    else if (p == DT_BOOL && q != DT_BOOL)
        *a = cast_to(*a, q);
    else if (q == DT_BOOL && p != DT_BOOL)
        *b = cast_to(*b, p);
}

static Node *modulo(Elab *e, const Expr *x)
{
    elab_error(e, CODE_UNSUPPORTED, x->operator_span, "not supported yet: %% of tensors");
    return error_node();
}

static Node *tensor_operator(Elab *e, const Expr *x, Node *a, Node *b)
{
    if (!a->type || !b->type)
        return error_node();
    Op op = OP_ADD;
    switch (x->operator) {
    case OPERATOR_MATMUL:
        return matmul(to_real(a), to_real(b), 0, 0);
    case OPERATOR_MOD:
        return modulo(e, x);
    case OPERATOR_AND:
    case OPERATOR_OR:
        return build2(x->operator== OPERATOR_AND ? OP_AND : OP_OR, a, b);
    case OPERATOR_DIV:
        a = to_real(a);
        b = to_real(b);
        op = OP_DIV;
        break;
    case OPERATOR_ADD:
        break;
    case OPERATOR_SUB:
        op = OP_SUB;
        break;
    case OPERATOR_MUL:
        op = OP_MUL;
        break;
    case OPERATOR_EQ:
        op = OP_EQ;
        break;
    case OPERATOR_NE:
        op = OP_NE;
        break;
    case OPERATOR_LT:
        op = OP_LT;
        break;
    case OPERATOR_LE:
        op = OP_LE;
        break;
    case OPERATOR_GT:
        op = OP_GT;
        break;
    case OPERATOR_GE:
        op = OP_GE;
        break;
    case OPERATOR_NONE:
    case OPERATOR_NEG:
    case OPERATOR_NOT:
        return error_node();
    }
    unify(&a, &b);
    return build2(op, a, b);
}

void note_operands(Elab *e, int errors, Node *const *in, int n)
{
    Diag *d = e->diags->last;
    if (e->diags->errors == errors || !d || (d->code != CODE_SHAPE && d->code != CODE_TYPE))
        return;
    for (int i = 0; i < n; i++) {
        const Node *x = in[i];
        if (x->type && x->op == OP_READ)
            note_at(d, x->param->span, "'%s' is declared as %s here", x->param->local,
                    tensor_text(e, x));
        else if (x->type && x->op == OP_INPUT)
            note_at(d, x->span, "'%s' is declared as %s here", x->name, tensor_text(e, x));
        else if (x->type && x->name)
            note_at(d, x->span, "'%s' is %s, from here", x->name, tensor_text(e, x));
    }
}

/* Does the tensor take a literal as an integer of its own type? */
static DType peer_type(Value number, const Node *tensor)
{
    if (!tensor->type)
        return DT_FLOAT;
    if (number.kind == VAL_INT || is_real(tensor->type->dtype) || number.kind == VAL_BOOL)
        return tensor->type->dtype;
    return DT_FLOAT;
}

static Value eval_binary(Elab *e, const Expr *x)
{
    Value a = eval(e, x->a);
    if (a.kind == VAL_BOOL && (x->operator== OPERATOR_AND || x->operator== OPERATOR_OR) &&
        (a.i != 0) == (x->operator== OPERATOR_OR))
        return a;
    Value b = eval(e, x->b);
    if (is_error(a) || is_error(b))
        return value_error();
    if (a.kind != VAL_TENSOR && b.kind != VAL_TENSOR)
        return fold_binary(e, x, a, b);
    set_span(e, x->span);
    if (b.kind == VAL_DIM && x->operator== OPERATOR_DIV)
        return value_node(divide_by_count(to_real(a.node), &b.dim, 1));
    Node *left = a.kind == VAL_TENSOR ? a.node : as_tensor(e, a, x->a->span, peer_type(a, b.node));
    Node *right = b.kind == VAL_TENSOR ? b.node : as_tensor(e, b, x->b->span, peer_type(b, a.node));
    set_span(e, x->span);
    int errors = e->diags->errors;
    Node *result = tensor_operator(e, x, left, right), *operands[] = {left, right};
    note_operands(e, errors, operands, 2);
    return value_node(result);
}

static Value eval_unary(Elab *e, const Expr *x)
{
    Value a = eval(e, x->a);
    if (a.kind != VAL_TENSOR)
        return fold_unary(e, x, a);
    set_span(e, x->span);
    if (x->operator== OPERATOR_NOT)
        return value_node(build1(OP_NOT, a.node));
    return value_node(build1(OP_NEG, a.node->type->dtype == DT_BOOL ? to_real(a.node) : a.node));
}

/* --- indices --- */

static Value eval_items(Elab *e, const Expr *x, ValueKind kind)
{
    Value v = {.kind = kind, .n = x->items.n};
    v.at = new_array(e->arena, Value, v.n + 1);
    bool wrong = false;
    for (int i = 0; i < v.n; i++) {
        v.at[i] = eval(e, x->items.at[i]);
        wrong |= is_error(v.at[i]);
    }
    return wrong ? value_error() : v;
}

static bool index_number(Elab *e, const Index *index, int n, int *out)
{
    int64_t i;
    if (index->is_slice || !index->begin) {
        elab_error(e, CODE_TYPE, index->span, "one index is needed here");
        return false;
    }
    Value v = eval(e, index->begin);
    if (!want_int(e, v, index->span, "an index", &i))
        return false;
    if (i < 0 || i >= n) {
        elab_error(e, CODE_VALUE, index->span, "index %lld is outside 0 .. %d", (long long)i,
                   n - 1);
        return false;
    }
    *out = (int)i;
    return true;
}

/* One end of a slice, negative ones counted from the end; the fallback when it is left out. */
static const Dim *slice_end(Elab *e, const Expr *x, const Dim *size, const Dim *fallback)
{
    int64_t i, n;
    if (!x)
        return fallback;
    const Dim *d = as_dim(e, eval(e, x), x->span, "an index");
    if (d && dim_is_int(d, &i) && i < 0)
        d = dim_add(e->types, d, size);
    if (d && dim_is_int(d, &i) && (i < 0 || (dim_is_int(size, &n) && i > n))) {
        elab_error(e, CODE_SHAPE, x->span, "index %lld is outside a dimension of %s", (long long)i,
                   dim_text(e->types, size, e->arena));
        return NULL;
    }
    return d;
}

/* The smallest value within the bounds of the symbols. */
int64_t dim_least(Elab *e, const Dim *d)
{
    const Dim *negative = d ? dim_sub(e->types, dim_int(e->types, 0), d) : NULL;
    return negative ? -dim_max(e->types, negative) : -1;
}

static Node *index_axis(Elab *e, Node *x, const Index *index, int axis, bool *drops)
{
    TypeTable *t = e->types;
    const Dim *size = x->type->dim[axis], *begin, *end;
    int64_t n, last;
    *drops = !index->is_slice;
    begin = slice_end(e, index->begin, size, dim_int(t, 0));
    if (!begin)
        return error_node();
    end = index->is_slice ? slice_end(e, index->end, size, size) : dim_add(t, begin, dim_int(t, 1));
    if (!end)
        return error_node();
    if (*drops && dim_is_int(end, &last) && dim_is_int(size, &n) && last > n) {
        elab_error(e, CODE_SHAPE, index->span, "index %lld is outside a dimension of %lld",
                   (long long)last - 1, (long long)n);
        return error_node();
    }
    if (dim_least(e, dim_sub(t, end, begin)) < 1) {
        elab_error(e, CODE_SHAPE, index->span, "this slice %s empty",
                   dim_is_int(dim_sub(t, end, begin), &n) ? "is" : "may be");
        return error_node();
    }
    if (dim_least(e, begin) < 0 || dim_least(e, dim_sub(t, size, end)) < 0) {
        elab_error(e, CODE_SHAPE, index->span, "this may be outside a dimension of %s",
                   dim_text(t, size, e->arena));
        return error_node();
    }
    set_span(e, index->span);
    return begin == dim_int(t, 0) && end == size ? x : slice(x, axis, begin, end);
}

static Value index_tensor(Elab *e, const Expr *x, Node *n)
{
    const Dim *kept[MAX_RANK];
    int count = 0;
    if (x->indices.n > n->type->rank) {
        elab_error(e, CODE_SHAPE, x->span, "%d indices into %s", x->indices.n, tensor_text(e, n));
        return value_error();
    }
    Node *r = n;
    for (int axis = 0; axis < n->type->rank; axis++) {
        bool drops = false;
        if (axis < x->indices.n)
            r = index_axis(e, r, &x->indices.at[axis], axis, &drops);
        if (!r->type)
            return value_error();
        if (!drops)
            kept[count++] = r->type->dim[axis];
    }
    set_span(e, x->span);
    return value_node(count < n->type->rank ? reshape(r, kept, count) : r);
}

static Value eval_index(Elab *e, const Expr *x)
{
    Value v = eval(e, x->a);
    int i;
    switch (v.kind) {
    case VAL_ERROR:
        return v;
    case VAL_TENSOR:
        return index_tensor(e, x, v.node);
    case VAL_TUPLE:
    case VAL_LIST:
    case VAL_LAYERS:
        if (x->indices.n != 1 || !index_number(e, &x->indices.at[0], v.n, &i))
            return value_error();
        if (v.kind == VAL_LAYERS)
            return (Value){.kind = VAL_LAYER, .layer = v.layers[i]};
        return v.at[i];
    case VAL_DIMS:
        if (x->indices.n != 1 || !index_number(e, &x->indices.at[0], v.n, &i))
            return value_error();
        return value_dim(v.dims[i]);
    default:
        elab_error(e, CODE_TYPE, x->span, "%s cannot be indexed", value_text(e, &v));
        return value_error();
    }
}

/* --- all of them --- */

static Value eval_pipe(Elab *e, const Expr *x)
{
    Value left = eval(e, x->a);
    const Expr *callee = x->b->kind == EXPR_CALL ? x->b->a : x->b;
    const Args *args = x->b->kind == EXPR_CALL ? &x->b->args : NULL;
    CallSite c = {.callee = callee,
                  .args = args,
                  .piped = &left,
                  .piped_span = x->a->kind == EXPR_PIPE ? x->a->b->span : x->a->span,
                  .giver = giver_of(x->a),
                  .span = x->b->span};
    return call_expr(e, &c);
}

static Value eval_call(Elab *e, const Expr *x)
{
    CallSite c = {.callee = x->a, .args = &x->args, .span = x->span};
    return call_expr(e, &c);
}

static Value eval_kind(Elab *e, const Expr *x)
{
    switch (x->kind) {
    case EXPR_INT:
        return value_int(x->integer);
    case EXPR_REAL:
        return value_real(x->real);
    case EXPR_STRING:
        return value_string(intern(e->names, x->text));
    case EXPR_NAME:
        return eval_name(e, x);
    case EXPR_SCALAR:
        elab_error(e, CODE_TYPE, x->span, "'%s' is a type; write %s(…) to convert a value",
                   scalar_spelling(x->scalar), scalar_spelling(x->scalar));
        return value_error();
    case EXPR_CALL:
        return eval_call(e, x);
    case EXPR_INDEX:
        return eval_index(e, x);
    case EXPR_MEMBER:
        return eval_member(e, x);
    case EXPR_UNARY:
        return eval_unary(e, x);
    case EXPR_BINARY:
        return eval_binary(e, x);
    case EXPR_PIPE:
        return eval_pipe(e, x);
    case EXPR_TUPLE:
        return eval_items(e, x, VAL_TUPLE);
    case EXPR_LIST:
        return eval_items(e, x, VAL_LIST);
    }
    return value_error();
}

Value eval(Elab *e, const Expr *x)
{
    if (e->stopped)
        return value_error();
    Span former = e->context.span;
    set_span(e, x->span);
    Value v = eval_kind(e, x);
    set_span(e, former);
    return v;
}
