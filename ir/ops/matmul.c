/* Matrix products. ta and tb read an operand with its last two axes exchanged. */
#include "ir/program.h"
#include "ir/shape.h"

/* Dimension of the product's operand: row (0) or column (1) after the exchange. */
static const Dim *side(const Node *x, int transposed, int column)
{
    return x->type->dim[x->type->rank - 2 + (transposed ? !column : column)];
}

const Type *shape_matmul(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)nin;
    const Node *a = in[0], *b = in[1];
    int rank = a->type->rank, ta = (int)attrs->at[0].i, tb = (int)attrs->at[1].i;
    if (!is_real(a->type->dtype) || !is_real(b->type->dtype))
        return shape_error(CODE_TYPE, "matmul needs real numbers, found %s and %s",
                           node_type_text(a), node_type_text(b));
    if (rank < 2 || b->type->rank < 2)
        return shape_error(CODE_SHAPE, "matmul needs matrices, found %s and %s", node_type_text(a),
                           node_type_text(b));
    int same = rank == b->type->rank;
    for (int i = 0; same && i < rank - 2; i++)
        same = a->type->dim[i] == b->type->dim[i];
    if (!same)
        return shape_error(CODE_SHAPE, "matmul needs equal leading dimensions, found %s and %s",
                           node_type_text(a), node_type_text(b));
    const Dim *k0 = side(a, ta, 1), *k1 = side(b, tb, 0);
    if (k0 != k1) {
        TypeTable *t = types_now();
        Arena *arena = graph_now()->arena;
        return shape_error(CODE_SHAPE, "matmul needs equal inner dimensions, found %s and %s",
                           dim_text(t, k0, arena), dim_text(t, k1, arena));
    }
    const Dim *dim[MAX_RANK];
    for (int i = 0; i < rank - 2; i++)
        dim[i] = a->type->dim[i];
    dim[rank - 2] = side(a, ta, 0);
    dim[rank - 1] = side(b, tb, 1);
    return type_of(dtype_promote(a->type->dtype, b->type->dtype), rank, dim);
}

/* r = A B: dA = g Bᵀ, dB = Aᵀ g, with the operands exchanged where they are read exchanged. */
Node *grad_matmul(Node *n, Node *g, int k)
{
    Node *a = n->in[0], *b = n->in[1];
    int ta = (int)n->attrs->at[0].i, tb = (int)n->attrs->at[1].i;
    if (k == 0)
        return ta ? matmul(b, g, tb, 1) : matmul(g, b, 0, !tb);
    return tb ? matmul(g, a, 1, ta) : matmul(a, g, !ta, 0);
}

const Type *shape_linear(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)nin;
    const Type *x = in[0]->type, *w = in[1]->type;
    int in_out = (int)attrs->at[0].i, bias = (int)attrs->at[1].i;
    const Dim *dim[MAX_RANK];
    if (!x->rank || !is_real(x->dtype))
        return shape_error(CODE_TYPE, "linear needs a real tensor, found %s",
                           node_type_text(in[0]));
    if (w->rank != 2 || !is_real(w->dtype) ||
        (bias ? in[2]->type->rank != 1 || in[2]->type->dim[0] != w->dim[in_out ? 1 : 0] ||
                    !is_real(in[2]->type->dtype)
              : in[2] != in[1]))
        return shape_error(CODE_SHAPE, "linear cannot have weight %s and bias %s",
                           node_type_text(in[1]), node_type_text(in[2]));
    if (x->dim[x->rank - 1] != w->dim[in_out ? 0 : 1])
        return shape_error(CODE_SHAPE, "linear with weight %s cannot take %s",
                           node_type_text(in[1]), node_type_text(in[0]));
    for (int i = 0; i < x->rank - 1; i++)
        dim[i] = x->dim[i];
    dim[x->rank - 1] = w->dim[in_out ? 1 : 0];
    return type_of(dtype_promote(x->dtype, w->dtype), x->rank, dim);
}

Node *expand_linear(Node *old, Node **in)
{
    int in_out = (int)old->attrs->at[0].i, bias = (int)old->attrs->at[1].i;
    Node *y = matmul(in[0], in[1], 0, !in_out);
    return bias ? build2(OP_ADD, y, in[2]) : y;
}
