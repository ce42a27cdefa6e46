#include "ir/type.h"
#include <assert.h>
#include <math.h>
#include <string.h>

const DTypeInfo dtype_info[DTYPE_COUNT] = {
#define DTYPE(id, name, kind, bits, mant, exp, is_signed, st)                                      \
    {name, KIND_##kind, bits, mant, exp, is_signed, st},
#include "ir/dtype.def"
#undef DTYPE
};

DType dtype_find(const char *name)
{
    for (int d = 0; d < DTYPE_COUNT; d++)
        if (!strcmp(dtype_info[d].name, name))
            return (DType)d;
    return DT_NONE;
}

int dtype_holds(DType wide, DType narrow)
{
    const DTypeInfo *w = &dtype_info[wide], *n = &dtype_info[narrow];
    if (wide == narrow)
        return 1;
    if (w->kind == KIND_REAL && n->kind == KIND_REAL)
        return w->mantissa >= n->mantissa && w->exponent >= n->exponent;
    if (w->kind == KIND_REAL) /* integers up to 2^(mantissa + 1); f16 ends at 65504 */
        return n->mantissa <= w->mantissa + 1 && ldexp(1, n->mantissa) <= dtype_max(wide);
    return n->kind != KIND_REAL && w->mantissa >= n->mantissa && w->is_signed >= n->is_signed &&
           w->kind != KIND_BOOL;
}

/* How real types rank in a promotion; `float` will become f32 or a half. */
static int real_rank(DType d)
{
    return is_half(d) ? 1 : d == DT_FLOAT ? 2 : 3;
}

DType dtype_promote(DType a, DType b)
{
    if (a == b)
        return a;
    if (is_real(a) && is_real(b)) {
        if (is_half(a) && is_half(b))
            return DT_F32;
        return real_rank(a) > real_rank(b) ? a : b;
    }
    if (is_real(a) || is_real(b))
        return is_real(a) ? a : b;
    if (dtype_holds(a, b))
        return a;
    if (dtype_holds(b, a))
        return b;
    return DT_I16; /* i8 and u8 */
}

double dtype_max(DType d)
{
    const DTypeInfo *i = &dtype_info[d];
    if (i->kind != KIND_REAL)
        return ldexp(1, i->mantissa) - 1;
    return ldexp(2 - ldexp(1, -i->mantissa), (1 << (i->exponent - 1)) - 1);
}

double dtype_unit(DType d)
{
    return ldexp(1, -dtype_info[d].mantissa - 1);
}

double dtype_round(DType d, double value)
{
    const DTypeInfo *i = &dtype_info[d];
    if (i->kind != KIND_REAL || !isfinite(value) || value == 0)
        return value;
    int exponent, lowest = 2 - (1 << (i->exponent - 1)); /* exponent of the smallest normal */
    frexp(value, &exponent);
    exponent--; /* value = 1.x * 2^exponent */
    if (exponent < lowest)
        exponent = lowest;
    double rounded = ldexp(rint(ldexp(value, i->mantissa - exponent)), exponent - i->mantissa);
    return fabs(rounded) > dtype_max(d) ? copysign(INFINITY, value) : rounded;
}

void types_init(TypeTable *t, Arena *arena)
{
    memset(t, 0, sizeof *t);
    t->arena = arena;
}

int symbol_add(TypeTable *t, Str name, int64_t low, int64_t high)
{
    if (t->symbols == t->symbol_room) {
        t->symbol_room = t->symbol_room ? 2 * t->symbol_room : 8;
        Symbol *fresh = new_array(t->arena, Symbol, t->symbol_room);
        if (t->symbols)
            memcpy(fresh, t->symbol, sizeof *fresh * (size_t)t->symbols);
        t->symbol = fresh;
    }
    t->symbol[t->symbols] = (Symbol){.name = name, .low = low, .high = high};
    return t->symbols++;
}

/* Order of terms: higher degree first, then by symbols. */
static int compare_terms(const Term *a, const Term *b)
{
    if (a->degree != b->degree)
        return b->degree - a->degree;
    for (int i = 0; i < a->degree; i++)
        if (a->symbol[i] != b->symbol[i])
            return a->symbol[i] - b->symbol[i];
    return 0;
}

static uint32_t hash_step(uint32_t h, uint64_t value)
{
    return (h ^ (uint32_t)(value ^ value >> 32)) * 16777619u;
}

/* Interns the dimension with these terms; they are sorted and combined first. */
static const Dim *dim_intern(TypeTable *t, Term *terms, int count)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        int at = 0;
        while (at < n && compare_terms(&terms[at], &terms[i]) < 0)
            at++;
        Term term = terms[i];
        if (at < n && compare_terms(&terms[at], &term) == 0) {
            if (__builtin_add_overflow(terms[at].coefficient, term.coefficient,
                                       &terms[at].coefficient))
                return NULL;
            continue;
        }
        memmove(&terms[at + 1], &terms[at], sizeof *terms * (size_t)(n - at));
        terms[at] = term;
        n++;
    }
    int kept = 0;
    uint32_t hash = 2166136261u;
    for (int i = 0; i < n; i++) {
        if (!terms[i].coefficient)
            continue;
        terms[kept] = terms[i];
        hash = hash_step(hash, (uint64_t)terms[kept].coefficient);
        for (int s = 0; s < terms[kept].degree; s++)
            hash = hash_step(hash, (uint64_t)terms[kept].symbol[s] + 77);
        kept++;
    }
    Dim **slot = &t->dims[hash % TYPE_TABLE];
    for (Dim *d = *slot; d; d = d->next) {
        int same = d->hash == hash && d->count == kept;
        for (int i = 0; same && i < kept; i++)
            same = !compare_terms(&d->term[i], &terms[i]) &&
                   d->term[i].coefficient == terms[i].coefficient;
        if (same)
            return d;
    }
    Dim *d = new (t->arena, Dim);
    d->count = kept;
    d->hash = hash;
    d->term = new_array(t->arena, Term, kept + 1);
    if (kept)
        memcpy(d->term, terms, sizeof *terms * (size_t)kept);
    d->next = *slot;
    *slot = d;
    return d;
}

const Dim *dim_int(TypeTable *t, int64_t value)
{
    Term term = {.coefficient = value};
    return dim_intern(t, &term, 1);
}

const Dim *dim_symbol(TypeTable *t, int symbol)
{
    Term term = {.coefficient = 1, .degree = 1, .symbol = {symbol}};
    return dim_intern(t, &term, 1);
}

enum { MAX_TERMS = 64 };

static const Dim *dim_sum(TypeTable *t, const Dim *a, const Dim *b, int sign)
{
    Term terms[2 * MAX_TERMS];
    if (!a || !b || a->count + b->count > MAX_TERMS)
        return NULL;
    for (int i = 0; i < a->count; i++)
        terms[i] = a->term[i];
    for (int i = 0; i < b->count; i++) {
        terms[a->count + i] = b->term[i];
        if (__builtin_mul_overflow(b->term[i].coefficient, sign, &terms[a->count + i].coefficient))
            return NULL;
    }
    return dim_intern(t, terms, a->count + b->count);
}

const Dim *dim_add(TypeTable *t, const Dim *a, const Dim *b)
{
    return dim_sum(t, a, b, 1);
}

const Dim *dim_sub(TypeTable *t, const Dim *a, const Dim *b)
{
    return dim_sum(t, a, b, -1);
}

const Dim *dim_mul(TypeTable *t, const Dim *a, const Dim *b)
{
    Term terms[MAX_TERMS + 1];
    int n = 0;
    if (!a || !b || a->count * b->count > MAX_TERMS)
        return NULL;
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < b->count; j++) {
            const Term *x = &a->term[i], *y = &b->term[j];
            Term *z = &terms[n++];
            if (x->degree + y->degree > 4 ||
                __builtin_mul_overflow(x->coefficient, y->coefficient, &z->coefficient))
                return NULL;
            z->degree = 0;
            for (int p = 0, q = 0; p < x->degree || q < y->degree;) {
                int first = q == y->degree || (p < x->degree && x->symbol[p] <= y->symbol[q]);
                z->symbol[z->degree++] = first ? x->symbol[p++] : y->symbol[q++];
            }
        }
    return dim_intern(t, terms, n);
}

/* Divides one term by another; 0 if it does not go. */
static int divide_term(Term *z, const Term *x, const Term *y)
{
    if (x->coefficient % y->coefficient)
        return 0;
    z->coefficient = x->coefficient / y->coefficient;
    z->degree = 0;
    int q = 0;
    for (int p = 0; p < x->degree; p++) {
        if (q < y->degree && x->symbol[p] == y->symbol[q])
            q++;
        else
            z->symbol[z->degree++] = x->symbol[p];
    }
    return q == y->degree;
}

/* Polynomial division that must leave no remainder. */
const Dim *dim_div(TypeTable *t, const Dim *a, const Dim *b)
{
    if (!a || !b || !b->count)
        return NULL;
    const Dim *quotient = dim_int(t, 0);
    for (int guard = 0; a->count; guard++) {
        Term z;
        if (guard > MAX_TERMS || !divide_term(&z, &a->term[0], &b->term[0]))
            return NULL;
        const Dim *part = dim_intern(t, &z, 1);
        quotient = dim_add(t, quotient, part);
        a = dim_sub(t, a, dim_mul(t, part, b));
        if (!quotient || !a)
            return NULL;
    }
    return quotient;
}

int dim_is_int(const Dim *d, int64_t *value)
{
    if (d->count > 1 || (d->count == 1 && d->term[0].degree))
        return 0;
    if (value)
        *value = d->count ? d->term[0].coefficient : 0;
    return 1;
}

int64_t dim_value(const Dim *d, const int64_t *symbol_values)
{
    int64_t sum = 0;
    for (int i = 0; i < d->count; i++) {
        int64_t product = d->term[i].coefficient;
        for (int s = 0; s < d->term[i].degree; s++)
            product *= symbol_values[d->term[i].symbol[s]];
        sum += product;
    }
    return sum;
}

int64_t dim_max(const TypeTable *t, const Dim *d)
{
    int64_t sum = 0;
    for (int i = 0; i < d->count; i++) {
        int64_t product = d->term[i].coefficient;
        for (int s = 0; s < d->term[i].degree; s++) {
            const Symbol *symbol = &t->symbol[d->term[i].symbol[s]];
            if (__builtin_mul_overflow(product, product < 0 ? symbol->low : symbol->high, &product))
                return -1;
        }
        if (__builtin_add_overflow(sum, product, &sum))
            return -1;
    }
    return sum;
}

/* Writes a dimension with the given text between factors. */
static const char *dim_write(TypeTable *t, const Dim *d, Arena *arena, const char *times)
{
    if (!d->count)
        return "0";
    Out o;
    out_init(&o, arena);
    for (int i = 0; i < d->count; i++) {
        const Term *term = &d->term[i];
        int64_t c = term->coefficient;
        uint64_t size = c < 0 ? 0 - (uint64_t)c : (uint64_t)c;
        out_text(&o, i ? (c < 0 ? " - " : " + ") : (c < 0 ? "-" : ""));
        const char *separator = "";
        if (size != 1 || !term->degree) {
            out_printf(&o, "%llu", (unsigned long long)size);
            separator = times;
        }
        for (int s = 0; s < term->degree; s++) {
            out_printf(&o, "%s%s", separator, t->symbol[term->symbol[s]].name);
            separator = times;
        }
    }
    return o.text;
}

const char *dim_text(TypeTable *t, const Dim *d, Arena *arena)
{
    return dim_write(t, d, arena, "*");
}

const char *dim_c(TypeTable *t, const Dim *d, Arena *arena)
{
    return dim_write(t, d, arena, " * ");
}

const Type *type_make(TypeTable *t, DType dtype, int rank, const Dim *const *dim)
{
    assert(rank <= MAX_RANK && dtype < DTYPE_COUNT);
    uint32_t hash = hash_step(2166136261u, (uint64_t)dtype * 31 + (uint64_t)rank);
    for (int i = 0; i < rank; i++)
        hash = hash_step(hash, dim[i]->hash);
    Type **slot = &t->types[hash % TYPE_TABLE];
    for (Type *x = *slot; x; x = x->next)
        if (x->hash == hash && x->dtype == dtype && x->rank == rank &&
            (!rank || !memcmp(x->dim, dim, sizeof *dim * (size_t)rank)))
            return x;
    Type *x = new (t->arena, Type);
    x->dtype = dtype;
    x->rank = rank;
    x->hash = hash;
    x->dim = new_array(t->arena, const Dim *, rank + 1);
    for (int i = 0; i < rank; i++)
        x->dim[i] = dim[i];
    x->next = *slot;
    *slot = x;
    return x;
}

const Type *type_scalar(TypeTable *t, DType dtype)
{
    return type_make(t, dtype, 0, NULL);
}

const Type *type_with(TypeTable *t, const Type *type, DType dtype)
{
    return type->dtype == dtype ? type : type_make(t, dtype, type->rank, type->dim);
}

const Dim *type_count(TypeTable *t, const Type *type)
{
    const Dim *count = dim_int(t, 1);
    for (int i = 0; i < type->rank; i++)
        count = dim_mul(t, count, type->dim[i]);
    return count;
}

int same_shape(const Type *a, const Type *b)
{
    return a->rank == b->rank &&
           (!a->rank || !memcmp(a->dim, b->dim, sizeof *a->dim * (size_t)a->rank));
}

const char *type_text(TypeTable *t, const Type *type, Arena *arena)
{
    Out o;
    out_init(&o, arena);
    out_text(&o, dtype_info[type->dtype].name);
    for (int i = 0; i < type->rank; i++)
        out_printf(&o, "%s%s", i ? ", " : "[", dim_text(t, type->dim[i], arena));
    if (type->rank)
        out_text(&o, "]");
    return o.text;
}
