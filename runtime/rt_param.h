/* SPDX-License-Identifier: 0BSD */
/* The tensor table: what a program knows about its weights. Weights of one kind lie in one flat
 * buffer, each at a multiple of 64 bytes with zeros behind it; a row says where, in what shape,
 * and how the values start. Optimizer states and low-precision copies have buffers of the same
 * layout. The order in a buffer is storage only: files hold row-major tensors by name.
 *
 *     static const RtParam opt_param[] = {
 *         {"net", "fc1.weight", 0, 16384, 2, {256, 64}, {RT_INIT_UNIFORM, -0.125f, 0.125f}},
 *         {"net", "fc1.bias", 16384, 256, 1, {256}, {RT_INIT_ZEROS, 0, 0}},
 *     };
 *     status = rt_param_init(&opt_param[i], seed, weight + opt_param[i].offset);
 *
 * The first values depend on the seed and the weight's name alone: not on the level, the order of
 * the weights or the number of threads.
 */
#ifndef AMPC_RT_PARAM_H
#define AMPC_RT_PARAM_H
#include "rt_base.h"
#include "rt_rng.h"
#include "rt_safetensors.h"
#include "rt_sum.h"

enum { RT_PARAM_RANK = 16, RT_PARAM_NAME = 512 };

typedef enum RtInitKind {
    RT_INIT_ZEROS,
    RT_INIT_ONES,
    RT_INIT_CONSTANT,   /* a */
    RT_INIT_UNIFORM,    /* from a up to b */
    RT_INIT_NORMAL,     /* mean a, deviation b */
    RT_INIT_ORTHOGONAL, /* times a */
    RT_INIT_EYE
} RtInitKind;

typedef struct RtInit {
    RtInitKind kind;
    float a, b;
} RtInit;

typedef struct RtParam {
    const char *instance, *name; /* "net", "fc1.weight" */
    int64_t offset, count;       /* elements */
    int rank;
    int64_t shape[RT_PARAM_RANK];
    RtInit init;
} RtParam;

/* ---- first values ---- */

RT_FN void rt_fill(float *x, int64_t n, float value)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = value;
}

/* Fills x with the first values of a weight. A matrix with more than two dimensions has its first
 * as rows. */
RT_COLD int rt_param_init(const RtParam *p, uint64_t seed, float *x)
{
    char name[RT_PARAM_NAME];
    snprintf(name, sizeof name, "%s.%s", p->instance, p->name);
    const uint32_t stream = rt_stream(name);
    const int64_t n = p->count, rows = p->rank ? p->shape[0] : 1;
    const float a = p->init.a, b = p->init.b;
    switch (p->init.kind) {
    case RT_INIT_ZEROS:
        rt_fill(x, n, 0.0f);
        break;
    case RT_INIT_ONES:
        rt_fill(x, n, 1.0f);
        break;
    case RT_INIT_CONSTANT:
        rt_fill(x, n, a);
        break;
    case RT_INIT_UNIFORM:
        RT_FOR(lo, hi, n, 4096, rt_fill_uniform(x, lo, hi, a, b, seed, stream, 0));
        break;
    case RT_INIT_NORMAL:
        RT_FOR(lo, hi, n, 4096, rt_fill_normal(x, lo, hi, a, b, seed, stream, 0));
        break;
    case RT_INIT_ORTHOGONAL:
        return rt_fill_orthogonal(x, rows, n / rows, a, seed, stream);
    case RT_INIT_EYE:
        rt_fill_eye(x, rows, n / rows);
        break;
    }
    return RT_OK;
}

/* First values of weights kept in half precision, before they are rounded; caller frees them. */
RT_COLD int rt_param_init_wide(const RtParam *p, uint64_t seed, float **wide)
{
    *wide = (float *)malloc((size_t)p->count * sizeof **wide + 1);
    return *wide ? rt_param_init(p, seed, *wide) : rt_fail(RT_SYSTEM, "out of memory");
}

RT_COLD int rt_param_init_f16(const RtParam *p, uint64_t seed, uint16_t *x)
{
    float *wide;
    int status = rt_param_init_wide(p, seed, &wide);
    for (int64_t i = 0; i < p->count && !status; i++)
        x[i] = rt_f16_from_f32(wide[i]);
    free(wide);
    return status;
}

RT_COLD int rt_param_init_bf16(const RtParam *p, uint64_t seed, uint16_t *x)
{
    float *wide;
    int status = rt_param_init_wide(p, seed, &wide);
    for (int64_t i = 0; i < p->count && !status; i++)
        x[i] = rt_bf16_from_f32(wide[i]);
    free(wide);
    return status;
}

/* ---- norms ----
 * The sum of the squares of a flat buffer. It is infinite or NaN when an element is. The partial
 * sums are kept in chunk, one for 4096 elements. */

RT_FN double rt_flat_squares_f32(const float *x, int64_t n, double *chunk)
{
    const int64_t chunks = rt_chunk_count(n);
    RT_FOR(lo, hi, chunks, 4, rt_squares_f32(chunk, x, n, lo, hi));
    return rt_add_chunks(chunk, chunks);
}

RT_FN double rt_flat_squares_f16(const uint16_t *x, int64_t n, double *chunk)
{
    const int64_t chunks = rt_chunk_count(n);
    RT_FOR(lo, hi, chunks, 4, rt_squares_f16(chunk, x, n, lo, hi));
    return rt_add_chunks(chunk, chunks);
}

RT_FN double rt_flat_squares_bf16(const uint16_t *x, int64_t n, double *chunk)
{
    const int64_t chunks = rt_chunk_count(n);
    RT_FOR(lo, hi, chunks, 4, rt_squares_bf16(chunk, x, n, lo, hi));
    return rt_add_chunks(chunk, chunks);
}

/* What gradients of this norm are multiplied by so that it becomes at most `limit`: as PyTorch's
 * clip_grad_norm_ does. */
RT_FN double rt_clip_factor(double norm, double limit)
{
    double factor = limit / (norm + 1e-6);
    return factor > 1 ? 1 : factor;
}

/* ---- tables of what a file holds ---- */

/* Tensors by name, each with its place in memory: a checkpoint or a weight file. Building one does
 * not fail before its end: rt_table_status() tells. */
typedef struct RtTable {
    RtEntry *entry;
    int count, room;
    int failed;
} RtTable;

RT_COLD void rt_table_free(RtTable *t)
{
    for (int i = 0; i < t->count; i++)
        free((void *)(uintptr_t)t->entry[i].name);
    free(t->entry);
    memset(t, 0, sizeof *t);
}

RT_COLD int rt_table_status(const RtTable *t)
{
    return t->failed ? rt_fail(RT_SYSTEM, "out of memory") : RT_OK;
}

/* Adds a tensor; its name is the prefix, the instance and name of p, and the suffix. */
RT_COLD void rt_table_add(RtTable *t, const char *prefix, const RtParam *p, const char *suffix,
                          RtStType type, void *data)
{
    char name[RT_PARAM_NAME];
    const int whole = *prefix != '\0'; /* weight files have no prefix and no instance */
    snprintf(name, sizeof name, "%s%s%s%s%s", prefix, whole ? p->instance : "", whole ? "/" : "",
             p->name, suffix);
    if (t->count == t->room) {
        int room = t->room ? 2 * t->room : 64;
        RtEntry *entry = (RtEntry *)realloc(t->entry, (size_t)room * sizeof *entry);
        if (!entry) {
            t->failed = 1;
            return;
        }
        t->entry = entry;
        t->room = room;
    }
    RtEntry *e = &t->entry[t->count];
    memset(e, 0, sizeof *e);
    e->name = strdup(name);
    e->type = type;
    e->stored = type;
    e->rank = p->rank;
    e->shape = p->shape;
    e->data = data;
    t->failed |= !e->name;
    t->count += e->name != NULL;
}

/* Adds a number of the training, under this very name. */
RT_COLD void rt_table_scalar(RtTable *t, const char *name, RtStType type, void *data)
{
    static const RtParam scalar = {"", "", 0, 1, 0, {0}, {RT_INIT_ZEROS, 0, 0}};
    RtParam p = scalar;
    p.name = name;
    rt_table_add(t, "", &p, "", type, data);
    if (t->count)
        t->entry[t->count - 1].shape = scalar.shape;
}

/* Writes floats as f32, whatever they are kept in: a weight file. */
RT_COLD int rt_table_export(RtTable *t, const char *path)
{
    const RtPair pair = {"format", "pt"};
    for (int i = 0; i < t->count; i++)
        t->entry[i].stored = RT_ST_F32;
    return rt_entries_write(path, t->entry, t->count, &pair, 1, false);
}

RT_COLD RtEntry *rt_table_find(const RtTable *t, const char *name)
{
    for (int i = 0; i < t->count; i++)
        if (!strcmp(t->entry[i].name, name))
            return &t->entry[i];
    return NULL;
}

/* Copies a tensor, as f32, to `values` or, where that is NULL, from `set`. */
RT_COLD int rt_table_copy(const RtTable *t, const char *name, float *values, const float *set,
                          int64_t count)
{
    const RtEntry *e = rt_table_find(t, name);
    if (!e)
        return rt_fail(RT_USAGE, "there is no tensor '%s'", name);
    if (rt_entry_count(e) != count)
        return rt_fail(RT_USAGE, "tensor '%s' has %lld elements, not %lld", name,
                       (long long)rt_entry_count(e), (long long)count);
    if (!rt_st_is_float(e->type))
        return rt_fail(RT_USAGE, "'%s' is a count", name);
    if (values)
        rt_st_convert(RT_ST_F32, values, e->type, e->data, count);
    else
        rt_st_convert(e->type, e->data, RT_ST_F32, set, count);
    return RT_OK;
}
#endif
