/* Element types, dimensions and tensor types. Dimensions are polynomials with integer coefficients
 * in symbols whose values are known only at run time (the batch size N); types are a dtype and a
 * list of dimensions, row-major. Dimensions and types are interned in a TypeTable: equal means same
 * pointer.
 */
#ifndef AMPC_IR_TYPE_H
#define AMPC_IR_TYPE_H
#include "support/out.h"
#include "support/str.h"

typedef enum DType {
#define DTYPE(id, name, kind, bits, mant, exp, is_signed, st) DT_##id,
#include "ir/dtype.def"
#undef DTYPE
    DTYPE_COUNT,
    DT_NONE = DTYPE_COUNT
} DType;

typedef enum DKind { KIND_REAL, KIND_INT, KIND_BOOL } DKind;
typedef struct DTypeInfo {
    const char *name;
    DKind kind;
    int bits, mantissa, exponent, is_signed;
    const char *safetensors;
} DTypeInfo;
extern const DTypeInfo dtype_info[DTYPE_COUNT];

DType dtype_find(const char *name); /* DT_NONE if there is none */
static inline int is_real(DType d)
{
    return d < DTYPE_COUNT && dtype_info[d].kind == KIND_REAL;
}
static inline int is_half(DType d)
{
    return d == DT_F16 || d == DT_BF16;
}
static inline int dtype_bytes(DType d)
{
    return dtype_info[d].bits / 8;
}
int dtype_holds(DType wide, DType narrow); /* does `wide` hold every value of `narrow`? */
/* The type of an element-wise result: the wider one; f16 with bf16 gives f32; a real wins over an
 * integer; `float` counts as wider than every half and narrower than f32. */
DType dtype_promote(DType a, DType b);
double dtype_max(DType d); /* largest finite value */
double dtype_round(DType d,
                   double value); /* nearest value of a real type, ties to even, one rounding */
double dtype_unit(DType d);       /* unit round-off: half an ulp of 1 */

/* A symbol: a dimension known at run time only. */
typedef struct Symbol {
    Str name;
    int64_t low, high; /* inclusive bounds; memory is planned for high */
} Symbol;

typedef struct Term {
    int64_t coefficient;
    int degree;
    int symbol[4]; /* sorted, a square stands twice */
} Term;

typedef struct Dim {
    int count;  /* 0: the dimension is zero */
    Term *term; /* sorted; the constant term, if there is one, is last */
    struct Dim *next;
    uint32_t hash;
} Dim;

typedef struct Type {
    DType dtype;
    int rank;
    const Dim **dim;
    struct Type *next;
    uint32_t hash;
} Type;

enum { MAX_RANK = 16 };

enum { TYPE_TABLE = 8192 }; /* buckets of the tables of equal types and dimensions */

typedef struct TypeTable {
    Arena *arena;
    Symbol *symbol;
    int symbols, symbol_room;
    Dim *dims[TYPE_TABLE];
    Type *types[TYPE_TABLE];
} TypeTable;

void types_init(TypeTable *t, Arena *arena);
int symbol_add(TypeTable *t, Str name, int64_t low, int64_t high); /* index of the symbol */

const Dim *dim_int(TypeTable *t, int64_t value);
const Dim *dim_symbol(TypeTable *t, int symbol);
const Dim *dim_add(TypeTable *t, const Dim *a, const Dim *b);
const Dim *dim_sub(TypeTable *t, const Dim *a, const Dim *b);
const Dim *dim_mul(TypeTable *t, const Dim *a,
                   const Dim *b); /* NULL: degree over 4, or overflow (add and sub too) */
const Dim *dim_div(TypeTable *t, const Dim *a,
                   const Dim *b); /* exact division only; NULL otherwise */
int dim_is_int(const Dim *d, int64_t *value);
int64_t dim_value(const Dim *d, const int64_t *symbol_values);
int64_t dim_max(const TypeTable *t,
                const Dim *d); /* largest value within the symbols' bounds; -1: overflow */
const char *dim_text(TypeTable *t, const Dim *d,
                     Arena *arena); /* "4*N + 1", for people and for IR text */
const char *dim_c(TypeTable *t, const Dim *d, Arena *arena); /* C expression: "4 * N + 1" */

const Type *type_make(TypeTable *t, DType dtype, int rank, const Dim *const *dim);
const Type *type_scalar(TypeTable *t, DType dtype);
const Type *type_with(TypeTable *t, const Type *type, DType dtype); /* same shape, other dtype */
const Dim *type_count(TypeTable *t, const Type *type); /* number of elements; NULL: overflow */
int same_shape(const Type *a, const Type *b);
const char *type_text(TypeTable *t, const Type *type,
                      Arena *arena); /* "f32[N, 64]"; a scalar is "f32" */
#endif
