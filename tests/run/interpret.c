/* Trains a whole program in the compiler's interpreter, in strict rounding: what an emitted program with
 * --rounding=strict must reproduce bit for bit. It compiles the model up to pass `expand`, knows nothing of
 * kernels, buffers or emitted text, and shares only data readers, random numbers and the scaler with them.
 *
 *     interpret MODEL.amp --level=2 --half=bf16 --steps=20 --out=weights.safetensors [--scale=dynamic|N] [-DNAME=V]
 *
 * writes every weight, optimizer state and the scale as f32, and prints one line a step: the reports as hex floats.
 */
#include "frontend/elab.h"
#include "frontend/parse.h"
#include "ir/eval.h"
#include "passes/levels.h"
#include "passes/optim.h"
#include "rt_csv.h"
#include "rt_dataset.h"
#include "rt_idx.h"
#include "rt_npy.h"
#include "rt_param.h"
#include "rt_scaler.h"
#include "rt_schedule.h"
#include "rt_sum.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct Weights { /* of one parameter, row-major */
    Param *param;
    float *value, *gradient, *state[MAX_STATES];
    int64_t count;
    int taken; /* updates so far */
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
    float scale;
    int64_t taken;
    double beta1_pow, beta2_pow;
    RtSource source;
    RtIdxFolder folder;
    RtDataset data;
    RtPart part[8];
    RtBatches batches;
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
        return *s->s == '+' ? a + b : *s->s == '-' ? a - b : *s->s == '*' ? a * b : a / b;
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
    int64_t header = d->header ? (int64_t)number(d->header, NULL) : 0;
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
    } else {
        const char *all = d->name;
        must(rt_dataset_cut(&r->data, 1, &rows, &all, r->part), "rows");
    }
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

static void give_source(void *data, const Node *n, Tensor *out)
{
    Run *r = data;
    if (n->op == OP_READ) {
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

/* ---- the step ---- */

/* Norm of all gradients of the optimizer as one vector, tensors at multiples of 32 elements, zeros between. */
static double gradient_norm(Run *r, const Optimizer *opt)
{
    int64_t total = 0;
    for (int i = 0; i < opt->params.n; i++)
        total += (r->weights[opt->params.at[i]->index].count + 31) / 32 * 32;
    float *flat = new_array(&r->scratch, float, total + 1);
    int64_t at = 0, chunks = rt_chunk_count(total);
    for (int i = 0; i < opt->params.n; i++) {
        Weights *w = &r->weights[opt->params.at[i]->index];
        memcpy(flat + at, w->gradient, sizeof(float) * (size_t)w->count);
        at += (w->count + 31) / 32 * 32;
    }
    double *chunk = new_array(&r->scratch, double, chunks + 1);
    int nonfinite = rt_squares_f32(chunk, flat, total, 0, chunks);
    return nonfinite ? INFINITY : sqrt(rt_add_chunks(chunk, chunks));
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
    float *direction = malloc(sizeof(float) * (size_t)w->count);
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
    if (opt->checks && !isfinite(norm))
        return 0;
    if (opt->clip_kind && !strcmp(opt->clip_kind, "norm"))
        coefficient = fmin(1, opt->clip_limit / (norm + 1e-6));
    float k = (float)(coefficient / (double)r->scale);
    const OptimInfo *info = optim_info(opt->kind);
    for (int i = 0; i < info->hypers; i++) {
        if (!strcmp(info->hyper[i], "beta1"))
            r->beta1_pow *= number(opt->hyper[i], NULL);
        if (!strcmp(info->hyper[i], "beta2"))
            r->beta2_pow *= number(opt->hyper[i], NULL);
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

static void one_step(Run *r, int64_t step, uint64_t seed, double steps)
{
    Entry *entry = r->entry;
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
              .step = (uint32_t)step,
              .source = give_source,
              .data = r};
    eval_graph(&e, entry->segment[0]);
    printf("%lld", (long long)step + 1);
    for (Node *n = entry->segment[0]->first; n; n = n->next) {
        if (n->op == OP_REPORT)
            printf(" %s=%.9g", attr_s(n, "name"), (double)e.value[n->id].f[0]);
        if (n->op == OP_UPDATE)
            memcpy(r->weights[n->param->index].gradient, e.value[n->in[0]->id].f,
                   sizeof(float) * (size_t)r->weights[n->param->index].count);
    }
    int taken = take_step(r, entry->optimizers.at[0], steps);
    printf(" scale=%.9g skipped=%d\n", (double)r->scale, !taken);
    rt_scaler_update(&r->scaler, !taken);
    arena_reset(&r->scratch);
}

/* ---- start and end ---- */

static void write_state(Run *r, const char *path)
{
    RtTable table = {0};
    for (int i = 0; i < r->program->params.n; i++) {
        Weights *w = &r->weights[i];
        RtParam row = {.instance = w->param->instance->name,
                       .name = w->param->local,
                       .rank = w->param->type->rank};
        for (int k = 0; k < row.rank; k++)
            row.shape[k] = dim_value(w->param->type->dim[k], NULL);
        RtParam *kept = new (&r->arena, RtParam);
        *kept = row;
        rt_table_add(&table, "param/", kept, "", RT_ST_F32, w->value);
        const OptimInfo *info = w->param->optimizer ? optim_info(w->param->optimizer->kind) : NULL;
        for (int s = 0; info && s < info->states; s++) {
            char prefix[256], suffix[64];
            snprintf(prefix, sizeof prefix, "opt/%s/", w->param->optimizer->name);
            snprintf(suffix, sizeof suffix, ".%s", info->state[s]);
            rt_table_add(&table, prefix, kept, suffix, RT_ST_F32, w->state[s]);
        }
    }
    must(rt_table_status(&table), path);
    RtPair none = {0};
    must(rt_entries_write(path, table.entry, table.count, &none, 0, false), path);
    rt_table_free(&table);
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

int main(int argc, char **argv)
{
    static Run run;
    const char *defines[32], *text;
    Run *r = run_now = &run;
    ElabOptions options = {.defines = defines};
    Settings settings = {.level = 1,
                         .half = DT_NONE,
                         .strict = 1,
                         .keep_norm_f32 = UNSET,
                         .master_weights = UNSET,
                         .cast_model_type = DT_NONE,
                         .verify = 1};
    if (argc < 2)
        return 2;
    if ((text = value_of(argc, argv, "--level=")))
        settings.level = atoi(text);
    if ((text = value_of(argc, argv, "--half=")))
        settings.half = dtype_find(text);
    if ((text = value_of(argc, argv, "--policy=")))
        settings.torch_policy = !strcmp(text, "torch");
    settings.loss_scale = value_of(argc, argv, "--scale=");
    for (int i = 2; i < argc && options.define_count < 32; i++)
        if (!strncmp(argv[i], "-D", 2))
            defines[options.define_count++] = argv[i] + 2;
    compile(r, argv[1], &settings, &options);

    Program *p = r->program;
    for (int i = 0; i < p->entries.n && !r->entry; i++)
        if (p->entries.at[i]->kind == ENTRY_TRAIN)
            r->entry = p->entries.at[i];
    uint64_t seed = r->entry->seed ? (uint64_t)number(r->entry->seed, NULL) : 0;
    load_data(r, r->entry->dataset);
    make_weights(r, seed);
    r->scaler = p->props.dynamic_scale ? rt_scaler_make(RT_SCALER_AMPC)
                                       : rt_scaler_make_static((float)p->props.static_scale);
    for (int i = 0; i < p->scalers.n; i++) {
        Scaler *s = p->scalers.at[i];
        r->scaler =
            s->dynamic ? rt_scaler_make(RT_SCALER_AMPC) : rt_scaler_make_static((float)s->init);
        if (s->dynamic) {
            r->scaler.scale = (float)s->init;
            r->scaler.window = (int32_t)s->window;
        }
    }
    r->beta1_pow = r->beta2_pow = 1;
    int flags = (r->entry->shuffle ? RT_SHUFFLE : 0) | (r->entry->drop_last ? RT_DROP_LAST : 0);
    must(rt_batches_open(&r->batches, &r->part[r->entry->split], r->entry->batch, flags, seed),
         "batches");
    for (int i = 0; i < r->entry->inputs.n; i++) {
        const RtField *f = &r->data.field[r->entry->inputs.at[i].field];
        r->batch[i] = arena_alloc(&r->arena, (size_t)(r->entry->batch * f->width) * 8);
    }
    int64_t steps = (text = value_of(argc, argv, "--steps=")) ? atoll(text) : 10;
    for (int64_t step = 0; step < steps; step++)
        one_step(r, step, seed, (double)steps);
    if ((text = value_of(argc, argv, "--out=")))
        write_state(r, text);
    return 0;
}
