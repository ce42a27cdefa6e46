/* SPDX-License-Identifier: 0BSD */
/* Random numbers that depend on nothing but where they are used: a counter-based generator
 * (Philox 4x32-10, Salmon et al. 2011), so that any element of any step can be drawn alone, in
 * any order, on any thread or device.
 *
 *     uint32_t stream = rt_stream("h.3.attn.dropout#0");
 *     keep = rt_uniform(seed, stream, step, i) >= 0.1f;
 *
 * The key is the seed; the counter is {element / 4 low, element / 4 high, stream, step}, and
 * element % 4 picks the word. Uniform numbers are (word >> 8) * 2^-24, from 0 to 1 - 2^-24. Normal
 * ones are made by Box and Muller's method of words (0, 1) and (2, 3): radius sqrt(-2 log u),
 * where u is 1 - the uniform number of the first word and so never 0, and angle 2 pi times that of
 * the second; the cosine goes to the even element, the sine to the odd one. None is beyond 5.77.
 */
#ifndef AMPC_RT_RNG_H
#define AMPC_RT_RNG_H

#include "rt_base.h"
#include "rt_math.h"

/* Four words for elements 4 * block to 4 * block + 3. */
RT_INLINE void rt_philox(uint64_t seed, uint32_t stream, uint32_t step, uint64_t block,
                         uint32_t out[4])
{
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = stream, c3 = step;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xd2511f53u * c0, p1 = (uint64_t)0xcd9e8d57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

RT_INLINE float rt_uniform_of_word(uint32_t word)
{
    return (float)(int32_t)(word >> 8) * 0x1p-24f;
}

/* Two normal numbers of two words. */
RT_INLINE void rt_normal_of_words(uint32_t first, uint32_t second, float out[2])
{
    float u = (float)(int32_t)(0x01000000u - (first >> 8)) * 0x1p-24f;
    float radius = rt_sqrt(-2.0f * rt_log(u));
    float angle = rt_uniform_of_word(second) * 0x1.921fb6p+2f;
    uint32_t quadrant;
    RtTwo r = rt_trig_reduce(angle, &quadrant);
    out[0] = radius * rt_sin_of_quadrant(r, quadrant + 1u);
    out[1] = radius * rt_sin_of_quadrant(r, quadrant);
}

/* One element, from [0, 1). */
RT_INLINE float rt_uniform(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element)
{
    uint32_t word[4];
    rt_philox(seed, stream, step, element >> 2, word);
    return rt_uniform_of_word(word[element & 3]);
}

/* One element, of mean 0 and deviation 1. */
RT_INLINE float rt_normal(uint64_t seed, uint32_t stream, uint32_t step, uint64_t element)
{
    uint32_t word[4];
    float pair[2];
    rt_philox(seed, stream, step, element >> 2, word);
    int second = (element & 2) != 0;
    rt_normal_of_words(second ? word[2] : word[0], second ? word[3] : word[1], pair);
    return element & 1 ? pair[1] : pair[0];
}

#ifndef __CUDACC_RTC__

/* The number of a name: its FNV-1a hash. */
RT_FN uint32_t rt_stream(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

/* ---- filling arrays ----
 * x[lo..hi) of an array whose elements are numbered from 0: the part of one thread, as in
 * RT_FOR(lo, hi, n, 4096, rt_fill_normal(w, lo, hi, 0.0f, 0.02f, seed, stream, 0)). */

enum { RT_DRAWS = 1024 }; /* words made at a time */

/* The words of elements 4 * block and on, a few blocks of four. */
RT_LEAF void rt_philox_blocks(uint32_t *RT_RESTRICT word, uint64_t block, int64_t count,
                              uint64_t seed, uint32_t stream, uint32_t step)
{
    for (int64_t b = 0; b < count; b++)
        rt_philox(seed, stream, step, block + (uint64_t)b, word + 4 * b);
}

RT_LEAF void rt_uniform_of_words(float *RT_RESTRICT x, const uint32_t *RT_RESTRICT word, int64_t n,
                                 float low, float width)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = low + width * rt_uniform_of_word(word[i]);
}

/* n must be even. */
RT_LEAF void rt_normals_of_words(float *RT_RESTRICT x, const uint32_t *RT_RESTRICT word, int64_t n,
                                 float mean, float deviation)
{
    for (int64_t i = 0; i < n; i += 2) {
        float pair[2];
        rt_normal_of_words(word[i], word[i + 1], pair);
        x[i] = mean + deviation * pair[0];
        x[i + 1] = mean + deviation * pair[1];
    }
}

/* low + (high - low) * uniform */
RT_FN void rt_fill_uniform(float *x, int64_t lo, int64_t hi, float low, float high, uint64_t seed,
                           uint32_t stream, uint32_t step)
{
    uint32_t word[RT_DRAWS];
    for (int64_t start = lo - lo % 4; start < hi; start += RT_DRAWS) {
        int64_t from = start < lo ? lo : start;
        int64_t to = hi - start < RT_DRAWS ? hi : start + RT_DRAWS;
        rt_philox_blocks(word, (uint64_t)start / 4, (to - start + 3) / 4, seed, stream, step);
        rt_uniform_of_words(x + from, word + (from - start), to - from, low, high - low);
    }
}

/* mean + deviation * normal */
RT_FN void rt_fill_normal(float *x, int64_t lo, int64_t hi, float mean, float deviation,
                          uint64_t seed, uint32_t stream, uint32_t step)
{
    uint32_t word[RT_DRAWS];
    float drawn[RT_DRAWS];
    for (int64_t start = lo - lo % 4; start < hi; start += RT_DRAWS) {
        int64_t from = start < lo ? lo : start;
        int64_t to = hi - start < RT_DRAWS ? hi : start + RT_DRAWS;
        int64_t blocks = (to - start + 3) / 4;
        rt_philox_blocks(word, (uint64_t)start / 4, blocks, seed, stream, step);
        rt_normals_of_words(drawn, word, 4 * blocks, mean, deviation);
        memcpy(x + from, drawn + (from - start), (size_t)(to - from) * sizeof *x);
    }
}

/* Ones on the diagonal of a matrix, zeros elsewhere. */
RT_COLD void rt_fill_eye(float *x, int64_t rows, int64_t cols)
{
    memset(x, 0, (size_t)(rows * cols) * sizeof *x);
    for (int64_t i = 0; i < rows && i < cols; i++)
        x[i * cols + i] = 1.0f;
}

/* A matrix with orthonormal rows (columns, if it has more rows than columns) times gain: normal
 * numbers, made orthogonal one after the other in double, twice each, so that rounding does not
 * build up. */
RT_COLD int rt_fill_orthogonal(float *x, int64_t rows, int64_t cols, float gain, uint64_t seed,
                               uint32_t stream)
{
    int tall = rows > cols;
    int64_t count = tall ? cols : rows, length = tall ? rows : cols;
    size_t bytes = 0;
    if (!count)
        return RT_OK;
    double *q = NULL;
    if (!rt_size_product(&bytes, (size_t)count, (size_t)length, sizeof *q))
        q = (double *)malloc(bytes);
    if (!q)
        return rt_fail(RT_SYSTEM, "out of memory for an orthogonal matrix");
    for (int64_t v = 0; v < count; v++) {
        double *row = q + v * length, square = 0;
        for (int64_t i = 0; i < length; i++)
            row[i] = (double)rt_normal(seed, stream, 0, (uint64_t)(v * length + i));
        for (int pass = 0; pass < 2; pass++)
            for (int64_t u = 0; u < v; u++) {
                double product = 0;
                for (int64_t i = 0; i < length; i++)
                    product += row[i] * q[u * length + i];
                for (int64_t i = 0; i < length; i++)
                    row[i] -= product * q[u * length + i];
            }
        for (int64_t i = 0; i < length; i++)
            square += row[i] * row[i];
        double scale = 1 / sqrt(square);
        for (int64_t i = 0; i < length; i++)
            row[i] *= scale;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            x[r * cols + c] = (float)((double)gain * q[tall ? c * length + r : r * length + c]);
    free(q);
    return RT_OK;
}

/* ---- orders ---- */

/* Where a row stands in the order of an epoch, which sorts rows by (key, row). Epochs count from
 * 1; 0 is for the order in which a data set is split. */
RT_FN uint64_t rt_shuffle_key(uint64_t seed, uint64_t epoch, uint64_t row)
{
    uint32_t word[4];
    rt_philox(seed, 0x65706f63u /* "epoc" */, (uint32_t)epoch, row, word);
    return (uint64_t)word[0] << 32 | word[1];
}

typedef struct RtKeyedRow {
    uint64_t key;
    int64_t row;
} RtKeyedRow;

/* order = the rows 0..n-1 sorted by (key, row): radix sort, which keeps equal keys in order. */
RT_FN int rt_permutation(int64_t *order, int64_t n, uint64_t seed, uint64_t epoch)
{
    size_t bytes = 0;
    RtKeyedRow *from = NULL;
    if (n <= 0)
        return RT_OK;
    if (!rt_size_product(&bytes, (size_t)n, 2, sizeof *from))
        from = (RtKeyedRow *)malloc(bytes);
    if (!from)
        return rt_fail(RT_SYSTEM, "out of memory for the order of %lld rows", (long long)n);
    RtKeyedRow *to = from + n, *const block = from;
    for (int64_t row = 0; row < n; row++) {
        from[row].key = rt_shuffle_key(seed, epoch, (uint64_t)row);
        from[row].row = row;
    }
    for (int shift = 0; shift < 64; shift += 8) {
        int64_t start[257] = {0};
        for (int64_t i = 0; i < n; i++)
            start[(from[i].key >> shift & 255) + 1]++;
        for (int digit = 0; digit < 256; digit++)
            start[digit + 1] += start[digit];
        for (int64_t i = 0; i < n; i++)
            to[start[from[i].key >> shift & 255]++] = from[i];
        RtKeyedRow *sorted = to;
        to = from;
        from = sorted;
    }
    for (int64_t i = 0; i < n; i++)
        order[i] = from[i].row;
    free(block);
    return RT_OK;
}

#endif /* __CUDACC_RTC__ */
#endif
