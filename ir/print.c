/* Writes a program as IR text: the header, then one declaration a line, then the entries with their
 * nodes. The parser is parse.c; fields in `key=value` form are tables that both walk
 * (text_fields.c). */
#include "ir/print_node.h"
#include "ir/text_fields.h"
#include "ir/optim.h"
#include <string.h>

static const char *stage_name(Stage stage)
{
    static const char *const names[] = {"parsed",  "typed",    "casted",  "differentiated",
                                        "cleaned", "mastered", "stepped", "expanded",
                                        "fused",   "planned"};
    return names[stage];
}

static const char *init_name(InitKind kind)
{
    static const char *const names[] = {"zeros",  "ones",       "constant", "uniform",
                                        "normal", "orthogonal", "eye"};
    return names[kind];
}

const char *region_name(Region region)
{
    static const char *const names[] = {"none", "f32", "f16", "bf16", "off"};
    return names[region];
}

/* Arithmetic in parentheses, so that reading needs no precedences; a column is name[from:to]. */
static void print_scalar(Printer *w, const Scalar *s)
{
    switch (s->kind) {
    case S_INT:
        out_printf(w->o, "%lld", (long long)s->i);
        break;
    case S_REAL:
        out_text(w->o, double_text(w->o->arena, s->r));
        break;
    case S_BOOL:
        out_text(w->o, s->i ? "true" : "false");
        break;
    case S_STRING:
        print_string(w->o, s->s);
        break;
    case S_OPTION:
        print_word(w->o, w->program->options.at[s->i]->name);
        break;
    case S_UNARY:
        out_printf(w->o, "(%s ", s->s);
        print_scalar(w, s->a);
        out_text(w->o, ")");
        break;
    case S_BINARY:
        out_text(w->o, "(");
        print_scalar(w, s->a);
        out_printf(w->o, " %s ", s->s);
        print_scalar(w, s->b);
        out_text(w->o, ")");
        break;
    case S_COLUMN:
        if (s->s)
            print_word(w->o, s->s);
        out_printf(w->o, "[%lld:%lld]", (long long)s->from, (long long)s->to);
        break;
    case S_CALL:
        out_printf(w->o, "%s(", s->s);
        if (s->a)
            print_scalar(w, s->a);
        if (s->b) {
            out_text(w->o, ", ");
            print_scalar(w, s->b);
        }
        out_text(w->o, ")");
        break;
    }
}

static void print_field(Printer *w, const TextField *f, const void *object, const char *before)
{
    const char *at = (const char *)object + f->offset;
    Out *o = w->o;
    int small = 0;
    int64_t large = 0;
    double real = 0;
    void *pointer = NULL;
    switch (f->kind) {
    case FIELD_FLAG:
        memcpy(&small, at, sizeof small);
        if (small)
            out_printf(o, "%s%s", before, f->key);
        break;
    case FIELD_INT:
        memcpy(&small, at, sizeof small);
        if (small != (int)f->absent)
            out_printf(o, "%s%s=%d", before, f->key, small);
        break;
    case FIELD_LONG:
        memcpy(&large, at, sizeof large);
        if (large != (int64_t)f->absent)
            out_printf(o, "%s%s=%lld", before, f->key, (long long)large);
        break;
    case FIELD_REAL:
        memcpy(&real, at, sizeof real);
        if (memcmp(&real, &f->absent, sizeof real))
            out_printf(o, "%s%s=%s", before, f->key, double_text(o->arena, real));
        break;
    case FIELD_WORD:
        memcpy(&pointer, at, sizeof pointer);
        if (pointer) {
            out_printf(o, "%s%s=", before, f->key);
            print_word(o, pointer);
        }
        break;
    case FIELD_SCALAR:
        memcpy(&pointer, at, sizeof pointer);
        if (pointer) {
            out_printf(o, "%s%s=", before, f->key);
            print_scalar(w, pointer);
        }
        break;
    case FIELD_DTYPE:
        memcpy(&small, at, sizeof small);
        if (small != DT_FLOAT && small != DT_NONE)
            out_printf(o, "%s%s=%s", before, f->key, dtype_info[small].name);
        break;
    case FIELD_CHOICE:
        memcpy(&small, at, sizeof small);
        if (small != (int)f->absent)
            out_printf(o, "%s%s=%s", before, f->key, choice_text(o->arena, f->choices, small));
        break;
    }
}

static void print_fields(Printer *w, const TextField *table, const void *object)
{
    for (const TextField *f = table; f->key; f++)
        print_field(w, f, object, " ");
}

/* The end of every declaration. */
static void end_line(Printer *w, Span span)
{
    print_span(w, span);
    out_text(w->o, "\n");
}

static void print_option(Printer *w, const Option *x)
{
    out_text(w->o, "option ");
    print_word(w->o, x->name);
    out_printf(w->o, ": %s = ", choice_text(w->o->arena, option_choices, (int)x->kind));
    print_scalar(w, x->value);
    if (x->low || x->high) {
        out_text(w->o, " in ");
        if (x->low)
            print_scalar(w, x->low);
        out_text(w->o, "..");
        if (x->high)
            print_scalar(w, x->high);
    }
    for (int i = 0; i < x->set_count; i++) {
        out_text(w->o, i ? ", " : " set [");
        print_scalar(w, x->set[i]);
    }
    if (x->set_count)
        out_text(w->o, "]");
    print_fields(w, option_fields, x);
    end_line(w, x->span);
}

static void print_instance(Printer *w, const Instance *x)
{
    out_text(w->o, "instance ");
    print_word(w->o, x->name);
    out_text(w->o, ": ");
    print_word(w->o, x->model ? x->model : "");
    print_fields(w, instance_fields, x);
    end_line(w, x->span);
}

static void print_dataset(Printer *w, const Dataset *x)
{
    out_text(w->o, "dataset ");
    print_word(w->o, x->name);
    out_printf(w->o, ": %s", choice_text(w->o->arena, dataset_choices, (int)x->kind));
    print_fields(w, dataset_fields, x);
    end_line(w, x->span);
    out_indent(w->o, 1);
    for (int i = 0; i < x->fields.n; i++) {
        const Field *f = &x->fields.at[i];
        out_text(w->o, "field ");
        print_word(w->o, f->name);
        out_printf(w->o, ": %s", type_text(&w->program->types, f->type, w->o->arena));
        if (f->value) {
            out_text(w->o, " = ");
            print_scalar(w, f->value);
        }
        end_line(w, f->span);
    }
    for (int i = 0; i < x->splits.n; i++) {
        out_text(w->o, "split ");
        print_word(w->o, x->splits.at[i].name);
        out_line(w->o, " %s", double_text(w->o->arena, x->splits.at[i].share));
    }
    out_indent(w->o, -1);
}

static void print_schedule(Printer *w, const Schedule *x)
{
    if (!x)
        return;
    out_printf(w->o, " schedule=%s(", x->kind);
    const char *before = "";
    for (const TextField *f = schedule_fields; f->key; f++) {
        size_t size = w->o->size;
        print_field(w, f, x, before);
        if (w->o->size != size)
            before = ", ";
    }
    out_text(w->o, ")");
}

static void print_hypers(Printer *w, int kind, Scalar *const *hyper)
{
    const OptimInfo *info = optim_info(kind);
    const char *before = "";
    for (int i = 0; i < info->hypers; i++) {
        if (!hyper[i])
            continue;
        out_printf(w->o, "%s%s=", before, info->hyper[i]);
        print_scalar(w, hyper[i]);
        before = ", ";
    }
}

static void print_optimizer(Printer *w, const Optimizer *x)
{
    out_text(w->o, "optimizer ");
    print_word(w->o, x->name);
    out_printf(w->o, ": %s(", optim_info(x->kind)->name);
    print_hypers(w, x->kind, x->hyper);
    out_text(w->o, ")");
    print_schedule(w, x->lr);
    for (int i = 0; i < x->instance_count; i++) {
        out_text(w->o, i ? ", " : " over [");
        print_word(w->o, x->instances[i]->name);
    }
    if (x->instance_count)
        out_text(w->o, "]");
    print_fields(w, optimizer_fields, x);
    end_line(w, x->span);
    out_indent(w->o, 1);
    for (int i = 0; i < x->groups.n; i++) {
        const ParamGroup *g = x->groups.at[i];
        out_text(w->o, "group [");
        for (int k = 0; k < g->globs.n; k++) {
            out_text(w->o, k ? ", " : "");
            print_string(w->o, g->globs.at[k]);
        }
        out_text(w->o, "](");
        print_hypers(w, x->kind, g->hyper);
        out_text(w->o, ")");
        print_schedule(w, g->lr);
        end_line(w, g->span);
    }
    out_indent(w->o, -1);
}

static void print_scaler(Printer *w, const Scaler *x)
{
    out_text(w->o, "scaler ");
    print_word(w->o, x->name);
    print_fields(w, scaler_fields, x);
    end_line(w, x->span);
}

/* The name inside the instance stands only where it is not what follows the instance's name. */
static int has_plain_local(const Param *x)
{
    const char *name = x->name;
    if (!x->local)
        return 1;
    if (x->instance) {
        size_t n = strlen(x->instance->name);
        if (strncmp(name, x->instance->name, n) || name[n] != '.')
            return 0;
        name += n + 1;
    }
    return !strcmp(name, x->local);
}

static void print_param(Printer *w, const Param *x)
{
    Out *o = w->o;
    out_text(o, x->is_buffer ? "buffer " : "param ");
    print_word(o, x->name);
    out_printf(o, ": %s init=%s", type_text(&w->program->types, x->type, o->arena),
               init_name(x->init.kind));
    if (x->init.kind >= INIT_CONSTANT && x->init.kind <= INIT_ORTHOGONAL)
        out_printf(o, "(%s, %s)", double_text(o->arena, x->init.a),
                   double_text(o->arena, x->init.b));
    if (x->instance) {
        out_text(o, " instance=");
        print_word(o, x->instance->name);
    }
    if (!has_plain_local(x)) {
        out_text(o, " local=");
        print_word(o, x->local);
    }
    if (x->optimizer) {
        out_text(o, " optimizer=");
        print_word(o, x->optimizer->name);
    }
    print_fields(w, param_fields, x);
    end_line(w, x->span);
}

/* Marks the symbols of a dimension. */
static void mark_symbols(char *used, const Dim *d)
{
    for (int i = 0; i < d->count; i++)
        for (int s = 0; s < d->term[i].degree; s++)
            used[d->term[i].symbol[s]] = 1;
}

static void mark_type(char *used, const Type *type)
{
    for (int i = 0; type && i < type->rank; i++)
        mark_symbols(used, type->dim[i]);
}

/* The symbols that an entry's types mention, in the order in which they were made. */
static char *symbols_of(Program *p, const Entry *e, Arena *arena)
{
    char *used = new_array(arena, char, p->types.symbols + 1);
    if (e->batch_symbol >= 0 && e->batch_symbol < p->types.symbols)
        used[e->batch_symbol] = 1;
    for (int i = 0; i < e->inputs.n; i++)
        mark_type(used, e->inputs.at[i].type);
    for (int s = 0; s < e->segments; s++)
        for (Node *n = e->segment[s]->first; n; n = n->next) {
            mark_type(used, n->type);
            for (int a = 0; n->attrs && a < n->attrs->n; a++)
                if (n->attrs->at[a].kind == ATTR_DIMS)
                    for (int i = 0; i < n->attrs->at[a].dims.n; i++)
                        mark_symbols(used, n->attrs->at[a].dims.at[i]);
        }
    return used;
}

static void print_symbols(Printer *w, const Entry *e)
{
    TypeTable *t = &w->program->types;
    char *used = symbols_of(w->program, e, w->o->arena);
    for (int i = 0; i < t->symbols; i++) {
        if (!used[i])
            continue;
        out_text(w->o, "dim ");
        print_word(w->o, t->symbol[i].name);
        out_line(w->o, " in %lld..%lld%s", (long long)t->symbol[i].low,
                 (long long)t->symbol[i].high, i == e->batch_symbol ? " batch" : "");
    }
}

static void print_signature(Printer *w, const Entry *e)
{
    print_symbols(w, e);
    for (int i = 0; i < e->inputs.n; i++) {
        const EntryInput *x = &e->inputs.at[i];
        out_text(w->o, "input ");
        print_word(w->o, x->name);
        out_printf(w->o, ": %s", type_text(&w->program->types, x->type, w->o->arena));
        print_fields(w, input_fields, x);
        end_line(w, x->span);
    }
    for (int i = 0; i < e->reports.n; i++) {
        out_text(w->o, "report ");
        print_word(w->o, e->reports.at[i]);
        out_text(w->o, "\n");
    }
    for (int i = 0; i < e->results.n; i++) {
        out_text(w->o, "result ");
        print_word(w->o, e->results.at[i]);
        out_text(w->o, "\n");
    }
}

static void print_entry(Printer *w, Entry *e)
{
    Out *o = w->o;
    out_printf(o, "entry %s ", choice_text(o->arena, entry_choices, (int)e->kind));
    print_word(o, e->name);
    if (e->dataset) {
        out_text(o, " data=");
        print_word(o, e->dataset->name);
    }
    for (int i = 0; i < e->optimizers.n; i++) {
        out_text(o, i ? ", " : " optimizers [");
        print_word(o, e->optimizers.at[i]->name);
    }
    out_text(o, e->optimizers.n ? "]" : "");
    for (int i = 0; i < e->scalers.n; i++) {
        out_text(o, i ? ", " : " scalers [");
        print_word(o, e->scalers.at[i]->name);
    }
    out_text(o, e->scalers.n ? "]" : "");
    print_fields(w, entry_fields, e);
    end_line(w, e->span);
    out_indent(o, 1);
    print_signature(w, e);
    for (int s = 0; s < e->segments; s++) {
        out_line(o, "segment times=%lld", (long long)e->segment[s]->times);
        out_indent(o, 1);
        print_nodes(w, e->segment[s]);
        out_indent(o, -1);
    }
    out_indent(o, -1);
}

static void print_header(Printer *w)
{
    Program *p = w->program;
    Stage stage = p->stage > EXPANDED ? EXPANDED : p->stage;
    out_printf(w->o, "ampc-ir 1 stage=%s", stage_name(stage));
    if (p->props.resolved)
        print_fields(w, property_fields, &p->props);
    out_text(w->o, "\n");
    if (p->graph_hash)
        out_line(w->o, "graph \"%016llx\"", (unsigned long long)p->graph_hash);
    if (w->spans && p->source_name) {
        out_text(w->o, "program ");
        print_string(w->o, p->source_name);
        out_text(w->o, "\n");
    }
}

/* The files that spans point into, numbered from 0; IR text itself is none of them. */
static void number_files(Printer *w)
{
    const Sources *sources = w->program->diags->sources;
    w->file = new_array(w->o->arena, int, sources->count + 1);
    int next = 0;
    for (int i = 0; i < sources->count; i++) {
        w->file[i] = is_ir_text(sources->files[i]) ? -1 : next++;
        if (w->file[i] < 0)
            continue;
        out_printf(w->o, "file %d ", w->file[i]);
        print_string(w->o, sources->files[i]->path);
        out_text(w->o, "\n");
    }
}

/* The text of the source files, so that a dump can be compiled without them: `|` before every
 * line. */
static void print_sources(Printer *w)
{
    const Sources *sources = w->program->diags->sources;
    for (int i = 0; i < sources->count; i++) {
        const Source *s = sources->files[i];
        if (w->file[i] < 0 || !s->size)
            continue;
        out_line(w->o, "source %d bytes=%zu", w->file[i], s->size);
        for (const char *p = s->text, *end = p + s->size; p < end;) {
            const char *newline = memchr(p, '\n', (size_t)(end - p));
            size_t n = newline ? (size_t)(newline - p) : (size_t)(end - p);
            out_line(w->o, "|%.*s", (int)n, p);
            p += n + 1;
        }
    }
}

void program_print(Out *o, Program *p, PrintMode mode)
{
    Printer writer = {.o = o, .program = p, .spans = mode == PRINT_SPANS}, *w = &writer;
    if (mode != PRINT_GRAPH)
        print_header(w);
    if (w->spans)
        number_files(w);
    for (int i = 0; i < p->options.n; i++)
        print_option(w, p->options.at[i]);
    for (int i = 0; i < p->instances.n; i++)
        print_instance(w, p->instances.at[i]);
    for (int i = 0; i < p->datasets.n; i++)
        print_dataset(w, p->datasets.at[i]);
    for (int i = 0; i < p->optimizers.n; i++)
        print_optimizer(w, p->optimizers.at[i]);
    for (int i = 0; i < p->scalers.n && mode != PRINT_GRAPH;
         i++) /* their numbers are the level's */
        print_scaler(w, p->scalers.at[i]);
    for (int i = 0; i < p->params.n; i++)
        print_param(w, p->params.at[i]);
    for (int i = 0; i < p->entries.n; i++)
        print_entry(w, p->entries.at[i]);
    if (w->spans)
        print_sources(w);
}
