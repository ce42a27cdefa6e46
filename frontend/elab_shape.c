/* Types as written, and signatures against arguments. A capital name that is no const of the file
 * is a dimension: its first appearance takes the argument's size, every other one must agree.
 *
 *     model M(x: float[N, C]; heads: int) -> float[N, C / heads]       called with float[N, 64]: C = 64
 */
#include "frontend/elab_core.h"
#include <ctype.h>
#include <string.h>

DType element_type(ElementType t)
{
    switch (t) {
    case SCALAR_FLOAT:
        return DT_FLOAT;
    case SCALAR_F16:
        return DT_F16;
    case SCALAR_BF16:
        return DT_BF16;
    case SCALAR_F32:
        return DT_F32;
    case SCALAR_I8:
        return DT_I8;
    case SCALAR_U8:
        return DT_U8;
    case SCALAR_I16:
        return DT_I16;
    case SCALAR_I32:
        return DT_I32;
    case SCALAR_I64:
        return DT_I64;
    case SCALAR_BOOL:
        return DT_BOOL;
    case SCALAR_NONE:
    case SCALAR_HALF:
    case SCALAR_F64:
        break;
    }
    return DT_NONE;
}

bool resolve_element(Elab *e, const TypeExpr *t, DType *out)
{
    if (t->kind == TYPE_EXPR_STRUCT) {
        unsupported(e, t->span, "structs");
        return false;
    }
    if (t->kind == TYPE_EXPR_TUPLE) {
        elab_error(e, CODE_TYPE, t->span, "one tensor is needed here, not several");
        return false;
    }
    *out = element_type(t->scalar);
    if (*out != DT_NONE)
        return true;
    unsupported(e, t->scalar_span,
                arena_printf(e->arena, "the type %s", scalar_spelling(t->scalar)));
    return false;
}

/* A dimension that has no value yet: a bare capital name that nothing declares. */
static bool is_new_dim(Elab *e, const Expr *x)
{
    if (x->kind != EXPR_NAME || !isupper((unsigned char)x->name[0]) || find_binding(e, x->name))
        return false;
    for (int i = 0; i < e->module->decls.n; i++)
        if (e->module->decls.at[i]->name == x->name)
            return false;
    return true;
}

const Dim *signature_dim(Elab *e, const DimExpr *d, bool *is_new)
{
    *is_new = is_new_dim(e, d->size);
    if (*is_new)
        return NULL;
    Value v = eval(e, d->size);
    const Dim *dim = as_dim(e, v, d->span, "a dimension");
    int64_t i;
    if (dim && dim_is_int(dim, &i) && i < 1) {
        elab_error(e, CODE_VALUE, d->span, "a dimension must be at least 1, found %lld",
                   (long long)i);
        return NULL;
    }
    return dim;
}

/* The elements and bytes of a tensor are counted in 64 bits before anything is allocated. */
bool fits_limits(Elab *e, const Type *type, Span span)
{
    int64_t elements = 1;
    for (int i = 0; i < type->rank; i++) {
        int64_t most = dim_max(e->types, type->dim[i]);
        if (most < 0 || most > INT32_MAX ||
            __builtin_mul_overflow(elements, most > 0 ? most : 1, &elements) ||
            elements > MAX_BYTES / dtype_bytes(type->dtype)) {
            elab_error(e, CODE_LIMIT, span, "a tensor %s is larger than ampc accepts",
                       type_text(e->types, type, e->arena));
            return false;
        }
    }
    return true;
}

const Type *resolve_type(Elab *e, const TypeExpr *t, const char *what)
{
    DType dtype;
    const Dim *dim[MAX_RANK];
    if (!resolve_element(e, t, &dtype))
        return NULL;
    int rank = 0;
    for (int i = 0; i < t->dims.n; i++) {
        const DimExpr *d = &t->dims.at[i];
        bool is_new = false;
        const Binding *rest = !d->size && d->rest ? find_binding(e, d->rest) : NULL;
        if (rest && rest->value.kind == VAL_DIMS) {
            for (int k = 0; k < rest->value.n && rank < MAX_RANK; k++)
                dim[rank++] = rest->value.dims[k];
            continue;
        }
        const Dim *size = d->size ? signature_dim(e, d, &is_new) : NULL;
        if (!size) {
            if (is_new || !d->size)
                elab_error(e, CODE_NAME, d->span, "the size of this dimension of %s is not known",
                           what);
            return NULL;
        }
        if (rank == MAX_RANK) {
            elab_error(e, CODE_LIMIT, t->span, "a tensor has at most %d dimensions", MAX_RANK);
            return NULL;
        }
        dim[rank++] = size;
    }
    const Type *type = type_make(e->types, dtype, rank, dim);
    return fits_limits(e, type, t->span) ? type : NULL;
}

Node *fit_dtype(Elab *e, Node *n, DType want, bool *ok)
{
    DType have = n->type->dtype;
    (void)e;
    *ok = true;
    if (have == want || (want == DT_FLOAT && is_real(have)))
        return n;
    if (is_real(have) && is_real(want))
        return mark_pinned(cast_to(n, want));
    *ok = false;
    return n;
}

typedef struct Argument { /* one tensor against its declared type */
    const TypeExpr *type;
    Node *node;
    Span span, mark;
    const char *who, *giver, *name;
    Span declared;
} Argument;

static Diag *mismatch(Elab *e, Code code, const Argument *a)
{
    const char *have = tensor_text(e, a->node), *want = type_expr_text(e, a->type);
    Diag *d;
    if (!a->name)
        d = elab_error(e, code, a->span, "'%s' returns %s, found %s", a->who, want, have);
    else if (a->giver)
        d = elab_error(e, code, a->span, "'%s' takes %s but '%s' gives %s", a->who, want, a->giver,
                       have);
    else
        d = elab_error(e, code, a->span, "'%s' takes %s, found %s", a->who, want, have);
    if (d && a->mark.file)
        mark_at(d, a->mark);
    if (d && a->name)
        note_at(d, a->declared, "'%s' is declared as %s here", a->name, want);
    else if (d)
        note_at(d, a->declared, "the result is declared here");
    return d;
}

/* Index of the ..S among the dims, -1 if there is none; how many dims it stands for goes to
 * *count. */
static int find_rest(const TypeExpr *t, int rank, int *count)
{
    for (int i = 0; i < t->dims.n; i++)
        if (!t->dims.at[i].size) {
            *count = rank - (t->dims.n - 1);
            return i;
        }
    *count = 0;
    return -1;
}

static Value rest_value(Elab *e, const Type *type, int first, int count)
{
    Value v = {.kind = VAL_DIMS, .n = count};
    v.dims = new_array(e->arena, const Dim *, count + 1);
    for (int i = 0; i < count; i++)
        v.dims[i] = type->dim[first + i];
    return v;
}

/* Gives the new names their values: the first of two passes, so that C / heads may stand before
 * C. */
static bool bind_dims(Elab *e, const Argument *a)
{
    const TypeExpr *t = a->type;
    const Type *have = a->node->type;
    int count, rest = find_rest(t, have->rank, &count);
    if (rest < 0 ? t->dims.n != have->rank : count < 0) {
        mismatch(e, CODE_SHAPE, a);
        return false;
    }
    for (int i = 0; i < t->dims.n; i++) {
        const DimExpr *d = &t->dims.at[i];
        int at = rest >= 0 && i > rest ? i - 1 + count : i;
        if (i == rest) {
            if (d->rest && !find_binding(e, d->rest))
                bind_name(e, d->rest, rest_value(e, have, at, count), d->span)->is_declared = true;
        } else if (is_new_dim(e, d->size)) {
            bind_name(e, d->size->name, value_dim(have->dim[at]), d->span)->is_declared = true;
        }
    }
    return true;
}

static bool same_rest(const Value *v, const Type *have, int first, int count)
{
    if (v->kind != VAL_DIMS || v->n != count)
        return false;
    for (int i = 0; i < count; i++)
        if (v->dims[i] != have->dim[first + i])
            return false;
    return true;
}

/* Points at where a name got the value that does not fit. */
static void note_dim(Elab *e, Diag *d, const DimExpr *dim)
{
    const Binding *b =
        dim->size && dim->size->kind == EXPR_NAME ? find_binding(e, dim->size->name) : NULL;
    if (!d || !b || (b->span.file == dim->span.file && b->span.begin == dim->span.begin))
        return;
    if (b->value.kind == VAL_INT)
        note_at(d, b->span, "'%s' is %lld here", b->name, (long long)b->value.i);
    else if (b->value.kind == VAL_DIM)
        note_at(d, b->span, "'%s' is %s here", b->name, dim_text(e->types, b->value.dim, e->arena));
}

static bool check_dims(Elab *e, const Argument *a)
{
    const TypeExpr *t = a->type;
    const Type *have = a->node->type;
    int count, rest = find_rest(t, have->rank, &count);
    for (int i = 0; i < t->dims.n; i++) {
        const DimExpr *d = &t->dims.at[i];
        int at = rest >= 0 && i > rest ? i - 1 + count : i;
        if (i == rest) {
            const Binding *b = d->rest ? find_binding(e, d->rest) : NULL;
            if (b && !same_rest(&b->value, have, at, count)) {
                mismatch(e, CODE_SHAPE, a);
                return false;
            }
            continue;
        }
        bool is_new;
        const Dim *want = signature_dim(e, d, &is_new);
        if (!want)
            return false;
        if (want != have->dim[at]) {
            note_dim(e, mismatch(e, CODE_SHAPE, a), d);
            return false;
        }
    }
    return true;
}

static bool check_element(Elab *e, Argument *a)
{
    DType want;
    bool ok;
    if (!resolve_element(e, a->type, &want))
        return false;
    a->node = fit_dtype(e, a->node, want, &ok);
    if (!ok)
        mismatch(e, CODE_TYPE, a);
    return ok;
}

bool bind_signature(Elab *e, const Signature *s, const Given *given, const char *who)
{
    Argument a[MAX_SLOTS];
    bool ok = true;
    for (int i = 0; i < s->data.n; i++) {
        const ParamDecl *p = &s->data.at[i];
        DType dtype = DT_NONE;
        a[i] = (Argument){.type = p->type,
                          .span = given[i].span,
                          .mark = given[i].mark,
                          .who = who,
                          .giver = given[i].giver,
                          .name = p->name,
                          .declared = p->span};
        if (!resolve_element(e, p->type, &dtype))
            return false;
        a[i].node = as_tensor(e, given[i].value, given[i].span, dtype);
        ok = ok && a[i].node->type && bind_dims(e, &a[i]);
    }
    for (int i = 0; ok && i < s->data.n; i++)
        ok = check_dims(e, &a[i]) && check_element(e, &a[i]);
    for (int i = 0; i < s->data.n; i++)
        bind_name(e, s->data.at[i].name, ok ? value_node(a[i].node) : value_error(),
                  s->data.at[i].name_span);
    return ok;
}

static Value bind_tuple(Elab *e, const TypeExpr *t, Value v, Span span, const char *who)
{
    if (v.kind != VAL_TUPLE || v.n != t->parts.n) {
        elab_error(e, CODE_TYPE, span, "'%s' returns %d values, found %s", who, t->parts.n,
                   value_text(e, &v));
        return value_error();
    }
    for (int i = 0; i < v.n; i++) {
        v.at[i] = bind_result(e, t->parts.at[i].type, v.at[i], span, who);
        if (is_error(v.at[i]))
            return value_error();
    }
    return v;
}

/* The value that a body returns, against the declared result. */
Value bind_result(Elab *e, const TypeExpr *t, Value v, Span span, const char *who)
{
    if (is_error(v))
        return v;
    if (t->kind == TYPE_EXPR_TUPLE && t->parts.n == 1)
        return bind_result(e, t->parts.at[0].type, v, span, who);
    if (t->kind == TYPE_EXPR_TUPLE)
        return bind_tuple(e, t, v, span, who);
    DType dtype;
    if (!resolve_element(e, t, &dtype))
        return value_error();
    Argument a = {.type = t, .span = span, .who = who, .declared = t->span};
    a.node = as_tensor(e, v, span, dtype);
    if (!a.node->type || !bind_dims(e, &a) || !check_dims(e, &a) || !check_element(e, &a))
        return value_error();
    return value_node(a.node);
}
