/* SPDX-License-Identifier: 0BSD */
/* Safetensors files, the container of weights and checkpoints: a length (u64), a JSON header,
 * padding, and the tensors' bytes, row-major and little-endian.
 *
 *     12 0 0 0 0 0 0 0 {"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}    24 bytes
 *
 * Reading trusts nothing. The tensors must fill the data without a gap or an overlap, each as long
 * as its shape says; a name that comes twice, an unknown key or anything but spaces in the padding
 * is refused, so that no two programs can see different things in one file. Everything is
 * checked before a value is looked at.
 *
 *     RtTensors f;
 *     status = rt_tensors_open(&f, "digits.safetensors");
 *     const RtTensor *t = rt_tensors_find(&f, "fc1.weight");     NULL: not there
 *     status = rt_tensor_read(&f, t, RT_ST_F32, weight);         f16, bf16 and f64 convert
 *     rt_tensors_close(&f);
 *
 * Writing takes a list of RtEntry, each saying where a tensor lies in memory, and replaces the file
 * only when all of it is on the disk.
 */
#ifndef AMPC_RT_SAFETENSORS_H
#define AMPC_RT_SAFETENSORS_H
#include "rt_base.h"
#include "rt_file.h"
#include "rt_half.h"
#include "rt_hash.h"
#include "rt_json.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "this part stores values as they lie in memory, which must be little-endian"
#endif

enum {
    RT_ST_RANK = 16,                /* highest rank */
    RT_ST_NAME = 512,               /* longest name, in bytes */
    RT_ST_COUNT = 65536,            /* most tensors, and most pairs of metadata */
    RT_ST_HEADER = 32 * 1024 * 1024 /* longest header, in bytes */
};

typedef enum RtStType {
    RT_ST_BOOL,
    RT_ST_U8,
    RT_ST_I8,
    RT_ST_F8_E5M2,
    RT_ST_F8_E4M3,
    RT_ST_I16,
    RT_ST_U16,
    RT_ST_F16,
    RT_ST_BF16,
    RT_ST_I32,
    RT_ST_U32,
    RT_ST_F32,
    RT_ST_F64,
    RT_ST_I64,
    RT_ST_U64,
    RT_ST_TYPES
} RtStType;

typedef struct RtTensor {
    const char *name;
    RtStType type;
    int rank;
    int64_t shape[RT_ST_RANK];
    int64_t count;      /* elements */
    int64_t begin, end; /* bytes, from the start of the data */
} RtTensor;

typedef struct RtPair {
    const char *key, *value;
} RtPair;

/* An open file. */
typedef struct RtTensors {
    const char *path;   /* the caller's, for messages */
    RtBytes file;       /* all of it */
    const char *data;   /* behind the header */
    int64_t data_bytes; /* to the end of the file */
    RtTensor *tensor;   /* in the order of their bytes */
    int count;
    int *by_name; /* indices into tensor */
    RtPair *metadata;
    int pairs;
    char *text; /* what names and metadata point into */
    int64_t text_used, text_size;
} RtTensors;

/* A tensor in memory, to be written or filled. */
typedef struct RtEntry {
    const char *name;
    RtStType type;   /* in memory */
    RtStType stored; /* in a file that we write */
    int rank;
    const int64_t *shape;
    void *data; /* row-major; unless there are functions that bring it from or to that form: */
    void (*pack)(const struct RtEntry *, void *row_major);
    void (*unpack)(const struct RtEntry *, const void *row_major);
    void *self; /* for pack and unpack */
} RtEntry;

/* ---- types and values ---- */

RT_COLD const char *rt_st_name(RtStType type)
{
    static const char *const name[RT_ST_TYPES] = {"BOOL", "U8",  "I8",  "F8_E5M2", "F8_E4M3",
                                                  "I16",  "U16", "F16", "BF16",    "I32",
                                                  "U32",  "F32", "F64", "I64",     "U64"};
    return name[type];
}

RT_COLD int rt_st_bytes(RtStType type)
{
    return type < RT_ST_I16 ? 1 : type < RT_ST_I32 ? 2 : type < RT_ST_F64 ? 4 : 8;
}

/* Can we compute with values of this type as real numbers? */
RT_COLD bool rt_st_is_float(RtStType type)
{
    return type == RT_ST_F16 || type == RT_ST_BF16 || type == RT_ST_F32 || type == RT_ST_F64;
}

RT_COLD bool rt_st_is_int(RtStType type)
{
    return !rt_st_is_float(type) && type != RT_ST_F8_E5M2 && type != RT_ST_F8_E4M3;
}

RT_COLD double rt_st_load_float(RtStType type, const char *p)
{
    uint16_t half;
    float single;
    double wide;
    if (type == RT_ST_F64) {
        memcpy(&wide, p, sizeof wide);
        return wide;
    }
    if (type == RT_ST_F32) {
        memcpy(&single, p, sizeof single);
        return (double)single;
    }
    memcpy(&half, p, sizeof half);
    return (double)(type == RT_ST_F16 ? rt_f32_from_f16(half) : rt_f32_from_bf16(half));
}

/* Rounds to f32 so that a second rounding, to a half type, gives what one rounding would: an
 * inexact result becomes the neighbour whose last bit is 1 (S. Boldo and G. Melquiond, "Emulation
 * of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008). */
RT_COLD float rt_st_round_to_odd(double x)
{
    float f = (float)x;
    if (isnan(x) || isinf(x) || (double)f == x)
        return f;
    uint32_t bits = rt_bits_from_f32(f);
    if (fabs((double)f) > fabs(x))
        bits--;
    return rt_f32_from_bits(bits | 1);
}

RT_COLD void rt_st_store_float(RtStType type, char *p, double x)
{
    uint16_t half;
    float single = (float)x;
    if (type == RT_ST_F64) {
        memcpy(p, &x, sizeof x);
    } else if (type == RT_ST_F32) {
        memcpy(p, &single, sizeof single);
    } else {
        single = rt_st_round_to_odd(x);
        half = type == RT_ST_F16 ? rt_f16_from_f32(single) : rt_bf16_from_f32(single);
        memcpy(p, &half, sizeof half);
    }
}

RT_COLD bool rt_st_is_signed(RtStType type)
{
    return type == RT_ST_I8 || type == RT_ST_I16 || type == RT_ST_I32 || type == RT_ST_I64;
}

/* Widens an integer of any type; false if it is a u64 beyond i64. */
RT_COLD bool rt_st_load_int(RtStType type, const char *p, int64_t *x)
{
    int bytes = rt_st_bytes(type);
    uint64_t bits = 0;
    memcpy(&bits, p, (size_t)bytes);
    if (rt_st_is_signed(type) && bytes < 8 && bits >> (8 * bytes - 1))
        bits |= ~(uint64_t)0 << 8 * bytes;
    memcpy(x, &bits, sizeof *x);
    return type != RT_ST_U64 || *x >= 0;
}

RT_COLD bool rt_st_int_fits(RtStType type, int64_t x)
{
    int bits = 8 * rt_st_bytes(type);
    if (type == RT_ST_BOOL)
        return x == 0 || x == 1;
    if (!rt_st_is_signed(type))
        return x >= 0 && (bits == 64 || x < (int64_t)1 << bits);
    return bits == 64 || (x >= -((int64_t)1 << (bits - 1)) && x < (int64_t)1 << (bits - 1));
}

/* Floats become floats, rounded once; integers become integers if they fit. */
RT_COLD bool rt_st_can_convert(RtStType to, RtStType from)
{
    return to == from || (rt_st_is_float(to) && rt_st_is_float(from)) ||
           (rt_st_is_int(to) && rt_st_is_int(from));
}

/* Converts n values, or with out NULL only looks whether all fit. Returns how many did: n, or the
 * index of the first that does not. */
RT_COLD int64_t rt_st_convert(RtStType to, void *out, RtStType from, const void *in, int64_t n)
{
    const char *p = (const char *)in;
    char *q = (char *)out;
    int step = rt_st_bytes(from), stride = rt_st_bytes(to);
    if (to == from && to != RT_ST_BOOL) {
        if (out && n)
            memcpy(out, in, (size_t)n * (size_t)step);
        return n;
    }
    if (rt_st_is_float(to)) {
        for (int64_t i = 0; out && i < n; i++)
            rt_st_store_float(to, q + i * stride, rt_st_load_float(from, p + i * step));
        return n;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t x;
        if (!rt_st_load_int(from, p + i * step, &x) || !rt_st_int_fits(to, x))
            return i;
        if (out)
            memcpy(q + i * stride, &x, (size_t)stride);
    }
    return n;
}

/* ---- reading ---- */

RT_COLD void rt_tensors_close(RtTensors *f)
{
    rt_bytes_free(&f->file);
    free(f->tensor);
    free(f->by_name);
    free(f->metadata);
    free(f->text);
    memset(f, 0, sizeof *f);
}

/* Doubles an array of count items that is full; count is a power of two then, or 0. */
RT_COLD void *rt_tensors_grow(void *array, int count, size_t item)
{
    if (count & (count - 1))
        return array;
    return realloc(array, (size_t)(count ? 2 * count : 1) * item);
}

/* Reads a name or a value into f->text. All strings together are shorter than the header. */
RT_COLD int rt_tensors_string(RtTensors *f, RtJson *j, int64_t longest, bool name, const char **out)
{
    int64_t room = f->text_size - f->text_used;
    char *here = f->text + f->text_used;
    if (longest + 1 < room)
        room = longest + 1;
    int status = name ? rt_json_name(j, here, room) : rt_json_string(j, here, room);
    if (status)
        return status;
    f->text_used += (int64_t)strlen(here) + 1;
    *out = here;
    return RT_OK;
}

RT_COLD int rt_tensors_metadata(RtTensors *f, RtJson *j)
{
    bool more;
    int status = rt_json_begin(j, '{');
    if (f->metadata)
        return rt_fail(RT_BAD_DATA, "%s: '__metadata__' comes twice", f->path);
    while (!status && !(status = rt_json_more(j, &more)) && more) {
        RtPair pair;
        if (f->pairs == RT_ST_COUNT)
            return rt_fail(RT_BAD_DATA, "%s: more than %d pairs of metadata", f->path, RT_ST_COUNT);
        if ((status = rt_tensors_string(f, j, RT_ST_NAME, true, &pair.key)) ||
            (status = rt_tensors_string(f, j, RT_ST_HEADER, false, &pair.value)))
            return status;
        void *grown = rt_tensors_grow(f->metadata, f->pairs, sizeof *f->metadata);
        if (!grown)
            return rt_fail(RT_SYSTEM, "out of memory");
        f->metadata = (RtPair *)grown;
        f->metadata[f->pairs++] = pair;
    }
    if (!status && !f->metadata && !(f->metadata = (RtPair *)malloc(sizeof *f->metadata)))
        return rt_fail(RT_SYSTEM, "out of memory"); /* an empty one counts as seen, too */
    return status;
}

/* Reads an array of at most `most` sizes. */
RT_COLD int rt_tensors_sizes(const RtTensors *f, RtJson *j, const RtTensor *t, int most,
                             int64_t *out, int *count)
{
    bool more;
    int status = rt_json_begin(j, '[');
    for (*count = 0; !status && !(status = rt_json_more(j, &more)) && more; ++*count) {
        if (*count == most)
            return rt_fail(RT_BAD_DATA, "%s: tensor '%s' has more than %d %s", f->path, t->name,
                           most, most == 2 ? "offsets" : "dimensions");
        status = rt_json_int(j, &out[*count]);
        if (!status && out[*count] < 0)
            return rt_fail(RT_BAD_DATA, "%s: tensor '%s' has a negative size or offset", f->path,
                           t->name);
    }
    return status;
}

RT_COLD int rt_tensors_type(const RtTensors *f, RtJson *j, RtTensor *t)
{
    char name[16];
    int status = rt_json_string(j, name, sizeof name);
    for (int k = 0; !status && k < RT_ST_TYPES; k++) {
        t->type = (RtStType)k;
        if (!strcmp(name, rt_st_name(t->type)))
            return RT_OK;
    }
    return status ? status
                  : rt_fail(RT_BAD_DATA, "%s: tensor '%s' has dtype '%s', which is not known",
                            f->path, t->name, name);
}

/* Do the bytes of t agree with its shape? Sets t->count. */
RT_COLD int rt_tensors_extent(const RtTensors *f, RtTensor *t)
{
    size_t count = 1, bytes = 0;
    bool overflow = false;
    for (int k = 0; k < t->rank && !overflow; k++)
        overflow = rt_size_product(&count, count, (size_t)t->shape[k], 1) != 0;
    overflow = overflow || rt_size_product(&bytes, count, (size_t)rt_st_bytes(t->type), 1);
    if (overflow || bytes > RT_FILE_MAX)
        return rt_fail(RT_BAD_DATA, "%s: tensor '%s' is too large", f->path, t->name);
    if (t->end < t->begin || t->end - t->begin != (int64_t)bytes)
        return rt_fail(RT_BAD_DATA,
                       "%s: tensor '%s' needs %lld bytes, but its offsets are %lld..%lld", f->path,
                       t->name, (long long)bytes, (long long)t->begin, (long long)t->end);
    t->count = (int64_t)count;
    return RT_OK;
}

/* Reads {"dtype": ..., "shape": ..., "data_offsets": ...}, in any order, each once. */
RT_COLD int rt_tensors_entry(RtTensors *f, RtJson *j, RtTensor *t)
{
    static const char *const key[] = {"dtype", "shape", "data_offsets"};
    int64_t offset[2] = {0, 0};
    int seen = 0, offsets = 0;
    bool more;
    int status = rt_json_begin(j, '{');
    while (!status && !(status = rt_json_more(j, &more)) && more) {
        char name[16];
        int which = 0;
        if ((status = rt_json_name(j, name, sizeof name)))
            return status;
        while (which < 3 && strcmp(name, key[which]))
            which++;
        if (which == 3)
            return rt_fail(RT_BAD_DATA, "%s: tensor '%s' has an unknown key '%s'", f->path, t->name,
                           name);
        if (seen & 1 << which)
            return rt_fail(RT_BAD_DATA, "%s: tensor '%s' has '%s' twice", f->path, t->name, name);
        seen |= 1 << which;
        status = which == 0   ? rt_tensors_type(f, j, t)
                 : which == 1 ? rt_tensors_sizes(f, j, t, RT_ST_RANK, t->shape, &t->rank)
                              : rt_tensors_sizes(f, j, t, 2, offset, &offsets);
    }
    if (status)
        return status;
    if (seen != 7 || offsets != 2)
        return rt_fail(RT_BAD_DATA, "%s: tensor '%s' needs dtype, shape and two data_offsets",
                       f->path, t->name);
    t->begin = offset[0];
    t->end = offset[1];
    return rt_tensors_extent(f, t);
}

/* A name is printed in messages, so it may hold nothing that moves a terminal's cursor. */
RT_COLD bool rt_tensors_good_name(const char *name)
{
    for (const char *s = name; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7F)
            return false;
    return *name != '\0';
}

RT_COLD int rt_tensors_header(RtTensors *f, RtJson *j)
{
    bool more;
    int status = rt_json_begin(j, '{');
    while (!status && !(status = rt_json_more(j, &more)) && more) {
        RtTensor t;
        memset(&t, 0, sizeof t);
        if ((status = rt_tensors_string(f, j, RT_ST_NAME, true, &t.name)))
            return status;
        if (!strcmp(t.name, "__metadata__")) {
            status = rt_tensors_metadata(f, j);
            continue;
        }
        if (!rt_tensors_good_name(t.name))
            return rt_fail(RT_BAD_DATA, "%s: a tensor's name is empty or has control characters",
                           f->path);
        if (f->count == RT_ST_COUNT)
            return rt_fail(RT_BAD_DATA, "%s: more than %d tensors", f->path, RT_ST_COUNT);
        if ((status = rt_tensors_entry(f, j, &t)))
            return status;
        void *grown = rt_tensors_grow(f->tensor, f->count, sizeof *f->tensor);
        if (!grown)
            return rt_fail(RT_SYSTEM, "out of memory");
        f->tensor = (RtTensor *)grown;
        f->tensor[f->count++] = t;
    }
    return status;
}

RT_COLD int rt_tensors_compare_place(const void *a, const void *b)
{
    const RtTensor *s = (const RtTensor *)a, *t = (const RtTensor *)b;
    if (s->begin != t->begin)
        return s->begin < t->begin ? -1 : 1;
    if (s->end != t->end)
        return s->end < t->end ? -1 : 1;
    return strcmp(s->name, t->name);
}

RT_COLD int rt_tensors_compare_name(const void *a, const void *b)
{
    return strcmp((*(const RtTensor *const *)a)->name, (*(const RtTensor *const *)b)->name);
}

RT_COLD int rt_tensors_compare_key(const void *a, const void *b)
{
    return strcmp(((const RtPair *)a)->key, ((const RtPair *)b)->key);
}

/* Puts tensors and metadata in order; refuses a name that comes twice. */
RT_COLD int rt_tensors_index(RtTensors *f)
{
    const RtTensor **sorted = (const RtTensor **)malloc(((size_t)f->count + 1) * sizeof *sorted);
    f->by_name = (int *)malloc(((size_t)f->count + 1) * sizeof *f->by_name);
    if (!sorted || !f->by_name) {
        free(sorted);
        return rt_fail(RT_SYSTEM, "out of memory");
    }
    if (f->count)
        qsort(f->tensor, (size_t)f->count, sizeof *f->tensor, rt_tensors_compare_place);
    for (int k = 0; k < f->count; k++)
        sorted[k] = &f->tensor[k];
    qsort(sorted, (size_t)f->count, sizeof *sorted, rt_tensors_compare_name);
    for (int k = 0; k < f->count; k++)
        f->by_name[k] = (int)(sorted[k] - f->tensor);
    free(sorted);
    for (int k = 1; k < f->count; k++) {
        const char *name = f->tensor[f->by_name[k]].name;
        if (!strcmp(name, f->tensor[f->by_name[k - 1]].name))
            return rt_fail(RT_BAD_DATA, "%s: tensor '%s' comes twice", f->path, name);
    }
    if (f->pairs)
        qsort(f->metadata, (size_t)f->pairs, sizeof *f->metadata, rt_tensors_compare_key);
    for (int k = 1; k < f->pairs; k++)
        if (!strcmp(f->metadata[k].key, f->metadata[k - 1].key))
            return rt_fail(RT_BAD_DATA, "%s: metadata '%s' comes twice", f->path,
                           f->metadata[k].key);
    return RT_OK;
}

/* Do the tensors fill the data from its first byte to its last? */
RT_COLD int rt_tensors_layout(const RtTensors *f)
{
    int64_t at = 0;
    for (int k = 0; k < f->count; k++) {
        const RtTensor *t = &f->tensor[k];
        if (t->begin != at)
            return rt_fail(RT_BAD_DATA, "%s: tensor '%s' begins at byte %lld, %s byte %lld",
                           f->path, t->name, (long long)t->begin,
                           t->begin < at ? "but the one before ends at" : "leaving a hole from",
                           (long long)at);
        at = t->end;
    }
    if (at > f->data_bytes)
        return rt_fail(RT_BAD_DATA,
                       "%s: truncated: %lld bytes of data, but the header promises %lld", f->path,
                       (long long)f->data_bytes, (long long)at);
    if (at < f->data_bytes)
        return rt_fail(RT_BAD_DATA, "%s: %lld bytes behind the last tensor", f->path,
                       (long long)(f->data_bytes - at));
    return RT_OK;
}

/* Checks the file in f->file and finds its tensors. */
RT_COLD int rt_tensors_parse(RtTensors *f)
{
    uint64_t length;
    RtJson j;
    if (f->file.bytes < 8)
        return rt_fail(RT_BAD_DATA, "%s: not a safetensors file: shorter than 8 bytes", f->path);
    memcpy(&length, f->file.data, 8);
    if (length > RT_ST_HEADER)
        return rt_fail(RT_BAD_DATA, "%s: not a safetensors file: a header of %llu bytes", f->path,
                       (unsigned long long)length);
    if (length > f->file.bytes - 8)
        return rt_fail(RT_BAD_DATA, "%s: truncated: the header ends behind the file", f->path);
    const char *header = (const char *)f->file.data + 8;
    if (!length || header[0] != '{')
        return rt_fail(RT_BAD_DATA, "%s: not a safetensors file: the header is not an object",
                       f->path);
    f->data = header + length;
    f->data_bytes = (int64_t)(f->file.bytes - 8 - length);
    f->text_size = (int64_t)length;
    f->text = (char *)malloc((size_t)length);
    if (!f->text)
        return rt_fail(RT_SYSTEM, "out of memory");
    rt_json_open(&j, f->path, header, (int64_t)length);
    int status = rt_tensors_header(f, &j);
    if (status)
        return status;
    for (; j.at < j.size; j.at++)
        if (j.text[j.at] != ' ')
            return rt_json_refuse(&j, "only spaces may follow the header");
    status = rt_tensors_index(f);
    return status ? status : rt_tensors_layout(f);
}

/* Opens and checks the file at path, which must outlive f. On failure there is nothing to close. */
RT_COLD int rt_tensors_open(RtTensors *f, const char *path)
{
    memset(f, 0, sizeof *f);
    f->path = path;
    int status = rt_file_read(path, &f->file);
    if (!status)
        status = rt_tensors_parse(f);
    if (status)
        rt_tensors_close(f);
    return status;
}

/* The tensor called name, or NULL. */
RT_COLD const RtTensor *rt_tensors_find(const RtTensors *f, const char *name)
{
    int low = 0, high = f->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        const RtTensor *t = &f->tensor[f->by_name[middle]];
        int order = strcmp(name, t->name);
        if (!order)
            return t;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* The metadata called key, or NULL. */
RT_COLD const char *rt_tensors_metadatum(const RtTensors *f, const char *key)
{
    for (int k = 0; k < f->pairs; k++)
        if (!strcmp(f->metadata[k].key, key))
            return f->metadata[k].value;
    return NULL;
}

/* Converts the values of t; out has room for t->count of them. With out NULL only checks. */
RT_COLD int rt_tensor_read(const RtTensors *f, const RtTensor *t, RtStType type, void *out)
{
    if (!rt_st_can_convert(type, t->type))
        return rt_fail(RT_BAD_DATA, "%s: tensor '%s' has dtype %s, needed is %s", f->path, t->name,
                       rt_st_name(t->type), rt_st_name(type));
    int64_t done = rt_st_convert(type, out, t->type, f->data + t->begin, t->count);
    if (done < t->count)
        return rt_fail(RT_BAD_DATA, "%s: tensor '%s': element %lld does not fit %s", f->path,
                       t->name, (long long)done, rt_st_name(type));
    return RT_OK;
}

/* How many values of t are infinite or NaN: worth a warning in a weight file. */
RT_COLD int64_t rt_tensor_nonfinite(const RtTensors *f, const RtTensor *t)
{
    int64_t found = 0;
    for (int64_t i = 0; rt_st_is_float(t->type) && i < t->count; i++)
        found +=
            !isfinite(rt_st_load_float(t->type, f->data + t->begin + i * rt_st_bytes(t->type)));
    return found;
}

/* ---- writing ---- */

RT_COLD int64_t rt_entry_count(const RtEntry *e)
{
    int64_t count = 1;
    for (int k = 0; k < e->rank; k++)
        count *= e->shape[k];
    return count;
}

/* Text that grows; after a failed allocation it is NULL and stays so. */
typedef struct RtHeaderText {
    char *text;
    size_t length, room;
    bool failed;
} RtHeaderText;

RT_COLD void rt_header_add(RtHeaderText *h, const char *s, size_t length)
{
    if (h->failed)
        return;
    if (h->length + length > h->room) {
        size_t room = 2 * (h->length + length) + 256;
        char *more = (char *)realloc(h->text, room);
        if (!more) {
            h->failed = true;
            return;
        }
        h->text = more;
        h->room = room;
    }
    memcpy(h->text + h->length, s, length);
    h->length += length;
}

RT_COLD void rt_header_string(RtHeaderText *h, const char *s)
{
    rt_header_add(h, "\"", 1);
    for (; *s; s++) {
        char escape[8];
        if (*s == '"' || *s == '\\')
            rt_header_add(h, "\\", 1);
        if ((unsigned char)*s >= 0x20)
            rt_header_add(h, s, 1);
        else
            rt_header_add(h, escape,
                          (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned)*s & 0xFF));
    }
    rt_header_add(h, "\"", 1);
}

RT_COLD void rt_header_metadata(RtHeaderText *h, const RtPair *pair, int pairs)
{
    rt_header_add(h, "\"__metadata__\":{", 16);
    for (int k = 0; k < pairs; k++) {
        if (k)
            rt_header_add(h, ",", 1);
        rt_header_string(h, pair[k].key);
        rt_header_add(h, ":", 1);
        rt_header_string(h, pair[k].value);
    }
    rt_header_add(h, "}", 1);
}

RT_COLD void rt_header_entry(RtHeaderText *h, const RtEntry *e, int64_t begin, int64_t end)
{
    char text[96];
    rt_header_string(h, e->name);
    rt_header_add(h, text,
                  (size_t)snprintf(text, sizeof text, ":{\"dtype\":\"%s\",\"shape\":[",
                                   rt_st_name(e->stored)));
    for (int k = 0; k < e->rank; k++)
        rt_header_add(
            h, text,
            (size_t)snprintf(text, sizeof text, k ? ",%lld" : "%lld", (long long)e->shape[k]));
    rt_header_add(h, text,
                  (size_t)snprintf(text, sizeof text, "],\"data_offsets\":[%lld,%lld]}",
                                   (long long)begin, (long long)end));
}

RT_COLD int rt_entries_compare(const void *a, const void *b)
{
    const RtEntry *s = *(const RtEntry *const *)a, *t = *(const RtEntry *const *)b;
    int larger = rt_st_bytes(t->stored) - rt_st_bytes(s->stored);
    return larger ? larger : strcmp(s->name, t->name);
}

/* The header of the entries in this order, ended by spaces so that the data begins at a multiple
 * of eight. */
RT_COLD int rt_entries_header(RtHeaderText *h, const RtEntry *const *entry, int count,
                              const RtPair *pair, int pairs)
{
    int64_t at = 0;
    rt_header_add(h, "{", 1);
    if (pairs)
        rt_header_metadata(h, pair, pairs);
    for (int k = 0; k < count; k++) {
        const RtEntry *e = entry[k];
        int64_t end = at + rt_entry_count(e) * rt_st_bytes(e->stored);
        if (k && !strcmp(e->name, entry[k - 1]->name))
            return rt_fail(RT_INTERNAL, "tensor '%s' is written twice", e->name);
        if (e->rank > RT_ST_RANK || strlen(e->name) > RT_ST_NAME || count > RT_ST_COUNT)
            return rt_fail(RT_INTERNAL, "tensor '%s' is beyond what a file may hold", e->name);
        if (k || pairs)
            rt_header_add(h, ",", 1);
        rt_header_entry(h, e, at, end);
        at = end;
    }
    rt_header_add(h, "}", 1);
    while (h->length % 8 && !h->failed)
        rt_header_add(h, " ", 1);
    return h->failed ? rt_fail(RT_SYSTEM, "out of memory") : RT_OK;
}

/* Writes the values of one entry, as its file type. */
RT_COLD int rt_entry_write(RtWriter *w, RtHash *hash, const RtEntry *e)
{
    int64_t n = rt_entry_count(e);
    size_t bytes = (size_t)n * (size_t)rt_st_bytes(e->stored);
    void *packed = e->pack ? malloc((size_t)n * (size_t)rt_st_bytes(e->type) + 1) : NULL;
    void *converted = e->stored != e->type ? malloc(bytes + 1) : NULL;
    const void *values = e->pack ? packed : e->data;
    int status = RT_OK;
    if ((e->pack && !packed) || (e->stored != e->type && !converted))
        status = rt_fail(RT_SYSTEM, "out of memory");
    if (!status && e->pack)
        e->pack(e, packed);
    if (!status && e->stored != e->type) {
        if (!rt_st_can_convert(e->stored, e->type) ||
            rt_st_convert(e->stored, converted, e->type, values, n) < n)
            status = rt_fail(RT_INTERNAL, "tensor '%s' cannot be written as %s", e->name,
                             rt_st_name(e->stored));
        values = converted;
    }
    if (!status) {
        rt_hash_add(hash, values, bytes);
        status = rt_writer_add(w, values, bytes);
    }
    free(packed);
    free(converted);
    return status;
}

/* Replaces bytes that were written before. */
RT_COLD int rt_writer_patch(RtWriter *w, const char *data, size_t bytes, int64_t at)
{
    while (bytes) {
        ssize_t done = pwrite(w->fd, data, bytes, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return rt_writer_fail(w);
        data += done;
        at += done;
        bytes -= (size_t)done;
    }
    return RT_OK;
}

/* Writes header and values; the hash of the values goes where the header has sixteen zeros. */
RT_COLD int rt_entries_stream(RtWriter *w, RtHeaderText *h, const RtEntry *const *entry, int count,
                              int64_t hash_at)
{
    uint64_t length = h->length;
    char digits[17];
    RtHash hash;
    int status = rt_writer_add(w, &length, 8);
    if (!status)
        status = rt_writer_add(w, h->text, h->length);
    rt_hash_start(&hash, 0);
    for (int k = 0; k < count && !status; k++)
        status = rt_entry_write(w, &hash, entry[k]);
    if (status || hash_at < 0)
        return status;
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)rt_hash_value(&hash));
    return rt_writer_patch(w, digits, 16, 8 + hash_at);
}

/* Writes the file. With hashed, the last pair's value must be sixteen zeros; the XXH64 of the data
 * replaces them, in hexadecimal. */
RT_COLD int rt_entries_write(const char *path, const RtEntry *entry, int count, const RtPair *pair,
                             int pairs, bool hashed)
{
    RtHeaderText h;
    RtWriter w;
    int64_t hash_at = -1;
    memset(&h, 0, sizeof h);
    const RtEntry **sorted = (const RtEntry **)malloc(((size_t)count + 1) * sizeof *sorted);
    if (!sorted)
        return rt_fail(RT_SYSTEM, "out of memory");
    for (int k = 0; k < count; k++)
        sorted[k] = &entry[k];
    qsort(sorted, (size_t)count, sizeof *sorted, rt_entries_compare);
    int status = rt_entries_header(&h, sorted, count, pair, pairs);
    if (!status && hashed) {
        RtHeaderText before; /* the metadata come first, so what precedes the hash is its length */
        memset(&before, 0, sizeof before);
        rt_header_add(&before, "{", 1);
        rt_header_metadata(&before, pair, pairs);
        hash_at = (int64_t)before.length - 18;
        free(before.text);
        if (before.failed)
            status = rt_fail(RT_SYSTEM, "out of memory");
    }
    if (!status) {
        status = rt_writer_open(&w, path);
        if (!status)
            status = rt_entries_stream(&w, &h, sorted, count, hash_at);
        status = rt_writer_close(&w, status);
    }
    free(h.text);
    free(sorted);
    return status;
}
#endif
