/* Reductions over axes. `axes` are sorted and not negative; without `keep` they go. */
#include "ir/program.h"
#include "ir/shape.h"

static int has_axis(const Attr *axes, int axis)
{
    for (int i = 0; i < axes->ints.n; i++)
        if (axes->ints.at[i] == axis)
            return 1;
    return 0;
}

const Type *shape_reduce(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)nin;
    const Type *x = in[0]->type;
    const Dim *dim[MAX_RANK];
    int rank = 0;
    if (!is_real(x->dtype))
        return shape_error(CODE_TYPE, "'%s' needs real numbers, found %s; write float(…)",
                           op_info(op)->spelling, node_type_text(in[0]));
    for (int i = 0; i < attrs->at[0].ints.n; i++)
        if (attrs->at[0].ints.at[i] < 0 || attrs->at[0].ints.at[i] >= x->rank ||
            (i > 0 && attrs->at[0].ints.at[i] <= attrs->at[0].ints.at[i - 1]))
            return shape_error(CODE_SHAPE, "axis %lld is not one of %s, or not in order",
                               (long long)attrs->at[0].ints.at[i], node_type_text(in[0]));
    for (int i = 0; i < x->rank; i++) {
        if (!has_axis(&attrs->at[0], i))
            dim[rank++] = x->dim[i];
        else if (attrs->at[1].i)
            dim[rank++] = dim_int(types_now(), 1);
    }
    DType to = x->dtype;
    if (op == OP_SUM && attrs->at[2].kind == ATTR_DTYPE)
        to = attrs->at[2].dtype;
    if (!is_real(to))
        return shape_error(CODE_TYPE, "a sum cannot be %s", dtype_info[to].name);
    return type_of(to, rank, dim);
}

/* A result of the reduction with its axes as dimensions of 1, so that it broadcasts against the
 * operand. */
static Node *with_kept_axes(Node *n, Node *value)
{
    const Type *x = n->in[0]->type;
    const Dim *dim[MAX_RANK];
    for (int i = 0; i < x->rank; i++)
        dim[i] = has_axis(&n->attrs->at[0], i) ? dim_int(types_now(), 1) : x->dim[i];
    return reshape(value, dim, x->rank);
}

/* The dimensions that a reduction takes away. */
static Node *divide_by_axes(Node *n, Node *value)
{
    const Dim *dims[MAX_RANK];
    int count = n->attrs->at[0].ints.n;
    for (int i = 0; i < count; i++)
        dims[i] = n->in[0]->type->dim[n->attrs->at[0].ints.at[i]];
    return divide_by_count(value, dims, count);
}

/* SUM and MEAN: g for every element. MAX and MIN: g shared by the elements that are equal to the
 * result. */
Node *grad_reduce(Node *n, Node *g, int k)
{
    (void)k;
    Node *a = n->in[0];
    g = cast_because(with_kept_axes(n, g), a->type->dtype, "gradient");
    if (n->op == OP_MEAN)
        g = divide_by_axes(n, g);
    if (n->op == OP_SUM || n->op == OP_MEAN)
        return expand_to(g, a->type->dim, a->type->rank);
    Node *hit = build2(OP_EQ, a, with_kept_axes(n, n));
    Node *count = sum_to(cast_because(hit, DT_F32, "gradient"), n->attrs->at[0].ints.at,
                         n->attrs->at[0].ints.n, 1, DT_F32);
    Node *share = build2(OP_DIV, cast_because(g, DT_F32, "gradient"), count);
    share = cast_because(share, a->type->dtype, "gradient");
    return build3(OP_WHERE, hit, share, constant(0, a->type->dtype));
}

const Type *shape_argmax(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)nin;
    const Type *x = in[0]->type;
    const Dim *dim[MAX_RANK];
    int rank = 0;
    if (attrs->at[0].i < 0 || attrs->at[0].i >= x->rank)
        return shape_error(CODE_SHAPE, "axis %lld is not one of %s", (long long)attrs->at[0].i,
                           node_type_text(in[0]));
    for (int i = 0; i < x->rank; i++)
        if (i != attrs->at[0].i)
            dim[rank++] = x->dim[i];
    return type_of(DT_I32, rank, dim);
}

/* mean = sum in f32 / count, rounded once. Both nodes are written so that a kernel sees one sum. */
Node *expand_mean(Node *old, Node **in)
{
    Node *sum = sum_to(in[0], old->attrs->at[0].ints.at, old->attrs->at[0].ints.n,
                       (int)old->attrs->at[1].i, DT_F32);
    return cast_because(divide_by_axes(old, sum), in[0]->type->dtype, "accumulator");
}

/* var = sum((x - mean)^2) / (count - correction), all in f32. */
Node *expand_var(Node *old, Node **in)
{
    TypeTable *t = types_now();
    const Attr *axes = &old->attrs->at[0];
    Node *x = cast_because(in[0], DT_F32, "accumulator");
    Node *mean = divide_by_axes(old, sum_to(x, axes->ints.at, axes->ints.n, 1, DT_F32));
    Node *d = build2(OP_SUB, x, mean);
    Node *sum =
        sum_to(build1(OP_SQUARE, d), axes->ints.at, axes->ints.n, (int)old->attrs->at[1].i, DT_F32);
    const Dim *count = dim_int(t, 1);
    for (int i = 0; i < axes->ints.n; i++)
        count = dim_mul(t, count, in[0]->type->dim[axes->ints.at[i]]);
    count = dim_sub(t, count, dim_int(t, old->attrs->at[2].i));
    return cast_because(divide_by_count(sum, &count, 1), in[0]->type->dtype, "accumulator");
}

/* Splits a sum, max or min whose axes are not one run: the innermost run first, in f32. */
Node *split_reduction(Node *old, Node **in)
{
    const Attr *axes = &old->attrs->at[0];
    int n = axes->ints.n, run = n - 1;
    while (run > 0 && axes->ints.at[run - 1] == axes->ints.at[run] - 1)
        run--;
    if (n == 0 || run == 0)
        return NULL;
    const Dim *const *dim = old->type->dim;
    int rank = old->type->rank;
    Node *x = in[0];
    while (n > 0) {
        x = old->op == OP_SUM
                ? sum_to(x, axes->ints.at + run, n - run, 1, run ? DT_F32 : old->type->dtype)
                : reduce(old->op, x, axes->ints.at + run, n - run, 1);
        n = run;
        run = n - 1;
        while (run > 0 && axes->ints.at[run - 1] == axes->ints.at[run] - 1)
            run--;
    }
    return reshape(x, dim, rank);
}
