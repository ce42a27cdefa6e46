/* What ampc knows about an op, built from ops.def: look-ups by name and by column. */
#ifndef AMPC_IR_OP_H
#define AMPC_IR_OP_H
#include "ir/type.h"

enum OpFlags {
    F_COMM = 1,
    F_BOOL_OUT = 2,
    F_INTS = 4,
    F_REALS = 8,
    F_LOGIC = 16,
    F_CHOICE = 32,
    F_INTERNAL = 64,
    F_GENERATOR = 128,
    F_VIEW = 256,
    F_EFFECT = 512,
    F_EXPAND = 1024,
    F_EARLY = 2048,
};

typedef enum Policy {
    POLICY_HALF,
    POLICY_FLOAT,
    POLICY_PROMOTE,
    POLICY_KEEP,
    POLICY_BANNED
} Policy;

typedef enum Op {
#define ELEM(id, ...) OP_##id,
#define OTHER(id, ...) OP_##id,
#include "ir/ops.def"
#undef ELEM
#undef OTHER
    OP_COUNT
} Op;

typedef enum AttrKind {
    ATTR_NONE,
    ATTR_INT,
    ATTR_REAL,
    ATTR_BOOL,
    ATTR_STR,
    ATTR_INTS,
    ATTR_DIMS,
    ATTR_DTYPE
} AttrKind;

typedef struct AttrSchema {
    const char *name;
    AttrKind kind;
    int optional;
    double fallback; /* of a real of an ELEM row */
} AttrSchema;

enum { MAX_ATTRS = 5 };

typedef struct OpInfo {
    const char *id, *spelling; /* "LEAKY_RELU", "leaky_relu" */
    int elementwise;
    int arity; /* -1: any number */
    Policy apex, torch;
    int flags;
    int attrs;
    AttrSchema attr[MAX_ATTRS];
    const char *value; /* the cell's text; NULL for OTHER rows */
    const char *prose;
} OpInfo;

const OpInfo *op_info(Op op);
int op_find(const char *spelling); /* -1 if there is none */
void ops_list(Out *o);             /* --list-ops */
static inline int op_is(Op op, int flag)
{
    return (op_info(op)->flags & flag) != 0;
}
#endif
