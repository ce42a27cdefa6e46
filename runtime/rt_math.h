/* SPDX-License-Identifier: 0BSD */
/* Float functions that give the same bits everywhere: under every compiler, optimisation level and
 * instruction set, on the CPU and on the GPU. They are made of + - * / sqrtf fmaf and integer
 * steps, each rounded once, and have no branches, so that loops over arrays are vectorised.
 *
 *     y[i] = rt_tanh(x[i]);
 *
 * No result is further than 1 ulp from the true one. The largest error found, over every 13th float
 * and over all of them where it is largest, stands at each function. Subnormal results come
 * gradually. Special values are those of C99's Annex F; a NaN in gives a NaN out (except
 * rt_pow(1, y) and rt_pow(x, 0), which are 1).
 *
 * Method, where nothing else is said: bring the argument into a small range by exact steps, sum a
 * polynomial (minimax, coefficients rounded to float one after the other), and keep what a
 * rounded sum lost in a second float. Both sides of a selection are always computed.
 */
#ifndef AMPC_RT_MATH_H
#define AMPC_RT_MATH_H

#include "rt_base.h"
#include "rt_half.h"

/* ---- comparisons ---- */

RT_INLINE float rt_nan(void)
{
    return rt_f32_from_bits(0x7fc00000u);
}

RT_INLINE float rt_inf(void)
{
    return rt_f32_from_bits(0x7f800000u);
}

/* Largest and smallest; NaN if either is (fmaxf would drop it and hide an overflow). */
RT_INLINE float rt_max(float a, float b)
{
    float larger = a > b ? a : b;
    return a != a ? a : larger;
}

RT_INLINE float rt_min(float a, float b)
{
    float smaller = a < b ? a : b;
    return a != a ? a : smaller;
}

RT_INLINE float rt_clamp(float x, float low, float high)
{
    return rt_min(rt_max(x, low), high);
}

RT_INLINE float rt_relu(float x)
{
    return x < 0.0f ? 0.0f : x;
}

RT_INLINE float rt_abs(float x)
{
    return rt_f32_from_bits(rt_bits_from_f32(x) & 0x7fffffffu);
}

/* The magnitude of x (not negative) with the sign of `sign`. */
RT_INLINE float rt_with_sign(float x, float sign)
{
    return rt_f32_from_bits(rt_bits_from_f32(x) | (rt_bits_from_f32(sign) & 0x80000000u));
}

/* ---- steps shared by the functions below ---- */

/* The number hi + lo, where lo is what rounding to hi lost. */
typedef struct RtTwo {
    float hi, lo;
} RtTwo;

/* a + b without error, for |a| >= |b| or a = 0. */
RT_INLINE RtTwo rt_two_sum(float a, float b)
{
    RtTwo sum;
    sum.hi = a + b;
    sum.lo = b - (sum.hi - a);
    return sum;
}

/* a * b without error. */
RT_INLINE RtTwo rt_two_product(float a, float b)
{
    RtTwo product;
    product.hi = a * b;
    product.lo = fmaf(a, b, -product.hi);
    return product;
}

/* (a.hi + a.lo) * (b.hi + b.lo), to about 2^-46. */
RT_INLINE RtTwo rt_two_times(RtTwo a, RtTwo b)
{
    RtTwo product = rt_two_product(a.hi, b.hi);
    return rt_two_sum(product.hi, product.lo + fmaf(a.hi, b.lo, a.lo * b.hi));
}

/* 2^k for k in -126..127, and 0 for -127; k in two's complement. */
RT_INLINE float rt_power_of_two(uint32_t k)
{
    return rt_f32_from_bits((k + 127u) << 23);
}

/* x * 2^k for k in -252..254, in two steps, so that subnormals and overflow come right. */
RT_INLINE float rt_scaled(float x, uint32_t k)
{
    uint32_t half = ((k + 256u) >> 1) - 128u;
    return x * rt_power_of_two(half) * rt_power_of_two(k - half);
}

/* The integer nearest to a * b, as a float and (in two's complement) in *k. */
RT_INLINE float rt_nearest_product(float a, float b, uint32_t *k)
{
    float shifted = fmaf(a, b, 0x1.8p23f); /* the integer stands in the last bits */
    *k = rt_bits_from_f32(shifted) - 0x4b400000u;
    return shifted - 0x1.8p23f;
}

/* x = k * ln 2 + r.hi + r.lo, |r| < 0.347; for |x| < 2^15. */
RT_INLINE RtTwo rt_exp_reduce(float x, uint32_t *k)
{
    RtTwo r;
    float n = rt_nearest_product(x, 0x1.715476p+0f, k);
    r.hi = fmaf(-n, 0x1.62e43p-1f, x);
    r.lo = n * 0x1.05c61p-29f;
    return r;
}

/* (exp r - 1 - r) / r^2 for |r| < 0.347 */
RT_INLINE float rt_exp_polynomial(float r)
{
    float p = 0x1.a250b8p-13f;
    p = fmaf(p, r, 0x1.6d4ca2p-10f);
    p = fmaf(p, r, 0x1.110ffep-7f);
    p = fmaf(p, r, 0x1.5554e8p-5f);
    p = fmaf(p, r, 0x1.555556p-3f);
    return fmaf(p, r, 0.5f);
}

/* exp(r.hi + r.lo) - 1 - r.hi for |r| < 0.347 */
RT_INLINE float rt_exp_rest(RtTwo r)
{
    float curve = r.hi * r.hi * rt_exp_polynomial(r.hi);
    return curve + fmaf(r.hi + curve, r.lo, r.lo);
}

/* exp(r.hi + r.lo) for |r| < 0.347, to about 2^-28 */
RT_INLINE RtTwo rt_exp_of_reduced(RtTwo r)
{
    RtTwo sum = rt_two_sum(1.0f, r.hi);
    return rt_two_sum(sum.hi, sum.lo + rt_exp_rest(r));
}

/* ---- exponentials ---- */

/* exp(x); 0.77 ulp where the result is subnormal, else 0.61 */
RT_INLINE float rt_exp(float x)
{
    uint32_t k;
    float inside = x < -104.0f ? 0.0f : x > 89.0f ? 0.0f : x;
    RtTwo r = rt_exp_reduce(inside, &k);
    float y = rt_scaled(rt_exp_of_reduced(r).hi, k);
    return x < -104.0f ? 0.0f : x > 89.0f ? rt_inf() : y;
}

/* exp(x) - 1; 0.96 ulp */
RT_INLINE float rt_expm1(float x)
{
    uint32_t k;
    float inside = x < -18.0f ? -18.0f : x > 89.0f ? 89.0f : x;
    RtTwo r = rt_exp_reduce(inside, &k);
    /* 2 * (half * exp(r) - 0.5); what half - 0.5 rounds off goes with the small terms. */
    float half = rt_power_of_two(k - 1u), offset = half - 0.5f;
    float lost = (half - offset) - 0.5f;
    RtTwo sum = rt_two_sum(offset, half * r.hi);
    float y = 2.0f * (sum.hi + (sum.lo + fmaf(half, rt_exp_rest(r), lost)));
    y = x > 89.0f ? rt_inf() : y;
    return rt_abs(x) < 0x1p-25f ? x : y;
}

/* 1 / (1 + exp(-x)); 0.77 ulp */
RT_INLINE float rt_sigmoid(float x)
{
    uint32_t k;
    float magnitude = rt_abs(x), inside = magnitude > 104.0f ? 104.0f : magnitude;
    RtTwo e = rt_exp_of_reduced(rt_exp_reduce(-inside, &k));
    /* One division: 1 / d for x >= 0, e / d for x < 0, where d = 1 + e * 2^k. */
    float scale = (int32_t)k < -100 ? 0.0f : rt_power_of_two(k);
    RtTwo d = rt_two_sum(1.0f, e.hi * scale);
    float d_lo = fmaf(e.lo, scale, d.lo);
    float n_hi = x < 0.0f ? e.hi : 1.0f, n_lo = x < 0.0f ? e.lo : 0.0f;
    float inverse = 1.0f / d.hi, quotient = n_hi * inverse;
    float rest = fmaf(-quotient, d.hi, n_hi) + fmaf(-quotient, d_lo, n_lo);
    float y = fmaf(rest, inverse, quotient);
    return x < 0.0f ? rt_scaled(y, k) : y;
}

/* 0.96 ulp */
RT_INLINE float rt_tanh(float x)
{
    uint32_t k;
    float magnitude = rt_abs(x), z = x * x;
    float p = 0x1.e7671ap-14f;
    p = fmaf(p, z, -0x1.ae8b4ap-11f);
    p = fmaf(p, z, 0x1.8f85e8p-9f);
    p = fmaf(p, z, -0x1.18db6p-7f);
    p = fmaf(p, z, 0x1.64c044p-6f);
    p = fmaf(p, z, -0x1.b9f6dap-5f);
    p = fmaf(p, z, 0x1.11103cp-3f);
    p = fmaf(p, z, -0x1.555552p-2f);
    float below_one = fmaf(magnitude * z, p, magnitude);
    /* 1 - 2 / (exp(2x) + 1); from 9.1 on that is 1. */
    float inside = magnitude > 10.0f ? 10.0f : magnitude;
    RtTwo e = rt_exp_of_reduced(rt_exp_reduce(2.0f * inside, &k));
    float above_one = 1.0f - 2.0f / fmaf(e.hi, rt_power_of_two(k), 1.0f);
    return rt_with_sign(magnitude < 1.0f ? below_one : above_one, x);
}

/* 0.95 ulp */
RT_INLINE float rt_erf(float x)
{
    uint32_t k;
    float magnitude = rt_abs(x), a = magnitude > 4.0f ? 4.0f : magnitude, z = a * a;
    /* erf(a) / a - 1, a polynomial in z */
    float p = 0x1.3d3446p-17f;
    p = fmaf(p, z, 0x1.d159ecp-15f);
    p = fmaf(p, z, -0x1.99825ep-11f);
    p = fmaf(p, z, 0x1.5394e6p-8f);
    p = fmaf(p, z, -0x1.b7f7dap-6f);
    p = fmaf(p, z, 0x1.ce2d3ap-4f);
    p = fmaf(p, z, -0x1.81274p-2f);
    p = fmaf(p, z, 0x1.06eba8p-3f);
    float small = fmaf(a, p, a);
    /* 1 - exp(a q + q0) with a q + q0 = log(1 - erf(a)), a polynomial in a */
    float q = -0x1.5a1e4ap-16f;
    q = fmaf(q, a, 0x1.c1ee22p-12f);
    q = fmaf(q, a, -0x1.0fa648p-8f);
    q = fmaf(q, a, 0x1.9a6fccp-6f);
    q = fmaf(q, a, -0x1.bb1574p-4f);
    q = fmaf(q, a, -0x1.445288p-1f);
    q = fmaf(q, a, -0x1.2124d2p+0f);
    RtTwo product = rt_two_product(a, q);
    RtTwo r = rt_exp_reduce(product.hi, &k);
    r.lo += product.lo + 0x1.5a0dcp-13f;
    float large = fmaf(-rt_exp_of_reduced(r).hi, rt_power_of_two(k), 1.0f);
    return rt_with_sign(a < 0.9f ? small : large, x);
}

/* ---- logarithms ---- */

/* k and m of u = m * 2^k, m from sqrt(1/2) to sqrt(2); for normal u > 0. */
RT_INLINE float rt_split(float u, uint32_t *k)
{
    uint32_t bits = rt_bits_from_f32(u);
    *k = ((bits - 0x3f3504f3u + 0x40000000u) >> 23) - 128u;
    return rt_f32_from_bits(bits - (*k << 23));
}

/* k * ln 2 + log(1 + f) + correction, for 1 + f from sqrt(1/2) to sqrt(2) */
RT_INLINE float rt_log_sum(uint32_t k, float f, float correction)
{
    float n = (float)(int32_t)k, z = f * f;
    float p = 0x1.139ffp-4f;
    p = fmaf(p, f, -0x1.dd8a1ap-4f);
    p = fmaf(p, f, 0x1.e6e266p-4f);
    p = fmaf(p, f, -0x1.fc4104p-4f);
    p = fmaf(p, f, 0x1.233adap-3f);
    p = fmaf(p, f, -0x1.555b7cp-3f);
    p = fmaf(p, f, 0x1.99a478p-3f);
    p = fmaf(p, f, -0x1.000008p-2f);
    p = fmaf(p, f, 0x1.555548p-2f);
    RtTwo sum = rt_two_sum(n * 0x1.62e4p-1f, f); /* the product is exact */
    float rest = fmaf(-0.5f, z, f * z * p) + correction;
    return sum.hi + (sum.lo + fmaf(n, 0x1.7f7d1cp-20f, rest));
}

/* log(x); 0.88 ulp */
RT_INLINE float rt_log(float x)
{
    uint32_t k;
    int subnormal = x < 0x1p-126f;
    float m = rt_split(subnormal ? x * 0x1p23f : x, &k);
    float y = rt_log_sum(subnormal ? k - 23u : k, m - 1.0f, 0.0f);
    float above_zero = x < rt_inf() ? y : x;
    float others = x == 0.0f ? -rt_inf() : rt_nan();
    return x > 0.0f ? above_zero : others;
}

/* log(1 + x); 0.94 ulp */
RT_INLINE float rt_log1p(float x)
{
    uint32_t k;
    float u = 1.0f + x, part = u - x; /* u + lost = 1 + x, whichever is larger */
    float lost = (1.0f - part) + (x - (u - part));
    float m = rt_split(u, &k), f = m - 1.0f;
    float d = lost * ((int32_t)k > 100 ? 0.0f : rt_power_of_two(0u - k));
    /* log(1 + f + d) = log(1 + f) + d / (1 + f); with k = 0, x itself is f + d. */
    float correction = fmaf(-f, fmaf(-f, d, d), d);
    float y = rt_log_sum(k, k == 0u ? x : f, k == 0u ? 0.0f : correction);
    float above = x < rt_inf() ? y : x;
    float others = x == -1.0f ? -rt_inf() : rt_nan();
    y = x > -1.0f ? above : others;
    return rt_abs(x) < 0x1p-25f ? x : y;
}

/* ---- integers ---- */

/* x without its fraction, held within low..high; 0 for NaN. (A conversion that does not fit is
 * undefined in C.) */
RT_INLINE int64_t rt_integer(float x, int64_t low, int64_t high)
{
    if (!(x == x))
        return 0;
    return x >= (float)high ? high : x <= (float)low ? low : (int64_t)x;
}

/* ---- powers ---- */

/* Correctly rounded, as IEEE 754 wants it. */
RT_INLINE float rt_sqrt(float x)
{
    return sqrtf(x);
}

/* 1 / sqrt(x); 0.501 ulp */
RT_INLINE float rt_rsqrt(float x)
{
    int small = x < 0x1p-80f;
    float u = small ? x * 0x1p80f : x;
    float root = sqrtf(u), y = 1.0f / root;
    /* What the root and the quotient lost, to first order. */
    float rest = fmaf(-root, y, 1.0f) - 0.5f * (fmaf(-root, root, u) * y) * y;
    float better = fmaf(y, rest, y) * (small ? 0x1p40f : 1.0f);
    return x > 0.0f ? (x < rt_inf() ? better : y) : y;
}

/* log2(x) to about 2^-40, for x > 0, finite */
RT_INLINE RtTwo rt_log2_two(float x)
{
    uint32_t k;
    int subnormal = x < 0x1p-126f;
    float m = rt_split(subnormal ? x * 0x1p23f : x, &k);
    float n = (float)(int32_t)(subnormal ? k - 23u : k);
    /* log(m) = 2 atanh(s) with s = (m - 1) / (m + 1) = s + s^3 / 3 + s^5 p(s^2) */
    RtTwo divisor = rt_two_sum(m > 1.0f ? m : 1.0f, m > 1.0f ? 1.0f : m), s, inverse_log, c;
    float f = m - 1.0f, inverse = 1.0f / divisor.hi;
    s.hi = f * inverse;
    s.lo = fmaf(-s.hi, divisor.lo, fmaf(-s.hi, divisor.hi, f)) * inverse;
    RtTwo z = rt_two_times(s, s);
    float p = 0x1.908afcp-4f;
    p = fmaf(p, z.hi, 0x1.c63d8p-4f);
    p = fmaf(p, z.hi, 0x1.2493b6p-3f);
    p = fmaf(p, z.hi, 0x1.999998p-3f);
    c = rt_two_sum(0x1.555556p-2f, p * z.hi);
    c.lo += -0x1.555556p-27f;
    RtTwo t = rt_two_times(z, c);
    RtTwo cubic = rt_two_times(s, t);
    RtTwo atanh_s = rt_two_sum(s.hi, cubic.hi);
    atanh_s.lo += s.lo + cubic.lo;
    inverse_log.hi = 0x1.715476p+1f; /* 2 / ln 2 */
    inverse_log.lo = 0x1.4ae0cp-25f;
    RtTwo fraction = rt_two_times(atanh_s, inverse_log);
    RtTwo log2_x = rt_two_sum(n, fraction.hi);
    return rt_two_sum(log2_x.hi, log2_x.lo + fraction.lo);
}

/* x^y as C99's Annex F has it; 0.78 ulp */
RT_INLINE float rt_pow(float x, float y)
{
    float base = rt_abs(x), power = rt_abs(y);
    RtTwo l = rt_log2_two(base), r, ln2;
    /* y * log2(x) = k + rest; beyond +-200 the result is 0 or infinite whatever the rest is. */
    float y_inside = power > 0x1p100f ? rt_with_sign(0x1p100f, y) : y;
    RtTwo e = rt_two_product(y_inside, l.hi);
    float e_lo = fmaf(y_inside, l.lo, e.lo);
    float e_hi = e.hi > 200.0f ? 200.0f : e.hi < -200.0f ? -200.0f : e.hi;
    e_lo = e_hi == e.hi ? e_lo : 0.0f;
    uint32_t k;
    float n = rt_nearest_product(e_hi, 1.0f, &k);
    r = rt_two_sum(e_hi - n, e_lo);
    ln2.hi = 0x1.62e43p-1f;
    ln2.lo = -0x1.05c61p-29f;
    float result = rt_scaled(rt_exp_of_reduced(rt_two_times(r, ln2)).hi, k);

    /* x zero or infinite, y infinite: zero or infinity, 1 when |x| is 1. */
    int up = (base > 1.0f) == (y > 0.0f);
    float extreme = base == 1.0f ? 1.0f : up ? rt_inf() : 0.0f;
    int is_extreme = base == 0.0f || base == rt_inf() || power == rt_inf();
    result = is_extreme ? extreme : result;
    /* A negative base wants an integer; below 2^24 it may be odd. */
    float nearest = power < 0x1p23f ? (power + 0x1p23f) - 0x1p23f : power;
    float half = 0.5f * (power < 0x1p24f ? power : 0.0f);
    float half_nearest = (half + 0x1p23f) - 0x1p23f;
    int negative = (rt_bits_from_f32(x) >> 31) != 0, integer = nearest == power;
    int odd = integer && half_nearest != half;
    result = negative && odd ? -result : result;
    result = x < 0.0f && base != rt_inf() && !integer ? rt_nan() : result;
    result = x != x || y != y ? rt_nan() : result;
    return x == 1.0f || y == 0.0f ? 1.0f : result;
}

/* ---- sine and cosine ---- */

/* |x| = (4 i + *quadrant) * pi/2 + r, |r| <= pi/4, for any finite x: the 24 bits of x times as many
 * bits of 2/pi as matter at its exponent (Payne and Hanek), in integers. */
RT_INLINE RtTwo rt_trig_reduce(float x, uint32_t *quadrant)
{
    static const uint32_t two_over_pi[12] = {0,           0,           0,           0,
                                             0,           0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                             0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
    uint32_t bits = rt_bits_from_f32(x) & 0x7fffffffu, exponent = bits >> 23;
    uint64_t m = (bits & 0x007fffffu) | 0x00800000u;
    uint32_t offset = exponent + 8u, word = offset >> 5, shift = offset & 31u;
    uint64_t w0 = two_over_pi[word], w1 = two_over_pi[word + 1];
    uint64_t w2 = two_over_pi[word + 2], w3 = two_over_pi[word + 3];
    uint64_t a0 = (w0 << 32 | w1) << shift >> 32, a1 = (w1 << 32 | w2) << shift >> 32;
    uint64_t a2 = (w2 << 32 | w3) << shift >> 32;
    /* x * 2/pi modulo 4, in units of 2^-62, plus a half, which makes the top two bits nearest */
    uint64_t turns = ((m * a0) << 32) + m * a1 + ((m * a2) >> 32) + ((uint64_t)1 << 61);
    uint32_t top = (uint32_t)(turns >> 40);
    float high = (float)((int32_t)(top & 0x003fffffu) - 0x00200000) * 0x1p-22f;
    float middle = (float)(int32_t)((uint32_t)(turns >> 16) & 0x00ffffffu) * 0x1p-46f;
    float low = (float)(int32_t)((uint32_t)turns & 0xffffu) * 0x1p-62f;
    RtTwo sum = rt_two_sum(high, middle), half_pi;
    sum = rt_two_sum(sum.hi, sum.lo + low);
    half_pi.hi = 0x1.921fb6p+0f;
    half_pi.lo = -0x1.777a5cp-25f;
    RtTwo r = rt_two_times(sum, half_pi);
    int small = bits <= 0x3f490fdau; /* pi/4 */
    *quadrant = small ? 0u : top >> 22;
    r.hi = small ? rt_f32_from_bits(bits) : r.hi;
    r.lo = small ? 0.0f : r.lo;
    return r;
}

RT_INLINE float rt_sin_of_reduced(RtTwo r)
{
    float z = r.hi * r.hi;
    float p = 0x1.7cd8acp-19f;
    p = fmaf(p, z, -0x1.a05bbap-13f);
    p = fmaf(p, z, 0x1.111176p-7f);
    p = fmaf(p, z, -0x1.555556p-3f);
    return r.hi + fmaf(r.hi * z, p, fmaf(-0.5f * z, r.lo, r.lo));
}

RT_INLINE float rt_cos_of_reduced(RtTwo r)
{
    RtTwo z = rt_two_product(r.hi, r.hi);
    float p = 0x1.99e0e8p-16f;
    p = fmaf(p, z.hi, -0x1.6c0c1ap-10f);
    p = fmaf(p, z.hi, 0x1.55554ap-5f);
    RtTwo sum = rt_two_sum(1.0f, -0.5f * z.hi);
    return sum.hi + (sum.lo + fmaf(z.hi * z.hi, p, fmaf(-0.5f, z.lo, -(r.hi * r.lo))));
}

/* The sine of r plus a number of quadrants. */
RT_INLINE float rt_sin_of_quadrant(RtTwo r, uint32_t quadrant)
{
    float s = rt_sin_of_reduced(r), c = rt_cos_of_reduced(r);
    float y = quadrant & 1u ? c : s;
    return quadrant & 2u ? -y : y;
}

/* 0.73 ulp, for large x too */
RT_INLINE float rt_sin(float x)
{
    uint32_t quadrant;
    RtTwo r = rt_trig_reduce(x, &quadrant);
    float y = rt_sin_of_quadrant(r, quadrant);
    y = x < 0.0f ? -y : y;
    y = x == 0.0f ? x : y;
    return rt_abs(x) < rt_inf() ? y : rt_nan();
}

/* 0.73 ulp, for large x too */
RT_INLINE float rt_cos(float x)
{
    uint32_t quadrant;
    RtTwo r = rt_trig_reduce(x, &quadrant);
    float y = rt_sin_of_quadrant(r, quadrant + 1u);
    return rt_abs(x) < rt_inf() ? y : rt_nan();
}

#endif
