/* SPDX-License-Identifier: 0BSD */
/* The order of sums. Adding floats in another order gives other bits, so it is fixed here, for
 * every compiler, instruction set and number of threads:
 *
 *     innermost axis   chunks of 4096 elements; within one, 32 lanes: lane j starts at 0 and adds
 *                      the elements j, j + 32, j + 64 ... in order; then lanes 16..31 are added
 *                      to 0..15, 8..15 to 0..7, and so on; the chunks' sums are added in order
 *     other axes       chunks of 128 rows, each added in order from 0, and those in order
 *
 *     float lane[RT_LANES] = {0};
 *     for (int64_t i = 0; i < 4096; i += RT_LANES)
 *         for (int j = 0; j < RT_LANES; j++)
 *             lane[j] += x[i + j] * y[i + j];
 *     sum += rt_fold32(lane);
 *
 * Threads may share the chunks between them, never a chunk. Norms add the chunks in double.
 */
#ifndef AMPC_RT_SUM_H
#define AMPC_RT_SUM_H

#include "rt_base.h"
#include "rt_half.h"
#include "rt_math.h"

enum { RT_LANES = 32, RT_CHUNK = 4096, RT_ROW_CHUNK = 128 };

/* The lanes' sum; their contents are used up. */
RT_INLINE float rt_fold32(float lane[RT_LANES])
{
    for (int width = RT_LANES / 2; width; width /= 2)
        for (int j = 0; j < width; j++)
            lane[j] += lane[j + width];
    return lane[0];
}

/* The largest and the smallest lane, NaN if any is. */
RT_INLINE float rt_fold32_max(float lane[RT_LANES])
{
    for (int width = RT_LANES / 2; width; width /= 2)
        for (int j = 0; j < width; j++)
            lane[j] = rt_max(lane[j], lane[j + width]);
    return lane[0];
}

RT_INLINE float rt_fold32_min(float lane[RT_LANES])
{
    for (int width = RT_LANES / 2; width; width /= 2)
        for (int j = 0; j < width; j++)
            lane[j] = rt_min(lane[j], lane[j + width]);
    return lane[0];
}

#ifndef __CUDACC_RTC__

/* ---- sums of an array ---- */

RT_FN int64_t rt_chunk_count(int64_t n)
{
    return (n + RT_CHUNK - 1) / RT_CHUNK;
}

/* How many of n elements chunk c has; the last one may be short. */
RT_FN int64_t rt_chunk_length(int64_t n, int64_t c)
{
    const int64_t full = RT_CHUNK, rest = n - c * full;
    return rest < full ? rest : full;
}

/* x[0] + ... + x[n - 1] of one chunk */
RT_LEAF float rt_sum_chunk(const float *x, int64_t n)
{
    float lane[RT_LANES] = {0};
    int64_t i = 0;
    for (; i + RT_LANES <= n; i += RT_LANES)
        for (int j = 0; j < RT_LANES; j++)
            lane[j] += x[i + j];
    for (int j = 0; i + j < n; j++)
        lane[j] += x[i + j];
    return rt_fold32(lane);
}

RT_FN float rt_sum(const float *x, int64_t n)
{
    float sum = 0;
    for (int64_t c = 0; c < rt_chunk_count(n); c++)
        sum += rt_sum_chunk(x + c * RT_CHUNK, rt_chunk_length(n, c));
    return sum;
}

/* ---- sums of squares, for norms ----
 * chunk[c] = the squares of x[4096 c .. 4096 c + 4095], for the chunks lo..hi of n elements; the
 * result is 1 if one of these elements is infinite or NaN. Then rt_add_chunks() adds them.
 *
 *     RT_FOR(lo, hi, chunks, 16,
 *            found[omp_get_thread_num()] |= rt_squares_f32(chunk, g, n, lo, hi));
 *
 * A chunk is summed in float, and again in double where that overflowed or came out so small that
 * squares were rounded off: 2e19 and 2e19 have the norm 2.83e19, and neither is infinite. */

RT_LEAF float rt_squares_of_chunk(const float *x, int64_t n)
{
    float lane[RT_LANES] = {0};
    int64_t i = 0;
    for (; i + RT_LANES <= n; i += RT_LANES)
        for (int j = 0; j < RT_LANES; j++)
            lane[j] += x[i + j] * x[i + j];
    for (int j = 0; i + j < n; j++)
        lane[j] += x[i + j] * x[i + j];
    return rt_fold32(lane);
}

RT_LEAF double rt_squares_in_double(const float *x, int64_t n)
{
    double lane[RT_LANES] = {0};
    int64_t i = 0;
    for (; i + RT_LANES <= n; i += RT_LANES)
        for (int j = 0; j < RT_LANES; j++)
            lane[j] += (double)x[i + j] * (double)x[i + j];
    for (int j = 0; i + j < n; j++)
        lane[j] += (double)x[i + j] * (double)x[i + j];
    for (int width = RT_LANES / 2; width; width /= 2)
        for (int j = 0; j < width; j++)
            lane[j] += lane[j + width];
    return lane[0];
}

/* The squares of one chunk; *nonfinite is set if an element is (in double, finite floats cannot
 * overflow). */
RT_FN double rt_squares(const float *x, int64_t n, int *nonfinite)
{
    float sum = rt_squares_of_chunk(x, n);
    if (sum >= 0x1p-100f && sum < rt_inf())
        return (double)sum;
    double precise = rt_squares_in_double(x, n);
    *nonfinite |= !(precise < (double)rt_inf());
    return precise;
}

RT_FN int rt_squares_f32(double *chunk, const float *x, int64_t n, int64_t lo, int64_t hi)
{
    int nonfinite = 0;
    for (int64_t c = lo; c < hi; c++)
        chunk[c] = rt_squares(x + c * RT_CHUNK, rt_chunk_length(n, c), &nonfinite);
    return nonfinite;
}

RT_LEAF void rt_widen_f16(float *RT_RESTRICT y, const uint16_t *RT_RESTRICT x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = rt_f32_from_f16(x[i]);
}

RT_LEAF void rt_widen_bf16(float *RT_RESTRICT y, const uint16_t *RT_RESTRICT x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = rt_f32_from_bf16(x[i]);
}

RT_FN int rt_squares_f16(double *chunk, const uint16_t *x, int64_t n, int64_t lo, int64_t hi)
{
    float wide[RT_CHUNK];
    int nonfinite = 0;
    for (int64_t c = lo; c < hi; c++) {
        int64_t count = rt_chunk_length(n, c);
        rt_widen_f16(wide, x + c * RT_CHUNK, count);
        chunk[c] = rt_squares(wide, count, &nonfinite);
    }
    return nonfinite;
}

RT_FN int rt_squares_bf16(double *chunk, const uint16_t *x, int64_t n, int64_t lo, int64_t hi)
{
    float wide[RT_CHUNK];
    int nonfinite = 0;
    for (int64_t c = lo; c < hi; c++) {
        int64_t count = rt_chunk_length(n, c);
        rt_widen_bf16(wide, x + c * RT_CHUNK, count);
        chunk[c] = rt_squares(wide, count, &nonfinite);
    }
    return nonfinite;
}

/* The chunks' sums, in order. */
RT_FN double rt_add_chunks(const double *chunk, int64_t count)
{
    double sum = 0;
    for (int64_t c = 0; c < count; c++)
        sum += chunk[c];
    return sum;
}

#endif /* __CUDACC_RTC__ */
#endif
