/* Random models at all levels. Each is held to what must be true of every model:
 *
 *   - it compiles at O0 to O3, the verifier runs after every pass;
 *   - at every node of every entry, for one row, a prime number of rows and the full batch, the interpreter's strict
 *     value is within 4 times the bound that its exact mode derives;
 *   - O0 gives the bits of the pipeline without casts, masters and scaler, where the text pins no half type;
 *   - other names of values and another order of declarations change nothing;
 *   - N rows give what N times one row give;
 *   - every row of ops.def is in at least 5 of 200 models.
 *
 *   - the C library that is emitted for it gives the bits of the interpreter: results, reports, weights and states of
 *     three steps, and of one with an infinite input; in fused rounding, results and reports of every step from equal
 *     state are within 4 times the bound.
 *
 *     random_models [--first=S] [--count=N] [--c=FOLDER] [--thorough]     seeds S, S + 1, …; FOLDER: for emitted C
 *     random_models --print=S                   the text of one
 *     random_models --reduce=S                  the smallest model that still fails
 */
#include "check.h"
#include "library.h"
#include "model_text.h"
#include "reference.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Failure { /* of one model: what a reducer must keep */
    const char *what;
    char text[600];
} Failure;

static long compared, uncertain; /* elements */
static long overflows;           /* steps that were skipped because of an infinite input */

static int fail(Failure *f, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int fail(Failure *f, const char *what, const char *format, ...)
{
    va_list args;
    if (f->what)
        return 0;
    f->what = what;
    va_start(args, format);
    vsnprintf(f->text, sizeof f->text, format, args);
    va_end(args);
    return 0;
}

/* ---- inputs ---- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Fills an input; element k depends on the seed, the name and k alone. */
static void make_input(Arena *arena, const ModelText *m, const Reference *r, const EntryInput *in,
                       Batch *b, uint64_t salt)
{
    const ModelValue *value = NULL;
    int64_t symbols[8] = {b->rows, b->rows, b->rows, b->rows, b->rows, b->rows, b->rows, b->rows};
    int64_t count = dim_value(type_count(&((Reference *)r)->program->types, in->type), symbols);
    float *f = new_array(arena, float, count + 1);
    int64_t *i = new_array(arena, int64_t, count + 1);
    for (int v = 0; v < m->inputs; v++)
        if (!strcmp(m->value[v].input, in->name))
            value = &m->value[v];
    int64_t classes = value ? (int64_t)value->high + 1 : 3;
    for (int64_t k = 0; k < count; k++) {
        uint64_t word =
            mix(mix(m->seed * 31 + salt) + (uint64_t)in->name[0] * 1000003 + (uint64_t)k);
        double u = (double)(word >> 11) * 0x1p-53;
        if (value && value->kind == REAL)
            f[k] = (float)(value->low + (value->high - value->low) * u);
        else
            i[k] = (int64_t)(u * (double)classes);
    }
    b->input[b->count].name = in->name;
    if (value && value->kind == REAL)
        b->input[b->count++].f = f;
    else
        b->input[b->count++].i = i;
}

static Batch make_batch(Arena *arena, const ModelText *m, const Reference *r, int64_t rows,
                        uint64_t salt)
{
    Batch b = {.rows = rows};
    for (int i = 0; i < r->train->inputs.n; i++)
        make_input(arena, m, r, &r->train->inputs.at[i], &b, salt);
    return b;
}

/* ---- comparing ---- */

static int same_float(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static int same_tensor(const Tensor *a, const Tensor *b)
{
    if (a->count != b->count)
        return 0;
    for (int64_t k = 0; k < a->count; k++)
        if (a->f ? !same_float(a->f[k], b->f[k]) : a->i[k] != b->i[k])
            return 0;
    return 1;
}

/* The strict value of a node against the exact one. */
static int compare_node(Failure *f, const Reference *r, const Node *n, const Tensor *strict,
                        const Tensor *exact, const char *where)
{
    for (int64_t k = 0; k < exact->count; k++) {
        double bound = exact->bound ? exact->bound[k] : 0;
        if (!exact->d) {
            compared += bound <= 0;
            uncertain += bound > 0;
            if (!(bound > 0) && strict->i[k] != exact->i[k])
                return fail(f, "bound", "%s: %s %%%d of %s [%d]: strict %lld, exact %lld", where,
                            op_info(n->op)->spelling, n->id, n->name ? n->name : "?", (int)k,
                            (long long)strict->i[k], (long long)exact->i[k]);
            continue;
        }
        if (!isfinite(bound) || !isfinite(exact->d[k])) {
            uncertain++;
            continue;
        }
        compared++;
        if (!(fabs((double)strict->f[k] - exact->d[k]) <= 4 * bound))
            return fail(
                f, "bound", "%s: %s %%%d of %s [%d] %s: strict %.9g, exact %.12g, bound %.3g",
                where, op_info(n->op)->spelling, n->id, n->name ? n->name : "?", (int)k,
                type_text(&((Reference *)r)->program->types, n->type, &((Reference *)r)->scratch),
                (double)strict->f[k], exact->d[k], bound);
    }
    return 1;
}

static int compare_entry(Failure *f, Reference *r, Entry *entry, const Batch *batch,
                         const char *where)
{
    arena_reset(&r->scratch);
    Eval exact = reference_eval(r, entry, EVAL_EXACT, batch);
    Eval strict = reference_eval(r, entry, EVAL_STRICT, batch);
    for (Node *n = entry->segment[0]->first; n; n = n->next)
        if (!op_is(n->op, F_EFFECT) &&
            !compare_node(f, r, n, &strict.value[n->id], &exact.value[n->id], where))
            return 0;
    return 1;
}

/* ---- the properties of one model ---- */

static Settings settings_of(const ModelText *m, int level)
{
    static const char *const scales[] = {NULL, "dynamic", "1024", "128"};
    return (Settings){.level = level,
                      .half = (m->seed + (uint64_t)level) % 2 ? DT_BF16 : DT_F16,
                      .half_given = 1,
                      .strict = 1,
                      .rounding_given = 1,
                      .keep_norm_f32 = UNSET,
                      .master_weights = UNSET,
                      .cast_model_type = DT_NONE,
                      .loss_scale = m->scaler ? NULL : scales[m->seed / 2 % 4],
                      .verify = 1};
}

static int check_bounds(Failure *f, const ModelText *m, const char *text, int level)
{
    Reference r;
    Settings settings = settings_of(m, level);
    Arena data = {0};
    int64_t rows[] = {1, m->prime, m->batch};
    if (!reference_open(&r, text, &settings, NULL)) {
        fail(f, "compile", "O%d: %.500s", level, r.message);
        reference_close(&r);
        return 0;
    }
    for (int i = 0; i < 3 && !f->what; i++) {
        Batch b = make_batch(&data, m, &r, rows[i], (uint64_t)i);
        Entry *entries[] = {r.infer, r.eval, r.train};
        static const char *const names[] = {"infer", "eval", "train"};
        for (int k = 0; k < 3 && !f->what; k++) {
            char where[80];
            snprintf(where, sizeof where, "O%d %s %s N=%d", level, dtype_info[settings.half].name,
                     names[k], (int)rows[i]);
            compare_entry(f, &r, entries[k], &b, where);
        }
        reference_step(&r, &b);
    }
    arena_free(&data);
    reference_close(&r);
    return !f->what;
}

/* Results of an entry by name: from RESULT, REPORT and UPDATE nodes. */
static int same_outputs(Failure *f, const char *what, Graph *g, const Eval *a, Graph *h,
                        const Eval *b)
{
    for (Node *n = g->first; n; n = n->next) {
        if (n->op != OP_RESULT && n->op != OP_REPORT && n->op != OP_UPDATE)
            continue;
        const char *name = n->op == OP_UPDATE ? n->param->name : n->attrs->at[0].s;
        int found = 0;
        for (Node *o = h->first; o; o = o->next) {
            const char *other = o->op != n->op       ? ""
                                : n->op == OP_UPDATE ? o->param->name
                                                     : o->attrs->at[0].s;
            if (strcmp(name, other) != 0)
                continue;
            found = 1;
            if (!same_tensor(&a->value[n->in[0]->id], &b->value[o->in[0]->id]))
                return fail(f, what, "%s '%s' differs", op_info(n->op)->spelling, name);
        }
        if (!found)
            return fail(f, what, "%s '%s' is missing", op_info(n->op)->spelling, name);
    }
    return 1;
}

/* Compares all entries of two programs, bit for bit. */
static int same_programs(Failure *f, const char *what, const ModelText *m, const char *one,
                         const Settings *settings, const char *passes, const char *two,
                         const char *other_passes)
{
    Reference a, b;
    Arena data = {0};
    int opened = reference_open(&a, one, settings, passes);
    if (!opened)
        fail(f, "compile", "%.500s", a.message);
    int other = reference_open(&b, two, settings, other_passes);
    if (!other)
        fail(f, "compile", "%s: %.500s", what, b.message);
    if (opened && other) {
        Batch rows = make_batch(&data, m, &a, m->prime, 5);
        Entry *ours[] = {a.infer, a.eval, a.train}, *theirs[] = {b.infer, b.eval, b.train};
        for (int k = 0; k < 3; k++) {
            arena_reset(&a.scratch);
            arena_reset(&b.scratch);
            Eval x = reference_eval(&a, ours[k], EVAL_STRICT, &rows);
            Eval y = reference_eval(&b, theirs[k], EVAL_STRICT, &rows);
            same_outputs(f, what, ours[k]->segment[0], &x, theirs[k]->segment[0], &y);
        }
    }
    arena_free(&data);
    reference_close(&a);
    reference_close(&b);
    return !f->what;
}

static int check_o0(Failure *f, const ModelText *m, const char *text)
{
    if (strstr(text, "f16(")) /* a half type that the user pins is cast at every level */
        return 1;
    Settings settings = settings_of(m, 0);
    settings.loss_scale = NULL;
    return same_programs(f, "O0", m, text, &settings, NULL, text, "plain");
}

static int check_renamed(Failure *f, const ModelText *m, const char *text, Arena *arena)
{
    Settings settings = settings_of(m, (int)(m->seed / 4 % 4));
    ModelText other = *m;
    other.renamed = 1;
    return same_programs(f, "renamed", m, text, &settings, NULL, model_text(&other, arena), NULL);
}

/* The value whose result has this name: "r12", or the only one. */
static int value_of_result(const ModelText *m, const char *name)
{
    if (name[0] == 'r' && name[1] >= '0' && name[1] <= '9')
        return atoi(name + 1);
    for (int v = 0; v < m->values; v++)
        if (model_is_result(m, v))
            return v;
    return -1;
}

static Batch one_row(const Batch *all, int64_t row, const Reference *r)
{
    Batch b = *all;
    b.rows = 1;
    for (int i = 0; i < b.count; i++) {
        int64_t width = 1;
        for (int k = 1; k < r->train->inputs.at[i].type->rank; k++)
            width *= dim_value(r->train->inputs.at[i].type->dim[k], NULL);
        if (b.input[i].f)
            b.input[i].f += row * width;
        else
            b.input[i].i += row * width;
    }
    return b;
}

static int check_rows(Failure *f, const ModelText *m, const char *text, int level)
{
    Reference r;
    Settings settings = settings_of(m, level);
    Arena data = {0};
    if (!reference_open(&r, text, &settings, NULL)) {
        reference_close(&r);
        return fail(f, "compile", "O%d", level);
    }
    Batch all = make_batch(&data, m, &r, m->prime, 9);
    for (int64_t row = 0; row < m->prime && !f->what; row++) {
        Batch b = one_row(&all, row, &r);
        arena_reset(&r.scratch);
        Eval x = reference_eval(&r, r.infer, EVAL_STRICT, &all);
        Eval y = reference_eval(&r, r.infer, EVAL_STRICT, &b);
        for (Node *n = r.infer->segment[0]->first; n; n = n->next) {
            int v = n->op == OP_RESULT ? value_of_result(m, n->attrs->at[0].s) : -1;
            if (v < 0 || !m->value[v].by_row)
                continue;
            Tensor part = x.value[n->in[0]->id], alone = y.value[n->in[0]->id];
            if (part.f)
                part.f += row * alone.count;
            else
                part.i += row * alone.count;
            part.count = alone.count;
            if (!same_tensor(&part, &alone))
                fail(f, "rows", "O%d: row %d of %s differs when it is alone", level, (int)row,
                     n->attrs->at[0].s);
        }
    }
    arena_free(&data);
    reference_close(&r);
    return !f->what;
}

static int check_model(Failure *f, const ModelText *m, Arena *arena)
{
    const char *text = model_text(m, arena);
    *f = (Failure){.what = NULL};
    for (int level = 0; level < 4; level++)
        if (!check_bounds(f, m, text, level))
            return 0;
    return check_o0(f, m, text) && check_renamed(f, m, text, arena) &&
           check_rows(f, m, text, (int)(m->seed % 4));
}

/* ---- which rows of ops.def a model has ---- */

static void count_graphs(const char *text, const ModelText *m, const char *passes, char *seen)
{
    Reference r;
    Settings settings = settings_of(m, 2);
    if (reference_open(&r, text, &settings, passes))
        for (int i = 0; i < r.program->entries.n; i++)
            for (Node *n = r.program->entries.at[i]->segment[0]->first; n; n = n->next)
                seen[n->op] = 1;
    reference_close(&r);
}

static void count_rows(const ModelText *m, Arena *arena, long *models)
{
    char seen[OP_COUNT] = {0};
    const char *text = model_text(m, arena);
    count_graphs(text, m, "infer", seen);
    count_graphs(text, m, "infer,cast,autodiff", seen);
    count_graphs(text, m, NULL, seen);
    for (int op = 0; op < OP_COUNT; op++)
        models[op] += seen[op];
}

/* ---- emitted libraries, strict: bit for bit ---- */

enum { A_FILE = 20, STEPS = 3 };

typedef struct Host { /* what a caller of the library owns */
    void *argument[MAX_INPUTS + MAX_VALUES];
    int inputs;
} Host;

/* The inputs in the types that the library takes, and room for results of this many rows. */
static Host host_arguments(Arena *arena, const Reference *r, const Entry *e, const Batch *b)
{
    Host h = {.inputs = e->inputs.n};
    int64_t symbols[8] = {b->rows, b->rows, b->rows, b->rows, b->rows, b->rows, b->rows, b->rows};
    for (int i = 0; i < e->inputs.n; i++) {
        const Type *type = e->inputs.at[i].type;
        int64_t count = dim_value(type_count(&r->program->types, type), symbols);
        int found = 0;
        while (strcmp(b->input[found].name, e->inputs.at[i].name) != 0)
            found++;
        float *f = new_array(arena, float, count + 1);
        int64_t *wide = new_array(arena, int64_t, count + 1);
        int32_t *narrow = new_array(arena, int32_t, count + 1);
        for (int64_t k = 0; k < count; k++) {
            if (b->input[found].f) {
                f[k] = b->input[found].f[k];
                continue;
            }
            wide[k] = b->input[found].i[k];
            narrow[k] = (int32_t)wide[k];
        }
        h.argument[i] = b->input[found].f       ? (void *)f
                        : type->dtype == DT_I64 ? (void *)wide
                                                : (void *)narrow;
    }
    for (int i = 0; i < e->results.n; i++)
        h.argument[h.inputs + i] = arena_alloc(arena, 8 * 4096 * 4);
    return h;
}

static int same_result(const Tensor *t, DType dtype, const void *found, int64_t k)
{
    switch (dtype) {
    case DT_F32:
        return same_float(t->f[k], ((const float *)found)[k]);
    case DT_I32:
        return t->i[k] == ((const int32_t *)found)[k];
    case DT_I64:
        return t->i[k] == ((const int64_t *)found)[k];
    case DT_BOOL:
        return t->i[k] == ((const uint8_t *)found)[k];
    default:
        return 0;
    }
}

static int compare_infer(Failure *f, Arena *arena, Reference *r, const Shim *s, void *d,
                         const Batch *b)
{
    Host h = host_arguments(arena, r, r->infer, b);
    arena_reset(&r->scratch);
    Eval e = reference_eval(r, r->infer, EVAL_STRICT, b);
    int status = s->infer(d, b->rows, h.argument);
    if (status)
        return fail(f, "status", "infer gives %d: %s", status, s->error(d));
    int result = h.inputs;
    for (Node *n = r->infer->segment[0]->first; n; n = n->next) {
        if (n->op != OP_RESULT)
            continue;
        const Tensor *t = &e.value[n->in[0]->id];
        for (int64_t k = 0; k < t->count; k++)
            if (!same_result(t, n->in[0]->type->dtype, h.argument[result], k))
                return fail(f, "infer", "N=%d: %s[%d] is %.9g, wanted %.9g", (int)b->rows,
                            n->attrs->at[0].s, (int)k,
                            t->f ? (double)((float *)h.argument[result])[k] : -1.0,
                            t->f ? (double)t->f[k] : (double)t->i[k]);
        compared += t->count;
        result++;
    }
    return 1;
}

static int compare_tensor(Failure *f, const Shim *s, void *d, const char *name, const float *wanted,
                          int64_t count, const char *when)
{
    float found[4096];
    int status = count > 4096 ? 4 : s->get(d, name, found, count);
    if (status)
        return fail(f, "status", "%s: get %s gives %d: %s", when, name, status, s->error(d));
    for (int64_t k = 0; k < count; k++)
        if (!same_float(found[k], wanted[k]))
            return fail(f, "state", "%s: %s[%d] is %.9g, wanted %.9g", when, name, (int)k,
                        (double)found[k], (double)wanted[k]);
    compared += count;
    return 1;
}

/* Weights, buffers and optimizer states. */
static int compare_state(Failure *f, const Reference *r, const Shim *s, void *d, const char *when)
{
    char name[300];
    for (int i = 0; i < r->program->params.n; i++) {
        const Weights *w = &r->weights[i];
        const Param *p = w->param;
        snprintf(name, sizeof name, "%s/%s/%s", p->is_buffer ? "buffer" : "param",
                 p->instance->name, p->local);
        if (!compare_tensor(f, s, d, name, w->value, w->count, when))
            return 0;
        const OptimInfo *info = p->optimizer ? optim_info(p->optimizer->kind) : NULL;
        for (int k = 0; info && w->gradient_type != DT_NONE && k < info->states; k++) {
            snprintf(name, sizeof name, "opt/%s/%s/%s.%s", p->optimizer->name, p->instance->name,
                     p->local, info->state[k]);
            if (!compare_tensor(f, s, d, name, w->state[k], w->count, when))
                return 0;
        }
    }
    return 1;
}

static const Tensor *report_of(const Entry *entry, const Eval *e, Str name)
{
    for (Node *n = entry->segment[0]->first; n; n = n->next)
        if (n->op == OP_REPORT && n->attrs->at[0].s == name)
            return &e->value[n->in[0]->id];
    return NULL;
}

static int compare_step(Failure *f, Arena *arena, Reference *r, const Shim *s, void *d,
                        const Batch *b, const char *when)
{
    float report[5];
    Host h = host_arguments(arena, r, r->train, b);
    int status = s->train(d, b->rows, h.argument, report);
    Eval e = reference_step(r, b);
    if (status)
        return fail(f, "status", "%s: train gives %d: %s", when, status, s->error(d));
    float loss = report_of(r->train, &e, r->train->reports.at[0])->f[0];
    if (!same_float(report[0], loss))
        return fail(f, "loss", "%s: the loss is %.9g, wanted %.9g", when, (double)report[0],
                    (double)loss);
    if ((report[1] != 0) != (r->skipped != 0))
        return fail(f, "skip", "%s: skipped is %g, wanted %d", when, (double)report[1], r->skipped);
    if (!same_float(report[2], r->scale))
        return fail(f, "scale", "%s: the scale is %g, wanted %g", when, (double)report[2],
                    (double)r->scale);
    return compare_state(f, r, s, d, when);
}

static int compare_eval(Failure *f, Arena *arena, Reference *r, const Shim *s, void *d,
                        const Batch *b)
{
    float report[MAX_VALUES];
    Host h = host_arguments(arena, r, r->eval, b);
    int status = s->eval(d, b->rows, h.argument, report);
    arena_reset(&r->scratch);
    Eval e = reference_eval(r, r->eval, EVAL_STRICT, b);
    if (status)
        return fail(f, "status", "eval gives %d: %s", status, s->error(d));
    for (int i = 0; i < r->eval->reports.n; i++) {
        float wanted = report_of(r->eval, &e, r->eval->reports.at[i])->f[0];
        if (!same_float(report[i], wanted))
            return fail(f, "eval", "%s is %.9g, wanted %.9g", r->eval->reports.at[i],
                        (double)report[i], (double)wanted);
    }
    return 1;
}

/* A batch of one row in which one element of x is infinite. */
static Batch overflowing(Arena *arena, const ModelText *m, const Batch *b)
{
    Batch bad = *b;
    int64_t width = m->value[0].shape.size[1].count;
    for (int i = 0; i < bad.count; i++) {
        if (!bad.input[i].f || strcmp(bad.input[i].name, "x") != 0)
            continue;
        float *x = new_array(arena, float, width);
        memcpy(x, bad.input[i].f, sizeof *x * (size_t)width);
        x[0] = INFINITY;
        bad.input[i].f = x;
    }
    return bad;
}

static int compare_library(Failure *f, const ModelText *m, const char *text, int level,
                           const Shim *s)
{
    Reference r;
    Arena data = {0};
    Settings settings = settings_of(m, level);
    void *d = NULL;
    int64_t rows[] = {m->batch, m->prime, 1};
    if (!reference_open(&r, text, &settings, NULL)) {
        reference_close(&r);
        return fail(f, "compile", "O%d", level);
    }
    if (s->create(&d) != 0)
        fail(f, "status", "create: %s", s->error(NULL));
    for (int i = 0; i < STEPS && !f->what; i++) {
        char when[40];
        Batch b = make_batch(&data, m, &r, rows[i], (uint64_t)i);
        snprintf(when, sizeof when, "O%d %s step %d", level, dtype_info[settings.half].name, i + 1);
        if (compare_infer(f, &data, &r, s, d, &b) && compare_step(f, &data, &r, s, d, &b, when))
            compare_eval(f, &data, &r, s, d, &b);
    }
    if (!f->what) {
        Batch b = make_batch(&data, m, &r, 1, 7), bad = overflowing(&data, m, &b);
        compare_step(f, &data, &r, s, d, &bad, "overflow");
        overflows += r.skipped;
    }
    if (d)
        s->destroy(d);
    arena_free(&data);
    reference_close(&r);
    return !f->what;
}

/* ---- fused: every step from equal state, within 4 times the bound of exact ---- */

static int within(double found, const Tensor *exact, int64_t k)
{
    double bound = exact->bound[k];
    if (!isfinite(bound) || !isfinite(exact->d[k])) {
        uncertain++;
        return 1;
    }
    compared++;
    return fabs(found - exact->d[k]) <= 4 * bound;
}

/* Integers and bools where they are certain. */
static int is_near(const Tensor *t, DType dtype, const void *found, int64_t k)
{
    if (dtype == DT_F32)
        return within((double)((const float *)found)[k], t, k);
    return t->bound[k] > 0 || same_result(t, dtype, found, k);
}

static int near_infer(Failure *f, Arena *arena, Reference *r, const Shim *s, void *d,
                      const Batch *b)
{
    Host h = host_arguments(arena, r, r->infer, b);
    arena_reset(&r->scratch);
    Eval e = reference_eval(r, r->infer, EVAL_EXACT, b);
    int status = s->infer(d, b->rows, h.argument), result = h.inputs;
    if (status)
        return fail(f, "status", "infer gives %d: %s", status, s->error(d));
    for (Node *n = r->infer->segment[0]->first; n; n = n->next) {
        if (n->op != OP_RESULT)
            continue;
        const Tensor *t = &e.value[n->in[0]->id];
        for (int64_t k = 0; k < t->count; k++)
            if (!is_near(t, n->in[0]->type->dtype, h.argument[result], k))
                return fail(f, "fused", "N=%d: %s[%d] is %.9g, wanted %.9g +- 4 * %.3g",
                            (int)b->rows, n->attrs->at[0].s, (int)k,
                            t->d ? (double)((float *)h.argument[result])[k] : -1.0,
                            t->d ? t->d[k] : (double)t->i[k], t->bound[k]);
        result++;
    }
    return 1;
}

/* Reports of a step that has run, or of an eval. */
static int near_reports(Failure *f, Reference *r, Entry *entry, const Batch *b, const float *found)
{
    arena_reset(&r->scratch);
    Eval e = reference_eval(r, entry, EVAL_EXACT, b);
    for (int i = 0; i < entry->reports.n; i++) {
        const Tensor *t = report_of(entry, &e, entry->reports.at[i]);
        if (!within((double)found[i], t, 0))
            return fail(f, "fused", "N=%d: %s is %.9g, wanted %.9g +- 4 * %.3g", (int)b->rows,
                        entry->reports.at[i], (double)found[i], t->d[0], t->bound[0]);
    }
    return 1;
}

/* Gives the library the weights and buffers of the reference. */
static int set_state(Failure *f, const Reference *r, const Shim *s, void *d)
{
    char name[300];
    for (int i = 0; i < r->program->params.n; i++) {
        const Weights *w = &r->weights[i];
        snprintf(name, sizeof name, "%s/%s/%s", w->param->is_buffer ? "buffer" : "param",
                 w->param->instance->name, w->param->local);
        if (s->set(d, name, w->value, w->count))
            return fail(f, "status", "set %s: %s", name, s->error(d));
    }
    return 1;
}

static int compare_fused(Failure *f, const ModelText *m, const char *text, int level, const Shim *s)
{
    Reference r;
    Arena data = {0};
    Settings settings = settings_of(m, level);
    float report[MAX_VALUES];
    void *d = NULL;
    int64_t rows[] = {m->batch, m->prime, 1};
    settings.strict = 0;
    if (!reference_open(&r, text, &settings, NULL)) {
        reference_close(&r);
        return fail(f, "compile", "O%d", level);
    }
    if (s->create(&d) != 0)
        fail(f, "status", "create: %s", s->error(NULL));
    for (int i = 0; i < STEPS && !f->what; i++) {
        Batch b = make_batch(&data, m, &r, rows[i], (uint64_t)i);
        if (!set_state(f, &r, s, d) || !near_infer(f, &data, &r, s, d, &b))
            break;
        Host h = host_arguments(&data, &r, r.eval, &b);
        if (s->eval(d, b.rows, h.argument, report))
            fail(f, "status", "eval: %s", s->error(d));
        near_reports(f, &r, r.eval, &b, report);
        h = host_arguments(&data, &r, r.train, &b);
        if (s->train(d, b.rows, h.argument, report))
            fail(f, "status", "train: %s", s->error(d));
        near_reports(f, &r, r.train, &b, report);
        reference_step(&r, &b);
    }
    if (d)
        s->destroy(d);
    arena_free(&data);
    reference_close(&r);
    return !f->what;
}

/* ---- files of libraries ---- */

typedef struct Job { /* a file: these models at a level in one rounding */
    uint64_t first, count;
    int level, strict;
    Library library;
    char command[500];
} Job;

static const char *job_prefix(const Job *j, uint64_t seed, Arena *arena)
{
    return arena_printf(arena, "m%llu_%s%d", (unsigned long long)seed, j->strict ? "O" : "F",
                        j->level);
}

static void job_failed(const Job *j, uint64_t seed, const char *what, const char *text)
{
    if (check_failed++ < 20)
        fprintf(stderr, "model %llu: O%d %s: %s: %.800s\n", (unsigned long long)seed, j->level,
                j->strict ? "strict" : "fused", what, text);
}

static Settings job_settings(const Job *j, const ModelText *m)
{
    Settings settings = settings_of(m, j->level);
    settings.strict = j->strict;
    return settings;
}

static int write_models(Job *j, const char *folder, const char *compiler, int clones)
{
    char message[1000], path[200];
    Arena names = {0};
    snprintf(path, sizeof path, "%s/%s", folder, job_prefix(j, j->first, &names));
    arena_free(&names);
    if (!library_open(&j->library, path, clones))
        return 0;
    for (uint64_t seed = j->first; seed < j->first + j->count; seed++) {
        Arena arena = {0};
        ModelText *m = model_random(&arena, seed);
        Settings settings = job_settings(j, m);
        if (!library_add(&j->library, job_prefix(j, seed, &arena), model_text(m, &arena), &settings,
                         message, sizeof message))
            job_failed(j, seed, "not emitted", message);
        arena_free(&arena);
    }
    library_command(&j->library, compiler, RUNTIME_FOLDER, j->command, sizeof j->command);
    return fclose(j->library.file) == 0;
}

static void run_models(Job *j)
{
    if (!library_load(&j->library)) {
        check_failed++;
        return;
    }
    for (uint64_t seed = j->first; seed < j->first + j->count; seed++) {
        Arena arena = {0};
        Failure f = {.what = NULL};
        ModelText *m = model_random(&arena, seed);
        const Shim *s = library_shim(&j->library, job_prefix(j, seed, &arena));
        check_count++;
        if (!s)
            fail(&f, "shim", "there is none");
        else if (j->strict)
            compare_library(&f, m, model_text(m, &arena), j->level, s);
        else
            compare_fused(&f, m, model_text(m, &arena), j->level, s);
        if (f.what)
            job_failed(j, seed, f.what, f.text);
        arena_free(&arena);
    }
    library_close(&j->library);
}

/* Compiles two files at a time, then runs what is in them. */
static void run_jobs(Job *job, int jobs, const char *folder)
{
    char both[1200];
    for (int i = 0; i < jobs; i++) {
        const char *compiler =
            job[i].first % (10 * A_FILE) == 1 && !job[i].level ? "clang -O1" : "gcc -O1";
        check_count++;
        if (!write_models(&job[i], folder, compiler, i == 1))
            job_failed(&job[i], job[i].first, "not written", folder);
    }
    snprintf(both, sizeof both, "%s & %s; a=$?; wait $! && exit $a", job[0].command,
             jobs > 1 ? job[1].command : "true");
    if (system(both) != 0) {
        job_failed(&job[0], job[0].first, "not compiled", both);
        return;
    }
    for (int i = 0; i < jobs; i++)
        run_models(&job[i]);
}

/* Every model in strict at all levels; in fused at one of them, or, `thorough`, at all. */
static void check_libraries(uint64_t first, uint64_t count, const char *folder, int thorough)
{
    Job job[2];
    int waiting = 0;
    uint64_t files = (count + A_FILE - 1) / A_FILE;
    for (uint64_t i = 0; i < files; i++)
        for (int k = 0; k < 8; k++) {
            uint64_t at = first + i * A_FILE, left = first + count - at;
            if (k >= 4 && !thorough && (uint64_t)k % 4 != i % 4)
                continue;
            job[waiting++] = (Job){.first = at,
                                   .count = left < A_FILE ? left : A_FILE,
                                   .level = k % 4,
                                   .strict = k < 4};
            if (waiting == 2) {
                run_jobs(job, 2, folder);
                waiting = 0;
            }
        }
    if (waiting)
        run_jobs(job, 1, folder);
}

/* ---- reducing ---- */

/* Cuts and drops as long as the model still fails in the same way. */
static void reduce_model(ModelText *m, Arena *arena)
{
    Failure first, f;
    check_model(&first, m, arena);
    for (int again = 1; again;) {
        again = 0;
        for (int v = m->values - 1; v >= m->inputs; v--)
            for (int how = 0; how < 2; how++) {
                ModelText smaller = *m;
                ModelValue *x = &smaller.value[v];
                if (how == 0 && (!model_is_result(m, v) || x->dropped))
                    continue;
                if (how == 1 && (x->cut || x->kind != REAL))
                    continue;
                *(how ? &x->cut : &x->dropped) = 1;
                for (int k = 0; k < x->reads; k++)
                    smaller.value[x->read[k]].uses -= how;
                check_model(&f, &smaller, arena);
                if (f.what && !strcmp(f.what, first.what)) {
                    *m = smaller;
                    again = 1;
                    break;
                }
            }
    }
    check_model(&f, m, arena);
    printf("%s\n// %s: %s\n", model_text(m, arena), f.what, f.text);
}

static const char *option(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], name, strlen(name)))
            return argv[i] + strlen(name);
    return NULL;
}

static uint64_t number(int argc, char **argv, const char *name, uint64_t fallback)
{
    const char *text = option(argc, argv, name);
    return text ? strtoull(text, NULL, 10) : fallback;
}

int main(int argc, char **argv)
{
    Arena arena = {0};
    long models[OP_COUNT] = {0}, statements = 0;
    uint64_t first = number(argc, argv, "--first=", 1), count = number(argc, argv, "--count=", 200);
    if (option(argc, argv, "--print=")) {
        printf("%s", model_text(model_random(&arena, number(argc, argv, "--print=", 1)), &arena));
        return 0;
    }
    if (option(argc, argv, "--reduce=")) {
        reduce_model(model_random(&arena, number(argc, argv, "--reduce=", 1)), &arena);
        return 0;
    }
    for (uint64_t seed = first; seed < first + count; seed++) {
        Failure f;
        ModelText *m = model_random(&arena, seed);
        statements += m->statements;
        check_count++;
        if (!check_model(&f, m, &arena)) {
            if (check_failed++ < 20)
                fprintf(stderr, "model %llu: %s: %s\n", (unsigned long long)seed, f.what, f.text);
        }
        count_rows(m, &arena, models);
        arena_reset(&arena);
    }
    for (int op = 0; op < OP_COUNT; op++) {
        check_count++;
        if (count < 200 || (uint64_t)models[op] * 200 >= 5 * count)
            continue;
        check_failed++;
        fprintf(stderr, "ops.def: %s is in %ld of %llu models\n", op_info((Op)op)->id, models[op],
                (unsigned long long)count);
    }
    if (option(argc, argv, "--c="))
        check_libraries(first, count, option(argc, argv, "--c="),
                        option(argc, argv, "--thorough") != NULL);
    printf("%ld steps skipped\n", overflows);
    printf("%llu models, %ld statements, %ld elements compared, %ld without a bound\n",
           (unsigned long long)count, statements, compared, uncertain);
    arena_free(&arena);
    return check_done();
}
