/* Rewrites composite ops into primitives, so that fusing and code generation know only element-wise ops, sums
 * along one run of axes, products and views.
 *
 *     y = softmax(x, axis=1)   becomes   e = exp(x - max(x)); y = e / sum(e)
 */
#include "ir/shape.h"
#include "passes/each.h"

Node *split_reduction(Node *old, Node **in);

static Node *to_primitives(Rewrite *w, Node *old, Node **in)
{
    (void)w;
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
