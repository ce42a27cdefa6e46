/* The fields of declarations that IR text writes as `key=value` or as a bare `flag`: one table a
 * struct, walked by the printer and by the parser, so that the two cannot disagree.
 */
#ifndef AMPC_IR_TEXT_FIELDS_H
#define AMPC_IR_TEXT_FIELDS_H
#include "ir/program.h"
#include <stddef.h>

typedef enum FieldKind {
    FIELD_FLAG,   /* int: the bare key when it is not 0 */
    FIELD_INT,    /* int */
    FIELD_LONG,   /* int64_t */
    FIELD_REAL,   /* double */
    FIELD_WORD,   /* Str; NULL: absent */
    FIELD_SCALAR, /* Scalar *; NULL: absent */
    FIELD_DTYPE,  /* DType; DT_NONE and DT_FLOAT: absent */
    FIELD_CHOICE  /* int or enum: index into `choices`, "apex|torch" */
} FieldKind;

typedef struct TextField {
    const char *key;
    FieldKind kind;
    size_t offset;
    double absent; /* the value that is not written */
    const char *choices;
} TextField;

/* Each ends with a NULL key. */
extern const TextField property_fields[], option_fields[], instance_fields[], param_fields[],
    dataset_fields[], scaler_fields[], optimizer_fields[], schedule_fields[], entry_fields[],
    input_fields[];

void fields_clear(const TextField *table, void *object); /* every field gets its absent value */
/* Index of the choice with this spelling, -1 if there is none; spelling of the n-th choice. */
int choice_find(const char *choices, const char *spelling);
const char *choice_text(Arena *arena, const char *choices, int n);
extern const char stage_choices[], init_choices[], region_choices[], dataset_choices[],
    entry_choices[], option_choices[];
#endif
