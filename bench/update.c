/* The emitted update of update.amp (norm, test, clip, AdamW, half copy over all weights) against
 * pure streams over the same bytes, the limit that memory sets, turn by turn in one process.
 *
 *     ampc bench/update.amp -O2 -o update_o2.c
 *     cc -O3 -fopenmp -DEMITTED='"update_o2.c"' bench/update.c -o update_o2 -lm
 *     ./update_o2 [rounds]
 *
 * Prints one line of JSON: bytes an update moves, the milliseconds of each round, and processor
 * time that others took meanwhile, as a share of one processor.
 */
#define main emitted_main
#include EMITTED
#undef main

#include <sys/resource.h>

enum { MAX_ROUNDS = 101 };

typedef struct Buffers {
    float *weight, *exp_avg, *exp_avg_sq;
    uint16_t *copy; /* NULL at O0 */
    const char *gradient;
    size_t gradient_bytes; /* of an element */
} Buffers;

static Buffers buffers_of(State *s)
{
    Buffers b;
    b.weight = s->opt.weight;
    b.exp_avg = s->opt.exp_avg;
    b.exp_avg_sq = s->opt.exp_avg_sq;
#ifdef HAS_COPY
    b.copy = s->opt.copy;
#else
    b.copy = NULL;
#endif
    b.gradient = (const char *)s->opt.gradient;
    b.gradient_bytes = sizeof *s->opt.gradient;
    return b;
}

/* The gradients are read twice; master and moments are read and written; the copy is written. */
static double bytes_moved(const Buffers *b)
{
    return (double)OPT_ELEMENTS * (double)(2 * b->gradient_bytes + 24 + (b->copy ? 2 : 0));
}

/* ---- the limit ---- */

/* Reads a range, as the norm does. */
RT_LEAF void stream_in(int64_t lo, int64_t hi, const uint64_t *words)
{
    uint64_t all = 0;
    for (int64_t i = lo; i < hi; i++)
        all |= words[i];
    __asm__ volatile("" : : "r"(all));
}

RT_LEAF void stream_f32(int64_t lo, int64_t hi, float *restrict w, float *restrict m,
                        float *restrict v, const float *restrict g)
{
    for (int64_t i = lo; i < hi; i++) {
        m[i] += g[i];
        v[i] += g[i];
        w[i] += g[i];
    }
}

#ifdef RT_X86
/* Writes the copy past the caches. */
__attribute__((target("avx512f,avx512bw"))) static void stream_copy_512(int64_t lo, int64_t hi,
                                                                        float *w, float *m,
                                                                        float *v, const uint16_t *g,
                                                                        uint16_t *copy)
{
    for (int64_t i = lo; i < hi; i += 32) {
        __m256i half[2];
        for (int k = 0; k < 2; k++) {
            const int64_t at = i + 16 * k;
            __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(g + at)));
            __m512 x = _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
            _mm512_storeu_ps(m + at, _mm512_add_ps(x, _mm512_loadu_ps(m + at)));
            _mm512_storeu_ps(v + at, _mm512_add_ps(x, _mm512_loadu_ps(v + at)));
            x = _mm512_add_ps(x, _mm512_loadu_ps(w + at));
            _mm512_storeu_ps(w + at, x);
            half[k] = _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(x), 16));
        }
        _mm512_stream_si512((__m512i *)(void *)(copy + i),
                            _mm512_inserti64x4(_mm512_castsi256_si512(half[0]), half[1], 1));
    }
    _mm_sfence();
}
#endif

RT_LEAF void stream_copy(int64_t lo, int64_t hi, float *restrict w, float *restrict m,
                         float *restrict v, const uint16_t *restrict g, uint16_t *restrict copy)
{
    for (int64_t i = lo; i < hi; i++) {
        m[i] += g[i];
        v[i] += g[i];
        w[i] += g[i];
        copy[i] = (uint16_t)(rt_bits_from_f32(w[i]) >> 16);
    }
}

static void stream_half(int64_t lo, int64_t hi, const Buffers *b)
{
    const uint16_t *g = (const uint16_t *)(const void *)b->gradient;
#ifdef RT_X86
    if (rt_cpu_isa() >= RT_ISA_AVX512) {
        stream_copy_512(lo, hi, b->weight, b->exp_avg, b->exp_avg_sq, g, b->copy);
        return;
    }
#endif
    stream_copy(lo, hi, b->weight, b->exp_avg, b->exp_avg_sq, g, b->copy);
}

static void run_limit(const Buffers *b)
{
    RT_FOR(lo, hi, OPT_ELEMENTS * (int64_t)b->gradient_bytes / 8, 4096,
           stream_in(lo, hi, (const uint64_t *)(const void *)b->gradient));
    if (b->copy)
        RT_FOR(lo, hi, OPT_ELEMENTS, 4096, stream_half(lo, hi, b));
    else
        RT_FOR(lo, hi, OPT_ELEMENTS, 4096,
               stream_f32(lo, hi, b->weight, b->exp_avg, b->exp_avg_sq,
                          (const float *)(const void *)b->gradient));
}

/* ---- measuring ---- */

/* Seconds of processor time that others have used. */
static double foreign_seconds(void)
{
    long ticks[8] = {0}, all = 0;
    FILE *f = fopen("/proc/stat", "r");
    if (!f)
        return 0;
    if (fscanf(f, "cpu %ld %ld %ld %ld %ld %ld %ld %ld", ticks, ticks + 1, ticks + 2, ticks + 3,
               ticks + 4, ticks + 5, ticks + 6, ticks + 7) == 8)
        all = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7];
    fclose(f);
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    return (double)all / (double)sysconf(_SC_CLK_TCK) -
           (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) -
           1e-6 * (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec);
}

/* Small gradients, as finite as they are in training, and moments to match. */
static void fill(State *s)
{
    unsigned char *gradient = (unsigned char *)s->opt.gradient;
    const float small = 1e-3f;
    uint32_t bits = rt_bits_from_f32(small);
    for (int64_t i = 0; i < OPT_ELEMENTS; i++) {
        if (sizeof *s->opt.gradient == 4)
            memcpy(gradient + 4 * i, &bits, 4);
        else
            memcpy(gradient + 2 * i, (const char *)&bits + 2, 2);
        s->opt.exp_avg[i] = small;
        s->opt.exp_avg_sq[i] = small * small;
    }
}

static void print_list(const char *name, const double *values, int count)
{
    printf("\"%s\": [", name);
    for (int i = 0; i < count; i++)
        printf("%s%.4f", i ? ", " : "", values[i]);
    printf("]");
}

int main(int argc, char **argv)
{
    static State state;
    static double update[MAX_ROUNDS], limit[MAX_ROUNDS], foreign[MAX_ROUNDS];
    const int rounds = argc > 1 ? atoi(argv[1]) : 7;
    if (rounds < 1 || rounds > MAX_ROUNDS)
        return RT_USAGE;
    rt_cpu_isa();
#ifdef _OPENMP
    state.threads = omp_get_max_threads();
#else
    state.threads = 1;
#endif
    if (state_create(&state)) {
        fprintf(stderr, "update: %s\n", rt_error_text());
        return RT_SYSTEM;
    }
    Buffers b = buffers_of(&state);
    for (int i = -1; i < rounds; i++) { /* the first one warms up */
        fill(&state);                   /* the limit spoils the moments */
        const double others = foreign_seconds(), start = rt_now_ms();
        (void)opt_update(&state);
        const double middle = rt_now_ms();
        run_limit(&b);
        const double end = rt_now_ms();
        if (i < 0)
            continue;
        update[i] = middle - start;
        limit[i] = end - middle;
        foreign[i] = (foreign_seconds() - others) / (end - start) * 1e3;
    }
    printf("{\"elements\": %lld, \"bytes\": %.0f, \"threads\": %d, ", (long long)OPT_ELEMENTS,
           bytes_moved(&b), state.threads);
    print_list("update", update, rounds);
    printf(", ");
    print_list("limit", limit, rounds);
    printf(", ");
    print_list("foreign", foreign, rounds);
    printf("}\n");
    state_destroy(&state);
    return 0;
}
