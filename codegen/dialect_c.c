/* C11: storage types, and the functions of rt_half.h that bring halves to float and back. */
#include "codegen/dialect.h"

#define SAME "$1"

const Dialect dialect_c = {
    .name = "c",
    .leaf = "RT_LEAF void",
    .function = "static void",
    .restrict_kw = "restrict",
    .row_loop = "for (int64_t $1 = lo; $1 < hi; $1++) {",
    .sweep_loop = "for (int64_t $1 = $2; $1 < $3; $1++) {",
    .launch = "RT_FOR(lo, hi, $1, $2, $3(lo, hi, $4));",
    .launch_one = "$3($4);",
    .type =
        {
            [DT_FLOAT] = {"float", "float", SAME, SAME, SAME},
            [DT_F32] = {"float", "float", SAME, SAME, SAME},
            [DT_F16] = {"uint16_t", "float", "rt_f32_from_f16($1)", "rt_f16_from_f32($1)",
                        "rt_round_f16($1)"},
            [DT_BF16] = {"uint16_t", "float", "rt_f32_from_bf16($1)", "rt_bf16_from_f32($1)",
                         "rt_round_bf16($1)"},
            [DT_I8] = {"int8_t", "int32_t", SAME, "(int8_t)$1", "(int8_t)$1"},
            [DT_U8] = {"uint8_t", "int32_t", SAME, "(uint8_t)$1", "(uint8_t)$1"},
            [DT_I16] = {"int16_t", "int32_t", SAME, "(int16_t)$1", "(int16_t)$1"},
            [DT_I32] = {"int32_t", "int32_t", SAME, SAME, SAME},
            [DT_I64] = {"int64_t", "int64_t", SAME, SAME, SAME},
            [DT_BOOL] = {"uint8_t", "int32_t", SAME, "(uint8_t)$1", "$1 != 0"},
        },
};
