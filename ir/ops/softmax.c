/* softmax and log_softmax along an axis; computed in f32 whatever the operand's type. */
#include "ir/program.h"
#include "ir/shape.h"

const Type *shape_softmax(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)nin;
    if (!is_real(in[0]->type->dtype) || attrs->at[0].i < 0 || attrs->at[0].i >= in[0]->type->rank)
        return shape_error(CODE_SHAPE, "%s along axis %lld of %s", op_info(op)->spelling,
                           (long long)attrs->at[0].i, node_type_text(in[0]));
    return in[0]->type;
}

static Node *f32(Node *x)
{
    return cast_because(x, DT_F32, "accumulator");
}

/* softmax: r (g - sum(g r)). log_softmax: g - exp(r) sum(g). In f32, rounded once. */
Node *grad_softmax(Node *n, Node *g, int k)
{
    (void)k;
    const int64_t axis = n->attrs->at[0].i;
    DType dtype = n->in[0]->type->dtype;
    Node *r = f32(n), *d;
    g = f32(g);
    if (n->op == OP_SOFTMAX)
        d = build2(OP_MUL, r, build2(OP_SUB, g, sum_to(build2(OP_MUL, g, r), &axis, 1, 1, DT_F32)));
    else
        d = build2(OP_SUB, g, build2(OP_MUL, build1(OP_EXP, r), sum_to(g, &axis, 1, 1, DT_F32)));
    return cast_because(d, dtype, "accumulator");
}

/* build1 or a reduction, under a name that tells what it is for. */
static Node *called(Node *n, const char *name)
{
    n->name = intern(graph_now()->program->names, name);
    return n;
}

/* The maximum is taken away first, so that exp does not overflow. */
Node *expand_softmax(Node *old, Node **in)
{
    const int64_t axis = old->attrs->at[0].i;
    Node *x = f32(in[0]);
    Node *top = called(reduce(OP_MAXRED, x, &axis, 1, 1), "largest");
    Node *d = build2(OP_SUB, x, top);
    Node *e = build1(OP_EXP, d);
    Node *sum = called(sum_to(e, &axis, 1, 1, DT_F32), "total");
    Node *r = old->op == OP_SOFTMAX ? build2(OP_DIV, e, sum)
                                    : build2(OP_SUB, d, called(build1(OP_LOG, sum), "log_total"));
    return cast_because(r, in[0]->type->dtype, "accumulator");
}
