/* The graph: nodes in program order, which is a topological order. `build` is the only way to make
 * one: it types the node by its row, tries the exact identities of fold.c, looks for an equal node,
 * appends.
 *
 * The graph under construction is thread-local, set by graph_open() and cleared by graph_close(),
 * so that op constructors read like formulas: MUL(g, SUB(K(1), MUL(r, r))).
 */
#ifndef AMPC_IR_GRAPH_H
#define AMPC_IR_GRAPH_H
#include "ir/op.h"
#include "support/diag.h"

typedef struct Node Node;
typedef struct Param Param;
typedef struct Program Program;
struct Group; /* passes/fuse.h */

typedef struct Attr {
    AttrKind kind; /* ATTR_NONE: an optional one that is absent */
    union {
        int64_t i; /* also BOOL */
        double r;
        Str s;
        DType dtype;
        struct {
            int n;
            const int64_t *at;
        } ints;
        struct {
            int n;
            const Dim **at;
        } dims;
    };
} Attr;

/* The attributes of a node, in the order of its row. Interned: equal attributes are one pointer. */
typedef struct Attrs {
    int n;
    Attr at[MAX_ATTRS];
    struct Attrs *next;
    uint32_t hash;
} Attrs;

/* Where a value stands: the instance whose call made it, and the precision region around it. */
typedef enum Region { REGION_NONE, REGION_F32, REGION_F16, REGION_BF16, REGION_OFF } Region;

struct Node {
    Op op;
    const Type *type; /* NULL: wrong input, reported already; every rule accepts it silently */
    Node **in;        /* operands, in the order of the row */
    int nin;
    const Attrs *attrs; /* NULL: the row has none */
    Param *param;       /* READ, UPDATE, GRADIENT, STORE */
    int version;        /* READ: of the parameter; UPDATE and STORE: the version they make */
    Str name;           /* what the user called it; NULL: no name of its own */
    Span span;
    unsigned char
        in_instance; /* made inside a call of an instance (not in the body of a train or eval) */
    unsigned char region; /* Region */
    unsigned char pinned; /* the user fixed the type: f32 and friends, not float */
    unsigned char mark;   /* free for the pass that runs; zero before and after */
    int id;               /* position in the graph, from 0 */
    Node *next;
    Node *chain;         /* next in the same bucket of the table of equal nodes */
    struct Node *mapped; /* rewrite: the node of the new graph */
    struct Group *group; /* fuse */
    int stored; /* fuse: the value is written to memory (eval rounds it there in fused mode) */
    int buffer; /* memplan: index of its buffer, from 1; 0: none */
};

/* A segment of an entry: one DAG. */
typedef struct Graph {
    Program *program;
    Arena *arena;
    Node *first, *last;
    int count;
    int64_t times; /* `accumulate K`: how often it runs in a step; 1 elsewhere */
    Node **table;  /* equal-node table */
    int table_size;
} Graph;

Graph *graph_make(Program *program);
void graph_open(Graph *g); /* constructors and build append to g until graph_close */
void graph_close(void);
Graph *graph_now(void);

/* What nodes made from now on carry; returns the old values' holder so that scopes nest. */
typedef struct Context {
    Span span;
    Str name;
    unsigned char in_instance, region;
} Context;
Context graph_context(Context fresh); /* sets, and gives back the former */

Node *build(Op op, Node *const *in, int nin, const Attrs *attrs);
Node *build_source(Op op, const Type *type, const Attrs *attrs, Param *param,
                   int version); /* INPUT READ … */
/* Appends the node as it is, neither folded nor shared: what IR text says stays. */
Node *graph_append(const Node *fresh);
Node *error_node(void);
void graph_sweep(Graph *g); /* drops what no effect needs */

/* Attributes: values in the order of the row. */
const Attrs *attrs_make(Op op, const Attr *values, int n);
static inline Attr attr_int(int64_t i)
{
    Attr a = {.kind = ATTR_INT, .i = i};
    return a;
}
static inline Attr attr_bool(int b)
{
    Attr a = {.kind = ATTR_BOOL, .i = b};
    return a;
}
static inline Attr attr_real(double r)
{
    Attr a = {.kind = ATTR_REAL, .r = r};
    return a;
}
static inline Attr attr_str(Str s)
{
    Attr a = {.kind = ATTR_STR, .s = s};
    return a;
}
static inline Attr attr_dtype(DType d)
{
    Attr a = {.kind = ATTR_DTYPE, .dtype = d};
    return a;
}
static inline Attr attr_none(void)
{
    Attr a = {.kind = ATTR_NONE, .i = 0};
    return a;
}
Attr attr_ints(const int64_t *at, int n);    /* copied */
Attr attr_dims(const Dim *const *at, int n); /* copied */

/* The attribute called `name`; asserts that the row has it. */
const Attr *attr_of(const Node *n, const char *name);
static inline int64_t attr_i(const Node *n, const char *name)
{
    return attr_of(n, name)->i;
}
static inline double attr_r(const Node *n, const char *name)
{
    return attr_of(n, name)->r;
}
static inline Str attr_s(const Node *n, const char *name)
{
    return attr_of(n, name)->s;
}

/* Constructors for passes, elaborator and gradient cells. */
Node *build1(Op op, Node *a);
Node *build2(Op op, Node *a, Node *b);
Node *build3(Op op, Node *a, Node *b, Node *c);
Node *constant(double value, DType dtype);
Node *cast_to(Node *x, DType to);
Node *
cast_because(Node *x, DType to,
             const char *why); /* inserted by a pass: why = "policy", "boundary", …; named as x */
Node *reduce(Op op, Node *x, const int64_t *axes, int n, int keep);
Node *sum_to(Node *x, const int64_t *axes, int n, int keep,
             DType to); /* a SUM with a result type */
Node *divide_by_count(Node *x, const Dim *const *dims, int n);
Node *matmul(Node *a, Node *b, int ta, int tb);
Node *reshape(Node *x, const Dim *const *dims, int rank);
Node *permute(Node *x, const int64_t *axes, int n);
Node *slice(Node *x, int axis, const Dim *begin, const Dim *end);
Node *expand_to(Node *x, const Dim *const *dims, int rank);
Node *iota(const Dim *const *dims, int rank, int axis);
Node *softmax(Op op, Node *x, int axis);
Node *unbroadcast(Node *g,
                  const Type *type); /* sums g to the shape of type: the gradient of broadcasting */

/* Rewriting passes build a new graph: f gets each old node with its new operands and returns the
 * new node, or NULL to copy it. Names, spans and contexts are copied here. Unread nodes without
 * effect are dropped. */
typedef struct Rewrite {
    Program *program;
    void *data;
} Rewrite;
typedef Node *(*RewriteFn)(Rewrite *w, Node *old, Node **in);
Graph *rewrite(Graph *old, RewriteFn f, Rewrite *w);
Node *copy_node(Node *old, Node **in); /* the default: the same op on new operands, typed again */
#endif
