/* SPDX-License-Identifier: 0BSD */
/* Which instructions this processor and its system let us use, found by cpuid and xgetbv when the
 * program runs: a program built on one machine works on another. clang 14's
 * __builtin_cpu_supports knows neither f16c nor amx, so we ask ourselves.
 *
 *     if (rt_cpu_isa() >= RT_ISA_AVX512)
 *         ...call a leaf with __attribute__((target("avx512f")))...
 */
#ifndef AMPC_RT_CPU_H
#define AMPC_RT_CPU_H

#include "rt_base.h"

/* Each includes those before it. */
typedef enum RtIsa {
    RT_ISA_PORTABLE,
    RT_ISA_AVX2,   /* AVX2, FMA, F16C */
    RT_ISA_AVX512, /* AVX-512 F, BW, DQ, VL */
    RT_ISA_AMX     /* AMX tiles with bf16 */
} RtIsa;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__)
#define RT_X86 1
#include <cpuid.h>
#include <immintrin.h>
#endif
#if defined(RT_X86) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#ifdef RT_X86
/* The register sets that the system saves for us (XCR0). */
RT_FN uint64_t rt_cpu_saved_state(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Asks Linux for the tile registers, which every process must do once, before its threads. */
RT_FN int rt_cpu_permit_tiles(void)
{
#if defined(__linux__)
    const long request_permission = 0x1023, tile_data = 18;
    return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
    return 0;
#endif
}

RT_FN RtIsa rt_cpu_detect(void)
{
    const uint32_t osxsave_avx_fma_f16c = 1u << 27 | 1u << 28 | 1u << 12 | 1u << 29;
    const uint32_t avx2 = 1u << 5, avx512_f_dq_bw_vl = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
    const uint32_t amx_bf16_tile = 1u << 22 | 1u << 24;
    const uint64_t ymm = 0x6, zmm = 0xe6, tiles = 0x60000;
    uint32_t a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & osxsave_avx_fma_f16c) != osxsave_avx_fma_f16c)
        return RT_ISA_PORTABLE;
    uint64_t saved = rt_cpu_saved_state();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & avx2) || (saved & ymm) != ymm)
        return RT_ISA_PORTABLE;
    if ((b & avx512_f_dq_bw_vl) != avx512_f_dq_bw_vl || (saved & zmm) != zmm)
        return RT_ISA_AVX2;
    if ((d & amx_bf16_tile) != amx_bf16_tile || (saved & tiles) != tiles || !rt_cpu_permit_tiles())
        return RT_ISA_AVX512;
    return RT_ISA_AMX;
}
#else
RT_FN RtIsa rt_cpu_detect(void)
{
    return RT_ISA_PORTABLE;
}
#endif

/* The best instruction set there is. The first call must come before threads start. */
RT_FN RtIsa rt_cpu_isa(void)
{
    static int found = -1;
    if (found < 0)
        found = (int)rt_cpu_detect();
    return (RtIsa)found;
}

#endif
