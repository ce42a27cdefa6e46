/* A program run by the interpreter, entry by entry and step by step: what an emitted library is
 * compared with. It knows nothing of kernels, buffers or emitted text.
 *
 *     Reference r;
 *     if (!reference_open(&r, text, &settings)) puts(r.message);
 *     reference_step(&r, &batch);                      one training step in strict rounding
 *     Eval e = reference_eval(&r, r.infer, EVAL_EXACT, &batch);
 *     reference_close(&r);
 */
#ifndef AMPC_TESTS_REFERENCE_H
#define AMPC_TESTS_REFERENCE_H
#include "ir/eval.h"
#include "ir/optim.h"
#include "passes/pass.h"
#include "rt_scaler.h"

typedef struct Weights { /* of one parameter, row-major */
    Param *param;
    float *value, *gradient, *state[MAX_STATES];
    double *gradient_bound; /* exact steps only */
    DType gradient_type;    /* in which a step makes it; DT_NONE: none does */
    int64_t count;
} Weights;

enum { MAX_INPUTS = 8 };
typedef struct Batch { /* by name of the input; reals in f, integers in i */
    int64_t rows;
    int count;
    struct {
        const char *name;
        const float *f;
        const int64_t *i;
    } input[MAX_INPUTS];
} Batch;

typedef struct Reference {
    Arena arena, scratch; /* as long as the program; until the next evaluation */
    Names names;
    Sources sources;
    Diags diags;
    Program *program;
    const char *message; /* why it did not compile */
    Entry *train, *eval, *infer;
    Weights *weights; /* by parameter */
    RtScaler scaler;
    float scale; /* that the step in progress uses */
    int64_t steps, taken;
    double beta1_pow, beta2_pow;
    /* of the last step */
    int skipped;
    double norm, rate;
    /* what the sources of the evaluation in progress read */
    const Batch *batch;
    const Eval *now;
    Graph *graph;
} Reference;

/* Compiles the text by these passes; NULL: all up to `expand`; "plain": those without casts,
 * masters and scaler, which O0 must agree with. 0: it has errors. */
int reference_open(Reference *r, const char *text, const Settings *settings, const char *passes);
void reference_close(Reference *r);
/* Evaluates an entry with memory from r->scratch, which the caller resets. */
Eval reference_eval(Reference *r, Entry *entry, EvalMode mode, const Batch *batch);
/* One step: forward, backward, unscale, test, clip, update, scaler. Gives the evaluation. */
Eval reference_step(Reference *r, const Batch *batch);
/* Everything after the gradients of reference_step are known. */
void reference_update(Reference *r);
double reference_number(const Reference *r, const Scalar *s);
double reference_rate(const Reference *r, const Schedule *s);
/* The hypers of a parameter at this step, in the order of the row, and what the row derives, as
 * floats. */
OptimElement reference_hypers(const Reference *r, const Optimizer *opt, const Weights *w);
#endif
