/* Arithmetic on numbers that are known when compiling, and the trees of those that are not:
 * integers in 64 bits without overflow, reals in double without NaN and infinity.
 *
 *     const K: int = 3 * 4;          folded to 12
 *     lr * 2                          lr is an option: a Scalar tree
 */
#include "frontend/elab_core.h"
#include <math.h>
#include <string.h>

static Value real_result(Elab *e, Span span, double r)
{
    if (isfinite(r))
        return value_real(r);
    elab_error(e, CODE_VALUE, span, "this is %s", isnan(r) ? "not a number" : "infinite");
    return value_error();
}

static Value overflow(Elab *e, Span span)
{
    elab_error(e, CODE_VALUE, span, "this overflows 64 bits");
    return value_error();
}

static double real_of(Value v)
{
    return v.kind == VAL_REAL ? v.r : (double)v.i;
}

static bool is_integer(Value v)
{
    return v.kind == VAL_INT || v.kind == VAL_DIM;
}

static Value runtime_unary(Elab *e, const Expr *x, Value a, const char *spelling)
{
    Scalar *s = new (e->arena, Scalar);
    s->kind = S_UNARY;
    s->span = x->span;
    s->s = intern(e->names, spelling);
    s->a = a.tree;
    return value_runtime(s, a.runtime_kind);
}

Value fold_unary(Elab *e, const Expr *x, Value a)
{
    bool negates = x->operator== OPERATOR_NEG;
    switch (a.kind) {
    case VAL_INT:
        if (negates)
            return a.i == INT64_MIN ? overflow(e, x->span) : value_int(-a.i);
        break;
    case VAL_REAL:
        if (negates)
            return value_real(-a.r);
        break;
    case VAL_BOOL:
        if (!negates)
            return value_bool(!a.i);
        break;
    case VAL_DIM:
        if (negates)
            return value_dim(dim_sub(e->types, dim_int(e->types, 0), a.dim));
        break;
    case VAL_RUNTIME:
        if (a.runtime_kind != OPTION_STRING && negates == (a.runtime_kind != OPTION_BOOL))
            return runtime_unary(e, x, a, negates ? "-" : "!");
        break;
    default:
        break;
    }
    if (a.kind != VAL_ERROR)
        elab_error(e, CODE_TYPE, x->span, "'%s' needs a %s, found %s",
                   operator_spelling(x->operator), negates ? "number" : "bool", value_text(e, &a));
    return value_error();
}

static Value integer_quotient(Elab *e, const Expr *x, int64_t a, int64_t b)
{
    bool modulo = x->operator== OPERATOR_MOD;
    if (b == 0) {
        elab_error(e, CODE_VALUE, x->span, "division by zero");
        return value_error();
    }
    if (a == INT64_MIN && b == -1)
        return overflow(e, x->span);
    if (modulo)
        return value_int(a % b < 0 ? a % b + (b < 0 ? -b : b) : a % b);
    if (a % b == 0)
        return value_int(a / b);
    Diag *d = elab_error(e, CODE_VALUE, x->span,
                         "%lld / %lld leaves a remainder of %lld; integers are divided exactly",
                         (long long)a, (long long)b, (long long)(a % b));
    if (d && x->b->kind == EXPR_INT)
        fix_at(d, x->b->span, arena_printf(e->arena, "%lld.0", (long long)b));
    return value_error();
}

static Value fold_ints(Elab *e, const Expr *x, int64_t a, int64_t b)
{
    int64_t r = 0;
    switch (x->operator) {
    case OPERATOR_ADD:
        return __builtin_add_overflow(a, b, &r) ? overflow(e, x->span) : value_int(r);
    case OPERATOR_SUB:
        return __builtin_sub_overflow(a, b, &r) ? overflow(e, x->span) : value_int(r);
    case OPERATOR_MUL:
        return __builtin_mul_overflow(a, b, &r) ? overflow(e, x->span) : value_int(r);
    case OPERATOR_DIV:
    case OPERATOR_MOD:
        return integer_quotient(e, x, a, b);
    case OPERATOR_EQ:
        return value_bool(a == b);
    case OPERATOR_NE:
        return value_bool(a != b);
    case OPERATOR_LT:
        return value_bool(a < b);
    case OPERATOR_LE:
        return value_bool(a <= b);
    case OPERATOR_GT:
        return value_bool(a > b);
    case OPERATOR_GE:
        return value_bool(a >= b);
    default:
        return (Value){.kind = VAL_NONE};
    }
}

static Value fold_reals(Elab *e, const Expr *x, double a, double b)
{
    switch (x->operator) {
    case OPERATOR_ADD:
        return real_result(e, x->span, a + b);
    case OPERATOR_SUB:
        return real_result(e, x->span, a - b);
    case OPERATOR_MUL:
        return real_result(e, x->span, a * b);
    case OPERATOR_DIV:
        if (b == 0) {
            elab_error(e, CODE_VALUE, x->span, "division by zero");
            return value_error();
        }
        return real_result(e, x->span, a / b);
    case OPERATOR_EQ:
        return value_bool(a == b);
    case OPERATOR_NE:
        return value_bool(a != b);
    case OPERATOR_LT:
        return value_bool(a < b);
    case OPERATOR_LE:
        return value_bool(a <= b);
    case OPERATOR_GT:
        return value_bool(a > b);
    case OPERATOR_GE:
        return value_bool(a >= b);
    default:
        return (Value){.kind = VAL_NONE};
    }
}

/* Arithmetic on dimensions. What holds for every value of the symbols is known: N + 1 > N is not
 * asked for. */
static Value fold_dims(Elab *e, const Expr *x, const Dim *a, const Dim *b)
{
    TypeTable *t = e->types;
    const Dim *r = NULL;
    int64_t difference;
    switch (x->operator) {
    case OPERATOR_ADD:
        r = dim_add(t, a, b);
        break;
    case OPERATOR_SUB:
        r = dim_sub(t, a, b);
        break;
    case OPERATOR_MUL:
        r = dim_mul(t, a, b);
        break;
    case OPERATOR_DIV:
        r = dim_div(t, a, b);
        if (!r)
            elab_error(e, CODE_VALUE, x->span, "%s / %s is not always an integer",
                       dim_text(t, a, e->arena), dim_text(t, b, e->arena));
        return r ? value_dim(r) : value_error();
    case OPERATOR_MOD:
        if (dim_div(t, a, b))
            return value_int(0);
        elab_error(e, CODE_VALUE, x->span, "%s %% %s is known only when the program runs",
                   dim_text(t, a, e->arena), dim_text(t, b, e->arena));
        return value_error();
    default:
        r = dim_sub(t, a, b);
        if (r && dim_is_int(r, &difference))
            return fold_ints(e, x, difference, 0);
        /* a bound decides: N <= 1024 when N is at most 64 */
        if (dim_is_int(b, &difference)) {
            int64_t most = dim_max(t, a);
            if (most >= 0 && most <= difference && x->operator== OPERATOR_LE)
                return value_bool(true);
            if (most >= 0 && most < difference && x->operator== OPERATOR_LT)
                return value_bool(true);
        }
        elab_error(e, CODE_VALUE, x->span, "this is known only when the program runs");
        return value_error();
    }
    return r ? value_dim(r) : overflow(e, x->span);
}

static bool is_comparison(Operator o)
{
    return o >= OPERATOR_EQ && o <= OPERATOR_GE;
}

static Value runtime_binary(Elab *e, const Expr *x, Value a, Value b)
{
    OptionKind kind = OPTION_REAL;
    bool a_int = a.kind == VAL_INT || (a.kind == VAL_RUNTIME && a.runtime_kind == OPTION_INT);
    bool b_int = b.kind == VAL_INT || (b.kind == VAL_RUNTIME && b.runtime_kind == OPTION_INT);
    if (a_int && b_int && x->operator!= OPERATOR_DIV)
        kind = OPTION_INT;
    if (is_comparison(x->operator) || x->operator== OPERATOR_AND || x->operator== OPERATOR_OR)
        kind = OPTION_BOOL;
    Scalar *s = new (e->arena, Scalar);
    s->kind = S_BINARY;
    s->span = x->span;
    s->s = intern(e->names, operator_spelling(x->operator));
    s->a = want_scalar(e, a, x->a->span, "the operand");
    s->b = want_scalar(e, b, x->b->span, "the operand");
    return s->a && s->b ? value_runtime(s, kind) : value_error();
}

Value fold_binary(Elab *e, const Expr *x, Value a, Value b)
{
    if (is_error(a) || is_error(b))
        return value_error();
    Value r = {.kind = VAL_NONE};
    if (a.kind == VAL_RUNTIME || b.kind == VAL_RUNTIME)
        r = runtime_binary(e, x, a, b);
    else if (a.kind == VAL_INT && b.kind == VAL_INT)
        r = fold_ints(e, x, a.i, b.i);
    else if (is_integer(a) && is_integer(b))
        r = fold_dims(e, x, as_dim(e, a, x->span, ""), as_dim(e, b, x->span, ""));
    else if (a.kind == VAL_BOOL && b.kind == VAL_BOOL) {
        if (x->operator== OPERATOR_AND || x->operator== OPERATOR_OR)
            r = value_bool(x->operator== OPERATOR_AND ? a.i && b.i : a.i || b.i);
        else if (x->operator== OPERATOR_EQ || x->operator== OPERATOR_NE)
            r = value_bool((a.i == b.i) == (x->operator== OPERATOR_EQ));
    } else if (a.kind == VAL_STRING && b.kind == VAL_STRING) {
        if (x->operator== OPERATOR_EQ || x->operator== OPERATOR_NE)
            r = value_bool((a.s == b.s) == (x->operator== OPERATOR_EQ));
    } else if ((a.kind == VAL_INT || a.kind == VAL_REAL) &&
               (b.kind == VAL_INT || b.kind == VAL_REAL))
        r = fold_reals(e, x, real_of(a), real_of(b));
    if (r.kind != VAL_NONE)
        return r;
    elab_error(e, CODE_TYPE, x->span, "'%s' does not take %s and %s",
               operator_spelling(x->operator), value_text(e, &a), value_text(e, &b));
    return value_error();
}

static double minimum(double a, double b)
{
    return a < b ? a : b;
}

static double maximum(double a, double b)
{
    return a > b ? a : b;
}

static double square(double a)
{
    return a * a;
}

static double sign(double a)
{
    return a > 0 ? 1 : a < 0 ? -1 : 0;
}

static const struct {
    const char *name;
    double (*one)(double);
    double (*two)(double, double);
} functions[] = {
    {"sqrt", sqrt, NULL},       {"exp", exp, NULL},         {"log", log, NULL},
    {"log1p", log1p, NULL},     {"expm1", expm1, NULL},     {"sin", sin, NULL},
    {"cos", cos, NULL},         {"tanh", tanh, NULL},       {"abs", fabs, NULL},
    {"square", square, NULL},   {"sign", sign, NULL},       {"floor", floor, NULL},
    {"ceil", ceil, NULL},       {"round", nearbyint, NULL}, {"pow", NULL, pow},
    {"min", NULL, minimum},     {"max", NULL, maximum},     {"minimum", NULL, minimum},
    {"maximum", NULL, maximum},
};

static Value fold_runtime_function(Elab *e, const char *name, Span span, const Value *in, int n)
{
    Scalar *s = new (e->arena, Scalar);
    s->kind = S_CALL;
    s->span = span;
    s->s = intern(e->names, name);
    s->a = want_scalar(e, in[0], span, "the argument");
    s->b = n > 1 ? want_scalar(e, in[1], span, "the argument") : NULL;
    return s->a && (n < 2 || s->b) ? value_runtime(s, OPTION_REAL) : value_error();
}

/* The function of numbers; *known: false when there is no such function, or an argument is no
 * number. */
Value fold_function(Elab *e, const char *name, Span span, const Value *in, int n, bool *known)
{
    bool runtime = false;
    *known = false;
    for (int i = 0; i < n; i++) {
        if (in[i].kind == VAL_RUNTIME && in[i].runtime_kind != OPTION_STRING)
            runtime = true;
        else if (in[i].kind != VAL_INT && in[i].kind != VAL_REAL)
            return value_error();
    }
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        if (strcmp(functions[k].name, name) || (n == 1) != (functions[k].one != NULL) || n < 1 ||
            n > 2)
            continue;
        *known = true;
        if (runtime)
            return fold_runtime_function(e, name, span, in, n);
        double r = n == 1 ? functions[k].one(real_of(in[0]))
                          : functions[k].two(real_of(in[0]), real_of(in[1]));
        bool ints = in[0].kind == VAL_INT && (n == 1 || in[1].kind == VAL_INT);
        bool stays = !strcmp(name, "abs") || !strncmp(name, "m", 1) || !strcmp(name, "square") ||
                     !strcmp(name, "floor") || !strcmp(name, "ceil") || !strcmp(name, "round");
        if (stays && r == floor(r) && fabs(r) <= 9007199254740992.0 &&
            (ints || name[0] == 'f' || name[0] == 'c' || name[0] == 'r'))
            return value_int((int64_t)r);
        return real_result(e, span, r);
    }
    return value_error();
}

/* A number as a declaration's type wants it. */
Value convert_value(Elab *e, Value v, ValueType type, Span span, const char *what)
{
    static const char *wanted[] = {"an integer", "a number", "true or false", "a string"};
    static const OptionKind kinds[] = {OPTION_INT, OPTION_REAL, OPTION_BOOL, OPTION_STRING};
    if (v.kind == VAL_ERROR)
        return v;
    if (v.kind == VAL_RUNTIME &&
        (v.runtime_kind == kinds[type] || (type == VALUE_REAL && v.runtime_kind == OPTION_INT)))
        return v;
    switch (type) {
    case VALUE_INT:
        if (is_integer(v))
            return v;
        break;
    case VALUE_REAL:
        if (v.kind == VAL_REAL)
            return v;
        if (v.kind == VAL_INT) {
            if (v.i >= -(1LL << 53) && v.i <= 1LL << 53)
                return value_real((double)v.i);
            elab_error(e, CODE_VALUE, span, "%lld is too large to be a real exactly",
                       (long long)v.i);
            return value_error();
        }
        break;
    case VALUE_BOOL:
        if (v.kind == VAL_BOOL)
            return v;
        break;
    case VALUE_STRING:
        if (v.kind == VAL_STRING)
            return v;
        break;
    }
    elab_error(e, CODE_TYPE, span, "%s must be %s, found %s", what, wanted[type],
               value_text(e, &v));
    return value_error();
}

static bool equal_numbers(Value a, Value b)
{
    if (a.kind == VAL_STRING || b.kind == VAL_STRING)
        return a.kind == b.kind && a.s == b.s;
    return real_of(a) == real_of(b);
}

static const char *plain_text(Elab *e, Value v)
{
    if (v.kind == VAL_STRING)
        return arena_printf(e->arena, "\"%s\"", v.s);
    if (v.kind == VAL_REAL)
        return double_text(e->arena, v.r);
    return arena_printf(e->arena, "%lld", (long long)v.i);
}

/* Is v within the declared range? What is known only later is checked then. */
bool check_range(Elab *e, const Range *range, Value v, Span span, const char *what, Span declared)
{
    if (!range || v.kind == VAL_RUNTIME || v.kind == VAL_ERROR || v.kind == VAL_DIM)
        return true;
    const char *why = NULL;
    if (range->low) {
        Value low = eval(e, range->low), high = eval(e, range->high);
        if (!is_number(low) || !is_number(high)) {
            if (!is_error(low) && !is_error(high))
                elab_error(e, CODE_TYPE, range->span, "a range needs two numbers");
            return false;
        }
        if (real_of(low) > real_of(high)) {
            elab_error(e, CODE_VALUE, range->span, "this range is empty");
            return false;
        }
        if (!is_number(v) || real_of(v) < real_of(low) || real_of(v) > real_of(high))
            why = arena_printf(e->arena, "%s .. %s", plain_text(e, low), plain_text(e, high));
    } else {
        why = "the set";
        for (int i = 0; i < range->values.n; i++) {
            Value one = eval(e, range->values.at[i]);
            if (is_error(one))
                return false;
            if (equal_numbers(one, v))
                why = NULL;
        }
    }
    if (!why)
        return true;
    Diag *d = elab_error(e, CODE_VALUE, span, "%s is %s, outside %s", what, plain_text(e, v), why);
    if (d && declared.file)
        note_at(d, declared, "the range is declared here");
    return false;
}
