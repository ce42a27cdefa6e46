#include "reference.h"
#include "frontend/elab.h"
#include "frontend/parse.h"
#include "ir/shape.h"
#include "passes/each.h"
#include "passes/levels.h"
#include "rt_param.h"
#include "rt_schedule.h"
#include "rt_sum.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- compiling ---- */

/* What is left of pass cast when there is nothing to cast: `float` is f32, and composites that
 * autodiff must not see become primitives. */
static Node *without_casts(Rewrite *w, Node *old, Node **in)
{
    (void)w;
    int is_float = old->type->dtype == DT_FLOAT;
    if (old->op == OP_ENTER || old->op == OP_LEAVE)
        return in[0];
    if (old->op == OP_CONST && is_float)
        return constant(old->attrs->at[0].r, DT_F32);
    if (!old->nin && is_float)
        return build_source(old->op, type_with(types_now(), old->type, DT_F32), old->attrs,
                            old->param, old->version);
    if (old->op == OP_CAST && is_float)
        return cast_to(in[0], DT_F32);
    return op_is(old->op, F_EARLY) ? expand_composite(old, in) : NULL;
}

static void run_plain(Unit *u)
{
    Program *p = u->program;
    passes_run(u, "infer", NULL);
    if (u->diags->errors)
        return;
    rewrite_program(p, without_casts, NULL);
    for (int i = 0; i < p->entries.n; i++)
        for (int k = 0; k < p->entries.at[i]->inputs.n; k++) {
            EntryInput *in = &p->entries.at[i]->inputs.at[k];
            if (in->type->dtype == DT_FLOAT)
                in->type = type_with(&p->types, in->type, DT_F32);
        }
    p->stage = CASTED;
    passes_run(u, "autodiff,clean", NULL);
    for (int i = 0; i < p->params.n; i++) {
        p->params.at[i]->master = DT_F32;
        p->params.at[i]->copy = DT_NONE;
    }
    p->stage = MASTERED;
    if (!u->diags->errors)
        passes_run(u, "step,expand", NULL);
}

static Entry *find_entry(const Program *p, EntryKind kind)
{
    for (int i = 0; i < p->entries.n; i++)
        if (p->entries.at[i]->kind == kind)
            return p->entries.at[i];
    return NULL;
}

static void make_weights(Reference *r)
{
    Program *p = r->program;
    uint64_t seed = r->train->seed ? (uint64_t)reference_number(r, r->train->seed) : 0;
    r->weights = new_array(&r->arena, Weights, p->params.n + 1);
    for (int i = 0; i < p->params.n; i++) {
        Param *x = p->params.at[i];
        Weights *w = &r->weights[i];
        RtParam row = {.instance = x->instance->name, .name = x->local, .rank = x->type->rank};
        w->param = x;
        w->gradient_type = DT_NONE;
        w->count = row.count = dim_value(type_count(&p->types, x->type), NULL);
        for (int k = 0; k < x->type->rank; k++)
            row.shape[k] = dim_value(x->type->dim[k], NULL);
        row.init = (RtInit){(RtInitKind)x->init.kind, (float)x->init.a, (float)x->init.b};
        w->value = new_array(&r->arena, float, w->count + 1);
        w->gradient = new_array(&r->arena, float, w->count + 1);
        w->gradient_bound = new_array(&r->arena, double, w->count + 1);
        for (int k = 0; k < MAX_STATES; k++)
            w->state[k] = new_array(&r->arena, float, w->count + 1);
        int status = rt_param_init(&row, seed, w->value);
        assert(status == RT_OK);
        (void)status;
        for (int64_t k = 0; is_half(x->master) && k < w->count; k++)
            w->value[k] = (float)dtype_round(x->master, w->value[k]);
    }
}

static RtScaler first_scaler(const Program *p)
{
    RtScaler made = p->props.dynamic_scale ? rt_scaler_make(RT_SCALER_AMPC)
                                           : rt_scaler_make_static((float)p->props.static_scale);
    for (int i = 0; i < p->scalers.n; i++) {
        const Scaler *s = p->scalers.at[i];
        if (!s->dynamic) {
            made = rt_scaler_make_static((float)s->init);
            continue;
        }
        made = rt_scaler_make(RT_SCALER_AMPC);
        made.scale = (float)s->init;
        made.window = (int32_t)s->window;
    }
    return made;
}

int reference_open(Reference *r, const char *text, const Settings *settings, const char *passes)
{
    memset(r, 0, sizeof *r);
    names_init(&r->names, &r->arena);
    sources_init(&r->sources, &r->arena);
    diags_init(&r->diags, &r->arena, &r->sources);
    Source *source = source_add(&r->sources, "model.amp", text, strlen(text));
    Ast *ast = parse(source, &r->diags, &r->names, &r->arena);
    ElabOptions options = {0};
    if (!r->diags.errors)
        r->program = elaborate(ast, &options, &r->diags, &r->names, &r->arena);
    Unit u = {.arena = &r->arena,
              .scratch = &r->scratch,
              .names = &r->names,
              .diags = &r->diags,
              .settings = settings,
              .program = r->program};
    if (!r->diags.errors)
        resolve_properties(&u);
    if (!r->diags.errors && passes && !strcmp(passes, "plain"))
        run_plain(&u);
    else if (!r->diags.errors)
        passes_run(&u, passes, passes ? NULL : "expand");
    if (r->diags.errors) {
        Out o;
        out_init(&o, &r->arena);
        diags_print(&r->diags, &o, 0);
        r->message = o.text;
        return 0;
    }
    r->train = find_entry(r->program, ENTRY_TRAIN);
    r->eval = find_entry(r->program, ENTRY_EVAL);
    r->infer = find_entry(r->program, ENTRY_INFER);
    make_weights(r);
    r->scaler = first_scaler(r->program);
    r->scale = r->scaler.scale;
    r->beta1_pow = r->beta2_pow = 1;
    return 1;
}

void reference_close(Reference *r)
{
    arena_free(&r->scratch);
    arena_free(&r->arena);
}

/* ---- numbers of the program, with every option at its default ---- */

double reference_number(const Reference *r, const Scalar *s)
{
    double a = s->a ? reference_number(r, s->a) : 0, b = s->b ? reference_number(r, s->b) : 0;
    switch (s->kind) {
    case S_INT:
    case S_BOOL:
        return (double)s->i;
    case S_REAL:
        return s->r;
    case S_OPTION:
        return reference_number(r, r->program->options.at[s->i]->value);
    case S_UNARY:
        return *s->s == '-' ? -a : a == 0;
    case S_BINARY:
        return *s->s == '+' ? a + b : *s->s == '-' ? a - b : *s->s == '*' ? a * b : a / b;
    default:
        assert(!"a scalar that no random model has");
        return NAN;
    }
}

double reference_rate(const Reference *r, const Schedule *s)
{
    double t = (double)r->taken, peak = reference_number(r, s->peak);
    double warmup = s->warmup ? reference_number(r, s->warmup) : 0;
    double low = s->floor ? reference_number(r, s->floor) : 0;
    double total = s->total          ? reference_number(r, s->total)
                   : r->train->steps ? reference_number(r, r->train->steps)
                                     : 0;
    if (!strcmp(s->kind, "step"))
        return rt_lr_step(peak, warmup, reference_number(r, s->every),
                          s->factor ? reference_number(r, s->factor) : 0.1, t);
    if (!strcmp(s->kind, "linear"))
        return rt_lr_linear(peak, warmup, low, total, t);
    if (!strcmp(s->kind, "cosine"))
        return rt_lr_cosine(peak, warmup, low, total, t);
    return rt_lr_constant(peak, warmup, t);
}

static const ParamGroup *group_of(const Optimizer *opt, const Param *x)
{
    return x->group >= 0 && x->group < opt->groups.n ? opt->groups.at[x->group] : NULL;
}

OptimElement reference_hypers(const Reference *r, const Optimizer *opt, const Weights *w)
{
    const OptimInfo *info = optim_info(opt->kind);
    const ParamGroup *group = group_of(opt, w->param);
    OptimElement e = {.first = r->taken == 0, .trust = 1};
    for (int i = 1; i < info->hypers; i++)
        e.hyper[i] =
            (float)reference_number(r, group && group->hyper[i] ? group->hyper[i] : opt->hyper[i]);
    if (group && group->hyper[0] && !group->lr)
        e.hyper[0] = (float)reference_number(r, group->hyper[0]);
    else
        e.hyper[0] = (float)reference_rate(r, group && group->lr ? group->lr : opt->lr);
    if (optim_derives(info, "bc1")) {
        e.bc1 = (float)(1 / (1 - r->beta1_pow));
        e.bc2 = (float)(1 / (1 - r->beta2_pow));
    }
    return e;
}

/* ---- evaluating ---- */

/* The value that a buffer got earlier in this evaluation. */
static const Tensor *stored(const Reference *r, const Node *read)
{
    for (const Node *n = r->graph->first; n && n != read; n = n->next)
        if (n->op == OP_STORE && n->param == read->param && n->version == read->version)
            return &r->now->value[n->id];
    return NULL;
}

static void fill(Tensor *out, int64_t at, double value)
{
    if (out->f)
        out->f[at] = (float)value;
    else if (out->d)
        out->d[at] = value;
    else
        out->i[at] = (int64_t)value;
}

static void give_source(void *data, const Node *n, Tensor *out)
{
    const Reference *r = data;
    const Tensor *made = n->op == OP_READ && n->version ? stored(r, n) : NULL;
    for (int64_t k = 0; n->op == OP_READ && k < out->count; k++) {
        fill(out, k,
             made ? (made->f ? made->f[k] : made->d[k]) : r->weights[n->param->index].value[k]);
        if (out->bound && made) /* the exact value is rounded once more, as a stored one */
            out->bound[k] =
                made->bound[k] +
                (is_half(n->type->dtype) ? dtype_unit(n->type->dtype) * fabs(made->d[k]) : 0);
    }
    if (n->op == OP_SCALE)
        fill(out, 0, r->scale);
    for (int i = 0; n->op == OP_OPTION && i < r->program->options.n; i++)
        if (r->program->options.at[i]->name == attr_s(n, "name"))
            fill(out, 0, (float)reference_number(r, r->program->options.at[i]->value));
    for (int i = 0; n->op == OP_INPUT && i < r->batch->count; i++)
        if (!strcmp(r->batch->input[i].name, attr_s(n, "name")))
            for (int64_t k = 0; k < out->count; k++)
                fill(out, k,
                     r->batch->input[i].f ? r->batch->input[i].f[k]
                                          : (double)r->batch->input[i].i[k]);
}

Eval reference_eval(Reference *r, Entry *entry, EvalMode mode, const Batch *batch)
{
    int64_t *symbols = new_array(&r->scratch, int64_t, r->program->types.symbols + 1);
    for (int i = 0; i < r->program->types.symbols; i++)
        symbols[i] = batch->rows;
    Eval e = {.program = r->program,
              .arena = &r->scratch,
              .mode = mode,
              .symbols = symbols,
              .seed = r->train->seed ? (uint64_t)reference_number(r, r->train->seed) : 0,
              .step = entry->kind == ENTRY_TRAIN ? (uint32_t)r->steps : 0,
              .source = give_source,
              .data = r};
    r->batch = batch;
    r->now = &e;
    r->graph = entry->segment[0];
    eval_graph(&e, entry->segment[0]);
    r->now = NULL;
    return e;
}

/* ---- a step ---- */

static int same_pool(const Weights *a, const Weights *b)
{
    return a->param->master == b->param->master && a->param->copy == b->param->copy &&
           a->gradient_type == b->gradient_type;
}

/* The squares of the gradients that lie in one buffer with those of parameter `first`: by group,
 * then as declared, tensors at multiples of 32 elements, zeros between. */
static double pool_squares(Reference *r, const Optimizer *opt, int first)
{
    int64_t total = 0, at = 0;
    int params = r->program->params.n, groups = opt->groups.n ? opt->groups.n : 1;
    for (int i = first; i < params; i++)
        total += (r->weights[i].count + 31) / 32 * 32;
    float *flat = new_array(&r->scratch, float, total + 1);
    for (int group = -1; group < groups; group++)
        for (int i = first; i < params; i++) {
            const Weights *w = &r->weights[i];
            if (!same_pool(w, &r->weights[first]) || w->param->optimizer != opt ||
                w->param->group != group)
                continue;
            memcpy(flat + at, w->gradient, sizeof(float) * (size_t)w->count);
            at += (w->count + 31) / 32 * 32;
        }
    int64_t chunks = rt_chunk_count(at);
    double *chunk = new_array(&r->scratch, double, chunks + 1);
    rt_squares_f32(chunk, flat, at, 0, chunks);
    return rt_add_chunks(chunk, chunks);
}

static double gradient_norm(Reference *r, const Optimizer *opt)
{
    double squares = 0;
    for (int i = 0; i < r->program->params.n; i++) {
        const Weights *w = &r->weights[i];
        int seen = w->param->optimizer != opt || w->gradient_type == DT_NONE;
        for (int k = 0; k < i; k++)
            seen |= r->weights[k].param->optimizer == opt && same_pool(w, &r->weights[k]);
        if (!seen)
            squares += pool_squares(r, opt, i);
    }
    return sqrt(squares);
}

static double norm_of(Reference *r, const float *x, int64_t count)
{
    int64_t chunks = rt_chunk_count(count);
    double *chunk = new_array(&r->scratch, double, chunks + 1);
    rt_squares_f32(chunk, x, count, 0, chunks);
    return sqrt(rt_add_chunks(chunk, chunks));
}

/* |p| / |direction| of LAMB, a tensor; hypers: lr beta1 beta2 eps weight_decay. */
static float trust_ratio(Reference *r, const Weights *w, const OptimElement *x, float k)
{
    float *direction = new_array(&r->scratch, float, w->count + 1);
    float beta1 = (float)x->hyper[1], beta2 = (float)x->hyper[2], eps = (float)x->hyper[3];
    for (int64_t i = 0; i < w->count; i++) {
        float g = k * w->gradient[i];
        float m = beta1 * w->state[0][i] + (1.0f - beta1) * g;
        float v = beta2 * w->state[1][i] + (1.0f - beta2) * g * g;
        direction[i] = (m * (float)x->bc1) / (sqrtf(v * (float)x->bc2) + eps) +
                       (float)x->hyper[4] * w->value[i];
    }
    double of_weights = norm_of(r, w->value, w->count),
           of_direction = norm_of(r, direction, w->count);
    return of_weights > 0 && of_direction > 0 ? (float)(of_weights / of_direction) : 1.0f;
}

static void update_weights(Reference *r, const Optimizer *opt, Weights *w, float k)
{
    const OptimInfo *info = optim_info(opt->kind);
    OptimElement common = reference_hypers(r, opt, w);
    if (optim_derives(info, "trust"))
        common.trust = trust_ratio(r, w, &common, k);
    for (int64_t i = 0; i < w->count; i++) {
        OptimElement x = common;
        x.p = w->value[i];
        x.g = k * w->gradient[i];
        for (int s = 0; s < info->states; s++)
            x.state[s] = w->state[s][i];
        optim_float(opt->kind, &x);
        for (int s = 0; s < info->states; s++)
            w->state[s][i] = (float)x.state[s];
        w->value[i] =
            is_half(w->param->master) ? (float)dtype_round(w->param->master, x.p) : (float)x.p;
    }
}

static void clip_values(Weights *w, float k, float limit)
{
    for (int64_t j = 0; j < w->count; j++) {
        float g = k * w->gradient[j];
        w->gradient[j] = g > limit ? limit : g < -limit ? -limit : g;
    }
}

/* Unscale, test, clip, update; 1 if the step was taken. */
static int take_step(Reference *r, Optimizer *opt)
{
    const OptimInfo *info = optim_info(opt->kind);
    double coefficient = 1;
    r->norm = gradient_norm(r, opt) / (double)r->scale;
    r->rate = reference_rate(r, opt->lr);
    if (opt->checks && !isfinite((float)r->norm))
        return 0;
    if (opt->clip_kind && !strcmp(opt->clip_kind, "norm"))
        coefficient = rt_clip_factor(r->norm, opt->clip_limit);
    float k = (float)(coefficient / (double)r->scale);
    for (int i = 0; i < info->hypers; i++) {
        if (!strcmp(info->hyper[i], "beta1"))
            r->beta1_pow *= (float)reference_number(r, opt->hyper[i]);
        if (!strcmp(info->hyper[i], "beta2"))
            r->beta2_pow *= (float)reference_number(r, opt->hyper[i]);
    }
    for (int i = 0; i < opt->params.n; i++) {
        Weights *w = &r->weights[opt->params.at[i]->index];
        if (w->gradient_type == DT_NONE)
            continue;
        if (opt->clip_kind && !strcmp(opt->clip_kind, "value")) {
            clip_values(w, k, (float)opt->clip_limit);
            update_weights(r, opt, w, 1);
        } else {
            update_weights(r, opt, w, k);
        }
    }
    r->taken++;
    return 1;
}

static void keep_buffers(Reference *r, const Eval *e)
{
    for (Node *n = r->train->segment[0]->first; n; n = n->next)
        if (n->op == OP_STORE)
            memcpy(r->weights[n->param->index].value, e->value[n->in[0]->id].f,
                   sizeof(float) * (size_t)r->weights[n->param->index].count);
}

void reference_update(Reference *r)
{
    r->skipped = !take_step(r, r->train->optimizers.at[0]);
    rt_scaler_update(&r->scaler, r->skipped);
    r->steps++;
}

Eval reference_step(Reference *r, const Batch *batch)
{
    arena_reset(&r->scratch);
    r->scale = r->scaler.scale;
    Eval e = reference_eval(r, r->train, EVAL_STRICT, batch);
    for (Node *n = r->train->segment[0]->first; n; n = n->next)
        if (n->op == OP_UPDATE) {
            Weights *w = &r->weights[n->param->index];
            w->gradient_type = n->in[0]->type->dtype;
            memcpy(w->gradient, e.value[n->in[0]->id].f, sizeof(float) * (size_t)w->count);
        }
    keep_buffers(r, &e);
    reference_update(r);
    return e;
}
