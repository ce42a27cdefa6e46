/* Our matrix product against oneDNN's on plain layouts, in one process, turn by turn: f32 and
 * bf16, at training sizes, for the three products of a linear layer. Prints medians over rounds of
 * GFLOP/s and of the ratio within a round, since the processor's speed drifts; a round in which
 * other processes took more than a tenth of a core is dropped and repeated.
 *
 *     OMP_NUM_THREADS=2 build/gemm_bench [rounds] [f32|bf16] [nn|nt|tn]
 */
#include "rt_gemm.h"

#include <dnnl.h>
#include <sys/resource.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        dnnl_status_t status_ = (call);                                                            \
        if (status_ != dnnl_success) {                                                             \
            fprintf(stderr, "%s: oneDNN status %d\n", #call, (int)status_);                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { MAX_ROUNDS = 101 };

/* The three products of y = x w + b and its gradients; w as stored by us or by PyTorch. */
typedef struct Layout {
    const char *name;
    int a_transposed, b_transposed;
} Layout;

static const Layout layouts[] = {{"nn", 0, 0}, {"nt", 0, 1}, {"tn", 1, 0}};

static const int64_t sizes[][3] = {
    /* m, k, n */
    {64, 1024, 1024},  {256, 768, 512},   {256, 1024, 1024},  {64, 768, 3072},
    {1024, 256, 1024}, {1024, 768, 3072}, {4096, 1024, 1024}, {2048, 2048, 2048},
    {256, 784, 1024},  {256, 1024, 10},   {256, 10, 1024},    {64, 64, 64},
};

/* ---- what others did meanwhile ---- */

/* Seconds of processor time that other processes have used since the start. */
static double foreign_seconds(void)
{
    long ticks[8] = {0};
    FILE *f = fopen("/proc/stat", "r");
    if (!f)
        return 0;
    if (fscanf(f, "cpu %ld %ld %ld %ld %ld %ld %ld %ld", ticks, ticks + 1, ticks + 2, ticks + 3,
               ticks + 4, ticks + 5, ticks + 6, ticks + 7) != 8)
        ticks[0] = 0;
    fclose(f);
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    double all = (double)(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7]) / 100;
    return all - (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) -
           1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec);
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(const double *values, int count)
{
    double sorted[MAX_ROUNDS];
    memcpy(sorted, values, (size_t)count * sizeof *values);
    qsort(sorted, (size_t)count, sizeof *sorted, by_size);
    return sorted[count / 2];
}

/* ---- the two products ---- */

typedef struct Problem {
    RtType type;
    int64_t m, k, n;
    const Layout *layout;
    void *a, *b, *ours, *theirs;
    RtScratch scratch;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[3];
} Problem;

typedef struct Store {
    void *c;
    int64_t n;
} Store;

/* Epilogues as an emitted program has them. */
RT_LEAF void store_f32(const void *args, int64_t m, int64_t n, int64_t count, const float *acc)
{
    const Store *s = (const Store *)args;
    float *RT_RESTRICT c = (float *)s->c + m * s->n + n;
    for (int64_t i = 0; i < count; i++)
        c[i] = acc[i];
}

RT_LEAF void store_bf16(const void *args, int64_t m, int64_t n, int64_t count, const float *acc)
{
    const Store *s = (const Store *)args;
    uint16_t *RT_RESTRICT c = (uint16_t *)s->c + m * s->n + n;
    for (int64_t i = 0; i < count; i++)
        c[i] = rt_bf16_from_f32(acc[i]);
}

static void run_ours(const Problem *p)
{
    Store store = {p->ours, p->n};
    RtMatrix a = p->layout->a_transposed ? rt_matrix(p->a, 1, p->m) : rt_matrix(p->a, p->k, 1);
    RtMatrix b = p->layout->b_transposed ? rt_matrix(p->b, 1, p->k) : rt_matrix(p->b, p->n, 1);
    rt_gemm(p->type, RT_FUSED, p->m, p->n, p->k, a, b, p->type == RT_F32 ? store_f32 : store_bf16,
            &store, p->scratch);
}

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void run_theirs(const Problem *p)
{
    TRY(dnnl_primitive_execute(p->primitive, stream, 3, p->arguments));
    TRY(dnnl_stream_wait(stream));
}

static dnnl_memory_desc_t describe(RtType type, int64_t rows, int64_t columns, int transposed)
{
    dnnl_memory_desc_t d;
    dnnl_dims_t dims = {rows, columns};
    TRY(dnnl_memory_desc_init_by_tag(&d, 2, dims, type == RT_F32 ? dnnl_f32 : dnnl_bf16,
                                     transposed ? dnnl_ba : dnnl_ab));
    return d;
}

static dnnl_exec_arg_t argument(int which, const dnnl_memory_desc_t *d, void *data)
{
    dnnl_exec_arg_t a = {which, NULL};
    TRY(dnnl_memory_create(&a.memory, d, engine, data));
    return a;
}

static void prepare_theirs(Problem *p)
{
    dnnl_memory_desc_t a = describe(p->type, p->m, p->k, p->layout->a_transposed);
    dnnl_memory_desc_t b = describe(p->type, p->k, p->n, p->layout->b_transposed);
    dnnl_memory_desc_t c = describe(p->type, p->m, p->n, 0);
    dnnl_matmul_desc_t d;
    dnnl_primitive_desc_t pd;
    TRY(dnnl_matmul_desc_init(&d, &a, &b, NULL, &c));
    TRY(dnnl_primitive_desc_create(&pd, &d, NULL, engine, NULL));
    TRY(dnnl_primitive_create(&p->primitive, pd));
    TRY(dnnl_primitive_desc_destroy(pd));
    p->arguments[0] = argument(DNNL_ARG_SRC, &a, p->a);
    p->arguments[1] = argument(DNNL_ARG_WEIGHTS, &b, p->b);
    p->arguments[2] = argument(DNNL_ARG_DST, &c, p->theirs);
}

static void *filled(RtType type, int64_t count)
{
    void *data = rt_alloc_pages((size_t)count * 4);
    uint32_t state = 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        float x = (float)(int32_t)state * 0x1p-31f;
        if (type == RT_F32)
            ((float *)data)[i] = x;
        else
            ((uint16_t *)data)[i] = rt_bf16_from_f32(x);
    }
    return data;
}

static Problem make(RtType type, const int64_t *size, const Layout *layout)
{
    Problem p;
    memset(&p, 0, sizeof p);
    p.type = type;
    p.m = size[0], p.k = size[1], p.n = size[2];
    p.layout = layout;
    p.a = filled(type, p.m * p.k);
    p.b = filled(type, p.k * p.n);
    p.ours = filled(type, p.m * p.n);
    p.theirs = filled(type, p.m * p.n);
    p.scratch.bytes = rt_gemm_scratch(type, RT_FUSED, p.m, p.n, p.k, 64);
    p.scratch.data = rt_alloc_pages((size_t)p.scratch.bytes);
    prepare_theirs(&p);
    return p;
}

static void destroy(Problem *p)
{
    const size_t a = (size_t)(p->m * p->k) * 4, b = (size_t)(p->k * p->n) * 4;
    const size_t c = (size_t)(p->m * p->n) * 4;
    rt_free_pages(p->a, a);
    rt_free_pages(p->b, b);
    rt_free_pages(p->ours, c);
    rt_free_pages(p->theirs, c);
    rt_free_pages(p->scratch.data, (size_t)p->scratch.bytes);
    for (int i = 0; i < 3; i++)
        TRY(dnnl_memory_destroy(p->arguments[i].memory));
    TRY(dnnl_primitive_destroy(p->primitive));
}

/* The largest difference of the results, relative to 1 + their size. */
static double difference(const Problem *p)
{
    double worst = 0;
    for (int64_t i = 0; i < p->m * p->n; i++) {
        double x = rt_gemm_element(p->ours, p->type, i), y = rt_gemm_element(p->theirs, p->type, i);
        double d = fabs(x - y) / (1 + fabs(y));
        if (!(d <= worst))
            worst = d;
    }
    return worst;
}

/* ---- measuring ---- */

static double seconds(void (*run)(const Problem *), const Problem *p, int64_t times)
{
    double start = rt_now_ms();
    for (int64_t i = 0; i < times; i++)
        run(p);
    return (rt_now_ms() - start) * 1e-3 / (double)times;
}

/* One line of the table; the ratio is our speed over theirs. Returns its median. */
static double measure(RtType type, const int64_t *size, const Layout *layout, int rounds)
{
    Problem p = make(type, size, layout);
    double flop = 2.0 * (double)p.m * (double)p.k * (double)p.n;
    double ours[MAX_ROUNDS], theirs[MAX_ROUNDS], ratio[MAX_ROUNDS];
    run_ours(&p);
    run_theirs(&p);
    double worst = difference(&p), target = 0.006;
    int64_t times = 1 + (int64_t)(target / seconds(run_theirs, &p, 1));
    int kept = 0;
    for (int tried = 0; kept < rounds && tried < 8 * rounds; tried++) {
        double foreign = foreign_seconds(), start = rt_now_ms();
        double x = seconds(run_ours, &p, times), y = seconds(run_theirs, &p, times);
        x = (x + seconds(run_ours, &p, times)) / 2;
        y = (y + seconds(run_theirs, &p, times)) / 2;
        ours[kept] = flop / x * 1e-9;
        theirs[kept] = flop / y * 1e-9;
        ratio[kept] = y / x;
        kept += foreign_seconds() - foreign <= 0.1e-3 * (rt_now_ms() - start) + 0.011;
    }
    printf("%-4s %s %5dx%4dx%4d", type == RT_F32 ? "f32" : "bf16", layout->name, (int)p.m, (int)p.k,
           (int)p.n);
    double result = kept ? median(ratio, kept) : 0;
    if (kept)
        printf("  ours %6.1f  oneDNN %6.1f GFLOP/s  ratio %5.2f  difference %.1e  (%d rounds)\n",
               median(ours, kept), median(theirs, kept), result, worst, kept);
    else
        printf("  no quiet round\n");
    fflush(stdout);
    destroy(&p);
    return result;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    if (rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: gemm_bench [rounds, 1 to %d] [f32|bf16] [nn|nt|tn]\n", MAX_ROUNDS);
        return 2;
    }
    rt_cpu_isa();
    TRY(dnnl_engine_create(&engine, dnnl_cpu, 0));
    TRY(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
    for (int half = 0; half < 2; half++)
        for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
            if (argc > 2 && strcmp(argv[2], half ? "bf16" : "f32"))
                continue;
            if (argc > 3 && strcmp(argv[3], layouts[l].name))
                continue;
            double logs = 0;
            int counted = 0;
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                double ratio = measure(half ? RT_BF16 : RT_F32, sizes[s], &layouts[l], rounds);
                if (s < 8 && ratio > 0)
                    logs += log(ratio), counted++;
            }
            printf("geometric mean of %d of the first 8: %.2f\n\n", counted, exp(logs / counted));
        }
    return 0;
}
