/* SPDX-License-Identifier: 0BSD */
/* The AVX-512 kernels of the matrix product: 14 rows by 32 columns of sums stay in registers.
 * Both operands are packed as f32, halves widened on the way.
 */
#ifndef AMPC_RT_GEMM_AVX512_H
#define AMPC_RT_GEMM_AVX512_H

#include "rt_gemm_path.h"

#ifdef RT_X86

#define RT_AVX512_TARGET "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c"
#define RT_AVX512 static __attribute__((target(RT_AVX512_TARGET), unused))
#define RT_AVX512_ONCE RT_ONCE __attribute__((target(RT_AVX512_TARGET)))
#define RT_AVX512_INLINE static inline __attribute__((target(RT_AVX512_TARGET), always_inline))

enum { RT_512_STRIP = 14, RT_512_STRIP_WIDTH = 16, RT_512_PANEL = 32 };

/* ---- packing ---- */

/* Transposes 16 vectors of 16 elements of 32 bits. */
RT_AVX512_INLINE void rt_512_transpose(__m512i *r)
{
    __m512i t[16];
    RT_UNROLL
    for (int i = 0; i < 16; i += 2) {
        t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    RT_UNROLL
    for (int i = 0; i < 16; i += 4) {
        r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    RT_UNROLL
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
        t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
        t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
        t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
    }
    RT_UNROLL
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
        r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
        r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
        r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
    }
}

/* The lowest n of 16, none or all when n lies outside. */
RT_AVX512_INLINE __mmask16 rt_512_first(int64_t n)
{
    return (__mmask16)(n <= 0 ? 0 : n >= 16 ? 0xffff : (1 << n) - 1);
}

/* 16 elements that begin at the index, as f32; 0 where the mask is 0, and nothing is read there. */
RT_AVX512_INLINE __m512 rt_512_load(const void *data, RtType type, int64_t index, __mmask16 mask)
{
    if (type == RT_F32)
        return _mm512_maskz_loadu_ps(mask, (const float *)data + index);
    __m256i half = _mm256_maskz_loadu_epi16(mask, (const uint16_t *)data + index);
    if (type == RT_F16)
        return _mm512_cvtph_ps(half);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

/* The lines lie side by side: each k is a run of memory. */
RT_AVX512_ONCE void rt_512_pack_runs(float *packed, const RtLines *s, int64_t lines_each,
                                     int64_t width)
{
    for (int64_t k = 0; k < s->depth; k++) {
        float *to = packed + k * width;
        for (int64_t line = 0; line < s->count; line += lines_each, to += s->padded * width) {
            const int64_t from = k * s->k_stride + line;
            int64_t left = s->count - line < lines_each ? s->count - line : lines_each;
            for (int64_t i = 0; i < width; i += 16)
                _mm512_storeu_ps(to + i,
                                 rt_512_load(s->data, s->type, from + i, rt_512_first(left - i)));
        }
    }
}

/* The first `lines` of 16 lines from k on, one a vector. */
RT_AVX512_INLINE void rt_512_load_rows(__m512i *rows, const RtLines *s, RtType type, int64_t line,
                                       int64_t lines, int64_t k)
{
    const __mmask16 mask = rt_512_first(s->depth - k);
    RT_UNROLL
    for (int64_t r = 0; r < 16; r++)
        rows[r] = _mm512_castps_si512(rt_512_load(s->data, type, (line + r) * s->stride + k,
                                                  r < lines ? mask : (__mmask16)0));
}

/* Each line is a run of memory: 16 by 16 are transposed. */
RT_AVX512_ONCE void rt_512_pack_across(float *packed, const RtLines *s, int64_t lines_each,
                                       int64_t width)
{
    for (int64_t line = 0; line < s->count; line += lines_each, packed += s->padded * width) {
        int64_t left = s->count - line < lines_each ? s->count - line : lines_each;
        for (int64_t i = 0; i < width; i += 16)
            for (int64_t k = 0; k < s->depth; k += 16) {
                __m512i rows[16];
                if (s->type == RT_F32)
                    rt_512_load_rows(rows, s, RT_F32, line + i, left - i, k);
                else if (s->type == RT_F16)
                    rt_512_load_rows(rows, s, RT_F16, line + i, left - i, k);
                else
                    rt_512_load_rows(rows, s, RT_BF16, line + i, left - i, k);
                rt_512_transpose(rows);
                float *to = packed + k * width + i;
                for (int64_t r = 0; r < 16 && k + r < s->padded; r++)
                    _mm512_storeu_si512(to + r * width, rows[r]);
            }
    }
}

/* Neither: element by element. */
RT_COLD void rt_512_pack_any(float *packed, const RtLines *s, int64_t lines_each, int64_t width)
{
    for (int64_t line = 0; line < s->count; line++)
        for (int64_t k = 0; k < s->depth; k++)
            packed[(line / lines_each * s->padded + k) * width + line % lines_each] =
                rt_gemm_element(s->data, s->type, line * s->stride + k * s->k_stride);
}

RT_ONCE void rt_512_pack(float *packed, const RtLines *s, int64_t lines_each, int64_t width)
{
    const int64_t groups = (s->count + lines_each - 1) / lines_each;
    if (s->stride == 1) {
        rt_512_pack_runs(packed, s, lines_each, width);
    } else if (s->k_stride == 1) {
        rt_512_pack_across(packed, s, lines_each, width);
    } else {
        memset(packed, 0, (size_t)(groups * s->padded * width) * sizeof *packed);
        rt_512_pack_any(packed, s, lines_each, width);
    }
    for (int64_t g = 0; g < groups; g++)
        memset(packed + (g * s->padded + s->depth) * width, 0,
               (size_t)((s->padded - s->depth) * width) * sizeof *packed);
}

RT_FN void rt_512_pack_a(void *packed, const RtLines *s)
{
    rt_512_pack((float *)packed, s, RT_512_STRIP, RT_512_STRIP_WIDTH);
}

RT_FN void rt_512_pack_b(void *packed, const RtLines *s)
{
    rt_512_pack((float *)packed, s, RT_512_PANEL, RT_512_PANEL);
}

/* ---- multiplying ---- */

/* rows x (16 * vectors) sums in one chain each; both are constants where this is called. */
RT_AVX512_INLINE void rt_512_chain_block(const int rows, const int vectors, const float *a,
                                         const float *b, int64_t depth, float *acc, int64_t ld,
                                         int add)
{
    __m512 sum[RT_512_STRIP][2];
    RT_UNROLL
    for (int r = 0; r < rows; r++) {
        RT_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v] = add ? _mm512_loadu_ps(acc + r * ld + 16 * v) : _mm512_setzero_ps();
    }
    for (int64_t k = 0; k < depth; k++, a += RT_512_STRIP_WIDTH, b += RT_512_PANEL) {
        __m512 column[2];
        RT_UNROLL
        for (int v = 0; v < vectors; v++)
            column[v] = _mm512_loadu_ps(b + 16 * v);
        RT_UNROLL
        for (int r = 0; r < rows; r++) {
            __m512 row = _mm512_set1_ps(a[r]);
            RT_UNROLL
            for (int v = 0; v < vectors; v++)
                sum[r][v] = _mm512_fmadd_ps(row, column[v], sum[r][v]);
        }
    }
    RT_UNROLL
    for (int r = 0; r < rows; r++) {
        RT_UNROLL
        for (int v = 0; v < vectors; v++)
            _mm512_storeu_ps(acc + r * ld + 16 * v, sum[r][v]);
    }
}

/* The same in pairs of chains, for rows at `a` that are followed by others. */
RT_AVX512_INLINE void rt_512_pairs_rows(const int rows, const int vectors, const float *a,
                                        const float *b, float *acc, int64_t ld)
{
    __m512 sum[RT_512_STRIP / 2][2][2]; /* row, vector, parity of k */
    RT_UNROLL
    for (int r = 0; r < rows; r++) {
        RT_UNROLL
        for (int v = 0; v < vectors; v++)
            sum[r][v][0] = sum[r][v][1] = _mm512_setzero_ps();
    }
    for (int k = 0; k < 32; k += 2) {
        RT_UNROLL
        for (int odd = 0; odd < 2; odd++, a += RT_512_STRIP_WIDTH, b += RT_512_PANEL) {
            __m512 column[2];
            RT_UNROLL
            for (int v = 0; v < vectors; v++)
                column[v] = _mm512_loadu_ps(b + 16 * v);
            RT_UNROLL
            for (int r = 0; r < rows; r++) {
                __m512 row = _mm512_set1_ps(a[r]);
                RT_UNROLL
                for (int v = 0; v < vectors; v++)
                    sum[r][v][odd] = _mm512_fmadd_ps(row, column[v], sum[r][v][odd]);
            }
        }
    }
    RT_UNROLL
    for (int r = 0; r < rows; r++) {
        RT_UNROLL
        for (int v = 0; v < vectors; v++) {
            float *to = acc + r * ld + 16 * v;
            _mm512_storeu_ps(
                to, _mm512_add_ps(_mm512_loadu_ps(to), _mm512_add_ps(sum[r][v][0], sum[r][v][1])));
        }
    }
}

/* Twice the sums, so half the rows at a time; between blocks of 32 the totals wait in memory. */
RT_AVX512_INLINE void rt_512_pairs_block(const int rows, const int vectors, const float *a,
                                         const float *b, int64_t depth, float *acc, int64_t ld,
                                         int add)
{
    if (!add)
        for (int r = 0; r < rows; r++)
            memset(acc + r * ld, 0, (size_t)vectors * 64);
    for (int64_t k = 0; k < depth; k += 32)
        for (int r = 0; r < rows; r += rows / 2)
            rt_512_pairs_rows(rows / 2, vectors, a + k * RT_512_STRIP_WIDTH + r,
                              b + k * RT_512_PANEL, acc + r * ld, ld);
}

/* Kernels for 4, 8 and 14 rows (fewer than 4 would wait for their own sums, and take as long), and
 * for one vector of columns or two. */
#define RT_512_KERNEL(name, block)                                                                 \
    RT_AVX512 void name(const void *strip, const void *panel, int64_t depth, int64_t rows,         \
                        int64_t columns, float *acc, int64_t ld, int add)                          \
    {                                                                                              \
        const float *a = (const float *)strip, *b = (const float *)panel;                          \
        switch ((rows <= 4 ? 4 : rows <= 8 ? 8 : 14) + (columns > 16)) {                           \
            RT_512_CASES(block, 4)                                                                 \
            RT_512_CASES(block, 8)                                                                 \
            RT_512_CASES(block, 14)                                                                \
        }                                                                                          \
    }
#define RT_512_CASES(block, rows)                                                                  \
    case rows:                                                                                     \
        block(rows, 1, a, b, depth, acc, ld, add);                                                 \
        break;                                                                                     \
    case rows + 1:                                                                                 \
        block(rows, 2, a, b, depth, acc, ld, add);                                                 \
        break;

RT_512_KERNEL(rt_512_chain, rt_512_chain_block)
RT_512_KERNEL(rt_512_pairs, rt_512_pairs_block)

RT_FN RtGemmPath rt_avx512_path(int pairs)
{
    RtGemmPath p;
    p.strip = RT_512_STRIP;
    p.strip_width = RT_512_STRIP_WIDTH;
    p.panel = p.panel_width = RT_512_PANEL;
    p.k_step = pairs ? 32 : 1;
    p.bytes = sizeof(float);
    p.k_slice = 256;
    p.acc_rows = 8 * RT_512_STRIP;
    p.acc_columns = 256;
    p.serial = 1 << 20;
    p.pack_a = rt_512_pack_a;
    p.pack_b = rt_512_pack_b;
    p.multiply = pairs ? rt_512_pairs : rt_512_chain;
    p.begin = p.end = NULL;
    return p;
}

#endif
#endif
