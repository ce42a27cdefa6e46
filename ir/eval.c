#include "ir/eval.h"
#include "ir/shape.h"
#include "rt_base.h"
#include "rt_rng.h"
#include <assert.h>
#include <math.h>
#include <string.h>

static const double U32 = 0x1p-24; /* unit round-off of f32 */

Tensor tensor_make(Arena *arena, EvalMode mode, const Type *type, const int64_t *symbols)
{
    Tensor t = {.type = type, .count = 1};
    for (int i = 0; i < type->rank; i++)
        t.count *= dim_value(type->dim[i], symbols);
    if (!is_real(type->dtype))
        t.i = new_array(arena, int64_t, t.count + 1);
    else if (mode == EVAL_STRICT)
        t.f = new_array(arena, float, t.count + 1);
    else
        t.d = new_array(arena, double, t.count + 1);
    if (mode == EVAL_EXACT)
        t.bound = new_array(arena, double, t.count + 1);
    return t;
}

/* Sizes of a type at the values of the symbols. */
static void sizes_of(const Eval *e, const Type *type, int64_t *size)
{
    for (int i = 0; i < type->rank; i++)
        size[i] = dim_value(type->dim[i], e->symbols);
}

/* Rounds a strict result to the node's type. */
static float to_storage(DType dtype, float value)
{
    return is_half(dtype) ? (float)dtype_round(dtype, value) : value;
}

/* What rounding to the node's type adds to the bound of an exact value. */
static double storage_error(DType dtype, double value)
{
    if (dtype == DT_F16)
        return fabs(value) > 65519 ? INFINITY : dtype_unit(dtype) * fabs(value) + 0x1p-25;
    if (dtype == DT_BF16)
        return dtype_unit(dtype) * fabs(value) + 0x1p-134;
    return 0;
}

/* Stores an exact value; `error` is what operands and arithmetic add. */
static void put_exact(Tensor *out, int64_t at, double value, double error)
{
    out->d[at] = value;
    out->bound[at] = error + storage_error(out->type->dtype, fabs(value) + error);
    if (isnan(out->bound[at]))
        out->bound[at] = INFINITY;
}

/* Walks the elements of a shape and keeps the offset of every operand, broadcast dimensions
 * standing still. */
typedef struct Walk {
    int rank, operands;
    int64_t size[MAX_RANK], index[MAX_RANK];
    int64_t stride[3][MAX_RANK], at[3];
} Walk;

static void walk_start(Walk *w, const Eval *e, const Type *type, Node *const *in, int nin)
{
    memset(w, 0, sizeof *w);
    w->rank = type->rank;
    w->operands = nin;
    sizes_of(e, type, w->size);
    for (int k = 0; k < nin; k++) {
        int64_t size[MAX_RANK], stride = 1;
        int rank = in[k]->type->rank;
        sizes_of(e, in[k]->type, size);
        for (int i = rank - 1; i >= 0; i--) {
            w->stride[k][i + type->rank - rank] = size[i] == 1 ? 0 : stride;
            stride *= size[i];
        }
    }
}

static void walk_next(Walk *w)
{
    for (int i = w->rank - 1; i >= 0; i--) {
        w->index[i]++;
        for (int k = 0; k < w->operands; k++)
            w->at[k] += w->stride[k][i];
        if (w->index[i] < w->size[i])
            return;
        for (int k = 0; k < w->operands; k++)
            w->at[k] -= w->stride[k][i] * w->size[i];
        w->index[i] = 0;
    }
}

/* Where an operand is tried: at the ends of its interval, and, when that is wide, between them too,
 * since the cell need not be monotone there. */
static int trial_points(double x, double error, double *point)
{
    int n = 0;
    point[n++] = x;
    if (!(error > 0))
        return n;
    point[n++] = x - error;
    point[n++] = x + error;
    if (error > 0x1p-6 && error < INFINITY)
        for (int i = 1; i < 8; i++) {
            point[n++] = x - error * i / 8;
            point[n++] = x + error * i / 8;
        }
    return n;
}

/* Largest change of the cell when each operand moves by up to its bound. */
static double moved_cell(Op op, const double *x, const double *error, int n, double p, double q,
                         double middle)
{
    double point[3][17], worst = 0;
    int count[3] = {1, 1, 1};
    for (int k = 0; k < 3; k++)
        count[k] = trial_points(x[k], k < n ? error[k] : 0, point[k]);
    for (int i = 0; i < count[0]; i++)
        for (int j = 0; j < count[1]; j++)
            for (int k = 0; k < count[2]; k++) {
                double change =
                    fabs(cell_double(op, point[0][i], point[1][j], point[2][k], p, q) - middle);
                if (!(change <= worst))
                    worst = isnan(change) ? INFINITY : change;
            }
    return worst;
}

/* The same, for cells with poles or periods inside the interval that no trial would find. */
static double cell_error(Op op, const double *x, const double *error, int n, double p, double q,
                         double middle)
{
    int divisor = op == OP_DIV ? 1 : 0;
    if ((op == OP_DIV || op == OP_RECIPROCAL) && error[divisor] > 0 &&
        fabs(x[divisor]) <= error[divisor])
        return INFINITY;
    if (n == 2 && (isinf(error[0]) || isinf(error[1])))
        return INFINITY;
    if (op == OP_SIN || op == OP_COS)
        return fmin(2, fabs(op == OP_SIN ? cos(x[0]) : sin(x[0])) * error[0] +
                           error[0] * error[0] / 2);
    if (op == OP_WHERE)
        return error[0] > 0 ? fabs(x[1] - x[2]) + error[1] + error[2]
               : x[0] != 0  ? error[1]
                            : error[2];
    return moved_cell(op, x, error, n, p, q, middle);
}

static void eval_elementwise(Eval *e, const Node *n, Tensor *out)
{
    const Tensor *in[3] = {0};
    Walk w;
    double p = n->attrs && n->attrs->n > 0 ? n->attrs->at[0].r : 0;
    double q = n->attrs && n->attrs->n > 1 ? n->attrs->at[1].r : 0;
    int first = op_is(n->op, F_CHOICE) ? 1 : 0, reals = is_real(n->in[first]->type->dtype);
    for (int k = 0; k < n->nin; k++)
        in[k] = &e->value[n->in[k]->id];
    walk_start(&w, e, n->type, n->in, n->nin);
    if (e->mode == EVAL_EXACT) {
        p = (float)p;
        q = (float)q;
    }
    for (int64_t at = 0; at < out->count; at++, walk_next(&w)) {
        if (!reals) {
            int64_t x[3] = {0};
            double unsure = 0;
            for (int k = 0; k < n->nin; k++) {
                x[k] = in[k]->i[w.at[k]];
                unsure += in[k]->bound ? in[k]->bound[w.at[k]] : 0;
            }
            out->i[at] = cell_int(n->op, x[0], x[1], x[2]);
            if (n->type->dtype == DT_I32)
                out->i[at] = (int32_t)(uint32_t)(uint64_t)out->i[at];
            if (out->bound)
                out->bound[at] = unsure;
            continue;
        }
        if (e->mode == EVAL_STRICT) {
            float x[3] = {0};
            for (int k = 0; k < n->nin; k++)
                x[k] = in[k]->f ? in[k]->f[w.at[k]] : (float)in[k]->i[w.at[k]];
            float r = cell_float(n->op, x[0], x[1], x[2], (float)p, (float)q);
            if (out->i)
                out->i[at] = r != 0;
            else
                out->f[at] = to_storage(n->type->dtype, r);
            continue;
        }
        double x[3] = {0}, error[3] = {0}, size = 0;
        for (int k = 0; k < n->nin; k++) {
            x[k] = in[k]->d ? in[k]->d[w.at[k]] : (double)in[k]->i[w.at[k]];
            error[k] = in[k]->bound[w.at[k]];
            size = fmax(size, fabs(x[k]) + error[k]);
        }
        double r = cell_double(n->op, x[0], x[1], x[2], p, q);
        double moved = cell_error(n->op, x, error, n->nin, p, q, r);
        if (out->i) {
            int is_equality =
                n->op == OP_EQ || n->op == OP_NE; /* no trial need hit the other value */
            out->i[at] = r != 0;
            out->bound[at] = moved != 0 || (is_equality && error[0] + error[1] > 0 &&
                                            fabs(x[0] - x[1]) <= error[0] + error[1]);
            continue;
        }
        int roundings = cell_roundings(n->op);
        if (roundings > 1) /* intermediate results may be as large as the operands */
            size = fmax(size, fabs(r));
        else
            size = fabs(r);
        put_exact(out, at, r,
                  roundings ? moved + roundings * U32 * (size + moved) + 0x1p-149 : moved);
    }
}

/* ---- sources ---- */

static void fill_real(const Eval *e, Tensor *out, int64_t at, float value)
{
    if (e->mode == EVAL_STRICT)
        out->f[at] = value;
    else
        out->d[at] = value;
}

static void eval_source(Eval *e, const Node *n, Tensor *out)
{
    e->source(e->data, n, out);
    for (int64_t at = 0; is_real(n->type->dtype) && at < out->count; at++) {
        if (e->mode == EVAL_STRICT)
            out->f[at] = to_storage(n->type->dtype, out->f[at]);
        else
            out->d[at] =
                is_half(n->type->dtype) ? dtype_round(n->type->dtype, out->d[at]) : out->d[at];
    }
}

static void eval_iota(Eval *e, const Node *n, Tensor *out)
{
    int64_t size[MAX_RANK], inner = 1;
    int axis = (int)n->attrs->at[1].i;
    sizes_of(e, n->type, size);
    for (int i = axis + 1; i < n->type->rank; i++)
        inner *= size[i];
    for (int64_t at = 0; at < out->count; at++)
        out->i[at] = at / inner % size[axis];
}

static void eval_random(Eval *e, const Node *n, Tensor *out)
{
    uint32_t stream = rt_stream(n->attrs->at[1].s);
    for (int64_t at = 0; at < out->count; at++)
        fill_real(e, out, at,
                  n->op == OP_RAND ? rt_uniform(e->seed, stream, e->step, (uint64_t)at)
                                   : rt_normal(e->seed, stream, e->step, (uint64_t)at));
}

/* ---- types ---- */

/* rt_integer for doubles: without fraction, within the range of the type, 0 for NaN. */
static int64_t to_integer(DType to, double x)
{
    const DTypeInfo *info = &dtype_info[to];
    double high = ldexp(1, info->mantissa), low = info->is_signed ? -high : 0;
    if (isnan(x))
        return 0;
    if (x >= high)
        return (int64_t)((UINT64_C(1) << info->mantissa) - 1);
    return x <= low ? (int64_t)low : (int64_t)x;
}

static void eval_cast(Eval *e, const Node *n, Tensor *out)
{
    const Tensor *in = &e->value[n->in[0]->id];
    DType to = n->type->dtype;
    for (int64_t at = 0; at < out->count; at++) {
        double x = in->i ? (double)in->i[at] : in->f ? in->f[at] : in->d[at];
        double error = in->bound ? in->bound[at] : 0;
        if (in->i && error > 0) /* not certain: a bool is off by 1, an integer by anything */
            error = n->in[0]->type->dtype == DT_BOOL ? 1 : INFINITY;
        if (is_real(to)) {
            if (e->mode == EVAL_STRICT)
                out->f[at] = to_storage(to, in->i ? (float)in->i[at] : (float)x);
            else
                put_exact(out, at, x, error);
            continue;
        }
        if (in->i)
            out->i[at] = to == DT_BOOL ? in->i[at] != 0 : in->i[at];
        else
            out->i[at] = to == DT_BOOL ? x != 0 : to_integer(to, x);
        if (out->bound)
            out->bound[at] = in->i ? error : trunc(x - error) != trunc(x + error);
    }
}

/* ---- reductions: [outer, n, inner], n the run of axes ---- */

typedef struct Run {
    int64_t outer, n, inner;
    int last; /* the run ends at the last axis */
} Run;

static Run run_of(const Eval *e, const Node *n, int first, int last)
{
    int64_t size[MAX_RANK];
    const Type *x = n->in[0]->type;
    Run run = {1, 1, 1, last == x->rank - 1};
    sizes_of(e, x, size);
    for (int i = 0; i < x->rank; i++)
        *(i < first ? &run.outer : i <= last ? &run.n : &run.inner) *= size[i];
    return run;
}

/* Innermost axes: chunks of 4096; in a chunk lane j of 32 adds j, j+32, …; lanes fold 16 8 4 2 1;
 * chunks in order. */
static float sum_innermost(const float *x, int64_t n)
{
    float total = 0;
    for (int64_t begin = 0; begin < n; begin += 4096) {
        float lane[32] = {0};
        int64_t end = begin + 4096 < n ? begin + 4096 : n;
        for (int64_t k = begin; k < end; k++)
            lane[(k - begin) % 32] += x[k];
        for (int half = 16; half; half /= 2)
            for (int j = 0; j < half; j++)
                lane[j] += lane[j + half];
        total += lane[0];
    }
    return total;
}

/* Other axes: chunks of 128 in order, then the chunks in order. */
static float sum_strided(const float *x, int64_t n, int64_t stride)
{
    float total = 0;
    for (int64_t begin = 0; begin < n; begin += 128) {
        float chunk = 0;
        for (int64_t k = begin; k < n && k < begin + 128; k++)
            chunk += x[k * stride];
        total += chunk;
    }
    return total;
}

static void sum_exact(const Tensor *in, Tensor *out, const Run *run, int64_t from, int64_t at)
{
    double sum = 0, size = 0, error = 0;
    for (int64_t k = 0; k < run->n; k++) {
        double x = in->d[from + k * run->inner];
        sum += x;
        size += fabs(x);
        error += in->bound[from + k * run->inner];
    }
    int64_t chunk = run->last ? 4096 : 128;
    double depth = run->last ? fmin((double)run->n, 4096) / 32 + 6 : fmin((double)run->n, 128);
    depth += (double)(run->n / chunk) + 1;
    put_exact(out, at, sum, error + depth * U32 * (size + error));
}

static void extreme(const Tensor *in, Tensor *out, const Run *run, int64_t from, int64_t at,
                    int largest, int strict)
{
    double best = strict ? in->f[from] : in->d[from], error = 0;
    for (int64_t k = 0; k < run->n; k++) {
        double x = strict ? in->f[from + k * run->inner] : in->d[from + k * run->inner];
        if (!strict)
            error = fmax(error, in->bound[from + k * run->inner]);
        int better = largest ? x > best : x < best;
        if (better || (isnan(x) && !isnan(best)))
            best = x;
    }
    if (strict)
        out->f[at] = (float)best;
    else
        put_exact(out, at, best, error);
}

static void eval_reduction(Eval *e, const Node *n, Tensor *out)
{
    const Tensor *in = &e->value[n->in[0]->id];
    const Attr *axes = &n->attrs->at[0];
    Run run = run_of(e, n, (int)axes->ints.at[0], (int)axes->ints.at[axes->ints.n - 1]);
    int strict = e->mode == EVAL_STRICT;
    for (int64_t o = 0; o < run.outer; o++)
        for (int64_t j = 0; j < run.inner; j++) {
            int64_t from = o * run.n * run.inner + j, at = o * run.inner + j;
            if (n->op != OP_SUM)
                extreme(in, out, &run, from, at, n->op == OP_MAXRED, strict);
            else if (strict)
                out->f[at] = to_storage(n->type->dtype,
                                        run.last ? sum_innermost(in->f + from, run.n)
                                                 : sum_strided(in->f + from, run.n, run.inner));
            else
                sum_exact(in, out, &run, from, at);
        }
}

static void eval_argmax(Eval *e, const Node *n, Tensor *out)
{
    const Tensor *in = &e->value[n->in[0]->id];
    int axis = (int)n->attrs->at[0].i;
    Run run = run_of(e, n, axis, axis);
    for (int64_t o = 0; o < run.outer; o++)
        for (int64_t j = 0; j < run.inner; j++) {
            int64_t from = o * run.n * run.inner + j, at = o * run.inner + j, best = 0;
#define AT(k)                                                                                      \
    (in->i   ? (double)in->i[from + (k)*run.inner]                                                 \
     : in->f ? in->f[from + (k)*run.inner]                                                         \
             : in->d[from + (k)*run.inner])
            for (int64_t k = 1; k < run.n; k++)
                if (AT(k) > AT(best) || (isnan(AT(k)) && !isnan(AT(best))))
                    best = k;
            out->i[at] = best;
            for (int64_t k = 0; out->bound && in->d && k < run.n; k++)
                if (k != best && AT(k) + in->bound[from + k * run.inner] >=
                                     AT(best) - in->bound[from + best * run.inner])
                    out->bound[at] = 1;
#undef AT
        }
}

static void eval_divn(Eval *e, const Node *n, Tensor *out)
{
    const Tensor *in = &e->value[n->in[0]->id];
    int64_t count = 1;
    for (int i = 0; i < n->attrs->at[0].dims.n; i++)
        count *= dim_value(n->attrs->at[0].dims.at[i], e->symbols);
    for (int64_t at = 0; at < out->count; at++) {
        if (e->mode == EVAL_STRICT)
            out->f[at] = to_storage(n->type->dtype, in->f[at] / (float)count);
        else
            put_exact(out, at, in->d[at] / (double)count,
                      in->bound[at] / (double)count + 2 * U32 * fabs(in->d[at] / (double)count) +
                          0x1p-149);
    }
}

/* ---- products ---- */

/* Element of an operand as f32; k-strides are in elements. */
static float chain_f32(const float *a, int64_t sa, const float *b, int64_t sb, int64_t k)
{
    float acc = 0;
    for (int64_t i = 0; i < k; i++)
        acc = fmaf(a[i * sa], b[i * sb], acc);
    return acc;
}

/* Half operands: for every 32 of k, even and odd chains from 0, then acc + (e + o). */
static float chain_half(const float *a, int64_t sa, const float *b, int64_t sb, int64_t k)
{
    float acc = 0;
    for (int64_t begin = 0; begin < k; begin += 32) {
        float even = 0, odd = 0;
        for (int64_t i = begin; i < begin + 32; i += 2) {
            float a0 = i < k ? a[i * sa] : 0, b0 = i < k ? b[i * sb] : 0;
            float a1 = i + 1 < k ? a[(i + 1) * sa] : 0, b1 = i + 1 < k ? b[(i + 1) * sb] : 0;
            even = fmaf(a0, b0, even);
            odd = fmaf(a1, b1, odd);
        }
        acc = acc + (even + odd);
    }
    return acc;
}

static void product_exact(const Tensor *a, int64_t fa, int64_t sa, const Tensor *b, int64_t fb,
                          int64_t sb, int64_t k, Tensor *out, int64_t at)
{
    double sum = 0, size = 0, error = 0;
    for (int64_t i = 0; i < k; i++) {
        double x = a->d[fa + i * sa], y = b->d[fb + i * sb];
        double ex = a->bound[fa + i * sa], ey = b->bound[fb + i * sb];
        sum += x * y;
        size += fabs(x * y);
        error += ex * fabs(y) + ey * fabs(x) + ex * ey;
    }
    put_exact(out, at, sum, error + (double)(k + 2) * U32 * (size + error));
}

static void eval_matmul(Eval *e, const Node *n, Tensor *out)
{
    const Tensor *a = &e->value[n->in[0]->id], *b = &e->value[n->in[1]->id];
    int ta = (int)n->attrs->at[0].i, tb = (int)n->attrs->at[1].i, rank = n->type->rank;
    int64_t size[MAX_RANK], left[MAX_RANK], stacks = 1;
    sizes_of(e, n->type, size);
    sizes_of(e, n->in[0]->type, left);
    int64_t M = size[rank - 2], N = size[rank - 1], K = left[ta ? rank - 2 : rank - 1];
    int half = is_half(n->in[0]->type->dtype);
    for (int i = 0; i < rank - 2; i++)
        stacks *= size[i];
    for (int64_t s = 0; s < stacks; s++)
        for (int64_t i = 0; i < M; i++)
            for (int64_t j = 0; j < N; j++) {
                int64_t at = (s * M + i) * N + j;
                int64_t fa = s * M * K + (ta ? i : i * K), sa = ta ? M : 1;
                int64_t fb = s * K * N + (tb ? j * K : j), sb = tb ? 1 : N;
                if (e->mode == EVAL_EXACT) {
                    product_exact(a, fa, sa, b, fb, sb, K, out, at);
                    continue;
                }
                float r = half ? chain_half(a->f + fa, sa, b->f + fb, sb, K)
                               : chain_f32(a->f + fa, sa, b->f + fb, sb, K);
                out->f[at] = to_storage(n->type->dtype, r);
            }
}

/* ---- views: the element of the operand that stands at an index of the result; -1: zero ---- */

static void copy_element(const Tensor *in, int64_t from, Tensor *out, int64_t at)
{
    if (out->i)
        out->i[at] = from < 0 ? 0 : in->i[from];
    if (out->f)
        out->f[at] = from < 0 ? 0 : in->f[from];
    if (out->d)
        out->d[at] = from < 0 ? 0 : in->d[from];
    if (out->bound)
        out->bound[at] = from < 0 ? 0 : in->bound[from];
}

static int64_t view_source(const Node *n, const Eval *e, const int64_t *index, const int64_t *size)
{
    int64_t from = 0, axis = n->op == OP_SLICE || n->op == OP_PAD ? n->attrs->at[0].i : -1;
    int rank = n->in[0]->type->rank, shift = n->type->rank - rank;
    int64_t moved[MAX_RANK];
    for (int i = 0; i < rank; i++)
        moved[i] = index[i + shift];
    if (n->op == OP_PERMUTE)
        for (int i = 0; i < rank; i++)
            moved[n->attrs->at[0].ints.at[i]] = index[i];
    if (axis >= 0) {
        int64_t begin = dim_value(n->attrs->at[1].dims.at[0], e->symbols);
        moved[axis] += n->op == OP_SLICE ? begin : -begin;
        if (moved[axis] < 0 || moved[axis] >= size[axis])
            return -1;
    }
    for (int i = 0; i < rank; i++)
        from = from * size[i] + (n->op == OP_EXPAND && size[i] == 1 ? 0 : moved[i]);
    return from;
}

static void eval_view(Eval *e, const Node *n, Tensor *out)
{
    const Tensor *in = &e->value[n->in[0]->id];
    int64_t size[MAX_RANK];
    Walk w;
    sizes_of(e, n->in[0]->type, size);
    walk_start(&w, e, n->type, NULL, 0);
    int straight =
        n->op == OP_RESHAPE || n->op == OP_DETACH || n->op == OP_ENTER || n->op == OP_LEAVE;
    for (int64_t at = 0; at < out->count; at++, walk_next(&w))
        copy_element(in, straight ? at : view_source(n, e, w.index, size), out, at);
}

static void eval_concat(Eval *e, const Node *n, Tensor *out)
{
    int64_t size[MAX_RANK], outer = 1, inner = 1, begin = 0;
    int axis = (int)n->attrs->at[0].i;
    sizes_of(e, n->type, size);
    for (int i = 0; i < n->type->rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : size[i];
    for (int k = 0; k < n->nin; k++) {
        const Tensor *in = &e->value[n->in[k]->id];
        int64_t part = dim_value(n->in[k]->type->dim[axis], e->symbols);
        for (int64_t o = 0; o < outer; o++)
            for (int64_t j = 0; j < part * inner; j++)
                copy_element(in, o * part * inner + j, out, (o * size[axis] + begin) * inner + j);
        begin += part;
    }
}

/* ---- rows by index; an index outside is taken as a row of zeros, as emitted code checks it before a step
 * ---- */

static void eval_gather(Eval *e, const Node *n, Tensor *out)
{
    const Tensor *in = &e->value[n->in[0]->id], *rows = &e->value[n->in[1]->id];
    int64_t limit = dim_value(n->in[0]->type->dim[0], e->symbols),
            width = in->count / (limit ? limit : 1);
    for (int64_t r = 0; r < rows->count; r++)
        for (int64_t j = 0; j < width; j++) {
            int inside = rows->i[r] >= 0 && rows->i[r] < limit;
            copy_element(in, inside ? rows->i[r] * width + j : -1, out, r * width + j);
        }
}

/* Rows are added in order, in f32 (exact: in double), and rounded once. */
static void eval_scatter(Eval *e, const Node *n, Tensor *out)
{
    const Tensor *in = &e->value[n->in[0]->id], *rows = &e->value[n->in[1]->id];
    int64_t limit = dim_value(n->type->dim[0], e->symbols),
            width = out->count / (limit ? limit : 1);
    double *size = new_array(e->arena, double, out->count + 1);
    for (int64_t r = 0; r < rows->count; r++)
        for (int64_t j = 0; j < width; j++) {
            int64_t at = rows->i[r] * width + j, from = r * width + j;
            if (rows->i[r] < 0 || rows->i[r] >= limit)
                continue;
            if (e->mode == EVAL_STRICT) {
                out->f[at] += in->f[from];
                continue;
            }
            out->d[at] += in->d[from];
            size[at] += fabs(in->d[from]);
            out->bound[at] += in->bound[from] + (double)rows->count * U32 * fabs(in->d[from]);
        }
    for (int64_t at = 0; at < out->count; at++) {
        if (e->mode == EVAL_STRICT)
            out->f[at] = to_storage(n->type->dtype, out->f[at]);
        else
            put_exact(out, at, out->d[at], out->bound[at]);
    }
}

static void eval_node(Eval *e, const Node *n)
{
    Tensor *out = &e->value[n->id];
    *out = tensor_make(e->arena, e->mode, n->type, e->symbols);
    if (op_info(n->op)->elementwise) {
        eval_elementwise(e, n, out);
        return;
    }
    switch (n->op) {
    case OP_INPUT:
    case OP_OPTION:
    case OP_READ:
    case OP_SCALE:
        eval_source(e, n, out);
        break;
    case OP_CONST:
        if (out->i)
            out->i[0] = (int64_t)n->attrs->at[0].r;
        else if (out->f)
            out->f[0] = to_storage(n->type->dtype, (float)n->attrs->at[0].r);
        else
            out->d[0] = n->type->dtype == DT_FLOAT ? n->attrs->at[0].r
                                                   : dtype_round(n->type->dtype, n->attrs->at[0].r);
        break;
    case OP_IOTA:
        eval_iota(e, n, out);
        break;
    case OP_RAND:
    case OP_RANDN:
        eval_random(e, n, out);
        break;
    case OP_CAST:
        eval_cast(e, n, out);
        break;
    case OP_SUM:
    case OP_MAXRED:
    case OP_MINRED:
        eval_reduction(e, n, out);
        break;
    case OP_ARGMAX:
        eval_argmax(e, n, out);
        break;
    case OP_DIVN:
        eval_divn(e, n, out);
        break;
    case OP_MATMUL:
        eval_matmul(e, n, out);
        break;
    case OP_RESHAPE:
    case OP_PERMUTE:
    case OP_SLICE:
    case OP_EXPAND:
    case OP_PAD:
    case OP_DETACH:
    case OP_ENTER:
    case OP_LEAVE:
        eval_view(e, n, out);
        break;
    case OP_CONCAT:
        eval_concat(e, n, out);
        break;
    case OP_GATHER:
        eval_gather(e, n, out);
        break;
    case OP_SCATTER:
        eval_scatter(e, n, out);
        break;
    default: /* effects hand their operand on */
        if (n->nin)
            *out = e->value[n->in[0]->id];
        assert((op_is(n->op, F_EFFECT)) && "composites are expanded before they are evaluated");
    }
}

void eval_graph(Eval *e, Graph *g)
{
    e->value = new_array(e->arena, Tensor, g->count + 1);
    for (Node *n = g->first; n; n = n->next)
        eval_node(e, n);
}
