/* Rewrites composite ops into primitives, so that fusing and code generation know only element-wise
 * ops, sums along one run of axes, products and views.
 *
 *     y = softmax(x, axis=1)   becomes   e = exp(x - max(x)); y = e / sum(e)
 */
#include "ir/shape.h"
#include "passes/each.h"

Node *split_reduction(Node *old, Node **in);

/* A product multiplies elements of one type: where none was decided on, the wider. */
static Node *with_equal_types(Node *old, Node **in)
{
    DType wide = dtype_promote(in[0]->type->dtype, in[1]->type->dtype);
    if (in[0]->type->dtype == in[1]->type->dtype)
        return NULL;
    return matmul(cast_because(in[0], wide, "policy"), cast_because(in[1], wide, "policy"),
                  (int)old->attrs->at[0].i, (int)old->attrs->at[1].i);
}

static Node *to_primitives(Rewrite *w, Node *old, Node **in)
{
    (void)w;
    if (old->op == OP_MATMUL)
        return with_equal_types(old, in);
    if (op_is(old->op, F_EXPAND))
        return expand_composite(old, in);
    return old->op == OP_DETACH ? in[0] : NULL;
}

static Node *to_runs(Rewrite *w, Node *old, Node **in)
{
    (void)w;
    if (old->op == OP_SUM || old->op == OP_MAXRED || old->op == OP_MINRED)
        return split_reduction(old, in);
    return NULL;
}

/* Composites bring reductions of their own, so these come second. */
void pass_expand(Unit *u)
{
    rewrite_program(u->program, to_primitives, NULL);
    rewrite_program(u->program, to_runs, NULL);
}
