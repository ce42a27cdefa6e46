/* Properties: the level's defaults, what amp { } of the file changes of them, and what the command
 * line changes of that. A property that contradicts its level is an error where it stands: in the
 * file, or (without a place, code USAGE) on the command line.
 *
 *     amp { level = O1; master_weights = true; }      error: master_weights cannot be set at O1, …
 */
#include "passes/levels.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { F32 = 0, HALF = 1, NONE = -1, STATIC = 0, DYNAMIC = 1 };

const LevelInfo level_info[LEVEL_COUNT] = {
#define LEVEL(name, model, policy, keep, master, scale, sentence)                                  \
    {#name, sentence, model, policy, keep, master, scale},
#include "passes/levels.def"
#undef LEVEL
};

void levels_list(Out *o)
{
    for (int i = 0; i < LEVEL_COUNT; i++)
        out_line(o, "%s  %s", level_info[i].name, level_info[i].sentence);
}

/* One property as it was asked for: by the file, or by the command line, which wins. */
typedef struct Wish {
    int given;
    Str word;      /* NULL: a number */
    double number; /* of loss_scale */
    Span span;     /* none: the command line */
} Wish;

typedef struct Resolve {
    Unit *u;
    const Settings *settings;
    const AmpBlock *amp; /* may be NULL */
    Properties *props;
    const LevelInfo *level;
} Resolve;

/* An error about a wish, where it was made. */
static Diag *refuse(const Resolve *r, const Wish *w, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static Diag *refuse(const Resolve *r, const Wish *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Code code = w->span.file ? CODE_LEVEL : CODE_USAGE;
    Diag *d = error_at(r->u->diags, code, w->span, "%s", arena_vprintf(r->u->arena, format, args));
    va_end(args);
    if (d && w->span.file && r->settings->level >= 0)
        note_at(d, (Span){0}, "the level is %s because of -%s", r->level->name, r->level->name);
    else if (d && r->amp && r->amp->level.span.file && r->settings->level < 0)
        note_at(d, r->amp->level.span, "the level is set here");
    return d;
}

static Wish from_file(const AmpSetting *s)
{
    return (Wish){
        .given = s->span.file != 0, .word = s->word, .number = s->number, .span = s->span};
}

static Wish no_wish(void)
{
    return (Wish){.given = 0};
}

static Wish from_caller(int given, const char *word)
{
    return (Wish){.given = given, .word = word};
}

/* What holds: the caller's, else the file's, unless the caller took that back. */
static Wish stronger(Wish caller, Wish file, int taken_back)
{
    return caller.given ? caller : taken_back ? no_wish() : file;
}

/* Index of the wish's word in `words` ("a|b"); -1: an error was recorded. */
static int word_index(const Resolve *r, const Wish *w, const char *property, const char *words)
{
    int index = 0;
    for (const char *p = words; w->word && *p; index++) {
        size_t n = strcspn(p, "|");
        if (strlen(w->word) == n && strncmp(w->word, p, n) == 0)
            return index;
        p += n + (p[n] == '|');
    }
    refuse(r, w, "%s is one of %s%s%s%s", property, words, w->word ? ", found '" : "",
           w->word ? w->word : "", w->word ? "'" : "");
    return -1;
}

/* --- one function a property --- */

static int resolve_level(Resolve *r)
{
    Wish w = r->amp ? from_file(&r->amp->level) : no_wish();
    r->level = &level_info[1];
    if (r->settings->level >= 0)
        return r->settings->level;
    int level = w.given ? word_index(r, &w, "level", "O0|O1|O2|O3") : 1;
    return level < 0 ? 1 : level;
}

/* What cast_model_type asks for. */
typedef enum ModelType {
    MODEL_F32,
    MODEL_F16,
    MODEL_BF16,
    MODEL_HALF,
    MODEL_NONE,
    MODEL_DEFAULT
} ModelType;

static DType half_of(ModelType type)
{
    return type == MODEL_F16 ? DT_F16 : type == MODEL_BF16 ? DT_BF16 : DT_NONE;
}

/* Suggests another level, where the file names one. */
static void suggest_level(const Resolve *r, Diag *d, const char *name)
{
    if (r->settings->level < 0 && r->amp && r->amp->level.span.file)
        fix_at(d, r->amp->level.span, name);
}

static ModelType wanted_model_type(const Resolve *r, Wish *w)
{
    const Settings *s = r->settings;
    int given = s->cast_model_type != DT_NONE;
    Wish file = r->amp ? from_file(&r->amp->cast_model_type) : no_wish();
    *w = stronger(from_caller(given, given ? dtype_info[s->cast_model_type].name : NULL), file,
                  s->unset & UNSET_MODEL_TYPE);
    int index = w->given ? word_index(r, w, "cast_model_type", "f32|f16|bf16|half|false") : -1;
    ModelType type = index < 0 ? MODEL_DEFAULT : (ModelType)index;
    int is_half_type = type == MODEL_F16 || type == MODEL_BF16 || type == MODEL_HALF;
    Diag *d = NULL;
    if (r->level->policy && is_half_type) {
        d = refuse(
            r, w,
            "cast_model_type = %s cannot be set at O1, which casts around functions and keeps its "
            "weights in f32; use O2",
            w->word);
        suggest_level(r, d, "O2");
    } else if (r->level->model_half == F32 && is_half_type) {
        d = refuse(r, w, "cast_model_type = %s contradicts O0; use O3", w->word);
        suggest_level(r, d, "O3");
    } else if (r->level->model_half == HALF && (type == MODEL_F32 || type == MODEL_NONE)) {
        d = warn_at(r->u->diags, CODE_PROPERTY, w->span, "cast_model_type = %s undoes %s; use O0",
                    w->word, r->level->name);
        suggest_level(r, d, "O0");
    }
    return type;
}

/* The half type: as asked for, else that of cast_model_type, else the target's. */
static DType resolve_half(const Resolve *r, ModelType model_type, const Wish *model)
{
    const Settings *s = r->settings;
    Wish file = r->amp ? from_file(&r->amp->half) : no_wish();
    const char *name = s->half != DT_NONE ? dtype_info[s->half].name : "auto";
    Wish w = stronger(from_caller(s->half_given, name), file, 0);
    int index = w.given ? word_index(r, &w, "half", "auto|f16|bf16") : 0;
    DType wanted = half_of(model_type);
    DType automatic = wanted != DT_NONE ? wanted : s->cuda ? DT_F16 : DT_BF16;
    DType half = index == 1 ? DT_F16 : index == 2 ? DT_BF16 : automatic;
    if (wanted != DT_NONE && half != wanted)
        refuse(r, model, "cast_model_type = %s contradicts half = %s", model->word,
               dtype_info[half].name);
    return half;
}

/* keep_batchnorm_fp32 and master_weights: on, off, or the level's default. */
static Tristate resolve_switch(const Resolve *r, const char *property, Tristate caller,
                               const AmpSetting *setting, int taken_back, Tristate fallback)
{
    Wish file = setting ? from_file(setting) : no_wish();
    Wish w =
        stronger(from_caller(caller != UNSET, caller == ON ? "true" : "false"), file, taken_back);
    if (!w.given)
        return fallback;
    int index = word_index(r, &w, property, "false|true");
    if (index < 0)
        return fallback;
    if (r->level->policy)
        refuse(r, &w,
               "%s cannot be set at O1, which casts around functions; use O2 for half weights",
               property);
    else if (r->level->model_half == F32 && index)
        warn_at(r->u->diags, CODE_PROPERTY, w.span,
                "%s does nothing at O0, where everything is f32", property);
    return index ? ON : OFF;
}

static void set_static_scale(const Resolve *r, const Wish *w, double scale)
{
    int exponent;
    if (!(scale > 0) || scale > 0x1p32) {
        refuse(r, w, "the loss scale must be above 0 and at most 2^32, found %s",
               double_text(r->u->arena, scale));
        return;
    }
    if (frexp(scale, &exponent) != 0.5)
        warn_at(r->u->diags, CODE_SCALE_POWER, w->span,
                "a loss scale of %s is not a power of two, so scaling rounds",
                double_text(r->u->arena, scale));
    r->props->dynamic_scale = 0;
    r->props->static_scale = scale;
}

static void resolve_loss_scale(const Resolve *r)
{
    const char *text = r->settings->loss_scale;
    Wish file = r->amp ? from_file(&r->amp->loss_scale) : no_wish();
    Wish w = stronger(from_caller(text != NULL, text), file, 0);
    if (!w.given)
        return;
    const Scaler *scaler = w.span.file ? r->amp->scaler : NULL;
    if (scaler ? scaler->dynamic : w.word && strcmp(w.word, "dynamic") == 0) {
        r->props->dynamic_scale = 1;
        return;
    }
    char *end = NULL;
    double scale = scaler ? scaler->init : w.word ? strtod(w.word, &end) : w.number;
    if (end && (*end || !*w.word))
        refuse(r, &w, "the loss scale is 'dynamic' or a number, found '%s'", w.word);
    else
        set_static_scale(r, &w, scale);
}

/* Two words, the second of which sets the flag. */
static int resolve_flag(const Resolve *r, const char *property, const char *words, int given,
                        int value, const AmpSetting *setting)
{
    if (given || !setting || !setting->span.file)
        return value;
    Wish w = from_file(setting);
    return word_index(r, &w, property, words) == 1;
}

/* --- scalers --- */

/* The numbers of rt_scaler_make (runtime/rt_scaler.h). Bounds of 0 and infinity: none. */
typedef struct ScalerMode {
    const char *name;
    double init, low, high;
    int window, hysteresis;
} ScalerMode;
static const ScalerMode scaler_modes[] = {
    {"ampc", 0x1p16, 0x1p-14, 0x1p24, 2000, 1},    {"apex", 0x1p16, 0x1p-126, 0x1p24, 2000, 1},
    {"torch", 0x1p16, 0x1p-126, 0x1p127, 2000, 1}, {"megatron", 0x1p32, 1, 0x1p127, 1000, 2},
    {"deepspeed", 0x1p16, 1, 0x1p127, 1000, 1},    {"flax", 0x1p16, 0x1p-126, 0x1p127, 2000, 1}};

/* Fills what the user left open: NAN, and 0 in integers. */
static void complete_scaler(Unit *u, Scaler *s)
{
    const ScalerMode *mode = &scaler_modes[0];
    if (!s->mode)
        s->mode = u->program->props.scaler_mode;
    for (size_t i = 0; i < sizeof scaler_modes / sizeof *scaler_modes; i++)
        if (strcmp(scaler_modes[i].name, s->mode) == 0)
            mode = &scaler_modes[i];
    s->init = isnan(s->init) ? mode->init : s->init;
    s->factor = isnan(s->factor) ? 2 : s->factor;
    s->low = isnan(s->low) ? mode->low : s->low;
    s->high = isnan(s->high) ? mode->high : s->high;
    s->window = s->window ? s->window : mode->window;
    s->hysteresis = s->hysteresis ? s->hysteresis : mode->hysteresis;
}

/* The scaler of losses that name none: what the properties say. */
static void set_default_scaler(const Resolve *r, Scaler *s)
{
    const Scaler *file = r->amp && !r->settings->loss_scale ? r->amp->scaler : NULL;
    if (file) {
        s->mode = file->mode;
        s->init = file->init;
        s->factor = file->factor;
        s->low = file->low;
        s->high = file->high;
        s->window = file->window;
        s->hysteresis = file->hysteresis;
    }
    s->dynamic = r->props->dynamic_scale;
    if (!s->dynamic)
        s->init = r->props->static_scale;
    else if (!file)
        s->init = s->factor = s->low = s->high = NAN;
}

static void resolve_scalers(const Resolve *r)
{
    Program *p = r->u->program;
    for (int i = 0; i < p->scalers.n; i++) {
        if (p->scalers.at[i]->is_default)
            set_default_scaler(r, p->scalers.at[i]);
        complete_scaler(r->u, p->scalers.at[i]);
    }
}

/* --- all of them --- */

/* What a level says before anyone changes it. */
static void set_defaults(Properties *props, const LevelInfo *level)
{
    props->cast_by_policy = level->policy;
    props->model_type = level->model_half == NONE ? DT_NONE
                        : level->model_half       ? props->half
                                                  : DT_F32;
    props->keep_norm_f32 = level->keep_norm;
    props->master_weights = level->master;
    props->dynamic_scale = level->dynamic && props->half == DT_F16;
    props->static_scale = 1;
}

void resolve_properties(Unit *u)
{
    const Settings *s = u->settings;
    const AmpBlock *amp = u->program->amp;
    Properties *props = &u->program->props;
    Resolve r = {.u = u, .settings = s, .amp = amp, .props = props};
    Wish model;
    props->level = resolve_level(&r);
    r.level = &level_info[props->level];
    ModelType model_type = wanted_model_type(&r, &model);
    props->half = resolve_half(&r, model_type, &model);
    props->scaler_mode = intern(u->names, s->scaler_mode ? s->scaler_mode : "ampc");
    props->torch_policy = resolve_flag(&r, "policy", "apex|torch", s->policy_given, s->torch_policy,
                                       amp ? &amp->policy : NULL);
    props->strict = resolve_flag(&r, "rounding", "fused|strict", s->rounding_given, s->strict,
                                 amp ? &amp->rounding : NULL);
    set_defaults(props, r.level);
    if (model_type != MODEL_DEFAULT && !r.level->policy)
        props->model_type = model_type == MODEL_F32    ? DT_F32
                            : model_type == MODEL_NONE ? DT_NONE
                                                       : props->half;
    props->keep_norm_f32 = resolve_switch(&r, "keep_batchnorm_fp32", s->keep_norm_f32,
                                          amp ? &amp->keep_batchnorm_fp32 : NULL,
                                          (s->unset & UNSET_KEEP_NORM) != 0, props->keep_norm_f32);
    props->master_weights =
        resolve_switch(&r, "master_weights", s->master_weights, amp ? &amp->master_weights : NULL,
                       (s->unset & UNSET_MASTER) != 0, props->master_weights);
    resolve_loss_scale(&r);
    resolve_scalers(&r);
}

/* --- --print-properties --- */

static const char *tristate_text(Tristate t)
{
    return t == ON ? "true" : t == OFF ? "false" : "unset";
}

static const char *type_or_unset(DType type)
{
    return type == DT_NONE ? "unset" : dtype_info[type].name;
}

static void print_list(Out *o, const Properties *props)
{
    out_line(o, "  half                = %s", dtype_info[props->half].name);
    out_line(o, "  cast_model_type     = %s", type_or_unset(props->model_type));
    out_line(o, "  casts by policy     = %s", props->cast_by_policy ? "true" : "false");
    out_line(o, "  keep_batchnorm_fp32 = %s", tristate_text(props->keep_norm_f32));
    out_line(o, "  master_weights      = %s", tristate_text(props->master_weights));
    out_line(o, "  loss_scale          = %s",
             props->dynamic_scale ? "dynamic" : double_text(o->arena, props->static_scale));
    out_line(o, "  policy              = %s", props->torch_policy ? "torch" : "apex");
    out_line(o, "  rounding            = %s", props->strict ? "strict" : "fused");
}

void print_properties(Out *o, Unit *u)
{
    const Properties *props = &u->program->props;
    const LevelInfo *level = &level_info[props->level];
    Properties defaults = {.half = u->settings->cuda ? DT_F16 : DT_BF16};
    set_defaults(&defaults, level);
    out_line(o, "level %s: %s", level->name, level->sentence);
    out_line(o, "defaults of this level:");
    print_list(o, &defaults);
    out_line(o, "after overrides:");
    print_list(o, props);
}
