/* SPDX-License-Identifier: 0BSD */
/* Unpacks deflate (RFC 1951) and gzip (RFC 1952, one member or several) from memory into memory.
 * Whatever the two texts do not allow is an error: wrong checksums, codes that say too much or too
 * little, distances before the start, input that ends early or goes on after the end. Output beyond
 * the caller's limit is an error too, so a small file cannot fill the memory.
 *
 *     RtBytes text = {0};
 *     const char *why = rt_gunzip(file.data, file.bytes, 1 << 20, &text);
 *     if (why)
 *         ...                        "gzip data ends early"; text is empty
 *     rt_bytes_free(&text);
 */
#ifndef AMPC_RT_INFLATE_H
#define AMPC_RT_INFLATE_H
#include "rt_file.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RT_FAST_BITS 10  /* codes up to this long are looked up in one step */
#define RT_CODE_BITS 15  /* the longest code of deflate */
#define RT_MATCH_MAX 258 /* the longest match */
#define RT_NO_MEMORY "not enough memory"

/* One prefix code. A fast entry is symbol << 4 | length, and 0 where the code is longer; longer
 * codes are found by count (how many codes have each length) and symbol (the symbols by code). */
typedef struct RtCode {
    uint16_t fast[1 << RT_FAST_BITS];
    uint16_t count[RT_CODE_BITS + 1];
    uint16_t symbol[288];
} RtCode;

typedef struct RtInflate {
    const uint8_t *in, *end; /* input not yet taken */
    uint64_t bits;           /* taken but not used, the next one lowest */
    unsigned held;           /* how many of bits count */
    uint8_t *out;
    size_t bytes, room; /* written, allocated */
    size_t start;       /* of this member in out: no distance reaches before it */
    size_t limit;       /* of bytes */
    int prefix;         /* stop at the limit, content */
    const char *why;    /* what went wrong first */
    RtCode length, distance;
} RtInflate;

RT_FN int rt_inflate_fail(RtInflate *s, const char *why)
{
    if (!s->why)
        s->why = why;
    return 0;
}

/* A little-endian word, in a form that compilers make one load of. */
RT_FN uint32_t rt_inflate_word(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Takes bytes until at least 56 bits are held or the input ends: enough for one match. */
RT_FN void rt_inflate_refill(RtInflate *s)
{
    if (s->end - s->in >= 8) {
        uint64_t word = rt_inflate_word(s->in) | (uint64_t)rt_inflate_word(s->in + 4) << 32;
        s->bits |= word << s->held;
        s->in += (63 - s->held) >> 3;
        s->held |= 56;
        return;
    }
    while (s->held < 56 && s->in < s->end) {
        s->bits |= (uint64_t)*s->in++ << s->held;
        s->held += 8;
    }
}

RT_FN void rt_inflate_drop(RtInflate *s, unsigned n)
{
    s->bits >>= n;
    s->held -= n;
}

/* The next n <= 16 bits as a number; 0 and s->why when the input ends. */
RT_FN unsigned rt_inflate_take(RtInflate *s, unsigned n)
{
    unsigned x = (unsigned)(s->bits & ((1u << n) - 1));
    if (s->held < n) {
        rt_inflate_refill(s);
        x = (unsigned)(s->bits & ((1u << n) - 1));
        if (s->held < n)
            return (unsigned)rt_inflate_fail(s, "compressed data ends early");
    }
    rt_inflate_drop(s, n);
    return x;
}

/* Makes room for n more bytes of output, or for all that the limit leaves. */
RT_FN int rt_inflate_reserve(RtInflate *s, size_t n)
{
    if (s->out && (s->room - s->bytes >= n || s->room == s->limit))
        return 1;
    size_t room = s->room < s->limit / 2 ? 2 * s->room : s->limit;
    if (room - s->bytes < n)
        room = n < s->limit - s->bytes ? s->bytes + n : s->limit;
    uint8_t *out = (uint8_t *)realloc(s->out, room ? room : 1);
    if (!out)
        return rt_inflate_fail(s, RT_NO_MEMORY);
    s->out = out;
    s->room = room;
    return 1;
}

/* Builds a code from the length of each symbol's. A code must be complete; only a code of a single
 * symbol of one bit may lack the other, and with may_lack a code may have no symbol at all. */
RT_FN int rt_code_build(RtCode *c, const uint8_t *length, int symbols, int may_lack)
{
    uint16_t next[RT_CODE_BITS + 2], place[RT_CODE_BITS + 2];
    int left = 1, longest = 0;
    memset(c->count, 0, sizeof c->count);
    memset(c->fast, 0, sizeof c->fast);
    for (int i = 0; i < symbols; i++)
        c->count[length[i]]++;
    c->count[0] = 0;
    next[1] = place[1] = 0;
    for (int n = 1; n <= RT_CODE_BITS; n++) {
        left = 2 * left - c->count[n];
        if (left < 0)
            return 0;
        if (c->count[n])
            longest = n;
        next[n + 1] = (uint16_t)((next[n] + c->count[n]) << 1);
        place[n + 1] = (uint16_t)(place[n] + c->count[n]);
    }
    if (left && (!may_lack || longest > 1))
        return 0;
    for (int i = 0; i < symbols; i++) {
        unsigned n = length[i];
        if (!n)
            continue;
        unsigned code = next[n]++, mirrored = 0;
        c->symbol[place[n]++] = (uint16_t)i;
        if (n > RT_FAST_BITS)
            continue;
        for (unsigned b = 0; b < n; b++) /* codes come highest bit first, our bits lowest first */
            mirrored |= (code >> b & 1) << (n - 1 - b);
        for (unsigned k = mirrored; k < 1u << RT_FAST_BITS; k += 1u << n)
            c->fast[k] = (uint16_t)((unsigned)i << 4 | n);
    }
    return 1;
}

/* Decodes a symbol whose code is longer than RT_FAST_BITS; -1 and s->why if there is none. */
RT_FN int rt_code_long(RtInflate *s, const RtCode *c)
{
    int code = 0, first = 0, place = 0;
    for (unsigned n = 1; n <= RT_CODE_BITS && n <= s->held; n++) {
        code |= (int)(s->bits >> (n - 1) & 1);
        if (code - first < c->count[n]) {
            rt_inflate_drop(s, n);
            return c->symbol[place + code - first];
        }
        place += c->count[n];
        first = (first + c->count[n]) << 1;
        code <<= 1;
    }
    rt_inflate_fail(s, s->held < RT_CODE_BITS ? "compressed data ends early"
                                              : "compressed data has a code that means nothing");
    return -1;
}

/* The next symbol; s must have been refilled. */
RT_FN int rt_code_next(RtInflate *s, const RtCode *c)
{
    unsigned entry = c->fast[s->bits & ((1u << RT_FAST_BITS) - 1)];
    if (!entry || (entry & 15) > s->held)
        return rt_code_long(s, c);
    rt_inflate_drop(s, entry & 15);
    return (int)(entry >> 4);
}

RT_FN int rt_inflate_full(RtInflate *s)
{
    return s->prefix ? 0 : rt_inflate_fail(s, "more data than expected comes out of it");
}

/* A block without compression: its size, the size's complement, the bytes. */
RT_FN int rt_inflate_stored(RtInflate *s)
{
    rt_inflate_drop(s, s->held & 7);
    unsigned size = rt_inflate_take(s, 16), check = rt_inflate_take(s, 16);
    if (s->why)
        return 0;
    if (size != (check ^ 0xffff))
        return rt_inflate_fail(s, "compressed data has a block of contradictory size");
    s->in -= s->held >> 3; /* whole bytes go back */
    s->bits = 0;
    s->held = 0;
    size_t take = size;
    if (take > s->limit - s->bytes)
        take = s->limit - s->bytes;
    if (take > (size_t)(s->end - s->in))
        return rt_inflate_fail(s, "compressed data ends early");
    if (!rt_inflate_reserve(s, take))
        return 0;
    if (take)
        memcpy(s->out + s->bytes, s->in, take);
    s->in += take;
    s->bytes += take;
    return take == size ? 1 : rt_inflate_full(s);
}

/* Copies n bytes from d bytes back; they may overlap what they become. */
RT_FN void rt_inflate_copy(uint8_t *to, size_t d, unsigned n)
{
    const uint8_t *from = to - d;
    if (d >= n)
        memcpy(to, from, n);
    else
        for (unsigned i = 0; i < n; i++)
            to[i] = from[i];
}

/* The symbols of a compressed block, up to its end. */
RT_FN int rt_inflate_symbols(RtInflate *s)
{
    static const uint16_t length_base[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                             15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                             67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_extra[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                             2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t distance_base[30] = {
        1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
        193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    for (;;) {
        if (s->room - s->bytes < RT_MATCH_MAX && !rt_inflate_reserve(s, RT_MATCH_MAX))
            return 0;
        rt_inflate_refill(s);
        int symbol = rt_code_next(s, &s->length);
        if (symbol < 0)
            return 0;
        if (symbol < 256) {
            if (s->bytes == s->limit)
                return rt_inflate_full(s);
            s->out[s->bytes++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 256)
            return 1;
        if (symbol > 285)
            return rt_inflate_fail(s, "compressed data has a length that means nothing");
        unsigned n = length_base[symbol - 257] + rt_inflate_take(s, length_extra[symbol - 257]);
        symbol = s->why ? -1 : rt_code_next(s, &s->distance);
        if (symbol < 0)
            return 0;
        if (symbol > 29)
            return rt_inflate_fail(s, "compressed data has a distance that means nothing");
        size_t d = distance_base[symbol] + rt_inflate_take(s, symbol < 4 ? 0 : symbol / 2 - 1);
        if (s->why)
            return 0;
        if (d > s->bytes - s->start)
            return rt_inflate_fail(s, "compressed data reaches back before its start");
        int whole = n <= s->limit - s->bytes;
        if (!whole)
            n = (unsigned)(s->limit - s->bytes);
        rt_inflate_copy(s->out + s->bytes, d, n);
        s->bytes += n;
        if (!whole)
            return rt_inflate_full(s);
    }
}

/* The code that RFC 1951 fixes. Two lengths and two distances of it are never used. */
RT_FN void rt_inflate_fixed_codes(RtInflate *s)
{
    uint8_t length[288];
    memset(length, 8, 144);
    memset(length + 144, 9, 112);
    memset(length + 256, 7, 24);
    memset(length + 280, 8, 8);
    rt_code_build(&s->length, length, 288, 0);
    memset(length, 5, 32);
    rt_code_build(&s->distance, length, 32, 0);
}

/* Reads the codes of a block that brings its own. */
RT_FN int rt_inflate_own_codes(RtInflate *s)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                      11, 4,  12, 3, 13, 2, 14, 1, 15};
    const char *bad = "compressed data has an impossible code";
    uint8_t length[320] = {0};
    int lengths = (int)rt_inflate_take(s, 5) + 257, distances = (int)rt_inflate_take(s, 5) + 1;
    int codes = (int)rt_inflate_take(s, 4) + 4;
    if (s->why)
        return 0;
    if (lengths > 286 || distances > 30)
        return rt_inflate_fail(s, bad);
    for (int i = 0; i < codes; i++)
        length[order[i]] = (uint8_t)rt_inflate_take(s, 3);
    if (s->why)
        return 0;
    if (!rt_code_build(&s->length, length, 19, 0))
        return rt_inflate_fail(s, bad);
    memset(length, 0, sizeof length);
    for (int i = 0; i < lengths + distances;) {
        rt_inflate_refill(s);
        int symbol = rt_code_next(s, &s->length), times;
        if (symbol < 0)
            return 0;
        if (symbol < 16) {
            length[i++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16 && !i)
            return rt_inflate_fail(s, bad);
        int value = symbol == 16 ? length[i - 1] : 0;
        if (symbol == 16)
            times = 3 + (int)rt_inflate_take(s, 2);
        else if (symbol == 17)
            times = 3 + (int)rt_inflate_take(s, 3);
        else
            times = 11 + (int)rt_inflate_take(s, 7);
        if (s->why)
            return 0;
        if (times > lengths + distances - i)
            return rt_inflate_fail(s, bad);
        memset(length + i, value, (size_t)times);
        i += times;
    }
    if (!length[256] || !rt_code_build(&s->length, length, lengths, 1) ||
        !rt_code_build(&s->distance, length + lengths, distances, 1))
        return rt_inflate_fail(s, bad);
    return 1;
}

/* One deflate stream, block after block. Afterwards s->in is the first byte behind it. */
RT_FN int rt_inflate_stream(RtInflate *s)
{
    unsigned last, kind;
    s->start = s->bytes;
    do {
        last = rt_inflate_take(s, 1);
        kind = rt_inflate_take(s, 2);
        if (s->why)
            return 0;
        if (kind == 3)
            return rt_inflate_fail(s, "compressed data has a block of unknown kind");
        if (kind == 1)
            rt_inflate_fixed_codes(s);
        if (kind == 2 && !rt_inflate_own_codes(s))
            return 0;
        if (!(kind ? rt_inflate_symbols(s) : rt_inflate_stored(s)))
            return 0;
    } while (!last);
    s->in -= s->held >> 3;
    s->bits = 0;
    s->held = 0;
    return 1;
}

/* CRC-32 of data, eight bytes a step: table[k][b] is what byte b does from k bytes ahead. */
typedef struct RtCrc {
    uint32_t table[8][256];
} RtCrc;

RT_FN void rt_crc_start(RtCrc *c)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t x = b;
        for (int i = 0; i < 8; i++)
            x = x >> 1 ^ (x & 1 ? 0xEDB88320u : 0);
        c->table[0][b] = x;
    }
    for (int b = 0; b < 256; b++)
        for (int k = 1; k < 8; k++)
            c->table[k][b] = c->table[k - 1][b] >> 8 ^ c->table[0][c->table[k - 1][b] & 255];
}

RT_FN uint32_t rt_crc32(const RtCrc *c, const uint8_t *p, size_t bytes)
{
    uint32_t x = 0xffffffffu;
    for (; bytes >= 8; bytes -= 8, p += 8) {
        x ^= rt_inflate_word(p);
        x = c->table[7][x & 255] ^ c->table[6][x >> 8 & 255] ^ c->table[5][x >> 16 & 255] ^
            c->table[4][x >> 24] ^ c->table[3][p[4]] ^ c->table[2][p[5]] ^ c->table[1][p[6]] ^
            c->table[0][p[7]];
    }
    for (; bytes; bytes--)
        x = x >> 8 ^ c->table[0][(x ^ *p++) & 255];
    return ~x;
}

/* Skips the header of a gzip member: magic, method, flags, and what the flags announce. */
RT_FN int rt_gzip_header(RtInflate *s, const RtCrc *crc)
{
    const char *early = "gzip data ends early";
    const uint8_t *p = s->in;
    size_t left = (size_t)(s->end - p), at = 10;
    if (left < 2 || p[0] != 0x1f || p[1] != 0x8b)
        return rt_inflate_fail(s, left ? "not gzip data" : early);
    if (left < 10)
        return rt_inflate_fail(s, early);
    unsigned flags = p[3];
    if (p[2] != 8 || flags & 0xe0)
        return rt_inflate_fail(s, "gzip data of an unknown kind");
    if (flags & 4) { /* an extra field with its size */
        if (left - at < 2 || left - at - 2 < (size_t)(p[at] | p[at + 1] << 8))
            return rt_inflate_fail(s, early);
        at += 2 + (size_t)(p[at] | p[at + 1] << 8);
    }
    for (unsigned text = 8; text <= 16; text *= 2) { /* file name, comment */
        if (!(flags & text))
            continue;
        const uint8_t *nul = at < left ? (const uint8_t *)memchr(p + at, 0, left - at) : NULL;
        if (!nul)
            return rt_inflate_fail(s, early);
        at = (size_t)(nul - p) + 1;
    }
    if (flags & 2) { /* checksum of the header */
        if (left - at < 2)
            return rt_inflate_fail(s, early);
        if ((rt_crc32(crc, p, at) & 0xffff) != (uint32_t)(p[at] | p[at + 1] << 8))
            return rt_inflate_fail(s, "gzip data has a damaged header");
        at += 2;
    }
    s->in += at;
    return 1;
}

RT_FN int rt_gzip_member(RtInflate *s, const RtCrc *crc)
{
    if (!rt_gzip_header(s, crc) || !rt_inflate_stream(s))
        return 0;
    if (s->end - s->in < 8)
        return rt_inflate_fail(s, "gzip data ends early");
    if (rt_inflate_word(s->in) != rt_crc32(crc, s->out + s->start, s->bytes - s->start))
        return rt_inflate_fail(s, "gzip data has a wrong checksum");
    if (rt_inflate_word(s->in + 4) != (uint32_t)(s->bytes - s->start))
        return rt_inflate_fail(s, "gzip data has a wrong size at its end");
    s->in += 8;
    return 1;
}

/* Unpacks data into out. NULL, or what is wrong, and then out is empty. With prefix, the first
 * limit bytes are enough, and what follows them is not looked at. */
RT_FN const char *rt_unpack(const void *data, size_t bytes, size_t limit, int gzip, int prefix,
                            RtBytes *out)
{
    RtInflate *s = (RtInflate *)calloc(1, sizeof *s);
    RtCrc *crc = (RtCrc *)malloc(sizeof *crc);
    const char *why = RT_NO_MEMORY;
    memset(out, 0, sizeof *out);
    if (s && crc) {
        rt_crc_start(crc);
        s->in = (const uint8_t *)data;
        s->end = s->in + bytes;
        s->limit = limit;
        s->prefix = prefix;
        /* deflate makes at most 1032 bytes of one; most files stay below 4 */
        if (rt_inflate_reserve(s, bytes < limit / 4 ? 4 * bytes + 1 : limit)) {
            int more = gzip ? rt_gzip_member(s, crc) : rt_inflate_stream(s);
            while (more && gzip && s->in < s->end)
                more = rt_gzip_member(s, crc);
            if (more && s->in < s->end)
                rt_inflate_fail(s, "something follows the compressed data");
        }
        why = s->why;
    }
    if (!why) {
        out->data = s->out;
        out->bytes = s->bytes;
    } else if (s) {
        free(s->out);
    }
    free(crc);
    free(s);
    return why;
}

RT_FN const char *rt_gunzip(const void *data, size_t bytes, size_t limit, RtBytes *out)
{
    return rt_unpack(data, bytes, limit, 1, 0, out);
}

/* The first limit bytes of the text, or all of it if it is shorter. */
RT_FN const char *rt_gunzip_prefix(const void *data, size_t bytes, size_t limit, RtBytes *out)
{
    return rt_unpack(data, bytes, limit, 1, 1, out);
}

/* The status that goes with a reason from here. */
RT_FN int rt_inflate_status(const char *why)
{
    return !why ? RT_OK : strcmp(why, RT_NO_MEMORY) ? RT_BAD_DATA : RT_SYSTEM;
}

/* Deflate without the frame of gzip. */
RT_FN const char *rt_inflate(const void *data, size_t bytes, size_t limit, RtBytes *out)
{
    return rt_unpack(data, bytes, limit, 0, 0, out);
}

RT_FN int rt_is_gzip(const RtBytes *file)
{
    return file->bytes >= 2 && file->data[0] == 0x1f && file->data[1] == 0x8b;
}

/* The file at path, unpacked if it is gzip data; the text may have up to limit bytes. */
RT_FN int rt_file_read_packed(const char *path, size_t limit, RtBytes *out)
{
    RtBytes packed;
    int status = rt_file_read(path, &packed);
    if (status || !rt_is_gzip(&packed)) {
        *out = packed;
        return status;
    }
    const char *why = rt_gunzip(packed.data, packed.bytes, limit, out);
    rt_bytes_free(&packed);
    if (why)
        return rt_fail(rt_inflate_status(why), "%s: %s", path, why);
    return RT_OK;
}
#endif
