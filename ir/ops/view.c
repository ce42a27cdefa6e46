/* Views and copies: the same elements in another order, a part of them, or several one after the
 * other. */
#include "ir/program.h"
#include "ir/shape.h"

const Type *shape_reshape(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)nin;
    TypeTable *t = types_now();
    const Type *type = type_of(in[0]->type->dtype, attrs->at[0].dims.n, attrs->at[0].dims.at);
    const Dim *count = type_count(t, type);
    if (!count || count != type_count(t, in[0]->type))
        return shape_error(CODE_SHAPE, "%s cannot be reshaped to %s: other number of elements",
                           node_type_text(in[0]), type_text(t, type, graph_now()->arena));
    return type;
}

Node *grad_reshape(Node *n, Node *g, int k)
{
    (void)k;
    return reshape(g, n->in[0]->type->dim, n->in[0]->type->rank);
}

const Type *shape_permute(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)nin;
    const Attr *axes = &attrs->at[0];
    const Dim *dim[MAX_RANK];
    int seen = 0, rank = in[0]->type->rank;
    for (int i = 0; i < axes->ints.n && i < MAX_RANK; i++)
        if (axes->ints.at[i] >= 0 && axes->ints.at[i] < rank) {
            seen |= 1 << axes->ints.at[i];
            dim[i] = in[0]->type->dim[axes->ints.at[i]];
        }
    if (axes->ints.n != rank || seen != (1 << rank) - 1)
        return shape_error(CODE_SHAPE, "permute needs each of the %d axes of %s once", rank,
                           node_type_text(in[0]));
    return type_of(in[0]->type->dtype, rank, dim);
}

Node *grad_permute(Node *n, Node *g, int k)
{
    (void)k;
    const Attr *axes = &n->attrs->at[0];
    int64_t back[MAX_RANK];
    for (int i = 0; i < axes->ints.n; i++)
        back[axes->ints.at[i]] = i;
    return permute(g, back, axes->ints.n);
}

const Type *shape_slice(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)nin;
    TypeTable *t = types_now();
    int64_t axis = attrs->at[0].i, low, spare;
    const Dim *dim[MAX_RANK];
    if (attrs->at[1].dims.n != 2)
        return shape_error(CODE_SHAPE, "slice needs range = [begin, end)");
    const Dim *begin = attrs->at[1].dims.at[0], *end = attrs->at[1].dims.at[1];
    if (axis < 0 || axis >= in[0]->type->rank)
        return shape_error(CODE_SHAPE, "axis %lld is not one of %s", (long long)axis,
                           node_type_text(in[0]));
    const Dim *size = dim_sub(t, end, begin), *left = dim_sub(t, in[0]->type->dim[axis], end);
    if (!size || !left || (dim_is_int(begin, &low) && low < 0) ||
        (dim_is_int(left, &spare) && spare < 0) || (dim_is_int(size, &spare) && spare < 1))
        return shape_error(CODE_SHAPE, "the slice %s:%s is not inside axis %lld of %s",
                           dim_text(t, begin, graph_now()->arena),
                           dim_text(t, end, graph_now()->arena), (long long)axis,
                           node_type_text(in[0]));
    for (int i = 0; i < in[0]->type->rank; i++)
        dim[i] = i == axis ? size : in[0]->type->dim[i];
    return type_of(in[0]->type->dtype, in[0]->type->rank, dim);
}

Node *grad_slice(Node *n, Node *g, int k)
{
    (void)k;
    const Attr *range = &n->attrs->at[1];
    const Dim *size = n->in[0]->type->dim[n->attrs->at[0].i];
    const Dim *around[] = {range->dims.at[0], dim_sub(types_now(), size, range->dims.at[1])};
    Attr attrs[] = {n->attrs->at[0], attr_dims(around, 2)};
    return build(OP_PAD, &g, 1, attrs_make(OP_PAD, attrs, 2));
}

const Type *shape_pad(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)nin;
    TypeTable *t = types_now();
    const Dim *dim[MAX_RANK];
    for (int i = 0; i < in[0]->type->rank; i++)
        dim[i] = in[0]->type->dim[i];
    int64_t axis = attrs->at[0].i, zeros;
    if (axis < 0 || axis >= in[0]->type->rank || attrs->at[1].dims.n != 2)
        return shape_error(CODE_SHAPE, "pad_zero cannot pad axis %lld of %s", (long long)axis,
                           node_type_text(in[0]));
    for (int i = 0; i < 2; i++) {
        if (dim_is_int(attrs->at[1].dims.at[i], &zeros) && zeros < 0)
            return shape_error(CODE_SHAPE, "pad_zero cannot add %lld elements", (long long)zeros);
        dim[axis] = dim_add(t, dim[axis], attrs->at[1].dims.at[i]);
    }
    if (!dim[axis])
        return shape_error(CODE_SHAPE, "the result of pad_zero is too large");
    return type_of(in[0]->type->dtype, in[0]->type->rank, dim);
}

Node *grad_pad(Node *n, Node *g, int k)
{
    (void)k;
    const Dim *before = n->attrs->at[1].dims.at[0];
    int axis = (int)n->attrs->at[0].i;
    return slice(g, axis, before, dim_add(types_now(), before, n->in[0]->type->dim[axis]));
}

const Type *shape_expand(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)nin;
    const Attr *shape = &attrs->at[0];
    const Type *x = in[0]->type;
    int shift = shape->dims.n - x->rank, fits = shift >= 0;
    for (int i = 0; fits && i < x->rank; i++)
        fits = x->dim[i] == shape->dims.at[i + shift] || x->dim[i] == dim_int(types_now(), 1);
    const Type *type = type_of(x->dtype, shape->dims.n, shape->dims.at);
    if (!fits)
        return shape_error(CODE_SHAPE, "%s cannot be expanded to %s", node_type_text(in[0]),
                           type_text(types_now(), type, graph_now()->arena));
    return type;
}

Node *grad_expand(Node *n, Node *g, int k)
{
    (void)k;
    return unbroadcast(g, n->in[0]->type);
}

const Type *shape_concat(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op;
    const Dim *dim[MAX_RANK];
    int64_t axis = attrs->at[0].i;
    const Type *first = in[0]->type;
    DType dtype = first->dtype;
    if (axis < 0 || axis >= first->rank)
        return shape_error(CODE_SHAPE, "axis %lld is not one of %s", (long long)axis,
                           node_type_text(in[0]));
    for (int i = 0; i < first->rank; i++)
        dim[i] = first->dim[i];
    for (int k = 1; k < nin; k++) {
        const Type *x = in[k]->type;
        int same = x->rank == first->rank && is_real(x->dtype) == is_real(first->dtype);
        for (int i = 0; same && i < first->rank; i++)
            same = i == axis || x->dim[i] == first->dim[i];
        if (!same)
            return shape_error(CODE_SHAPE, "concat along axis %lld cannot join %s and %s",
                               (long long)axis, node_type_text(in[0]), node_type_text(in[k]));
        dim[axis] = dim_add(types_now(), dim[axis], x->dim[axis]);
        if (!dim[axis])
            return shape_error(CODE_SHAPE, "the result of concat is too large");
        dtype = dtype_promote(dtype, x->dtype);
    }
    return type_of(dtype, first->rank, dim);
}

Node *grad_concat(Node *n, Node *g, int k)
{
    TypeTable *t = types_now();
    int axis = (int)n->attrs->at[0].i;
    const Dim *begin = dim_int(t, 0);
    for (int i = 0; i < k; i++)
        begin = dim_add(t, begin, n->in[i]->type->dim[axis]);
    return slice(g, axis, begin, dim_add(t, begin, n->in[k]->type->dim[axis]));
}
