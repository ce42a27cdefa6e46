/* Groups of nodes that become one kernel, and what fuse.c and lower.c share. */
#ifndef AMPC_PASSES_FUSE_H
#define AMPC_PASSES_FUSE_H
#include "passes/index.h"
#include "passes/plan.h"
#include "support/map.h"

typedef enum GroupKind {
    GROUP_ELEMENTS, /* element-wise; becomes ROWS when a reduction over its last loops joins */
    GROUP_ROWS,
    GROUP_COLUMNS,
    GROUP_PRODUCT,
    GROUP_SCATTER,
    GROUP_UPDATE
} GroupKind;

/* Where a member lives: at every element of the domain, or once a row (ROWS) or column
 * (COLUMNS). */
typedef enum Site { SITE_NONE, SITE_FULL, SITE_POINT } Site;

typedef struct Output { /* a value that the group writes */
    Node *node;
    Buffer *buffer;
    Site site;
} Output;

typedef struct Group {
    GroupKind kind;
    int order; /* groups run in this order */
    int loops;
    const Dim *extent[2 * MAX_RANK];
    int part[2 * MAX_RANK];           /* as in Loop */
    int full[MAX_RANK], full_count;   /* loops of a full member, in order */
    int point[MAX_RANK], point_count; /* and of a point; -1: there are none */
    Node *anchor;                     /* PRODUCT, SCATTER: the node; UPDATE: the first */
    Vec(Node *) members;
    Vec(Output) outputs;
} Group;

typedef struct Made { /* a version of a parameter */
    int version, order;
    struct Made *next;
} Made;

typedef struct Fuse {
    Unit *u;
    Program *program;
    Entry *entry;
    EntryPlan *plan;
    int segment;
    Graph *graph;
    Vec(Group *) groups;
    Vec(Node *) floating;
    int *last_use;             /* by node id: the last node that uses it */
    unsigned char *site;       /* Site by node id */
    int *sweep;                /* lower: first phase that can compute a value, by node id */
    struct Memo **memo;        /* lower: values made, by node id */
    const Group **lowered_for; /* the group that the two are for */
    Made **made;               /* by parameter: the versions that exist, newest first */
    Buffer **param_buffer, **gradient_buffer; /* by parameter */
    Vec(Buffer *) given;                      /* inputs, options and scales */
    Names *names;                             /* of this entry's buffers: names that are taken */
    Names *functions;                         /* names of kernels that are taken */
    Names *signatures;                        /* texts of kernels that exist */
    Map *shared;                              /* and the kernels */
} Fuse;

static inline IndexMaker index_maker(Fuse *f, const Group *g)
{
    IndexMaker m = {.types = &f->program->types, .arena = f->u->scratch, .loops = g->loops};
    return m;
}

/* The index of a member or operand of this type at `site`; 0 when the shape does not fit. */
int group_index(IndexMaker *m, const Group *g, const Type *type, Site site, Index *out);
/* May group g load the value of n from memory? */
int is_loaded(const Group *g, const Node *n);
int is_memory(const Node *n); /* INPUT, OPTION, READ, SCALE: in memory from the start */
/* Matrices of operand k of a product; 0 when its strides do not fit. */
int product_operand(Fuse *f, const Node *product, int k, Product *out, const Node **base);

Buffer *source_buffer(Fuse *f, const Node *n);

/* Lowers a group that has outputs to the kernel of the launch, and fills in the launch. */
void lower_group(Fuse *f, Group *g, Launch *launch);
const char *value_name(Fuse *f, const Node *n);
Str fresh_name(Fuse *f, Names *taken, const char *wanted); /* an identifier that is not taken */
int is_reduction(const Node *n);
#endif
