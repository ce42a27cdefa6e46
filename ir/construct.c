/* Constructors that passes, the elaborator and gradient cells share. */
#include "ir/program.h"
#include "ir/shape.h"
#include <string.h>

Node *build1(Op op, Node *a)
{
    Attr attrs[MAX_ATTRS];
    const OpInfo *info = op_info(op);
    for (int i = 0; i < info->attrs; i++)
        attrs[i] = attr_real(info->attr[i].fallback);
    return build(op, &a, 1, attrs_make(op, attrs, info->attrs));
}

Node *build2(Op op, Node *a, Node *b)
{
    Node *in[] = {a, b};
    Attr attrs[MAX_ATTRS];
    const OpInfo *info = op_info(op);
    for (int i = 0; i < info->attrs; i++)
        attrs[i] = attr_real(info->attr[i].fallback);
    return build(op, in, 2, attrs_make(op, attrs, info->attrs));
}

Node *build3(Op op, Node *a, Node *b, Node *c)
{
    Node *in[] = {a, b, c};
    return build(op, in, 3, NULL);
}

/* The context with another name for the values that are made. */
static Context with_name(Str name)
{
    Context former = graph_context((Context){.name = NULL}), named = former;
    named.name = name;
    graph_context(named);
    return former;
}

/* A constant of a type holds what that type can hold. It has no name: it is written as a number. */
Node *constant(double value, DType dtype)
{
    Context former = with_name(NULL);
    Attr attr = attr_real(dtype == DT_FLOAT ? value : dtype_round(dtype, value));
    Node *n = build_source(OP_CONST, type_scalar(types_now(), dtype),
                           attrs_make(OP_CONST, &attr, 1), NULL, 0);
    graph_context(former);
    return n;
}

Node *cast_to(Node *x, DType to)
{
    Attr attrs[] = {attr_dtype(to), attr_none()};
    return build(OP_CAST, &x, 1, attrs_make(OP_CAST, attrs, 2));
}

Node *cast_because(Node *x, DType to, const char *why)
{
    Attr attrs[] = {attr_dtype(to), attr_str(intern(graph_now()->program->names, why))};
    Context former = with_name(x->name);
    Node *n = build(OP_CAST, &x, 1, attrs_make(OP_CAST, attrs, 2));
    graph_context(former);
    return n;
}

static Node *reduction(Op op, Node *x, const int64_t *axes, int n, int keep, Attr last)
{
    Attr attrs[] = {attr_ints(axes, n), attr_bool(keep), last};
    return build(op, &x, 1, attrs_make(op, attrs, op_info(op)->attrs));
}

Node *reduce(Op op, Node *x, const int64_t *axes, int n, int keep)
{
    return reduction(op, x, axes, n, keep, attr_none());
}

Node *sum_to(Node *x, const int64_t *axes, int n, int keep, DType to)
{
    return reduction(OP_SUM, x, axes, n, keep, attr_dtype(to));
}

Node *divide_by_count(Node *x, const Dim *const *dims, int n)
{
    Attr attr = attr_dims(dims, n);
    return build(OP_DIVN, &x, 1, attrs_make(OP_DIVN, &attr, 1));
}

/* Is x its operand with the last two axes exchanged? */
static int is_transpose(const Node *x)
{
    if (x->op != OP_PERMUTE)
        return 0;
    const Attr *axes = &x->attrs->at[0];
    int n = axes->ints.n;
    for (int i = 0; i < n - 2; i++)
        if (axes->ints.at[i] != i)
            return 0;
    return n >= 2 && axes->ints.at[n - 1] == n - 2;
}

static Node *product(Node *a, Node *b, int ta, int tb)
{
    Node *in[] = {a, b};
    Attr attrs[] = {attr_bool(ta), attr_bool(tb)};
    return build(OP_MATMUL, in, 2, attrs_make(OP_MATMUL, attrs, 2));
}

/* The leading dimensions of x, n of them counted from the end of its matrix, or 1 where it has
 * none. */
static const Dim *leading(const Node *x, int i, int n)
{
    int at = x->type->rank - 2 - n + i;
    return at < 0 ? dim_int(types_now(), 1) : x->type->dim[at];
}

/* Expands the leading dimensions of two stacks to common ones, where one of them is 1 or missing.
 * What does not fit is left for the type rule to tell. */
static void share_stacks(Node **a, Node **b)
{
    const Dim *dims[2][MAX_RANK], *one = dim_int(types_now(), 1);
    Node *x[] = {*a, *b};
    int n = (x[0]->type->rank > x[1]->type->rank ? x[0] : x[1])->type->rank - 2;
    for (int i = 0; i < n; i++) {
        const Dim *left = leading(x[0], i, n), *right = leading(x[1], i, n);
        if (left != right && left != one && right != one)
            return;
        dims[0][i] = dims[1][i] = left == one ? right : left;
    }
    for (int k = 0; k < 2; k++) {
        const Dim *const *matrix = x[k]->type->dim + x[k]->type->rank - 2;
        dims[k][n] = matrix[0];
        dims[k][n + 1] = matrix[1];
        x[k] = expand_to(x[k], dims[k], n + 2);
    }
    *a = x[0];
    *b = x[1];
}

/* Products of stacks: a stack times one matrix is one tall product; otherwise leading dimensions
 * broadcast as in NumPy. Vectors get a dimension of 1 for the time of the product. */
Node *matmul(Node *a, Node *b, int ta, int tb)
{
    TypeTable *t = types_now();
    const Dim *dims[MAX_RANK + 1];
    if (!a->type || !b->type)
        return error_node();
    int left = a->type->rank, right = b->type->rank;
    if (!left || !right) {
        shape_error(CODE_SHAPE, "matmul needs tensors, found %s and %s", node_type_text(a),
                    node_type_text(b));
        return error_node();
    }
    if (left == 1) {
        dims[0] = dim_int(t, 1);
        dims[1] = a->type->dim[0];
        a = reshape(a, dims, 2);
        ta = 0;
    }
    if (right == 1) {
        dims[0] = b->type->dim[0];
        dims[1] = dim_int(t, 1);
        b = reshape(b, dims, 2);
        tb = 0;
    }
    if (is_transpose(a)) {
        a = a->in[0];
        ta = !ta;
    }
    if (is_transpose(b)) {
        b = b->in[0];
        tb = !tb;
    }
    int rank = a->type->rank;
    Node *r;
    if (b->type->rank == 2 && rank > 2 && !ta) {
        dims[0] = dim_int(t, 1);
        for (int i = 0; i < rank - 1; i++)
            dims[0] = dim_mul(t, dims[0], a->type->dim[i]);
        dims[1] = a->type->dim[rank - 1];
        r = product(reshape(a, dims, 2), b, 0, tb);
        if (!r->type)
            return r;
        memcpy(dims, a->type->dim, sizeof *dims * (size_t)(rank - 1));
        dims[rank - 1] = r->type->dim[1];
        r = reshape(r, dims, rank);
    } else {
        share_stacks(&a, &b);
        r = product(a, b, ta, tb);
    }
    if (!r->type || (left > 1 && right > 1))
        return r;
    int kept = 0;
    for (int i = 0; i < r->type->rank; i++) {
        int from_end = r->type->rank - 1 - i;
        if (!(from_end == 0 && right == 1) && !(from_end == 1 && left == 1))
            dims[kept++] = r->type->dim[i];
    }
    return reshape(r, dims, kept);
}

Node *reshape(Node *x, const Dim *const *dims, int rank)
{
    Attr attr = attr_dims(dims, rank);
    return build(OP_RESHAPE, &x, 1, attrs_make(OP_RESHAPE, &attr, 1));
}

Node *permute(Node *x, const int64_t *axes, int n)
{
    Attr attr = attr_ints(axes, n);
    return build(OP_PERMUTE, &x, 1, attrs_make(OP_PERMUTE, &attr, 1));
}

Node *slice(Node *x, int axis, const Dim *begin, const Dim *end)
{
    const Dim *range[] = {begin, end};
    Attr attrs[] = {attr_int(axis), attr_dims(range, 2)};
    return build(OP_SLICE, &x, 1, attrs_make(OP_SLICE, attrs, 2));
}

Node *expand_to(Node *x, const Dim *const *dims, int rank)
{
    Attr attr = attr_dims(dims, rank);
    return build(OP_EXPAND, &x, 1, attrs_make(OP_EXPAND, &attr, 1));
}

Node *iota(const Dim *const *dims, int rank, int axis)
{
    Attr attrs[] = {attr_dims(dims, rank), attr_int(axis)};
    return build(OP_IOTA, NULL, 0, attrs_make(OP_IOTA, attrs, 2));
}

Node *softmax(Op op, Node *x, int axis)
{
    Attr attr = attr_int(axis);
    return build(op, &x, 1, attrs_make(op, &attr, 1));
}

/* Sums over the axes along which an operand of the given type was broadcast. */
Node *unbroadcast(Node *g, const Type *type)
{
    if (!g->type || same_shape(g->type, type))
        return g;
    int64_t axes[MAX_RANK];
    int n = 0, shift = g->type->rank - type->rank;
    for (int i = 0; i < g->type->rank; i++)
        if (i < shift || type->dim[i - shift] != g->type->dim[i])
            axes[n++] = i;
    return reshape(sum_to(g, axes, n, 1, g->type->dtype), type->dim, type->rank);
}
