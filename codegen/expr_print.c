#include "codegen/expr_print.h"
#include <ctype.h>
#include <string.h>

enum { LINE_MAX_COLUMNS = 98, INLINE_MAX = 66 };

/* ---- what is read ---- */

static int steps_with(const Affine *at, int loop)
{
    return at->offset && at->stride[loop]->count;
}

int reads_loop(const Kernel *k, int first, int last, int loop)
{
    int is_swept = k->loop[loop].part == 1;
    for (int i = first; i <= last && i < k->phases; i++) {
        for (const Let *e = k->phase[i].first; e; e = e->next)
            if (steps_with(&e->at, loop) || ((e->kept || e->kind == X_KEPT) && is_swept))
                return 1;
        for (const Store *s = k->phase[i].stores; s; s = s->next)
            if (steps_with(&s->at, loop))
                return 1;
        for (const Reduce *r = k->phase[i].reduces; r; r = r->next)
            if (r->op == OP_ARGMAX && is_swept)
                return 1;
    }
    return 0;
}

/* ---- lines ---- */

/* Where to break a text so that the first part has at most `room` characters: at the blank outside
 * of most brackets, the later the better. 0: nowhere. */
static size_t find_break(const char *text, size_t room)
{
    size_t best = 0;
    int depth = 0, best_depth = 0;
    for (size_t i = 0; i <= room && text[i]; i++) {
        depth += (text[i] == '(' || text[i] == '[' || text[i] == '{') -
                 (text[i] == ')' || text[i] == ']' || text[i] == '}');
        int worse = 2 * depth + (i > 0 && text[i - 1] != ',');
        if (text[i] == ' ' && i >= room / 2 && (!best || worse <= best_depth)) {
            best = i;
            best_depth = worse;
        }
    }
    return best;
}

void print_line(Out *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(o->arena, format, args);
    va_end(args);
    size_t room = (size_t)(LINE_MAX_COLUMNS - 4 * o->depth);
    int hanging = 0;
    while (strlen(text) > room) {
        size_t at = find_break(text, room);
        if (!at)
            break;
        out_line(o, "%.*s", (int)at, text);
        text += at + 1;
        if (!hanging) {
            out_indent(o, 2);
            room -= 8;
            hanging = 1;
        }
    }
    out_line(o, "%s", text);
    if (hanging)
        out_indent(o, -2);
}

Str local_name(KernelPrinter *p, const char *wanted)
{
    Names *all = p->program->names;
    return take_name(&p->names, all, c_name(all, wanted), "");
}

/* ---- indices ---- */

const char *dim_plain(KernelPrinter *p, const Dim *d)
{
    return dim_c(p->types, d, p->o->arena);
}

const char *dim_factor(KernelPrinter *p, const Dim *d)
{
    const char *text = dim_plain(p, d);
    return d->count > 1 ? arena_printf(p->o->arena, "(%s)", text) : text;
}

static int is_simple(const char *text)
{
    while (isalnum((unsigned char)*text) || *text == '_')
        text++;
    return !*text;
}

static const char *affine_text(KernelPrinter *p, const Affine *at)
{
    Out o;
    int64_t value;
    out_init(&o, p->o->arena);
    for (int l = 0; l < p->k->loops; l++) {
        const Dim *stride = at->stride[l];
        if (!stride->count)
            continue;
        int by_one = dim_is_int(stride, &value) && value == 1;
        const char *index = p->loop[l];
        out_text(&o, o.size ? " + " : "");
        if (by_one)
            out_text(&o, index);
        else
            out_printf(&o, is_simple(index) ? "%s * %s" : "(%s) * %s", index,
                       dim_factor(p, stride));
    }
    const Dim *offset = at->offset;
    int negative = o.size && offset->count == 1 && offset->term[0].coefficient < 0;
    if (negative)
        offset = dim_sub(p->types, dim_int(p->types, 0), offset);
    if (o.size && offset->count)
        out_printf(&o, " %c %s", negative ? '-' : '+', dim_factor(p, offset));
    else if (!o.size)
        out_text(&o, dim_plain(p, offset));
    return o.text;
}

/* ---- pasting ---- */

/* A name, literal, call, element, or one of them cast: needs no parentheses. */
static int is_atom(const char *text)
{
    const char *c = text, *start;
    static const char *const casts[] = {"(float)", "(double)", "(int32_t)", "(int64_t)"};
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
        if (!strncmp(c, casts[i], strlen(casts[i])))
            c += strlen(casts[i]);
    start = c;
    while (isalnum((unsigned char)*c) || *c == '_' || *c == '.')
        c++;
    if (c == start)
        return 0;
    while (*c == '(' || *c == '[') {
        int depth = 0;
        do {
            depth += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
            c++;
        } while (depth && *c);
    }
    return !*c;
}

static const char *wrapped(KernelPrinter *p, const char *text)
{
    return is_atom(text) ? text : arena_printf(p->o->arena, "(%s)", text);
}

static const char *fill(KernelPrinter *p, const char *template_text, const char *arg)
{
    if (!strcmp(template_text, "$1"))
        return arg;
    if (template_text[0] == '(' || template_text[0] == '$') /* a cast or an operator */
        arg = wrapped(p, arg);
    return expand(p->o->arena, template_text, &arg, 1);
}

/* One token of a cell: a number, an identifier, or a character. */
static size_t token_length(const char *c)
{
    const char *start = c;
    if (isdigit((unsigned char)*c) || (*c == '.' && isdigit((unsigned char)c[1]))) {
        while (isalnum((unsigned char)*c) || *c == '.' ||
               ((*c == '-' || *c == '+') && c[-1] == 'e'))
            c++;
    } else if (isalpha((unsigned char)*c) || *c == '_') {
        while (isalnum((unsigned char)*c) || *c == '_')
            c++;
    } else {
        c++;
    }
    return (size_t)(c - start);
}

static int operand_of(const char *token, size_t length)
{
    static const char letters[] = "abcpq";
    const char *found = length == 1 ? strchr(letters, *token) : NULL;
    return found && *found ? (int)(found - letters) : -1;
}

/* How often a cell reads its operand. */
static int occurrences(const char *cell, int operand)
{
    int count = 0;
    for (size_t n; *cell; cell += n) {
        n = token_length(cell);
        count += operand_of(cell, n) == operand;
    }
    return count;
}

/* The cell with its operands in place; an argument of a call needs no parentheses. */
static const char *paste(KernelPrinter *p, const char *cell, const char *const *operands)
{
    Out o;
    out_init(&o, p->o->arena);
    char before = '(';
    for (size_t n; *cell; cell += n) {
        n = token_length(cell);
        if (*cell == '\n' || (*cell == ' ' && o.size && o.text[o.size - 1] == ' '))
            continue;
        int operand = operand_of(cell, n);
        const char *next = cell + n + strspn(cell + n, " ");
        int whole = (before == '(' || before == ',') && (*next == ')' || *next == ',' || !*next);
        if (operand >= 0)
            out_text(&o, whole ? operands[operand] : wrapped(p, operands[operand]));
        else
            out_printf(&o, "%.*s", (int)n, cell);
        if (*cell != ' ')
            before = cell[n - 1];
    }
    return o.text;
}

/* Integers wrap around; signed overflow is undefined in C, so they do it without a sign. */
static const char *wrapping_cell(const Let *e)
{
    int wide = e->dtype == DT_I64;
    if (e->dtype != DT_I32 && !wide)
        return NULL;
    switch (e->op) {
    case OP_ADD:
        return wide ? "(int64_t)((uint64_t)a + (uint64_t)b)"
                    : "(int32_t)((uint32_t)a + (uint32_t)b)";
    case OP_SUB:
        return wide ? "(int64_t)((uint64_t)a - (uint64_t)b)"
                    : "(int32_t)((uint32_t)a - (uint32_t)b)";
    case OP_MUL:
        return wide ? "(int64_t)((uint64_t)a * (uint64_t)b)"
                    : "(int32_t)((uint32_t)a * (uint32_t)b)";
    case OP_SQUARE:
        return wide ? "(int64_t)((uint64_t)a * (uint64_t)a)"
                    : "(int32_t)((uint32_t)a * (uint32_t)a)";
    case OP_NEG:
        return wide ? "(int64_t)(0u - (uint64_t)a)" : "(int32_t)(0u - (uint32_t)a)";
    case OP_ABS:
        return wide ? "a < 0 ? (int64_t)(0u - (uint64_t)a) : a"
                    : "a < 0 ? (int32_t)(0u - (uint32_t)a) : a";
    default:
        return NULL;
    }
}

static const char *cell_of(const Let *e)
{
    const char *wrapping = wrapping_cell(e);
    return wrapping ? wrapping : op_info(e->op)->value;
}

/* ---- expressions ---- */

static const char *real_text(KernelPrinter *p, double value)
{
    return float_text(p->o->arena, (float)value);
}

static const char *constant_text(KernelPrinter *p, const Let *e)
{
    if (is_real(e->dtype))
        return real_text(p, e->value);
    return arena_printf(p->o->arena, "%lld", (long long)e->value);
}

/* The element as it is stored. */
static const char *stored_text(KernelPrinter *p, const Let *e)
{
    Arena *arena = p->o->arena;
    const char *at = affine_text(p, &e->at), *name = p->k->param[e->param].name;
    int64_t scale;
    if (e->nin) {
        const char *row = wrapped(p, let_text(p, e->in[0]));
        int by_one = dim_is_int(e->scale, &scale) && scale == 1;
        const char *start =
            by_one ? row : arena_printf(arena, "(int64_t)%s * %s", row, dim_factor(p, e->scale));
        at = strcmp(at, "0") ? arena_printf(arena, "%s + %s", start, at) : start;
    }
    return arena_printf(arena, "%s[%s]", name, at);
}

static const char *load_text(KernelPrinter *p, const Let *e)
{
    const char *text =
        fill(p, p->d->type[p->k->param[e->param].type->dtype].load, stored_text(p, e));
    if (!e->high)
        return text;
    return arena_printf(p->o->arena, "(uint64_t)%s < (uint64_t)%s ? %s : 0",
                        wrapped(p, let_text(p, e->in[0])), wrapped(p, dim_plain(p, e->high)), text);
}

static const char *elem_text(KernelPrinter *p, const Let *e)
{
    const char *operands[5] = {"", "", "", "", ""};
    int first = op_is(e->op, F_CHOICE) ? 1 : 0, reals = 0;
    for (int i = first; i < e->nin; i++)
        reals |= is_real(e->in[i]->dtype);
    for (int i = 0; i < e->nin; i++) {
        operands[i] = let_text(p, e->in[i]);
        if (reals && i >= first && !is_real(e->in[i]->dtype))
            operands[i] = arena_printf(p->o->arena, "(float)%s", wrapped(p, operands[i]));
    }
    operands[3] = real_text(p, e->p);
    operands[4] = real_text(p, e->q);
    return paste(p, cell_of(e), operands);
}

/* A real as an integer, held within the type's range. */
static const char *integer_text(KernelPrinter *p, const char *x, DType to)
{
    const DTypeInfo *info = &dtype_info[to];
    const char *low = info->is_signed ? arena_printf(p->o->arena, "INT%d_MIN", info->bits) : "0";
    return arena_printf(p->o->arena, "(%s)rt_integer(%s, %s, %sINT%d_MAX)", p->d->type[to].storage,
                        x, low, info->is_signed ? "" : "U", info->bits);
}

static const char *cast_text(KernelPrinter *p, const Let *e)
{
    const char *x = let_text(p, e->in[0]);
    DType from = e->in[0]->dtype, to = e->dtype;
    if (is_real(to) && is_real(from))
        return x;
    if (is_real(to)) {
        /* gcc 12 makes trunc(y) of (float)(int32_t)y, which gives -0 for -0.5, but not by way of
         * double. */
        int truncates = e->in[0]->kind == X_CAST && is_real(e->in[0]->in[0]->dtype);
        return arena_printf(p->o->arena, truncates ? "(float)(double)%s" : "(float)%s",
                            wrapped(p, x));
    }
    if (to == DT_BOOL)
        return from == DT_BOOL ? x : arena_printf(p->o->arena, "%s != 0", wrapped(p, x));
    if (to == DT_I32 && !is_real(from) && from != DT_I64)
        return x;
    if (is_real(from))
        return integer_text(p, x, to);
    return arena_printf(p->o->arena, "(%s)%s", p->d->type[to].storage, wrapped(p, x));
}

static const char *random_text(KernelPrinter *p, const Let *e)
{
    return arena_printf(p->o->arena, "%s(seed, stream%d, step, (uint64_t)%s)",
                        e->kind == X_UNIFORM ? "rt_uniform" : "rt_normal", e->stream,
                        wrapped(p, affine_text(p, &e->at)));
}

static const char *guard_text(KernelPrinter *p, const Let *e)
{
    Arena *arena = p->o->arena;
    const char *at = affine_text(p, &e->at), *inside = let_text(p, e->in[0]);
    const char *outside = let_text(p, e->in[1]), *where;
    if (!e->low->count)
        where = arena_printf(arena, "%s < %s", at, dim_plain(p, e->high));
    else
        where = arena_printf(arena, "%s >= %s && %s < %s", at, dim_plain(p, e->low), at,
                             dim_plain(p, e->high));
    return arena_printf(arena, "%s ? %s : %s", where, inside, outside);
}

/* The text of e without its rounding. */
static const char *unrounded_text(KernelPrinter *p, const Let *e)
{
    Arena *arena = p->o->arena;
    switch (e->kind) {
    case X_CONST:
        return constant_text(p, e);
    case X_LOAD:
        return load_text(p, e);
    case X_ELEM:
        return elem_text(p, e);
    case X_CAST:
        return cast_text(p, e);
    case X_DIVN:
        return arena_printf(arena, "%s / (float)%s", wrapped(p, let_text(p, e->in[0])),
                            wrapped(p, dim_plain(p, e->low)));
    case X_INDEX:
        return arena_printf(arena, "(int32_t)%s", wrapped(p, affine_text(p, &e->at)));
    case X_UNIFORM:
    case X_NORMAL:
        return random_text(p, e);
    case X_SUMS:
        return p->sums[0];
    case X_KEPT:
        return arena_printf(arena, "%s[%s]", e->in[0]->array, p->sweep);
    case X_GUARD:
        return guard_text(p, e);
    case X_REDUCED:
        break;
    }
    return "?";
}

const char *let_text(KernelPrinter *p, const Let *e)
{
    if (e->text)
        return e->text;
    const char *text = unrounded_text(p, e);
    return e->round == DT_NONE ? text : fill(p, p->d->type[e->round].round, text);
}

/* ---- declarations ---- */

/* Short enough to be written again at every use. */
static int is_trivial(const Let *e)
{
    return e->kind == X_CONST || e->kind == X_INDEX || e->kind == X_KEPT || e->guarded ||
           (e->kind == X_LOAD && e->phase == 0 && !e->nin);
}

static void name_operand(const Let *user, int i, int phase)
{
    Let *x = user->in[i];
    if (x->phase != phase || x->uses > 1 || (user->kind == X_LOAD && user->high))
        x->named = 1;
    if (user->kind == X_ELEM && occurrences(cell_of(user), i) > 1)
        x->named = 1;
}

/* What a store of this phase replaces in place is read before it. */
static void name_replaced(const Kernel *k, const Phase *phase)
{
    for (const Store *s = phase->stores; s; s = s->next)
        for (Let *e = phase->first; e; e = e->next)
            e->named |= e->kind == X_LOAD && k->param[e->param].over == s->param;
}

void name_lets(const Kernel *k)
{
    for (int i = 0; i < k->phases; i++)
        for (Let *e = k->phase[i].first; e; e = e->next) {
            e->text = e->array = NULL;
            e->named = e->kept;
        }
    for (int i = 0; i < k->phases; i++) {
        name_replaced(k, &k->phase[i]);
        for (Let *e = k->phase[i].first; e; e = e->next)
            for (int x = 0; x < e->nin && e->kind != X_KEPT; x++)
                name_operand(e, x, i);
        for (Reduce *r = k->phase[i].reduces; r; r = r->next)
            r->value->named |= r->value->phase != i || r->value->uses > 1 || r->op == OP_ARGMAX;
        for (Store *s = k->phase[i].stores; s; s = s->next)
            s->value->named |= s->value->phase != i || s->value->uses > 1;
    }
}

/* What a value is called where it needs a name. */
static const char *wanted_name(KernelPrinter *p, const Let *e)
{
    const char *name = e->name;
    if (!name)
        name = e->kind == X_REDUCED               ? op_info(e->reduce->op)->spelling
               : e->kind == X_SUMS                ? "sum"
               : e->kind == X_ELEM && e->nin == 1 ? op_info(e->op)->spelling
                                                  : "t";
    name = c_name(p->program->names, name);
    for (int i = 0; i < p->k->params; i++)
        if (p->k->param[i].name == name) {
            int sweep = e->phase >= 2 && e->phase % 2 == 0 && p->k->kind != KERNEL_FLAT;
            return arena_printf(p->o->arena, "%s_%s", name, sweep ? "j" : "i");
        }
    return name;
}

static void declare_let(KernelPrinter *p, Let *e)
{
    const char *text = let_text(p, e);
    Str name = local_name(p, wanted_name(p, e));
    print_line(p->o, "const %s %s = %s;", p->d->type[e->dtype].value, name, text);
    e->text = name;
}

/* Declares operands of e until its text is short. */
static void shorten(KernelPrinter *p, const Let *e)
{
    while (strlen(let_text(p, e)) > INLINE_MAX) {
        Let *longest = NULL;
        size_t most = 12;
        for (int i = 0; i < e->nin; i++) {
            Let *x = e->in[i];
            size_t length = strlen(let_text(p, x));
            if (!x->text && !is_trivial(x) && x->phase == e->phase && length > most) {
                longest = x;
                most = length;
            }
        }
        if (!longest)
            return;
        declare_let(p, longest);
    }
}

void print_lets(KernelPrinter *p, int phase, int mask, int which)
{
    for (Let *e = p->k->phase[phase].first; e; e = e->next) {
        if (e->text || is_trivial(e) || e->kind == X_REDUCED)
            continue;
        if (mask && ((e->depends & mask) != 0) != which)
            continue;
        shorten(p, e);
        if (e->named)
            declare_let(p, e);
        if (e->kept)
            print_line(p->o, "%s[%s] = %s;", e->array, p->sweep, e->text);
    }
}

void print_stores(KernelPrinter *p, int phase)
{
    for (const Store *s = p->k->phase[phase].stores; s; s = s->next) {
        const KernelParam *param = &p->k->param[s->param];
        DType to = param->type->dtype;
        const Let *e = s->value;
        if (e->kind == X_LOAD && !e->high && !e->text && p->k->param[e->param].type->dtype == to) {
            print_line(p->o, "%s[%s] = %s;", param->name, affine_text(p, &s->at),
                       stored_text(p, e));
            continue;
        }
        /* The store rounds: no need to do it twice. */
        const char *text = !e->text && e->round == to ? unrounded_text(p, e) : let_text(p, e);
        if (is_real(to) && !is_real(e->dtype))
            text = arena_printf(p->o->arena, "(float)%s", wrapped(p, text));
        print_line(p->o, "%s[%s] = %s;", param->name, affine_text(p, &s->at),
                   fill(p, p->d->type[to].store, text));
    }
}
