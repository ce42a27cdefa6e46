/* How a target spells what kernels say: data, no decisions. $1 … are the arguments of a
 * template. */
#ifndef AMPC_CODEGEN_DIALECT_H
#define AMPC_CODEGEN_DIALECT_H
#include "ir/type.h"

typedef struct Dialect {
    const char *name;
    const char *leaf;     /* opens a function over a range of rows: "RT_LEAF void" */
    const char *function; /* opens one that is called from other functions: "static void" */
    const char *restrict_kw;
    const char *row_loop;   /* $1 the index */
    const char *sweep_loop; /* $1 the index, $2 first, $3 end */
    const char *launch; /* $1 rows, $2 grain, $3 the function, $4 its arguments after the range */
    const char *launch_one; /* the same with one row */
    struct {
        const char *storage, *value; /* "uint16_t", "float" */
        const char *load, *store;    /* $1: "rt_f32_from_f16($1)" */
        const char *round;           /* $1: the nearest value of the type, as a value */
    } type[DTYPE_COUNT];
} Dialect;

extern const Dialect dialect_c;
#endif
