/* Prints the functions of a library and its header: the state behind an opaque pointer, one
 * function an entry, and access to the weights. Only names that begin with the prefix are external.
 *
 *     int digits_fit_step(digits *d, int64_t N, const float *x, const int32_t *y, digits_fit_report *);
 *
 * A call checks what it is given, sets the number of threads, runs the step, restores the number,
 * and leaves a text when it fails. One that fails has changed nothing, except by RT_STOPPED.
 */
#include "codegen/host.h"
#include <string.h>

/* ---- types that both files know ---- */

static const char *upper(Host *h, const char *name)
{
    return host_constant(h, name);
}

static const char *field_type(OptionKind kind)
{
    static const char *const types[] = {"int64_t ", "double ", "int32_t ", "const char *"};
    return types[kind];
}

/* Does some schedule end at the train's planned steps, which a library is not told otherwise? */
static int needs_total(const Host *h)
{
    for (int i = 0; i < h->program->optimizers.n; i++) {
        const Optimizer *o = h->program->optimizers.at[i];
        int ends = o->lr && !o->lr->total &&
                   (!strcmp(o->lr->kind, "linear") || !strcmp(o->lr->kind, "cosine"));
        if (ends && !o->entry->steps)
            return 1;
    }
    return 0;
}

static void print_config(Host *h, Out *o)
{
    Program *p = h->program;
    out_line(o, "/* Set by %s_config_init; change what should differ. */", h->prefix);
    out_line(o, "typedef struct %s_config {", h->prefix);
    out_line(o, "    uint32_t struct_size;");
    out_line(o, "    int32_t threads;     /* 0: all */");
    out_line(o, "    int32_t device;      /* 0 */");
    out_line(o, "    uint64_t seed;");
    out_line(o, "    const char *weights; /* safetensors file to start from; NULL: none */");
    if (needs_total(h))
        out_line(o, "    int64_t total_steps; /* planned in all: where learning rates end */");
    for (int i = 0; i < p->options.n; i++) {
        const Option *x = p->options.at[i];
        const char *text =
            arena_printf(h->arena, "%s%s;", field_type(x->kind), option_name(h, x->name));
        out_line(o, x->doc ? "    %-20s /* %s */" : "    %s", text, x->doc ? x->doc : "");
    }
    out_line(o, "} %s_config;\n", h->prefix);
}

static int scalers_used(const Host *h)
{
    int count = 0;
    for (int i = 0; i < h->program->scalers.n; i++)
        count += is_scaler_used(h, h->program->scalers.at[i]);
    return count;
}

static int norms(const Host *h, const Entry *e)
{
    int count = 0;
    for (int i = 0; i < e->optimizers.n; i++)
        count += has_norm(h, e->optimizers.at[i]);
    return count;
}

static void print_report(Host *h, Out *o, const Entry *e)
{
    if (e->kind == ENTRY_INFER)
        return;
    Str name = host_name(h, e->name);
    out_line(o, "typedef struct %s_%s_report {\n    uint32_t struct_size;", h->prefix, name);
    if (e->kind == ENTRY_TRAIN) {
        out_line(o, "    uint32_t skipped; /* was the step skipped? */");
        out_line(o, "    uint64_t step;    /* attempted so far */");
    }
    for (int i = 0; i < e->reports.n; i++)
        out_line(o, "    float %s;", report_name(h, e->reports.at[i]));
    if (e->kind == ENTRY_TRAIN && scalers_used(h))
        out_line(o, "    float scale[%d];", scalers_used(h));
    if (e->kind == ENTRY_TRAIN && e->optimizers.n)
        out_line(o, "    float lr[%d];", e->optimizers.n);
    if (e->kind == ENTRY_TRAIN && norms(h, e))
        out_line(o, "    float grad_norm[%d];", norms(h, e));
    out_line(o, "} %s_%s_report;\n", h->prefix, name);
}

/* "int digits_fit_step(digits *d, int64_t N, ..., digits_fit_report *report)" */
static const char *entry_head(Host *h, const Entry *e)
{
    Str name = host_name(h, e->name);
    const char *function = e->kind == ENTRY_INFER ? name : arena_printf(h->arena, "%s_step", name);
    const char *report = e->kind == ENTRY_INFER
                             ? ""
                             : arena_printf(h->arena, ", %s_%s_report *report", h->prefix, name);
    return arena_printf(h->arena, "int %s_%s(%s *d%s%s)", h->prefix, function, h->prefix,
                        step_parameters(h, e), report);
}

void print_header(Host *h, Out *o)
{
    Program *p = h->program;
    const char *guard = upper(h, h->prefix);
    out_line(o, "/* %s.amp at -O%d as a C library, written by ampc %s (0BSD).", program_stem(h),
             p->props.level, AMPC_VERSION);
    out_line(o,
             " *\n * Functions give 0, or a status: 1 bad data, 2 wrong use, 3 the system failed, "
             "4 a fault of this");
    out_line(o, " * program, 5 too many steps in a row were skipped. A call that fails has changed "
                "nothing, except");
    out_line(o,
             " * by 5. One thread at a time may use an instance; there may be many. Arrays are the "
             "caller's,");
    out_line(o, " * row-major. */");
    out_line(o, "#ifndef %s_H\n#define %s_H\n#include <stdint.h>\n", guard, guard);
    out_line(o, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n#define %s_ABI 1\n", guard);
    out_line(o, "typedef struct %s %s; /* all state of the program */\n", h->prefix, h->prefix);
    print_config(h, o);
    for (int i = 0; i < p->entries.n; i++)
        print_report(h, o, p->entries.at[i]);
    const char *x = h->prefix;
    out_line(o, "int %s_config_init(%s_config *config, uint32_t struct_size);", x, x);
    out_line(o, "/* Takes all memory; NULL for config is all defaults. */");
    out_line(o, "int %s_create(%s **out, const %s_config *config);", x, x, x);
    out_line(o, "void %s_destroy(%s *d);", x, x);
    out_line(o, "/* The text of the last failure; NULL asks for this thread's last one. */");
    out_line(o, "const char *%s_error(const %s *d);\n", x, x);
    for (int i = 0; i < p->entries.n; i++) {
        const Entry *e = p->entries.at[i];
        if (e->doc)
            out_line(o, "/* %s */", e->doc);
        out_line(o, "%s;", entry_head(h, e));
    }
    out_line(o, "\n/* Tensors are called as in checkpoints: param/INSTANCE/NAME, opt/... */");
    out_line(o, "int %s_get(%s *d, const char *tensor, float *values, int64_t count);", x, x);
    out_line(o, "int %s_set(%s *d, const char *tensor, const float *values, int64_t count);", x, x);
    out_line(o, "int %s_save(%s *d, const char *path);", x, x);
    out_line(o, "int %s_load(%s *d, const char *path);", x, x);
    out_line(o, "\n#ifdef __cplusplus\n}\n#endif\n#endif");
}

/* ---- the functions ---- */

static void print_struct(Host *h)
{
    out_line(
        h->o,
        "struct %s {\n    State state;\n    int64_t skips_in_row;\n    char error[1024];\n};\n",
        h->prefix);
    out_line(h->o,
             "/* Keeps the text of a failure. */\n"
             "static int finish(%s *d, int status)\n{\n"
             "    if (status)\n"
             "        memcpy(d->error, rt_error_text(), sizeof d->error);\n"
             "    return status;\n}\n",
             h->prefix);
}

static void print_config_init(Host *h)
{
    const char *x = h->prefix;
    const Entry *e = first_train(h);
    out_line(h->o, "int %s_config_init(%s_config *config, uint32_t struct_size)\n{", x, x);
    out_line(h->o, "    %s_config all;\n    memset(&all, 0, sizeof all);", x);
    out_line(h->o,
             "    if (!config || struct_size < sizeof all.struct_size || struct_size > sizeof "
             "all)\n"
             "        return rt_fail(RT_USAGE, \"config_init: struct_size is %%u, wanted at "
             "most %%zu\",\n"
             "                       (unsigned)struct_size, sizeof all);");
    if (e && e->seed)
        out_line(h->o, "    all.seed = %s;", int_c(h, e->seed));
    for (int i = 0; i < h->program->options.n; i++) {
        const Option *o = h->program->options.at[i];
        out_line(h->o, "    all.%s = %s;", option_name(h, o->name), scalar_c(h, o->value));
    }
    out_text(h->o, "    all.struct_size = struct_size;\n"
                   "    memcpy(config, &all, struct_size);\n"
                   "    return RT_OK;\n}\n\n");
}

/* Refuses an option outside its range, NaN included. */
static void print_range_check(Host *h, const Option *o)
{
    Str name = option_name(h, o->name);
    Out test;
    out_init(&test, h->arena);
    if (o->kind == OPTION_STRING || (!o->low && !o->high && !o->set_count))
        return;
    for (int i = 0; i < o->set_count; i++)
        out_printf(&test, "%sall.%s == %s", i ? " || " : "", name, scalar_c(h, o->set[i]));
    if (o->low)
        out_printf(&test, "all.%s >= %s", name, scalar_c(h, o->low));
    if (o->high)
        out_printf(&test, "%sall.%s <= %s", o->low ? " && " : "", name, scalar_c(h, o->high));
    out_line(h->o, "    if (!(%s))\n        return rt_fail(RT_USAGE, \"'%s' is out of range\");",
             test.text, o->name);
}

static void print_create(Host *h)
{
    Program *p = h->program;
    const char *x = h->prefix;
    out_line(h->o, "int %s_create(%s **out, const %s_config *config)\n{", x, x, x);
    out_line(h->o, "    %s_config all;\n    *out = NULL;", x);
    out_line(h->o, "    int status = %s_config_init(&all, sizeof all);", x);
    out_text(h->o, "    if (!status && config && config->struct_size > sizeof all)\n"
                   "        status = rt_fail(RT_USAGE, \"create: the config is of a later "
                   "version\");\n"
                   "    if (status)\n        return status;\n"
                   "    if (config)\n        memcpy(&all, config, config->struct_size);\n");
    out_text(h->o,
             "    if (all.device || all.threads < 0)\n"
             "        return rt_fail(RT_USAGE, \"create: there is no such device or number of "
             "threads\");\n");
    for (int i = 0; i < p->options.n; i++)
        print_range_check(h, p->options.at[i]);
    if (p->props.strict)
        out_text(h->o, "    if ((status = rt_check_rounding()))\n        return status;\n");
    out_line(h->o,
             "    %s *d = (%s *)calloc(1, sizeof *d);\n"
             "    if (!d)\n        return rt_fail(RT_SYSTEM, \"out of memory\");\n"
             "    State *s = &d->state;\n"
             "    s->seed = all.seed;\n"
             "    s->threads = all.threads ? all.threads : rt_threads();",
             x, x);
    for (int i = 0; i < p->options.n; i++)
        out_line(h->o, "    s->option.%s = all.%s;", option_name(h, p->options.at[i]->name),
                 option_name(h, p->options.at[i]->name));
    for (int i = 0; i < p->entries.n; i++) {
        const Entry *e = p->entries.at[i];
        if (e->kind == ENTRY_TRAIN && (e->steps || needs_total(h)))
            out_line(h->o, "    s->%s.steps = %s;", member(h, e, e->name),
                     e->steps ? int_c(h, e->steps) : "all.total_steps");
    }
    out_text(h->o, "    status = state_create(s);\n");
    for (int i = 0; i < p->instances.n; i++) {
        const Instance *n = p->instances.at[i];
        if (n->weights)
            out_line(h->o, "    if (!status)\n        status = load_weights(s, %s, %s);",
                     string_c(h, n->name), string_c(h, n->weights));
    }
    if (p->instances.n)
        out_line(h->o,
                 "    if (!status && all.weights)\n"
                 "        status = load_weights(s, %s, all.weights);",
                 string_c(h, p->instances.at[0]->name));
    out_line(h->o,
             "    if (status) {\n        %s_destroy(d);\n        return status;\n    }\n"
             "    *out = d;\n    return RT_OK;\n}\n",
             x);
}

static void print_load_weights(Host *h)
{
    if (!h->program->instances.n)
        return;
    out_text(h->o, "static int load_weights(State *s, const char *instance, const char *path)\n{\n"
                   "    RtTable table = {NULL, 0, 0, 0};\n"
                   "    RtTensors f;\n"
                   "    weight_table(s, &table, instance);\n"
                   "    int status = rt_table_status(&table);\n"
                   "    if (!status && !(status = rt_tensors_open(&f, path))) {\n"
                   "        status = rt_entries_read(&f, table.entry, table.count, RT_LOAD_EXTRA, "
                   "NULL);\n"
                   "        rt_tensors_close(&f);\n"
                   "    }\n");
    if (has_copies(h))
        out_text(h->o, "    state_round(s);\n");
    out_text(h->o, "    rt_table_free(&table);\n    return status;\n}\n\n");
}

/* ---- entries ---- */

static void print_symbol_checks(Host *h, const Entry *e)
{
    int symbols[16];
    int count = entry_symbols(h, e, symbols, 16);
    for (int i = 0; i < count; i++) {
        const Symbol *x = &h->types->symbol[symbols[i]];
        Str name = host_name(h, x->name);
        out_line(h->o,
                 "    if (%s < %lld || %s > %lld)\n"
                 "        return finish(d, rt_fail(RT_USAGE, \"%s: %s is %%lld, wanted %lld to "
                 "%lld\", (long long)%s));",
                 name, (long long)x->low, name, (long long)x->high, e->name, x->name,
                 (long long)x->low, (long long)x->high, name);
    }
}

static void print_class_checks(Host *h, const Entry *e)
{
    for (int i = 0; i < e->inputs.n; i++) {
        const EntryInput *in = &e->inputs.at[i];
        if (!in->classes)
            continue;
        Str name = input_name(h, e, i);
        const char *count = dim_c(h->types, type_count(h->types, in->type), h->arena);
        out_line(h->o, "    for (int64_t i = 0; i < %s; i++)", count);
        out_line(h->o, "        if (%s[i] < 0 || %s[i] >= %lld)", name, name,
                 (long long)in->classes);
        out_line(
            h->o,
            "            return finish(d, rt_fail(RT_BAD_DATA, \"%s: %s[%%lld] is %%lld, wanted "
            "0 to %lld\", (long long)i, (long long)%s[i]));",
            e->name, in->name, (long long)in->classes - 1, name);
    }
}

static const char *arguments(Host *h, const Entry *e)
{
    int symbols[16];
    int count = entry_symbols(h, e, symbols, 16);
    Out o;
    out_init(&o, h->arena);
    for (int i = 0; i < count; i++)
        out_printf(&o, ", %s", host_name(h, h->types->symbol[symbols[i]].name));
    for (int i = 0; i < e->inputs.n; i++)
        out_printf(&o, ", %s", input_name(h, e, i));
    for (int i = 0; i < e->results.n; i++)
        out_printf(&o, ", %s", result_name(h, e, i));
    return o.text;
}

static void print_report_values(Host *h, const Entry *e)
{
    Str m = member(h, e, e->name);
    int n = 0;
    for (int i = 0; i < e->reports.n; i++)
        out_line(h->o, "        all.%s = s->%s.%s;", report_name(h, e->reports.at[i]), m,
                 report_name(h, e->reports.at[i]));
    if (e->kind != ENTRY_TRAIN)
        return;
    out_text(h->o, "        all.skipped = skipped;\n");
    out_line(h->o, "        all.step = (uint64_t)s->%s.step;", m);
    for (int i = 0; i < h->program->scalers.n; i++)
        if (is_scaler_used(h, h->program->scalers.at[i]))
            out_line(h->o, "        all.scale[%d] = scale_%s;", n++,
                     scaler_member(h, h->program->scalers.at[i]));
    n = 0;
    for (int i = 0; i < e->optimizers.n; i++) {
        Str o = member(h, e->optimizers.at[i], e->optimizers.at[i]->name);
        out_line(h->o, "        all.lr[%d] = (float)s->%s.lr;", i, o);
        if (has_norm(h, e->optimizers.at[i]))
            out_line(h->o, "        all.grad_norm[%d] = (float)s->%s.grad_norm;", n++, o);
    }
}

static void print_entry(Host *h, const Entry *e)
{
    Str m = member(h, e, e->name), name = host_name(h, e->name);
    int trains = e->kind == ENTRY_TRAIN;
    out_line(h->o, "%s\n{\n    State *s = &d->state;", entry_head(h, e));
    print_symbol_checks(h, e);
    print_class_checks(h, e);
    if (trains)
        out_line(h->o, "    const int64_t skipped_before = s->%s.skipped;", m);
    for (int i = 0; trains && i < h->program->scalers.n; i++)
        if (is_scaler_used(h, h->program->scalers.at[i]))
            out_line(h->o, "    const float scale_%s = s->%s.scale;",
                     scaler_member(h, h->program->scalers.at[i]),
                     scaler_member(h, h->program->scalers.at[i]));
    out_line(h->o,
             "    const int threads = rt_use_threads(s->threads);\n    %s_step(s%s);\n"
             "    rt_use_threads(threads);",
             name, arguments(h, e));
    if (trains)
        out_line(h->o,
                 "    const uint32_t skipped = s->%s.skipped > skipped_before;\n"
                 "    d->skips_in_row = skipped ? d->skips_in_row + 1 : 0;",
                 m);
    if (e->kind != ENTRY_INFER) {
        out_line(h->o,
                 "    if (report) {\n        %s_%s_report all;\n"
                 "        memset(&all, 0, sizeof all);\n"
                 "        all.struct_size = report->struct_size;",
                 h->prefix, name);
        print_report_values(h, e);
        out_text(h->o, "        memcpy(report, &all,\n"
                       "               all.struct_size < sizeof all ? all.struct_size : sizeof "
                       "all);\n    }\n");
    }
    if (trains)
        out_line(h->o,
                 "    if (d->skips_in_row >= RT_MAX_SKIPS)\n"
                 "        return finish(d, rt_fail(RT_STOPPED, \"%s: %%d steps in a row were "
                 "skipped\", RT_MAX_SKIPS));",
                 e->name);
    out_text(h->o, "    return RT_OK;\n}\n\n");
}

/* ---- access to tensors ---- */

static void print_access(Host *h)
{
    const char *x = h->prefix;
    out_line(h->o,
             "/* Copies a tensor to (or, with `set`, from) the caller's values. */\n"
             "static int copy_tensor(%s *d, const char *tensor, float *values, const float *set, "
             "int64_t count)\n{\n"
             "    RtTable table = {NULL, 0, 0, 0};\n"
             "    state_table(&d->state, &table);\n"
             "    int status = rt_table_status(&table);\n"
             "    if (!status)\n"
             "        status = rt_table_copy(&table, tensor, values, set, count);",
             x);
    if (has_copies(h))
        out_text(h->o, "    if (!status && set)\n        state_round(&d->state);\n");
    out_text(h->o, "    rt_table_free(&table);\n    return finish(d, status);\n}\n\n");
    out_line(h->o,
             "int %s_get(%s *d, const char *tensor, float *values, int64_t count)\n{\n"
             "    return copy_tensor(d, tensor, values, NULL, count);\n}\n",
             x, x);
    out_line(h->o,
             "int %s_set(%s *d, const char *tensor, const float *values, int64_t count)\n{\n"
             "    return copy_tensor(d, tensor, NULL, values, count);\n}\n",
             x, x);
    out_line(h->o,
             "int %s_save(%s *d, const char *path)\n{\n"
             "    RtTable table = {NULL, 0, 0, 0};\n"
             "    RtProgram program = this_program;\n"
             "    program.seed = d->state.seed;\n"
             "    state_table(&d->state, &table);\n"
             "    int status = rt_table_status(&table);\n"
             "    if (!status)\n"
             "        status = rt_checkpoint_write(path, &program, table.entry, table.count);\n"
             "    rt_table_free(&table);\n    return finish(d, status);\n}\n",
             x, x);
    out_line(h->o,
             "int %s_load(%s *d, const char *path)\n{\n"
             "    RtTable table = {NULL, 0, 0, 0};\n"
             "    RtTensors f;\n"
             "    state_table(&d->state, &table);\n"
             "    int status = rt_table_status(&table);\n"
             "    if (!status && !(status = rt_checkpoint_open(&f, path))) {\n"
             "        status = rt_checkpoint_check(&f, &this_program, false, NULL);\n"
             "        if (!status)\n"
             "            status = rt_entries_read(&f, table.entry, table.count, RT_LOAD_EXACT, "
             "NULL);\n"
             "        rt_tensors_close(&f);\n    }",
             x, x);
    if (has_copies(h))
        out_text(h->o, "    if (!status)\n        state_round(&d->state);\n");
    out_text(h->o, "    rt_table_free(&table);\n    return finish(d, status);\n}\n");
}

void print_library(Host *h)
{
    const char *x = h->prefix;
    section(h, "Library");
    print_identity(h);
    print_struct(h);
    print_config_init(h);
    print_load_weights(h);
    out_line(h->o,
             "void %s_destroy(%s *d)\n{\n    if (d)\n        state_destroy(&d->state);\n"
             "    free(d);\n}\n",
             x, x);
    print_create(h);
    out_line(
        h->o,
        "const char *%s_error(const %s *d)\n{\n    return d ? d->error : rt_error_text();\n}\n", x,
        x);
    for (int i = 0; i < h->program->entries.n; i++)
        print_entry(h, h->program->entries.at[i]);
    print_access(h);
}
