/* Which function rewrites a composite row, and which gives a row's gradient: both generated from
 * ops.def or listed here once. */
#include "ir/program.h"
#include "ir/shape.h"

Node *grad_cast(Node *n, Node *g, int k);
Node *grad_same(Node *n, Node *g, int k);
Node *grad_reduce(Node *n, Node *g, int k);
Node *grad_softmax(Node *n, Node *g, int k);
Node *grad_matmul(Node *n, Node *g, int k);
Node *grad_reshape(Node *n, Node *g, int k);
Node *grad_permute(Node *n, Node *g, int k);
Node *grad_slice(Node *n, Node *g, int k);
Node *grad_expand(Node *n, Node *g, int k);
Node *grad_pad(Node *n, Node *g, int k);
Node *grad_concat(Node *n, Node *g, int k);
Node *grad_gather(Node *n, Node *g, int k);

#define GRAD_YES(family) grad_##family
#define GRAD_NO(family) NULL
GradFn op_gradient(Op op)
{
    static const GradFn functions[OP_COUNT] = {
#define ELEM(...) NULL,
#define OTHER(id, spelling, arity, apex, torch, flags, grad, family, attrs, prose)                 \
    GRAD_##grad(family),
#include "ir/ops.def"
#undef ELEM
#undef OTHER
    };
    return functions[op];
}

Node *expand_mean(Node *old, Node **in);
Node *expand_var(Node *old, Node **in);
Node *expand_softmax(Node *old, Node **in);
Node *expand_linear(Node *old, Node **in);

Node *expand_composite(Node *old, Node **in)
{
    switch (old->op) {
    case OP_MEAN:
        return expand_mean(old, in);
    case OP_VAR:
        return expand_var(old, in);
    case OP_SOFTMAX:
    case OP_LOG_SOFTMAX:
        return expand_softmax(old, in);
    case OP_LINEAR:
        return expand_linear(old, in);
    default:
        return NULL;
    }
}
