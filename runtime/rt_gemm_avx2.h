/* SPDX-License-Identifier: 0BSD */
/* The AVX2 kernels of the matrix product: 6 rows by 16 columns of sums stay in registers. Both
 * operands are packed as f32, halves widened on the way.
 */
#ifndef AMPC_RT_GEMM_AVX2_H
#define AMPC_RT_GEMM_AVX2_H

#include "rt_gemm_path.h"

#ifdef RT_X86

#define RT_AVX2_TARGET "avx2,fma,f16c"
#define RT_AVX2 static __attribute__((target(RT_AVX2_TARGET), unused))
#define RT_AVX2_INLINE static inline __attribute__((target(RT_AVX2_TARGET), always_inline))

enum { RT_256_STRIP = RT_PACK_STRIP, RT_256_PANEL = RT_PACK_PANEL };

/* ---- multiplying ---- */

/* rows x (8 * vectors) sums in one chain each; both are constants where this is called. */
RT_AVX2_INLINE void rt_256_chain_block(const int rows, const int vectors, const float *a,
                                       const float *b, int64_t depth, float *acc, int64_t ld,
                                       int add)
{
    __m256 sum[RT_256_STRIP][2];
    RT_UNROLL
    for (int r = 0; r < rows; r++) {
        RT_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v] = add ? _mm256_loadu_ps(acc + r * ld + 8 * v) : _mm256_setzero_ps();
    }
    for (int64_t k = 0; k < depth; k++, a += RT_256_STRIP, b += RT_256_PANEL) {
        __m256 column[2];
        RT_UNROLL
        for (int v = 0; v < vectors; v++)
            column[v] = _mm256_loadu_ps(b + 8 * v);
        RT_UNROLL
        for (int r = 0; r < rows; r++) {
            __m256 row = _mm256_set1_ps(a[r]);
            RT_UNROLL
            for (int v = 0; v < vectors; v++)
                sum[r][v] = _mm256_fmadd_ps(row, column[v], sum[r][v]);
        }
    }
    RT_UNROLL
    for (int r = 0; r < rows; r++) {
        RT_UNROLL
        for (int v = 0; v < vectors; v++)
            _mm256_storeu_ps(acc + r * ld + 8 * v, sum[r][v]);
    }
}

/* The same in pairs of chains, for rows at `a` that are followed by others. */
RT_AVX2_INLINE void rt_256_pairs_rows(const int rows, const int vectors, const float *a,
                                      const float *b, float *acc, int64_t ld)
{
    __m256 sum[RT_256_STRIP / 2][2][2]; /* row, vector, parity of k */
    RT_UNROLL
    for (int r = 0; r < rows; r++) {
        RT_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v][0] = sum[r][v][1] = _mm256_setzero_ps();
    }
    for (int k = 0; k < 32; k += 2) {
        RT_UNROLL
        for (int odd = 0; odd < 2; odd++, a += RT_256_STRIP, b += RT_256_PANEL) {
            __m256 column[2];
            RT_UNROLL
            for (int v = 0; v < vectors; v++)
                column[v] = _mm256_loadu_ps(b + 8 * v);
            RT_UNROLL
            for (int r = 0; r < rows; r++) {
                __m256 row = _mm256_set1_ps(a[r]);
                RT_UNROLL
                for (int v = 0; v < vectors; v++)
                    sum[r][v][odd] = _mm256_fmadd_ps(row, column[v], sum[r][v][odd]);
            }
        }
    }
    RT_UNROLL
    for (int r = 0; r < rows; r++) {
        RT_UNROLL
        for (int v = 0; v < vectors; v++) {
            float *to = acc + r * ld + 8 * v;
            _mm256_storeu_ps(
                to, _mm256_add_ps(_mm256_loadu_ps(to), _mm256_add_ps(sum[r][v][0], sum[r][v][1])));
        }
    }
}

/* Twice the sums, so half the rows at a time; between blocks of 32 the totals wait in memory. */
RT_AVX2_INLINE void rt_256_pairs_block(const int rows, const int vectors, const float *a,
                                       const float *b, int64_t depth, float *acc, int64_t ld,
                                       int add)
{
    if (!add)
        for (int r = 0; r < rows; r++)
            memset(acc + r * ld, 0, (size_t)vectors * 32);
    for (int64_t k = 0; k < depth; k += 32)
        for (int r = 0; r < rows; r += rows / 2)
            rt_256_pairs_rows(rows / 2, vectors, a + k * RT_256_STRIP + r, b + k * RT_256_PANEL,
                              acc + r * ld, ld);
}

/* Kernels for 4 and 6 rows (2 would wait for their own sums, and take as long as 4), and for one
 * vector of columns or two. */
#define RT_256_KERNEL(name, block)                                                                 \
    RT_AVX2 void name(const void *strip, const void *panel, int64_t depth, int64_t rows,           \
                      int64_t columns, float *acc, int64_t ld, int add)                            \
    {                                                                                              \
        const float *a = (const float *)strip, *b = (const float *)panel;                          \
        switch ((rows <= 4 ? 4 : 6) + (columns > 8)) {                                             \
            RT_256_CASES(block, 4)                                                                 \
            RT_256_CASES(block, 6)                                                                 \
        }                                                                                          \
    }
#define RT_256_CASES(block, rows)                                                                  \
    case rows:                                                                                     \
        block(rows, 1, a, b, depth, acc, ld, add);                                                 \
        break;                                                                                     \
    case rows + 1:                                                                                 \
        block(rows, 2, a, b, depth, acc, ld, add);                                                 \
        break;

RT_256_KERNEL(rt_256_chain, rt_256_chain_block)
RT_256_KERNEL(rt_256_pairs, rt_256_pairs_block)

RT_FN RtGemmPath rt_avx2_path(int pairs)
{
    RtGemmPath p;
    p.strip = p.strip_width = RT_256_STRIP;
    p.panel = p.panel_width = RT_256_PANEL;
    p.k_step = pairs ? 32 : 1;
    p.bytes = sizeof(float);
    p.k_slice = 256;
    p.acc_rows = 16 * RT_256_STRIP;
    p.acc_columns = 256;
    p.serial = 1 << 19;
    p.pack_a = rt_gemm_pack_strips;
    p.pack_b = rt_gemm_pack_panels;
    p.multiply = pairs ? rt_256_pairs : rt_256_chain;
    p.begin = p.end = NULL;
    return p;
}

#endif
#endif
