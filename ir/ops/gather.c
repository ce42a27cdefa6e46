/* Rows by index: embeddings, and the sum that is their gradient. */
#include "ir/program.h"
#include "ir/shape.h"

const Type *shape_gather(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)nin, (void)attrs;
    const Type *a = in[0]->type, *b = in[1]->type;
    const Dim *dim[2 * MAX_RANK];
    int rank = b->rank + a->rank - 1;
    if (!a->rank || rank > MAX_RANK || dtype_info[b->dtype].kind != KIND_INT)
        return shape_error(CODE_TYPE, "gather takes rows of a tensor by integers, found %s and %s",
                           node_type_text(in[0]), node_type_text(in[1]));
    for (int i = 0; i < b->rank; i++)
        dim[i] = b->dim[i];
    for (int i = 1; i < a->rank; i++)
        dim[b->rank + i - 1] = a->dim[i];
    return type_of(a->dtype, rank, dim);
}

Node *grad_gather(Node *n, Node *g, int k)
{
    if (k == 1)
        return NULL;
    Node *in[] = {g, n->in[1]};
    Attr rows = attr_dims(&n->in[0]->type->dim[0], 1);
    return build(OP_SCATTER, in, 2, attrs_make(OP_SCATTER, &rows, 1));
}

const Type *shape_scatter(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)nin;
    const Type *g = in[0]->type, *b = in[1]->type;
    const Dim *dim[MAX_RANK];
    int fits = attrs->at[0].dims.n == 1 && g->rank >= b->rank && g->rank - b->rank < MAX_RANK &&
               dtype_info[b->dtype].kind == KIND_INT;
    for (int i = 0; fits && i < b->rank; i++)
        fits = g->dim[i] == b->dim[i];
    if (!fits)
        return shape_error(CODE_SHAPE, "scatter_rows cannot put %s where %s says",
                           node_type_text(in[0]), node_type_text(in[1]));
    dim[0] = attrs->at[0].dims.at[0];
    int rank = 1;
    for (int i = b->rank; i < g->rank; i++)
        dim[rank++] = g->dim[i];
    return type_of(g->dtype, rank, dim);
}
