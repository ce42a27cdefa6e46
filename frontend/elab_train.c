/* What a train declares: settings, optimizers with their schedules and groups, scalers, the
 * checkpoint.
 *
 *     optimizer opt = sgd(net, lr = cosine(lr, warmup = 200)) { group "*.bias": weight_decay = 0; group "*": … }
 */
#include "frontend/elab_core.h"
#include "ir/optim.h"
#include <math.h>
#include <string.h>

/* Hypers as they are written: betas = (…, …) is the two that the table calls beta1 and beta2. */
static const char *written_name(const OptimInfo *info, int k)
{
    return !strcmp(info->hyper[k], "beta1") ? "betas" : info->hyper[k];
}

/* Index of the first hyper called `name`; -1 after the error. */
static int find_hyper(Elab *e, const OptimInfo *info, const Arg *arg)
{
    Candidates names = {0};
    for (int k = 0; k < info->hypers; k++) {
        if (!strcmp(info->hyper[k], "beta2"))
            continue;
        if (!strcmp(written_name(info, k), arg->name))
            return k;
        vec_push(e->arena, &names, written_name(info, k));
    }
    unknown_name(e, CODE_ATTRIBUTE, arg->name_span,
                 arena_printf(e->arena, "unknown attribute '%s' of '%s'", arg->name, info->name),
                 arg->name, &names);
    return -1;
}

/* --- schedules --- */

static const struct {
    const char *name, *attrs;
} schedules[] = {
    {"constant", "peak"},
    {"step", "peak,every,factor"},
    {"linear", "peak,warmup,floor,total"},
    {"cosine", "peak,warmup,floor,total"},
};
enum { SCHEDULES = sizeof schedules / sizeof *schedules };

static Scalar *schedule_part(Elab *e, Site *s, const char *name, Scalar *fallback)
{
    Slot *slot = site_find(s, name);
    if (!slot)
        return NULL;
    return slot->given ? want_scalar(e, slot_value(e, slot), slot->span, slot_what(e, s, slot))
                       : fallback;
}

static Schedule *read_schedule(Elab *e, const Expr *x, int kind)
{
    Site s;
    Schedule *out = new (e->arena, Schedule);
    out->kind = intern(e->names, schedules[kind].name);
    site_open(&s, schedules[kind].name, x->span, x->a->span);
    site_slots(e, &s, schedules[kind].attrs);
    if (!site_bind(e, &s, &x->args, NULL, x->span) || !site_need(e, &s, "peak") ||
        (site_find(&s, "every") && !site_need(e, &s, "every")))
        return NULL;
    out->peak = schedule_part(e, &s, "peak", NULL);
    out->warmup = schedule_part(e, &s, "warmup", scalar_int(e, 0));
    out->floor = schedule_part(e, &s, "floor", scalar_real(e, 0));
    out->every = schedule_part(e, &s, "every", NULL);
    out->factor = schedule_part(e, &s, "factor", scalar_real(e, 0.1));
    out->total = schedule_part(e, &s, "total", NULL);
    return out->peak ? out : NULL;
}

/* lr = 0.1, or lr = cosine(0.1, warmup = 200). NULL: reported. */
static Schedule *parse_schedule(Elab *e, const Expr *x, const char *what)
{
    if (x->kind == EXPR_CALL && x->a->kind == EXPR_NAME && !is_builtin(x->a->name) &&
        !find_decl(e->module, x->a->name)) {
        Candidates names = {0};
        for (int i = 0; i < SCHEDULES; i++) {
            if (!strcmp(schedules[i].name, x->a->name))
                return read_schedule(e, x, i);
            vec_push(e->arena, &names, schedules[i].name);
        }
        unknown_name(e, CODE_NAME, x->a->span,
                     arena_printf(e->arena, "there is no schedule '%s'", x->a->name), x->a->name,
                     &names);
        return NULL;
    }
    Schedule *out = new (e->arena, Schedule);
    out->kind = intern(e->names, "constant");
    out->peak = want_scalar(e, eval(e, x), x->span, what);
    return out->peak ? out : NULL;
}

/* --- hyperparameters --- */

/* Numbers that no optimizer can use are refused now, if they are known. */
static Scalar *check_hyper(Elab *e, Scalar *s, const char *name, const char *who, Span span)
{
    double r = s ? (s->kind == S_INT ? (double)s->i : s->r) : 0;
    if (!s || (s->kind != S_INT && s->kind != S_REAL))
        return s;
    bool below_one = !strncmp(name, "beta", 4) || !strcmp(name, "alpha");
    if (r < 0 || (below_one && r >= 1)) {
        elab_error(e, CODE_VALUE, span, "'%s' of '%s' must be at least 0%s", name, who,
                   below_one ? " and below 1" : "");
        return NULL;
    }
    return s;
}

static void read_betas(Elab *e, const Expr *x, const char *who, Scalar **out)
{
    Value v = eval(e, x);
    if (v.kind != VAL_TUPLE || v.n != 2) {
        if (!is_error(v))
            elab_error(e, CODE_TYPE, x->span, "'betas' of '%s' is two numbers: (0.9, 0.999)", who);
        return;
    }
    for (int i = 0; i < 2; i++)
        out[i] = check_hyper(e, want_scalar(e, v.at[i], x->span, "'betas'"), "betas", who, x->span);
}

/* Sets what the argument gives for the hyper `k` of the row; a schedule goes to *lr. */
static void read_hyper(Elab *e, const OptimInfo *info, int k, const Expr *x, Scalar **out,
                       Schedule **lr)
{
    const char *name = written_name(info, k);
    const char *what = arena_printf(e->arena, "'%s' of '%s'", name, info->name);
    if (!strcmp(name, "lr")) {
        *lr = parse_schedule(e, x, what);
        out[k] = *lr ? check_hyper(e, (*lr)->peak, name, info->name, x->span) : NULL;
    } else if (!strcmp(name, "betas")) {
        read_betas(e, x, info->name, &out[k]);
    } else {
        out[k] =
            check_hyper(e, want_scalar(e, eval(e, x), x->span, what), name, info->name, x->span);
    }
}

static void default_hypers(Elab *e, const OptimInfo *info, Optimizer *o)
{
    for (int k = 0; k < info->hypers; k++) {
        if (o->hyper[k] || isnan(info->fallback[k]))
            continue;
        o->hyper[k] = scalar_real(e, info->fallback[k]);
        if (info->flag[k]) {
            o->hyper[k]->kind = S_BOOL;
            o->hyper[k]->i = info->fallback[k] != 0;
        }
    }
}

/* --- optimizers --- */

static void add_instance(Elab *e, Optimizer *o, const Arg *arg)
{
    Str name = qualified_text(e, arg->value);
    Decl *d = name ? find_decl(e->module, name) : NULL;
    if (!d || d->item->kind != ITEM_INSTANCE) {
        Candidates names = {0};
        for (int i = 0; i < e->module->decls.n; i++)
            if (e->module->decls.at[i]->item->kind == ITEM_INSTANCE)
                vec_push(e->arena, &names, e->module->decls.at[i]->name);
        if (name)
            unknown_name(e, CODE_NAME, arg->value->span,
                         arena_printf(e->arena, "'%s' is no instance", name), name, &names);
        else
            elab_error(e, CODE_TYPE, arg->value->span, "an optimizer takes instances");
        return;
    }
    Value v = instance_value(e, d);
    if (v.kind != VAL_LAYER)
        return;
    Instance *instance = v.layer->instance;
    for (int i = 0; i < e->all_optimizers.n; i++) {
        const Optimizer *other = e->all_optimizers.at[i].optimizer;
        for (int k = 0; k < other->instance_count; k++)
            if (other->instances[k] == instance) {
                if (other->entry != e->run->entry) {
                    unsupported(e, arg->value->span,
                                "one instance in the optimizers of two trains");
                    return;
                }
                Diag *report = elab_error(e, CODE_RULE, arg->value->span,
                                          "'%s' has an optimizer already", d->name);
                if (report)
                    note_at(report, other->span, "it belongs to '%s'", other->name);
                return;
            }
    }
    if (instance->frozen) {
        Diag *report = elab_error(e, CODE_RULE, arg->value->span,
                                  "'%s' is frozen and cannot be trained", d->name);
        if (report)
            note_at(report, instance->span, "it is declared here");
        return;
    }
    o->instances[o->instance_count++] = instance;
}

static void read_arguments(Elab *e, Optimizer *o, const OptimInfo *info, const Call *call)
{
    bool given[MAX_HYPERS] = {false};
    o->instances = new_array(e->arena, Instance *, call->args.n + 1);
    for (int i = 0; i < call->args.n; i++) {
        const Arg *arg = &call->args.at[i];
        int k = arg->name ? find_hyper(e, info, arg) : -1;
        if (!arg->name)
            add_instance(e, o, arg);
        if (k < 0)
            continue;
        if (given[k])
            elab_error(e, CODE_ATTRIBUTE, arg->span, "'%s' of '%s' is given twice", arg->name,
                       call->name);
        given[k] = true;
        read_hyper(e, info, k, arg->value, o->hyper, &o->lr);
    }
    for (int k = 0; k < info->hypers; k++)
        if (!given[k] && isnan(info->fallback[k]))
            elab_error(e, CODE_ATTRIBUTE, call->name_span, "'%s' needs '%s'", call->name,
                       info->hyper[k]);
    if (!call->args.n || call->args.at[0].name)
        elab_error(e, CODE_ATTRIBUTE, call->name_span, "'%s' needs an instance: %s(net, …)",
                   call->name, call->name);
    default_hypers(e, info, o);
    if (!o->lr && o->hyper[0]) {
        o->lr = new (e->arena, Schedule);
        o->lr->kind = intern(e->names, "constant");
        o->lr->peak = o->hyper[0];
    }
}

static void read_group(Elab *e, Optimizer *o, const OptimInfo *info, const GroupDecl *decl)
{
    ParamGroup *g = new (e->arena, ParamGroup);
    g->span = decl->span;
    for (int i = 0; i < decl->patterns.n; i++)
        vec_push(e->arena, &g->globs, intern(e->names, decl->patterns.at[i].text));
    for (int i = 0; i < decl->settings.n; i++) {
        const Arg *arg = &decl->settings.at[i];
        int k = find_hyper(e, info, arg);
        if (k >= 0)
            read_hyper(e, info, k, arg->value, g->hyper, &g->lr);
    }
    vec_push(e->arena, &o->groups, g);
}

static int find_optimizer(Elab *e, const Call *call)
{
    Candidates names = {0};
    int kind = optim_find(call->name);
    if (kind >= 0)
        return kind;
    for (int i = 0; i < optim_count(); i++)
        vec_push(e->arena, &names, optim_info(i)->name);
    unknown_name(e, CODE_NAME, call->name_span,
                 arena_printf(e->arena, "there is no optimizer '%s'", call->name), call->name,
                 &names);
    return -1;
}

/* Names of optimizers and scalers are the train's own; in the program each stands once. */
static Str unique_name(Elab *e, Str name)
{
    bool taken = false;
    for (int i = 0; i < e->program->optimizers.n; i++)
        taken |= e->program->optimizers.at[i]->name == name;
    for (int i = 0; i < e->program->scalers.n; i++)
        taken |= e->program->scalers.at[i]->name == name;
    return taken ? intern_printf(e->names, "%s_%s", e->run->entry->name, name) : name;
}

static bool is_declared(Elab *e, Str name, Span span)
{
    const Binding *b = find_binding(e, name);
    Diag *d = b ? elab_error(e, CODE_NAME, span, "'%s' is declared twice", name) : NULL;
    if (d)
        note_at(d, b->span, "the other declaration is here");
    return b != NULL;
}

static void add_optimizer(Elab *e, const OptimizerDecl *decl)
{
    int kind = find_optimizer(e, &decl->call);
    if (is_declared(e, decl->name, decl->name_span))
        return;
    bind_name(e, decl->name, value_error(), decl->name_span)->is_declared = true;
    if (kind < 0)
        return;
    Optimizer *o = new (e->arena, Optimizer);
    const OptimInfo *info = optim_info(kind);
    o->name = unique_name(e, decl->name);
    o->kind = kind;
    o->entry = e->run->entry;
    o->index = e->program->optimizers.n;
    o->span = decl->name_span;
    read_arguments(e, o, info, &decl->call);
    for (int i = 0; i < decl->groups.n; i++)
        read_group(e, o, info, &decl->groups.at[i]);
    vec_push(e->arena, &e->program->optimizers, o);
    vec_push(e->arena, &e->run->entry->optimizers, o);
    OptimizerState state = {.optimizer = o, .decl = decl};
    vec_push(e->arena, &e->run->optimizers, state);
    vec_push(e->arena, &e->all_optimizers, state);
}

/* --- scalers --- */

/* A dynamic scaler whose numbers are open: its mode says them later. */
Scaler *scaler_default(Elab *e)
{
    Scaler *s = new (e->arena, Scaler);
    s->dynamic = 1;
    s->init = s->factor = s->low = s->high = NAN;
    return s;
}

static bool is_power_of_two(double x)
{
    int exponent;
    return frexp(x, &exponent) == 0.5;
}

static bool scale_ok(Elab *e, Site *s, const char *name, double scale)
{
    Slot *slot = site_find(s, name);
    Span span = slot->given ? slot->span : s->span;
    if (!(scale > 0 && scale <= 0x1p32)) {
        elab_error(e, CODE_VALUE, span, "a loss scale must be above 0 and at most 2^32");
        return false;
    }
    if (slot->given && !is_power_of_two(scale))
        warn_at(e->diags, CODE_SCALE_POWER, span,
                "%s is no power of two, so that scaling rounds the gradients",
                double_text(e->arena, scale));
    return true;
}

/* dynamic(init, factor, window, min, max, hysteresis, mode) or static(scale). */
bool read_loss_scale(Elab *e, Str name, Span name_span, const Args *args, Span span, Scaler *out)
{
    static const char *const modes[] = {"ampc", "apex", "torch", "megatron", "deepspeed", "flax"};
    Site s;
    bool ok = true, known = false;
    site_open(&s, name, span, name_span);
    if (!strcmp(name, "static")) {
        site_slots(e, &s, "scale");
        if (!site_bind(e, &s, args, NULL, span) || !site_need(e, &s, "scale"))
            return false;
        out->dynamic = 0;
        out->init = site_real(e, &s, "scale", 1, &ok);
        return ok && scale_ok(e, &s, "scale", out->init);
    }
    if (strcmp(name, "dynamic")) {
        static const char *const both[] = {"dynamic", "static"};
        Candidates names = {.at = (const char **)both, .n = 2};
        unknown_name(e, CODE_NAME, name_span,
                     arena_printf(e->arena, "there is no scaler '%s'", name), name, &names);
        return false;
    }
    site_slots(e, &s, "init,factor,window,min,max,hysteresis,mode");
    if (!site_bind(e, &s, args, NULL, span))
        return false;
    out->init = site_real(e, &s, "init", out->init, &ok);
    out->factor = site_real(e, &s, "factor", out->factor, &ok);
    out->window = site_int(e, &s, "window", out->window, &ok);
    out->low = site_real(e, &s, "min", out->low, &ok);
    out->high = site_real(e, &s, "max", out->high, &ok);
    out->hysteresis = site_int(e, &s, "hysteresis", out->hysteresis, &ok);
    Str mode = site_string(e, &s, "mode", "", &ok);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        known |= !strcmp(modes[i], mode);
    out->mode = site_find(&s, "mode")->given ? mode : NULL;
    if (ok && out->mode && !known) {
        elab_error(e, CODE_VALUE, site_find(&s, "mode")->span, "there is no scaler mode \"%s\"",
                   mode);
        ok = false;
    }
    if (ok && site_find(&s, "init")->given)
        ok = scale_ok(e, &s, "init", out->init);
    if (ok && (out->low < 0 || out->high <= 0 || out->low > out->high || out->init < out->low ||
               out->init > out->high)) {
        elab_error(e, CODE_VALUE, span, "'init' of a scaler must be within 'min' and 'max'");
        ok = false;
    }
    if (ok && (out->factor <= 1 || (site_find(&s, "window")->given && out->window < 1) ||
               (site_find(&s, "hysteresis")->given && out->hysteresis < 1))) {
        elab_error(e, CODE_VALUE, span,
                   "a scaler needs a factor above 1, a window and a hysteresis of at least 1");
        ok = false;
    }
    return ok;
}

void scaler_add(Elab *e, Scaler *s)
{
    ScalerState state = {.scaler = s};
    s->index = e->program->scalers.n;
    vec_push(e->arena, &e->program->scalers, s);
    vec_push(e->arena, &e->run->entry->scalers, s);
    vec_push(e->arena, &e->run->scalers, state);
}

static void add_scaler(Elab *e, const ScalerDecl *decl)
{
    if (is_declared(e, decl->name, decl->name_span))
        return;
    Scaler *s = scaler_default(e);
    bind_name(e, decl->name, value_error(), decl->name_span)->is_declared = true;
    read_loss_scale(e, decl->call.name, decl->call.name_span, &decl->call.args, decl->call.span, s);
    s->name = unique_name(e, decl->name);
    s->span = decl->name_span;
    scaler_add(e, s);
    e->run->scalers.at[e->run->scalers.n - 1].local = decl->name;
}

void train_optimizers(Elab *e, const Item *item)
{
    for (int i = 0; i < item->train.optimizers.n; i++)
        add_optimizer(e, &item->train.optimizers.at[i]);
    for (int i = 0; i < item->train.scalers.n; i++)
        add_scaler(e, &item->train.scalers.at[i]);
}

/* --- settings --- */

static void read_checkpoint(Elab *e, const Item *item, Entry *entry)
{
    if (item->train.checkpoints.n > 1)
        elab_error(e, CODE_RULE, item->train.checkpoints.at[1].span, "a train has one checkpoint");
    if (!item->train.checkpoints.n)
        return;
    const CheckpointDecl *c = &item->train.checkpoints.at[0];
    entry->checkpoint = intern(e->names, c->path.text);
    entry->checkpoint_every = want_scalar(e, eval(e, c->every), c->every->span, "'every'");
    entry->checkpoint_in_epochs = c->in_epochs;
    if (c->keep)
        entry->checkpoint_keep = want_scalar(e, eval(e, c->keep), c->keep->span, "'keep'");
    if (c->in_epochs && !item->train.on.name)
        elab_error(e, CODE_RULE, c->span, "without a dataset there are no epochs; use steps");
}

static Scalar *count_setting(Elab *e, const Arg *arg)
{
    const char *what = arena_printf(e->arena, "'%s'", arg->name);
    Value v = eval(e, arg->value);
    if (v.kind == VAL_REAL || v.kind == VAL_BOOL || v.kind == VAL_STRING ||
        (v.kind == VAL_RUNTIME && v.runtime_kind != OPTION_INT)) {
        elab_error(e, CODE_TYPE, arg->value->span, "%s must be an integer, found %s", what,
                   value_text(e, &v));
        return NULL;
    }
    if (v.kind == VAL_INT && v.i < (strcmp(arg->name, "seed") ? 1 : 0)) {
        elab_error(e, CODE_VALUE, arg->value->span, "%s must be at least %d", what,
                   strcmp(arg->name, "seed") ? 1 : 0);
        return NULL;
    }
    return want_scalar(e, v, arg->value->span, what);
}

static void read_setting(Elab *e, const Arg *arg, Entry *entry)
{
    static const char *const settings[] = {"batch", "epochs",  "steps",
                                           "seed",  "shuffle", "drop_last"};
    bool flag = false;
    const char *what = arena_printf(e->arena, "'%s'", arg->name);
    if (!strcmp(arg->name, "batch")) {
        if (want_int(e, eval(e, arg->value), arg->value->span, what, &entry->batch) &&
            (entry->batch < 1 || entry->batch > INT32_MAX)) {
            elab_error(e, CODE_VALUE, arg->value->span, "a batch is within 1 .. %d", INT32_MAX);
            entry->batch = 1;
        }
    } else if (!strcmp(arg->name, "epochs")) {
        entry->epochs = count_setting(e, arg);
    } else if (!strcmp(arg->name, "steps")) {
        entry->steps = count_setting(e, arg);
    } else if (!strcmp(arg->name, "seed")) {
        entry->seed = count_setting(e, arg);
    } else if (!strcmp(arg->name, "shuffle")) {
        if (want_bool(e, eval(e, arg->value), arg->value->span, what, &flag))
            entry->shuffle = flag;
    } else if (!strcmp(arg->name, "drop_last")) {
        if (want_bool(e, eval(e, arg->value), arg->value->span, what, &flag))
            entry->drop_last = flag;
    } else {
        Candidates names = {.at = (const char **)settings, .n = 6};
        unknown_name(e, CODE_ATTRIBUTE, arg->name_span,
                     arena_printf(e->arena, "unknown setting '%s' of a train", arg->name),
                     arg->name, &names);
    }
}

void train_settings(Elab *e, const Item *item, Entry *entry)
{
    const Args *settings = &item->train.settings;
    bool has_batch = false, has_length = false;
    for (int i = 0; i < settings->n; i++) {
        const Arg *arg = &settings->at[i];
        for (int k = 0; k < i; k++)
            if (settings->at[k].name == arg->name)
                elab_error(e, CODE_ATTRIBUTE, arg->span, "'%s' is set twice", arg->name);
        has_batch |= !strcmp(arg->name, "batch");
        has_length |= !strcmp(arg->name, "epochs") || !strcmp(arg->name, "steps");
        read_setting(e, arg, entry);
    }
    if (!has_batch) {
        elab_error(e, CODE_ATTRIBUTE, item->name_span, "'%s' needs a batch size: batch = 64;",
                   item->name);
        entry->batch = 1;
    }
    if (!has_length && item->train.on.name)
        elab_error(e, CODE_ATTRIBUTE, item->word_span, "'%s' needs 'epochs' or 'steps'",
                   item->name);
    read_checkpoint(e, item, entry);
}

/* --- parameters to groups, when all of them exist --- */

static int group_of(const Optimizer *o, const Param *p, bool *matched)
{
    int group = -1;
    for (int i = 0; i < o->groups.n; i++)
        for (int k = 0; k < o->groups.at[i]->globs.n; k++)
            if (glob_match(o->groups.at[i]->globs.at[k], p->local)) {
                matched[i * MAX_SLOTS + (k < MAX_SLOTS ? k : MAX_SLOTS - 1)] = true;
                if (group < 0)
                    group = i;
            }
    return group;
}

static void check_globs(Elab *e, const OptimizerState *s, const bool *matched)
{
    for (int i = 0; i < s->decl->groups.n; i++)
        for (int k = 0; k < s->decl->groups.at[i].patterns.n && k < MAX_SLOTS; k++)
            if (!matched[i * MAX_SLOTS + k])
                elab_error(e, CODE_RULE, s->decl->groups.at[i].patterns.at[k].span,
                           "\"%s\" matches no parameter of '%s'",
                           s->decl->groups.at[i].patterns.at[k].text, s->optimizer->name);
}

/* Were all instances called, without errors? Otherwise parameters are missing. */
static bool is_complete(Elab *e, const Optimizer *o)
{
    for (int i = 0; i < o->instance_count; i++)
        for (int k = 0; k < e->roots.n; k++) {
            const Layer *root = e->roots.at[k];
            if (root->instance == o->instances[i] && (!root->called || root->model->broken))
                return false;
        }
    return o->instance_count > 0;
}

static void sort_params(Elab *e, const OptimizerState *s)
{
    Optimizer *o = s->optimizer;
    if (!is_complete(e, o))
        return;
    bool has_groups = o->groups.n > 0;
    bool *matched = new_array(e->arena, bool, (o->groups.n + 1) * MAX_SLOTS);
    if (!has_groups)
        vec_push(e->arena, &o->groups, new (e->arena, ParamGroup));
    for (int i = 0; i < e->program->params.n; i++) {
        Param *p = e->program->params.at[i];
        bool mine = false;
        for (int k = 0; k < o->instance_count; k++)
            mine |= o->instances[k] == p->instance;
        if (!mine || p->is_buffer || p->frozen || !is_real(p->type->dtype))
            continue;
        p->group = has_groups ? group_of(o, p, matched) : 0;
        if (p->group < 0) {
            Diag *d = elab_error(e, CODE_RULE, o->span, "no group of '%s' matches '%s'", o->name,
                                 p->local);
            if (d)
                note_at(d, p->span, "it is declared here; a last group \"*\" would take it");
            continue;
        }
        p->optimizer = o;
        vec_push(e->arena, &o->params, p);
    }
    check_globs(e, s, matched);
}

void optimizers_finish(Elab *e)
{
    for (int i = 0; i < e->all_optimizers.n; i++)
        sort_params(e, &e->all_optimizers.at[i]);
}
