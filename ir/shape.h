/* The type rules of the op table, one function a family: what a node's type is, given its operands,
 * or an error at the span of the graph's context. Called by build() only. */
#ifndef AMPC_IR_SHAPE_H
#define AMPC_IR_SHAPE_H
#include "ir/graph.h"

const Type *shape_elementwise(Op op, Node *const *in, int nin);
#define OTHER(id, spelling, arity, apex, torch, flags, grad, family, schema, prose)                \
    const Type *shape_##family(Op op, Node *const *in, int nin, const Attrs *attrs);
#define ELEM(...)
#include "ir/ops.def"
#undef OTHER
#undef ELEM

/* The type that the node's row gives it; NULL after an error. */
const Type *node_infer(const Node *n);

/* Reports an error at the context's span and gives back NULL. */
const Type *shape_error(Code code, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *node_type_text(const Node *n);
const Type *type_of(DType dtype, int rank, const Dim *const *dim); /* in the table of the program */
TypeTable *types_now(void);

/* Gradients of OTHER rows: what flows to operand k when g flows into n; NULL: nothing. */
typedef Node *(*GradFn)(Node *n, Node *g, int k);
GradFn op_gradient(Op op); /* NULL: ELEM rows, and rows that say NO */

/* Rewrites a composite (EXPAND, EARLY) into primitives on operands that are cast already. */
Node *expand_composite(Node *old, Node **in);
#endif
