/* The interpreter: runs a graph at any stage. It is the reference that emitted programs are
 * compared with.
 *
 * EVAL_EXACT   double, no rounding to the nodes' types, and beside every value a bound on how far
 * an f32 or
 *              half evaluation of the same graph may be from it (running error analysis: each op adds its own
 *              roundings to what its operands' bounds can do to its result).
 * EVAL_STRICT  float, every result rounded to the node's type, sums and products in the orders of
 * the rounding
 *              contract: an emitted program with --rounding=strict must agree bit for bit.
 */
#ifndef AMPC_IR_EVAL_H
#define AMPC_IR_EVAL_H
#include "ir/program.h"

typedef enum EvalMode { EVAL_EXACT, EVAL_STRICT } EvalMode;

/* A value: reals in `d` (exact) or `f` (strict), integers and bools in `i`; row-major. */
typedef struct Tensor {
    const Type *type;
    int64_t count;
    float *f;
    double *d;
    double *
        bound; /* exact: of every element, for bools and integers 1 where the value is not certain */
    int64_t *i;
} Tensor;

typedef struct Eval {
    Program *program;
    Arena *arena;
    EvalMode mode;
    const int64_t *symbols; /* values of the run-time dimensions */
    uint64_t seed;
    uint32_t step;
    /* Gives the value of INPUT, OPTION, READ and SCALE nodes. Reals may be given in either field:
     * `d` is filled from `f` and the other way round. */
    void (*source)(void *data, const Node *n, Tensor *out);
    void *data;
    Tensor *value; /* by node id, after eval_graph */
} Eval;

void eval_graph(Eval *e, Graph *g);
/* Memory for a value of the type at the given sizes. */
Tensor tensor_make(Arena *arena, EvalMode mode, const Type *type, const int64_t *symbols);

/* Cells of the op table, compiled as float, as double, and on integers. */
float cell_float(Op op, float a, float b, float c, float p, float q);
double cell_double(Op op, double a, double b, double c, double p, double q);
int64_t cell_int(Op op, int64_t a, int64_t b, int64_t c);
int cell_roundings(Op op); /* f32 roundings in the float form, counted from the cell's text */

/* One element of an optimizer's update, from the row's body. State and hypers in the order of the
 * row. */
typedef struct OptimElement {
    double p, g, state[4], hyper[MAX_HYPERS], bc1, bc2, first, trust;
} OptimElement;
void optim_float(int kind, OptimElement *x);
#endif
