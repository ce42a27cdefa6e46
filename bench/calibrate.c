/* What the processor does at this moment, as one line of JSON: GFLOP/s of f32 products from
 * registers and of bf16 AMX tiles fed from the L1 cache (0 where there are none), on all threads.
 * Printed beside measurements, because clocks and AMX of a shared machine drift.
 */
#include "rt_gemm_amx.h"
#include "rt_gemm_avx2.h"

typedef double Work(int64_t turns); /* returns floating-point operations */

/* The work on all threads at once, for some milliseconds. */
static double gflops(Work *work, int64_t turns)
{
    double flop = 0, start = 0, end = 0;
#ifdef _OPENMP
#pragma omp parallel reduction(+ : flop)
#endif
    {
        work(turns / 16); /* wakes the units up */
#ifdef _OPENMP
#pragma omp barrier
#pragma omp master
#endif
        start = rt_now_ms();
        flop = work(turns);
#ifdef _OPENMP
#pragma omp barrier
#pragma omp master
#endif
        end = rt_now_ms();
    }
    return flop / (end - start) * 1e-6;
}

#ifdef RT_X86
enum { CHAINS = 12 };

RT_AVX512 double multiply_512(int64_t turns)
{
    __m512 sum[CHAINS], factor = _mm512_set1_ps(1.0f), more = _mm512_set1_ps(1e-9f);
    RT_UNROLL
    for (int c = 0; c < CHAINS; c++)
        sum[c] = more;
    for (int64_t i = 0; i < turns; i++) {
        RT_UNROLL
        for (int c = 0; c < CHAINS; c++) {
            sum[c] = _mm512_fmadd_ps(sum[c], factor, more);
            __asm__ volatile("" : "+v"(sum[c])); /* keeps the chains apart */
        }
    }
    return 32.0 * CHAINS * (double)turns;
}

RT_AVX2 double multiply_256(int64_t turns)
{
    __m256 sum[CHAINS], factor = _mm256_set1_ps(1.0f), more = _mm256_set1_ps(1e-9f);
    RT_UNROLL
    for (int c = 0; c < CHAINS; c++)
        sum[c] = more;
    for (int64_t i = 0; i < turns; i++) {
        RT_UNROLL
        for (int c = 0; c < CHAINS; c++) {
            sum[c] = _mm256_fmadd_ps(sum[c], factor, more);
            __asm__ volatile("" : "+x"(sum[c]));
        }
    }
    return 16.0 * CHAINS * (double)turns;
}

/* A 32 x 32 block of sums, four tile loads for four tile products. */
RT_AMX double multiply_tiles(int64_t turns)
{
    uint8_t data[16384] __attribute__((aligned(64)));
    memset(data, 0, sizeof data);
    rt_amx_begin();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    __asm__ volatile("" : : "r"(data) : "memory");
    for (int64_t i = 0; i < turns; i++) {
        const uint8_t *tile = data + (i & 3) * 4096;
        _tile_loadd(4, tile, 64);
        _tile_loadd(6, tile + 1024, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, tile + 2048, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, tile + 3072, 64);
        _tile_dpbf16ps(3, 5, 7);
        _tile_dpbf16ps(2, 5, 6);
    }
    rt_amx_end();
    return 65536.0 * (double)turns;
}
#endif

int main(void)
{
    double fma = 0, amx = 0;
#ifdef RT_X86
    RtIsa isa = rt_cpu_isa();
    if (isa >= RT_ISA_AVX2)
        fma = gflops(isa >= RT_ISA_AVX512 ? multiply_512 : multiply_256, 2000000);
    if (isa >= RT_ISA_AMX)
        amx = gflops(multiply_tiles, 100000);
#endif
    printf("{\"fma\": %.1f, \"amx\": %.1f}\n", fma, amx);
    return 0;
}
