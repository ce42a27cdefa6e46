#include "model_text.h"
#include <math.h>
#include <string.h>

/* In statements $12 stands for the name of value 12, and # for the batch dimension. */

typedef ModelText Gen;

/* ---- random choices: splitmix64 ---- */

static uint64_t next(Gen *g)
{
    uint64_t z = g->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int draw(Gen *g, int n)
{
    return (int)(next(g) % (uint64_t)n);
}

static int chance(Gen *g, int percent)
{
    return draw(g, 100) < percent;
}

static double between(Gen *g, double low, double high)
{
    return low + (high - low) * (double)(next(g) >> 11) * 0x1p-53;
}

/* A number with few digits, so that texts stay readable. */
static double number(Gen *g, double low, double high)
{
    return floor(between(g, low, high) * 64 + 0.5) / 64;
}

static const char *word(Gen *g, const char *const *words, int n)
{
    return words[draw(g, n)];
}

/* ---- shapes ---- */

static Size fixed(int64_t count)
{
    return (Size){0, count};
}

static int same_size(Size a, Size b)
{
    return a.rows == b.rows && a.count == b.count;
}

static int same_shapes(const Shape *a, const Shape *b)
{
    int same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = same_size(a->size[i], b->size[i]);
    return same;
}

static int64_t most(const Gen *g, Size s)
{
    return s.rows ? s.rows * g->batch : s.count;
}

static int64_t elements(const Gen *g, const Shape *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n *= most(g, s->size[i]);
    return n;
}

static const char *size_text(Gen *g, Size s)
{
    if (!s.rows)
        return arena_printf(g->arena, "%d", (int)s.count);
    return s.rows == 1 ? "#" : arena_printf(g->arena, "%d * #", (int)s.rows);
}

static const char *shape_list(Gen *g, const Shape *s)
{
    const char *text = "";
    for (int i = 0; i < s->rank; i++)
        text = arena_printf(g->arena, "%s%s%s", text, i ? ", " : "", size_text(g, s->size[i]));
    return text;
}

static const char *type_name(Gen *g, const char *element, const Shape *s)
{
    return s->rank ? arena_printf(g->arena, "%s[%s]", element, shape_list(g, s)) : element;
}

static int is_fixed(const Shape *s, int first)
{
    for (int i = first; i < s->rank; i++)
        if (s->size[i].rows)
            return 0;
    return 1;
}

static Shape shape1(Size a)
{
    return (Shape){1, {a}};
}

static Shape shape2(Size a, Size b)
{
    return (Shape){2, {a, b}};
}

/* Small sizes; 33 crosses the lanes of a sum and a block of a product. */
static int64_t some_size(Gen *g)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 8, 33};
    return sizes[draw(g, (int)(sizeof sizes / sizeof *sizes))];
}

/* ---- values ---- */

/* A value whose statement reads a, b and c (-1: nothing); the first %d of the text is its own
 * number. */
static int add_value(Gen *g, ValueKind kind, Shape shape, double low, double high, int a, int b,
                     int c)
{
    ModelValue *v = &g->value[g->values];
    int read[] = {a, b, c};
    *v = (ModelValue){.kind = kind, .shape = shape, .low = low, .high = high};
    v->by_row = shape.rank > 0 && shape.size[0].rows == 1;
    for (int i = 0; i < 3; i++)
        if (read[i] >= 0) {
            const ModelValue *x = &g->value[read[i]];
            v->read[v->reads++] = read[i];
            g->value[read[i]].uses++;
            /* an operand without rows is the same for all rows; one with rows elsewhere mixes
             * them */
            if (!x->by_row && !is_fixed(&x->shape, 0))
                v->by_row = 0;
        }
    g->statements++;
    return g->values++;
}

/* An operand that is the same in every row must not come from rows. */
static void mixes_rows(Gen *g, int v)
{
    g->value[v].by_row = 0;
}

static void say(Gen *g, int v, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say(Gen *g, int v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g->value[v].statement =
        arena_printf(g->arena, "$%d = %s;", v, arena_vprintf(g->arena, format, args));
    va_end(args);
}

/* Statements of another form than `value = …;`. */
static void say_all(Gen *g, int v, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void say_all(Gen *g, int v, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g->value[v].statement = arena_vprintf(g->arena, format, args);
    va_end(args);
}

static int reads_rows_of_others(const Gen *g, int v)
{
    for (int i = 0; i < g->value[v].reads; i++) {
        const ModelValue *x = &g->value[g->value[v].read[i]];
        if (x->shape.rank == 0 || !x->shape.size[0].rows)
            if (x->reads) /* made from something: maybe from rows */
                return 1;
    }
    return 0;
}

/* A value of the kind and rank, one that nobody reads if possible; -1: none. */
static int pick(Gen *g, ValueKind kind, int least, int most_)
{
    int found[MAX_VALUES], n = 0, fresh[MAX_VALUES], m = 0;
    for (int i = 0; i < g->values; i++) {
        const ModelValue *v = &g->value[i];
        if (v->kind != kind || v->shape.rank < least || v->shape.rank > most_)
            continue;
        found[n++] = i;
        if (!v->uses)
            fresh[m++] = i;
    }
    if (m && chance(g, 80))
        return fresh[draw(g, m)];
    return n ? found[draw(g, n)] : -1;
}

static double largest(const ModelValue *v)
{
    return fmax(fabs(v->low), fabs(v->high));
}

/* v, or a value made from it, with elements in [low, high]. */
static int fit(Gen *g, int v, double low, double high)
{
    const ModelValue *x = &g->value[v];
    if (x->low >= low && x->high <= high)
        return v;
    if (low == -high && chance(g, 50)) {
        double factor = floor(high / largest(x) * 1024) / 1024;
        if (factor > 0) {
            int r = add_value(g, REAL, x->shape, x->low * factor, x->high * factor, v, -1, -1);
            say(g, r, "$%d * %.10g", v, factor);
            return r;
        }
    }
    int r = add_value(g, REAL, x->shape, low, high, v, -1, -1);
    int how = draw(g, 3);
    if (how == 0)
        say(g, r, "clamp($%d, min = %.9g, max = %.9g)", v, low, high);
    else if (how == 1)
        say(g, r, "sigmoid($%d) * %.9g + %.9g", v, high - low, low);
    else
        say(g, r, "tanh($%d) * %.9g + %.9g", v, (high - low) / 2, (high + low) / 2);
    return r;
}

/* A real operand with elements in [low, high]; -1: there is none of that rank. */
static int operand(Gen *g, double low, double high, int least, int most_)
{
    int v = pick(g, REAL, least, most_);
    return v < 0 ? v : fit(g, v, low, high);
}

static const char *weight_type(Gen *g)
{
    return chance(g, 12) ? "f32" : "float";
}

/* A parameter of its own: uniform in [low, high]. Its number is that of the value. */
static int weight(Gen *g, Shape shape, double low, double high)
{
    int v = add_value(g, REAL, shape, low - 0.25, high + 0.25, -1, -1, -1);
    g->value[v].by_row = 0;
    const char *type = type_name(g, weight_type(g), &shape);
    const char *init = low == 0 && high == 0 ? "zeros()"
                       : low == high         ? "ones()"
                                     : arena_printf(g->arena, "uniform(%.9g, %.9g)", low, high);
    if (shape.rank == 2 && same_size(shape.size[0], shape.size[1]) && chance(g, 30))
        init = chance(g, 50) ? "eye()" : "orthogonal()";
    else if (shape.rank == 2 && low == -high && chance(g, 20))
        init = chance(g, 50) ? "he_normal()" : "xavier_uniform()";
    else if (low == -high && chance(g, 20))
        init = arena_printf(g->arena, "normal(0, %.9g)", high / 3);
    g->value[v].declared = arena_printf(g->arena, "param p%d: %s = %s;", v, type, init);
    say(g, v, "p%d", v);
    if (!g->first_weight)
        g->first_weight = arena_printf(g->arena, "p%d", v);
    g->trains++;
    return v;
}

/* A shape that broadcasts to s, of constant sizes. */
static Shape narrower(Gen *g, const Shape *s)
{
    Shape r = {0};
    int from = draw(g, s->rank + 1);
    while (from < s->rank && s->size[from].rows)
        from++;
    for (int i = from; i < s->rank; i++)
        r.size[r.rank++] = chance(g, 20) || s->size[i].rows ? fixed(1) : s->size[i];
    return r;
}

/* A second operand for element-wise ops with v: a value of its shape, one that broadcasts, or a new
 * weight. v's shape is the result's. */
static int partner(Gen *g, int v, double low, double high)
{
    const Shape *s = &g->value[v].shape;
    int found[MAX_VALUES], n = 0;
    for (int i = 0; i < g->values; i++) {
        const ModelValue *x = &g->value[i];
        if (i != v && x->kind == REAL && same_shapes(&x->shape, s))
            found[n++] = i;
    }
    if (n && chance(g, 60))
        return fit(g, found[draw(g, n)], low, high);
    return fit(g, weight(g, narrower(g, s), fmax(low + 0.25, -1), fmin(high - 0.25, 1.5)), low,
               high);
}

/* ---- element-wise ops ---- */

static double relu_(double x)
{
    return x > 0 ? x : 0;
}
static double softplus_(double x)
{
    return log1p(exp(x));
}
static double abs_top(double x)
{
    return x;
}

static const struct Unary {
    const char *text;     /* of the call, %s the operand, %g a number in [from, to] */
    double low, high;     /* of the operand */
    double (*at)(double); /* monotone: gives the result's range; NULL: [least, greatest] */
    double least, greatest;
    double from, to;
} unary[] = {
    {"-$%d", -20, 20, NULL, -20, 20, 0, 0},
    {"abs($%d)", -20, 20, NULL, 0, 20, 0, 0},
    {"sign($%d)", -20, 20, NULL, -1, 1, 0, 0},
    {"square($%d)", -3, 3, NULL, 0, 9, 0, 0},
    {"reciprocal($%d)", 0.25, 8, NULL, 0.125, 4, 0, 0},
    {"sqrt($%d)", 0.05, 9, sqrt, 0, 0, 0, 0},
    {"rsqrt($%d)", 0.1, 9, NULL, 0.3, 3.2, 0, 0},
    {"exp($%d)", -4, 2, exp, 0, 0, 0, 0},
    {"expm1($%d)", -4, 2, expm1, 0, 0, 0, 0},
    {"log($%d)", 0.1, 20, log, 0, 0, 0, 0},
    {"log1p($%d)", -0.75, 20, log1p, 0, 0, 0, 0},
    {"sin($%d)", -12, 12, NULL, -1, 1, 0, 0},
    {"cos($%d)", -12, 12, NULL, -1, 1, 0, 0},
    {"erf($%d)", -3, 3, erf, 0, 0, 0, 0},
    {"tanh($%d)", -6, 6, tanh, 0, 0, 0, 0},
    {"sigmoid($%d)", -12, 12, NULL, 0, 1, 0, 0},
    {"relu($%d)", -20, 20, relu_, 0, 0, 0, 0},
    {"leaky_relu($%d)", -20, 20, abs_top, 0, 0, 0, 0},
    {"leaky_relu($%d, slope = %.9g)", -20, 20, abs_top, 0, 0, 0.05, 0.5},
    {"elu($%d)", -6, 6, abs_top, 0, 0, 0, 0},
    {"elu($%d, alpha = %.9g)", -6, 6, abs_top, 0, 0, 0.25, 1},
    {"silu($%d)", -12, 12, NULL, -0.3, 12, 0, 0},
    {"gelu($%d)", -6, 6, NULL, -0.2, 6, 0, 0},
    {"$%d |> gelu", -6, 6, NULL, -0.2, 6, 0, 0},
    {"gelu($%d, approx = \"tanh\")", -6, 6, NULL, -0.2, 6, 0, 0},
    {"softplus($%d)", -12, 12, softplus_, 0, 0, 0, 0},
    {"softplus($%d, beta = %.9g, threshold = 6)", -8, 8, NULL, 0, 10, 0.5, 2},
    {"clamp($%d, min = -0.75, max = %.9g)", -20, 20, NULL, -0.75, 1.5, 0.5, 1.5},
    {"detach($%d)", -20, 20, abs_top, 0, 0, 0, 0},
    {"f32($%d)", -20, 20, abs_top, 0, 0, 0, 0},
    {"f16($%d)", -20, 20, abs_top, 0, 0, 0, 0},
    {"bf16($%d)", -20, 20, abs_top, 0, 0, 0, 0},
    {"squash($%d)", -20, 20, NULL, -0.5, 0.5, 0, 0},
    {"$%d * gain", -20, 20, abs_top, 0, 0, 0, 0},
    {"$%d + %.9g", -18, 18, NULL, -20, 20, -2, 2},
    {"$%d * %.9g", -12, 12, NULL, -18, 18, -1.5, 1.5},
};
enum { UNARY = sizeof unary / sizeof *unary };

static int make_unary(Gen *g, int which)
{
    const struct Unary *u = &unary[which];
    int v = operand(g, u->low, u->high, 0, MAX_SHAPE);
    if (v < 0)
        return -1;
    const ModelValue *x = &g->value[v];
    double low = u->at ? u->at(x->low) : u->least, high = u->at ? u->at(x->high) : u->greatest;
    int r = add_value(g, REAL, x->shape, low, high, v, -1, -1);
    double n = number(g, u->from, u->to);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (u->from != u->to)
        say(g, r, u->text, v, n);
    else
        say(g, r, u->text, v);
#pragma GCC diagnostic pop
    g->uses_def |= !strncmp(u->text, "squash", 6);
    return r;
}

static const struct Binary {
    const char *text;
    double low, high;   /* of the first operand */
    double low2, high2; /* of the second */
    double least, greatest;
} binary[] = {
    {"$%d + $%d", -10, 10, -10, 10, -20, 20},
    {"$%d - $%d", -10, 10, -10, 10, -20, 20},
    {"$%d * $%d", -4, 4, -4, 4, -16, 16},
    {"$%d / $%d", -8, 8, 0.4, 4, -20, 20},
    {"min($%d, $%d)", -20, 20, -20, 20, -20, 20},
    {"max($%d, $%d)", -20, 20, -20, 20, -20, 20},
    {"minimum($%d, $%d)", -20, 20, -20, 20, -20, 20},
    {"maximum($%d, $%d)", -20, 20, -20, 20, -20, 20},
    {"pow($%d, $%d)", 0.25, 3, -2, 2, 0, 16},
};
enum { BINARY = sizeof binary / sizeof *binary };

static int make_binary(Gen *g, int which)
{
    const struct Binary *u = &binary[which];
    int a = operand(g, u->low, u->high, 0, MAX_SHAPE);
    if (a < 0)
        return -1;
    int b = partner(g, a, u->low2, u->high2);
    int r = add_value(g, REAL, g->value[a].shape, u->least, u->greatest, a, b, -1);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    say(g, r, u->text, a, b);
#pragma GCC diagnostic pop
    return r;
}

static int make_other(Gen *g, int which)
{
    int v = operand(g, which ? -16 : 0.25, which ? 16 : 8, 0, MAX_SHAPE);
    if (v < 0)
        return -1;
    int r = add_value(g, REAL, g->value[v].shape, which ? -16 : -8, which ? 16 : 8, v, -1, -1);
    if (which)
        say_all(g, r, "$%d = $%d;\nif training {\n    $%d = $%d * 0.75;\n}", r, v, r, v);
    else
        say(g, r, "%.9g / $%d", number(g, -2, 2), v);
    return r;
}

/* Terms of a loss as values of the model. */
static int make_terms(Gen *g, int which)
{
    static const char *const names[] = {"mse", "l1", "smooth_l1", "bce_with_logits", "bce"};
    int is_bce = which == 4, is_logits = which == 3;
    int a = is_bce ? operand(g, 0.1, 0.9, 0, MAX_SHAPE) : operand(g, -4, 4, 0, MAX_SHAPE);
    if (a < 0)
        return -1;
    Shape s = g->value[a].shape;
    int b = -1;
    for (int i = 0; i < g->values && b < 0; i++)
        if (i != a && g->value[i].kind == REAL && same_shapes(&g->value[i].shape, &s))
            b = i;
    if (b >= 0)
        b = fit(g, b, is_bce || is_logits ? 0 : -4, is_bce || is_logits ? 1 : 4);
    int r = add_value(g, REAL, s, 0, is_bce ? 3 : 64, a, b, -1);
    const char *x =
        is_bce ? arena_printf(g->arena, "f32($%d)", a) : arena_printf(g->arena, "$%d", a);
    const char *y = b < 0    ? "0.25"
                    : is_bce ? arena_printf(g->arena, "f32($%d)", b)
                             : arena_printf(g->arena, "$%d", b);
    say(g, r, "%s(%s, %s, %sreduce = \"none\")", names[which], x, y,
        which == 2 ? "beta = 0.75, " : "");
    return r;
}

static int make_comparison(Gen *g, int which)
{
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    int a = operand(g, -20, 20, 0, MAX_SHAPE);
    if (a < 0)
        return -1;
    int by_number = chance(g, 30), b = by_number ? -1 : partner(g, a, -20, 20);
    int r = add_value(g, TRUTH, g->value[a].shape, 0, 1, a, b, -1);
    if (by_number)
        say(g, r, "$%d %s %.9g", a, signs[which], number(g, -1, 1));
    else
        say(g, r, "$%d %s $%d", a, signs[which], b);
    return r;
}

static int truth(Gen *g)
{
    int t = pick(g, TRUTH, 0, MAX_SHAPE);
    return t >= 0 ? t : make_comparison(g, 2 + draw(g, 4));
}

static int make_logic(Gen *g, int which)
{
    int a = truth(g), b = -1;
    if (a < 0)
        return -1;
    for (int i = 0; i < g->values; i++)
        if (i != a && g->value[i].kind == TRUTH &&
            same_shapes(&g->value[i].shape, &g->value[a].shape))
            b = i;
    if (which < 2 && b < 0) {
        int x = -1;
        for (int i = 0; i < g->values; i++)
            if (g->value[i].kind == REAL && same_shapes(&g->value[i].shape, &g->value[a].shape))
                x = i;
        if (x < 0)
            return -1;
        b = add_value(g, TRUTH, g->value[a].shape, 0, 1, x, -1, -1);
        say(g, b, "$%d > 0.125", x);
    }
    int r = add_value(g, TRUTH, g->value[a].shape, 0, 1, a, which < 2 ? b : -1, -1);
    if (which == 2)
        say(g, r, "!$%d", a);
    else
        say(g, r, "$%d %s $%d", a, which ? "||" : "&&", b);
    return r;
}

static int make_where(Gen *g, int which)
{
    (void)which;
    int c = truth(g), a = -1;
    if (c < 0)
        return -1;
    for (int i = 0; i < g->values; i++)
        if (g->value[i].kind == REAL && same_shapes(&g->value[i].shape, &g->value[c].shape))
            a = i;
    if (a < 0) {
        int r = add_value(g, REAL, g->value[c].shape, 0, 1, c, -1, -1);
        say(g, r, "where($%d, 1.0, 0.25)", c);
        return r;
    }
    a = fit(g, a, -10, 10);
    int b = chance(g, 70) ? partner(g, a, -10, 10) : -1;
    int r = add_value(g, REAL, g->value[c].shape, -10, 10, c, a, b);
    if (b >= 0)
        say(g, r, "where($%d, $%d, $%d)", c, a, b);
    else
        say(g, r, "where($%d, $%d, 0.5)", c, a);
    return r;
}

/* ---- reductions and rows ---- */

/* Some axes, sorted; returns their number, and the product of their sizes. */
static int some_axes(Gen *g, const Shape *s, int *axis, int64_t *count)
{
    int n = 0, want = 1 + draw(g, s->rank);
    *count = 1;
    for (int i = 0; i < s->rank; i++)
        if (draw(g, s->rank - i) < want - n) {
            *count *= most(g, s->size[i]);
            axis[n++] = i;
        }
    return n;
}

static int make_reduction(Gen *g, int which)
{
    static const char *const names[] = {"sum", "mean", "max", "min", "var"};
    int axis[MAX_SHAPE], v = operand(g, -6, 6, 1, MAX_SHAPE);
    int64_t count;
    if (v < 0)
        return -1;
    Shape s = g->value[v].shape, to = {0};
    int n = some_axes(g, &s, axis, &count), keep = chance(g, 30), over_rows = 0;
    if (which == 0 && (double)count * 6 > 60)
        v = fit(g, v, -1, 1);
    const char *axes = "";
    for (int i = 0, k = 0; i < s.rank; i++) {
        if (k < n && axis[k] == i) {
            axes = arena_printf(g->arena, "%s%s%d", axes, k ? ", " : "",
                                chance(g, 30) ? i - s.rank : i);
            over_rows |= s.size[i].rows != 0;
            if (keep)
                to.size[to.rank++] = fixed(1);
            k++;
        } else {
            to.size[to.rank++] = s.size[i];
        }
    }
    double top = largest(&g->value[v]);
    double high = which == 0 ? top * (double)count : which == 4 ? 2 * top * top : top;
    int r = add_value(g, REAL, to, which == 4 ? 0 : -high, high, v, -1, -1);
    if (over_rows)
        mixes_rows(g, r);
    const char *more =
        which == 4 && (over_rows || count == 1 || chance(g, 40)) ? ", correction = 0" : "";
    if (n == s.rank && !keep && chance(g, 50))
        say(g, r, "%s($%d%s)", names[which], v, more);
    else if (n == 1 && chance(g, 50))
        say(g, r, "%s($%d, axis = %s, keep = %s%s)", names[which], v, axes, keep ? "true" : "false",
            more);
    else
        say(g, r, "%s($%d, axes = [%s]%s%s)", names[which], v, axes, keep ? ", keep = true" : "",
            more);
    return r;
}

static int make_argmax(Gen *g, int which)
{
    (void)which;
    int v = operand(g, -20, 20, 1, MAX_SHAPE);
    if (v < 0)
        return -1;
    Shape s = g->value[v].shape, to = {0};
    int axis = draw(g, s.rank), over_rows = s.size[axis].rows != 0;
    for (int i = 0; i < s.rank; i++)
        if (i != axis)
            to.size[to.rank++] = s.size[i];
    int r = add_value(g, INTEGER, to, 0, (double)most(g, s.size[axis]) - 1, v, -1, -1);
    if (over_rows)
        mixes_rows(g, r);
    say(g, r, "argmax($%d, axis = %d)", v, axis);
    return r;
}

static int make_softmax(Gen *g, int which)
{
    int v = operand(g, -8, 8, 1, MAX_SHAPE);
    if (v < 0)
        return -1;
    Shape s = g->value[v].shape;
    int axis = chance(g, 60) ? s.rank - 1 : draw(g, s.rank), region = chance(g, 20);
    double top = largest(&g->value[v]);
    int r = add_value(g, REAL, s, which ? -2 * top - log((double)most(g, s.size[axis])) : 0,
                      which ? 0 : 1, v, -1, -1);
    if (s.size[axis].rows)
        mixes_rows(g, r);
    const char *name = which ? "log_softmax" : "softmax";
    if (region)
        say_all(g, r, "precision f32 {\n    $%d = %s($%d, axis = %d);\n}", r, name, v, axis);
    else
        say(g, r, "%s($%d, axis = %d)", name, v, axis);
    return r;
}

/* ---- products and layers ---- */

/* An operand whose product over k terms stays small. */
static double weight_range(double top, int64_t k)
{
    double range = fmin(1, 6 / (top * (double)k));
    return fmax(range, 0.03125);
}

static int make_matmul(Gen *g, int which)
{
    int a = operand(g, -4, 4, which == 4 || which == 5 ? 3 : 2, which == 4 || which == 5 ? 3 : 3);
    if (a < 0)
        return -1;
    Shape s = g->value[a].shape, to = s;
    Size k = s.size[s.rank - 1];
    double top = largest(&g->value[a]);
    if (k.rows)
        return -1;
    double range = weight_range(top, k.count), high = (range + 0.25) * top * (double)k.count;
    Size m = fixed(some_size(g));
    int b, r;
    to.size[s.rank - 1] = m;
    switch (which) {
    case 0: /* x @ w */
    case 1: /* x @ w^T */
    case 2: /* function call */
        b = which == 1 ? weight(g, shape2(m, k), -range, range)
                       : weight(g, shape2(k, m), -range, range);
        r = add_value(g, REAL, to, -high, high, a, b, -1);
        if (which == 2)
            say(g, r, "matmul($%d, $%d)", a, b);
        else
            say(g, r, which ? "$%d @ transpose($%d)" : "$%d @ $%d", a, b);
        return r;
    case 3: /* matrix times vector */
        b = weight(g, shape1(k), -range, range);
        to.rank--;
        r = add_value(g, REAL, to, -high, high, a, b, -1);
        say(g, r, "$%d @ $%d", a, b);
        return r;
    case 4: /* each matrix of a stack with its own transpose */
        to.size[2] = s.size[1];
        high = top * top * (double)k.count;
        r = add_value(g, REAL, to, -high, high, a, -1, -1);
        say(g, r, "$%d @ transpose($%d)", a, a);
        if (s.size[1].rows)
            mixes_rows(g, r);
        return r;
    case 5: /* transposed left operand, stacked */
        to.size[1] = k;
        to.size[2] = k;
        high = top * top * (double)most(g, s.size[1]);
        if (high > 400)
            return -1;
        r = add_value(g, REAL, to, -high, high, a, -1, -1);
        say(g, r, "transpose($%d) @ $%d", a, a);
        if (s.size[1].rows)
            mixes_rows(g, r);
        return r;
    default: /* over the rows */
        if (s.rank != 2)
            return -1;
        high = top * top * (double)most(g, s.size[0]);
        if (high > 400)
            return -1;
        r = add_value(g, REAL, shape2(k, k), -high, high, a, -1, -1);
        mixes_rows(g, r);
        say(g, r, "transpose($%d) @ $%d", a, a);
        return r;
    }
}

static int make_linear(Gen *g, int which)
{
    int a = operand(g, -4, 4, 2, 3);
    if (a < 0)
        return -1;
    Shape s = g->value[a].shape, to = s;
    Size k = s.size[s.rank - 1];
    if (k.rows)
        return -1;
    int64_t m = which == 3 ? k.count : some_size(g);
    to.size[s.rank - 1] = fixed(m);
    double high = (1 / sqrt((double)k.count) + 0.1) * (largest(&g->value[a]) * (double)k.count + 1);
    static const char *const more[] = {"", ", bias = false", ", layout = \"in_out\"",
                                       ", init = normal(0, 0.125)"};
    int r = add_value(g, REAL, to, -high, high, a, -1, -1);
    if (which == 4) { /* a layer made of a model of the file */
        if (s.rank != 2)
            to.rank = s.rank;
        g->uses_block = 1;
        g->value[r].low = -1;
        g->value[r].high = 1;
        g->value[r].declared = arena_printf(g->arena, "layer b%d = Block(out = %d);", r, (int)m);
        say(g, r, "$%d |> b%d", a, r);
    } else if (which == 3) { /* one layer called twice: shared weights */
        g->value[r].declared =
            arena_printf(g->arena, "layer fc%d = linear(%d%s);", r, (int)m, more[draw(g, 4)]);
        g->value[r].low = -high;
        say(g, r, "fc%d(tanh(fc%d($%d)))", r, r, a);
    } else if (which == 5) { /* an array of layers in a loop */
        g->value[r].declared =
            arena_printf(g->arena, "layer h%d[2] = linear(%d);", r, (int)k.count);
        g->value[r].shape = s;
        g->value[r].low = -1;
        g->value[r].high = 1;
        say_all(g, r, "$%d = float($%d);\nrepeat i in 0 .. 2 {\n    $%d = h%d[i]($%d) |> tanh;\n}",
                r, a, r, r, r);
    } else {
        g->value[r].declared = arena_printf(g->arena, "layer fc%d = linear(%d%s);", r, (int)m,
                                            which == 1   ? more[1]
                                            : which == 2 ? more[2]
                                                         : more[0]);
        say(g, r, "fc%d($%d)", r, a);
    }
    g->trains++;
    return r;
}

static int index_input(Gen *g)
{
    for (int i = 0; i < g->inputs; i++)
        if (g->value[i].kind == INTEGER)
            return i;
    return -1;
}

static int make_indexed(Gen *g, int which)
{
    int64_t width = some_size(g), rows = g->rows_of_table;
    int k = index_input(g), r;
    switch (which) {
    case 0:
        r = add_value(g, REAL, shape2((Size){1, 0}, fixed(width)), -4, 4, k, -1, -1);
        g->value[r].declared =
            arena_printf(g->arena, "layer e%d = embedding(%d, %d);", r, (int)rows, (int)width);
        say(g, r, "e%d($%d)", r, k);
        g->trains++;
        return r;
    case 1: { /* rows of a weight */
        int w = weight(g, shape2(fixed(rows), fixed(width)), -1, 1);
        r = add_value(g, REAL, shape2((Size){1, 0}, fixed(width)), -1.5, 1.5, w, k, -1);
        say(g, r, "gather($%d, $%d)", w, k);
        return r;
    }
    case 2:
        r = add_value(g, REAL, shape2((Size){1, 0}, fixed(rows)), 0, 1, k, -1, -1);
        say(g, r, "one_hot($%d, %d)", k, (int)rows);
        return r;
    case 3: { /* an embedding whose table is also the output matrix */
        r = add_value(g, REAL, shape2((Size){1, 0}, fixed(rows)), -40, 40, k, -1, -1);
        g->value[r].declared =
            arena_printf(g->arena, "layer e%d = embedding(%d, %d, init = normal(0, 0.25));", r,
                         (int)rows, (int)width);
        say(g, r, "tanh(e%d($%d)) @ transpose(e%d.weight)", r, k, r);
        g->trains++;
        return r;
    }
    default:
        r = add_value(g, REAL, shape1(fixed(rows)), 0, (double)rows, -1, -1, -1);
        g->value[r].by_row = 0;
        say(g, r, "float(arange(%d)) * 0.25", (int)rows);
        return r;
    }
}

static int make_integers(Gen *g, int which)
{
    int k = pick(g, INTEGER, 0, MAX_SHAPE);
    if (k < 0)
        k = index_input(g);
    Shape s = g->value[k].shape;
    int r;
    if (which == 0) {
        r = add_value(g, REAL, s, 0, g->value[k].high, k, -1, -1);
        say(g, r, "float($%d)", k);
    } else if (which == 1 && g->value[k].high < 1000) {
        double top = g->value[k].high;
        r = add_value(g, INTEGER, s, -2 * top, 2 * top * top + top, k, -1, -1);
        say(g, r, "i32($%d) * i32($%d) + i32($%d) - 1", k, k, k);
        if (g->value[r].low > g->value[r].high)
            g->value[r].low = -1;
    } else {
        r = add_value(g, TRUTH, s, 0, 1, k, -1, -1);
        say(g, r, "$%d %s 2", k, chance(g, 50) ? ">=" : "==");
    }
    return r;
}

/* ---- views ---- */

static int make_view(Gen *g, int which)
{
    int v = operand(g, -20, 20, 1, MAX_SHAPE);
    if (v < 0)
        return -1;
    const ModelValue *x = &g->value[v];
    Shape s = x->shape, to = s;
    int axis = draw(g, s.rank), r;
    double low = x->low, high = x->high;
    Size size = s.size[axis];
#define RESULT() add_value(g, REAL, to, low, high, v, -1, -1)
    switch (which) {
    case 0: { /* fold the last two axes */
        if (s.rank < 2 || (s.size[s.rank - 2].rows && s.size[s.rank - 1].rows))
            return -1;
        Size a = s.size[s.rank - 2], b = s.size[s.rank - 1];
        to.rank--;
        to.size[to.rank - 1] =
            (Size){a.rows * b.count + b.rows * a.count, a.rows || b.rows ? 0 : a.count * b.count};
        r = RESULT();
        if (a.rows || b.rows)
            mixes_rows(g, r);
        say(g, r, "reshape($%d, [%s])", v, shape_list(g, &to));
        return r;
    }
    case 1: /* split an axis */
        if (s.rank == MAX_SHAPE)
            return -1;
        for (int64_t part = 2; part < 12; part++) {
            if (size.rows || size.count % part || size.count == part)
                continue;
            for (int i = s.rank; i > axis; i--)
                to.size[i] = s.size[i - 1];
            to.rank++;
            to.size[axis] = fixed(part);
            to.size[axis + 1] = fixed(size.count / part);
            r = RESULT();
            if (chance(g, 40)) { /* one size is left to the compiler */
                const char *text = "";
                for (int i = 0; i < to.rank; i++)
                    text = arena_printf(g->arena, "%s%s%s", text, i ? ", " : "",
                                        i == axis ? "-1" : size_text(g, to.size[i]));
                say(g, r, "reshape($%d, [%s])", v, text);
            } else {
                say(g, r, "reshape($%d, [%s])", v, shape_list(g, &to));
            }
            return r;
        }
        return -1;
    case 2: { /* permute */
        int order[MAX_SHAPE] = {0, 1, 2, 3};
        const char *text = "";
        for (int i = s.rank - 1; i > 0; i--) {
            int k = draw(g, i + 1), swap = order[i];
            order[i] = order[k];
            order[k] = swap;
        }
        for (int i = 0; i < s.rank; i++) {
            to.size[i] = s.size[order[i]];
            text = arena_printf(g->arena, "%s%s%d", text, i ? ", " : "", order[i]);
        }
        r = RESULT();
        if (order[0] != 0)
            mixes_rows(g, r);
        say(g, r, "permute($%d, [%s])", v, text);
        return r;
    }
    case 3: /* transpose */
        if (s.rank < 2)
            return -1;
        to.size[s.rank - 1] = s.size[s.rank - 2];
        to.size[s.rank - 2] = s.size[s.rank - 1];
        r = RESULT();
        if (s.rank == 2)
            mixes_rows(g, r);
        say(g, r, "transpose($%d)", v);
        return r;
    case 4:   /* slice */
    case 5: { /* index */
        if (size.rows || size.count < 2)
            return -1;
        int from = draw(g, (int)size.count), until = from + 1 + draw(g, (int)size.count - from);
        const char *text = "";
        for (int i = 0; i < axis; i++)
            text = arena_printf(g->arena, "%s:, ", text);
        to.size[axis] = fixed(until - from);
        if (which == 5)
            for (to.rank--, r = axis; r < to.rank; r++)
                to.size[r] = s.size[r + 1];
        r = RESULT();
        if (which == 5)
            say(g, r, "$%d[%s%d]", v, text, chance(g, 30) ? from - (int)size.count : from);
        else if (from == 0 && chance(g, 50))
            say(g, r, "$%d[%s : %d]", v, text, until);
        else
            say(g, r, "$%d[%s%d : %d]", v, text, from, until);
        return r;
    }
    case 6: { /* chunk */
        int parts = size.count % 2 == 0 ? 2 : 3;
        if (size.rows || size.count % parts || size.count == 0)
            return -1;
        to.size[axis] = fixed(size.count / parts);
        low = -40;
        high = 40;
        r = RESULT();
        if (parts == 2)
            say_all(g, r, "($%da, $%db) = chunk($%d, 2, axis = %d);\n$%d = $%db - $%da;", r, r, v,
                    axis, r, r, r);
        else
            say_all(
                g, r,
                "($%da, $%db, $%dc) = $%d |> chunk(3, axis = %d);\n$%d = $%da * 0.5 + $%db - $%dc;",
                r, r, r, v, axis, r, r, r, r);
        return r;
    }
    case 7: /* split */
        if (size.rows || size.count < 3)
            return -1;
        to.size[axis] = fixed((size.count + 1) / 2);
        r = RESULT();
        say(g, r, "split($%d, %d, axis = %d)[0]", v, (int)(size.count + 1) / 2, axis);
        return r;
    case 8: /* expand */
        if (s.rank == MAX_SHAPE)
            return -1;
        for (int i = s.rank; i > 0; i--)
            to.size[i] = s.size[i - 1];
        to.size[0] = fixed(2 + draw(g, 2));
        to.rank++;
        if (elements(g, &to) > 2048)
            return -1;
        r = RESULT();
        mixes_rows(g, r);
        say(g, r, "expand($%d, [%s])", v, shape_list(g, &to));
        return r;
    case 9: /* unsqueeze */
        if (s.rank == MAX_SHAPE)
            return -1;
        for (int i = s.rank; i > axis; i--)
            to.size[i] = s.size[i - 1];
        to.size[axis] = fixed(1);
        to.rank++;
        r = RESULT();
        say(g, r, "unsqueeze($%d, axis = %d)", v, axis);
        return r;
    case 10: /* squeeze */
        for (axis = 0; axis < s.rank && (s.size[axis].rows || s.size[axis].count != 1);)
            axis++;
        if (axis == s.rank)
            return -1;
        for (int i = axis; i < s.rank - 1; i++)
            to.size[i] = s.size[i + 1];
        to.rank--;
        r = RESULT();
        mixes_rows(g, r);
        say(g, r, "squeeze($%d, axis = %d)", v, axis);
        return r;
    case 11: /* flatten */
        if (s.rank < 3 || !is_fixed(&s, 1))
            return -1;
        to.rank = 2;
        to.size[1] = fixed(1);
        for (int i = 1; i < s.rank; i++)
            to.size[1].count *= s.size[i].count;
        r = RESULT();
        say(g, r, chance(g, 50) ? "flatten($%d)" : "flatten($%d, start = 1)", v);
        return r;
    default: { /* concat */
        int w = -1;
        for (int i = 0; i < g->values && w < 0; i++) {
            Shape other = g->value[i].shape;
            if (i == v || g->value[i].kind != REAL || other.rank != s.rank || size.rows ||
                other.size[axis].rows)
                continue;
            int64_t both = size.count + other.size[axis].count;
            to.size[axis] = fixed(both);
            other.size[axis] = fixed(both);
            if (same_shapes(&other, &to) && elements(g, &to) <= 2048)
                w = i;
        }
        if (w < 0)
            return -1;
        low = fmin(low, g->value[w].low);
        high = fmax(high, g->value[w].high);
        r = add_value(g, REAL, to, low, high, v, w, -1);
        say(g, r, chance(g, 50) ? "concat([$%d, $%d], axis = %d)" : "concat([$%d, $%d], axis = %d)",
            v, w, axis);
        return r;
    }
    }
#undef RESULT
}

/* ---- draws, buffers, generators ---- */

static int make_drawn(Gen *g, int which)
{
    int v = operand(g, -8, 8, 1, MAX_SHAPE), r;
    if (v < 0)
        return -1;
    Shape s = g->value[v].shape;
    double low = g->value[v].low, high = g->value[v].high;
    switch (which) {
    case 0:
        r = add_value(g, REAL, s, fmin(0, low / 0.75), fmax(0, high / 0.75), v, -1, -1);
        say(g, r, "dropout($%d, 0.25)", v);
        break;
    case 1:
        r = add_value(g, REAL, s, low, high + 1, v, -1, -1);
        say(g, r, "$%d + rand([%s])", v, shape_list(g, &s));
        break;
    case 2:
        r = add_value(g, REAL, s, low - 1.5, high + 1.5, v, -1, -1);
        say(g, r, "$%d + 0.25 * randn([%s])", v, shape_list(g, &s));
        break;
    default:
        r = add_value(g, REAL, s, low - 1, high + 1, v, -1, -1);
        if (chance(g, 50))
            say(g, r, "$%d - ones_like($%d)", v, v);
        else
            say(g, r, "$%d - full([%s], 0.5)", v, shape_list(g, &s));
        return r;
    }
    mixes_rows(g, r); /* element numbers count through the rows of a step */
    return r;
}

/* A running mean that training stores and everything reads. */
static int make_buffer(Gen *g, int which)
{
    (void)which;
    int v = operand(g, -4, 4, 2, 2);
    if (v < 0 || g->value[v].shape.size[1].rows)
        return -1;
    Shape s = g->value[v].shape;
    int r = add_value(g, REAL, s, -8, 8, v, -1, -1);
    g->value[r].declared = arena_printf(g->arena, "buffer s%d: float[%d] = %s;", r,
                                        (int)s.size[1].count, chance(g, 50) ? "zeros()" : "ones()");
    mixes_rows(g, r);
    say_all(g, r,
            "if training {\n    s%d := s%d * 0.75 + mean(detach($%d), axis = 0) * 0.25;\n}\n$%d = "
            "$%d - s%d;",
            r, r, v, r, v, r);
    return r;
}

/* ---- a model ---- */

typedef struct Maker {
    int (*make)(Gen *g, int which);
    int variants;
} Maker;
static const Maker makers[] = {
    {make_unary, UNARY}, {make_binary, BINARY}, {make_terms, 5},     {make_comparison, 6},
    {make_logic, 3},     {make_where, 1},       {make_reduction, 5}, {make_argmax, 1},
    {make_softmax, 2},   {make_matmul, 7},      {make_linear, 6},    {make_indexed, 5},
    {make_integers, 3},  {make_view, 13},       {make_drawn, 4},     {make_buffer, 1},
    {make_other, 2},
};
enum { MAKERS = sizeof makers / sizeof *makers };

static int make_kind(Gen *g, int kind)
{
    for (int i = 0; i < MAKERS; i++) {
        if (kind < makers[i].variants)
            return makers[i].make(g, kind);
        kind -= makers[i].variants;
    }
    return -1;
}

static int kinds(void)
{
    int n = 0;
    for (int i = 0; i < MAKERS; i++)
        n += makers[i].variants;
    return n;
}

static void add_input(Gen *g, ValueKind kind, const char *name, Shape shape, double low,
                      double high)
{
    int v = add_value(g, kind, shape, low, high, -1, -1, -1);
    g->value[v].input = name;
    g->inputs++;
    g->statements--;
}

static void choose_training(Gen *g)
{
    static const char *const optimizers[] = {
        "sgd(net, lr = %s)",
        "sgd(net, lr = %s, momentum = 0.9)",
        "sgd(net, lr = %s, momentum = 0.9, weight_decay = 0.01, nesterov = true)",
        "sgd(net, lr = %s, momentum = 0.5, dampening = 0.25)",
        "adam(net, lr = %s)",
        "adam(net, lr = %s, betas = (0.8, 0.95), weight_decay = 0.01)",
        "adamw(net, lr = %s)",
        "adamw(net, lr = %s, eps = 1e-6, weight_decay = 0.1)",
        "rmsprop(net, lr = %s)",
        "rmsprop(net, lr = %s, alpha = 0.9, momentum = 0.5, weight_decay = 0.01)",
        "lamb(net, lr = %s)",
        "lamb(net, lr = %s, betas = (0.8, 0.9), weight_decay = 0)",
    };
    static const char *const rates[] = {"0.01",
                                        "rate",
                                        "cosine(0.02, warmup = 2)",
                                        "cosine(rate, warmup = 1, floor = 0.1)",
                                        "linear(0.02, warmup = 2)",
                                        "step(0.02, every = 1, factor = 0.5)"};
    const char *form = optimizers[g->seed % 12], *hole = strstr(form, "%s");
    const char *rate = word(g, rates, 6);
    const char *groups = ";";
    if (g->first_weight && g->trains > 1 && chance(g, 40))
        groups = arena_printf(
            g->arena,
            " {\n        group \"%s\": %s;\n        group \"*\": weight_decay = 0.05;\n    }",
            g->first_weight, chance(g, 50) ? "lr = 0.005" : "weight_decay = 0");
    g->optimizer =
        arena_printf(g->arena, "%.*s%s%s%s", (int)(hole - form), form, rate, hole + 2, groups);
    static const char *const clips[] = {NULL, "norm 0.5", "norm 100", "value 0.05"};
    g->clip = word(g, clips, 4);
    static const char *const scalers[] = {NULL, NULL, "dynamic(init = 256, window = 2)",
                                          "static(scale = 1024)"};
    g->scaler = word(g, scalers, 4);
}

ModelText *model_random(Arena *arena, uint64_t seed)
{
    ModelText *g = new (arena, ModelText);
    static const int64_t batches[] = {6, 8, 9, 12}, primes[] = {5, 3, 7, 11};
    g->arena = arena;
    g->seed = seed;
    g->random = seed * 0x632be59bd9b4e019u + 1;
    int b = draw(g, 4);
    g->batch = batches[b];
    g->prime = primes[b];
    g->rows_of_table = 3 + draw(g, 6);
    Size rows = {1, 0};
    add_input(g, REAL, "x", shape2(rows, fixed(2 + draw(g, 7))), -2, 2);
    if (chance(g, 50))
        add_input(g, REAL, "z", (Shape){3, {rows, fixed(2 + draw(g, 4)), fixed(1 + draw(g, 5))}},
                  -1, 1);
    add_input(g, INTEGER, chance(g, 50) ? "k" : "k64", shape1(rows), 0,
              (double)g->rows_of_table - 1);
    int first = make_linear(g, draw(g, 3)), want = 8 + draw(g, 40), all = kinds();
    for (int i = 0; i < 4; i++) /* every kind has its turn */
        make_kind(g, (int)((seed * 4 + (uint64_t)i) % (uint64_t)all));
    for (int tries = 0; g->statements < want && g->values < MAX_VALUES - 40 && tries < 400;
         tries++) {
        const Maker *m = &makers[draw(g, MAKERS)];
        int before = g->values, r = m->make(g, draw(g, m->variants));
        if (r >= 0 && elements(g, &g->value[r].shape) > 2048) { /* taken back */
            for (int v = before; v < g->values; v++)
                for (int k = 0; k < g->value[v].reads; k++)
                    g->value[g->value[v].read[k]].uses--;
            g->statements -= g->values - before;
            g->values = before;
        }
    }
    for (int v = 0; v < g->values; v++)
        if (g->value[v].by_row && reads_rows_of_others(g, v))
            mixes_rows(g, v);
    /* whatever else there is, a loss reaches a weight */
    int last = add_value(g, REAL, g->value[first].shape, g->value[first].low, g->value[first].high,
                         first, -1, -1);
    say(g, last, "$%d * 0.5", first);
    choose_training(g);
    return g;
}

/* ---- what is printed ---- */

static void find_live(const ModelText *m, int *live)
{
    for (int v = 0; v < m->values; v++)
        live[v] = v < m->inputs || (!m->value[v].uses && !m->value[v].dropped);
    for (int v = m->values - 1; v >= 0; v--)
        for (int k = 0; live[v] && !m->value[v].cut && k < m->value[v].reads; k++)
            live[m->value[v].read[k]] = 1;
}

int model_is_result(const ModelText *m, int v)
{
    int live[MAX_VALUES];
    find_live(m, live);
    return v >= m->inputs && live[v] && !m->value[v].uses && !m->value[v].dropped;
}

/* Text with the names put in. */
static void put(Out *o, const ModelText *m, const char *text)
{
    for (; *text; text++) {
        if (*text == '$')
            out_text(o, m->renamed ? "the_" : "v");
        else if (*text == '#')
            out_text(o, m->renamed ? "Rows" : "N");
        else
            out_printf(o, "%c", *text);
    }
}

static const char *element_name(const ModelValue *v, const char *real)
{
    if (v->input)
        return v->kind == REAL ? real : !strcmp(v->input, "k64") ? "i64" : "i32";
    return v->kind == REAL ? real : v->kind == INTEGER ? "i32" : "bool";
}

static const char *value_type(const ModelText *m, int v, const char *real, Arena *arena)
{
    ModelText copy = *m;
    copy.arena = arena;
    return type_name(&copy, element_name(&m->value[v], real), &m->value[v].shape);
}

/* Names of values in a list: inputs or results. */
static void put_inputs(Out *o, const ModelText *m, int with_types, Arena *arena)
{
    for (int v = 0; v < m->inputs; v++) {
        out_printf(o, "%s%s", v ? ", " : "", m->value[v].input);
        if (with_types) {
            out_text(o, ": ");
            put(o, m, value_type(m, v, "float", arena));
        }
    }
}

static void put_results(Out *o, const ModelText *m, const char *form, const char *real,
                        Arena *arena)
{
    int n = 0;
    for (int v = 0; v < m->values; v++) {
        if (!model_is_result(m, v))
            continue;
        out_text(o, n++ ? ", " : "");
        for (const char *c = form; *c; c++) {
            if (*c == '%')
                out_printf(o, "%d", v);
            else if (*c == '^')
                put(o, m, value_type(m, v, real, arena));
            else
                out_printf(o, "%c", *c);
        }
    }
}

static int result_count(const ModelText *m)
{
    int n = 0;
    for (int v = 0; v < m->values; v++)
        n += model_is_result(m, v);
    return n;
}

static void print_model(Out *o, const ModelText *m, Arena *arena)
{
    int live[MAX_VALUES], many = result_count(m) > 1;
    find_live(m, live);
    if (m->uses_def) {
        out_line(o, "def squash(x: float[..S]) -> float[..S] {");
        out_line(o, "    return tanh(x) * 0.5;\n}\n");
    }
    if (m->uses_block) {
        out_line(o, "model Block(x: float[..S, C]; out: int) -> float[..S, out] {");
        out_line(o, "    layer fc = linear(out);\n    return tanh(fc(x));\n}\n");
    }
    out_printf(o, "model %s(", m->renamed ? "Other" : "Net");
    put_inputs(o, m, 1, arena);
    out_text(o, many ? ") -> (" : ") -> ");
    put_results(o, m, "^", "float", arena);
    out_line(o, many ? ") {" : " {");
    out_indent(o, 1);
    for (int i = 0; i < m->values; i++) {
        int v = m->renamed ? m->values - 1 - i : i; /* declarations in another order */
        if (live[v] && m->value[v].declared && !m->value[v].cut)
            put(o, m, arena_printf(arena, "%s\n", m->value[v].declared));
    }
    for (int v = 0; v < m->values; v++) {
        const ModelValue *x = &m->value[v];
        if (!live[v])
            continue;
        if (v < m->inputs)
            put(o, m, arena_printf(arena, "$%d = %s;\n", v, x->input));
        else if (x->cut)
            put(o, m,
                arena_printf(arena, x->kind == REAL ? "$%d = full([%s], value = 0.375);\n" : "", v,
                             shape_list(&(ModelText){.arena = arena}, &x->shape)));
        else
            put(o, m, arena_printf(arena, "%s\n", x->statement));
    }
    out_text(o, many ? "return (" : "return ");
    for (int v = 0, n = 0; v < m->values; v++)
        if (model_is_result(m, v))
            put(o, m, arena_printf(arena, "%s$%d", n++ ? ", " : "", v));
    out_line(o, many ? ");" : ";");
    out_indent(o, -1);
    out_line(o, "}\n");
}

/* What result v adds to the loss. */
static const char *loss_term(const ModelText *m, int v, Arena *arena)
{
    const ModelValue *x = &m->value[v];
    int how = (int)((m->seed + (uint64_t)v) % 9);
    double top = largest(x), scale = top > 4 ? 4 / top : 1;
    const char *r =
        scale < 1 ? arena_printf(arena, "(r%d * %.6g)", v, scale) : arena_printf(arena, "r%d", v);
    Size last = x->shape.rank ? x->shape.size[x->shape.rank - 1] : fixed(0);
    int scores = x->shape.rank == 2 && x->shape.size[0].rows == 1 && !last.rows && last.count > 2;
    if (scores && how < 3)
        return arena_printf(
            arena, how == 2 ? "cross_entropy(%s, y, smoothing = 0.125)" : "cross_entropy(%s, y)",
            r);
    if (scores && how == 3)
        return arena_printf(arena, "nll(log_softmax(%s, axis = -1), y)", r);
    switch (how) {
    case 4:
        return arena_printf(arena, "l1(%s, 0.25)", r);
    case 5:
        return arena_printf(arena, "smooth_l1(%s, 0.5, beta = 0.5)", r);
    case 6:
        return arena_printf(arena, "bce_with_logits(%s, 0.75)", r);
    case 7:
        return arena_printf(arena, "bce(sigmoid(%s), 0.25)", r);
    case 8:
        return arena_printf(arena, "mean(mse(%s, 0.5, reduce = \"none\")) * 0.5", r);
    default:
        return arena_printf(arena, "mse(%s, 0.125)", r);
    }
}

static int has_scores(const ModelText *m)
{
    for (int v = 0; v < m->values; v++) {
        const Shape *s = &m->value[v].shape;
        if (model_is_result(m, v) && m->value[v].kind == REAL && s->rank == 2 &&
            s->size[0].rows == 1 && !s->size[1].rows && s->size[1].count > 2)
            return v;
    }
    return -1;
}

static void print_call(Out *o, const ModelText *m, Arena *arena)
{
    int many = result_count(m) > 1;
    out_text(o, many ? "(" : "");
    put_results(o, m, "r%", "", arena);
    out_text(o, many ? ") = net(" : " = net(");
    put_inputs(o, m, 0, arena);
    out_line(o, ");");
}

static void print_train(Out *o, const ModelText *m, Arena *arena)
{
    out_text(o, "train fit(");
    put_inputs(o, m, 1, arena);
    put(o, m, ", y: i32[#]) {\n");
    out_indent(o, 1);
    out_line(o, "batch = %d;  steps = 10;  seed = %d;", (int)m->batch, (int)(m->seed % 1000));
    out_line(o, "optimizer opt = %s%s", m->optimizer, strchr(m->optimizer, '{') ? "" : "");
    if (m->scaler)
        out_line(o, "scaler s = %s;", m->scaler);
    out_line(o, "step {");
    out_indent(o, 1);
    print_call(o, m, arena);
    int n = 0;
    out_text(o, "loss = ");
    for (int v = 0; v < m->values; v++)
        if (model_is_result(m, v) && m->value[v].kind == REAL)
            out_printf(o, "%s%s", n++ ? "\n     + " : "", loss_term(m, v, arena));
    out_line(o, ";");
    out_line(o, "backward loss into opt%s;", m->scaler ? " scaler s" : "");
    if (m->clip)
        out_line(o, "clip %s of opt;", m->clip);
    out_line(o, "update opt;");
    out_line(o, "report loss;");
    out_indent(o, -1);
    out_line(o, "}");
    out_indent(o, -1);
    out_line(o, "}\n");
}

static void print_eval(Out *o, const ModelText *m, Arena *arena)
{
    int scores = has_scores(m);
    out_text(o, "eval test(");
    put_inputs(o, m, 1, arena);
    put(o, m, arena_printf(arena, ", y: i32[#]) batch %d {\n", (int)m->batch));
    out_indent(o, 1);
    print_call(o, m, arena);
    if (scores >= 0)
        out_line(o, "report accuracy = accuracy(r%d, y);", scores);
    for (int v = 0; v < m->values; v++)
        if (model_is_result(m, v))
            out_line(o, "report m%d = mean(%s(r%d)%s);", v, m->value[v].kind == REAL ? "" : "float",
                     v, m->value[v].kind == INTEGER ? " * 0.25" : "");
    out_indent(o, -1);
    out_line(o, "}\n");
}

static void print_infer(Out *o, const ModelText *m, Arena *arena)
{
    int many = result_count(m) > 1;
    out_text(o, "infer use(");
    put_inputs(o, m, 1, arena);
    put(o, m, arena_printf(arena, "; #: int in 1 .. %d) -> %s", (int)m->batch, many ? "(" : ""));
    put_results(o, m, many ? "r%: ^" : "^", "f32", arena);
    out_line(o, "%s {", many ? ")" : "");
    out_indent(o, 1);
    out_text(o, "return net(");
    put_inputs(o, m, 0, arena);
    out_line(o, ");");
    out_indent(o, -1);
    out_line(o, "}\n");
}

const char *model_text(const ModelText *m, Arena *arena)
{
    Out o;
    out_init(&o, arena);
    out_line(&o, "ampc 1;\n");
    out_line(&o, "option rate: real = 0.0125 in 0 .. 1;");
    out_line(&o, "option gain: real = 0.75 in 0 .. 2;\n");
    print_model(&o, m, arena);
    out_line(&o, "instance net = %s();\n", m->renamed ? "Other" : "Net");
    if (m->renamed) {
        print_infer(&o, m, arena);
        print_eval(&o, m, arena);
        print_train(&o, m, arena);
    } else {
        print_train(&o, m, arena);
        print_eval(&o, m, arena);
        print_infer(&o, m, arena);
    }
    return o.text;
}
