/* amp { }: the properties of a file, read but not resolved; the command line and the level come
 * later. */
#include "frontend/elab_core.h"
#include <string.h>

static void take_word(Elab *e, const Arg *arg, const char *const *words, int n, AmpSetting *out)
{
    Str word = NULL;
    const Expr *x = arg->value;
    if (x->kind == EXPR_NAME)
        word = x->name;
    else if (x->kind == EXPR_SCALAR)
        word = intern(e->names, scalar_spelling(x->scalar));
    for (int i = 0; word && i < n; i++)
        if (!strcmp(words[i], word)) {
            *out = (AmpSetting){.word = word, .span = x->span};
            return;
        }
    const char *list = words[0];
    for (int i = 1; i < n; i++)
        list = arena_printf(e->arena, "%s%s%s", list, i == n - 1 ? " or " : ", ", words[i]);
    elab_error(e, CODE_VALUE, x->span, "'%s' is %s, found %s", arg->name, list, expr_text(e, x));
}

static void take_scale(Elab *e, const Arg *arg, AmpBlock *out)
{
    const Expr *x = arg->value;
    double scale;
    if (x->kind == EXPR_NAME && !strcmp(x->name, "dynamic")) {
        out->loss_scale = (AmpSetting){.word = x->name, .span = x->span};
    } else if (x->kind == EXPR_CALL && x->a->kind == EXPR_NAME &&
               (!strcmp(x->a->name, "dynamic") || !strcmp(x->a->name, "static"))) {
        out->loss_scale = (AmpSetting){.word = x->a->name, .span = x->span};
        out->scaler = scaler_default(e);
        read_loss_scale(e, x->a->name, x->a->span, &x->args, x->span, out->scaler);
    } else if (want_real(e, eval(e, x), x->span, "'loss_scale'", &scale)) {
        if (!(scale > 0 && scale <= 0x1p32))
            elab_error(e, CODE_VALUE, x->span, "a loss scale must be above 0 and at most 2^32");
        out->loss_scale = (AmpSetting){.number = scale, .span = x->span};
    }
}

static void read_property(Elab *e, const Arg *arg, AmpBlock *out)
{
    static const char *const levels[] = {"O0", "O1", "O2", "O3"};
    static const char *const halves[] = {"auto", "f16", "bf16"};
    static const char *const types[] = {"f32", "f16", "bf16", "half", "false"};
    static const char *const bools[] = {"true", "false"};
    static const char *const policies[] = {"apex", "torch"};
    static const char *const roundings[] = {"fused", "strict"};
    static const char *const later[] = {"reduce",
                                        "predivide",
                                        "zero",
                                        "sync_batch_norm",
                                        "max_skips",
                                        "static_skip",
                                        "patch_torch_functions"};
    const struct {
        const char *name;
        const char *const *words;
        int n;
        AmpSetting *setting;
    } known[] = {
        {"level", levels, 4, &out->level},
        {"half", halves, 3, &out->half},
        {"cast_model_type", types, 5, &out->cast_model_type},
        {"keep_batchnorm_fp32", bools, 2, &out->keep_batchnorm_fp32},
        {"master_weights", bools, 2, &out->master_weights},
        {"loss_scale", NULL, 0, &out->loss_scale},
        {"policy", policies, 2, &out->policy},
        {"rounding", roundings, 2, &out->rounding},
    };
    Candidates names = {0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        vec_push(e->arena, &names, known[i].name);
        if (strcmp(known[i].name, arg->name))
            continue;
        if (known[i].setting->span.file)
            elab_error(e, CODE_ATTRIBUTE, arg->span, "'%s' is set twice", arg->name);
        else if (known[i].words)
            take_word(e, arg, known[i].words, known[i].n, known[i].setting);
        else
            take_scale(e, arg, out);
        return;
    }
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        vec_push(e->arena, &names, later[i]);
        if (!strcmp(later[i], arg->name)) {
            unsupported(e, arg->name_span, arg->name);
            return;
        }
    }
    unknown_name(e, CODE_ATTRIBUTE, arg->name_span,
                 arena_printf(e->arena, "there is no property '%s'", arg->name), arg->name, &names);
}

AmpBlock *amp_block(Elab *e, const Item *item)
{
    AmpBlock *out = new (e->arena, AmpBlock);
    out->span = item->span;
    for (int i = 0; i < item->props.settings.n; i++)
        read_property(e, &item->props.settings.at[i], out);
    return out;
}
