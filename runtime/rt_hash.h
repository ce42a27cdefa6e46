/* SPDX-License-Identifier: 0BSD */
/* XXH64, the 64-bit xxHash, in one call or over pieces. It tells damaged or foreign files from good
 * ones; it is no defence against forgery. The constants and steps are those of xxHash's published
 * specification, and the result is the same on machines of either byte order.
 *
 *     uint64_t h = rt_hash64(data, bytes, 0);
 *
 *     RtHash state;
 *     rt_hash_start(&state, 0);
 *     rt_hash_add(&state, piece, piece_bytes);
 *     h = rt_hash_value(&state);
 */
#ifndef AMPC_RT_HASH_H
#define AMPC_RT_HASH_H
#include "rt_base.h"
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RT_HASH_P1 0x9E3779B185EBCA87u
#define RT_HASH_P2 0xC2B2AE3D27D4EB4Fu
#define RT_HASH_P3 0x165667B19E3779F9u
#define RT_HASH_P4 0x85EBCA77C2B2AE63u
#define RT_HASH_P5 0x27D4EB2F165667C5u

typedef struct RtHash {
    uint64_t lane[4]; /* each takes every fourth word */
    uint64_t seed;
    uint64_t bytes;   /* added so far */
    uint8_t rest[32]; /* the last bytes % 32 of them, not yet in a lane */
} RtHash;

RT_FN uint64_t rt_hash_rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

/* Little-endian words, in a form that compilers make one load of. */
RT_FN uint64_t rt_hash_word32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

RT_FN uint64_t rt_hash_word64(const uint8_t *p)
{
    return rt_hash_word32(p) | rt_hash_word32(p + 4) << 32;
}

RT_FN uint64_t rt_hash_round(uint64_t lane, uint64_t word)
{
    return rt_hash_rotate(lane + word * RT_HASH_P2, 31) * RT_HASH_P1;
}

RT_FN void rt_hash_start(RtHash *h, uint64_t seed)
{
    memset(h, 0, sizeof *h);
    h->seed = seed;
    h->lane[0] = seed + RT_HASH_P1 + RT_HASH_P2;
    h->lane[1] = seed + RT_HASH_P2;
    h->lane[2] = seed;
    h->lane[3] = seed - RT_HASH_P1;
}

/* Feeds whole blocks of 32 bytes to the lanes. */
RT_FN void rt_hash_blocks(RtHash *h, const uint8_t *p, size_t blocks)
{
    for (size_t b = 0; b < blocks; b++, p += 32)
        for (int i = 0; i < 4; i++)
            h->lane[i] = rt_hash_round(h->lane[i], rt_hash_word64(p + 8 * i));
}

RT_FN void rt_hash_add(RtHash *h, const void *data, size_t bytes)
{
    const uint8_t *p = (const uint8_t *)data;
    size_t held = (size_t)(h->bytes % 32);
    if (!bytes)
        return;
    h->bytes += bytes;
    if (held) {
        size_t take = bytes < 32 - held ? bytes : 32 - held;
        memcpy(h->rest + held, p, take);
        p += take;
        bytes -= take;
        if (held + take < 32)
            return;
        rt_hash_blocks(h, h->rest, 1);
    }
    rt_hash_blocks(h, p, bytes / 32);
    memcpy(h->rest, p + bytes / 32 * 32, bytes % 32);
}

/* The hash of everything added so far; more may be added afterwards. */
RT_FN uint64_t rt_hash_value(const RtHash *h)
{
    const uint8_t *p = h->rest;
    int left = (int)(h->bytes % 32);
    uint64_t x = h->seed + RT_HASH_P5;
    if (h->bytes >= 32) {
        x = rt_hash_rotate(h->lane[0], 1) + rt_hash_rotate(h->lane[1], 7) +
            rt_hash_rotate(h->lane[2], 12) + rt_hash_rotate(h->lane[3], 18);
        for (int i = 0; i < 4; i++)
            x = (x ^ rt_hash_round(0, h->lane[i])) * RT_HASH_P1 + RT_HASH_P4;
    }
    x += h->bytes;
    for (; left >= 8; left -= 8, p += 8)
        x = rt_hash_rotate(x ^ rt_hash_round(0, rt_hash_word64(p)), 27) * RT_HASH_P1 + RT_HASH_P4;
    for (; left >= 4; left -= 4, p += 4)
        x = rt_hash_rotate(x ^ rt_hash_word32(p) * RT_HASH_P1, 23) * RT_HASH_P2 + RT_HASH_P3;
    for (; left > 0; left--, p++)
        x = rt_hash_rotate(x ^ *p * RT_HASH_P5, 11) * RT_HASH_P1;
    x = (x ^ x >> 33) * RT_HASH_P2;
    x = (x ^ x >> 29) * RT_HASH_P3;
    return x ^ x >> 32;
}

RT_FN uint64_t rt_hash64(const void *data, size_t bytes, uint64_t seed)
{
    RtHash h;
    rt_hash_start(&h, seed);
    rt_hash_add(&h, data, bytes);
    return rt_hash_value(&h);
}
#endif
