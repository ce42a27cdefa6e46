/* rt_sum.h: sums and norms against the order written out element by element, the folds, and norms
 * whose squares overflow or underflow a float. */
#include "rt_sum.h"

#include "check.h"

enum { COUNT = 3 * RT_CHUNK + 45 };
static float values[COUNT];

static void fill(float scale)
{
    uint32_t state = 1;
    for (int i = 0; i < COUNT; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = ((float)(int32_t)(state >> 8) - 0x1p23f) * scale;
    }
}

/* The definition: lane j of the chunk that begins at x, for n elements. */
static float lane_sum(const float *x, int64_t n, int lane)
{
    float sum = 0;
    for (int64_t i = lane; i < n; i += RT_LANES)
        sum += x[i];
    return sum;
}

static float sum_by_definition(const float *x, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i += 4096) {
        int64_t count = n - i < 4096 ? n - i : 4096;
        float lane[32];
        for (int j = 0; j < 32; j++)
            lane[j] = lane_sum(x + i, count, j);
        for (int j = 0; j < 16; j++)
            lane[j] = lane[j] + lane[j + 16];
        for (int j = 0; j < 8; j++)
            lane[j] = lane[j] + lane[j + 8];
        for (int j = 0; j < 4; j++)
            lane[j] = lane[j] + lane[j + 4];
        sum += (lane[0] + lane[2]) + (lane[1] + lane[3]);
    }
    return sum;
}

static void test_sums(void)
{
    const int64_t counts[] = {0, 1, 31, 32, 33, 100, RT_CHUNK - 1, RT_CHUNK, RT_CHUNK + 1, COUNT};
    fill(0x1p-20f);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        CHECK(rt_sum(values, counts[i]) == sum_by_definition(values, counts[i]));
    /* The order matters for these values, or the checks above would prove nothing. */
    float in_order = 0;
    for (int i = 0; i < COUNT; i++)
        in_order += values[i];
    CHECK(in_order != rt_sum(values, COUNT));
}

static void test_folds(void)
{
    float lane[RT_LANES];
    for (int nan_at = -1; nan_at < RT_LANES; nan_at++) {
        for (int j = 0; j < RT_LANES; j++)
            lane[j] = j == nan_at ? rt_nan() : (float)(j * 7 % 32);
        float largest = rt_fold32_max(lane);
        CHECK(nan_at < 0 ? largest == 31 : largest != largest);
        for (int j = 0; j < RT_LANES; j++)
            lane[j] = j == nan_at ? rt_nan() : (float)(j * 7 % 32);
        float smallest = rt_fold32_min(lane);
        CHECK(nan_at < 0 ? smallest == 0 : smallest != smallest);
    }
}

/* The norm of n values; *nonfinite tells whether one is infinite or NaN. */
static double norm(const float *x, int64_t n, int *nonfinite)
{
    double chunk[4] = {0};
    *nonfinite = rt_squares_f32(chunk, x, n, 0, rt_chunk_count(n));
    return sqrt(rt_add_chunks(chunk, rt_chunk_count(n)));
}

/* Against double, which is exact enough; n squares of equal sign, summed in lanes of 128, are off
 * by at most 133 roundings, half of that in the norm. */
static void test_norms(void)
{
    const float scales[] = {0x1p-149f, 0x1p-140f, 0x1p-100f, 0x1p-83f, 0x1p-70f,
                            1.0f,      0x1p30f,   0x1p40f,   0x1p60f,  0x1p100f};
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++) {
        fill(scales[i]);
        double squares = 0;
        for (int k = 0; k < COUNT; k++)
            squares += (double)values[k] * (double)values[k];
        int nonfinite;
        double found = norm(values, COUNT, &nonfinite);
        CHECK(fabs(found / sqrt(squares) - 1) < 67 * 0x1p-24 && !nonfinite);
    }
    const float large[] = {2e19f, 2e19f}, one[] = {3.0f, rt_inf()}, two[] = {rt_nan(), 4.0f};
    const float zero[] = {0.0f, -0.0f};
    int nonfinite;
    CHECK(fabs(norm(large, 2, &nonfinite) / 2.8284271247461903e19 - 1) < 0x1p-24 && !nonfinite);
    CHECK(norm(one, 2, &nonfinite) > 1e300 && nonfinite);
    norm(two, 2, &nonfinite);
    CHECK(nonfinite);
    CHECK(norm(zero, 2, &nonfinite) == 0 && !nonfinite);
}

/* Half inputs give what their floats give, and one bad element is found wherever it is. */
static void test_halves(void)
{
    static uint16_t f16[COUNT], bf16[COUNT];
    static float wide_f16[COUNT], wide_bf16[COUNT];
    double a[4], b[4];
    fill(0x1p-18f);
    for (int i = 0; i < COUNT; i++) {
        f16[i] = rt_f16_from_f32(values[i]);
        bf16[i] = rt_bf16_from_f32(values[i]);
        wide_f16[i] = rt_f32_from_f16(f16[i]);
        wide_bf16[i] = rt_f32_from_bf16(bf16[i]);
    }
    CHECK(!rt_squares_f16(a, f16, COUNT, 0, 4) && !rt_squares_f32(b, wide_f16, COUNT, 0, 4));
    CHECK(!memcmp(a, b, sizeof a) && a[3] > 0);
    CHECK(!rt_squares_bf16(a, bf16, COUNT, 0, 4) && !rt_squares_f32(b, wide_bf16, COUNT, 0, 4));
    CHECK(!memcmp(a, b, sizeof a));
    for (int i = 0; i < COUNT; i += 611) {
        uint16_t kept16 = f16[i], kept_b = bf16[i];
        f16[i] = 0x7c00;
        bf16[i] = 0xff80;
        CHECK(rt_squares_f16(a, f16, COUNT, 0, 4) && rt_squares_bf16(a, bf16, COUNT, 0, 4));
        f16[i] = kept16;
        bf16[i] = kept_b;
    }
}

int main(void)
{
    test_sums();
    test_folds();
    test_norms();
    test_halves();
    return check_done();
}
