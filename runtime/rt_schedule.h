/* SPDX-License-Identifier: 0BSD */
/* Learning rates that change with t, the number of steps taken so far. All but step rise in a
 * straight line over the first `warmup` steps, from peak / warmup to peak; linear and cosine then
 * fall to floor * peak at step `total` and stay there.
 *
 *     lr = rt_lr_cosine(6e-4, 700, 0.1, 20000, t);
 */
#ifndef AMPC_RT_SCHEDULE_H
#define AMPC_RT_SCHEDULE_H
#include "rt_base.h"

/* How far the fall has come at t: 0 to 1. */
RT_FN double rt_lr_progress(double warmup, double total, double t)
{
    if (t < warmup)
        return 0;
    return t < total ? (t - warmup) / (total - warmup) : 1;
}

RT_FN double rt_lr_constant(double peak, double warmup, double t)
{
    return t + 1 < warmup ? peak * ((t + 1) / warmup) : peak;
}

/* Multiplied by factor after every `every` steps. */
RT_FN double rt_lr_step(double peak, double warmup, double every, double factor, double t)
{
    return rt_lr_constant(peak, warmup, t) * pow(factor, floor(t / every));
}

RT_FN double rt_lr_linear(double peak, double warmup, double floor_, double total, double t)
{
    double left = 1 - rt_lr_progress(warmup, total, t);
    return rt_lr_constant(peak, warmup, t) * (floor_ + (1 - floor_) * left);
}

RT_FN double rt_lr_cosine(double peak, double warmup, double floor_, double total, double t)
{
    double left = 0.5 * (1 + cos(3.14159265358979323846 * rt_lr_progress(warmup, total, t)));
    return rt_lr_constant(peak, warmup, t) * (floor_ + (1 - floor_) * left);
}
#endif
