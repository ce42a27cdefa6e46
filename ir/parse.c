/* IR text in, Program out: the header and the declarations; types and nodes are in read_node.c. The
 * forms are those of print.c, in the same order: what a line refers to stands above it. */
#include "ir/text.h"
#include "ir/reader.h"
#include "ir/verify.h"
#include "ir/optim.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- scalars ---- */

static Scalar *parse_scalar(Reader *r);

static Scalar *scalar(Reader *r, ScalarKind kind)
{
    Scalar *s = new (r->arena, Scalar);
    s->kind = kind;
    s->span = r->span;
    return s;
}

/* "(- a)" and "(a * b)" */
static Scalar *parse_arithmetic(Reader *r)
{
    Scalar *s = scalar(r, S_BINARY);
    if (++r->depth > MAX_DEPTH)
        fail_at(r, r->span, "parentheses nest too deeply");
    need_mark(r, "(");
    if (is_mark(r, "-") || is_mark(r, "!"))
        s->kind = S_UNARY;
    else
        s->a = parse_scalar(r);
    static const char operators[] = "+|-|*|/|%|<|<=|>|>=|==|!=|&&|!";
    if (r->kind != TOKEN_MARK ||
        (choice_find(operators, r->text) < 0 && strcmp(r->text, "||") != 0))
        fail(r, "an operator");
    s->s = r->text;
    next_token(r);
    *(s->kind == S_UNARY ? &s->a : &s->b) = parse_scalar(r);
    need_mark(r, ")");
    r->depth--;
    return s;
}

/* "[0:64]", "image[0:0]" */
static Scalar *parse_column(Reader *r, Str name)
{
    Scalar *s = scalar(r, S_COLUMN);
    s->s = name;
    need_mark(r, "[");
    s->from = need_int_in(r, 0, INT32_MAX);
    need_mark(r, ":");
    s->to = need_int_in(r, s->from, INT32_MAX);
    need_mark(r, "]");
    return s;
}

static Scalar *parse_call(Reader *r, Str name)
{
    Scalar *s = scalar(r, S_CALL);
    s->s = name;
    if (++r->depth > MAX_DEPTH)
        fail_at(r, r->span, "calls nest too deeply");
    need_mark(r, "(");
    if (!is_mark(r, ")"))
        s->a = parse_scalar(r);
    if (take_mark(r, ","))
        s->b = parse_scalar(r);
    need_mark(r, ")");
    r->depth--;
    return s;
}

static Scalar *parse_named(Reader *r)
{
    Scalar *s = scalar(r, S_OPTION);
    Span span = r->span;
    Str name = need_name(r);
    if (is_mark(r, "["))
        return parse_column(r, name);
    if (is_mark(r, "("))
        return parse_call(r, name);
    for (int i = 0; i < r->program->options.n; i++)
        if (r->program->options.at[i]->name == name) {
            s->i = i;
            return s;
        }
    fail_at(r, span, "there is no option '%s'", name);
    return s;
}

static Scalar *parse_scalar(Reader *r)
{
    Scalar *s;
    if (is_mark(r, "("))
        return parse_arithmetic(r);
    if (is_mark(r, "["))
        return parse_column(r, NULL);
    if (r->kind == TOKEN_INT) {
        s = scalar(r, S_INT);
        s->i = need_int(r);
    } else if (r->kind == TOKEN_STRING) {
        s = scalar(r, S_STRING);
        s->s = need_name(r);
    } else if (is_keyword(r, "true") || is_keyword(r, "false")) {
        s = scalar(r, S_BOOL);
        s->i = need_choice(r, "false|true");
    } else if (r->kind == TOKEN_WORD && !is_keyword(r, "INFINITY") && !is_keyword(r, "NAN")) {
        s = parse_named(r);
    } else {
        s = scalar(r, S_REAL);
        s->r = need_real(r);
    }
    return s;
}

/* ---- fields ---- */

static void parse_field(Reader *r, const TextField *f, void *object)
{
    char *at = (char *)object + f->offset;
    int small = 1;
    int64_t large;
    double real;
    const void *pointer = NULL;
    if (f->kind != FIELD_FLAG)
        need_mark(r, "=");
    switch (f->kind) {
    case FIELD_INT:
        small = (int)need_int_in(r, -1, INT32_MAX);
        memcpy(at, &small, sizeof small);
        break;
    case FIELD_DTYPE:
        small = (int)read_dtype(r);
        memcpy(at, &small, sizeof small);
        break;
    case FIELD_CHOICE:
        small = need_choice(r, f->choices);
        memcpy(at, &small, sizeof small);
        break;
    case FIELD_FLAG:
        memcpy(at, &small, sizeof small);
        break;
    case FIELD_LONG:
        large = need_int(r);
        memcpy(at, &large, sizeof large);
        break;
    case FIELD_REAL:
        real = need_real(r);
        memcpy(at, &real, sizeof real);
        break;
    case FIELD_WORD:
        pointer = need_name(r);
        memcpy(at, &pointer, sizeof pointer);
        break;
    case FIELD_SCALAR:
        pointer = parse_scalar(r);
        memcpy(at, &pointer, sizeof pointer);
        break;
    }
}

/* A field of the table, if the token is the key of one. */
static int take_field(Reader *r, const TextField *table, void *object)
{
    for (const TextField *f = table; f->key; f++)
        if (take_keyword(r, f->key)) {
            parse_field(r, f, object);
            return 1;
        }
    return 0;
}

/* The rest of a line: fields and a span. */
static void parse_fields(Reader *r, const TextField *table, void *object, Span *span)
{
    while (take_field(r, table, object))
        ;
    *span = read_span(r, *span);
    need_line(r);
}

/* A name that nothing of the list has yet. */
#define CHECK_FRESH(r, list, name_, what)                                                          \
    for (int i_ = 0; i_ < (list).n; i_++)                                                          \
        if ((list).at[i_]->name == (name_))                                                        \
            fail_at((r), (r)->span, "a second %s '%s'", (what), (name_));

static Instance *find_instance(Reader *r)
{
    Span span = r->span;
    Str name = need_name(r);
    for (int i = 0; i < r->program->instances.n; i++)
        if (r->program->instances.at[i]->name == name)
            return r->program->instances.at[i];
    fail_at(r, span, "there is no instance '%s'", name);
    return NULL;
}

/* ---- declarations ---- */

static void parse_option(Reader *r)
{
    Option *x = new (r->arena, Option);
    Vec(Scalar *) set = {0};
    x->span = r->span;
    x->name = need_name(r);
    CHECK_FRESH(r, r->program->options, x->name, "option");
    need_mark(r, ":");
    x->kind = (OptionKind)need_choice(r, option_choices);
    need_mark(r, "=");
    x->value = parse_scalar(r);
    if (take_keyword(r, "in")) {
        x->low = is_mark(r, "..") ? NULL : parse_scalar(r);
        need_mark(r, "..");
        int open = r->kind == TOKEN_LINE || r->kind == TOKEN_WORD || is_mark(r, "@");
        x->high = open ? NULL : parse_scalar(r);
    }
    if (take_keyword(r, "set")) {
        need_mark(r, "[");
        do
            vec_push(r->arena, &set, parse_scalar(r));
        while (take_mark(r, ","));
        need_mark(r, "]");
    }
    x->set = set.at;
    x->set_count = set.n;
    parse_fields(r, option_fields, x, &x->span);
    vec_push(r->arena, &r->program->options, x);
}

static void parse_instance(Reader *r)
{
    Instance *x = new (r->arena, Instance);
    x->span = r->span;
    x->name = need_name(r);
    CHECK_FRESH(r, r->program->instances, x->name, "instance");
    need_mark(r, ":");
    x->model = need_name(r);
    parse_fields(r, instance_fields, x, &x->span);
    vec_push(r->arena, &r->program->instances, x);
}

static void parse_data_field(Reader *r, Dataset *x)
{
    Field f = {.span = r->span};
    f.name = need_name(r);
    need_mark(r, ":");
    f.type = read_type(r);
    if (take_mark(r, "="))
        f.value = parse_scalar(r);
    f.span = read_span(r, f.span);
    need_line(r);
    vec_push(r->arena, &x->fields, f);
}

static void parse_dataset(Reader *r)
{
    Dataset *x = new (r->arena, Dataset);
    x->span = r->span;
    x->name = need_name(r);
    CHECK_FRESH(r, r->program->datasets, x->name, "dataset");
    need_mark(r, ":");
    x->kind = (DataKind)need_choice(r, dataset_choices);
    parse_fields(r, dataset_fields, x, &x->span);
    for (;;) {
        if (take_keyword(r, "field")) {
            parse_data_field(r, x);
        } else if (take_keyword(r, "split")) {
            Split split = {.name = need_name(r), .share = need_real(r)};
            need_line(r);
            vec_push(r->arena, &x->splits, split);
        } else {
            break;
        }
    }
    x->index = r->program->datasets.n;
    vec_push(r->arena, &r->program->datasets, x);
}

static Schedule *parse_schedule(Reader *r)
{
    Schedule *x = new (r->arena, Schedule);
    need_mark(r, "=");
    x->kind = need_word(r);
    need_mark(r, "(");
    while (!is_mark(r, ")")) {
        if (!take_field(r, schedule_fields, x))
            fail(r, "a field of a schedule");
        if (!take_mark(r, ","))
            break;
    }
    need_mark(r, ")");
    return x;
}

/* "(lr=0.1, momentum=0.9)" */
static void parse_hypers(Reader *r, int kind, Scalar **hyper)
{
    const OptimInfo *info = optim_info(kind);
    need_mark(r, "(");
    while (!r->failed && !is_mark(r, ")")) {
        int i = 0;
        while (i < info->hypers && !is_keyword(r, info->hyper[i]))
            i++;
        if (i == info->hypers) {
            fail(r, arena_printf(r->arena, "a hyperparameter of %s", info->name));
            break;
        }
        next_token(r);
        need_mark(r, "=");
        hyper[i] = parse_scalar(r);
        if (!take_mark(r, ","))
            break;
    }
    need_mark(r, ")");
}

static void parse_group(Reader *r, Optimizer *x)
{
    ParamGroup *g = new (r->arena, ParamGroup);
    g->span = r->span;
    need_mark(r, "[");
    while (!r->failed && !is_mark(r, "]")) {
        Str glob = need_name(r);
        vec_push(r->arena, &g->globs, glob);
        if (!take_mark(r, ","))
            break;
    }
    need_mark(r, "]");
    parse_hypers(r, x->kind, g->hyper);
    if (take_keyword(r, "schedule"))
        g->lr = parse_schedule(r);
    g->span = read_span(r, g->span);
    need_line(r);
    vec_push(r->arena, &x->groups, g);
}

/* Hyperparameters that the text leaves out have the defaults of their row. */
static void fill_hypers(Reader *r, Optimizer *x)
{
    const OptimInfo *info = optim_info(x->kind);
    for (int i = 0; i < info->hypers; i++) {
        if (x->hyper[i] || (i == 0 && x->lr))
            continue;
        if (isnan(info->fallback[i]))
            fail_at(r, x->span, "'%s' needs %s", info->name, info->hyper[i]);
        x->hyper[i] = scalar(r, info->flag[i] ? S_BOOL : S_REAL);
        if (info->flag[i])
            x->hyper[i]->i = info->fallback[i] != 0;
        else
            x->hyper[i]->r = info->fallback[i];
    }
}

static void parse_optimizer(Reader *r)
{
    Optimizer *x = new (r->arena, Optimizer);
    Vec(Instance *) over = {0};
    x->span = r->span;
    x->name = need_name(r);
    CHECK_FRESH(r, r->program->optimizers, x->name, "optimizer");
    need_mark(r, ":");
    x->kind = r->kind == TOKEN_WORD ? optim_find(r->text) : -1;
    if (x->kind < 0) {
        fail(r, "an optimizer");
        return;
    }
    next_token(r);
    parse_hypers(r, x->kind, x->hyper);
    if (take_keyword(r, "schedule"))
        x->lr = parse_schedule(r);
    fill_hypers(r, x);
    if (take_keyword(r, "over")) {
        need_mark(r, "[");
        do
            vec_push(r->arena, &over, find_instance(r));
        while (take_mark(r, ","));
        need_mark(r, "]");
    }
    x->instances = over.at;
    x->instance_count = over.n;
    parse_fields(r, optimizer_fields, x, &x->span);
    while (take_keyword(r, "group"))
        parse_group(r, x);
    x->index = r->program->optimizers.n;
    vec_push(r->arena, &r->program->optimizers, x);
}

static void parse_scaler(Reader *r)
{
    Scaler *x = new (r->arena, Scaler);
    fields_clear(scaler_fields, x);
    x->span = r->span;
    x->name = need_name(r);
    CHECK_FRESH(r, r->program->scalers, x->name, "scaler");
    parse_fields(r, scaler_fields, x, &x->span);
    x->index = r->program->scalers.n;
    vec_push(r->arena, &r->program->scalers, x);
}

static void parse_init(Reader *r, Init *init)
{
    need_mark(r, "=");
    init->kind = (InitKind)need_choice(r, init_choices);
    if (!take_mark(r, "("))
        return;
    init->a = need_real(r);
    need_mark(r, ",");
    init->b = need_real(r);
    need_mark(r, ")");
}

/* The name inside its instance. */
static Str local_name(Reader *r, const Param *x)
{
    size_t n = x->instance ? strlen(x->instance->name) : 0;
    int inside = x->instance && !strncmp(x->name, x->instance->name, n) && x->name[n] == '.';
    return inside ? intern(r->names, x->name + n + 1) : x->name;
}

static void parse_param(Reader *r, int is_buffer)
{
    Param *x = new (r->arena, Param);
    fields_clear(param_fields, x);
    x->is_buffer = is_buffer;
    x->span = r->span;
    x->name = need_name(r);
    if (map_get(&r->params, x->name))
        fail_at(r, x->span, "a second parameter '%s'", x->name);
    need_mark(r, ":");
    Span at = r->span;
    x->type = read_type(r);
    for (int i = 0; i < x->type->rank; i++)
        if (!dim_is_int(x->type->dim[i], NULL))
            fail_at(r, at, "the dimensions of a parameter are integers");
    if (!is_real(x->type->dtype))
        fail_at(r, at, "a parameter is real");
    for (;;) {
        at = r->span;
        if (take_keyword(r, "init")) {
            parse_init(r, &x->init);
        } else if (take_keyword(r, "instance")) {
            need_mark(r, "=");
            x->instance = find_instance(r);
        } else if (take_keyword(r, "local")) {
            need_mark(r, "=");
            x->local = need_name(r);
        } else if (take_keyword(r, "optimizer")) {
            need_mark(r, "=");
            Str name = need_name(r);
            x->optimizer = program_optimizer(r->program, name);
            if (!x->optimizer)
                fail_at(r, at, "there is no optimizer '%s'", name);
        } else if (!take_field(r, param_fields, x)) {
            break;
        }
    }
    parse_fields(r, param_fields, x, &x->span);
    if (r->failed)
        return;
    if (!x->local)
        x->local = local_name(r, x);
    x->index = r->program->params.n;
    vec_push(r->arena, &r->program->params, x);
    map_put(r->arena, &r->params, x->name, x);
    if (x->optimizer)
        vec_push(r->arena, &x->optimizer->params, x);
}

/* ---- entries ---- */

static void parse_symbol(Reader *r, Entry *e)
{
    Span span = r->span;
    Str name = need_word(r);
    if (!take_keyword(r, "in"))
        fail(r, "'in'");
    int64_t low = need_int_in(r, 1, (int64_t)1 << 32);
    need_mark(r, "..");
    int64_t high = need_int_in(r, low, (int64_t)1 << 32);
    if (map_get(&r->symbols, name))
        fail_at(r, span, "a second dimension '%s'", name);
    int symbol = symbol_add(&r->program->types, name, low, high);
    if (take_keyword(r, "batch"))
        e->batch_symbol = symbol;
    map_put(r->arena, &r->symbols, name, (void *)((uintptr_t)symbol + 1));
    need_line(r);
}

static void parse_input(Reader *r, Entry *e)
{
    EntryInput x = {.span = r->span};
    fields_clear(input_fields, &x);
    x.name = need_name(r);
    for (int i = 0; i < e->inputs.n; i++)
        if (e->inputs.at[i].name == x.name)
            fail_at(r, x.span, "a second input '%s'", x.name);
    need_mark(r, ":");
    x.type = read_type(r);
    Span at = r->span;
    parse_fields(r, input_fields, &x, &x.span);
    if (x.field >= 0 && (!e->dataset || x.field >= e->dataset->fields.n))
        fail_at(r, at, "the entry's data has no field %d", x.field);
    vec_push(r->arena, &e->inputs, x);
}

static void parse_segment(Reader *r, Entry *e)
{
    Graph *g = graph_make(r->program);
    if (take_keyword(r, "times")) {
        need_mark(r, "=");
        g->times = need_int_in(r, 1, INT32_MAX);
    }
    need_line(r);
    read_nodes(r, g);
    Graph **longer = new_array(r->arena, Graph *, e->segments + 1);
    if (e->segments)
        memcpy(longer, e->segment, sizeof *longer * (size_t)e->segments);
    longer[e->segments++] = g;
    e->segment = longer;
}

static void parse_entry_items(Reader *r, Entry *e)
{
    for (;;) {
        if (take_keyword(r, "dim")) {
            parse_symbol(r, e);
        } else if (take_keyword(r, "input")) {
            parse_input(r, e);
        } else if (is_keyword(r, "report") || is_keyword(r, "result")) {
            int is_report = take_keyword(r, "report");
            if (!is_report)
                next_token(r);
            Str name = need_name(r);
            need_line(r);
            if (is_report)
                vec_push(r->arena, &e->reports, name);
            else
                vec_push(r->arena, &e->results, name);
        } else if (take_keyword(r, "segment")) {
            parse_segment(r, e);
        } else {
            return;
        }
    }
}

static void parse_entry_words(Reader *r, Entry *e)
{
    for (;;) {
        Span at = r->span;
        if (take_keyword(r, "data")) {
            need_mark(r, "=");
            Str name = need_name(r);
            for (int i = 0; i < r->program->datasets.n; i++)
                if (r->program->datasets.at[i]->name == name)
                    e->dataset = r->program->datasets.at[i];
            if (!e->dataset)
                fail_at(r, at, "there is no dataset '%s'", name);
        } else if (take_keyword(r, "optimizers")) {
            need_mark(r, "[");
            do {
                Str name = need_name(r);
                Optimizer *opt = program_optimizer(r->program, name);
                if (!opt) {
                    fail_at(r, at, "there is no optimizer '%s'", name);
                    return;
                }
                opt->entry = e;
                vec_push(r->arena, &e->optimizers, opt);
            } while (take_mark(r, ","));
            need_mark(r, "]");
        } else if (take_keyword(r, "scalers")) {
            need_mark(r, "[");
            do {
                Str name = need_name(r);
                Scaler *scaler = program_scaler(r->program, name);
                if (!scaler) {
                    fail_at(r, at, "there is no scaler '%s'", name);
                    return;
                }
                vec_push(r->arena, &e->scalers, scaler);
            } while (take_mark(r, ","));
            need_mark(r, "]");
        } else if (!take_field(r, entry_fields, e)) {
            return;
        }
    }
}

static void parse_entry(Reader *r)
{
    Entry *e = new (r->arena, Entry);
    fields_clear(entry_fields, e);
    e->batch_symbol = -1;
    e->kind = (EntryKind)need_choice(r, entry_choices);
    e->span = r->span;
    e->name = need_name(r);
    CHECK_FRESH(r, r->program->entries, e->name, "entry");
    r->entry = e;
    r->symbols = (Map){.room = 0};
    parse_entry_words(r, e);
    Span at = r->span;
    parse_fields(r, entry_fields, e, &e->span);
    if (e->dataset && e->dataset->splits.n && e->split >= e->dataset->splits.n)
        fail_at(r, at, "the dataset has no split %d", e->split);
    parse_entry_items(r, e);
    r->symbols = (Map){.room = 0};
    e->index = r->program->entries.n;
    vec_push(r->arena, &r->program->entries, e);
}

/* ---- the whole text ---- */

static void parse_header(Reader *r)
{
    Properties *props = &r->program->props;
    Span unused = r->span;
    fields_clear(property_fields, props);
    if (need_int(r) != 1)
        fail_at(r, unused, "this version of ampc reads version 1 of IR text");
    if (take_keyword(r, "stage")) {
        need_mark(r, "=");
        r->program->stage = (Stage)need_choice(r, stage_choices);
    }
    parse_fields(r, property_fields, props, &unused);
    if (props->level < 0 && r->program->stage > TYPED)
        fail_at(r, unused, "a program behind pass 'cast' needs level=…");
    if (!is_half(props->half) || (props->model_type != DT_NONE && !is_real(props->model_type)))
        fail_at(r, unused, "half=… is f16 or bf16, and model=… is real");
    props->resolved = props->level >= 0;
    props->torch_policy = props->torch_policy > 0;
    props->strict = props->strict > 0;
}

static void parse_file(Reader *r)
{
    need_int_in(r, r->files.n, r->files.n);
    Str path = need_name(r);
    need_line(r);
    Source *file = source_add(r->program->diags->sources, path, "", 0);
    vec_push(r->arena, &r->files, file);
    vec_push(r->arena, &r->file_need, 0);
}

/* source 0 bytes=9, then every line of the file behind a `|`. */
static void parse_source(Reader *r)
{
    Span span = r->span;
    int64_t file = need_int_in(r, 0, r->files.n - 1);
    if (!take_keyword(r, "bytes"))
        fail(r, "'bytes'");
    need_mark(r, "=");
    size_t bytes = (size_t)need_int_in(r, 1, SOURCE_MAX), size = 0;
    if (r->kind != TOKEN_LINE)
        fail(r, "the end of the line");
    if (r->failed)
        return;
    char *text = arena_alloc(r->arena, bytes + 2);
    while (*r->at == '|') {
        size_t length;
        const char *line = raw_line(r, &length);
        if (size + length > bytes + 1)
            break;
        memcpy(text + size, line + 1, length - 1);
        size += length;
        text[size - 1] = '\n';
    }
    if (size != bytes && size != bytes + 1) {
        fail_at(r, span, "the source block does not have %zu bytes", bytes);
        return;
    }
    text[bytes] = '\0';
    source_set_text(r->program->diags->sources, r->files.at[file], text, bytes);
    next_token(r);
}

static void parse_declaration(Reader *r)
{
    if (take_keyword(r, "file"))
        parse_file(r);
    else if (take_keyword(r, "option"))
        parse_option(r);
    else if (take_keyword(r, "instance"))
        parse_instance(r);
    else if (take_keyword(r, "dataset"))
        parse_dataset(r);
    else if (take_keyword(r, "optimizer"))
        parse_optimizer(r);
    else if (take_keyword(r, "scaler"))
        parse_scaler(r);
    else if (take_keyword(r, "param"))
        parse_param(r, 0);
    else if (take_keyword(r, "buffer"))
        parse_param(r, 1);
    else if (take_keyword(r, "entry"))
        parse_entry(r);
    else if (take_keyword(r, "source"))
        parse_source(r);
    else
        fail(r, "a declaration");
}

Program *program_read(const Source *source, Diags *diags, Names *names, Arena *arena)
{
    Reader reader, *r = &reader;
    reader_open(r, source, diags, names, arena);
    parse_header(r);
    if (take_keyword(r, "graph")) {
        r->program->graph_hash = strtoull(need_name(r), NULL, 16);
        need_line(r);
    }
    if (take_keyword(r, "program")) {
        r->program->source_name = need_name(r);
        need_line(r);
    }
    while (!r->failed && r->kind != TOKEN_END)
        parse_declaration(r);
    for (int i = 0; i < r->files.n; i++) /* a place past the end is that of another text */
        if (!r->failed && r->files.at[i]->size && r->file_need.at[i] > r->files.at[i]->size)
            fail_at(r, r->span, "a place lies behind the end of file %d", i);
    if (!r->failed)
        verify_program(r->program, NULL);
    return r->program;
}
