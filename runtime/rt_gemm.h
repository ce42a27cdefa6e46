/* SPDX-License-Identifier: 0BSD */
/* The matrix product C[m,n] = sum over k of A[m,k] * B[k,n], summed in f32. A and B are both f32,
 * both f16 or both bf16, each with a row and a column stride, so that transposes cost no copy. The
 * sums are not stored: they go row by row to an epilogue, which adds the bias, rounds and stores.
 *
 *     static void fc1_end(const void *args, int64_t m, int64_t n, int64_t count, const float *acc)
 *     { ...y[m * 128 + n + i] = relu(acc[i] + bias[n + i]) for i < count... }
 *
 *     RtScratch scratch = {memory, bytes};          bytes from rt_gemm_scratch(), once
 *     rt_gemm(RT_F32, RT_FUSED, N, 128, 64, rt_matrix(x, 64, 1), rt_matrix(w, 1, 64),
 *             fc1_end, &args, scratch);             y = relu(x w^T + b), w stored as [128, 64]
 *
 * Rounding (strict): f32 is a chain of fmaf over ascending k; halves are summed in pairs of
 * chains, 32 of k at a time; rt_gemm_path.h has both. The same bits on every processor, for every
 * number of threads and every blocking. Fused: bf16 uses AMX tiles where there are any, which keep
 * that order but flush subnormals; f16 is summed in one chain. Every thread computes a rectangle
 * of C by itself, k is never divided among threads, nothing is allocated.
 */
#ifndef AMPC_RT_GEMM_H
#define AMPC_RT_GEMM_H

#include "rt_gemm_amx.h"
#include "rt_gemm_avx2.h"
#include "rt_gemm_avx512.h"
#include "rt_gemm_path.h"

/* Element (i, j) is data[i * row + j * column]. Fast when one of the strides is 1. */
typedef struct RtMatrix {
    const void *data;
    int64_t row, column;
} RtMatrix;

/* Gets the sums of row m, columns n to n + count - 1. Called once for each element, in any order,
 * from any thread. */
typedef void RtEpilogue(const void *args, int64_t m, int64_t n, int64_t count, const float *acc);

/* Memory for packing, aligned to 64 bytes, enough for one thread at least; one product at a time
 * may use it. */
typedef struct RtScratch {
    void *data;
    int64_t bytes;
} RtScratch;

typedef enum RtRounding { RT_STRICT, RT_FUSED } RtRounding;

RT_FN RtMatrix rt_matrix(const void *data, int64_t row, int64_t column)
{
    RtMatrix matrix;
    matrix.data = data;
    matrix.row = row;
    matrix.column = column;
    return matrix;
}

/* ---- choosing the kernels ---- */

#ifndef RT_ISA_LIMIT /* a build may use less, to compare: -DRT_ISA_LIMIT=RT_ISA_AVX2 */
#define RT_ISA_LIMIT RT_ISA_AMX
#endif

RT_FN RtIsa *rt_gemm_isa_limit(void)
{
    static RtIsa limit = RT_ISA_LIMIT;
    return &limit;
}

/* Uses nothing above `isa` from now on (for tests). */
RT_FN void rt_gemm_limit(RtIsa isa)
{
    *rt_gemm_isa_limit() = isa;
}

RT_FN RtGemmPath rt_gemm_path(RtType type, RtRounding rounding)
{
    int pairs = type == RT_BF16 || (type == RT_F16 && rounding == RT_STRICT);
#ifdef RT_X86
    RtIsa isa = rt_cpu_isa() < *rt_gemm_isa_limit() ? rt_cpu_isa() : *rt_gemm_isa_limit();
    if (isa >= RT_ISA_AMX && type == RT_BF16 && rounding == RT_FUSED)
        return rt_amx_path();
    if (isa >= RT_ISA_AVX512)
        return rt_avx512_path(pairs);
    if (isa >= RT_ISA_AVX2)
        return rt_avx2_path(pairs);
#endif
    return rt_portable_path(pairs);
}

/* ---- blocking ---- */

/* How one thread goes through its rectangle: it packs `rows` rows of A, then `columns` columns of
 * B at a time, which stay in the L2 cache while the rows stream by, acc_rows of them between
 * epilogues. A longer k is done in blocks of `depth`, between which the sums of all rows wait. */
typedef struct RtGemmBlock {
    int64_t rows, columns, depth;
} RtGemmBlock;

enum {
    RT_GEMM_LINE = 4 << 10, /* most bytes of a packed line; k is divided when there are more, */
    RT_GEMM_K = 2 << 10,    /* into parts of about so many */
    RT_GEMM_A = 4 << 20,    /* bytes of packed A, about */
    RT_GEMM_B = 512 << 10   /* bytes of packed B, about */
};

RT_INLINE int64_t rt_min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

RT_INLINE int64_t rt_max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

RT_INLINE int64_t rt_parts(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

RT_INLINE int64_t rt_round_up(int64_t n, int64_t step)
{
    return rt_parts(n, step) * step;
}

RT_FN RtGemmBlock rt_gemm_block(const RtGemmPath *p, int64_t k)
{
    RtGemmBlock b;
    int64_t line = rt_max64(1, rt_round_up(k, p->k_step)) * p->bytes;
    if (line <= RT_GEMM_LINE) {
        b.depth = rt_round_up(k, p->k_step);
        b.rows = RT_GEMM_A / line / p->acc_rows * p->acc_rows;
        b.columns = rt_min64(rt_round_up(RT_GEMM_B / line, p->panel), p->acc_columns);
    } else {
        b.depth = rt_round_up(rt_parts(k, rt_parts(line, RT_GEMM_K)), 32);
        b.rows = 2 * p->acc_rows;
        b.columns = p->acc_columns;
    }
    return b;
}

/* The division of a thread's scratch memory. The sizes are upper bounds that grow with m, n, k. */
typedef struct RtGemmSpace {
    int64_t a, b, acc; /* bytes */
    int64_t ld; /* row stride of the sums; were it a power of two, rows would share cache sets */
} RtGemmSpace;

RT_FN RtGemmSpace rt_gemm_space(const RtGemmPath *p, int64_t m, int64_t n, int64_t k)
{
    RtGemmSpace s;
    int64_t line = rt_min64(rt_round_up(k, p->k_step) * p->bytes, RT_GEMM_LINE);
    int64_t most_a = RT_GEMM_A / p->strip * p->strip_width;
    int64_t most_b = RT_GEMM_B + p->panel_width * RT_GEMM_LINE;
    s.ld = p->acc_columns + 16;
    s.a = rt_round_up(rt_min64(rt_parts(m, p->strip) * p->strip_width * line, most_a), 64);
    s.b = rt_round_up(rt_min64(rt_parts(n, p->panel) * p->panel_width * line, most_b), 64);
    s.acc = rt_round_up(rt_min64(rt_round_up(m, p->strip), 2 * p->acc_rows) * s.ld * 4, 64);
    return s;
}

RT_FN int64_t rt_gemm_thread_bytes(const RtGemmSpace *s)
{
    return s->a + s->b + s->acc + 256; /* apart from the next thread's */
}

/* Bytes of scratch memory that lets this product, and any smaller one, run on `threads` threads;
 * with less it uses fewer. */
RT_FN int64_t rt_gemm_scratch(RtType type, RtRounding rounding, int64_t m, int64_t n, int64_t k,
                              int threads)
{
    RtGemmPath path = rt_gemm_path(type, rounding);
    RtGemmSpace space = rt_gemm_space(&path, m, n, k);
    return rt_gemm_thread_bytes(&space) * threads;
}

/* ---- one thread's work ---- */

typedef struct RtGemm {
    RtGemmPath path;
    RtType type;
    int64_t m, n, k;
    RtMatrix a, b;
    RtEpilogue *epilogue;
    const void *args;
    int64_t first_row; /* the epilogue's number of row 0 */
} RtGemm;

typedef struct RtRectangle {
    int64_t m0, m1, n0, n1;
} RtRectangle;

/* Packs the lines `first` to `last` - 1 (rows of A, columns of B) from k on. */
RT_FN void rt_gemm_pack(const RtGemm *g, RtPack *pack, void *packed, const void *data,
                        int64_t stride, int64_t k_stride, int64_t first, int64_t last, int64_t k,
                        int64_t depth)
{
    RtLines s;
    s.data = rt_gemm_at(data, g->type, first * stride + k * k_stride);
    s.type = g->type;
    s.count = last - first;
    s.stride = stride;
    s.depth = rt_min64(depth, g->k - k);
    s.k_stride = k_stride;
    s.padded = depth;
    pack(packed, &s);
}

/* acc = (add ? acc : 0) + packed rows times packed columns. Slices of k are outermost, and a
 * slice of a panel stays in the L1 cache while all strips pass. */
RT_FN void rt_gemm_multiply(const RtGemmPath *p, const char *a, const char *b, int64_t rows,
                            int64_t columns, int64_t depth, float *acc, int64_t ld, int add)
{
    const int64_t strip_bytes = p->strip_width * p->bytes, panel_bytes = p->panel_width * p->bytes;
    int64_t k = 0;
    do {
        int64_t slice = rt_min64(p->k_slice, depth - k);
        for (int64_t n = 0; n < columns; n += p->panel)
            for (int64_t m = 0; m < rows; m += p->strip)
                p->multiply(a + (m / p->strip * depth + k) * strip_bytes,
                            b + (n / p->panel * depth + k) * panel_bytes, slice,
                            rt_min64(rows - m, p->strip), rt_min64(columns - n, p->panel),
                            acc + m * ld + n, ld, add || k > 0);
        k += slice;
    } while (k < depth);
}

/* The epilogue's turn for the rows from m on and the columns n0 to n1 - 1. */
RT_FN void rt_gemm_finish(const RtGemm *g, int64_t m, int64_t rows, int64_t n0, int64_t n1,
                          const float *acc, int64_t ld)
{
    for (int64_t i = 0; i < rows; i++)
        g->epilogue(g->args, g->first_row + m + i, n0, n1 - n0, acc + i * ld);
}

RT_FN void rt_gemm_rectangle(const RtGemm *g, RtRectangle r, char *scratch)
{
    const RtGemmPath *p = &g->path;
    const RtGemmBlock block = rt_gemm_block(p, g->k);
    const RtGemmSpace space = rt_gemm_space(p, g->m, g->n, g->k);
    char *a = scratch, *b = a + space.a;
    float *acc = (float *)(void *)(b + space.b);
    const int divided = block.depth < g->k;
    if (p->begin)
        p->begin();
    for (int64_t m0 = r.m0; m0 < r.m1; m0 += block.rows)
        for (int64_t n0 = r.n0; n0 < r.n1; n0 += block.columns) {
            const int64_t m1 = rt_min64(m0 + block.rows, r.m1);
            const int64_t n1 = rt_min64(n0 + block.columns, r.n1);
            int64_t k = 0;
            do {
                const int64_t depth = rt_round_up(rt_min64(block.depth, g->k - k), p->k_step);
                if (n0 == r.n0 || divided)
                    rt_gemm_pack(g, p->pack_a, a, g->a.data, g->a.row, g->a.column, m0, m1, k,
                                 depth);
                rt_gemm_pack(g, p->pack_b, b, g->b.data, g->b.column, g->b.row, n0, n1, k, depth);
                for (int64_t m = m0; m < m1; m += p->acc_rows) {
                    const int64_t rows = rt_min64(p->acc_rows, m1 - m);
                    const char *strips =
                        a + (m - m0) / p->strip * p->strip_width * depth * p->bytes;
                    float *sums = divided ? acc + (m - m0) * space.ld : acc;
                    rt_gemm_multiply(p, strips, b, rows, n1 - n0, depth, sums, space.ld, k > 0);
                    if (k + depth >= g->k)
                        rt_gemm_finish(g, m, rows, n0, n1, sums, space.ld);
                }
                k += depth;
            } while (k < g->k);
        }
    if (p->end)
        p->end();
}

/* ---- threads ---- */

/* How rows and columns are divided: into down x across rectangles. */
typedef struct RtGemmGrid {
    int64_t down, across;
} RtGemmGrid;

/* The division into `threads` rectangles whose largest is done first. Packing an element costs
 * about as much as `packing` multiplications. */
RT_FN RtGemmGrid rt_gemm_grid(const RtGemm *g, int64_t threads)
{
    const int64_t packing = 16;
    const int64_t strips = rt_parts(g->m, g->path.strip), panels = rt_parts(g->n, g->path.panel);
    RtGemmGrid best = {1, 1};
    int64_t least = INT64_MAX;
    for (int64_t down = 1; down <= threads; down++) {
        const int64_t across = threads / down;
        const int64_t rows = rt_parts(strips, down) * g->path.strip;
        const int64_t columns = rt_parts(panels, across) * g->path.panel;
        const int64_t cost = rows * columns + packing * (rows + columns);
        if (cost < least) {
            least = cost;
            best.down = down;
            best.across = across;
        }
    }
    return best;
}

RT_FN RtRectangle rt_gemm_share(const RtGemm *g, RtGemmGrid grid, int64_t index)
{
    const int64_t strip = g->path.strip, panel = g->path.panel;
    const int64_t strips = rt_parts(g->m, strip), panels = rt_parts(g->n, panel);
    const int64_t i = index / grid.across, j = index % grid.across;
    RtRectangle r;
    r.m0 = strips * i / grid.down * strip;
    r.m1 = rt_min64(strips * (i + 1) / grid.down * strip, g->m);
    r.n0 = panels * j / grid.across * panel;
    r.n1 = rt_min64(panels * (j + 1) / grid.across * panel, g->n);
    return r;
}

RT_FN int64_t rt_gemm_threads(const RtGemmPath *p, double work, int64_t thread_bytes,
                              int64_t scratch_bytes)
{
#ifdef _OPENMP
    if (work >= (double)p->serial && !omp_in_parallel())
        return rt_max64(1, rt_min64(omp_get_max_threads(), scratch_bytes / thread_bytes));
#endif
    (void)p, (void)work, (void)thread_bytes, (void)scratch_bytes;
    return 1;
}

/* A batch of products, and how it is shared out: `each` rectangles a product. */
typedef struct RtGemmBatch {
    RtGemm first;
    int64_t a_step, b_step, each;
    RtGemmGrid grid;
    char *scratch;
    int64_t thread_bytes;
} RtGemmBatch;

RT_FN void rt_gemm_do_share(const RtGemmBatch *batch, int64_t share, int64_t thread)
{
    RtGemm g = batch->first;
    const int64_t product = share / batch->each;
    g.a.data = rt_gemm_at(g.a.data, g.type, product * batch->a_step);
    g.b.data = rt_gemm_at(g.b.data, g.type, product * batch->b_step);
    g.first_row = product * g.m;
    rt_gemm_rectangle(&g, rt_gemm_share(&g, batch->grid, share % batch->each),
                      batch->scratch + thread * batch->thread_bytes);
}

/* `count` products of the same shape: those of a and b lie a_step and b_step elements apart (0:
 * all use the same one). The epilogue sees their rows numbered on: row i of product j is
 * j * m + i. */
RT_FN void rt_gemm_batch(RtType type, RtRounding rounding, int64_t count, int64_t m, int64_t n,
                         int64_t k, RtMatrix a, int64_t a_step, RtMatrix b, int64_t b_step,
                         RtEpilogue *epilogue, const void *args, RtScratch scratch)
{
    RtGemmBatch batch;
    RtGemm *g = &batch.first;
    if (count <= 0 || m <= 0 || n <= 0)
        return;
    g->path = rt_gemm_path(type, rounding);
    g->type = type;
    g->m = m;
    g->n = n;
    g->k = k;
    g->a = a;
    g->b = b;
    g->epilogue = epilogue;
    g->args = args;
    batch.a_step = a_step;
    batch.b_step = b_step;
    batch.scratch = (char *)scratch.data;

    const RtGemmSpace space = rt_gemm_space(&g->path, m, n, k);
    batch.thread_bytes = rt_gemm_thread_bytes(&space);
    const double work = (double)count * (double)m * (double)n * (double)k;
    const int64_t threads = rt_gemm_threads(&g->path, work, batch.thread_bytes, scratch.bytes);
    /* A large batch is divided first, then each product. */
    batch.grid = rt_gemm_grid(g, count >= threads ? 1 : threads / count);
    batch.each = batch.grid.down * batch.grid.across;
    const int64_t shares = count * batch.each;
    if (threads == 1) { /* libgomp takes 0.3 us to form a team of one */
        for (int64_t share = 0; share < shares; share++)
            rt_gemm_do_share(&batch, share, 0);
        return;
    }
#ifdef _OPENMP
#pragma omp parallel for schedule(static) num_threads((int)threads)
    for (int64_t share = 0; share < shares; share++)
        rt_gemm_do_share(&batch, share, omp_get_thread_num());
#endif
}

/* The product described at the top. */
RT_FN void rt_gemm(RtType type, RtRounding rounding, int64_t m, int64_t n, int64_t k, RtMatrix a,
                   RtMatrix b, RtEpilogue *epilogue, const void *args, RtScratch scratch)
{
    rt_gemm_batch(type, rounding, 1, m, n, k, a, 0, b, 0, epilogue, args, scratch);
}

#endif
