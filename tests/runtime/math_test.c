/* rt_math.h: each function against libm in double over the whole range of floats (within 1 ulp),
 * special values, monotony, and the same bits from a vectorised loop as from a single call. */
#include "rt_math.h"

#include "check.h"

#define FUNCTIONS(X)                                                                               \
    X(exp, exp)                                                                                    \
    X(expm1, expm1)                                                                                \
    X(sigmoid, reference_sigmoid)                                                                  \
    X(tanh, tanh)                                                                                  \
    X(erf, erf)                                                                                    \
    X(log, log)                                                                                    \
    X(log1p, log1p)                                                                                \
    X(sqrt, sqrt)                                                                                  \
    X(rsqrt, reference_rsqrt)                                                                      \
    X(sin, sin)                                                                                    \
    X(cos, cos)

static double reference_sigmoid(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double reference_rsqrt(double x)
{
    return 1 / sqrt(x);
}

/* Each function twice: one value at a time, and as a loop that is cloned and vectorised. */
#define DEFINE(name, reference)                                                                    \
    static float one_##name(float x)                                                               \
    {                                                                                              \
        return rt_##name(x);                                                                       \
    }                                                                                              \
    RT_LEAF void all_##name(float *RT_RESTRICT y, const float *RT_RESTRICT x, int64_t n)           \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = rt_##name(x[i]);                                                                \
    }
FUNCTIONS(DEFINE)

typedef struct Function {
    const char *name;
    float (*one)(float x);
    void (*all)(float *RT_RESTRICT y, const float *RT_RESTRICT x, int64_t n);
    double (*reference)(double x);
} Function;

#define ROW(name, reference) {#name, one_##name, all_##name, reference},
static const Function functions[] = {FUNCTIONS(ROW)};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

static int same_value(float a, float b)
{
    return (a != a && b != b) || rt_bits_from_f32(a) == rt_bits_from_f32(b);
}

/* |found - truth| in units of the last place of a float near the truth. */
static double error_in_ulp(float found, double truth)
{
    int exponent;
    frexp(truth, &exponent);
    return fabs((double)found - truth) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

/* Whether found is the truth within 1 ulp, with the right sign; an overflow may come 1 ulp
 * early. */
static int is_close(float found, double truth)
{
    if (truth != truth || found != found)
        return truth != truth && found != found;
    if (signbit(truth) != signbit((double)found))
        return 0;
    if (isinf(truth) || isinf((double)found))
        return fabs((double)found) >= 0x1.fffffep127 && fabs(truth) > 0x1.fffffdp127;
    return error_in_ulp(found, truth) <= 1.0;
}

static void test_sweep(const Function *f)
{
    long wrong = 0;
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 4099) {
        float x = rt_f32_from_bits((uint32_t)bits);
        float y = f->one(x);
        if (!is_close(y, f->reference((double)x)) && wrong++ < 3)
            fprintf(stderr, "%s(%a) is %a\n", f->name, (double)x, (double)y);
    }
    CHECK_EQ(wrong, 0);
}

/* Consecutive floats around places where the method changes sides. */
static void test_seams(const Function *f)
{
    const float seams[] = {0x1p-25f,    0.346573591f, 0.7071068f, 0.785398185f, 0.9f,   1.0f,
                           1.0397208f,  1.41421354f,  4.0f,       9.01091385f,  17.3f,  18.0f,
                           87.3365479f, 88.7228394f,  89.0f,      103.972084f,  104.0f, 0x1p-126f,
                           0x1p-80f,    0x1p23f,      3e38f};
    long wrong = 0;
    for (size_t i = 0; i < sizeof seams / sizeof *seams; i++)
        for (uint32_t d = 0; d < 4000; d++) {
            float x = rt_f32_from_bits(rt_bits_from_f32(seams[i]) - 2000 + d);
            wrong += !is_close(f->one(x), f->reference((double)x));
            wrong += !is_close(f->one(-x), f->reference((double)-x));
        }
    CHECK_EQ(wrong, 0);
}

static void test_loop_equals_call(const Function *f)
{
    enum { COUNT = 1 << 14 };
    static float x[COUNT], y[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        x[i] = rt_f32_from_bits(i % 4 ? i * 262147u : 0x3f000000u + i * 1031u);
    f->all(y, x, COUNT);
    long different = 0;
    for (int i = 0; i < COUNT; i++)
        different += !same_value(y[i], f->one(x[i]));
    CHECK_EQ(different, 0);
}

static void test_monotony(void)
{
    const int growing[] = {0, 1, 2, 3, 4}; /* exp, expm1, sigmoid, tanh, erf */
    long falls = 0;
    for (size_t i = 0; i < sizeof growing / sizeof *growing; i++)
        for (float x = -20.0f; x < 20.0f; x += 0.015625f)
            falls += functions[growing[i]].one(x) > functions[growing[i]].one(x + 0.015625f);
    for (float x = 0x1p-149f; x < 0x1p127f; x *= 1.5f) {
        falls += rt_log(x) > rt_log(x * 1.5f);
        falls += rt_log1p(x) > rt_log1p(x * 1.5f);
        falls += rt_rsqrt(x) < rt_rsqrt(x * 1.5f);
    }
    CHECK_EQ(falls, 0);
}

static void test_special_values(void)
{
    const float inf = rt_inf(), nan = rt_nan();
    const struct {
        float found, wanted;
    } values[] = {
        {rt_exp(0), 1},
        {rt_exp(-inf), 0},
        {rt_exp(inf), inf},
        {rt_exp(nan), nan},
        {rt_exp(-3e38f), 0},
        {rt_exp(3e38f), inf},
        {rt_expm1(-0.0f), -0.0f},
        {rt_expm1(-inf), -1},
        {rt_expm1(inf), inf},
        {rt_expm1(nan), nan},
        {rt_sigmoid(0), 0.5f},
        {rt_sigmoid(-inf), 0},
        {rt_sigmoid(inf), 1},
        {rt_sigmoid(nan), nan},
        {rt_tanh(-0.0f), -0.0f},
        {rt_tanh(-inf), -1},
        {rt_tanh(inf), 1},
        {rt_tanh(nan), nan},
        {rt_erf(-0.0f), -0.0f},
        {rt_erf(-inf), -1},
        {rt_erf(inf), 1},
        {rt_erf(nan), nan},
        {rt_log(1), 0},
        {rt_log(0), -inf},
        {rt_log(-0.0f), -inf},
        {rt_log(-1), nan},
        {rt_log(-inf), nan},
        {rt_log(inf), inf},
        {rt_log(nan), nan},
        {rt_log1p(-0.0f), -0.0f},
        {rt_log1p(-1), -inf},
        {rt_log1p(-2), nan},
        {rt_log1p(inf), inf},
        {rt_log1p(nan), nan},
        {rt_log1p(-inf), nan},
        {rt_sqrt(-0.0f), -0.0f},
        {rt_sqrt(-1), nan},
        {rt_sqrt(inf), inf},
        {rt_sqrt(nan), nan},
        {rt_rsqrt(0), inf},
        {rt_rsqrt(-0.0f), -inf},
        {rt_rsqrt(inf), 0},
        {rt_rsqrt(-1), nan},
        {rt_rsqrt(nan), nan},
        {rt_sin(-0.0f), -0.0f},
        {rt_sin(inf), nan},
        {rt_sin(nan), nan},
        {rt_cos(-0.0f), 1},
        {rt_cos(-inf), nan},
        {rt_cos(nan), nan},
        {rt_max(1, nan), nan},
        {rt_max(nan, 1), nan},
        {rt_max(1, 2), 2},
        {rt_max(2, 1), 2},
        {rt_min(1, nan), nan},
        {rt_min(nan, 1), nan},
        {rt_min(1, 2), 1},
        {rt_min(2, 1), 1},
        {rt_relu(nan), nan},
        {rt_relu(-2), 0},
        {rt_relu(2), 2},
        {rt_clamp(nan, 0, 1), nan},
        {rt_clamp(-5, 0, 1), 0},
        {rt_clamp(5, 0, 1), 1},
        {rt_clamp(0.5f, 0, 1), 0.5f},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (!same_value(values[i].found, values[i].wanted))
            CHECK_EQ(i, -1);
}

/* Every pair of special values has an exact result, libm's; of others, within 1 ulp of the true. */
static void test_pow(void)
{
    const float specials[] = {
        0.0f, 0x1p-149f, 0x1p-127f,  0.5f,       0x1.fffffep-1f, 1.0f,  1.5f,     2.0f,    3.0f,
        4.0f, 0x1p22f,   8388607.5f, 8388609.0f, 0x1p24f,        3e38f, rt_inf(), rt_nan()};
    enum { COUNT = sizeof specials / sizeof *specials };
    long wrong = 0;
    for (int i = 0; i < 4 * COUNT * COUNT; i++) {
        float x = specials[i / 2 % COUNT], y = specials[i / 4 / COUNT];
        x = i & 1 ? -x : x;
        y = i / (2 * COUNT) & 1 ? -y : y;
        if (!is_close(rt_pow(x, y), pow((double)x, (double)y)) && wrong++ < 5)
            fprintf(stderr, "pow(%a, %a) is %a\n", (double)x, (double)y, (double)rt_pow(x, y));
    }
    CHECK_EQ(wrong, 0);
    uint64_t state = 1;
    for (int i = 0; i < 1000000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        /* x anywhere, or near 1; y so that the result spreads over all exponents */
        float x = rt_f32_from_bits((uint32_t)(state >> 33) % 0x7f800000u);
        x = i & 1 ? 1.0f + (float)(int32_t)(state >> 40) * 0x1p-25f : x;
        state = state * 6364136223846793005u + 1442695040888963407u;
        double exponent = ((double)(state >> 11) * 0x1p-53 - 0.5) * 320, log2_x = log2((double)x);
        float y = (float)(exponent / (log2_x != 0 ? log2_x : 1));
        wrong += !is_close(rt_pow(x, y), pow((double)x, (double)y));
    }
    CHECK_EQ(wrong, 0);
}

static void test_integer(void)
{
    CHECK_EQ(rt_integer(-1.75f, INT32_MIN, INT32_MAX), -1);
    CHECK_EQ(rt_integer(2147483520.0f, INT32_MIN, INT32_MAX), 2147483520);
    CHECK_EQ(rt_integer(2147483648.0f, INT32_MIN, INT32_MAX), INT32_MAX);
    CHECK_EQ(rt_integer(-3e9f, INT32_MIN, INT32_MAX), INT32_MIN);
    CHECK_EQ(rt_integer(INFINITY, INT64_MIN, INT64_MAX), INT64_MAX);
    CHECK_EQ(rt_integer(-INFINITY, INT64_MIN, INT64_MAX), INT64_MIN);
    CHECK_EQ(rt_integer(NAN, INT8_MIN, INT8_MAX), 0);
    CHECK_EQ(rt_integer(127.9f, INT8_MIN, INT8_MAX), 127);
    CHECK_EQ(rt_integer(-128.9f, INT8_MIN, INT8_MAX), -128);
    CHECK_EQ(rt_integer(300.0f, 0, UINT8_MAX), 255);
    CHECK_EQ(rt_integer(-0.5f, 0, UINT8_MAX), 0);
}

int main(void)
{
    for (int i = 0; i < FUNCTION_COUNT; i++) {
        test_sweep(&functions[i]);
        test_seams(&functions[i]);
        test_loop_equals_call(&functions[i]);
    }
    test_monotony();
    test_special_values();
    test_pow();
    test_integer();
    return check_done();
}
