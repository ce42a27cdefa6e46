/* A compilation, and the passes that run over it. */
#ifndef AMPC_PASSES_PASS_H
#define AMPC_PASSES_PASS_H
#include "ir/program.h"

enum { UNSET_KEEP_NORM = 1, UNSET_MASTER = 2, UNSET_MODEL_TYPE = 4 };

/* What the caller asked for; the command line's spellings are in api/options.def. */
typedef struct Settings {
    int level;  /* -1: from amp { }, else O1 */
    DType half; /* DT_NONE: auto */
    int half_given;
    int torch_policy, policy_given;
    int strict, rounding_given;
    int cuda;                               /* --target=cuda */
    Tristate keep_norm_f32, master_weights; /* UNSET: not given */
    DType cast_model_type;                  /* DT_NONE: not given */
    unsigned unset;          /* UNSET_ bits: what amp { } says of these is taken back */
    const char *loss_scale;  /* "dynamic", a number, or NULL */
    const char *scaler_mode; /* NULL: ampc */
    int verify;              /* run ir/verify.c after every pass */
    int time_report;
    const char *command; /* options that made the output what it is: for its banner, comment-safe */
} Settings;

typedef struct Plan Plan; /* passes/plan.h: kernels, launches and buffers; what codegen prints */

typedef struct Unit {       /* one compilation; passed to every pass */
    Arena *arena, *scratch; /* until the unit ends; until the pass ends */
    Names *names;
    Diags *diags;
    const Settings *settings;
    Program *program;
    Plan *plan;
} Unit;

typedef struct PassInfo {
    const char *name, *summary;
    int rewrites;
    Stage needs, gives;
    void (*run)(Unit *u);
} PassInfo;
extern const PassInfo pass_info[];
extern const int pass_count;

/* Runs the passes named in `list` ("infer,cast"; NULL: all) up to and including `last` (NULL: the
 * end); stops at errors. Returns 0 when a name is unknown (an error is recorded). */
int passes_run(Unit *u, const char *list, const char *last);
void passes_list(Out *o); /* --list-passes */

#define PASS(name, kind, needs, gives, summary) void pass_##name(Unit *u);
#include "passes/passes.def"
#undef PASS
#endif
