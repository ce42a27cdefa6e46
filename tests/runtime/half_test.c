/* rt_half.h: every half value both ways, all ties and their neighbours, the vectors of the
 * formats' tables, and a sweep of the floats against a slow reference. */
#include "rt_half.h"

#include "check.h"

typedef struct Format {
    int fraction_bits, bias, bits_of_infinity;
    float (*widen)(uint16_t h);
    uint16_t (*narrow)(float x);
} Format;

static float widen_f16(uint16_t h)
{
    return rt_f32_from_f16(h);
}

static uint16_t narrow_f16(float x)
{
    return rt_f16_from_f32(x);
}

static float widen_bf16(uint16_t h)
{
    return rt_f32_from_bf16(h);
}

static uint16_t narrow_bf16(float x)
{
    return rt_bf16_from_f32(x);
}

static const Format f16 = {10, 15, 0x7c00, widen_f16, narrow_f16};
static const Format bf16 = {7, 127, 0x7f80, widen_bf16, narrow_bf16};

/* The value of a finite half, from the definition of the format. The first value too large, with
 * the bits of infinity, comes out as the next power of two, which is what rounding compares
 * with. */
static double half_value(const Format *f, int bits)
{
    int exponent = bits >> f->fraction_bits, fraction = bits & ((1 << f->fraction_bits) - 1);
    int whole = exponent ? fraction + (1 << f->fraction_bits) : fraction;
    return ldexp(whole, (exponent ? exponent : 1) - f->bias - f->fraction_bits);
}

/* The bits of the half nearest to |x|, ties to even, found by bisection. */
static int nearest_half(const Format *f, double magnitude)
{
    int low = 0, high = f->bits_of_infinity;
    if (magnitude >= half_value(f, high))
        return high;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (half_value(f, middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    double below = magnitude - half_value(f, low), above = half_value(f, high) - magnitude;
    return below < above || (below == above && low % 2 == 0) ? low : high;
}

static int is_right(const Format *f, uint32_t bits)
{
    float x = rt_f32_from_bits(bits);
    int sign = bits >> 31 ? 0x8000 : 0, found = f->narrow(x);
    if (x != x) {
        int quiet = 1 << (f->fraction_bits - 1);
        return (found & 0x8000) == sign && (found & 0x7fff) > f->bits_of_infinity && found & quiet;
    }
    return found == (sign | nearest_half(f, fabs((double)x)));
}

static void test_every_half(const Format *f)
{
    long wrong = 0;
    for (int bits = 0; bits < 0x10000; bits++) {
        float x = f->widen((uint16_t)bits);
        int magnitude = bits & 0x7fff, sign = bits >> 15;
        int signs_agree = (int)(rt_bits_from_f32(x) >> 31) == sign;
        int back = f->narrow(x);
        if (magnitude > f->bits_of_infinity)
            wrong += x == x || !signs_agree || back != (bits | 1 << (f->fraction_bits - 1));
        else if (magnitude == f->bits_of_infinity)
            wrong += x != (sign ? -INFINITY : INFINITY) || back != bits;
        else
            wrong += fabs((double)x) != half_value(f, magnitude) || !signs_agree || back != bits;
    }
    CHECK_EQ(wrong, 0);
}

/* Between each half and the next, up to infinity: the tie, and the floats beside it. */
static void test_ties(const Format *f)
{
    long wrong = 0;
    for (int bits = 0; bits < f->bits_of_infinity; bits++) {
        double tie = (half_value(f, bits) + half_value(f, bits + 1)) / 2;
        uint32_t x = rt_bits_from_f32((float)tie);
        for (uint32_t near = x - (x > 0); near <= x + 1; near++)
            wrong += !is_right(f, near) + !is_right(f, near | 0x80000000u);
    }
    CHECK_EQ(wrong, 0);
}

static void test_sweep(const Format *f)
{
    long wrong = 0;
    for (uint32_t bits = 0; bits < 0xffffff00u; bits += 4099)
        wrong += !is_right(f, bits);
    CHECK_EQ(wrong, 0);
}

/* An f16 by another road, quick enough for every 251st float: scaled so that one unit of the
 * result is the last place of a double sum. */
static uint32_t slow_f16(double magnitude)
{
    if (magnitude >= 65520)
        return 0x7c00;
    int exponent = magnitude < 0x1p-14 ? -14 : ilogb(magnitude);
    double units = nearbyint(ldexp(magnitude, 10 - exponent));
    return (uint32_t)units + (uint32_t)(exponent + 14) * 1024;
}

static uint32_t slow_bf16(double magnitude)
{
    if (magnitude >= 0x1.ffp127)
        return 0x7f80;
    int exponent = magnitude < 0x1p-126 ? -126 : ilogb(magnitude);
    double units = nearbyint(ldexp(magnitude, 7 - exponent));
    return (uint32_t)units + (uint32_t)(exponent + 126) * 128;
}

static void test_dense_sweep(void)
{
    long wrong = 0;
    for (uint64_t bits = 0; bits <= 0x7f800000u; bits += 251) {
        float x = rt_f32_from_bits((uint32_t)bits);
        wrong += rt_f16_from_f32(x) != slow_f16((double)x);
        wrong += rt_bf16_from_f32(-x) != (0x8000 | slow_bf16((double)x));
    }
    CHECK_EQ(wrong, 0);
}

static void test_vectors(void)
{
    static const struct {
        double x;
        int f16, bf16;
    } vectors[] = {
        {65504, 0x7bff, 0x4780},
        {65519.996, 0x7bff, 0x4780},
        {65520, 0x7c00, 0x4780},
        {2049, 0x6800, 0x4500},
        {2051, 0x6802, 0x4500},
        {257, 0x5c04, 0x4380},
        {513, 0x6002, 0x4400},
        {1 + 0x1p-11, 0x3c00, 0x3f80},
        {1 + 3 * 0x1p-11, 0x3c02, 0x3f80},
        {0x1p-24, 0x0001, 0x3380},
        {0x1p-25, 0x0000, 0x3300},
        {0x1p-25 * 1.0001, 0x0001, 0x3300},
        {0x1p-14 - 0x1p-25, 0x0400, 0x3880},
        {1e-8, 0x0000, 0x322c},
        {1e-12, 0x0000, 0x2b8d},
        {3e-8, 0x0001, 0x3301},
        {5e-8, 0x0001, 0x3357},
        {6e-8, 0x0001, 0x3381},
        {1e-7, 0x0002, 0x33d7},
        {1e-6, 0x0011, 0x3586},
        {1e-5, 0x00a8, 0x3728},
        {1e-4, 0x068e, 0x38d2},
        {1e-3, 0x1419, 0x3a83},
        {0.9, 0x3b33, 0x3f66},
        {0.999, 0x3bfe, 0x3f80},
        {-1e9, 0xfc00, 0xce6e},
        {-0.0, 0x8000, 0x8000},
        {0x1.fffffep127, 0x7c00, 0x7f80},
        {0x1.fefffep127, 0x7c00, 0x7f7f},
        {0x1.01p0, 0x3c04, 0x3f80},              /* bits 3f808000 */
        {0x1.03p0, 0x3c0c, 0x3f82},              /* bits 3f818000 */
        {1 + 0x1p-11 + 0x1p-40, 0x3c00, 0x3f80}, /* through float: rounded twice */
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        CHECK_EQ(rt_f16_from_f32((float)vectors[i].x), vectors[i].f16);
        CHECK_EQ(rt_bf16_from_f32((float)vectors[i].x), vectors[i].bf16);
    }
    const uint32_t nans[] = {0x7f800001, 0x7fffffff, 0xff800001, 0xffffffff, 0x7fc00000};
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++)
        CHECK(is_right(&f16, nans[i]) && is_right(&bf16, nans[i]));
    CHECK(rt_round_f16(0.1f) == 0.0999755859375f && rt_round_bf16(0.1f) == 0.10009765625f);
}

int main(void)
{
    test_every_half(&f16);
    test_every_half(&bf16);
    test_ties(&f16);
    test_ties(&bf16);
    test_sweep(&f16);
    test_sweep(&bf16);
    test_dense_sweep();
    test_vectors();
    return check_done();
}
