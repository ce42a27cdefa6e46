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

/* O1 casts around functions and keeps its weights in f32: properties of casted models do not go with it. */
static void refuse_at_o1(Unit *u, const char *property)
{
    error_at(u->diags, CODE_LEVEL, (Span){0, 0, 0},
             "%s cannot be set at O1, which casts around functions; use O2 for half weights",
             property);
}

static void set_scale(Unit *u, const char *text)
{
    Properties *props = &u->program->props;
    if (!strcmp(text, "dynamic")) {
        props->dynamic_scale = 1;
        return;
    }
    char *end;
    double scale = strtod(text, &end);
    int exponent;
    if (*end || !*text || !(scale > 0) || scale > 0x1p32) {
        error_at(u->diags, CODE_LEVEL, (Span){0, 0, 0},
                 "the loss scale must be 'dynamic' or a number above 0 and up to 2^32, found '%s'",
                 text);
        return;
    }
    if (frexp(scale, &exponent) != 0.5)
        warn_at(u->diags, CODE_SCALE_POWER, (Span){0, 0, 0},
                "a loss scale of %s is not a power of two, so scaling rounds", text);
    props->dynamic_scale = 0;
    props->static_scale = scale;
}

void print_properties(Out *o, Unit *u)
{
    out_line(o, "level %s", level_info[u->program->props.level].name);
}

void resolve_properties(Unit *u)
{
    const Settings *s = u->settings;
    Properties *props = &u->program->props;
    props->level = s->level >= 0 ? s->level : 1;
    props->half = s->half != DT_NONE ? s->half : s->cuda ? DT_F16 : DT_BF16;
    props->torch_policy = s->torch_policy;
    props->strict = s->strict;
    props->scaler_mode = intern(u->names, s->scaler_mode ? s->scaler_mode : "ampc");

    const LevelInfo *level = &level_info[props->level];
    props->cast_by_policy = level->policy;
    props->model_type = level->model_half == NONE ? DT_NONE
                        : level->model_half       ? props->half
                                                  : DT_F32;
    props->keep_norm_f32 = level->keep_norm;
    props->master_weights = level->master;
    props->dynamic_scale = level->dynamic && props->half == DT_F16;
    props->static_scale = 1;

    if (s->cast_model_type != DT_NONE) {
        if (level->policy && s->cast_model_type != DT_F32)
            refuse_at_o1(u, "cast_model_type");
        else if (props->level == 0 && s->cast_model_type != DT_F32)
            error_at(u->diags, CODE_LEVEL, (Span){0, 0, 0},
                     "O0 with cast_model_type = %s contradicts the level; use O3",
                     dtype_info[s->cast_model_type].name);
        else if (!level->policy)
            props->model_type = s->cast_model_type;
    }
    if (s->keep_norm_f32 != UNSET) {
        if (level->policy)
            refuse_at_o1(u, "keep_batchnorm_fp32");
        props->keep_norm_f32 = s->keep_norm_f32;
    }
    if (s->master_weights != UNSET) {
        if (level->policy)
            refuse_at_o1(u, "master_weights");
        props->master_weights = s->master_weights;
    }
    if (s->loss_scale)
        set_scale(u, s->loss_scale);
}

DType param_read_type(const Properties *props, const Param *param)
{
    if (param->type->dtype != DT_FLOAT)
        return param->type->dtype;
    if (props->model_type == DT_NONE || !is_half(props->model_type))
        return DT_F32;
    return param->is_norm && props->keep_norm_f32 == ON ? DT_F32 : props->model_type;
}
