#include "ir/text_fields.h"
#include "ir/text.h"
#include <math.h>
#include <string.h>

const char stage_choices[] = "parsed|typed|casted|differentiated|cleaned|mastered|stepped|expanded";
const char init_choices[] = "zeros|ones|constant|uniform|normal|orthogonal|eye";
const char region_choices[] = "none|f32|f16|bf16|off";
const char dataset_choices[] = "csv|idx|npy|memory";
const char entry_choices[] = "train|eval|infer";
const char option_choices[] = "int|real|bool|string";

#define END                                                                                        \
    {                                                                                              \
        .key = NULL                                                                                \
    }
#define FIELD(type, field, key_, kind_, absent_)                                                   \
    {                                                                                              \
        .key = (key_), .kind = FIELD_##kind_, .offset = offsetof(type, field), .absent = (absent_) \
    }
#define CHOICE(type, field, key_, absent_, choices_)                                               \
    {                                                                                              \
        .key = (key_), .kind = FIELD_CHOICE, .offset = offsetof(type, field), .absent = (absent_), \
        .choices = (choices_)                                                                      \
    }

/* clang-format off */
const TextField property_fields[] = {
    CHOICE(Properties, level, "level", -1, "O0|O1|O2|O3"),
    FIELD(Properties, half, "half", DTYPE, DT_BF16),
    CHOICE(Properties, torch_policy, "policy", -1, "apex|torch"),
    CHOICE(Properties, strict, "rounding", -1, "fused|strict"),
    FIELD(Properties, cast_by_policy, "casts", FLAG, 0),
    FIELD(Properties, model_type, "model", DTYPE, DT_NONE),
    CHOICE(Properties, keep_norm_f32, "keep_norm", UNSET, "off|on"),
    CHOICE(Properties, master_weights, "masters", UNSET, "off|on"),
    FIELD(Properties, dynamic_scale, "dynamic", FLAG, 0),
    FIELD(Properties, static_scale, "scale", REAL, 1),
    FIELD(Properties, scaler_mode, "scaler", WORD, 0),
    END};
const TextField option_fields[] = {
    FIELD(Option, doc, "doc", WORD, 0),
    END};
const TextField instance_fields[] = {
    FIELD(Instance, weights, "weights", WORD, 0),
    FIELD(Instance, frozen, "frozen", FLAG, 0),
    END};
const TextField param_fields[] = {
    FIELD(Param, frozen, "frozen", FLAG, 0),
    FIELD(Param, is_norm, "norm", FLAG, 0),
    FIELD(Param, group, "group", INT, -1),
    FIELD(Param, has_gradient, "gradient", FLAG, 0),
    FIELD(Param, versions, "versions", INT, 0),
    FIELD(Param, master, "master", DTYPE, DT_FLOAT),
    FIELD(Param, copy, "copy", DTYPE, DT_NONE),
    END};
const TextField dataset_fields[] = {
    FIELD(Dataset, path, "path", SCALAR, 0),
    FIELD(Dataset, header, "header", SCALAR, 0),
    FIELD(Dataset, seed, "seed", LONG, 0),
    END};
const TextField scaler_fields[] = {
    FIELD(Scaler, is_default, "default", FLAG, 0),
    FIELD(Scaler, dynamic, "dynamic", FLAG, 0),
    FIELD(Scaler, mode, "mode", WORD, 0),
    FIELD(Scaler, init, "init", REAL, 1),
    FIELD(Scaler, factor, "factor", REAL, 0),
    FIELD(Scaler, low, "low", REAL, 0),
    FIELD(Scaler, high, "high", REAL, 0),
    FIELD(Scaler, window, "window", LONG, 0),
    FIELD(Scaler, hysteresis, "hysteresis", LONG, 0),
    END};
const TextField optimizer_fields[] = {
    FIELD(Optimizer, clip_kind, "clip", WORD, 0),
    FIELD(Optimizer, clip_limit, "limit", REAL, 0),
    FIELD(Optimizer, checks, "checks", FLAG, 0),
    END};
const TextField schedule_fields[] = {
    FIELD(Schedule, peak, "peak", SCALAR, 0),
    FIELD(Schedule, warmup, "warmup", SCALAR, 0),
    FIELD(Schedule, floor, "floor", SCALAR, 0),
    FIELD(Schedule, every, "every", SCALAR, 0),
    FIELD(Schedule, factor, "factor", SCALAR, 0),
    FIELD(Schedule, total, "total", SCALAR, 0),
    END};
const TextField entry_fields[] = {
    FIELD(Entry, doc, "doc", WORD, 0),
    FIELD(Entry, split, "split", INT, 0),
    FIELD(Entry, batch, "batch", LONG, 0),
    FIELD(Entry, epochs, "epochs", SCALAR, 0),
    FIELD(Entry, steps, "steps", SCALAR, 0),
    FIELD(Entry, seed, "seed", SCALAR, 0),
    FIELD(Entry, shuffle, "shuffle", FLAG, 0),
    FIELD(Entry, drop_last, "drop_last", FLAG, 0),
    FIELD(Entry, checkpoint, "checkpoint", WORD, 0),
    FIELD(Entry, checkpoint_every, "every", SCALAR, 0),
    FIELD(Entry, checkpoint_keep, "keep", SCALAR, 0),
    FIELD(Entry, checkpoint_in_epochs, "in_epochs", FLAG, 0),
    END};
const TextField input_fields[] = {
    FIELD(EntryInput, field, "field", INT, -1),
    FIELD(EntryInput, classes, "classes", LONG, 0),
    END};
/* clang-format on */

static void store(const TextField *f, void *object, double value)
{
    char *at = (char *)object + f->offset;
    int small = (int)value;
    int64_t large = (int64_t)value;
    switch (f->kind) {
    case FIELD_FLAG:
    case FIELD_INT:
    case FIELD_DTYPE:
    case FIELD_CHOICE:
        memcpy(at, &small, sizeof small);
        break;
    case FIELD_LONG:
        memcpy(at, &large, sizeof large);
        break;
    case FIELD_REAL:
        memcpy(at, &value, sizeof value);
        break;
    case FIELD_WORD:
    case FIELD_SCALAR:
        memset(at, 0, sizeof(void *));
        break;
    }
}

void fields_clear(const TextField *table, void *object)
{
    for (const TextField *f = table; f->key; f++)
        store(f, object, f->absent);
}

int choice_find(const char *choices, const char *spelling)
{
    size_t n = strlen(spelling);
    for (int i = 0; *choices; i++) {
        size_t length = strcspn(choices, "|");
        if (length == n && !memcmp(choices, spelling, n))
            return i;
        choices += length + (choices[length] == '|');
    }
    return -1;
}

const char *choice_text(Arena *arena, const char *choices, int n)
{
    while (n-- > 0 && *choices) {
        choices += strcspn(choices, "|");
        choices += *choices == '|';
    }
    return arena_copy(arena, choices, strcspn(choices, "|"));
}
