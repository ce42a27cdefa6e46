/* The resolved properties of a compilation: defaults of the level, then amp { } of the file, then
 * what the caller asked for, in Apex's order of precedence. */
#ifndef AMPC_PASSES_LEVELS_H
#define AMPC_PASSES_LEVELS_H
#include "passes/pass.h"

typedef struct LevelInfo {
    const char *name, *sentence;
    int model_half; /* cast_model_type: 1 half, 0 f32, -1 none */
    int policy;     /* casts around functions */
    Tristate keep_norm, master;
    int dynamic;
} LevelInfo;
enum { LEVEL_COUNT = 4 };
extern const LevelInfo level_info[LEVEL_COUNT];

void levels_list(Out *o);               /* --list-levels */
void print_properties(Out *o, Unit *u); /* --print-properties, after resolve_properties */
/* Fills u->program->props; contradictions are errors with code LEVEL. */
void resolve_properties(Unit *u);
#endif
