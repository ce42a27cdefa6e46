/* rt_rng.h: Philox against its published vectors, the mapping of elements to words, the range
 * and moments of the numbers, initialisers, and permutations. */
#include "rt_rng.h"

#include "check.h"

static void check_philox(uint64_t seed, uint32_t stream, uint32_t step, uint64_t block, uint32_t w0,
                         uint32_t w1, uint32_t w2, uint32_t w3)
{
    uint32_t word[4];
    rt_philox(seed, stream, step, block, word);
    CHECK(word[0] == w0 && word[1] == w1 && word[2] == w2 && word[3] == w3);
}

/* The known answers of Random123's philox4x32-10. */
static void test_known_answers(void)
{
    check_philox(0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8);
    check_philox(UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
                 0x6d5451fd);
    check_philox(0x299f31d0a4093822, 0x13198a2e, 0x03707344, 0x85a308d3243f6a88, 0xd16cfe09,
                 0x94fdcceb, 0x5001e420, 0x24126ea1);
}

static void test_elements(void)
{
    uint32_t word[4];
    rt_philox(7, 8, 9, 5, word);
    for (uint64_t i = 0; i < 4; i++)
        CHECK(rt_uniform(7, 8, 9, 20 + i) == (float)(word[i] >> 8) / 16777216.0f);
    const double two_pi = 6.283185307179586;
    CHECK(rt_normal(7, 8, 9, 23) == rt_sqrt(-2.0f * rt_log(1.0f - rt_uniform(7, 8, 9, 22))) *
                                        rt_sin(rt_uniform(7, 8, 9, 23) * (float)two_pi));
    double radius = sqrt(-2 * log(1 - (double)rt_uniform(7, 8, 9, 22)));
    double angle = two_pi * (double)rt_uniform(7, 8, 9, 23);
    /* Each factor is within about 2 ulp. */
    CHECK(fabs((double)rt_normal(7, 8, 9, 22) - radius * cos(angle)) < 5 * 0x1p-23);
    CHECK(fabs((double)rt_normal(7, 8, 9, 23) - radius * sin(angle)) < 5 * 0x1p-23);
}

static void test_extremes(void)
{
    float pair[2];
    CHECK(rt_uniform_of_word(0) == 0.0f && rt_uniform_of_word(UINT32_MAX) == 1.0f - 0x1p-24f);
    rt_normal_of_words(UINT32_MAX, 0, pair); /* the largest radius: sqrt(48 log 2) */
    CHECK(pair[0] > 5.76f && pair[0] < 5.77f && pair[1] == 0.0f);
    rt_normal_of_words(0, 0x80000000u, pair);
    CHECK(pair[0] == 0.0f && pair[1] == 0.0f);
}

/* Filled arrays hold the single draws, whatever the ranges; their moments lie within 5 deviations
 * of what independent draws would have. */
static void test_fill(void)
{
    enum { COUNT = 40000 };
    static float x[COUNT], y[COUNT];
    int64_t different = 0;
    RT_FOR(lo, hi, COUNT, 7777, rt_fill_uniform(x, lo, hi, -2.0f, 3.0f, 1, 2, 3));
    RT_FOR(lo, hi, COUNT, 7777, rt_fill_normal(y, lo, hi, 1.0f, 0.5f, 1, 2, 3));
    rt_fill_uniform(x, 9, 11, -2.0f, 3.0f, 1, 2, 3); /* in the middle of blocks */
    rt_fill_uniform(x, 6, 2055, -2.0f, 3.0f, 1, 2, 3);
    rt_fill_normal(y, 9, 11, 1.0f, 0.5f, 1, 2, 3);
    rt_fill_normal(y, 7, 2061, 1.0f, 0.5f, 1, 2, 3);
    double sum = 0, square = 0, normal_sum = 0, normal_square = 0;
    for (int i = 0; i < COUNT; i++) {
        float u = rt_uniform(1, 2, 3, (uint64_t)i), z = rt_normal(1, 2, 3, (uint64_t)i);
        different += x[i] != -2.0f + 5.0f * u || y[i] != 1.0f + 0.5f * z;
        sum += (double)u - 0.5;
        square += ((double)u - 0.5) * ((double)u - 0.5);
        normal_sum += (double)z;
        normal_square += (double)z * (double)z;
    }
    CHECK_EQ(different, 0);
    CHECK(fabs(sum) < 5 * sqrt(COUNT / 12.0));
    CHECK(fabs(square - COUNT / 12.0) < 5 * sqrt(COUNT / 180.0));
    CHECK(fabs(normal_sum) < 5 * sqrt(1.0 * COUNT));
    CHECK(fabs(normal_square - COUNT) < 5 * sqrt(2.0 * COUNT));
}

static void check_orthogonal(int64_t rows, int64_t cols)
{
    static float x[64 * 64];
    const float gain = 1.5f;
    CHECK_EQ(rt_fill_orthogonal(x, rows, cols, gain, 1, 2), RT_OK);
    int tall = rows > cols;
    int64_t count = tall ? cols : rows, length = tall ? rows : cols;
    double worst = 0;
    for (int64_t a = 0; a < count; a++)
        for (int64_t b = 0; b < count; b++) {
            double product = 0;
            for (int64_t i = 0; i < length; i++)
                product += (double)(tall ? x[i * cols + a] : x[a * cols + i]) *
                           (double)(tall ? x[i * cols + b] : x[b * cols + i]);
            worst = fmax(worst, fabs(product - (a == b ? 2.25 : 0)));
        }
    CHECK(worst < 2.25 * 0x1p-22); /* each element is rounded to float once */
}

static void test_matrices(void)
{
    check_orthogonal(13, 40);
    check_orthogonal(40, 13);
    check_orthogonal(24, 24);
    check_orthogonal(1, 1);
    float eye[6];
    rt_fill_eye(eye, 2, 3);
    CHECK(eye[0] == 1 && eye[1] == 0 && eye[2] == 0 && eye[3] == 0 && eye[4] == 1 && eye[5] == 0);
}

static void test_permutation(void)
{
    enum { COUNT = 1000 };
    int64_t order[COUNT], other[COUNT];
    int seen[COUNT] = {0};
    CHECK_EQ(rt_permutation(order, COUNT, 3, 1), RT_OK);
    CHECK_EQ(rt_permutation(other, COUNT, 3, 2), RT_OK);
    int64_t unsorted = 0, unseen = 0, same = 0;
    for (int i = 0; i < COUNT; i++) {
        seen[order[i]] = 1;
        same += order[i] == other[i];
        unsorted += i && rt_shuffle_key(3, 1, (uint64_t)order[i - 1]) >
                             rt_shuffle_key(3, 1, (uint64_t)order[i]);
    }
    for (int i = 0; i < COUNT; i++)
        unseen += !seen[i];
    CHECK_EQ(unsorted, 0);
    CHECK_EQ(unseen, 0);
    CHECK(same < 10); /* 1 expected */
    CHECK_EQ(rt_permutation(order, 0, 3, 1), RT_OK);
    CHECK(rt_permutation(order, 1, 3, 1) == RT_OK && order[0] == 0);
}

int main(void)
{
    test_known_answers();
    test_elements();
    test_extremes();
    test_fill();
    test_matrices();
    test_permutation();
    CHECK(rt_stream("") == 0x811c9dc5u && rt_stream("foobar") == 0xbf9cf968u);
    return check_done();
}
