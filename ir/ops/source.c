/* Types of nodes that have no tensor operands, or give their operand's type on. */
#include "ir/program.h"
#include "ir/shape.h"
#include <assert.h>

const Type *shape_given(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)in, (void)nin, (void)attrs;
    assert(!"made by build_source with a type");
    return NULL;
}

const Type *shape_iota(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)in, (void)nin;
    if (attrs->at[1].i < 0 || attrs->at[1].i >= attrs->at[0].dims.n)
        return shape_error(CODE_SHAPE, "iota has no axis %lld", (long long)attrs->at[1].i);
    return type_of(DT_I32, attrs->at[0].dims.n, attrs->at[0].dims.at);
}

const Type *shape_random(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)in, (void)nin;
    return type_of(DT_F32, attrs->at[0].dims.n, attrs->at[0].dims.at);
}

const Type *shape_same(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)nin, (void)attrs;
    if (op == OP_DIVN && !is_real(in[0]->type->dtype))
        return shape_error(CODE_TYPE, "divn needs real numbers, found %s", node_type_text(in[0]));
    return in[0]->type;
}

/* The gradient of DIVN is DIVN of the gradient; the others hand it on. */
Node *grad_same(Node *n, Node *g, int k)
{
    (void)k;
    return n->op == OP_DIVN ? build(OP_DIVN, &g, 1, n->attrs) : g;
}

const Type *shape_cast(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)nin;
    return type_with(types_now(), in[0]->type, attrs->at[0].dtype);
}

Node *grad_cast(Node *n, Node *g, int k)
{
    (void)k;
    if (!is_real(n->type->dtype) || !is_real(n->in[0]->type->dtype))
        return NULL;
    return cast_because(g, n->in[0]->type->dtype, "gradient");
}

const Type *shape_effect(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)attrs;
    if ((op == OP_BACKWARD || op == OP_REPORT) && in[0]->type->rank)
        return shape_error(CODE_SHAPE,
                           "%s needs a scalar, found %s; reduce it with mean(…) or sum(…)",
                           op == OP_BACKWARD ? "backward" : "report", node_type_text(in[0]));
    return nin ? in[0]->type : type_scalar(types_now(), DT_FLOAT);
}

const Type *shape_update(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    (void)op, (void)attrs;
    return nin ? in[0]->type : type_scalar(types_now(), DT_FLOAT);
}
