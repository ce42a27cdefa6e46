/* SPDX-License-Identifier: 0BSD */
/* Reads a table of numbers, one row a line, plain or as gzip data, into a source of doubles. Every
 * line has the same number of fields and every field is a finite decimal number, rounded correctly
 * whatever the locale says; blanks around it are allowed. Lines end in LF or CRLF; the last may
 * lack it. The first `skip` lines (a heading) are passed over. Anything else is refused with its
 * line and column, both counted from 1 as editors do.
 *
 *     RtSource digits;
 *     int status = rt_csv_read("digits.csv.gz", ',', 0, &digits);
 */
#ifndef AMPC_RT_CSV_H
#define AMPC_RT_CSV_H
#include "rt_inflate.h"
#include "rt_source.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RT_CSV_MAX_BYTES ((size_t)1 << 32) /* of unpacked text */
#define RT_NUMBER_MAX 255                  /* characters of a field */

typedef struct RtCsv {
    const char *path;
    const char *at, *end; /* not yet read */
    char separator;
    int64_t line, columns; /* of the table: columns is that of the first row */
    int64_t first;         /* the line of the first row */
    double *value;
    size_t count, room;
} RtCsv;

/* What a number consists of: digits x 10^exponent, without leading zeros. */
typedef struct RtDecimal {
    char digits[RT_NUMBER_MAX + 1];
    int count;
    int64_t exponent;
    int negative;
} RtDecimal;

/* Splits [sign] digits [. digits] [e [sign] digits], with a digit on a side of the point at least.
 * False if it is something else. */
RT_FN int rt_decimal_split(const char *p, const char *end, RtDecimal *d)
{
    int any = 0, point = 0;
    d->count = 0;
    d->exponent = 0;
    d->negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    for (; p < end && (rt_is_digit(*p) || (*p == '.' && !point)); p++) {
        if (*p == '.') {
            point = 1;
            continue;
        }
        any = 1;
        d->exponent -= point;
        if (d->count || *p != '0')
            d->digits[d->count++] = *p;
    }
    d->digits[d->count] = 0;
    if (!any)
        return 0;
    if (p < end && (*p == 'e' || *p == 'E')) {
        int64_t power = 0;
        int minus = ++p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+'))
            p++;
        if (p == end)
            return 0;
        for (; p < end && rt_is_digit(*p); p++)
            power = power < 100000 ? 10 * power + (*p - '0') : power;
        d->exponent += minus ? -power : power;
    }
    return p == end;
}

/* The nearest double; infinite if there is none. */
RT_FN double rt_decimal_value(const RtDecimal *d)
{
    static const double power[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double x = 0;
    if (d->count <= 15 && d->exponent >= -22 && d->exponent <= 22) {
        /* both factors are exact, so the one operation rounds correctly */
        for (int i = 0; i < d->count; i++)
            x = 10 * x + (d->digits[i] - '0');
        x = d->exponent < 0 ? x / power[-d->exponent] : x * power[d->exponent];
    } else if (d->count) {
        /* no point in it, so strtod is right in every locale */
        char text[RT_NUMBER_MAX + 32];
        snprintf(text, sizeof text, "%se%lld", d->digits, (long long)d->exponent);
        x = strtod(text, NULL);
    }
    return d->negative ? -x : x;
}

/* Fails with the line, the column, what stands there (in printable form), and what is wrong. */
RT_FN int rt_csv_fail(const RtCsv *c, int64_t column, const char *p, const char *end,
                      const char *why)
{
    char found[32];
    size_t n = 0;
    for (; p < end && n < 24; p++)
        found[n++] = *p >= ' ' && *p <= '~' ? *p : '?';
    if (p < end)
        memcpy(found + n, "...", 3), n += 3;
    found[n] = 0;
    return rt_fail(RT_BAD_DATA, "%s: line %lld, column %lld: \"%s\" %s", c->path,
                   (long long)c->line, (long long)column, found, why);
}

RT_FN int rt_csv_push(RtCsv *c, double x)
{
    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 1024;
        double *value = (double *)realloc(c->value, room * sizeof *value);
        if (!value)
            return rt_fail(RT_SYSTEM, "%s: not enough memory", c->path);
        c->value = value;
        c->room = room;
    }
    c->value[c->count++] = x;
    return RT_OK;
}

/* One field of a row. */
RT_FN int rt_csv_field(RtCsv *c, int64_t column, const char *p, const char *end)
{
    RtDecimal d;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (p < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    if (p == end)
        return rt_fail(RT_BAD_DATA, "%s: line %lld, column %lld: empty field", c->path,
                       (long long)c->line, (long long)column);
    if (end - p > RT_NUMBER_MAX)
        return rt_csv_fail(c, column, p, end, "is too long for a number");
    if (!rt_decimal_split(p, end, &d))
        return rt_csv_fail(c, column, p, end, "is not a number");
    double x = rt_decimal_value(&d);
    if (!isfinite(x))
        return rt_csv_fail(c, column, p, end, "is too large for a number");
    return rt_csv_push(c, x);
}

/* The text up to the next line end, which is consumed. */
RT_FN const char *rt_csv_line_end(RtCsv *c)
{
    const char *newline = (const char *)memchr(c->at, '\n', (size_t)(c->end - c->at));
    const char *end = newline ? newline : c->end;
    c->at = newline ? newline + 1 : c->end;
    return end;
}

RT_FN int rt_csv_row(RtCsv *c)
{
    const char *p = c->at, *end = rt_csv_line_end(c);
    int64_t columns = 0;
    if (end > p && end[-1] == '\r')
        end--;
    for (;;) {
        const char *stop = (const char *)memchr(p, c->separator, (size_t)(end - p));
        int status = rt_csv_field(c, ++columns, p, stop ? stop : end);
        if (status)
            return status;
        if (!stop)
            break;
        p = stop + 1;
    }
    if (!c->columns) {
        c->columns = columns;
        c->first = c->line;
    }
    if (columns != c->columns)
        return rt_fail(RT_BAD_DATA, "%s: line %lld has %lld columns, line %lld has %lld", c->path,
                       (long long)c->line, (long long)columns, (long long)c->first,
                       (long long)c->columns);
    return RT_OK;
}

/* Reads a table from memory; path is for messages. */
RT_FN int rt_csv_parse(const char *text, size_t bytes, const char *path, char separator,
                       int64_t skip, RtSource *out)
{
    RtCsv c;
    int status = RT_OK;
    memset(out, 0, sizeof *out);
    memset(&c, 0, sizeof c);
    c.path = path;
    c.at = text;
    c.end = text + bytes;
    c.separator = separator;
    for (; c.at < c.end && !status;) {
        if (c.line++ < skip)
            rt_csv_line_end(&c);
        else
            status = rt_csv_row(&c);
    }
    if (!status && !c.count)
        status = rt_fail(RT_BAD_DATA, "%s: no rows", path);
    if (!status) {
        int64_t shape[2] = {(int64_t)c.count / c.columns, c.columns};
        status = rt_source_shape(out, path, RT_KIND_F64, 2, shape);
    }
    out->data = c.value;
    if (status)
        rt_source_free(out);
    return status;
}

/* Reads the table in the file at path. On failure out is empty. */
RT_FN int rt_csv_read(const char *path, char separator, int64_t skip, RtSource *out)
{
    RtBytes text;
    memset(out, 0, sizeof *out);
    int status = rt_file_read_packed(path, RT_CSV_MAX_BYTES, &text);
    if (status)
        return status;
    status = rt_csv_parse((const char *)text.data, text.bytes, path, separator, skip, out);
    rt_bytes_free(&text);
    return status;
}
#endif
