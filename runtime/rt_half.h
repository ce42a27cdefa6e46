/* SPDX-License-Identifier: 0BSD */
/* f16 and bf16, held as their bits in uint16_t: conversion from and to float, to nearest even.
 * Subnormals are kept; what rounds beyond the largest half becomes infinite (f16 from 65520 on);
 * a NaN stays a NaN of the same sign, made quiet. Equal to the hardware's instructions.
 *
 *     uint16_t h = rt_f16_from_f32(0.1f);      0x2e66
 *     float x = rt_f32_from_f16(h);            0.0999755859375
 *
 * The text is branch-free integer arithmetic and exact float steps, so that loops over arrays
 * are vectorised by gcc and clang alike. A double must not go through float on its way to a half
 * (it would be rounded twice), except where the value is meant to be a float first.
 */
#ifndef AMPC_RT_HALF_H
#define AMPC_RT_HALF_H

#include "rt_base.h"

RT_INLINE uint32_t rt_bits_from_f32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

RT_INLINE float rt_f32_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

RT_INLINE float rt_f32_from_bf16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    uint32_t quiet = (bits & 0x7fffffffu) > 0x7f800000u ? 0x00400000u : 0u;
    return rt_f32_from_bits(bits | quiet);
}

RT_INLINE uint16_t rt_bf16_from_f32(float x)
{
    uint32_t bits = rt_bits_from_f32(x);
    /* Adding 0x7fff, and 1 more if the result's last bit is set, carries exactly when RNE does. */
    uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return (uint16_t)((x != x ? bits | 0x00400000u : rounded) >> 16);
}

RT_INLINE float rt_f32_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, magnitude = h & 0x7fffu;
    /* Exponent and fraction move, the bias grows by 112, and by as much again for infinity and
     * NaN, whose exponent is all ones. Subnormals get the exponent of 2^-14, which is then
     * taken off. */
    uint32_t normal = (magnitude << 13) + (112u << 23);
    uint32_t subnormal = rt_bits_from_f32(rt_f32_from_bits(normal + (1u << 23)) - 0x1p-14f);
    uint32_t above = normal + (magnitude < 0x7c00u ? 0u : 112u << 23);
    above |= magnitude > 0x7c00u ? 0x00400000u : 0u;
    return rt_f32_from_bits(sign | (magnitude < 0x0400u ? subnormal : above));
}

RT_INLINE uint16_t rt_f16_from_f32(float x)
{
    uint32_t bits = rt_bits_from_f32(x);
    uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    /* From 2^-14 on: as for bf16, at 13 bits. Below: adding 0.5 leaves multiples of 2^-24, the
     * f16 subnormals, as the last bits of the sum, rounded to nearest even by the addition. */
    uint32_t normal = (magnitude - (112u << 23) + 0x0fffu + (magnitude >> 13 & 1u)) >> 13;
    uint32_t subnormal = rt_bits_from_f32(rt_f32_from_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t special = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x01ffu) : 0x7c00u;
    uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
    return (uint16_t)(sign | (magnitude < 0x477ff000u ? finite : special));
}

/* The nearest half value, as a float: what strict rounding does after every operation. */
RT_INLINE float rt_round_f16(float x)
{
    return rt_f32_from_f16(rt_f16_from_f32(x));
}

RT_INLINE float rt_round_bf16(float x)
{
    return rt_f32_from_bf16(rt_bf16_from_f32(x));
}

#endif
