/* SPDX-License-Identifier: 0BSD */
/* The AMX kernels of the matrix product: bf16 tiles, 32 x 32 sums in four tile registers.
 *
 * Packed form: for every 32 of k a strip holds two tiles of 16 rows x 32 k, a panel two tiles of
 * 16 pairs of k x 16 columns x 2. A tile is 1 KiB, its rows 64 bytes.
 *
 * A tile product adds, to each sum, the chain over even k plus the chain over odd k: the order of
 * "pairs" in rt_gemm_path.h; only subnormal operands and results count as zero.
 */
#ifndef AMPC_RT_GEMM_AMX_H
#define AMPC_RT_GEMM_AMX_H

#include "rt_gemm_avx512.h"

#ifdef RT_X86

#define RT_AMX static __attribute__((target("amx-tile,amx-bf16"), unused))
#define RT_AMX_INLINE static inline __attribute__((target("amx-tile,amx-bf16"), always_inline))

enum { RT_AMX_BLOCK = 32, RT_AMX_TILE = 512 /* elements */ };

/* ---- packing ---- */

RT_AVX512_INLINE __mmask32 rt_amx_first(int64_t n)
{
    return (__mmask32)(n <= 0 ? 0 : n >= 32 ? 0xffffffffu : (1u << n) - 1);
}

/* Interleaves two rows: pairs of their first 16 elements, pairs of the others. */
RT_AVX512_INLINE void rt_amx_pairs(__m512i even, __m512i odd, __m512i *low, __m512i *high)
{
    __m512i x = _mm512_unpacklo_epi16(even, odd), y = _mm512_unpackhi_epi16(even, odd);
    *low = _mm512_permutex2var_epi64(x, _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), y);
    *high = _mm512_permutex2var_epi64(x, _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4), y);
}

/* Two tiles of a panel (pairs of k are rows), or of a strip (lines are rows), from 32 lines that
 * lie side by side: `from` is the first of 32 runs, one a k. */
RT_AVX512_INLINE void rt_amx_pack_runs(uint16_t *to, const uint16_t *from, int64_t step, int strip)
{
    __m512i low[16], high[16];
    RT_UNROLL
    for (int i = 0; i < 16; i++, from += 2 * step) {
        rt_amx_pairs(_mm512_loadu_si512(from), _mm512_loadu_si512(from + step), &low[i], &high[i]);
        if (!strip) {
            _mm512_storeu_si512(to + 32 * i, low[i]);
            _mm512_storeu_si512(to + RT_AMX_TILE + 32 * i, high[i]);
        }
    }
    if (!strip)
        return;
    rt_512_transpose(low);
    RT_UNROLL
    for (int i = 0; i < 16; i++)
        _mm512_storeu_si512(to + 32 * i, low[i]);
    rt_512_transpose(high);
    RT_UNROLL
    for (int i = 0; i < 16; i++)
        _mm512_storeu_si512(to + RT_AMX_TILE + 32 * i, high[i]);
}

/* The same from 32 runs that are lines. */
RT_AVX512_INLINE void rt_amx_pack_across(uint16_t *to, const uint16_t *from, int64_t step,
                                         int strip)
{
    for (int half = 0; half < 2; half++, to += RT_AMX_TILE) {
        __m512i rows[16];
        RT_UNROLL
        for (int i = 0; i < 16; i++, from += step)
            rows[i] = _mm512_loadu_si512(from);
        if (!strip)
            rt_512_transpose(rows);
        RT_UNROLL
        for (int i = 0; i < 16; i++)
            _mm512_storeu_si512(to + 32 * i, rows[i]);
    }
}

/* Copies the part that exists of 32 runs of 32 elements; the rest is 0. */
RT_AVX512_ONCE void rt_amx_copy_edge(uint16_t *edge, const uint16_t *from, int64_t runs,
                                     int64_t run_stride, int64_t elements, int64_t stride)
{
    const __mmask32 mask = rt_amx_first(elements);
    for (int64_t i = 0; i < RT_AMX_BLOCK; i++, edge += RT_AMX_BLOCK, from += run_stride) {
        __m512i run = _mm512_setzero_si512();
        if (i < runs && stride == 1)
            run = _mm512_maskz_loadu_epi16(mask, from);
        _mm512_storeu_si512(edge, run);
        if (i < runs && stride != 1)
            for (int64_t j = 0; j < elements && j < RT_AMX_BLOCK; j++)
                edge[j] = from[j * stride];
    }
}

/* The two tiles of 32 lines and 32 k. */
RT_AVX512_ONCE void rt_amx_pack_tiles(uint16_t *to, const RtLines *s, int64_t line, int64_t k,
                                      int strip)
{
    uint16_t edge[RT_AMX_BLOCK * RT_AMX_BLOCK];
    const uint16_t *from = (const uint16_t *)s->data + line * s->stride + k * s->k_stride;
    const int64_t lines = s->count - line, depth = s->depth - k;
    const int side_by_side = s->stride == 1;
    int64_t step = side_by_side ? s->k_stride : s->stride;
    if (lines < RT_AMX_BLOCK || depth < 32 || (s->stride != 1 && s->k_stride != 1)) {
        if (side_by_side)
            rt_amx_copy_edge(edge, from, depth, step, lines, 1);
        else
            rt_amx_copy_edge(edge, from, lines, step, depth, s->k_stride);
        from = edge;
        step = RT_AMX_BLOCK;
    }
    if (side_by_side)
        rt_amx_pack_runs(to, from, step, strip);
    else
        rt_amx_pack_across(to, from, step, strip);
}

/* Goes along the runs of memory. */
RT_ONCE void rt_amx_pack(uint16_t *packed, const RtLines *s, int strip)
{
    const int64_t lines = s->stride == 1 ? s->count : (int64_t)RT_AMX_BLOCK;
    for (int64_t first = 0; first < s->count; first += lines)
        for (int64_t k = 0; k < s->padded; k += 32)
            for (int64_t line = first; line < first + lines; line += RT_AMX_BLOCK)
                rt_amx_pack_tiles(packed + line * s->padded + k * RT_AMX_BLOCK, s, line, k, strip);
}

RT_FN void rt_amx_pack_a(void *packed, const RtLines *s)
{
    rt_amx_pack((uint16_t *)packed, s, 1);
}

RT_FN void rt_amx_pack_b(void *packed, const RtLines *s)
{
    rt_amx_pack((uint16_t *)packed, s, 0);
}

/* ---- multiplying ---- */

typedef struct RtTileConfig {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} RtTileConfig;

RT_AMX void rt_amx_begin(void)
{
    RtTileConfig config;
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = 64;
        config.rows[i] = 16;
    }
    __asm__ volatile("" : : "r"(&config) : "memory"); /* gcc 12 believes that 8 bytes are read */
    _tile_loadconfig(&config);
}

RT_AMX void rt_amx_end(void)
{
    _tile_release();
}

/* Tiles 0..3 are the sums (row, column), 4 and 5 rows of A, 6 and 7 columns of B. `down` and
 * `across` say whether there is a second row and column of tiles. A tile register is free again
 * early in this order, which matters where the processor does not rename them. */
RT_AMX_INLINE void rt_amx_block(const int down, const int across, const uint16_t *a,
                                const uint16_t *b, int64_t depth, float *acc, int64_t ld, int add)
{
    const int64_t row_bytes = ld * 4;
    __asm__ volatile("" : : : "memory"); /* gcc 12 does not know that tile loads read memory */
    if (add) {
        _tile_loadd(0, acc, row_bytes);
        if (across)
            _tile_loadd(1, acc + 16, row_bytes);
        if (down)
            _tile_loadd(2, acc + 16 * ld, row_bytes);
        if (down && across)
            _tile_loadd(3, acc + 16 * ld + 16, row_bytes);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t k = 0; k < depth; k += 32, a += 2 * RT_AMX_TILE, b += 2 * RT_AMX_TILE) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 64);
        RT_UNROLL
        for (int i = 0; i < 32; i++)
            _mm_prefetch((const char *)(a + 4 * RT_AMX_TILE + 32 * i), _MM_HINT_T0);
        _tile_dpbf16ps(0, 4, 6);
        if (across) {
            _tile_loadd(7, b + RT_AMX_TILE, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (down) {
            _tile_loadd(5, a + RT_AMX_TILE, 64);
            if (across)
                _tile_dpbf16ps(3, 5, 7);
            _tile_dpbf16ps(2, 5, 6);
        }
    }
    _tile_stored(0, acc, row_bytes);
    if (across)
        _tile_stored(1, acc + 16, row_bytes);
    if (down)
        _tile_stored(2, acc + 16 * ld, row_bytes);
    if (down && across)
        _tile_stored(3, acc + 16 * ld + 16, row_bytes);
}

RT_AMX void rt_amx_multiply(const void *strip, const void *panel, int64_t depth, int64_t rows,
                            int64_t columns, float *acc, int64_t ld, int add)
{
    const uint16_t *a = (const uint16_t *)strip, *b = (const uint16_t *)panel;
    if (rows > 16 && columns > 16)
        rt_amx_block(1, 1, a, b, depth, acc, ld, add);
    else if (rows > 16)
        rt_amx_block(1, 0, a, b, depth, acc, ld, add);
    else if (columns > 16)
        rt_amx_block(0, 1, a, b, depth, acc, ld, add);
    else
        rt_amx_block(0, 0, a, b, depth, acc, ld, add);
}

RT_FN RtGemmPath rt_amx_path(void)
{
    RtGemmPath p;
    p.strip = p.strip_width = RT_AMX_BLOCK;
    p.panel = p.panel_width = RT_AMX_BLOCK;
    p.k_step = 32;
    p.bytes = sizeof(uint16_t);
    p.k_slice = 256;
    p.acc_rows = 128;
    p.acc_columns = 256;
    p.serial = 1 << 22;
    p.pack_a = rt_amx_pack_a;
    p.pack_b = rt_amx_pack_b;
    p.multiply = rt_amx_multiply;
    p.begin = rt_amx_begin;
    p.end = rt_amx_end;
    return p;
}

#endif
#endif
