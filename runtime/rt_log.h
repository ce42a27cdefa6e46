/* SPDX-License-Identifier: 0BSD */
/* The training log: a table with fixed columns, as tab-separated text with a line of names first,
 * or as JSON lines. A cell is set or absent; an absent one is an empty field in TSV and left out
 * in JSON. Real numbers print with nine digits, which gives an f32 back exactly; JSON has no
 * infinity, so there they are the strings "inf", "-inf" and "nan".
 *
 *     rt_log_open(&log, "run.tsv", RT_LOG_TSV, names, count, false);   step  entry  loss
 *     rt_log_int(&log, 0, 7); rt_log_text(&log, 1, "fit");
 *     rt_log_real(&log, 2, 0.5);
 *     status = rt_log_row(&log);                                       7     fit    0.5
 *     status = rt_log_close(&log);
 */
#ifndef AMPC_RT_LOG_H
#define AMPC_RT_LOG_H
#include "rt_base.h"
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum RtLogFormat { RT_LOG_TSV, RT_LOG_JSONL } RtLogFormat;

typedef enum RtLogKind { RT_LOG_ABSENT, RT_LOG_INT, RT_LOG_REAL, RT_LOG_TEXT } RtLogKind;

typedef struct RtLogCell {
    RtLogKind kind;
    int64_t whole;
    double real;
    const char *text; /* must live until the row is written */
} RtLogCell;

typedef struct RtLog {
    FILE *file; /* NULL: no log is kept, and every call succeeds */
    const char *path;
    RtLogFormat format;
    const char *const *name;
    int columns;
    RtLogCell *cell; /* the row being made */
    bool buffered;   /* set it to write through the C library's buffer: faster, but a crash loses
                        the last rows */
} RtLog;

RT_COLD int rt_log_failed(const RtLog *log)
{
    return rt_fail(RT_SYSTEM, "cannot write %s: %s", log->path, strerror(errno));
}

RT_COLD int rt_log_header(RtLog *log)
{
    for (int k = 0; k < log->columns; k++)
        if (fprintf(log->file, "%s%s", k ? "\t" : "", log->name[k]) < 0)
            return rt_log_failed(log);
    return fputc('\n', log->file) == EOF || fflush(log->file) ? rt_log_failed(log) : RT_OK;
}

/* Does the first line of an old log name our columns? */
RT_COLD bool rt_log_same_header(const RtLog *log, FILE *old)
{
    for (int k = 0; k < log->columns; k++) {
        for (const char *s = log->name[k]; *s; s++)
            if (fgetc(old) != (unsigned char)*s)
                return false;
        if (fgetc(old) != (k + 1 < log->columns ? '\t' : '\n'))
            return false;
    }
    return true;
}

/* Looks at the log we are to continue: *empty when there is nothing yet, *torn when its last line
 * has no end (the program that wrote it was killed). */
RT_COLD int rt_log_inspect(const RtLog *log, bool *empty, bool *torn)
{
    FILE *old = fopen(log->path, "r");
    *empty = true;
    *torn = false;
    if (!old && errno == ENOENT)
        return RT_OK;
    if (!old)
        return rt_fail(RT_SYSTEM, "cannot read %s: %s", log->path, strerror(errno));
    *empty = fgetc(old) == EOF;
    *torn = !*empty && !fseek(old, -1, SEEK_END) && fgetc(old) != '\n';
    rewind(old);
    bool same = *empty || log->format == RT_LOG_JSONL || rt_log_same_header(log, old);
    fclose(old);
    if (!same)
        return rt_fail(RT_USAGE, "%s has other columns than this program logs", log->path);
    return RT_OK;
}

RT_COLD int rt_log_close(RtLog *log)
{
    if (!log->file)
        return RT_OK;
    bool failed = fflush(log->file) || ferror(log->file);
    if (log->file != stdout && fclose(log->file))
        failed = true;
    log->file = NULL;
    free(log->cell);
    log->cell = NULL;
    return failed ? rt_log_failed(log) : RT_OK;
}

/* Opens the log; the names (which must outlive it) fix the columns. With append an old log is
 * continued, if its columns are ours. "-" is standard output. */
RT_COLD int rt_log_open(RtLog *log, const char *path, RtLogFormat format, const char *const *name,
                        int columns, bool append)
{
    bool empty = true, torn = false, console = !strcmp(path, "-");
    int status = RT_OK;
    memset(log, 0, sizeof *log);
    log->path = path;
    log->format = format;
    log->name = name;
    log->columns = columns;
    if (append && !console)
        status = rt_log_inspect(log, &empty, &torn);
    if (status)
        return status;
    log->cell = (RtLogCell *)calloc((size_t)columns, sizeof *log->cell);
    if (!log->cell)
        return rt_fail(RT_SYSTEM, "out of memory");
    log->file = console ? stdout : fopen(path, append ? "a" : "w");
    if (!log->file) {
        free(log->cell);
        log->cell = NULL;
        return rt_fail(RT_SYSTEM, "cannot open %s: %s", path, strerror(errno));
    }
    if (torn && fputc('\n', log->file) == EOF)
        status = rt_log_failed(log);
    if (!status && empty && format == RT_LOG_TSV)
        status = rt_log_header(log);
    if (status)
        rt_log_close(log);
    return status;
}

RT_COLD void rt_log_int(RtLog *log, int column, int64_t value)
{
    if (!log->file)
        return;
    log->cell[column].kind = RT_LOG_INT;
    log->cell[column].whole = value;
}

RT_COLD void rt_log_real(RtLog *log, int column, double value)
{
    if (!log->file)
        return;
    log->cell[column].kind = RT_LOG_REAL;
    log->cell[column].real = value;
}

RT_COLD void rt_log_text(RtLog *log, int column, const char *value)
{
    if (!log->file)
        return;
    log->cell[column].kind = RT_LOG_TEXT;
    log->cell[column].text = value;
}

RT_COLD void rt_log_json_string(FILE *file, const char *s)
{
    fputc('"', file);
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            fprintf(file, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            fprintf(file, "\\u%04x", (unsigned)*s);
        else
            fputc(*s, file);
    fputc('"', file);
}

/* A finite number, or the one spelling each of the others has on every platform. */
RT_COLD void rt_log_print_real(FILE *file, double x, const char *quote)
{
    const char *special = isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
    if (isfinite(x))
        fprintf(file, "%.9g", x);
    else
        fprintf(file, "%s%s%s", quote, special, quote);
}

RT_COLD void rt_log_cell(FILE *file, const RtLogCell *c, bool json)
{
    switch (c->kind) {
    case RT_LOG_ABSENT:
        break;
    case RT_LOG_INT:
        fprintf(file, "%lld", (long long)c->whole);
        break;
    case RT_LOG_REAL:
        rt_log_print_real(file, c->real, json ? "\"" : "");
        break;
    case RT_LOG_TEXT:
        if (json)
            rt_log_json_string(file, c->text);
        else /* a tab or a line break would tear the table */
            for (const char *s = c->text; *s; s++)
                fputc((unsigned char)*s < 0x20 ? ' ' : *s, file);
        break;
    }
}

/* Writes the row and empties its cells for the next. */
RT_COLD int rt_log_row(RtLog *log)
{
    if (!log->file)
        return RT_OK;
    bool json = log->format == RT_LOG_JSONL, first = true;
    if (json)
        fputc('{', log->file);
    for (int k = 0; k < log->columns; k++) {
        RtLogCell *c = &log->cell[k];
        if (json && c->kind == RT_LOG_ABSENT)
            continue;
        if (!first)
            fputc(json ? ',' : '\t', log->file);
        first = false;
        if (json) {
            rt_log_json_string(log->file, log->name[k]);
            fputc(':', log->file);
        }
        rt_log_cell(log->file, c, json);
        c->kind = RT_LOG_ABSENT;
    }
    fputs(json ? "}\n" : "\n", log->file);
    bool failed = (!log->buffered && fflush(log->file)) || ferror(log->file);
    return failed ? rt_log_failed(log) : RT_OK;
}
#endif
