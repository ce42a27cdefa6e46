/* Where an element of a value lies, as a function of the loops of a kernel: one affine form a
 * dimension. Views are followed by rewriting the index, so they cost nothing:
 *
 *     y = permute(x, [1, 0])      y at (l0, l1)   is   x at (l1, l0)
 *     y = slice(x, 0, 2:5)        y at (l0)       is   x at (l0 + 2)
 *     y = reshape(x, [4, 3])      y at (l0, l1)   is   element 3*l0 + l1 of x (linear)
 */
#ifndef AMPC_PASSES_INDEX_H
#define AMPC_PASSES_INDEX_H
#include "ir/kernel.h"

typedef struct Index {
    int linear; /* at[0] is the number of the element in row-major order; else one a dimension */
    Affine at[MAX_RANK];
} Index;

typedef struct IndexMaker { /* what the functions below work in */
    TypeTable *types;
    Arena *arena;
    int loops;
} IndexMaker;

Affine affine_int(IndexMaker *m, int64_t value);
Affine affine_loop(IndexMaker *m, int loop);
Affine affine_shift(IndexMaker *m, const Affine *a, const Dim *offset);
Affine affine_sum(IndexMaker *m, const Affine *a, const Affine *b,
                  const Dim *factor); /* a + factor * b */
int affine_equal(IndexMaker *m, const Affine *a, const Affine *b);
int is_one(const Dim *d);

/* The number of the element in a row-major tensor of this type. */
Affine index_number(IndexMaker *m, const Type *type, const Index *at);
/* The index of an operand that broadcasts to `to`. */
void index_broadcast(IndexMaker *m, const Type *to, const Index *at, const Type *from, Index *out);
/* The index of a view's operand; 0 when there is none in this form (see view_is_plain). */
int index_through(IndexMaker *m, const Node *view, const Index *at, Index *out);

static inline int is_view(const Node *n)
{
    return op_is(n->op, F_VIEW);
}
/* Can any index be followed through this view? If not, it is a reshape whose operand is read by
 * number, so nothing but reshapes may lie between it and memory. */
int view_is_plain(IndexMaker *m, const Node *view);
#endif
