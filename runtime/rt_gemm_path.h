/* SPDX-License-Identifier: 0BSD */
/* What the matrix product of rt_gemm.h asks of an instruction set: how operands are packed and how
 * two packed pieces are multiplied. Here is that description and the portable set; the others are
 * in rt_gemm_avx2.h, rt_gemm_avx512.h and rt_gemm_amx.h. All give the same bits, because each
 * element is computed in the same order:
 *
 *   chain  acc = fmaf(a[k], b[k], acc), k ascending
 *   pairs  for every 32 of k: e = the chain over even k, o = the chain over odd k, both from 0,
 *          then acc = acc + (e + o); k is padded with zeros
 *
 * Packed form. A is cut into strips of a few rows, B into panels of a few columns. Both are
 * "lines" along k to the packer, which writes the elements of one k side by side: a strip of 4
 * rows is  a0[0] a1[0] a2[0] a3[0]  a0[1] a1[1] ...  Missing lines and missing k are zeros.
 */
#ifndef AMPC_RT_GEMM_PATH_H
#define AMPC_RT_GEMM_PATH_H

#include "rt_cpu.h"
#include "rt_half.h"
#include "rt_sum.h"

/* Before a loop with a constant number of turns whose variables are to live in registers. */
#if defined(__clang__)
#define RT_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define RT_UNROLL _Pragma("GCC unroll 32")
#else
#define RT_UNROLL
#endif

typedef enum RtType { RT_F32, RT_F16, RT_BF16 } RtType;

/* A piece of an operand: rows of A, or columns of B. Strides are in elements. */
typedef struct RtLines {
    const void *data;
    RtType type;
    int64_t count, stride; /* of the lines */
    int64_t depth, k_stride;
    int64_t padded; /* depth after padding */
} RtLines;

typedef void RtPack(void *packed, const RtLines *lines);

/* acc[rows][columns], row stride ld, from a strip and a panel; `add` continues earlier sums. May
 * write whole strips and panels. */
typedef void RtMultiply(const void *strip, const void *panel, int64_t depth, int64_t rows,
                        int64_t columns, float *acc, int64_t ld, int add);

typedef struct RtGemmPath {
    int64_t strip, panel;             /* rows and columns one RtMultiply takes at most */
    int64_t strip_width, panel_width; /* packed elements for each k, padding included */
    int64_t k_step;                   /* the depth of a packed piece is a multiple */
    int64_t bytes;                    /* of a packed element */
    int64_t k_slice;                  /* most k for one RtMultiply, for the L1 cache's sake */
    int64_t acc_rows, acc_columns;    /* the block whose sums are kept for the epilogue */
    int64_t serial;                   /* multiplications too few to wake other threads for */
    RtPack *pack_a, *pack_b;
    RtMultiply *multiply;
    void (*begin)(void), (*end)(void); /* on each thread, around its work; may be NULL */
} RtGemmPath;

RT_INLINE float rt_gemm_element(const void *data, RtType type, int64_t index)
{
    switch (type) {
    case RT_F32:
        return ((const float *)data)[index];
    case RT_F16:
        return rt_f32_from_f16(((const uint16_t *)data)[index]);
    case RT_BF16:
        return rt_f32_from_bf16(((const uint16_t *)data)[index]);
    }
    return 0;
}

/* The address of an element that lies `index` elements behind the start. */
RT_INLINE const void *rt_gemm_at(const void *data, RtType type, int64_t index)
{
    return (const char *)data + index * (type == RT_F32 ? 4 : 2);
}

/* ---- packing as f32, for the sets without their own ---- */

enum { RT_PACK_STRIP = 6, RT_PACK_PANEL = 16, RT_PACK_RUN = 128 };

/* n elements that lie side by side, as f32. */
RT_FN void rt_gemm_widen(float *to, const RtLines *s, int64_t from, int64_t n)
{
    if (s->type == RT_F32)
        memcpy(to, (const float *)s->data + from, (size_t)n * sizeof *to);
    else if (s->type == RT_F16)
        rt_widen_f16(to, (const uint16_t *)s->data + from, n);
    else
        rt_widen_bf16(to, (const uint16_t *)s->data + from, n);
}

/* The lines lie side by side: every k is a run, of which each group gets a part. */
RT_INLINE void rt_gemm_pack_runs(float *packed, const RtLines *s, const int64_t each)
{
    float run[RT_PACK_RUN];
    const int64_t most = RT_PACK_RUN / each * each;
    for (int64_t first = 0; first < s->count; first += most)
        for (int64_t k = 0; k < s->depth; k++) {
            const int64_t count = s->count - first < most ? s->count - first : most;
            rt_gemm_widen(run, s, k * s->k_stride + first, count);
            for (int64_t i = count; i % each; i++)
                run[i] = 0.0f;
            for (int64_t i = 0; i < count; i += each)
                memcpy(packed + (first + i) * s->padded + k * each, run + i,
                       (size_t)each * sizeof *run);
        }
}

/* Each line is a run, or nothing is. */
RT_INLINE void rt_gemm_pack_across(float *packed, const RtLines *s, const int64_t each)
{
    float run[RT_PACK_RUN];
    for (int64_t line = 0; line < s->count; line++)
        for (int64_t k = 0; k < s->depth; k += RT_PACK_RUN) {
            const int64_t count = s->depth - k < RT_PACK_RUN ? s->depth - k : (int)RT_PACK_RUN;
            const int64_t from = line * s->stride + k * s->k_stride;
            float *to = packed + (line / each * s->padded + k) * each + line % each;
            if (s->k_stride == 1)
                rt_gemm_widen(run, s, from, count);
            else
                for (int64_t i = 0; i < count; i++)
                    run[i] = rt_gemm_element(s->data, s->type, from + i * s->k_stride);
            for (int64_t i = 0; i < count; i++)
                to[i * each] = run[i];
        }
}

/* Packs groups of `each` lines, which is a constant where this is called. */
RT_INLINE void rt_gemm_pack_as(float *packed, const RtLines *s, const int64_t each)
{
    const int64_t groups = (s->count + each - 1) / each, rest = s->padded - s->depth;
    if (s->stride == 1) {
        rt_gemm_pack_runs(packed, s, each);
    } else {
        if (s->count % each)
            memset(packed + (groups - 1) * s->padded * each, 0,
                   (size_t)(s->padded * each) * sizeof *packed);
        rt_gemm_pack_across(packed, s, each);
    }
    for (int64_t g = 0; g < groups; g++)
        memset(packed + (g * s->padded + s->depth) * each, 0,
               (size_t)(rest * each) * sizeof *packed);
}

RT_FN void rt_gemm_pack_strips(void *packed, const RtLines *s)
{
    rt_gemm_pack_as((float *)packed, s, RT_PACK_STRIP);
}

RT_FN void rt_gemm_pack_panels(void *packed, const RtLines *s)
{
    rt_gemm_pack_as((float *)packed, s, RT_PACK_PANEL);
}

/* ---- portable ---- */

RT_FN void rt_portable_chain(const void *strip, const void *panel, int64_t depth, int64_t rows,
                             int64_t columns, float *acc, int64_t ld, int add)
{
    (void)columns;
    for (int64_t r = 0; r < rows; r++, acc += ld) {
        const float *a = (const float *)strip + r, *b = (const float *)panel;
        float sum[RT_PACK_PANEL];
        for (int c = 0; c < RT_PACK_PANEL; c++)
            sum[c] = add ? acc[c] : 0.0f;
        for (int64_t k = 0; k < depth; k++, a += RT_PACK_STRIP, b += RT_PACK_PANEL)
            for (int c = 0; c < RT_PACK_PANEL; c++)
                sum[c] = fmaf(*a, b[c], sum[c]);
        memcpy(acc, sum, sizeof sum);
    }
}

RT_FN void rt_portable_pairs(const void *strip, const void *panel, int64_t depth, int64_t rows,
                             int64_t columns, float *acc, int64_t ld, int add)
{
    (void)columns;
    for (int64_t r = 0; r < rows; r++, acc += ld) {
        const float *a = (const float *)strip + r, *b = (const float *)panel;
        if (!add)
            memset(acc, 0, RT_PACK_PANEL * sizeof *acc);
        for (int64_t k = 0; k < depth; k += 32) {
            float sum[2][RT_PACK_PANEL] = {{0}};
            for (int i = 0; i < 32; i++, a += RT_PACK_STRIP, b += RT_PACK_PANEL)
                for (int c = 0; c < RT_PACK_PANEL; c++)
                    sum[i & 1][c] = fmaf(*a, b[c], sum[i & 1][c]);
            for (int c = 0; c < RT_PACK_PANEL; c++)
                acc[c] += sum[0][c] + sum[1][c];
        }
    }
}

RT_FN RtGemmPath rt_portable_path(int pairs)
{
    RtGemmPath p;
    p.strip = p.strip_width = RT_PACK_STRIP;
    p.panel = p.panel_width = RT_PACK_PANEL;
    p.k_step = pairs ? 32 : 1;
    p.bytes = sizeof(float);
    p.k_slice = 256;
    p.acc_rows = 10 * RT_PACK_STRIP;
    p.acc_columns = 128;
    p.serial = 1 << 16;
    p.pack_a = rt_gemm_pack_strips;
    p.pack_b = rt_gemm_pack_panels;
    p.multiply = pairs ? rt_portable_pairs : rt_portable_chain;
    p.begin = p.end = NULL;
    return p;
}

#endif
