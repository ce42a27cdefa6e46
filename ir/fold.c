/* Identities that `build` tries before it makes a node. Each must be exact for every value, so x*1
 * goes and x*0 stays: it would hide the inf or NaN that the loss scaler looks for; and x+0 stays:
 * it turns -0 into 0.
 *
 *     cast(x, type of x) = x      reshape(reshape(x, A), B) = reshape(x, B)      permute(x, identity) = x
 */
#include "ir/fold.h"
#include "ir/program.h"

static int is_const(const Node *n, double value)
{
    return n->op == OP_CONST && n->attrs->at[0].r == value;
}

/* The operand, if it has the wanted type already. */
static Node *if_type(Node *x, const Type *type)
{
    return x->type == type ? x : NULL;
}

static Node *fold_permute(Node *x, const Attrs *attrs)
{
    const Attr *axes = &attrs->at[0];
    int identity = 1;
    for (int i = 0; i < axes->ints.n; i++)
        identity &= axes->ints.at[i] == i;
    if (identity)
        return x;
    if (x->op != OP_PERMUTE)
        return NULL;
    int64_t both[MAX_RANK];
    for (int i = 0; i < axes->ints.n; i++)
        both[i] = x->attrs->at[0].ints.at[axes->ints.at[i]];
    return permute(x->in[0], both, axes->ints.n);
}

Node *fold(Op op, const Type *type, Node *const *in, int nin, const Attrs *attrs)
{
    if (!nin)
        return NULL;
    Node *a = in[0];
    switch (op) {
    case OP_CAST:
        return if_type(a, type);
    case OP_NEG:
        return a->op == OP_NEG ? a->in[0] : NULL;
    case OP_MUL:
        if (is_const(in[1], 1) && a->type == type)
            return a;
        return is_const(a, 1) && in[1]->type == type ? in[1] : NULL;
    case OP_DIV:
        return is_const(in[1], 1) && a->type == type ? a : NULL;
    case OP_RESHAPE:
        if (a->op == OP_RESHAPE)
            a = a->in[0];
        if (a->type == type)
            return a;
        return a == in[0] ? NULL : reshape(a, type->dim, type->rank);
    case OP_PERMUTE:
        return fold_permute(a, attrs);
    case OP_EXPAND:
    case OP_SLICE:
    case OP_PAD:
        return if_type(a, type);
    case OP_CONCAT:
        return nin == 1 ? a : NULL;
    case OP_WHERE:
        return in[1] == in[2] ? if_type(in[1], type) : NULL;
    case OP_SUM:
    case OP_MEAN:
    case OP_MAXRED:
    case OP_MINRED:
        return attrs->at[0].ints.n ? NULL : if_type(a, type);
    case OP_DIVN:
        for (int i = 0; i < attrs->at[0].dims.n; i++) {
            int64_t count;
            if (!dim_is_int(attrs->at[0].dims.at[i], &count) || count != 1)
                return NULL;
        }
        return a;
    default: /* the other rows have no identity */
        return NULL;
    }
}
