/* SPDX-License-Identifier: 0BSD */
/* The loss scale as a plain state machine: after every step, found_inf in, the next scale out.
 *
 *     RtScaler s = rt_scaler_make(RT_SCALER_AMPC);
 *     ... the step multiplies the loss by s.scale, and gradients by 1 / s.scale ...
 *     rt_scaler_update(&s, found_inf);            the step was skipped if found_inf
 *
 * A step reads s.scale once, at its entry; the update comes after everything that used it. The
 * modes reproduce the scalers people know, except that no scale ever becomes 0 or infinite.
 * Factors are powers of two unless the user says otherwise, so that scaling rounds nothing.
 */
#ifndef AMPC_RT_SCALER_H
#define AMPC_RT_SCALER_H

#include "rt_base.h"

typedef struct RtScaler {
    float scale;
    int32_t growth;     /* good steps counted towards the next growth */
    int32_t hysteresis; /* how many more overflows until the scale shrinks; at least 1 */
    int32_t skips_in_row;
    int64_t skips; /* since training began */
    /* what the user chose */
    int32_t is_static;          /* the scale never changes; overflows are skipped and counted */
    int32_t window;             /* good steps until the scale grows */
    int32_t late;               /* 1: the first growth comes one good step later, */
    int32_t late_again;         /*    and so does every one after it */
    int32_t hysteresis_full;    /* overflows until the scale shrinks: 1 is at once */
    int32_t refill_on_good;     /* hysteresis is refilled by good steps, not by growth alone */
    float factor, floor, limit; /* the scale stays within floor..limit */
} RtScaler;

enum {
    RT_SCALER_AMPC, /* torch's, with floor and limit, and hysteresis if wanted */
    RT_SCALER_APEX,
    RT_SCALER_TORCH,
    RT_SCALER_MEGATRON,
    RT_SCALER_DEEPSPEED, /* the fused one; with hysteresis 2 the one of ZeRO */
    RT_SCALER_FLAX,
    RT_SCALER_MODES
};

/* A scaler as its framework has it by default; the caller may change any field. */
RT_INLINE RtScaler rt_scaler_make(int mode)
{
    const float lowest = 0x1p-126f, highest = 0x1p127f; /* where the original has no bound */
    RtScaler s = {0x1p16f, 0, 1, 0, 0, 0, 2000, 0, 0, 1, 1, 2.0f, lowest, highest};
    if (mode == RT_SCALER_AMPC) {
        s.floor = 0x1p-14f;
        s.limit = 0x1p24f;
    } else if (mode == RT_SCALER_APEX) {
        s.limit = 0x1p24f;
    } else if (mode == RT_SCALER_MEGATRON) {
        s.scale = 0x1p32f;
        s.window = 1000;
        s.floor = 1.0f;
        s.hysteresis = s.hysteresis_full = 2;
        s.refill_on_good = 0;
    } else if (mode == RT_SCALER_DEEPSPEED) {
        s.window = 1000;
        s.floor = 1.0f;
        s.late = 1;
        s.refill_on_good = 0;
    } else if (mode == RT_SCALER_FLAX) {
        s.late = s.late_again = 1;
    }
    return s;
}

/* A scale that stays. */
RT_INLINE RtScaler rt_scaler_make_static(float scale)
{
    RtScaler s = rt_scaler_make(RT_SCALER_AMPC);
    s.scale = scale;
    s.is_static = 1;
    return s;
}

/* Counts a step, and shrinks or grows the scale. */
RT_INLINE void rt_scaler_update(RtScaler *s, int found_inf)
{
    if (found_inf) {
        s->skips++;
        s->skips_in_row++;
        s->growth = 0;
        if (s->is_static)
            return;
        if (s->hysteresis > 1) {
            s->hysteresis--;
            return;
        }
        float smaller = s->scale / s->factor;
        s->scale = smaller > s->floor ? smaller : s->floor;
        return;
    }
    s->skips_in_row = 0;
    if (s->is_static)
        return;
    if (s->refill_on_good)
        s->hysteresis = s->hysteresis_full;
    if (++s->growth < s->window + s->late)
        return;
    s->growth = s->late && !s->late_again;
    s->hysteresis = s->hysteresis_full;
    float larger = s->scale * s->factor;
    s->scale = larger < s->limit ? larger : s->limit;
}

#ifndef __CUDACC_RTC__

/* Whether the chosen values make sense; the names in the texts are those of the language. */
RT_FN int rt_scaler_check(const RtScaler *s)
{
    if (!(s->scale > 0.0f && s->scale <= 0x1p32f))
        return rt_fail(RT_USAGE, "a loss scale must lie above 0 and not above 2^32, not at %g",
                       (double)s->scale);
    if (s->is_static)
        return RT_OK;
    if (!(s->factor > 1.0f && s->factor <= 0x1p32f))
        return rt_fail(RT_USAGE, "the scale's factor must be above 1, not %g", (double)s->factor);
    if (s->window < 1 || s->hysteresis_full < 1)
        return rt_fail(RT_USAGE, "the scale's window and hysteresis must be at least 1");
    if (!(s->floor >= 0x1p-126f && s->floor <= s->scale && s->scale <= s->limit &&
          s->limit <= 0x1p127f))
        return rt_fail(RT_USAGE, "the loss scale %g must lie within its bounds, %g to %g",
                       (double)s->scale, (double)s->floor, (double)s->limit);
    return RT_OK;
}

#endif /* __CUDACC_RTC__ */
#endif
