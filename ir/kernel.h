/* A kernel: the loop-level description of one function of the emitted program. Loops over named
 * values; pass fuse lowers groups of nodes to it, a dialect prints it.
 *
 *     kernel rows p(out p: f32[N, 10], in x: f32[N, 10])
 *       rows i < N, sweep j < 10
 *       sweep     %0 = load x[10*i + j]        max %1 = %0
 *       sweep     %2 = exp(%0 - %1) kept       sum %3 = %2
 *       sweep     store p[10*i + j] = %2 / %3
 *
 * Kinds. FLAT: one loop over all elements. ROWS: rows (split over threads) and sweeps over the
 * elements of a row, with per-row values between them. COLUMNS: sums, maxima over rows, for each
 * column; split over blocks of columns. EPILOGUE: what happens to the sums of a matrix product, a
 * piece of a row at a time. SCATTER: rows of one buffer are added to the rows of another that an
 * index names.
 *
 * Order of sums. Innermost axis: chunks of 4096; in a chunk lane j of 32 starts at
 * 0 and adds elements j, j+32, …, as many as there are; the lanes are folded 16, 8, 4, 2, 1 (lane l
 * += lane l + 16 …); the chunks' sums are added in order to 0. Short rows are the same: lanes
 * without elements stay 0. Columns: chunks of 128 rows, each added in order to 0; the chunks' sums
 * are added in order to 0. Several neighbouring axes count as one. Maxima and minima: in order,
 * from the first infinity.
 */
#ifndef AMPC_IR_KERNEL_H
#define AMPC_IR_KERNEL_H
#include "ir/program.h"

typedef struct Kernel Kernel;
typedef struct Let Let;

enum { SUM_CHUNK = 4096, SUM_LANES = 32, COLUMN_CHUNK = 128, COLUMN_BLOCK = 64, KEPT_MAX = 4096 };

typedef enum KernelKind {
    KERNEL_FLAT,
    KERNEL_ROWS,
    KERNEL_COLUMNS,
    KERNEL_EPILOGUE,
    KERNEL_SCATTER
} KernelKind;

/* A loop of the domain. Loops of one part are neighbours and are run by one flat index, from which
 * each is worked out where there are several. Parts by kind:
 *
 *     FLAT      0 elements (split over threads)
 *     ROWS      0 rows (split)                    1 elements of a row
 *     COLUMNS   0 blocks in front     1 rows that are reduced     2 columns (split)
 *     EPILOGUE  0 rows of the product 1 columns
 *     SCATTER   0 rows of the result (split)      1 indices       2 columns
 */
typedef struct Loop {
    const Dim *extent;
    int part;
} Loop;

/* offset + sum of stride[l] * loop l. Strides and offset are in elements. */
typedef struct Affine {
    const Dim *offset;
    const Dim **stride; /* one a loop; the zero Dim: independent of it */
} Affine;

/* A buffer that is handed to the function. */
typedef struct KernelParam {
    Str name;
    const Type *type;
    int written;
    int over; /* the parameter that replaces it in place, whose pointer serves both; -1: none */
} KernelParam;

typedef enum LetKind {
    X_CONST,   /* value */
    X_LOAD,    /* param at `at` (+ in[0] * scale: an indirect row) */
    X_ELEM,    /* op on in[] with attribute values p, q */
    X_CAST,    /* in[0] in type dtype */
    X_DIVN,    /* in[0] / (float)count */
    X_INDEX,   /* the integer `at` */
    X_UNIFORM, /* random number `at` of `stream` */
    X_NORMAL,
    X_SUMS,    /* EPILOGUE: the product's sum */
    X_REDUCED, /* the result of `reduce` */
    X_KEPT,    /* of in[0], which an earlier sweep put into a row-long array */
    X_GUARD    /* low <= at < high ? in[0] : in[1]; the one not chosen is not evaluated */
} LetKind;

typedef struct Reduce Reduce;
struct Let {
    LetKind kind;
    Op op;       /* ELEM */
    DType dtype; /* the type that the value has in the graph */
    DType round; /* rounded to this type after it is computed; DT_NONE: not */
    Let **in;
    int nin;
    double value;     /* CONST */
    double p, q;      /* ELEM: attributes */
    int param;        /* LOAD */
    Affine at;        /* LOAD, INDEX, UNIFORM, NORMAL, GUARD */
    const Dim *scale; /* LOAD: stride of the indirect row */
    const Dim *low,
        *high;      /* GUARD; DIVN: low is the count; LOAD: rows from high on, or none, read as 0 */
    int stream;     /* UNIFORM, NORMAL: number of the argument */
    Reduce *reduce; /* REDUCED */
    Str name;       /* the user's, may be NULL */
    int depends;    /* on loops: a bit for each part */
    int phase;      /* where it is computed: index in Kernel.phase */
    int kept;       /* the sweep puts it into an array for a later one */
    int guarded;    /* operand of a GUARD: evaluated there only */
    int uses;       /* by expressions, stores and reductions */
    int id;         /* order of making */
    int named;      /* printer: declared, not pasted */
    Str text, array; /* printer: its name once declared, that of the array that keeps it */
    Let *next;       /* next of the same phase */
};

struct Reduce {
    Op op; /* SUM MAXRED MINRED ARGMAX */
    Let *value;
    Let *result; /* the X_REDUCED */
    Str name;
    struct Reduce *next;
};

typedef struct Store {
    Let *value;
    int param;
    Affine at;
    struct Store *next;
} Store;

/* A sweep over the inner loops, or a point: values between sweeps. Phase 0 is outside of all loops,
 * phase 1 in a row before its first sweep, then sweeps (2, 4, …) and points (3, 5, …) take turns.
 * FLAT and EPILOGUE have one sweep; COLUMNS and SCATTER one, and in phase 3 what becomes of each
 * column's results. */
typedef struct Phase {
    Let *first, *last; /* in order */
    Reduce *reduces;
    Store *stores;
} Phase;

struct Kernel {
    KernelKind kind;
    Str name;         /* of the function */
    Entry *entry;     /* of the first launch */
    const Span *span; /* the user's text that it computes, in order, distinct lines */
    int spans;
    int strict;
    Loop *loop;
    int loops;
    KernelParam *param;
    int params;
    Phase *phase;
    int phases;
    const int *symbol; /* run-time dimensions that it needs, handed over after the buffers */
    int symbols;
    int streams; /* random streams: takes (uint64_t seed, uint32_t step, uint32_t stream…) last */
    int64_t weight; /* operations an element, roughly: for the grain of launches */
    Let *scatter_row, *scatter_value; /* SCATTER: what is added, and to which row */
    int planned;                      /* memplan: some launch has it as it is */
    Kernel *variant;                  /* memplan: the same with other parameters in place */
};

/* What must hold in any kernel; a text that names the first fault, or NULL. */
const char *kernel_check(const Kernel *k, TypeTable *t, Arena *arena);
/* May `out` lie in the bytes of `in`: is each element of `in` loaded only where the element of
 * `out` with the same number is worked out, and before that one is stored? The two must have one
 * type and size. */
int kernel_may_overwrite(const Kernel *k, int in, int out);
void kernel_dump(Out *o, const Kernel *k, TypeTable *t);
/* Text that is equal for kernels that may share one function: everything but names. */
const char *kernel_signature(const Kernel *k, TypeTable *t, Arena *arena);

/* A valid identifier for C and C++ made of the user's name: dots become underscores, keywords and
 * names of the emitted program (codegen/names.def) get one more. */
Str c_name(Names *names, const char *name);
Str c_option(Names *names, const char *name); /* as a member of the structs of options */
Str c_report(Names *names, const char *name); /* as a member of the structs of reports */
int is_reserved_name(const char *name);       /* does c_name change it? */
#endif
