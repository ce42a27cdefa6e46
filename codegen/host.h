/* What the files host_*.c share: the program that is being printed, and where its weights lie.
 *
 *     host_state.c   options, the state, parameters, files that hold them
 *     host_optim.c   one sweep and one update an optimizer
 *     host_step.c    the steps: launches in order
 *     host_data.c    data sets
 *     host_main.c    the loops over the data and main
 *     host_lib.c     the functions of a library
 */
#ifndef AMPC_CODEGEN_HOST_H
#define AMPC_CODEGEN_HOST_H
#include "codegen/dialect.h"
#include "ir/optim.h"
#include "passes/plan.h"

/* Parameters whose values lie in the same flat buffers: same owner, same types. */
typedef struct Pool {
    Optimizer *optimizer;         /* NULL: nothing steps on them */
    DType weight, copy, gradient; /* DT_NONE: there is none */
    Str suffix;                   /* of the buffers' names in the state: "", or "_f32" */
    Str table, count, elements;   /* "opt_param", "OPT_PARAMS", "OPT_ELEMENTS" */
    Vec(Param *) params;          /* in the order of the buffers: by group, then as declared */
    int64_t size;                 /* elements, padding included */
} Pool;

typedef struct ParamPlace {
    Pool *pool;
    int64_t offset, count;
    Str constant; /* "NET_FC1_WEIGHT": the offset's name */
} ParamPlace;

typedef struct Member {
    const void *object;
    Str name;
} Member;

typedef struct Section {
    const char *title;
    int line;
} Section;

typedef struct Host {
    Unit *u;
    Program *program;
    Plan *plan;
    TypeTable *types;
    Arena *arena;
    const Dialect *dialect;
    Out *o;
    Str prefix; /* of a library's external names; NULL: a program */
    Vec(Pool *) pools;
    ParamPlace *place; /* by Param.index */
    Vec(Member) members;
    Vec(Str) columns; /* of the log */
    Vec(Section) sections;
} Host;

/* ---- the state's members ---- */
/* The member of an optimizer, scaler or entry in the state: its name, with a number when two would
 * be equal. */
Str member(Host *h, const void *object, Str name);
static inline Str scaler_member(Host *h, const Scaler *s)
{
    return member(h, s, s->name);
}
Str pool_member(Host *h, const Pool *pool); /* "opt", "fixed" */
int is_scaler_used(const Host *h, const Scaler *s);
int has_norm(const Host *h, const Optimizer *o);
int has_copies(const Host *h); /* are there low-precision copies of masters? */
int update_takes_scale(const Host *h, const Optimizer *o); /* do its gradients come scaled? */
int is_dataset_used(const Host *h, const Dataset *d);
Str part_name(Host *h, const Entry *e);             /* of the rows that an entry runs over */
int text_names(const char *text, const char *name); /* does C text use a name? */
/* Ends a function whose body began at `from`: parameters that it does not use are named in a cast
 * to void. */
void end_function(Host *h, size_t from, const char *const *parameters, int count);

/* Begins a section of the file. */
void section(Host *h, const char *title);
/* The user's lines at a span as comments, with their place at the right. */
void source_comment(Host *h, Span span);

/* ---- names and numbers ---- */
Str host_name(Host *h, const char *name);   /* valid in C */
Str option_name(Host *h, const char *name); /* the same, as a member of a struct */
Str report_name(Host *h, const char *name);
Str host_constant(Host *h, const char *name);   /* valid in C, in capitals */
const char *c_type(const Host *h, DType dtype); /* "uint16_t" */
const char *convert(Host *h, const char *template_text, const char *value); /* a dialect's cell */
const char *string_c(Host *h, Str text);                                    /* "\"…\"" */
const char *scalar_c(Host *h, const Scalar *s);    /* C expression; options are s->option.NAME */
const char *real_c(Host *h, const Scalar *s);      /* the same as a double */
const char *int_c(Host *h, const Scalar *s);       /* as an int64_t */
int is_number(const Scalar *s, double *value);     /* is it known now? */
const char *shape_text(Host *h, const Type *type); /* "[N, 64]" */

/* ---- the program ---- */
int is_checked(const Host *h, const Optimizer *o); /* can its update be skipped? */
Entry *first_train(const Host *h);
int is_emitted(const Host *h, const Entry *e); /* a program runs only what has a dataset */
const char *program_stem(const Host *h);       /* "digits" of "path/digits.amp" */
static inline EntryPlan *plan_of(const Host *h, const Entry *e)
{
    return &h->plan->entry[e->index];
}

void make_pools(Host *h);
void name_parameters(Host *h);
void print_options(Host *h);
void print_state(Host *h);
void print_parameters(Host *h);
void print_state_functions(Host *h);
void print_optimizers(Host *h);
void print_steps(Host *h);
void print_data(Host *h);
void print_main(Host *h);
void print_library(Host *h);
void print_header(Host *h, Out *o);
void print_identity(Host *h); /* which program a checkpoint belongs to */

/* Symbols (run-time dimensions) of an entry's inputs, in order of appearance. */
int entry_symbols(const Host *h, const Entry *e, int *symbols, int room);
/* "int64_t N, const float *x, const int32_t *y": what a step takes after the state. */
const char *step_parameters(Host *h, const Entry *e);
DType input_dtype(const EntryInput *in); /* of the data that the caller hands in */
/* The name of input i in the step. */
Str input_name(Host *h, const Entry *e, int i);
Str result_name(Host *h, const Entry *e, int i);
#endif
