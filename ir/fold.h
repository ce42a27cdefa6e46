/* Local identities, each exact in IEEE arithmetic for every value. */
#ifndef AMPC_IR_FOLD_H
#define AMPC_IR_FOLD_H
#include "ir/graph.h"

/* The node that equals op(in), or NULL. */
Node *fold(Op op, const Type *type, Node *const *in, int nin, const Attrs *attrs);
#endif
