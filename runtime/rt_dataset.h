/* SPDX-License-Identifier: 0BSD */
/* Data sets of a training program. A data set has fields: arrays of one number kind with the same
 * rows, computed once from what a file holds, with every value checked. Its rows are cut into parts
 * (train, test), and batches walk over a part epoch after epoch. The order of rows comes from
 * Philox alone, so a run can go on from {epoch, row} exactly where another stopped.
 *
 *     rt_dataset_start(&digits, "digits", csv.rows);
 *     rt_dataset_field(&digits, "x", RT_KIND_F32, 64, digits_x, &csv);      field 0
 *     rt_dataset_field(&digits, "y", RT_KIND_I32, 1, digits_y, &csv);       field 1
 *     rt_dataset_split(&digits, 0, 2, share, name, part);                   share = {0.8, 0.2}
 *     rt_batches_open(&fit, &part[0], 64, RT_SHUFFLE | RT_DROP_LAST, seed);
 *     while (fit.epoch < epochs) {
 *         int64_t n = rt_batches_next(&fit);
 *         rt_batches_gather(&fit, 0, x);                                    n rows of 64
 *         rt_batches_gather(&fit, 1, y);
 *     }
 *
 * (Each call returns a status.) Rows and elements are counted from 0.
 */
#ifndef AMPC_RT_DATASET_H
#define AMPC_RT_DATASET_H
#include "rt_rng.h"
#include "rt_source.h"
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define RT_MAX_FIELDS 64

/* Element `element` of a row of a field, from the sources that the data set reads. */
typedef double (*RtFieldValue)(const RtSource *from, int64_t row, int64_t element);

typedef struct RtField {
    const char *name;
    RtKind kind;
    int64_t width; /* elements of a row */
    void *data;
} RtField;

typedef struct RtDataset {
    const char *name;
    int64_t rows;
    int fields;
    RtField field[RT_MAX_FIELDS]; /* in the order in which they were added */
} RtDataset;

/* ---- fields ---- */

RT_FN void rt_dataset_start(RtDataset *d, const char *name, int64_t rows)
{
    memset(d, 0, sizeof *d);
    d->name = name;
    d->rows = rows;
}

RT_FN void rt_dataset_free(RtDataset *d)
{
    for (int i = 0; i < d->fields; i++)
        free(d->field[i].data);
    memset(d, 0, sizeof *d);
}

/* Refuses one value: says where it stands and what is wrong with it. */
RT_FN int rt_field_fail(const RtDataset *d, const RtField *f, int64_t i, double x, const char *why)
{
    return rt_fail(RT_BAD_DATA, "dataset %s, field %s, row %lld, element %lld: %.9g %s %s", d->name,
                   f->name, (long long)(i / f->width), (long long)(i % f->width), x, why,
                   rt_kind_name(f->kind));
}

/* Stores x as element i of the whole field; floats must be finite, integers whole and in range. */
RT_FN int rt_field_store(const RtDataset *d, const RtField *f, int64_t i, double x)
{
    static const double least[] = {0, 0, -128, -32768, -2147483648.0, -9007199254740992.0};
    static const double most[] = {1, 255, 127, 32767, 2147483647.0, 9007199254740992.0};
    if (f->kind == RT_KIND_F32 || f->kind == RT_KIND_F64) {
        float rounded = (float)x;
        if (!isfinite(f->kind == RT_KIND_F32 ? (double)rounded : x))
            return rt_field_fail(d, f, i, x, "is not a finite");
        if (f->kind == RT_KIND_F32)
            ((float *)f->data)[i] = rounded;
        else
            ((double *)f->data)[i] = x;
        return RT_OK;
    }
    if (!(x == floor(x)))
        return rt_field_fail(d, f, i, x, "is not an integer, wanted");
    if (x < least[f->kind] || x > most[f->kind])
        return rt_field_fail(d, f, i, x, "does not fit");
    switch (f->kind) {
    case RT_KIND_BOOL:
    case RT_KIND_U8:
        ((uint8_t *)f->data)[i] = (uint8_t)x;
        break;
    case RT_KIND_I8:
        ((int8_t *)f->data)[i] = (int8_t)x;
        break;
    case RT_KIND_I16:
        ((int16_t *)f->data)[i] = (int16_t)x;
        break;
    case RT_KIND_I32:
        ((int32_t *)f->data)[i] = (int32_t)x;
        break;
    case RT_KIND_I64:
        ((int64_t *)f->data)[i] = (int64_t)x;
        break;
    case RT_KIND_F32:
    case RT_KIND_F64:
        break;
    }
    return RT_OK;
}

/* Adds a field and computes all its elements. */
RT_FN int rt_dataset_field(RtDataset *d, const char *name, RtKind kind, int64_t width,
                           RtFieldValue value, const RtSource *from)
{
    RtField f;
    size_t bytes;
    int status = RT_OK;
    f.name = name;
    f.kind = kind;
    f.width = width;
    if (d->fields == RT_MAX_FIELDS)
        return rt_fail(RT_INTERNAL, "dataset %s: more than %d fields", d->name, RT_MAX_FIELDS);
    if (rt_size_product(&bytes, (size_t)d->rows, (size_t)width, rt_kind_bytes(kind)) ||
        bytes > RT_MAX_BYTES || !(f.data = malloc(bytes)))
        return rt_fail(RT_SYSTEM, "dataset %s: not enough memory for field %s", d->name, name);
    for (int64_t row = 0; row < d->rows && !status; row++)
        for (int64_t i = 0; i < width && !status; i++)
            status = rt_field_store(d, &f, row * width + i, value(from, row, i));
    if (status)
        free(f.data);
    else
        d->field[d->fields++] = f;
    return status;
}

/* Class labels: every element of an integer field is at least 0 and below classes. */
RT_FN int rt_dataset_check_classes(const RtDataset *d, int field, int64_t classes)
{
    const RtField *f = &d->field[field];
    RtSource s;
    memset(&s, 0, sizeof s);
    s.data = f->data;
    s.kind = f->kind;
    s.columns = f->width;
    for (int64_t row = 0; row < d->rows; row++)
        for (int64_t i = 0; i < f->width; i++) {
            double x = rt_source_value(&s, row, i);
            if (!(x >= 0 && x < (double)classes))
                return rt_fail(RT_BAD_DATA,
                               "dataset %s, field %s, row %lld: label %.9g is not one of the %lld "
                               "classes 0 to %lld",
                               d->name, f->name, (long long)row, x, (long long)classes,
                               (long long)classes - 1);
        }
    return RT_OK;
}

/* ---- parts ---- */

/* Some rows of a data set, in an order. */
typedef struct RtPart {
    const RtDataset *data;
    const char *name; /* "train" */
    int64_t rows;
    int64_t *row;
} RtPart;

RT_FN void rt_part_free(RtPart *p)
{
    free(p->row);
    memset(p, 0, sizeof *p);
}

/* Makes a part of the rows order[0] .. order[rows - 1], or of first, first + 1 and so on. */
RT_FN int rt_part_make(RtPart *p, const RtDataset *d, const char *name, const int64_t *order,
                       int64_t first, int64_t rows)
{
    memset(p, 0, sizeof *p);
    if (rows < 1)
        return rt_fail(RT_BAD_DATA, "dataset %s: no rows in part %s of %lld rows", d->name, name,
                       (long long)d->rows);
    p->row = (int64_t *)malloc((size_t)rows * sizeof *p->row);
    if (!p->row)
        return rt_fail(RT_SYSTEM, "dataset %s: not enough memory", d->name);
    for (int64_t i = 0; i < rows; i++)
        p->row[i] = order ? order[i] : first + i;
    p->data = d;
    p->name = name;
    p->rows = rows;
    return RT_OK;
}

/* Parts of the sizes given, in the order of the file. */
RT_FN int rt_dataset_cut(const RtDataset *d, int parts, const int64_t *rows,
                         const char *const *name, RtPart *part)
{
    int64_t first = 0;
    int status = RT_OK;
    memset(part, 0, (size_t)parts * sizeof *part);
    for (int i = 0; i < parts && !status; i++) {
        if (rows[i] > d->rows - first)
            status = rt_fail(RT_INTERNAL, "dataset %s: too few rows for its parts", d->name);
        else
            status = rt_part_make(&part[i], d, name[i], NULL, first, rows[i]);
        first += rows[i];
    }
    for (int i = 0; i < parts && status; i++)
        rt_part_free(&part[i]);
    return status;
}

/* The rows that a share is worth, rounded down. A share like 0.29 is a little less than what is
 * written, so what lies that close under an integer counts as it. */
RT_FN int64_t rt_share_rows(int64_t rows, double share)
{
    return (int64_t)floor((double)rows * share * (1 + 1e-12));
}

/* Parts by share: all rows in an order drawn from the seed, cut into as many rows as each share is
 * worth; the last part takes the rest. */
RT_FN int rt_dataset_split(const RtDataset *d, uint64_t seed, int parts, const double *share,
                           const char *const *name, RtPart *part)
{
    int64_t first = 0;
    double sum = 0;
    memset(part, 0, (size_t)parts * sizeof *part);
    for (int i = 0; i < parts; i++) {
        if (!(share[i] > 0 && share[i] <= 1))
            return rt_fail(RT_USAGE, "dataset %s: share %.9g of part %s is not between 0 and 1",
                           d->name, share[i], name[i]);
        sum += share[i];
    }
    if (sum > 1 + 1e-9)
        return rt_fail(RT_USAGE, "dataset %s: the shares of its parts add up to %.9g", d->name,
                       sum);
    int64_t *order = (int64_t *)malloc((size_t)d->rows * sizeof *order);
    if (!order)
        return rt_fail(RT_SYSTEM, "dataset %s: not enough memory", d->name);
    int status = rt_permutation(order, d->rows, seed, 0);
    for (int i = 0; i < parts && !status; i++) {
        int64_t rows = i + 1 < parts ? rt_share_rows(d->rows, share[i]) : d->rows - first;
        status = rt_part_make(&part[i], d, name[i], order + first, 0, rows);
        first += rows;
    }
    for (int i = 0; i < parts && status; i++)
        rt_part_free(&part[i]);
    free(order);
    return status;
}

/* ---- batches ---- */

enum { RT_SHUFFLE = 1, RT_DROP_LAST = 2 }; /* an order for each epoch; only whole steps */

/* A walk over a part, one step's rows at a time. */
typedef struct RtBatches {
    const RtPart *from;
    int64_t step_rows; /* batch times the passes of accumulate */
    int64_t steps;     /* of an epoch */
    int flags;
    uint64_t seed;
    int64_t epoch, row;            /* where the next step begins: what a checkpoint keeps */
    int64_t *order;                /* the rows of epoch `ordered`, if shuffled */
    int64_t ordered;               /* -1: none yet */
    const int64_t *batch;          /* rows of the data set that the last step took, */
    int64_t batch_rows;            /* and how many */
    void *gathered[RT_MAX_FIELDS]; /* room for their values, a field */
} RtBatches;

RT_FN void rt_batches_close(RtBatches *b)
{
    free(b->order);
    for (int i = 0; i < RT_MAX_FIELDS; i++)
        free(b->gathered[i]);
    memset(b, 0, sizeof *b);
}

RT_FN int rt_batches_open(RtBatches *b, const RtPart *from, int64_t step_rows, int flags,
                          uint64_t seed)
{
    memset(b, 0, sizeof *b);
    if (step_rows < 1)
        return rt_fail(RT_INTERNAL, "dataset %s: a step without rows", from->data->name);
    if (flags & RT_DROP_LAST && from->rows < step_rows)
        return rt_fail(RT_BAD_DATA, "%s.%s has %lld rows, fewer than the %lld of a step",
                       from->data->name, from->name, (long long)from->rows, (long long)step_rows);
    b->from = from;
    b->step_rows = step_rows;
    b->steps = from->rows / step_rows + (!(flags & RT_DROP_LAST) && from->rows % step_rows);
    b->flags = flags;
    b->seed = seed;
    b->ordered = -1;
    for (int i = 0; i < from->data->fields; i++) {
        const RtField *f = &from->data->field[i];
        size_t bytes = (size_t)(step_rows * f->width) * rt_kind_bytes(f->kind);
        b->gathered[i] = malloc(bytes);
        if (!b->gathered[i])
            return rt_fail(RT_SYSTEM, "dataset %s: not enough memory", from->data->name);
    }
    if (!(flags & RT_SHUFFLE))
        return RT_OK;
    b->order = (int64_t *)malloc((size_t)from->rows * sizeof *b->order);
    if (!b->order)
        return rt_fail(RT_SYSTEM, "dataset %s: not enough memory", from->data->name);
    return RT_OK;
}

/* Goes to where a checkpoint stopped. */
RT_FN int rt_batches_seek(RtBatches *b, int64_t epoch, int64_t row)
{
    if (epoch < 0 || epoch >= UINT32_MAX || row < 0 || row % b->step_rows ||
        row / b->step_rows >= b->steps)
        return rt_fail(RT_BAD_DATA, "%s.%s has no step at epoch %lld, row %lld",
                       b->from->data->name, b->from->name, (long long)epoch, (long long)row);
    b->epoch = epoch;
    b->row = row;
    return RT_OK;
}

/* Puts the rows of the part into the order of this epoch, by their places in the part. Epoch 0 of
 * rt_permutation is that of splits, so ours are one more. */
RT_FN int rt_batches_shuffle(RtBatches *b)
{
    int status = rt_permutation(b->order, b->from->rows, b->seed, (uint64_t)b->epoch + 1);
    for (int64_t i = 0; i < b->from->rows && !status; i++)
        b->order[i] = b->from->row[b->order[i]];
    b->ordered = status ? -1 : b->epoch;
    return status;
}

/* Takes the next step's rows and moves on; after the last step of an epoch the next one begins.
 * *rows becomes how many there are: step_rows, or fewer in the last step without RT_DROP_LAST. */
RT_FN int rt_batches_next(RtBatches *b, int64_t *rows)
{
    int64_t left = b->from->rows - b->row;
    *rows = 0;
    if (b->order && b->ordered != b->epoch) {
        int status = rt_batches_shuffle(b);
        if (status)
            return status;
    }
    b->batch = (b->order ? b->order : b->from->row) + b->row;
    b->batch_rows = left < b->step_rows ? left : b->step_rows;
    *rows = b->batch_rows;
    b->row += b->step_rows;
    if (b->row / b->step_rows >= b->steps) {
        b->epoch++;
        b->row = 0;
    }
    return RT_OK;
}

/* Copies one field of the rows taken last to out, which has the field's kind and width. */
RT_FN void rt_batches_gather(const RtBatches *b, int field, void *out)
{
    const RtField *f = &b->from->data->field[field];
    size_t bytes = (size_t)f->width * rt_kind_bytes(f->kind);
    for (int64_t i = 0; i < b->batch_rows; i++)
        memcpy((uint8_t *)out + (size_t)i * bytes,
               (const uint8_t *)f->data + (size_t)b->batch[i] * bytes, bytes);
}

/* One field of the rows taken last, in memory of the batches' own. */
RT_FN void *rt_batches_field(const RtBatches *b, int field)
{
    rt_batches_gather(b, field, b->gathered[field]);
    return b->gathered[field];
}
#endif
