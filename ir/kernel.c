/* The kernel's checker and its text dump, which doubles as the signature by which equal kernels are
 * found:
 *
 *     kernel rows strict=0 streams=0
 *       param out f32[N, 10]
 *       loop 0 N
 *       phase 2
 *         %0: f32 = load 1 [0 + 10*l0 + 1*l1]
 */
#include "ir/kernel.h"
#include <string.h>

/* ---- names ---- */

/* Where the user's names meet those of the emitted program: the rows of names.def. */
enum { NOWHERE = 1, AMONG_VALUES = 2, AMONG_OPTIONS = 4, AMONG_REPORTS = 8 };

static int is_taken(const char *name, int where)
{
    static const struct Taken {
        const char *name;
        int where;
    } taken[] = {
#define RESERVED(name) {name, NOWHERE},
#define LOCAL(name) {name, AMONG_VALUES},
#define CONFIG(name) {name, AMONG_OPTIONS},
#define REPORT(name) {name, AMONG_REPORTS},
#include "codegen/names.def"
#undef RESERVED
#undef LOCAL
#undef CONFIG
#undef REPORT
    };
    if (!strncmp(name, "rt_", 3) || !strncmp(name, "RT_", 3) || !strncmp(name, "__", 2))
        return 1;
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (taken[i].where & where && !strcmp(name, taken[i].name))
            return 1;
    return 0;
}

int is_reserved_name(const char *name)
{
    return is_taken(name, NOWHERE | AMONG_VALUES);
}

static Str valid_name(Names *names, const char *name, int where)
{
    char text[128];
    size_t n = 0;
    for (const char *c = name; *c && n < sizeof text - 2; c++) {
        int letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z');
        int digit = *c >= '0' && *c <= '9';
        if (digit && n == 0)
            text[n++] = 'v';
        text[n++] = letter || digit ? *c : '_';
    }
    if (n == 0)
        text[n++] = 'v';
    text[n] = '\0';
    while (n > 1 && text[0] == '_') /* names that begin with one belong to the implementation */
        memmove(text, text + 1, n--);
    if (is_taken(text, where)) {
        text[n++] = '_';
        text[n] = '\0';
    }
    return intern(names, text);
}

Str c_name(Names *names, const char *name)
{
    return valid_name(names, name, NOWHERE | AMONG_VALUES);
}

Str c_option(Names *names, const char *name)
{
    return valid_name(names, name, NOWHERE | AMONG_OPTIONS);
}

Str c_report(Names *names, const char *name)
{
    return valid_name(names, name, NOWHERE | AMONG_REPORTS);
}

/* ---- dump ---- */

typedef struct Dump {
    Out *o;
    const Kernel *k;
    TypeTable *t;
    Arena *arena;
    int names;
} Dump;

static const char *const kind_name[] = {"flat", "rows", "columns", "epilogue", "scatter"};
static const char *const expr_name[] = {"const",   "load",   "elem", "cast",    "divn", "index",
                                        "uniform", "normal", "sums", "reduced", "kept", "guard"};

static int is_zero(const Dim *d)
{
    return d->count == 0;
}

static void dump_affine(Dump *d, const Affine *at)
{
    out_printf(d->o, " [%s", dim_text(d->t, at->offset, d->arena));
    for (int l = 0; l < d->k->loops; l++)
        if (!is_zero(at->stride[l]))
            out_printf(d->o, " + (%s)*l%d", dim_text(d->t, at->stride[l], d->arena), l);
    out_text(d->o, "]");
}

static void dump_expr(Dump *d, const Let *e)
{
    Out *o = d->o;
    out_printf(o, "%%%d: %s = %s", e->id, dtype_info[e->dtype].name, expr_name[e->kind]);
    switch (e->kind) {
    case X_CONST:
        out_printf(o, " %.17g", e->value);
        break;
    case X_LOAD:
        out_printf(o, " %d", e->param);
        dump_affine(d, &e->at);
        if (e->nin)
            out_printf(o, " scale %s", dim_text(d->t, e->scale, d->arena));
        if (e->high)
            out_printf(o, " below %s", dim_text(d->t, e->high, d->arena));
        break;
    case X_ELEM:
        out_printf(o, " %s", op_info(e->op)->spelling);
        if (op_info(e->op)->attrs)
            out_printf(o, " p=%.17g q=%.17g", e->p, e->q);
        break;
    case X_DIVN:
        out_printf(o, " %s", dim_text(d->t, e->low, d->arena));
        break;
    case X_UNIFORM:
    case X_NORMAL:
        out_printf(o, " stream %d", e->stream);
        dump_affine(d, &e->at);
        break;
    case X_INDEX:
        dump_affine(d, &e->at);
        break;
    case X_GUARD:
        out_printf(o, " %s <=", dim_text(d->t, e->low, d->arena));
        dump_affine(d, &e->at);
        out_printf(o, " < %s", dim_text(d->t, e->high, d->arena));
        break;
    case X_REDUCED:
        out_printf(o, " %s", op_info(e->reduce->op)->spelling);
        break;
    case X_CAST:
    case X_SUMS:
    case X_KEPT:
        break;
    }
    for (int i = 0; i < e->nin; i++)
        out_printf(o, "%s %%%d", i ? "," : "", e->in[i]->id);
    if (e->round != DT_NONE)
        out_printf(o, " round %s", dtype_info[e->round].name);
    if (e->kept)
        out_text(o, " kept");
    if (d->names && e->name)
        out_printf(o, "  '%s'", e->name);
    out_text(o, "\n");
}

static void dump_phase(Dump *d, int index)
{
    const Phase *phase = &d->k->phase[index];
    if (!phase->first && !phase->reduces && !phase->stores)
        return;
    out_line(d->o, "phase %d", index);
    out_indent(d->o, 1);
    for (const Let *e = phase->first; e; e = e->next)
        dump_expr(d, e);
    for (const Reduce *r = phase->reduces; r; r = r->next)
        out_line(d->o, "%s %%%d -> %%%d", op_info(r->op)->spelling, r->value->id, r->result->id);
    for (const Store *s = phase->stores; s; s = s->next) {
        out_printf(d->o, "store %d", s->param);
        dump_affine(d, &s->at);
        out_printf(d->o, " = %%%d\n", s->value->id);
    }
    out_indent(d->o, -1);
}

static void dump(Dump *d)
{
    const Kernel *k = d->k;
    out_printf(d->o, "kernel %s", kind_name[k->kind]);
    if (d->names)
        out_printf(d->o, " %s", k->name);
    out_printf(d->o, " strict=%d streams=%d\n", k->strict, k->streams);
    out_indent(d->o, 1);
    for (int i = 0; i < k->params; i++) {
        out_printf(d->o, "param %s ", k->param[i].written ? "out" : "in");
        if (d->names)
            out_printf(d->o, "%s: ", k->param[i].name);
        out_printf(d->o, "%s", type_text(d->t, k->param[i].type, d->arena));
        if (k->param[i].over >= 0)
            out_printf(d->o, " replaced by param %d", k->param[i].over);
        out_text(d->o, "\n");
    }
    for (int l = 0; l < k->loops; l++)
        out_line(d->o, "loop l%d < %s part %d", l, dim_text(d->t, k->loop[l].extent, d->arena),
                 k->loop[l].part);
    for (int i = 0; i < k->phases; i++)
        dump_phase(d, i);
    if (k->scatter_value)
        out_line(d->o, "add %%%d to row %%%d", k->scatter_value->id, k->scatter_row->id);
    out_indent(d->o, -1);
}

void kernel_dump(Out *o, const Kernel *k, TypeTable *t)
{
    Dump d = {.o = o, .k = k, .t = t, .arena = o->arena, .names = 1};
    dump(&d);
}

const char *kernel_signature(const Kernel *k, TypeTable *t, Arena *arena)
{
    Out o;
    out_init(&o, arena);
    Dump d = {.o = &o, .k = k, .t = t, .arena = arena};
    dump(&d);
    return o.text;
}

/* ---- in place ---- */

static int same_affine(const Kernel *k, const Affine *a, const Affine *b)
{
    if (a->offset != b->offset)
        return 0;
    for (int l = 0; l < k->loops; l++)
        if (a->stride[l] != b->stride[l])
            return 0;
    return 1;
}

/* Loads outside of all loops and in guards are written where they are used, which may be behind the
 * store. */
static int loads_before(const Kernel *k, const Let *e, const Store *s, int phase)
{
    return !e->nin && !e->guarded && e->phase > 0 && e->phase <= phase &&
           same_affine(k, &e->at, &s->at);
}

int kernel_may_overwrite(const Kernel *k, int in, int out)
{
    const Store *store = NULL;
    int phase = 0;
    if (k->kind == KERNEL_COLUMNS || k->kind == KERNEL_SCATTER)
        return 0;
    for (int i = 0; i < k->phases; i++)
        for (const Store *s = k->phase[i].stores; s; s = s->next) {
            if (s->param != out)
                continue;
            if (store)
                return 0;
            store = s;
            phase = i;
        }
    for (int i = 0; i < k->phases && store; i++)
        for (const Let *e = k->phase[i].first; e; e = e->next)
            if (e->kind == X_LOAD && e->param == in && !loads_before(k, e, store, phase))
                return 0;
    return store != NULL;
}

/* ---- check ---- */

static const char *check_params(const Kernel *k)
{
    for (int i = 0; i < k->params; i++) {
        int over = k->param[i].over;
        if (over >= k->params || (over >= 0 && (k->param[i].written || !k->param[over].written)))
            return "a parameter replaced by one that is not written";
        if (over >= 0 && !kernel_may_overwrite(k, i, over))
            return "a parameter replaced while it is needed";
        for (int n = 0; n < i; n++)
            if (over >= 0 && k->param[n].over == over)
                return "two parameters replaced by the same one";
    }
    return NULL;
}

static const char *check_affine(const Kernel *k, const Affine *at)
{
    if (!at->offset || (k->loops && !at->stride))
        return "an index without strides";
    for (int l = 0; l < k->loops; l++)
        if (!at->stride[l])
            return "an index without a stride";
    return NULL;
}

static const char *check_expr(const Kernel *k, const Let *e, int phase)
{
    if (e->phase != phase)
        return "an expression in the list of another phase";
    for (int i = 0; i < e->nin; i++) {
        const Let *x = e->in[i];
        if (x->phase > phase || (x->phase == phase && x->id >= e->id))
            return "an operand that is computed later";
        if (x->phase < phase && x->phase >= 2 && x->phase % 2 == 0 && e->kind != X_KEPT)
            return "an operand of an earlier sweep";
    }
    if (e->kind == X_LOAD && (e->param < 0 || e->param >= k->params))
        return "a load of no parameter";
    if (e->kind == X_KEPT && !e->in[0]->kept)
        return "a value that nothing kept";
    if (e->kind == X_LOAD || e->kind == X_INDEX || e->kind == X_GUARD || e->kind == X_UNIFORM ||
        e->kind == X_NORMAL)
        return check_affine(k, &e->at);
    return NULL;
}

const char *kernel_check(const Kernel *k, TypeTable *t, Arena *arena)
{
    (void)t, (void)arena;
    int part = 0, stores = 0;
    for (int l = 0; l < k->loops; l++) {
        if (k->loop[l].part < part)
            return "loops that are not sorted by part";
        part = k->loop[l].part;
    }
    for (int i = 0; i < k->phases; i++) {
        const Phase *phase = &k->phase[i];
        for (const Let *e = phase->first; e; e = e->next) {
            const char *fault = check_expr(k, e, i);
            if (fault)
                return fault;
        }
        if (phase->reduces && (i < 2 || i % 2))
            return "a reduction outside of a sweep";
        for (const Store *s = phase->stores; s; s = s->next, stores++) {
            if (s->value->phase > i)
                return "a store of a value that is computed later";
            if (s->param < 0 || s->param >= k->params || !k->param[s->param].written)
                return "a store to a parameter that is only read";
            const char *fault = check_affine(k, &s->at);
            if (fault)
                return fault;
        }
    }
    if (!stores)
        return "a kernel that stores nothing";
    if ((k->kind == KERNEL_SCATTER) != (k->scatter_value && k->scatter_row))
        return "what is scattered";
    return check_params(k);
}
