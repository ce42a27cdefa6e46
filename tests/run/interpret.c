/* Trains a whole program in the compiler's interpreter, in strict rounding: what an emitted program
 * with
 * --rounding=strict must reproduce bit for bit. It compiles the model up to pass `expand`, knows nothing of
 * kernels, buffers or emitted text, and shares only data readers, random numbers and the scaler
 * with them.
 *
 *     interpret MODEL.amp -O2 --half=bf16 --steps=20 --out=expected [--loss-scale=dynamic|N] [--policy=torch] [-DNAME=V]
 *
 * writes expected.st, which holds what a checkpoint of the program does (weights as f32 at every
 * level), and expected.tsv with the log's columns, but for ms_per_step. Options of the program keep
 * their defaults.
 */
#include "frontend/elab.h"
#include "frontend/parse.h"
#include "ir/eval.h"
#include "passes/levels.h"
#include "ir/optim.h"
#include "rt_csv.h"
#include "rt_dataset.h"
#include "rt_idx.h"
#include "rt_log.h"
#include "rt_npy.h"
#include "rt_param.h"
#include "rt_scaler.h"
#include "rt_schedule.h"
#include "rt_sum.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum { POOLS = 8 };

/* Gradients whose squares are added as one vector: those of an optimizer that are kept alike, by
 * group. */
typedef struct Pool {
    DType master, copy, gradient;
    Vec(Param *) params;
} Pool;

typedef struct Weights { /* of one parameter, row-major */
    Param *param;
    float *value, *gradient, *state[MAX_STATES];
    int64_t count;
    int taken;      /* updates so far */
    DType computed; /* type of the gradient in the graph */
} Weights;

typedef struct Run {
    Arena arena, scratch;
    Names names;
    Sources sources;
    Diags diags;
    Program *program;
    Entry *entry;
    Weights *weights; /* by parameter */
    RtScaler scaler;
    Str scaler_name;
    float scale; /* that this step uses */
    int64_t step, taken, skipped, epoch, row;
    double beta1_pow, beta2_pow, grad_norm, lr, steps;
    const Eval *eval; /* of this step */
    int updated, was_taken;
    RtSource source;
    RtIdxFolder folder;
    RtDataset data;
    RtPart part[8], all;
    RtBatches batches;
    FILE *log;
    void *batch[16]; /* by input of the entry */
    int64_t rows;
} Run;

static void die(const char *what)
{
    fprintf(stderr, "interpret: %s: %s\n", what, rt_error_text());
    exit(3);
}

static void must(int status, const char *what)
{
    if (status)
        die(what);
}

/* ---- scalars of the program, with every option at its default ---- */

typedef struct Row {
    const RtSource *source;
    int64_t row, element;
} Row;
static const Field *field_now; /* rt_dataset_field's callback has no data of its own */
static Run *run_now;

static double number(const Scalar *s, const Row *row)
{
    switch (s->kind) {
    case S_INT:
    case S_BOOL:
        return (double)s->i;
    case S_REAL:
        return s->r;
    case S_OPTION:
        return number(run_now->program->options.at[s->i]->value, row);
    case S_UNARY:
        return *s->s == '-' ? -number(s->a, row) : !number(s->a, row);
    case S_BINARY: {
        double a = number(s->a, row), b = number(s->b, row);
        return *s->s == '+'   ? a + b
               : *s->s == '-' ? a - b
               : *s->s == '*' ? a * b
               : *s->s == '%' ? fmod(a, b)
                              : a / b;
    }
    case S_COLUMN:
        return rt_source_value(row->source, row->row, s->from + row->element);
    default:
        fprintf(stderr, "interpret: a scalar of kind %d\n", (int)s->kind);
        exit(4);
    }
}

static const char *text_of(const Scalar *s)
{
    return s->kind == S_OPTION ? text_of(run_now->program->options.at[s->i]->value) : s->s;
}

static int64_t whole(const Scalar *s, int64_t otherwise)
{
    return s ? (int64_t)number(s, NULL) : otherwise;
}

/* The first column reference below s, or NULL. */
static const Scalar *column_of(const Scalar *s)
{
    if (!s || s->kind == S_COLUMN)
        return s;
    const Scalar *found =
        s->kind == S_UNARY || s->kind == S_BINARY || s->kind == S_CALL ? column_of(s->a) : NULL;
    return found || s->kind == S_UNARY ? found : s->kind == S_BINARY ? column_of(s->b) : NULL;
}

static double field_value(const RtSource *source, int64_t row, int64_t element)
{
    Row at = {source, row, element};
    return number(field_now->value, &at);
}

/* ---- data ---- */

static const RtSource *source_for(Run *r, const Dataset *d, const Field *f)
{
    if (d->kind != DATA_IDX)
        return &r->source;
    const Scalar *column = column_of(f->value);
    return column && !strcmp(column->s, "label") ? &r->folder.label : &r->folder.image;
}

static void load_data(Run *r, const Dataset *d)
{
    const char *path = text_of(d->path);
    int64_t header = whole(d->header, 0);
    if (d->kind == DATA_CSV)
        must(rt_csv_read(path, ',', header, &r->source), path);
    else if (d->kind == DATA_NPY)
        must(rt_npy_read(path, &r->source), path);
    else
        must(rt_idx_folder(path, &r->folder), path);
    int64_t rows = d->kind == DATA_IDX ? r->folder.image.rows : r->source.rows;
    rt_dataset_start(&r->data, d->name, rows);
    for (int i = 0; i < d->fields.n; i++) {
        const Field *f = &d->fields.at[i];
        const Dim *count = type_count(&r->program->types, f->type);
        field_now = f;
        RtKind kind = is_real(f->type->dtype)    ? RT_KIND_F32
                      : f->type->dtype == DT_I32 ? RT_KIND_I32
                                                 : RT_KIND_I64;
        must(rt_dataset_field(&r->data, f->name, kind, dim_value(count, NULL), field_value,
                              source_for(r, d, f)),
             f->name);
    }
    if (d->kind == DATA_IDX) {
        int64_t parts[] = {r->folder.train_rows, r->folder.test_rows};
        const char *names[] = {"train", "test"};
        must(rt_dataset_cut(&r->data, 2, parts, names, r->part), "split");
    } else if (d->splits.n) {
        double share[8];
        const char *names[8];
        for (int i = 0; i < d->splits.n; i++) {
            share[i] = d->splits.at[i].share;
            names[i] = d->splits.at[i].name;
        }
        must(rt_dataset_split(&r->data, (uint64_t)d->seed, d->splits.n, share, names, r->part),
             "split");
    }
    must(rt_part_make(&r->all, &r->data, "all", NULL, 0, rows), "rows");
}

/* ---- parameters ---- */

static void make_weights(Run *r, uint64_t seed)
{
    Program *p = r->program;
    r->weights = new_array(&r->arena, Weights, p->params.n + 1);
    for (int i = 0; i < p->params.n; i++) {
        Param *x = p->params.at[i];
        Weights *w = &r->weights[i];
        RtParam row = {.instance = x->instance->name, .name = x->local, .rank = x->type->rank};
        w->param = x;
        w->count = row.count = dim_value(type_count(&p->types, x->type), NULL);
        for (int k = 0; k < x->type->rank; k++)
            row.shape[k] = dim_value(x->type->dim[k], NULL);
        row.init = (RtInit){(RtInitKind)x->init.kind, (float)x->init.a, (float)x->init.b};
        w->value = new_array(&r->arena, float, w->count + 1);
        w->gradient = new_array(&r->arena, float, w->count + 1);
        for (int k = 0; k < MAX_STATES; k++)
            w->state[k] = new_array(&r->arena, float, w->count + 1);
        must(rt_param_init(&row, seed, w->value), x->name);
        for (int64_t k = 0; is_half(x->master) && k < w->count; k++)
            w->value[k] = (float)dtype_round(x->master, w->value[k]);
    }
}

/* ---- the step ---- */

/* Sorts the optimizer's parameters into pools; inside one they lie by group, then as declared. */
static int make_pools(Run *r, const Optimizer *opt, Pool *pool)
{
    int pools = 0;
    for (int group = 0; group < opt->groups.n || !group; group++)
        for (int i = 0; i < opt->params.n; i++) {
            Param *x = opt->params.at[i];
            DType computed = r->weights[x->index].computed;
            if ((x->group < 0 ? 0 : x->group) != group || computed == DT_NONE)
                continue;
            int k = 0;
            while (k < pools && (pool[k].master != x->master || pool[k].copy != x->copy ||
                                 pool[k].gradient != computed))
                k++;
            if (k == pools) {
                pool[pools++] = (Pool){x->master, x->copy, computed, {0}};
                assert(pools <= POOLS);
            }
            vec_push(&r->scratch, &pool[k].params, x);
        }
    return pools;
}

/* The sum of the squares of a pool: tensors at multiples of 32 elements, zeros between. */
static double pool_squares(Run *r, const Pool *pool)
{
    int64_t total = 0, at = 0;
    for (int i = 0; i < pool->params.n; i++)
        total += (r->weights[pool->params.at[i]->index].count + 31) / 32 * 32;
    float *flat = new_array(&r->scratch, float, total + 1);
    for (int i = 0; i < pool->params.n; i++) {
        const Weights *w = &r->weights[pool->params.at[i]->index];
        memcpy(flat + at, w->gradient, sizeof(float) * (size_t)w->count);
        at += (w->count + 31) / 32 * 32;
    }
    int64_t chunks = rt_chunk_count(total);
    double *chunk = new_array(&r->scratch, double, chunks + 1);
    rt_squares_f32(chunk, flat, total, 0, chunks);
    return rt_add_chunks(chunk, chunks);
}

/* Norm of all gradients of the optimizer, still scaled. */
static double gradient_norm(Run *r, const Optimizer *opt)
{
    Pool pool[POOLS];
    double squares = 0;
    int pools = make_pools(r, opt, pool);
    for (int k = 0; k < pools; k++)
        squares += pool_squares(r, &pool[k]);
    return sqrt(squares);
}

static double learning_rate(const Run *r, const Schedule *s, double steps)
{
    double t = (double)r->taken, peak = number(s->peak, NULL),
           warmup = s->warmup ? number(s->warmup, NULL) : 0;
    double floor_ = s->floor ? number(s->floor, NULL) : 0,
           total = s->total ? number(s->total, NULL) : steps;
    if (!strcmp(s->kind, "step"))
        return rt_lr_step(peak, warmup, number(s->every, NULL), number(s->factor, NULL), t);
    if (!strcmp(s->kind, "linear"))
        return rt_lr_linear(peak, warmup, floor_, total, t);
    if (!strcmp(s->kind, "cosine"))
        return rt_lr_cosine(peak, warmup, floor_, total, t);
    return rt_lr_constant(peak, warmup, t);
}

static double hyper_of(const Optimizer *opt, const Param *x, int i)
{
    ParamGroup *group = x->group >= 0 && x->group < opt->groups.n ? opt->groups.at[x->group] : NULL;
    return number(group && group->hyper[i] ? group->hyper[i] : opt->hyper[i], NULL);
}

/* Norms of LAMB: of the weights, and of the direction, a tensor. */
static float trust_ratio(const Optimizer *opt, const Weights *w, const OptimElement *common,
                         float k)
{
    const OptimInfo *info = optim_info(opt->kind);
    float *direction = calloc((size_t)w->count + 1, sizeof(float));
    for (int64_t i = 0; i < w->count; i++) {
        OptimElement x =
            *common; /* with lr = trust = 1 and p = 0 the body leaves minus the direction */
        x.g = k * w->gradient[i];
        for (int s = 0; s < info->states; s++)
            x.state[s] = w->state[s][i];
        float m = (float)x.hyper[1] * (float)x.state[0] + (1.0f - (float)x.hyper[1]) * (float)x.g;
        float v = (float)x.hyper[2] * (float)x.state[1] +
                  (1.0f - (float)x.hyper[2]) * (float)x.g * (float)x.g;
        direction[i] = (m * (float)x.bc1) / (sqrtf(v * (float)x.bc2) + (float)x.hyper[3]) +
                       (float)x.hyper[4] * w->value[i];
    }
    int64_t chunks = rt_chunk_count(w->count);
    double *chunk = malloc(sizeof(double) * (size_t)chunks);
    rt_squares_f32(chunk, w->value, w->count, 0, chunks);
    double of_weights = sqrt(rt_add_chunks(chunk, chunks));
    rt_squares_f32(chunk, direction, w->count, 0, chunks);
    double of_direction = sqrt(rt_add_chunks(chunk, chunks));
    free(direction);
    free(chunk);
    return of_weights > 0 && of_direction > 0 ? (float)(of_weights / of_direction) : 1.0f;
}

static void update_weights(Run *r, const Optimizer *opt, Weights *w, float k, double steps)
{
    const OptimInfo *info = optim_info(opt->kind);
    OptimElement common = {.first = w->taken == 0, .trust = 1};
    for (int i = 0; i < info->hypers; i++)
        common.hyper[i] = (float)hyper_of(opt, w->param, i);
    ParamGroup *group = w->param->group >= 0 && w->param->group < opt->groups.n
                            ? opt->groups.at[w->param->group]
                            : NULL;
    common.hyper[0] = (float)learning_rate(r, group && group->lr ? group->lr : opt->lr, steps);
    if (optim_derives(info, "bc1")) {
        common.bc1 = (float)(1 / (1 - r->beta1_pow));
        common.bc2 = (float)(1 / (1 - r->beta2_pow));
    }
    if (optim_derives(info, "trust"))
        common.trust = trust_ratio(opt, w, &common, k);
    for (int64_t i = 0; i < w->count; i++) {
        OptimElement x = common;
        x.p = w->value[i];
        x.g = k * w->gradient[i];
        for (int s = 0; s < info->states; s++)
            x.state[s] = w->state[s][i];
        optim_float(opt->kind, &x);
        for (int s = 0; s < info->states; s++)
            w->state[s][i] = (float)x.state[s];
        w->value[i] = (float)x.p;
        if (is_half(w->param->master))
            w->value[i] = (float)dtype_round(w->param->master, w->value[i]);
    }
    w->taken++;
}

/* Unscale, test, clip, update; returns 1 if the step was taken. */
static int take_step(Run *r, Optimizer *opt, double steps)
{
    double norm = gradient_norm(r, opt) / (double)r->scale, coefficient = 1;
    r->grad_norm = norm;
    r->lr = learning_rate(r, opt->lr, steps);
    if (opt->checks && !isfinite((float)norm)) /* a gradient may overflow by unscaling */
        return 0;
    if (opt->clip_kind && !strcmp(opt->clip_kind, "norm"))
        coefficient = rt_clip_factor(norm, opt->clip_limit);
    float k = (float)(coefficient / (double)r->scale);
    const OptimInfo *info = optim_info(opt->kind);
    for (int i = 0; i < info->hypers; i++) {
        if (!strcmp(info->hyper[i], "beta1"))
            r->beta1_pow *= (float)number(opt->hyper[i], NULL);
        if (!strcmp(info->hyper[i], "beta2"))
            r->beta2_pow *= (float)number(opt->hyper[i], NULL);
    }
    for (int i = 0; i < opt->params.n; i++) {
        Weights *w = &r->weights[opt->params.at[i]->index];
        if (!w->param->has_gradient)
            continue;
        if (opt->clip_kind && !strcmp(opt->clip_kind, "value")) {
            float limit = (float)opt->clip_limit;
            for (int64_t j = 0; j < w->count; j++) {
                float g = k * w->gradient[j];
                w->gradient[j] = g > limit ? limit : g < -limit ? -limit : g;
            }
            update_weights(r, opt, w, 1, steps);
        } else {
            update_weights(r, opt, w, k, steps);
        }
    }
    r->taken++;
    return 1;
}

/* Finds out of which type gradients are in the graph. */
static void find_gradients(Run *r)
{
    for (int i = 0; i < r->program->params.n; i++)
        r->weights[i].computed = DT_NONE;
    for (Node *n = r->entry->segment[0]->first; n; n = n->next)
        if (n->op == OP_UPDATE) {
            r->weights[n->param->index].computed = n->in[0]->type->dtype;
            r->scaler_name = n->attrs->at[1].s;
        }
}

static int has_norm(const Optimizer *opt)
{
    return opt->checks || (opt->clip_kind && !strcmp(opt->clip_kind, "norm"));
}

static void log_names(Run *r)
{
    const Optimizer *opt = r->entry->optimizers.at[0];
    fprintf(r->log, "step\tentry\tepoch\tskipped\tlr.%s", opt->name);
    if (has_norm(opt))
        fprintf(r->log, "\tgrad_norm.%s", opt->name);
    fprintf(r->log, "\tscale.%s", r->scaler_name);
    for (int i = 0; i < r->entry->reports.n; i++)
        fprintf(r->log, "\t%s", r->entry->reports.at[i]);
    fputc('\n', r->log);
}

static void log_real(Run *r, double x)
{
    fputc('\t', r->log);
    rt_log_print_real(r->log, x, "");
}

static void log_step(Run *r, int64_t epoch, const Eval *e)
{
    const Optimizer *opt = r->entry->optimizers.at[0];
    fprintf(r->log, "%lld\t%s\t%lld\t%lld", (long long)r->step, r->entry->name,
            (long long)epoch + 1, (long long)r->skipped);
    log_real(r, r->lr);
    if (has_norm(opt))
        log_real(r, r->grad_norm);
    log_real(r, (double)r->scale);
    for (int i = 0; i < r->entry->reports.n; i++)
        for (Node *n = r->entry->segment[0]->first; n; n = n->next)
            if (n->op == OP_REPORT && attr_s(n, "name") == r->entry->reports.at[i])
                log_real(r, (double)e->value[n->id].f[0]);
    fputc('\n', r->log);
}

/* Updates with the gradients that have been evaluated, if that has not been done in this step. */
static void update_once(Run *r)
{
    if (r->updated)
        return;
    for (Node *n = r->entry->segment[0]->first; n; n = n->next)
        if (n->op == OP_UPDATE)
            memcpy(r->weights[n->param->index].gradient, r->eval->value[n->in[0]->id].f,
                   sizeof(float) * (size_t)r->weights[n->param->index].count);
    r->was_taken = take_step(r, r->entry->optimizers.at[0], r->steps);
    r->updated = 1;
}

static void give_source(void *data, const Node *n, Tensor *out)
{
    Run *r = data;
    if (n->op == OP_READ) {
        if (n->version && n->param->optimizer)
            update_once(r); /* a statement after the update */
        memcpy(out->f, r->weights[n->param->index].value, sizeof(float) * (size_t)out->count);
    } else if (n->op == OP_SCALE) {
        out->f[0] = r->scale;
    } else if (n->op == OP_OPTION) {
        for (int i = 0; i < r->program->options.n; i++)
            if (r->program->options.at[i]->name == attr_s(n, "name"))
                out->f[0] = (float)number(r->program->options.at[i]->value, NULL);
    } else {
        for (int i = 0; i < r->entry->inputs.n; i++) {
            if (r->entry->inputs.at[i].name != attr_s(n, "name"))
                continue;
            for (int64_t k = 0; k < out->count; k++) {
                if (out->f)
                    out->f[k] = ((float *)r->batch[i])[k];
                else if (n->type->dtype == DT_I64)
                    out->i[k] = ((int64_t *)r->batch[i])[k];
                else
                    out->i[k] = ((int32_t *)r->batch[i])[k];
            }
        }
    }
}

static void one_step(Run *r, uint64_t seed)
{
    Entry *entry = r->entry;
    int64_t epoch = r->batches.epoch;
    must(rt_batches_next(&r->batches, &r->rows), "batch");
    for (int i = 0; i < entry->inputs.n; i++)
        rt_batches_gather(&r->batches, entry->inputs.at[i].field, r->batch[i]);
    int64_t *symbols = new_array(&r->scratch, int64_t, r->program->types.symbols + 1);
    symbols[entry->batch_symbol] = r->rows;
    r->scale = r->scaler.scale;
    Eval e = {.program = r->program,
              .arena = &r->scratch,
              .mode = EVAL_STRICT,
              .symbols = symbols,
              .seed = seed,
              .step = (uint32_t)r->step,
              .source = give_source,
              .data = r};
    r->eval = &e;
    r->updated = 0;
    eval_graph(&e, entry->segment[0]);
    update_once(r);
    rt_scaler_update(&r->scaler, !r->was_taken);
    r->step++;
    r->skipped += !r->was_taken;
    r->epoch = r->batches.epoch;
    r->row = r->batches.row;
    log_step(r, epoch, &e);
    arena_reset(&r->scratch);
}

/* ---- start and end ---- */

static void add_scalar(Run *r, RtTable *t, RtStType type, void *data, const char *format,
                       const char *owner)
{
    char name[300];
    snprintf(name, sizeof name, format, owner);
    rt_table_scalar(t, arena_copy(&r->arena, name, strlen(name)), type, data);
}

static void add_weights(Run *r, RtTable *table, Weights *w)
{
    RtParam *row = new (&r->arena, RtParam);
    row->instance = w->param->instance->name;
    row->name = w->param->local;
    row->rank = w->param->type->rank;
    for (int k = 0; k < row->rank; k++)
        row->shape[k] = dim_value(w->param->type->dim[k], NULL);
    rt_table_add(table, w->param->is_buffer ? "buffer/" : "param/", row, "", RT_ST_F32, w->value);
    if (!w->param->optimizer || w->computed == DT_NONE)
        return;
    const OptimInfo *info = optim_info(w->param->optimizer->kind);
    for (int s = 0; s < info->states; s++) {
        char prefix[256], suffix[64];
        snprintf(prefix, sizeof prefix, "opt/%s/", w->param->optimizer->name);
        snprintf(suffix, sizeof suffix, ".%s", info->state[s]);
        rt_table_add(table, prefix, row, suffix, RT_ST_F32, w->state[s]);
    }
}

/* What a checkpoint holds besides the tensors. */
static void add_scalars(Run *r, RtTable *t)
{
    const Optimizer *opt = r->entry->optimizers.at[0];
    const OptimInfo *info = optim_info(opt->kind);
    add_scalar(r, t, RT_ST_I64, &r->taken, "opt/%s.step", opt->name);
    if (optim_derives(info, "bc1")) {
        add_scalar(r, t, RT_ST_F64, &r->beta1_pow, "opt/%s.beta1_pow", opt->name);
        add_scalar(r, t, RT_ST_F64, &r->beta2_pow, "opt/%s.beta2_pow", opt->name);
    }
    add_scalar(r, t, RT_ST_F32, &r->scaler.scale, "scaler/%s.scale", r->scaler_name);
    add_scalar(r, t, RT_ST_I32, &r->scaler.growth, "scaler/%s.growth", r->scaler_name);
    add_scalar(r, t, RT_ST_I32, &r->scaler.hysteresis, "scaler/%s.hysteresis", r->scaler_name);
    add_scalar(r, t, RT_ST_I64, &r->scaler.skips, "scaler/%s.skips", r->scaler_name);
    add_scalar(r, t, RT_ST_I64, &r->step, "train/%s.step", r->entry->name);
    add_scalar(r, t, RT_ST_I64, &r->epoch, "train/%s.epoch", r->entry->name);
    add_scalar(r, t, RT_ST_I64, &r->row, "train/%s.row", r->entry->name);
}

static void write_state(Run *r, const char *path)
{
    RtTable table = {0};
    for (int i = 0; i < r->program->params.n; i++)
        add_weights(r, &table, &r->weights[i]);
    add_scalars(r, &table);
    must(rt_table_status(&table), path);
    RtPair none = {0};
    must(rt_entries_write(path, table.entry, table.count, &none, 0, false), path);
    rt_table_free(&table);
}

/* The scaler as the emitted program starts it. */
static RtScaler start_scaler(const Scaler *s)
{
    static const char *const modes[] = {"ampc", "apex", "torch", "megatron", "deepspeed", "flax"};
    if (!s->dynamic)
        return rt_scaler_make_static((float)s->init);
    int mode = 0;
    for (int i = 0; i < RT_SCALER_MODES; i++)
        if (!strcmp(s->mode, modes[i]))
            mode = i;
    RtScaler made = rt_scaler_make(mode);
    made.scale = (float)s->init;
    made.factor = (float)s->factor;
    made.floor = (float)s->low;
    made.limit = (float)s->high;
    made.window = (int32_t)s->window;
    made.hysteresis = made.hysteresis_full = (int32_t)s->hysteresis;
    return made;
}

static void compile(Run *r, const char *path, const Settings *settings, const ElabOptions *options)
{
    const char *why;
    names_init(&r->names, &r->arena);
    sources_init(&r->sources, &r->arena);
    diags_init(&r->diags, &r->arena, &r->sources);
    Source *source = source_read(&r->sources, path, &why);
    if (!source)
        die(why);
    Ast *ast = parse(source, &r->diags, &r->names, &r->arena);
    if (!r->diags.errors)
        r->program = elaborate(ast, options, &r->diags, &r->names, &r->arena);
    Unit u = {.arena = &r->arena,
              .scratch = &r->scratch,
              .names = &r->names,
              .diags = &r->diags,
              .settings = settings,
              .program = r->program};
    if (!r->diags.errors)
        resolve_properties(&u);
    if (!r->diags.errors)
        passes_run(&u, NULL, "expand");
    if (r->diags.errors) {
        Out o;
        out_init(&o, &r->arena);
        diags_print(&r->diags, &o, 0);
        fprintf(stderr, "%s", o.text);
        exit(1);
    }
}

static const char *value_of(int argc, char **argv, const char *name)
{
    for (int i = 2; i < argc; i++)
        if (!strncmp(argv[i], name, strlen(name)))
            return argv[i] + strlen(name);
    return NULL;
}

static const char *text_after(int argc, char **argv, const char *name, const char *otherwise)
{
    const char *text = value_of(argc, argv, name);
    return text ? text : otherwise;
}

static void read_settings(Settings *settings, int argc, char **argv)
{
    const char *half = value_of(argc, argv, "--half=");
    settings->level = atoi(text_after(argc, argv, "-O", "1"));
    settings->half = half ? dtype_find(half) : DT_NONE;
    settings->half_given = half != NULL;
    settings->torch_policy = !strcmp(text_after(argc, argv, "--policy=", "apex"), "torch");
    settings->policy_given = 1;
    settings->loss_scale = value_of(argc, argv, "--loss-scale=");
}

/* Data, first weights and scaler of the first train. */
static void start(Run *r, uint64_t seed)
{
    Program *p = r->program;
    Entry *entry = r->entry;
    load_data(r, entry->dataset);
    make_weights(r, seed);
    find_gradients(r);
    for (int i = 0; i < p->scalers.n; i++)
        if (p->scalers.at[i]->name == r->scaler_name)
            r->scaler = start_scaler(p->scalers.at[i]);
    r->beta1_pow = r->beta2_pow = 1;
    int flags = (entry->shuffle ? RT_SHUFFLE : 0) | (entry->drop_last ? RT_DROP_LAST : 0);
    const RtPart *part = entry->split < 0 ? &r->all : &r->part[entry->split];
    must(rt_batches_open(&r->batches, part, entry->batch, flags, seed), "batches");
    for (int i = 0; i < entry->inputs.n; i++) {
        const RtField *f = &r->data.field[entry->inputs.at[i].field];
        r->batch[i] = arena_alloc(&r->arena, (size_t)(entry->batch * f->width) * 8);
    }
}

int main(int argc, char **argv)
{
    static Run run;
    const char *defines[32], *out;
    char path[1024];
    Run *r = run_now = &run;
    ElabOptions options = {.defines = defines};
    Settings settings = {.strict = 1,
                         .rounding_given = 1,
                         .keep_norm_f32 = UNSET,
                         .master_weights = UNSET,
                         .cast_model_type = DT_NONE,
                         .verify = 1};
    if (argc < 2 || !(out = value_of(argc, argv, "--out=")))
        return 2;
    read_settings(&settings, argc, argv);
    for (int i = 2; i < argc && options.define_count < 32; i++)
        if (!strncmp(argv[i], "-D", 2))
            defines[options.define_count++] = argv[i] + 2;
    compile(r, argv[1], &settings, &options);
    for (int i = 0; i < r->program->entries.n && !r->entry; i++)
        if (r->program->entries.at[i]->kind == ENTRY_TRAIN)
            r->entry = r->program->entries.at[i];

    uint64_t seed = (uint64_t)whole(r->entry->seed, 0);
    start(r, seed);
    snprintf(path, sizeof path, "%s.tsv", out);
    if (!(r->log = fopen(path, "w")))
        return 3;
    log_names(r);
    r->steps = atof(text_after(argc, argv, "--steps=", "10"));
    while ((double)r->step < r->steps)
        one_step(r, seed);
    fclose(r->log);
    snprintf(path, sizeof path, "%s.st", out);
    write_state(r, path);
    return 0;
}
