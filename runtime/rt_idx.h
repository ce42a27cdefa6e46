/* SPDX-License-Identifier: 0BSD */
/* Reads IDX files, the form of MNIST and its kin, plain or as gzip data: two zero bytes, a code of
 * the element type, the number of dimensions, each dimension as 32 bits, then the elements, all of
 * it big-endian. A file is as long as its header says, to the byte; of gzip data no more than that
 * is unpacked.
 *
 *     RtIdxFolder fashion;
 *     int status = rt_idx_folder("/usr/share/datasets/fashion-mnist", &fashion);
 *     ... fashion.image has 70 000 rows of 28 x 28, fashion.label as many; 60 000 are for training
 *     rt_idx_folder_free(&fashion);
 */
#ifndef AMPC_RT_IDX_H
#define AMPC_RT_IDX_H
#include "rt_inflate.h"
#include "rt_source.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RT_IDX_HEADER_MAX (4 + 4 * RT_MAX_RANK)

/* Reads kind and shape; *header becomes the size of the header. */
RT_COLD int rt_idx_header(const uint8_t *p, size_t bytes, const char *path, RtSource *s,
                          size_t *header)
{
    static const struct {
        uint8_t code, kind;
    } kinds[] = {{0x08, RT_KIND_U8},  {0x09, RT_KIND_I8},  {0x0B, RT_KIND_I16},
                 {0x0C, RT_KIND_I32}, {0x0D, RT_KIND_F32}, {0x0E, RT_KIND_F64}};
    int64_t shape[RT_MAX_RANK];
    size_t k = 0;
    memset(s, 0, sizeof *s);
    if (bytes < 4 || p[0] || p[1])
        return rt_fail(RT_BAD_DATA, "%s: not an IDX file", path);
    while (k < sizeof kinds / sizeof *kinds && kinds[k].code != p[2])
        k++;
    if (k == sizeof kinds / sizeof *kinds)
        return rt_fail(RT_BAD_DATA, "%s: unknown element type 0x%02x", path, p[2]);
    if (p[3] < 1 || p[3] > RT_MAX_RANK)
        return rt_fail(RT_BAD_DATA, "%s: %d dimensions, wanted 1 to %d", path, p[3], RT_MAX_RANK);
    *header = 4 + 4 * (size_t)p[3];
    if (bytes < *header)
        return rt_fail(RT_BAD_DATA, "%s: ends inside its header", path);
    for (int i = 0; i < p[3]; i++) {
        const uint8_t *d = p + 4 + 4 * i;
        shape[i] = (int64_t)d[0] << 24 | d[1] << 16 | d[2] << 8 | d[3];
    }
    return rt_source_shape(s, path, (RtKind)kinds[k].kind, p[3], shape);
}

/* The size of the whole file, unpacked. */
RT_COLD size_t rt_idx_bytes(const RtSource *s, size_t header)
{
    return header + (size_t)s->rows * (size_t)s->columns * rt_kind_bytes(s->kind);
}

/* Reads an unpacked file from memory; path is for messages. On failure out is empty. */
RT_COLD int rt_idx_parse(const uint8_t *p, size_t bytes, const char *path, RtSource *out)
{
    size_t header = 0;
    int status = rt_idx_header(p, bytes, path, out, &header);
    if (!status && bytes != rt_idx_bytes(out, header))
        status = rt_fail(RT_BAD_DATA, "%s: %zu bytes, its header says %zu", path, bytes,
                         rt_idx_bytes(out, header));
    if (!status)
        status = rt_source_allocate(out, path);
    if (!status)
        rt_source_decode(out, p + header, 1);
    else
        rt_source_free(out);
    return status;
}

/* Unpacks gzip data up to the size that the header inside announces. */
RT_COLD int rt_idx_unpack(const RtBytes *packed, const char *path, RtBytes *out)
{
    RtBytes start;
    RtSource shape;
    size_t header = 0;
    memset(out, 0, sizeof *out);
    const char *why = rt_gunzip_prefix(packed->data, packed->bytes, RT_IDX_HEADER_MAX, &start);
    if (why)
        return rt_fail(rt_inflate_status(why), "%s: %s", path, why);
    int status = rt_idx_header(start.data, start.bytes, path, &shape, &header);
    rt_bytes_free(&start);
    if (status)
        return status;
    why = rt_gunzip(packed->data, packed->bytes, rt_idx_bytes(&shape, header), out);
    return why ? rt_fail(rt_inflate_status(why), "%s: %s", path, why) : RT_OK;
}

/* Reads the file at path. On failure out is empty. */
RT_COLD int rt_idx_read(const char *path, RtSource *out)
{
    RtBytes file, text;
    memset(out, 0, sizeof *out);
    int status = rt_file_read(path, &file);
    if (!status && rt_is_gzip(&file)) {
        status = rt_idx_unpack(&file, path, &text);
        rt_bytes_free(&file);
        file = text;
    }
    if (!status)
        status = rt_idx_parse(file.data, file.bytes, path, out);
    rt_bytes_free(&file);
    return status;
}

/* What MNIST's folders hold: images and labels, those for training first, then those for tests. */
typedef struct RtIdxFolder {
    RtSource image, label;
    int64_t train_rows, test_rows;
} RtIdxFolder;

RT_COLD void rt_idx_folder_free(RtIdxFolder *f)
{
    rt_source_free(&f->image);
    rt_source_free(&f->label);
    f->train_rows = f->test_rows = 0;
}

/* Reads FOLDER/NAME or, where there is none, FOLDER/NAME.gz. */
RT_COLD int rt_idx_read_in(const char *folder, const char *name, RtSource *out)
{
    size_t room = strlen(folder) + strlen(name) + sizeof "/.gz";
    char *path = (char *)malloc(room);
    if (!path)
        return rt_fail(RT_SYSTEM, "%s: not enough memory", folder);
    snprintf(path, room, "%s/%s.gz", folder, name);
    if (access(path, F_OK))
        snprintf(path, room, "%s/%s", folder, name);
    int status = rt_idx_read(path, out);
    free(path);
    return status;
}

/* Puts the rows of more behind those of s and frees more. */
RT_COLD int rt_idx_append(RtSource *s, RtSource *more, const char *path)
{
    size_t row = (size_t)s->columns * rt_kind_bytes(s->kind);
    int same = s->kind == more->kind && s->rank == more->rank;
    for (int i = 1; same && i < s->rank; i++)
        same = s->shape[i] == more->shape[i];
    int status = RT_OK;
    uint8_t *all = NULL;
    if (!same)
        status = rt_fail(RT_BAD_DATA, "%s: training and test files differ in type or shape", path);
    else if (!(all = (uint8_t *)realloc(s->data, row * (size_t)(s->rows + more->rows))))
        status = rt_fail(RT_SYSTEM, "%s: not enough memory", path);
    if (all) {
        memcpy(all + row * (size_t)s->rows, more->data, row * (size_t)more->rows);
        s->data = all;
        s->rows += more->rows;
        s->shape[0] = s->rows;
    }
    rt_source_free(more);
    return status;
}

/* Reads one kind of file for training and for testing into one source. */
RT_COLD int rt_idx_read_both(const char *folder, const char *train, const char *test, RtSource *out,
                             int64_t *train_rows)
{
    RtSource more;
    int status = rt_idx_read_in(folder, train, out);
    if (status)
        return status;
    *train_rows = out->rows;
    status = rt_idx_read_in(folder, test, &more);
    return status ? status : rt_idx_append(out, &more, folder);
}

/* Reads the four files of a folder. On failure out is empty. */
RT_COLD int rt_idx_folder(const char *folder, RtIdxFolder *out)
{
    int64_t train_labels = 0;
    memset(out, 0, sizeof *out);
    int status = rt_idx_read_both(folder, "train-labels-idx1-ubyte", "t10k-labels-idx1-ubyte",
                                  &out->label, &train_labels);
    if (!status)
        status = rt_idx_read_both(folder, "train-images-idx3-ubyte", "t10k-images-idx3-ubyte",
                                  &out->image, &out->train_rows);
    if (!status && out->label.rank != 1)
        status = rt_fail(RT_BAD_DATA, "%s: labels have %d dimensions, wanted 1", folder,
                         out->label.rank);
    if (!status && (out->train_rows != train_labels || out->image.rows != out->label.rows))
        status = rt_fail(RT_BAD_DATA, "%s: %lld + %lld images but %lld + %lld labels", folder,
                         (long long)out->train_rows, (long long)(out->image.rows - out->train_rows),
                         (long long)train_labels, (long long)(out->label.rows - train_labels));
    out->test_rows = out->image.rows - out->train_rows;
    if (status)
        rt_idx_folder_free(out);
    return status;
}
#endif
