/* SPDX-License-Identifier: 0BSD */
/* What every other part stands on: the C headers, function qualifiers, status codes with a text,
 * memory, time, and the loop over threads.
 *
 *     if (rt_size_product(&bytes, rows, cols, sizeof(float)))
 *         return rt_fail(RT_BAD_DATA, "%s: too large", path);
 *     RT_FOR(lo, hi, n, 4096, scale_range(y, x, lo, hi));
 *
 * Rounding. Every float operation rounds once, to nearest, subnormals kept: no contraction of
 * a*b+c, no fast math. The pragmas below say so for what follows them in this file, and
 * rt_check_rounding() tests it at run time. Where a fused product is meant, the text says fmaf.
 * (gcc 12 keeps its vectoriser, target_clones, OpenMP and always_inline intrinsics under this
 * optimize pragma.)
 */
#ifndef AMPC_RT_BASE_H
#define AMPC_RT_BASE_H

#ifdef __FAST_MATH__
#error "compile without -ffast-math: it assumes that no value is infinite or NaN"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wunused-function" /* target_clones excludes "unused" */
#elif defined(__GNUC__) && !defined(__NVCC__)
#pragma GCC optimize("fp-contract=off", "no-trapping-math")
#endif

#ifndef __CUDACC_RTC__
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* madvise and clock_gettime under -std=c11 */
#endif
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__GNUC__) && !defined(__cplusplus)
/* Roots are vectorised only where the compiler need not think of errno. */
float sqrtf(float x) __attribute__((const));
double sqrt(double x) __attribute__((const));
#endif
#endif

/* ---- qualifiers ----
 * RT_FN     a function of a part; a program need not call all of them
 * RT_COLD   one that runs a few times in a program's life, as options, files and set-up do: kept
 *           out of its callers and compiled for size, which spares the compiler much work
 * RT_ONCE   one for all its callers: no copies with some of its arguments fixed
 * RT_INLINE one that must become part of its caller's loop; on CUDA it exists on both sides
 * RT_LEAF   a loop over a range, compiled for AVX-512, AVX2+FMA and the baseline, chosen when the
 *           program is loaded. It may hold no OpenMP and takes no vector types. All three give
 *           the same bits. Write `RT_LEAF void f(...)`; static is in it. clang 14 takes
 *           "arch=x86-64-v4" but tests for the wrong thing at run time, hence its own list; in its
 *           second clone integers stay 128 bits wide.
 */
#if defined(__CUDACC_RTC__)
#define RT_FN static __device__
#define RT_INLINE static __device__ __forceinline__
#elif defined(__CUDACC__)
#define RT_FN static
#define RT_INLINE static __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define RT_FN static __attribute__((unused))
#define RT_INLINE static inline __attribute__((always_inline, unused))
#define RT_COLD static __attribute__((unused, cold, noinline))
#else
#define RT_FN static
#define RT_INLINE static inline
#endif

#ifndef RT_COLD
#define RT_COLD RT_FN
#endif
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define RT_ONCE static __attribute__((unused, noinline, noclone))
#else
#define RT_ONCE RT_FN
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RT_NO_CLONES 1 /* the clones are chosen before a sanitizer's run time is up */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RT_NO_CLONES 1
#endif
#endif
#if defined(RT_NO_CLONES) || defined(__CUDACC__) || defined(__cplusplus) ||                        \
    !defined(__x86_64__) || !defined(__GLIBC__)
#define RT_LEAF RT_FN
#elif defined(__clang__) && __clang_major__ >= 14
#define RT_LEAF static __attribute__((target_clones("avx512bw", "fma", "default")))
#elif !defined(__clang__) && __GNUC__ >= 12
#define RT_LEAF RT_FN __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define RT_LEAF RT_FN
#endif

#ifdef __cplusplus
#define RT_RESTRICT __restrict__
#define RT_THREAD_LOCAL thread_local
#else
#define RT_RESTRICT restrict
#define RT_THREAD_LOCAL _Thread_local
#endif

/* Statuses of every function that can fail; also the exit codes of emitted programs. */
enum {
    RT_OK = 0,
    RT_BAD_DATA = 1, /* data, weights or checkpoint */
    RT_USAGE = 2,    /* wrong usage or option value */
    RT_SYSTEM = 3,   /* a file, memory, driver or library failed */
    RT_INTERNAL = 4,
    RT_STOPPED = 5 /* too many skipped steps in a row */
};

#ifndef __CUDACC_RTC__

/* ---- errors ---- */

/* The text of this thread's last failure. */
RT_FN char *rt_error_buffer(void)
{
    static RT_THREAD_LOCAL char text[1024];
    return text;
}

RT_FN const char *rt_error_text(void)
{
    return rt_error_buffer();
}

/* Keeps the text for rt_error_text() and returns the status, so that a caller can
 * `return rt_fail(...)`. Arguments may include rt_error_text() itself. */
#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
RT_FN int
rt_fail(int status, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    memcpy(rt_error_buffer(), text, sizeof text);
    return status;
}

/* ---- memory ---- */

/* *product = a * b * c; nonzero when it does not fit. */
RT_FN int rt_size_product(size_t *product, size_t a, size_t b, size_t c)
{
    size_t ab = a * b;
    if ((a && ab / a != b) || (ab && c > SIZE_MAX / ab))
        return 1;
    *product = ab * c;
    return 0;
}

#define RT_HUGE_PAGE ((size_t)2 << 20)

/* One block of zeroed memory for an arena; from 2 MiB on it begins at a huge page and asks for
 * them. NULL and a text on failure. rt_free_pages() takes the same size. */
RT_FN void *rt_alloc_pages(size_t bytes)
{
#if defined(__linux__)
    size_t slack = bytes < RT_HUGE_PAGE ? 0 : RT_HUGE_PAGE;
    if (bytes > SIZE_MAX - slack) {
        rt_fail(RT_SYSTEM, "out of memory: %zu bytes", bytes);
        return NULL;
    }
    void *mapped = mmap(NULL, bytes ? bytes + slack : 1, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        rt_fail(RT_SYSTEM, "out of memory: %zu bytes", bytes);
        return NULL;
    }
    if (!slack)
        return mapped;
    /* Give back what lies before the first huge page boundary and behind the last page. */
    char *start = (char *)mapped;
    size_t before = (RT_HUGE_PAGE - (uintptr_t)start % RT_HUGE_PAGE) % RT_HUGE_PAGE;
    size_t used = (bytes + 4095) / 4096 * 4096;
    if (before)
        munmap(start, before);
    if (slack - before > used - bytes)
        munmap(start + before + used, bytes + slack - before - used);
    madvise(start + before, used, MADV_HUGEPAGE);
    return start + before;
#else
    void *block = bytes > SIZE_MAX - 64 ? NULL : aligned_alloc(64, (bytes + 64) / 64 * 64);
    if (block)
        memset(block, 0, bytes);
    else
        rt_fail(RT_SYSTEM, "out of memory: %zu bytes", bytes);
    return block;
#endif
}

RT_FN void rt_free_pages(void *block, size_t bytes)
{
    if (!block)
        return;
#if defined(__linux__)
    munmap(block, bytes ? bytes : 1);
#else
    (void)bytes;
    free(block);
#endif
}

/* ---- time ---- */

/* Milliseconds from an arbitrary start, never backwards. */
RT_FN double rt_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* ---- threads ----
 * RT_FOR(lo, hi, n, grain, call) runs `call` over [0, n) on all threads: each has one range
 * lo..hi of whole grains (the last may be short). Only for loops whose result does not depend on
 * where the ranges end. Serial when one grain is enough, without OpenMP, and inside a region. */
#define RT_FOR_SERIAL_(lo, hi, n, call)                                                            \
    do {                                                                                           \
        const int64_t lo = 0, hi = (n);                                                            \
        if (lo < hi)                                                                               \
            call;                                                                                  \
    } while (0)
#ifdef _OPENMP
#define RT_FOR(lo, hi, n, grain, call)                                                             \
    do {                                                                                           \
        const int64_t rt_n_ = (n), rt_grain_ = (grain);                                            \
        if (rt_n_ <= rt_grain_ || omp_in_parallel() || omp_get_max_threads() == 1) {               \
            RT_FOR_SERIAL_(lo, hi, rt_n_, call);                                                   \
        } else {                                                                                   \
            _Pragma("omp parallel")                                                                \
            {                                                                                      \
                const int64_t lo = rt_range_start(rt_n_, rt_grain_, omp_get_thread_num());         \
                const int64_t hi = rt_range_start(rt_n_, rt_grain_, omp_get_thread_num() + 1);     \
                if (lo < hi)                                                                       \
                    call;                                                                          \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* Where the range of thread t begins: at a grain, at n when there are no more. */
RT_FN int64_t rt_range_start(int64_t n, int64_t grain, int t)
{
    int64_t grains = (n + grain - 1) / grain;
    int64_t start = grains * t / omp_get_num_threads() * grain;
    return start < n ? start : n;
}
#else
#define RT_FOR(lo, hi, n, grain, call)                                                             \
    do {                                                                                           \
        const int64_t rt_n_ = (n);                                                                 \
        (void)(grain);                                                                             \
        RT_FOR_SERIAL_(lo, hi, rt_n_, call);                                                       \
    } while (0)
#endif

/* ---- rounding ---- */

/* Whether float arithmetic does what this program counts on: a*b+c in two roundings, to nearest,
 * no excess precision, subnormals kept. A strict program refuses to run otherwise. */
RT_FN int rt_check_rounding(void)
{
    volatile float factor = 1.0f + 0x1p-12f, minus_square = -(1.0f + 0x1p-11f);
    volatile float least_normal = 0x1p-126f, just_over_half = 0x1.000002p-24f;
    float a = factor, b = factor, c = minus_square;
    if (a * b + c != 0.0f)
        return rt_fail(RT_INTERNAL, "this build fuses a*b+c; compile with -ffp-contract=off");
    float half = least_normal * 0.5f;
    if (half * 2.0f != least_normal)
        return rt_fail(RT_INTERNAL, "this build flushes subnormal numbers to zero");
    float above = 1.0f + just_over_half, tie = 1.0f + 0x1p-24f * (just_over_half / just_over_half);
    if (above != 1.0f + 0x1p-23f || tie != 1.0f)
        return rt_fail(RT_INTERNAL, "this program needs rounding to nearest");
    return RT_OK;
}

#endif /* __CUDACC_RTC__ */
#endif
