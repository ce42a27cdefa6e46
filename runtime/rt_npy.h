/* SPDX-License-Identifier: 0BSD */
/* Reads NumPy's npy files, versions 1 to 3: magic, version, size of the header, the header (a
 * Python dictionary of descr, fortran_order and shape), then the elements, in either byte order:
 * f2 f4 f8 i1 i2 i4 i8 u1 b1, of which f2 becomes f32. Objects, Fortran order of more than one
 * dimension, headers beyond 64 KiB, and files longer or shorter than the shape says are refused.
 * Also writes f32.
 *
 *     RtSource faces;
 *     int status = rt_npy_read("faces.npy", &faces);
 */
#ifndef AMPC_RT_NPY_H
#define AMPC_RT_NPY_H
#include "rt_file.h"
#include "rt_half.h"
#include "rt_source.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RT_NPY_HEADER_MAX 65536

/* The header as read so far, and what it said. */
typedef struct RtNpy {
    const char *path;
    const char *at, *end;
    char descr[16];
    int fortran; /* -1: not seen yet */
    int rank;    /* likewise */
    int64_t shape[RT_MAX_RANK];
} RtNpy;

RT_COLD int rt_npy_bad(const RtNpy *n)
{
    return rt_fail(RT_BAD_DATA, "%s: the npy header is malformed", n->path);
}

/* Skips blanks, then takes text if it stands there. */
RT_COLD int rt_npy_accept(RtNpy *n, const char *text)
{
    size_t length = strlen(text);
    while (n->at < n->end && *n->at == ' ')
        n->at++;
    if ((size_t)(n->end - n->at) < length || memcmp(n->at, text, length))
        return 0;
    n->at += length;
    return 1;
}

/* A Python string without escapes, in either kind of quotes. */
RT_COLD int rt_npy_string(RtNpy *n, char *to, size_t room)
{
    char quote = '\'';
    size_t length = 0;
    if (!rt_npy_accept(n, "'")) {
        quote = '"';
        if (!rt_npy_accept(n, "\""))
            return 0;
    }
    for (; n->at < n->end && *n->at != quote; n->at++) {
        if (*n->at < ' ' || *n->at > '~' || *n->at == '\\' || length + 1 == room)
            return 0;
        to[length++] = *n->at;
    }
    to[length] = 0;
    return rt_npy_accept(n, quote == '"' ? "\"" : "'");
}

/* A tuple of sizes: (), (3,), (3, 4). */
RT_COLD int rt_npy_shape(RtNpy *n)
{
    int more = 1;
    if (!rt_npy_accept(n, "("))
        return 0;
    for (n->rank = 0; !rt_npy_accept(n, ")"); n->rank++) {
        const char *start = n->at;
        int64_t size = 0;
        if (!more || n->rank == RT_MAX_RANK)
            return 0;
        for (; n->at < n->end && rt_is_digit(*n->at); n->at++) {
            if (size > (int64_t)RT_MAX_BYTES)
                return 0;
            size = 10 * size + (*n->at - '0');
        }
        if (n->at == start)
            return 0;
        n->shape[n->rank] = size;
        more = rt_npy_accept(n, ",");
    }
    return n->rank != 1 || more; /* (3) is a number in brackets */
}

/* One key with its value; each key may come once. */
RT_COLD int rt_npy_entry(RtNpy *n)
{
    char key[16];
    if (!rt_npy_string(n, key, sizeof key) || !rt_npy_accept(n, ":"))
        return 0;
    if (!strcmp(key, "descr") && !n->descr[0])
        return rt_npy_string(n, n->descr, sizeof n->descr);
    if (!strcmp(key, "shape") && n->rank < 0)
        return rt_npy_shape(n);
    if (strcmp(key, "fortran_order") || n->fortran >= 0)
        return 0;
    n->fortran = rt_npy_accept(n, "True");
    return n->fortran || rt_npy_accept(n, "False");
}

RT_COLD int rt_npy_dictionary(RtNpy *n)
{
    int more = 1;
    if (!rt_npy_accept(n, "{"))
        return 0;
    while (!rt_npy_accept(n, "}")) {
        if (!more || !rt_npy_entry(n))
            return 0;
        more = rt_npy_accept(n, ",");
    }
    return rt_npy_accept(n, "\n") && n->at == n->end && n->descr[0] && n->fortran >= 0 &&
           n->rank >= 0;
}

/* The kind that a descr like "<f4" means; *half is set for f2, whose elements have two bytes. */
RT_COLD int rt_npy_kind(const RtNpy *n, RtKind *kind, int *half)
{
    static const struct {
        char text[3];
        uint8_t kind;
    } kinds[] = {{"b1", RT_KIND_BOOL}, {"u1", RT_KIND_U8},  {"i1", RT_KIND_I8},
                 {"i2", RT_KIND_I16},  {"i4", RT_KIND_I32}, {"i8", RT_KIND_I64},
                 {"f2", RT_KIND_F32},  {"f4", RT_KIND_F32}, {"f8", RT_KIND_F64}};
    const char *d = n->descr;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (!strchr("<>|", d[0]) || strcmp(d + 1, kinds[k].text) || (d[0] == '|' && d[2] != '1'))
            continue;
        *kind = (RtKind)kinds[k].kind;
        *half = !strcmp(d + 1, "f2");
        return RT_OK;
    }
    return rt_fail(RT_BAD_DATA, "%s: elements of type '%s' cannot be read", n->path, d);
}

/* Fills f32 elements from f16 ones. */
RT_COLD void rt_npy_widen(RtSource *s, const uint8_t *p, int big_endian)
{
    float *to = (float *)s->data;
    for (int64_t i = 0; i < s->rows * s->columns; i++, p += 2)
        to[i] = rt_f32_from_f16((uint16_t)(big_endian ? p[0] << 8 | p[1] : p[1] << 8 | p[0]));
}

/* Everything behind the header's size: header bytes of header, then the elements. */
RT_COLD int rt_npy_body(const uint8_t *p, size_t bytes, size_t header, const char *path,
                        RtSource *out)
{
    RtKind kind = RT_KIND_F32;
    int half = 0;
    RtNpy n;
    memset(&n, 0, sizeof n);
    n.path = path;
    n.at = (const char *)p;
    n.end = n.at + header;
    n.fortran = n.rank = -1;
    if (!rt_npy_dictionary(&n))
        return rt_npy_bad(&n);
    int status = rt_npy_kind(&n, &kind, &half);
    if (status)
        return status;
    if (n.fortran && n.rank > 1)
        return rt_fail(RT_BAD_DATA, "%s: is in Fortran order; save it with numpy.ascontiguousarray",
                       path);
    status = rt_source_shape(out, path, kind, n.rank, n.shape);
    if (status)
        return status;
    size_t want = (size_t)(out->rows * out->columns) * (half ? 2 : rt_kind_bytes(kind));
    if (bytes - header != want)
        return rt_fail(RT_BAD_DATA, "%s: %zu bytes of elements, its shape needs %zu", path,
                       bytes - header, want);
    status = rt_source_allocate(out, path);
    if (status)
        return status;
    if (half)
        rt_npy_widen(out, p + header, n.descr[0] == '>');
    else
        rt_source_decode(out, p + header, n.descr[0] == '>');
    return rt_source_check(out, path);
}

/* Reads a file from memory; path is for messages. On failure out is empty. */
RT_COLD int rt_npy_parse(const uint8_t *p, size_t bytes, const char *path, RtSource *out)
{
    memset(out, 0, sizeof *out);
    if (bytes < 12 || memcmp(p, "\x93NUMPY", 6))
        return rt_fail(RT_BAD_DATA, "%s: not an npy file", path);
    if (p[6] < 1 || p[6] > 3 || p[7])
        return rt_fail(RT_BAD_DATA, "%s: npy version %d.%d is unknown", path, p[6], p[7]);
    size_t start = p[6] == 1 ? 10 : 12, header = (size_t)(p[8] | p[9] << 8);
    if (p[6] > 1)
        header |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (header > RT_NPY_HEADER_MAX)
        return rt_fail(RT_BAD_DATA, "%s: its header has %zu bytes, more than %d", path, header,
                       RT_NPY_HEADER_MAX);
    if (header > bytes - start)
        return rt_fail(RT_BAD_DATA, "%s: ends inside its header", path);
    int status = rt_npy_body(p + start, bytes - start, header, path, out);
    if (status)
        rt_source_free(out);
    return status;
}

/* Reads the file at path. On failure out is empty. */
RT_COLD int rt_npy_read(const char *path, RtSource *out)
{
    RtBytes file;
    memset(out, 0, sizeof *out);
    int status = rt_file_read(path, &file);
    if (status)
        return status;
    status = rt_npy_parse(file.data, file.bytes, path, out);
    rt_bytes_free(&file);
    return status;
}

/* Writes an array of f32 so that the file is complete or not there. */
RT_COLD int rt_npy_write(const char *path, const float *data, int rank, const int64_t *shape)
{
    static const uint16_t one = 1;
    char header[128 + 24 * RT_MAX_RANK];
    size_t n = 10, elements = 1;
    if (rank < 0 || rank > RT_MAX_RANK)
        return rt_fail(RT_INTERNAL, "%s: %d dimensions", path, rank);
    n += (size_t)snprintf(header + n, sizeof header - n,
                          "{'descr': '%cf4', 'fortran_order': False, 'shape': (",
                          *(const uint8_t *)&one ? '<' : '>');
    for (int i = 0; i < rank; i++) {
        n += (size_t)snprintf(header + n, sizeof header - n, i && i + 1 == rank ? "%lld" : "%lld, ",
                              (long long)shape[i]);
        elements *= (size_t)shape[i];
    }
    n += (size_t)snprintf(header + n, sizeof header - n, "), }");
    while ((n + 1) % 64) /* the elements begin at a multiple of 64 */
        header[n++] = ' ';
    header[n++] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((n - 10) & 255);
    header[9] = (char)((n - 10) >> 8);
    RtWriter w;
    int status = rt_writer_open(&w, path);
    if (!status)
        status = rt_writer_add(&w, header, n);
    if (!status)
        status = rt_writer_add(&w, data, elements * sizeof *data);
    return rt_writer_close(&w, status);
}
#endif
