/* SPDX-License-Identifier: 0BSD */
/* Data as a file holds it: numbers of one kind in rows, with a shape. The readers of csv, IDX and
 * npy files fill a source; the fields of a data set are computed from its values. Everything a
 * source holds is exact in a double: readers refuse integers beyond 2^53.
 *
 *     rt_source_value(&image, 7, 0)    the first pixel of the eighth image
 */
#ifndef AMPC_RT_SOURCE_H
#define AMPC_RT_SOURCE_H
#include "rt_base.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RT_MAX_RANK 16
#define RT_MAX_BYTES ((uint64_t)1 << 46)    /* of one array */
#define RT_EXACT_INTEGER ((int64_t)1 << 53) /* up to here every integer is a double */

/* What the elements of an array are. */
typedef enum RtKind {
    RT_KIND_BOOL, /* a byte, 0 or 1 */
    RT_KIND_U8,
    RT_KIND_I8,
    RT_KIND_I16,
    RT_KIND_I32,
    RT_KIND_I64,
    RT_KIND_F32,
    RT_KIND_F64
} RtKind;

typedef struct RtSource {
    void *data;
    RtKind kind;
    int rank;
    int64_t shape[RT_MAX_RANK]; /* rows first */
    int64_t rows, columns;      /* columns: elements of a row, whatever their shape */
} RtSource;

/* In every locale. */
RT_FN int rt_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

RT_FN size_t rt_kind_bytes(RtKind kind)
{
    static const uint8_t bytes[] = {1, 1, 1, 2, 4, 8, 4, 8};
    return bytes[kind];
}

RT_FN const char *rt_kind_name(RtKind kind)
{
    static const char *const name[] = {"bool", "u8", "i8", "i16", "i32", "i64", "f32", "f64"};
    return name[kind];
}

RT_FN void rt_source_free(RtSource *s)
{
    free(s->data);
    memset(s, 0, sizeof *s);
}

/* Sets kind and shape, with counts and sizes checked, and takes no memory yet. */
RT_FN int rt_source_shape(RtSource *s, const char *path, RtKind kind, int rank,
                          const int64_t *shape)
{
    uint64_t elements = 1;
    memset(s, 0, sizeof *s);
    if (rank < 1 || rank > RT_MAX_RANK)
        return rt_fail(RT_BAD_DATA, "%s: %d dimensions, wanted 1 to %d", path, rank, RT_MAX_RANK);
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 1)
            return rt_fail(RT_BAD_DATA, "%s: dimension %d is %lld", path, i, (long long)shape[i]);
        if ((uint64_t)shape[i] > RT_MAX_BYTES / rt_kind_bytes(kind) / elements)
            return rt_fail(RT_BAD_DATA, "%s: its shape has too many elements", path);
        elements *= (uint64_t)shape[i];
        s->shape[i] = shape[i];
    }
    s->kind = kind;
    s->rank = rank;
    s->rows = shape[0];
    s->columns = (int64_t)(elements / (uint64_t)shape[0]);
    return RT_OK;
}

/* Takes the memory for all elements. */
RT_FN int rt_source_allocate(RtSource *s, const char *path)
{
    size_t bytes = (size_t)s->rows * (size_t)s->columns * rt_kind_bytes(s->kind);
    s->data = malloc(bytes);
    if (!s->data)
        return rt_fail(RT_SYSTEM, "%s: not enough memory for %zu bytes", path, bytes);
    return RT_OK;
}

/* Fills the elements from bytes of a file in one of the two byte orders. */
RT_FN void rt_source_decode(RtSource *s, const uint8_t *p, int big_endian)
{
    int64_t n = s->rows * s->columns;
    int size = (int)rt_kind_bytes(s->kind);
    uint8_t *to = (uint8_t *)s->data;
    if (size == 1) {
        memcpy(to, p, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++, p += size, to += size) {
        uint64_t word = 0;
        for (int b = 0; b < size; b++)
            word |= (uint64_t)p[b] << 8 * (big_endian ? size - 1 - b : b);
        uint16_t word2 = (uint16_t)word;
        uint32_t word4 = (uint32_t)word;
        if (size == 2)
            memcpy(to, &word2, 2);
        else if (size == 4)
            memcpy(to, &word4, 4);
        else
            memcpy(to, &word, 8);
    }
}

/* Refuses integers that a double would round, and bytes of bool that are neither 0 nor 1. */
RT_FN int rt_source_check(const RtSource *s, const char *path)
{
    int64_t n = s->rows * s->columns;
    const int64_t *wide = (const int64_t *)s->data;
    const uint8_t *byte = (const uint8_t *)s->data;
    for (int64_t i = 0; s->kind == RT_KIND_I64 && i < n; i++)
        if (wide[i] > RT_EXACT_INTEGER || wide[i] < -RT_EXACT_INTEGER)
            return rt_fail(RT_BAD_DATA, "%s: row %lld: %lld is beyond 2^53", path,
                           (long long)(i / s->columns), (long long)wide[i]);
    for (int64_t i = 0; s->kind == RT_KIND_BOOL && i < n; i++)
        if (byte[i] > 1)
            return rt_fail(RT_BAD_DATA, "%s: row %lld: %d is not a bool", path,
                           (long long)(i / s->columns), byte[i]);
    return RT_OK;
}

/* Element column of a row, both from 0 and inside. */
RT_FN double rt_source_value(const RtSource *s, int64_t row, int64_t column)
{
    int64_t i = row * s->columns + column;
    switch (s->kind) {
    case RT_KIND_BOOL:
    case RT_KIND_U8:
        return ((const uint8_t *)s->data)[i];
    case RT_KIND_I8:
        return ((const int8_t *)s->data)[i];
    case RT_KIND_I16:
        return ((const int16_t *)s->data)[i];
    case RT_KIND_I32:
        return ((const int32_t *)s->data)[i];
    case RT_KIND_I64:
        return (double)((const int64_t *)s->data)[i];
    case RT_KIND_F32:
        return (double)((const float *)s->data)[i];
    case RT_KIND_F64:
        break;
    }
    return ((const double *)s->data)[i];
}

/* For columns(first, last) of a csv file: the file has them. */
RT_FN int rt_source_has_columns(const RtSource *s, const char *path, int64_t last)
{
    if (s->columns >= last)
        return RT_OK;
    return rt_fail(RT_BAD_DATA, "%s: rows have %lld columns, the program reads %lld", path,
                   (long long)s->columns, (long long)last);
}

/* For a field that takes whole rows: a row has as many elements as the field. */
RT_FN int rt_source_has_width(const RtSource *s, const char *path, int64_t width)
{
    if (s->columns == width)
        return RT_OK;
    return rt_fail(RT_BAD_DATA, "%s: rows have %lld elements, the program wants %lld", path,
                   (long long)s->columns, (long long)width);
}
#endif
