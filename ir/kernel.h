/* A kernel: the loop-level description of one function of the emitted program. Loops over named values;
 * pass fuse lowers groups of nodes to it, a dialect prints it.
 *
 *     kernel rows p(out p: f32[N, 10], in x: f32[N, 10])
 *       rows i < N, sweep j < 10
 *       sweep     %0 = load x[10*i + j]        max %1 = %0
 *       sweep     %2 = exp(%0 - %1) kept       sum %3 = %2
 *       sweep     store p[10*i + j] = %2 / %3
 *
 * Kinds. FLAT: one loop over all elements. ROWS: rows (split over threads) and sweeps over the elements of
 * a row, with per-row values between them. COLUMNS: sums, maxima over rows, for each column; split over
 * blocks of columns. EPILOGUE: what happens to the sums of a matrix product, a piece of a row at a time.
 * SCATTER: rows of one buffer are added to the rows of another that an index names.
 *
 * Order of sums (CONTRACTS C1.5). Innermost axis: chunks of 4096; in a chunk lane j of 32 starts at 0 and
 * adds elements j, j+32, …, as many as there are; the lanes are folded 16, 8, 4, 2, 1 (lane l += lane
 * l + 16 …); the chunks' sums are added in order to 0. Short rows are the same: lanes without elements stay 0.
 * Columns: chunks of 128 rows, each added in order to 0; the chunks' sums are added in order to 0. Several
 * neighbouring axes count as one. Maxima and minima: in order, from the first infinity.
 */
#ifndef AMPC_IR_KERNEL_H
#define AMPC_IR_KERNEL_H
#include "ir/program.h"

typedef struct Kernel Kernel;
typedef struct Expr Expr;

enum { SUM_CHUNK = 4096, SUM_LANES = 32, COLUMN_CHUNK = 128, COLUMN_BLOCK = 64, KEPT_MAX = 4096 };

typedef enum KernelKind {
    KERNEL_FLAT,
    KERNEL_ROWS,
    KERNEL_COLUMNS,
    KERNEL_EPILOGUE,
    KERNEL_SCATTER
} KernelKind;

/* A loop of the domain. The first `outer` of a kernel are its rows, flattened to one index. */
typedef struct Loop {
    Str name;
    const Dim *extent;
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
} KernelParam;

typedef enum ExprKind {
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
} ExprKind;

typedef struct Reduce Reduce;
struct Expr {
    ExprKind kind;
    Op op;       /* ELEM */
    DType dtype; /* the type that the value has in the graph */
    DType round; /* rounded to this type after it is computed; DT_NONE: not */
    Expr **in;
    int nin;
    double value;          /* CONST */
    double p, q;           /* ELEM: attributes */
    int param;             /* LOAD */
    Affine at;             /* LOAD, INDEX, UNIFORM, NORMAL, GUARD */
    const Dim *scale;      /* LOAD: stride of the indirect row */
    const Dim *low, *high; /* GUARD; DIVN: low is the count */
    uint32_t stream;       /* UNIFORM, NORMAL */
    Reduce *reduce;        /* REDUCED */
    Str name;              /* the user's, may be NULL */
    int inner;             /* depends on the sweep's loops */
    int phase;             /* where it is computed: index in Kernel.phase */
    int kept;              /* the sweep puts it into an array for a later one */
    int uses;              /* by expressions, stores and reductions */
    int id;                /* order of making */
    Str text;              /* printer: the name, once it is declared */
    Expr *next;            /* next of the same phase */
};

struct Reduce {
    Op op; /* SUM MAXRED MINRED ARGMAX */
    Expr *value;
    Expr *result; /* the X_REDUCED */
    Str name;
    Reduce *next;
};

typedef struct Store {
    Expr *value;
    int param;
    Affine at;
    struct Store *next;
} Store;

/* A sweep over the inner loops, or a point: per-row values. Phase 0 is a point outside the rows. */
typedef struct Phase {
    int sweep;
    Expr *first, *last; /* in order */
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
    int loops, outer;
    KernelParam *param;
    int params;
    Phase *phase;
    int phases;
    const int *symbol; /* run-time dimensions that it needs, handed over after the buffers */
    int symbols;
    int uses_random; /* takes (uint64_t seed, uint64_t step) last */
    int64_t weight;  /* operations an element, roughly: for the grain of launches */
    /* SCATTER: param[0][index] += param[1] for every row; loops: index rows, columns */
    Expr *scatter_index, *scatter_value;
    const Dim *scatter_rows; /* rows of the result */
};

/* What must hold in any kernel; a text that names the first fault, or NULL. */
const char *kernel_check(const Kernel *k, TypeTable *t, Arena *arena);
void kernel_dump(Out *o, const Kernel *k, TypeTable *t);
/* Text that is equal for kernels that may share one function: everything but names. */
const char *kernel_signature(const Kernel *k, TypeTable *t, Arena *arena);

/* A valid identifier for C and C++ made of the user's name: dots become underscores, keywords and names of the
 * emitted program (codegen/names.def) get one more. */
Str c_name(Names *names, const char *name);
int is_reserved_name(const char *name);
#endif
