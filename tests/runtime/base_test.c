/* rt_base.h: texts of failures, size products, page blocks, and ranges that cover [0, n) once. */
#include "rt_base.h"

#include "check.h"

static int owner[1000];

/* Counts how often each index is visited; ranges not made of whole grains count wrongly. */
static void mark(int64_t lo, int64_t hi, int64_t n, int64_t grain)
{
    int whole = lo % grain == 0 && (hi % grain == 0 || hi == n);
    for (int64_t i = lo; i < hi; i++)
        owner[i] += whole ? 1 : 100;
}

static void test_ranges(void)
{
    for (int64_t grain = 1; grain <= 64; grain *= 4)
        for (int64_t n = 0; n <= 1000; n += n < 70 ? 1 : 93) {
            memset(owner, 0, sizeof owner);
            RT_FOR(lo, hi, n, grain, mark(lo, hi, n, grain));
            int64_t once = 0;
            for (int64_t i = 0; i < 1000; i++)
                once += owner[i] == (i < n);
            CHECK_EQ(once, 1000);
        }
}

/* Inside a parallel region the calling thread does it all. */
static void test_nested_range(void)
{
    memset(owner, 0, sizeof owner);
#ifdef _OPENMP
    _Pragma("omp parallel num_threads(2)")
#endif
    {
#ifdef _OPENMP
        _Pragma("omp single")
#endif
            RT_FOR(lo, hi, 1000, 10, mark(lo, hi, 1000, 1000));
    }
    for (int i = 0; i < 1000; i += 111)
        CHECK_EQ(owner[i], 1);
}

static void test_errors(void)
{
    CHECK_EQ(rt_fail(RT_USAGE, "option %s", "x"), RT_USAGE);
    CHECK(!strcmp(rt_error_text(), "option x"));
    rt_fail(RT_BAD_DATA, "%s: %d", rt_error_text(), 7);
    CHECK(!strcmp(rt_error_text(), "option x: 7"));
}

static void test_size_product(void)
{
    size_t bytes = 1;
    CHECK(!rt_size_product(&bytes, 3, 5, 7) && bytes == 105);
    CHECK(!rt_size_product(&bytes, SIZE_MAX, 0, SIZE_MAX) && bytes == 0);
    CHECK(!rt_size_product(&bytes, SIZE_MAX, 1, 1) && bytes == SIZE_MAX);
    CHECK(rt_size_product(&bytes, SIZE_MAX, 2, 1));
    CHECK(rt_size_product(&bytes, SIZE_MAX / 2, 2, 2));
    CHECK(rt_size_product(&bytes, (size_t)1 << 32, (size_t)1 << 32, 1));
}

static void test_pages(void)
{
    const size_t sizes[] = {0, 1, 4097, RT_HUGE_PAGE, RT_HUGE_PAGE + 1, 3 * RT_HUGE_PAGE + 5000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t bytes = sizes[i], nonzero = 0;
        unsigned char *block = (unsigned char *)rt_alloc_pages(bytes);
        CHECK(block && (uintptr_t)block % (bytes < RT_HUGE_PAGE ? 64 : RT_HUGE_PAGE) == 0);
        for (size_t k = 0; block && k < bytes; k++)
            nonzero += block[k]++ != 0;
        CHECK_EQ(nonzero, 0);
        rt_free_pages(block, bytes);
    }
    CHECK(!rt_alloc_pages(SIZE_MAX - 4096) && strstr(rt_error_text(), "out of memory"));
    CHECK(!rt_alloc_pages(SIZE_MAX) && strstr(rt_error_text(), "out of memory"));
    rt_free_pages(NULL, 5);
}

int main(void)
{
    test_errors();
    test_size_product();
    test_pages();
    test_ranges();
    test_nested_range();
    CHECK_EQ(rt_check_rounding(), RT_OK);
    double before = rt_now_ms();
    CHECK(rt_now_ms() >= before);
    return check_done();
}
