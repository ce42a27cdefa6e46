/* The matrix product against a plain loop in the contract's order, bit for bit: every instruction
 * set that this machine has, every type, all four transposes, awkward sizes, blocks of rows,
 * columns and k, batches, one and two threads, infinities and NaN. NaN count as equal. */
#include "rt_gemm.h"

#include "check.h"

/* ---- operands ---- */

static uint32_t random_state = 1;

static uint32_t random_bits(void)
{
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

/* In -1..1, away from subnormals and their products: AMX flushes those. */
static float random_value(void)
{
    float x = (float)random_bits() / (float)(1 << 23) - 1.0f;
    return x < 0 ? x - 0x1p-10f : x + 0x1p-10f;
}

static int64_t size_of(RtType type)
{
    return type == RT_F32 ? 4 : 2;
}

static void put(void *data, RtType type, int64_t i, float x)
{
    if (type == RT_F32)
        ((float *)data)[i] = x;
    else
        ((uint16_t *)data)[i] = type == RT_F16 ? rt_f16_from_f32(x) : rt_bf16_from_f32(x);
}

/* A matrix in memory of exactly its size, so that a sanitizer sees any read beside it. */
typedef struct Operand {
    RtMatrix view;
    int64_t count;
} Operand;

static Operand operand(RtType type, int64_t batch, int64_t rows, int64_t columns, int transposed)
{
    Operand o = {{NULL, 0, 0}, batch * rows * columns};
    void *data = malloc((size_t)(o.count * size_of(type)) + 1);
    for (int64_t i = 0; i < o.count; i++)
        put(data, type, i, random_value());
    o.view = transposed ? rt_matrix(data, 1, rows) : rt_matrix(data, columns, 1);
    return o;
}

static void drop(Operand *o)
{
    free((void *)(uintptr_t)o->view.data);
}

/* ---- reference ---- */

static float element(RtType type, RtMatrix x, int64_t i, int64_t j)
{
    return rt_gemm_element(x.data, type, i * x.row + j * x.column);
}

static float chain(RtType type, int64_t m, int64_t n, int64_t k, RtMatrix a, RtMatrix b)
{
    float sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum = fmaf(element(type, a, m, i), element(type, b, i, n), sum);
    return sum;
}

static float pairs(RtType type, int64_t m, int64_t n, int64_t k, RtMatrix a, RtMatrix b)
{
    float sum = 0;
    for (int64_t k0 = 0; k0 < k; k0 += 32) {
        float half[2] = {0, 0};
        for (int64_t i = k0; i < k0 + 32; i++)
            half[i & 1] = i < k ? fmaf(element(type, a, m, i), element(type, b, i, n), half[i & 1])
                                : fmaf(0, 0, half[i & 1]);
        sum += half[0] + half[1];
    }
    return sum;
}

/* ---- a case ---- */

typedef struct Case {
    RtType type;
    RtRounding rounding;
    int64_t batch, m, n, k;
    int a_transposed, b_transposed;
} Case;

/* What the epilogue gets: results, and how often each was given. */
typedef struct Result {
    float *c;
    unsigned char *times;
    int64_t n;
} Result;

static void keep(const void *args, int64_t m, int64_t n, int64_t count, const float *acc)
{
    const Result *r = args;
    for (int64_t i = 0; i < count; i++) {
        r->c[m * r->n + n + i] = acc[i];
        r->times[m * r->n + n + i]++;
    }
}

static RtScratch new_scratch(const Case *t, int threads)
{
    RtScratch s = {NULL, rt_gemm_scratch(t->type, t->rounding, t->m, t->n, t->k, threads)};
    s.data = aligned_alloc(64, (size_t)rt_round_up(s.bytes, 64));
    memset(s.data, 0xff, (size_t)s.bytes); /* NaN: what is not written must not be read */
    return s;
}

static Result run(const Case *t, RtMatrix a, RtMatrix b, int threads)
{
    int64_t count = t->batch * t->m * t->n;
    Result r = {malloc((size_t)count * 4 + 1), calloc((size_t)count + 1, 1), t->n};
    RtScratch scratch = new_scratch(t, threads);
    rt_gemm_batch(t->type, t->rounding, t->batch, t->m, t->n, t->k, a, t->m * t->k, b, t->k * t->n,
                  keep, &r, scratch);
    free(scratch.data);
    return r;
}

static void drop_result(Result *r)
{
    free(r->c);
    free(r->times);
}

static int same(float x, float y)
{
    return rt_bits_from_f32(x) == rt_bits_from_f32(y) || (isnan(x) && isnan(y));
}

/* The results of the plain loop. */
static float *reference(const Case *t, RtMatrix a, RtMatrix b)
{
    float *want = malloc((size_t)(t->batch * t->m * t->n) * 4 + 1), *to = want;
    int in_pairs = t->type == RT_BF16 || (t->type == RT_F16 && t->rounding == RT_STRICT);
    for (int64_t p = 0; p < t->batch; p++) {
        RtMatrix x = a, y = b;
        x.data = rt_gemm_at(a.data, t->type, p * t->m * t->k);
        y.data = rt_gemm_at(b.data, t->type, p * t->k * t->n);
        for (int64_t i = 0; i < t->m; i++)
            for (int64_t j = 0; j < t->n; j++)
                *to++ =
                    in_pairs ? pairs(t->type, i, j, t->k, x, y) : chain(t->type, i, j, t->k, x, y);
    }
    return want;
}

/* How many results differ from the plain loop's or were not given exactly once. */
static int64_t misses(const Case *t, const float *want, const Result *r)
{
    int64_t missed = 0;
    for (int64_t i = 0; i < t->batch * t->m * t->n; i++)
        missed += !same(r->c[i], want[i]) || r->times[i] != 1;
    return missed;
}

static void check_values(const Case *t, RtMatrix a, RtMatrix b)
{
    float *want = reference(t, a, b);
    for (int isa = RT_ISA_PORTABLE; isa <= (int)rt_cpu_isa(); isa++) {
        rt_gemm_limit((RtIsa)isa);
        Result r = run(t, a, b, 2);
        int64_t missed = misses(t, want, &r);
        CHECK_EQ(missed, 0);
        if (missed)
            fprintf(stderr,
                    "    isa %d type %d rounding %d: %d of %d x %d x %d, transposed %d %d\n", isa,
                    (int)t->type, (int)t->rounding, (int)t->batch, (int)t->m, (int)t->n, (int)t->k,
                    t->a_transposed, t->b_transposed);
        drop_result(&r);
    }
    free(want);
}

static void check_case(Case t)
{
    Operand a = operand(t.type, t.batch, t.m, t.k, t.a_transposed);
    Operand b = operand(t.type, t.batch, t.k, t.n, t.b_transposed);
    check_values(&t, a.view, b.view);
    drop(&a);
    drop(&b);
}

/* ---- what is tested ---- */

static const struct Mode {
    RtType type;
    RtRounding rounding;
} modes[] = {{RT_F32, RT_STRICT}, {RT_F16, RT_STRICT}, {RT_BF16, RT_STRICT},
             {RT_F32, RT_FUSED},  {RT_F16, RT_FUSED},  {RT_BF16, RT_FUSED}};
enum { MODES = sizeof modes / sizeof *modes };

/* Each size meets every transpose; the other two sizes are drawn from the list. */
static void test_sizes(const struct Mode *mode)
{
    static const int64_t sizes[] = {1, 2, 3, 15, 17, 31, 33, 63, 65, 127};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int64_t i = 0; i < SIZES; i++)
        for (int transposes = 0; transposes < 4; transposes++)
            for (int place = 0; place < 3; place++) {
                int64_t x = sizes[random_bits() % SIZES], y = sizes[random_bits() % SIZES];
                Case t = {mode->type,     mode->rounding, 1, sizes[i], x, y,
                          transposes & 1, transposes >> 1};
                if (place == 1)
                    t.m = x, t.n = sizes[i];
                if (place == 2)
                    t.m = x, t.k = sizes[i];
                check_case(t);
            }
}

static void test_shapes(const struct Mode *mode)
{
    static const int64_t shapes[][4] = {
        {1, 5, 7, 0},                                          /* nothing to add: zeros */
        {1, 0, 7, 3},     {1, 5, 0, 3},                        /* nothing to compute */
        {5, 3, 4, 6},     {2, 70, 50, 130},   {3, 33, 65, 34}, /* batches */
        {1, 233, 70, 45}, {1, 20, 600, 33},   /* several blocks of rows, of columns, */
        {1, 5, 20, 8200}, {1, 260, 17, 2100}, /* of k, of k and rows */
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int transposes = 0; transposes < 4; transposes++) {
            Case t = {mode->type,   mode->rounding, shapes[i][0],   shapes[i][1],
                      shapes[i][2], shapes[i][3],   transposes & 1, transposes >> 1};
            if (t.m * t.n * t.k < 1 << 20 || transposes == (int)i % 4)
                check_case(t);
        }
}

/* Infinities and NaN spread over rows and columns as IEEE arithmetic says. */
static void test_special_values(const struct Mode *mode)
{
    Case t = {mode->type, mode->rounding, 1, 40, 45, 70, 0, 0};
    Operand a = operand(t.type, 1, t.m, t.k, 0), b = operand(t.type, 1, t.k, t.n, 0);
    void *x = (void *)(uintptr_t)a.view.data, *y = (void *)(uintptr_t)b.view.data;
    put(x, t.type, 3 * t.k + 5, INFINITY);
    put(x, t.type, 3 * t.k + 60, -INFINITY);
    put(x, t.type, 9 * t.k + 69, NAN);
    put(y, t.type, 11 * t.n + 44, -INFINITY);
    put(x, t.type, 20 * t.k + 11, 0.0f);
    check_values(&t, a.view, b.view);
    drop(&a);
    drop(&b);
}

/* Subnormal operands, results and products are kept in strict mode. */
static void test_subnormals(const struct Mode *mode)
{
    Case t = {mode->type, mode->rounding, 1, 19, 37, 66, 0, 1};
    Operand a = operand(t.type, 1, t.m, t.k, 0), b = operand(t.type, 1, t.k, t.n, 1);
    float tiny = t.type == RT_F16 ? 0x1p-24f : 0x1p-130f;
    for (int64_t i = 0; i < a.count; i++)
        put((void *)(uintptr_t)a.view.data, t.type, i, (float)(random_bits() % 8) * tiny);
    check_values(&t, a.view, b.view);
    drop(&a);
    drop(&b);
}

/* Strides that are neither 1: every second row of every third column. */
static void test_strides(const struct Mode *mode)
{
    Case t = {mode->type, mode->rounding, 1, 9, 21, 34, 0, 0};
    Operand a = operand(t.type, 1, 2 * t.m, 3 * t.k, 0),
            b = operand(t.type, 1, 2 * t.k, 3 * t.n, 1);
    a.view.row *= 2, a.view.column *= 3;
    b.view.row *= 2, b.view.column *= 3;
    check_values(&t, a.view, b.view);
    drop(&a);
    drop(&b);
}

/* Scratch memory asked for with the largest shape is enough for every smaller one. */
static void test_scratch(const struct Mode *mode)
{
    for (int isa = RT_ISA_PORTABLE; isa <= (int)rt_cpu_isa(); isa++)
        for (int i = 0; i < 200; i++) {
            int64_t m = random_bits() % 9000, n = random_bits() % 9000, k = random_bits() % 9000;
            int64_t m1 = m * (random_bits() % 8) / 7, n1 = n * (random_bits() % 8) / 7;
            int64_t k1 = k * (random_bits() % 8) / 7;
            rt_gemm_limit((RtIsa)isa);
            CHECK(rt_gemm_scratch(mode->type, mode->rounding, m1, n1, k1, 2) <=
                  rt_gemm_scratch(mode->type, mode->rounding, m, n, k, 2));
        }
}

#ifdef _OPENMP
/* Bit for bit the same on one thread and on several, as many as the scratch memory allows. */
static void check_threads(const Case *t, RtMatrix a, RtMatrix b)
{
    omp_set_num_threads(1);
    Result one = run(t, a, b, 1);
    omp_set_num_threads(3);
    for (int threads = 1; threads <= 3; threads++) {
        Result more = run(t, a, b, threads);
        CHECK(!memcmp(one.c, more.c, (size_t)(t->batch * t->m * t->n) * 4));
        drop_result(&more);
    }
    omp_set_num_threads(2);
    drop_result(&one);
}

static void test_threads(const struct Mode *mode)
{
    static const int64_t shapes[][4] = {{1, 600, 150, 64}, {1, 40, 1100, 100}, {17, 64, 64, 64}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        Case t = {
            mode->type, mode->rounding, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], 0,
            1};
        Operand a = operand(t.type, t.batch, t.m, t.k, 0),
                b = operand(t.type, t.batch, t.k, t.n, 1);
        for (int isa = RT_ISA_PORTABLE; isa <= (int)rt_cpu_isa(); isa++) {
            rt_gemm_limit((RtIsa)isa);
            check_threads(&t, a.view, b.view);
        }
        drop(&a);
        drop(&b);
    }
}
#endif

int main(void)
{
#ifdef _OPENMP
    omp_set_num_threads(2);
#endif
    for (const struct Mode *mode = modes; mode < modes + MODES; mode++) {
        test_sizes(mode);
        test_shapes(mode);
        test_special_values(mode);
        test_strides(mode);
        test_scratch(mode);
        if (mode->rounding == RT_STRICT)
            test_subnormals(mode);
#ifdef _OPENMP
        test_threads(mode);
#endif
    }
    return check_done();
}
