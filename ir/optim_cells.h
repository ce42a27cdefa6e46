/* One function over the bodies of optim.def, in REAL arithmetic. Included by cells.c once with REAL float and
 * once with REAL double; OPTIM_FUNCTION is its name. */

void OPTIM_FUNCTION(int kind, OptimElement *x)
{
    const OptimInfo *info = optim_info(kind);
    REAL p = (REAL)x->p, g = (REAL)x->g, bc1 = (REAL)x->bc1, bc2 = (REAL)x->bc2;
    REAL first = (REAL)x->first, trust = (REAL)x->trust;
#define HYPER(name) REAL name = (REAL)named_hyper(info, x, #name);
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
    REAL name = (REAL)*at_##name;
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
