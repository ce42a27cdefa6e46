/* What will be emitted, as data: buffers, kernels and launches of every entry. Pass fuse makes it,
 * memplan places the buffers, codegen prints it (and a JIT can walk it).
 */
#ifndef AMPC_PASSES_PLAN_H
#define AMPC_PASSES_PLAN_H
#include "passes/pass.h"

typedef struct Kernel Kernel; /* ir/kernel.h */

typedef enum BufferKind {
    BUFFER_ARENA,    /* an intermediate value, at an offset of the arena */
    BUFFER_INPUT,    /* a field of the batch: Entry.inputs[index] */
    BUFFER_PARAM,    /* a parameter as the graph reads it: its low-precision copy if there is one */
    BUFFER_GRADIENT, /* of a parameter: a range of its optimizer's flat gradients */
    BUFFER_SCALE,    /* one float: the loss scale of Program.scalers[index] that this step uses */
    BUFFER_OPTION,   /* one float: Program.options[index] */
    BUFFER_REPORT,   /* one float: Entry.reports[index] */
    BUFFER_RESULT    /* Entry.results[index] */
} BufferKind;

typedef struct Buffer {
    Str name; /* unique in its entry, valid as a C identifier: the local variable of the emitted step */
    BufferKind kind;
    int index;
    Param *param;
    const Type *type; /* type->dtype is the storage type */
    Node *node;       /* whose value it holds; NULL for gradients etc. without one */
    int first, last;  /* ARENA: launches of its first write and last read */
    int written;      /* by some kernel */
    int until; /* ARENA: as last, for buffers that replace it too; set, as what follows, by memplan */
    int64_t offset;      /* ARENA: bytes from the arena's start */
    int64_t bytes;       /* at the symbols' upper bounds */
    struct Buffer *over; /* ARENA: the buffer that it replaces in place */
} Buffer;

typedef enum LaunchKind {
    LAUNCH_KERNEL,  /* kernel over its rows, split over the threads */
    LAUNCH_PRODUCT, /* matrix product; kernel is its epilogue */
    LAUNCH_UPDATE   /* gradient norm, overflow test and update of one optimizer */
} LaunchKind;

/* The matrices of a product, in elements: element (i, j) of operand x in product b of the batch is
 * at offset + b * step + i * row + j * column of its buffer, transposes worked in. */
typedef struct Product {
    const Dim *batch, *m, *n, *k;
    struct {
        Buffer *buffer;
        const Dim *offset, *step, *row, *column;
    } operand[2];
} Product;

typedef struct Launch {
    LaunchKind kind;
    int segment; /* of the entry; launches of one segment are neighbours */
    Kernel *kernel;
    Buffer **buffer; /* in the order of the kernel's parameters, those in place included */
    int buffers;
    Str *stream;          /* names of the random streams, as many as the kernel takes */
    Product *product;     /* PRODUCT */
    Optimizer *optimizer; /* UPDATE */
    Node *update;         /* UPDATE: the first of its UPDATE nodes (scaler, clip) */
    Span span;
    int index;
} Launch;

typedef struct EntryPlan {
    Entry *entry;
    Vec(Buffer *) buffers;
    Vec(Launch *) launches;
    int64_t arena_bytes;
} EntryPlan;

struct Plan {
    Vec(Kernel *)
        kernels;      /* distinct functions, in order of first launch; equal launches share one */
    EntryPlan *entry; /* one an entry of the program, same order */
    int64_t arena_bytes; /* the largest of the entries */
};

/* As comments, below the IR text that --emit=ir:fuse prints. */
void plan_dump(Out *o, Program *p, const Plan *plan);
#endif
