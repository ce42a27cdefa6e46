/* Names, numbers and places that all parts of the emitted host program share. */
#include "codegen/host.h"
#include "ir/kernel.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- layout of the text ---- */

void section(Host *h, const char *title)
{
    while (h->o->size > 1 && !strcmp(h->o->text + h->o->size - 2, "\n\n")) {
        h->o->text[--h->o->size] = '\0';
        h->o->line--;
    }
    out_line(h->o, "\n/* ---- %s ---- */", title);
    Section s = {title, h->o->line - 1};
    vec_push(h->arena, &h->sections, s);
    out_text(h->o, "\n");
}

/* The line of the span, without a trailing brace and spaces. */
static const char *source_text(Host *h, Span span)
{
    const Source *source = source_of(h->u->diags->sources, span);
    size_t n = 0;
    const char *line = source_line(source, span.begin, &n);
    while (n && isspace((unsigned char)*line))
        line++, n--;
    while (n && (isspace((unsigned char)line[n - 1]) || line[n - 1] == '{'))
        n--;
    return arena_copy(h->arena, line, n);
}

void source_comment(Host *h, Span span)
{
    if (!span.file)
        return;
    const char *text = source_text(h, span);
    const char *path = source_of(h->u->diags->sources, span)->path, *slash = strrchr(path, '/');
    const char *where = arena_printf(h->arena, "%s:%d", slash ? slash + 1 : path,
                                     line_of(h->u->diags->sources, span.file, span.begin));
    int width = 96 - 4 * h->o->depth - (int)strlen(where);
    if ((int)strlen(text) > width - 3)
        out_line(h->o, "// %.*s...  %s", width - 6, text, where);
    else
        out_line(h->o, "// %-*s%s", width, text, where);
}

/* ---- names ---- */

Str host_name(Host *h, const char *name)
{
    return c_name(h->u->names, name);
}

Str option_name(Host *h, const char *name)
{
    return c_option(h->u->names, name);
}

Str report_name(Host *h, const char *name)
{
    return c_report(h->u->names, name);
}

Str host_constant(Host *h, const char *name)
{
    Str valid = c_name(h->u->names, name);
    char *upper = arena_copy(h->arena, valid, strlen(valid));
    for (char *c = upper; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return intern(h->u->names, upper);
}

const char *c_type(const Host *h, DType dtype)
{
    return h->dialect->type[dtype].storage;
}

const char *convert(Host *h, const char *template_text, const char *value)
{
    return expand(h->arena, template_text, &value, 1);
}

const char *shape_text(Host *h, const Type *type)
{
    const char *text = type_text(h->types, type, h->arena);
    const char *bracket = strchr(text, '[');
    return bracket ? bracket : "";
}

/* Escapes what C would read differently, trigraphs included. */
const char *string_c(Host *h, Str text)
{
    Out o;
    out_init(&o, h->arena);
    out_text(&o, "\"");
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\' || *c == '?')
            out_printf(&o, "\\%c", *c);
        else if ((unsigned char)*c < 0x20 || *c == 0x7f)
            out_printf(&o, "\\%03o", (unsigned char)*c);
        else
            out_printf(&o, "%c", *c);
    }
    out_text(&o, "\"");
    return o.text;
}

/* ---- numbers that the program computes ---- */

static int scalar_is_int(const Host *h, const Scalar *s)
{
    switch (s->kind) {
    case S_INT:
    case S_BOOL:
        return 1;
    case S_OPTION: {
        OptionKind kind = h->program->options.at[s->i]->kind;
        return kind == OPTION_INT || kind == OPTION_BOOL;
    }
    case S_UNARY:
        return scalar_is_int(h, s->a);
    case S_BINARY:
        return scalar_is_int(h, s->a) && scalar_is_int(h, s->b);
    case S_REAL:
    case S_STRING:
    case S_COLUMN:
    case S_CALL:
        break;
    }
    return 0;
}

int is_number(const Scalar *s, double *value)
{
    *value = s->kind == S_REAL ? s->r : (double)s->i;
    return s->kind == S_REAL || s->kind == S_INT || s->kind == S_BOOL;
}

/* An operand with parentheses if it is an operation itself. */
static const char *operand(Host *h, const Scalar *s)
{
    const char *text = scalar_c(h, s);
    return s->kind == S_BINARY ? arena_printf(h->arena, "(%s)", text) : text;
}

static const char *binary_c(Host *h, const Scalar *s)
{
    const char *a = operand(h, s->a), *b = operand(h, s->b);
    /* a / b and a % b of reals; integers divide exactly */
    if (!strcmp(s->s, "%") && !scalar_is_int(h, s))
        return arena_printf(h->arena, "fmod(%s, %s)", scalar_c(h, s->a), scalar_c(h, s->b));
    return arena_printf(h->arena, "%s %s %s", a, s->s, b);
}

/* Columns of a data source; the field is element i of a row. */
static const char *column_c(Host *h, const Scalar *s)
{
    const char *from = strcmp(s->s, "label") ? "from" : "&from[1]";
    if (s->to == s->from + 1)
        return arena_printf(h->arena, "rt_source_value(%s, row, %lld)", from, (long long)s->from);
    if (s->from)
        return arena_printf(h->arena, "rt_source_value(%s, row, %lld + i)", from,
                            (long long)s->from);
    return arena_printf(h->arena, "rt_source_value(%s, row, i)", from);
}

/* A function of the language in double, as C calls it. */
static const char *function_c(Str name)
{
    static const char *const names[][2] = {{"abs", "fabs"},
                                           {"minimum", "fmin"},
                                           {"maximum", "fmax"},
                                           {"min", "fmin"},
                                           {"max", "fmax"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i][0]))
            return names[i][1];
    return name;
}

const char *scalar_c(Host *h, const Scalar *s)
{
    switch (s->kind) {
    case S_INT:
    case S_BOOL:
        return arena_printf(h->arena, "%lld", (long long)s->i);
    case S_REAL:
        return double_text(h->arena, s->r);
    case S_STRING:
        return string_c(h, s->s);
    case S_OPTION:
        return arena_printf(h->arena, "s->option.%s",
                            option_name(h, h->program->options.at[s->i]->name));
    case S_UNARY:
        return arena_printf(h->arena, "%s%s", s->s, operand(h, s->a));
    case S_BINARY:
        return binary_c(h, s);
    case S_COLUMN:
        return column_c(h, s);
    case S_CALL:
        if (s->b)
            return arena_printf(h->arena, "%s(%s, %s)", function_c(s->s), scalar_c(h, s->a),
                                scalar_c(h, s->b));
        return arena_printf(h->arena, "%s(%s)", function_c(s->s), scalar_c(h, s->a));
    }
    return "0";
}

const char *real_c(Host *h, const Scalar *s)
{
    double value;
    if (is_number(s, &value))
        return double_text(h->arena, value);
    return scalar_is_int(h, s) ? arena_printf(h->arena, "(double)%s", operand(h, s))
                               : scalar_c(h, s);
}

const char *int_c(Host *h, const Scalar *s)
{
    return scalar_is_int(h, s) ? scalar_c(h, s)
                               : arena_printf(h->arena, "(int64_t)%s", operand(h, s));
}

/* ---- the program ---- */

int is_checked(const Host *h, const Optimizer *o)
{
    (void)h;
    return o->checks;
}

int is_emitted(const Host *h, const Entry *e)
{
    return h->prefix || e->dataset;
}

const char *program_stem(const Host *h)
{
    const char *path = h->program->source_name, *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    if (*path == '<') /* standard input has no name that a file could have */
        return "program";
    return arena_copy(h->arena, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

Entry *first_train(const Host *h)
{
    for (int i = 0; i < h->program->entries.n; i++)
        if (h->program->entries.at[i]->kind == ENTRY_TRAIN)
            return h->program->entries.at[i];
    return NULL;
}

/* ---- where the weights lie ---- */

/* The type that gradients of a parameter are stored in; DT_NONE when no step makes one. */
static DType gradient_type(const Host *h, const Param *p)
{
    for (int i = 0; i < h->program->entries.n; i++) {
        const EntryPlan *e = &h->plan->entry[i];
        for (int k = 0; k < e->buffers.n; k++)
            if (e->buffers.at[k]->kind == BUFFER_GRADIENT && e->buffers.at[k]->param == p)
                return e->buffers.at[k]->type->dtype;
    }
    return DT_NONE;
}

static Pool *find_pool(Host *h, const Param *p, DType gradient)
{
    for (int i = 0; i < h->pools.n; i++) {
        Pool *pool = h->pools.at[i];
        if (pool->optimizer == p->optimizer && pool->weight == p->master && pool->copy == p->copy &&
            pool->gradient == gradient)
            return pool;
    }
    return NULL;
}

/* A suffix that tells a pool from its owner's others: by what makes it special. */
static Str pool_suffix(Host *h, const Pool *pool)
{
    int same = 0, plain = 0;
    for (int i = 0; i < h->pools.n; i++) {
        same += h->pools.at[i]->optimizer == pool->optimizer;
        plain += h->pools.at[i]->optimizer == pool->optimizer && h->pools.at[i]->copy == DT_NONE;
    }
    if (!same)
        return intern(h->u->names, "");
    if (!plain && pool->copy == DT_NONE)
        return intern_printf(h->u->names, "_%s", dtype_info[pool->weight].name);
    return intern_printf(h->u->names, "_%d", same + 1);
}

static Pool *add_pool(Host *h, const Param *p, DType gradient)
{
    Pool *pool = new (h->arena, Pool);
    pool->optimizer = p->optimizer;
    pool->weight = p->master;
    pool->copy = p->copy;
    pool->gradient = gradient;
    pool->suffix = pool_suffix(h, pool);
    const char *full = arena_printf(h->arena, "%s%s", pool_member(h, pool), pool->suffix);
    pool->table = intern_printf(h->u->names, "%s_param", full);
    pool->count = host_constant(h, arena_printf(h->arena, "%s_params", full));
    pool->elements = host_constant(h, arena_printf(h->arena, "%s_elements", full));
    vec_push(h->arena, &h->pools, pool);
    return pool;
}

static void sort_by_group(Pool *pool)
{
    for (int i = 1; i < pool->params.n; i++) {
        Param *p = pool->params.at[i];
        int k = i;
        for (; k > 0 && pool->params.at[k - 1]->group > p->group; k--)
            pool->params.at[k] = pool->params.at[k - 1];
        pool->params.at[k] = p;
    }
}

/* Every tensor begins at a multiple of 64 bytes, in the buffers of halves too. */
static void place_params(Host *h, Pool *pool)
{
    enum { STEP = 32 };
    sort_by_group(pool);
    for (int i = 0; i < pool->params.n; i++) {
        const Param *p = pool->params.at[i];
        ParamPlace *place = &h->place[p->index];
        place->pool = pool;
        place->offset = pool->size;
        dim_is_int(type_count(h->types, p->type), &place->count);
        place->constant = host_constant(h, p->name);
        pool->size += (place->count + STEP - 1) / STEP * STEP;
    }
}

void make_pools(Host *h)
{
    Program *p = h->program;
    h->place = new_array(h->arena, ParamPlace, p->params.n + 1);
    for (int i = 0; i < p->params.n; i++) {
        Param *x = p->params.at[i];
        DType gradient = gradient_type(h, x);
        Pool *pool = find_pool(h, x, gradient);
        if (!pool)
            pool = add_pool(h, x, gradient);
        vec_push(h->arena, &pool->params, x);
    }
    for (int i = 0; i < h->pools.n; i++)
        place_params(h, h->pools.at[i]);
}

/* ---- members of the state ---- */

static int is_taken(const Host *h, Str name)
{
    static const char *const own[] = {"option", "seed",  "threads", "block",
                                      "fixed",  "chunk", "arena",   "scratch"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(name, own[i]))
            return 1;
    for (int i = 0; i < h->members.n; i++)
        if (h->members.at[i].name == name)
            return 1;
    return 0;
}

Str member(Host *h, const void *object, Str name)
{
    for (int i = 0; i < h->members.n; i++)
        if (h->members.at[i].object == object)
            return h->members.at[i].name;
    Str valid = host_name(h, name), unique = valid;
    for (int i = 2; is_taken(h, unique); i++)
        unique = intern_printf(h->u->names, "%s_%d", valid, i);
    Member m = {object, unique};
    vec_push(h->arena, &h->members, m);
    return unique;
}

Str pool_member(Host *h, const Pool *pool)
{
    return pool->optimizer ? member(h, pool->optimizer, pool->optimizer->name)
                           : intern(h->u->names, "fixed");
}

/* ---- entries ---- */

static void add_symbols(const Dim *d, int *symbols, int *count, int room)
{
    for (int t = 0; t < d->count; t++)
        for (int k = 0; k < d->term[t].degree; k++) {
            int known = 0;
            for (int i = 0; i < *count; i++)
                known |= symbols[i] == d->term[t].symbol[k];
            if (!known && *count < room)
                symbols[(*count)++] = d->term[t].symbol[k];
        }
}

int entry_symbols(const Host *h, const Entry *e, int *symbols, int room)
{
    int count = 0;
    (void)h;
    for (int i = 0; i < e->inputs.n; i++)
        for (int k = 0; k < e->inputs.at[i].type->rank; k++)
            add_symbols(e->inputs.at[i].type->dim[k], symbols, &count, room);
    return count;
}

/* Gives the buffer this name; one that had it takes the other. */
static void rename_buffer(EntryPlan *plan, Buffer *b, Str name)
{
    for (int i = 0; i < plan->buffers.n; i++)
        if (plan->buffers.at[i]->name == name)
            plan->buffers.at[i]->name = b->name;
    b->name = name;
}

/* Inputs and results are called exactly as the user called them: they are parameters. */
void name_parameters(Host *h)
{
    for (int i = 0; i < h->program->entries.n; i++) {
        const Entry *e = h->program->entries.at[i];
        EntryPlan *plan = &h->plan->entry[i];
        for (int k = 0; k < plan->buffers.n; k++) {
            Buffer *b = plan->buffers.at[k];
            if (b->kind == BUFFER_INPUT)
                rename_buffer(plan, b, host_name(h, e->inputs.at[b->index].name));
            if (b->kind == BUFFER_RESULT)
                rename_buffer(plan, b, host_name(h, e->results.at[b->index]));
        }
    }
}

Str input_name(Host *h, const Entry *e, int i)
{
    const EntryPlan *plan = plan_of(h, e);
    for (int k = 0; k < plan->buffers.n; k++)
        if (plan->buffers.at[k]->kind == BUFFER_INPUT && plan->buffers.at[k]->index == i)
            return plan->buffers.at[k]->name;
    return host_name(h, e->inputs.at[i].name);
}

Str result_name(Host *h, const Entry *e, int i)
{
    const EntryPlan *plan = plan_of(h, e);
    for (int k = 0; k < plan->buffers.n; k++)
        if (plan->buffers.at[k]->kind == BUFFER_RESULT && plan->buffers.at[k]->index == i)
            return plan->buffers.at[k]->name;
    return host_name(h, e->results.at[i]);
}

static DType result_type(const Host *h, const Entry *e, int i)
{
    const EntryPlan *plan = plan_of(h, e);
    for (int k = 0; k < plan->buffers.n; k++)
        if (plan->buffers.at[k]->kind == BUFFER_RESULT && plan->buffers.at[k]->index == i)
            return plan->buffers.at[k]->type->dtype;
    return DT_F32;
}

DType input_dtype(const EntryInput *in)
{
    return in->type->dtype == DT_FLOAT ? DT_F32 : in->type->dtype;
}

const char *step_parameters(Host *h, const Entry *e)
{
    int symbols[16];
    int count = entry_symbols(h, e, symbols, 16);
    Out o;
    out_init(&o, h->arena);
    for (int i = 0; i < count; i++)
        out_printf(&o, ", int64_t %s", host_name(h, h->types->symbol[symbols[i]].name));
    for (int i = 0; i < e->inputs.n; i++)
        out_printf(&o, ", const %s *%s", c_type(h, input_dtype(&e->inputs.at[i])),
                   input_name(h, e, i));
    for (int i = 0; i < e->results.n; i++)
        out_printf(&o, ", %s *%s", c_type(h, result_type(h, e, i)), result_name(h, e, i));
    return o.text;
}
