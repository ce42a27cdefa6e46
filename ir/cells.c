/* The value cells of ops.def and the bodies of optim.def, compiled from the same text that is
 * pasted into emitted programs: once as float, once as double, cells also on integers. */
#include "ir/eval.h"
#include "ir/optim.h"
#include "rt_math.h"
#include <math.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#endif

float cell_float(Op op, float a, float b, float c, float p, float q)
{
    switch (op) {
#define ELEM(id, spelling, arity, apex, torch, flags, attrs, value, da, db, dc, prose)             \
    case OP_##id:                                                                                  \
        return value;
#define OTHER(...)
#include "ir/ops.def"
#undef ELEM
    default:
        return NAN;
    }
}

int64_t cell_int(Op op, int64_t a, int64_t b, int64_t c)
{
    const int64_t p = 0, q = 0;
    switch (op) {
#define ELEM(id, spelling, arity, apex, torch, flags, attrs, value, da, db, dc, prose)             \
    case OP_##id:                                                                                  \
        return (flags) & (F_INTS | F_LOGIC) ? (int64_t)(value) : 0;
#include "ir/ops.def"
#undef ELEM
    default:
        return 0;
    }
}

static double named_hyper(const OptimInfo *info, const OptimElement *x, const char *name)
{
    for (int i = 0; i < info->hypers; i++)
        if (!strcmp(info->hyper[i], name))
            return x->hyper[i];
    return 0;
}

static double *named_state(const OptimInfo *info, OptimElement *x, const char *name)
{
    for (int i = 0; i < info->states; i++)
        if (!strcmp(info->state[i], name))
            return &x->state[i];
    return NULL;
}

/* Hypers, states and derived scalars by the names that bodies use; a row has some of them. */
void optim_float(int kind, OptimElement *x)
{
    const OptimInfo *info = optim_info(kind);
    float p = (float)x->p, g = (float)x->g, bc1 = (float)x->bc1, bc2 = (float)x->bc2;
    float first = (float)x->first, trust = (float)x->trust;
#define HYPER(name) float name = (float)named_hyper(info, x, #name);
    HYPER(lr)
    HYPER(momentum)
    HYPER(dampening)
    HYPER(weight_decay)
    HYPER(nesterov)
    HYPER(beta1)
    HYPER(beta2)
    HYPER(eps)
    HYPER(alpha)
#undef HYPER
#define STATE(name)                                                                                \
    double *at_##name = named_state(info, x, #name), unused_##name = 0;                            \
    at_##name = at_##name ? at_##name : &unused_##name;                                            \
    float name = (float)*at_##name;
    STATE(momentum_buffer)
    STATE(exp_avg)
    STATE(exp_avg_sq)
    STATE(square_avg)
#undef STATE
    int row = 0;
#define OPTIMIZER(id, name, hypers, states, derived, ...) OPTIMIZER_(__VA_ARGS__)
#define OPTIMIZER_(body, prose)                                                                    \
    if (row++ == kind)                                                                             \
    body
#include "ir/optim.def"
#undef OPTIMIZER_
#undef OPTIMIZER
    (void)dampening, (void)first, (void)trust, (void)bc1, (void)bc2, (void)nesterov;
    x->p = p;
    x->g = g;
    *at_momentum_buffer = momentum_buffer;
    *at_exp_avg = exp_avg;
    *at_exp_avg_sq = exp_avg_sq;
    *at_square_avg = square_avg;
}

/* The same text once more, in double with the C library's functions. */
#define rt_sqrt sqrt
#define rt_exp exp
#define rt_expm1 expm1
#define rt_log log
#define rt_log1p log1p
#define rt_tanh tanh
#define rt_erf erf
#define rt_sin sin
#define rt_cos cos
#define rt_pow pow

double cell_double(Op op, double a, double b, double c, double p, double q)
{
    switch (op) {
#define ELEM(id, spelling, arity, apex, torch, flags, attrs, value, da, db, dc, prose)             \
    case OP_##id:                                                                                  \
        return value;
#include "ir/ops.def"
#undef ELEM
    default:
        return NAN;
    }
}

/* Every operator and call of a cell rounds once; comparisons and choices do not. */
int cell_roundings(Op op)
{
    int count = 0;
    for (const char *s = op_info(op)->value; s && *s; s++) {
        int compares = s[1] == '=' || (s[0] == '-' && s > op_info(op)->value && s[-1] == '(');
        if (strchr("+-*/", *s) && !compares)
            count++;
        if (s[0] == 'r' && s[1] == 't' && s[2] == '_')
            count += 2; /* up to one ulp */
    }
    return count;
}
