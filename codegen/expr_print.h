/* Text of a kernel's expressions. Values that are used once are written where they are used while
 * the line stays short; others become `const float name = …;`. */
#ifndef AMPC_CODEGEN_EXPR_PRINT_H
#define AMPC_CODEGEN_EXPR_PRINT_H
#include "codegen/dialect.h"
#include "ir/kernel.h"

typedef struct KernelPrinter {
    Out *o;
    const Program *program;
    TypeTable *types;
    const Kernel *k;
    const Dialect *d;
    Names names;             /* identifiers of this function */
    const char **loop;       /* text of each loop's index */
    const char *const *sums; /* EPILOGUE, SCATTER: text of the sum, one entry */
    const char *sweep;       /* text of the flat index of the running sweep */
} KernelPrinter;

/* A line, broken at blanks so that it ends before column 100. */
void print_line(Out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* An identifier that the function does not use yet. */
Str local_name(KernelPrinter *p, const char *wanted);
const char *dim_factor(KernelPrinter *p, const Dim *d); /* in parentheses if it is a sum */
const char *dim_plain(KernelPrinter *p, const Dim *d);

/* Do these phases use the index of the loop? */
int reads_loop(const Kernel *k, int first, int last, int loop);
/* Decides which values get a name; before anything is printed. */
void name_lets(const Kernel *k);
/* Declares what has to be declared of this phase. `which`: only values that depend (1) or do not
 * depend (0) on the parts of `mask`; mask 0: all. */
void print_lets(KernelPrinter *p, int phase, int mask, int which);
const char *let_text(KernelPrinter *p, const Let *e);
void print_stores(KernelPrinter *p, int phase);
#endif
