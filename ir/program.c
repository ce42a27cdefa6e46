#include "ir/program.h"

Program *program_make(Arena *arena, Names *names, Diags *diags)
{
    Program *p = new (arena, Program);
    p->arena = arena;
    p->names = names;
    p->diags = diags;
    types_init(&p->types, arena);
    return p;
}

Optimizer *program_optimizer(const Program *p, Str name)
{
    for (int i = 0; i < p->optimizers.n; i++)
        if (p->optimizers.at[i]->name == name)
            return p->optimizers.at[i];
    return NULL;
}

Scaler *program_scaler(const Program *p, Str name)
{
    for (int i = 0; i < p->scalers.n; i++)
        if (p->scalers.at[i]->name == name)
            return p->scalers.at[i];
    return NULL;
}

DType param_read_type(const Properties *props, const Param *param)
{
    if (param->type->dtype != DT_FLOAT)
        return param->type->dtype;
    if (props->model_type == DT_NONE || !is_half(props->model_type))
        return DT_F32;
    return param->is_norm && props->keep_norm_f32 == ON ? DT_F32 : props->model_type;
}
