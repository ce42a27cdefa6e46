#include "api/compile.h"
#include "api/summary.h"
#include "codegen/emit.h"
#include "frontend/elab.h"
#include "frontend/parse.h"
#include "ir/text.h"
#include "passes/levels.h"
#include "passes/memplan.h"
#include <string.h>
#include <time.h>

/* The worst of the errors: what a program that stops because of them returns. */
static int diags_status(const Diags *d)
{
    int status = d->errors ? WRONG_INPUT : DONE;
    for (const Diag *e = d->first; e; e = e->next) {
        if (e->severity != ERROR)
            continue;
        int of = e->code == CODE_INTERNAL ? INTERNAL_ERROR
                 : e->code == CODE_SYSTEM ? SYSTEM_FAILED
                 : e->code == CODE_USAGE  ? WRONG_USAGE
                                          : WRONG_INPUT;
        status = of > status ? of : status;
    }
    return status;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* -ftime-report: one line a stage. Gives the time at which the next stage starts. */
static double report_time(Compilation *c, const char *stage, double since)
{
    double now = now_ms();
    if (c->options->settings.time_report)
        out_line(&c->report, "%-10s %9.3f ms", stage, now - since);
    return now;
}

static void set_up_diags(Compilation *c)
{
    const Options *o = c->options;
    Diags *d = &c->diags;
    diags_init(d, &c->arena, &c->sources);
    d->max_errors = o->max_errors;
    d->remarks = o->remarks;
    for (int i = 0; i < o->warnings.n; i++)
        diags_option(d, o->warnings.at[i]);
    if (o->no_warnings)
        memset(d->enabled, 0, sizeof d->enabled);
}

static Source *read_source(Compilation *c, const char *name, const char *text, size_t bytes,
                           int first_line)
{
    const char *why = NULL;
    Source *source =
        text ? source_add(&c->sources, name, text, bytes) : source_read(&c->sources, name, &why);
    if (!source)
        system_error(&c->diags, "cannot read %s: %s", name, why);
    else if (first_line > 1)
        source->first_line = first_line;
    return source;
}

static Program *elaborated(Compilation *c, Ast *ast)
{
    const Options *o = c->options;
    ElabOptions options = {.defines = o->defines.at,
                           .define_count = o->defines.n,
                           .include = o->folders.at,
                           .include_count = o->folders.n};
    return elaborate(ast, &options, &c->diags, &c->names, &c->arena);
}

/* From text to the program as elaborated; NULL after errors and for --emit=ast. */
static void front(Compilation *c, Source *source)
{
    double started = now_ms();
    Ast *ast = parse(source, &c->diags, &c->names, &c->arena);
    started = report_time(c, "parse", started);
    if (c->diags.errors)
        return;
    if (c->options->emit == EMIT_AST)
        ast_print(ast, &c->output);
    else
        c->program = elaborated(c, ast);
}

/* --weights [INSTANCE=]FILE */
static void set_weights(Compilation *c, const char *setting)
{
    Program *p = c->program;
    const char *equals = strchr(setting, '=');
    Str name = equals ? intern_n(&c->names, setting, (size_t)(equals - setting)) : NULL;
    if (!equals && p->instances.n > 1) {
        error_at(&c->diags, CODE_USAGE, (Span){0},
                 "the program has %d instances; say which: --weights=%s=%s", p->instances.n,
                 p->instances.at[0]->name, setting);
        return;
    }
    for (int i = 0; i < p->instances.n; i++)
        if (!name || p->instances.at[i]->name == name) {
            p->instances.at[i]->weights = intern(&c->names, equals ? equals + 1 : setting);
            return;
        }
    error_at(&c->diags, CODE_USAGE, (Span){0}, "--weights=%s: the program has no instance%s%s%s",
             setting, name ? " '" : "", name ? name : "", name ? "'" : "");
}

static void run_passes(Compilation *c, Unit *u)
{
    const Options *o = c->options;
    if (o->emit == EMIT_TYPES || o->emit == EMIT_SUMMARY)
        passes_run(u, NULL, "cast"); /* the types are those of the level */
    else
        passes_run(u, o->passes, o->last_pass);
}

/* IR text may leave out what only an emitted program needs. */
static int can_emit(Compilation *c)
{
    Emit emit = c->options->emit;
    int is_c = emit == EMIT_PROGRAM || emit == EMIT_LIB || emit == EMIT_HEADER;
    for (int i = 0; is_c && i < c->program->params.n; i++) {
        const Param *p = c->program->params.at[i];
        if (!p->instance) {
            error_at(&c->diags, CODE_RULE, p->span, "'%s' has no instance; a program needs one",
                     p->name);
            return 0;
        }
    }
    return 1;
}

/* What --emit asks for, of a program that has passed all its passes. */
static void emit(Compilation *c, Unit *u)
{
    switch (c->options->emit) {
    case EMIT_PROGRAM:
        emit_program(u, &c->output);
        break;
    case EMIT_LIB:
        emit_lib(u, c->options->prefix, &c->output, &c->header);
        break;
    case EMIT_HEADER: {
        Out unused;
        out_init(&unused, &c->arena);
        emit_lib(u, c->options->prefix, &unused, &c->output);
        break;
    }
    case EMIT_IR:
        program_print(&c->output, c->program, PRINT_SPANS);
        if (u->plan)
            plan_dump(&c->output, c->program, u->plan);
        break;
    case EMIT_TYPES:
        print_types(&c->output, c->program);
        break;
    case EMIT_SUMMARY:
        print_summary(&c->output, c->program);
        break;
    case EMIT_AST:
    case EMIT_PROPERTIES:
    case EMIT_NOTHING:
        break;
    }
}

static int writes_code(Emit emit)
{
    return emit == EMIT_PROGRAM || emit == EMIT_LIB || emit == EMIT_HEADER;
}

/* IR text brings its properties; what the caller asks for wins while nothing depends on them
 * yet. */
static int needs_properties(const Program *p, const Settings *s)
{
    int asked = s->level >= 0 || s->half_given || s->policy_given || s->rounding_given ||
                s->keep_norm_f32 != UNSET || s->master_weights != UNSET ||
                s->cast_model_type != DT_NONE || s->unset || s->loss_scale || s->scaler_mode;
    return p->stage < CASTED && (asked || !p->props.resolved);
}

/* From the program as elaborated, or read from IR text, to the output. */
static void compile_program(Compilation *c, double started)
{
    const Options *o = c->options;
    Unit u = {.arena = &c->arena,
              .scratch = &c->scratch,
              .names = &c->names,
              .diags = &c->diags,
              .settings = &o->settings,
              .program = c->program};
    for (int i = 0; i < o->weights.n; i++)
        set_weights(c, o->weights.at[i]);
    if (needs_properties(c->program, &o->settings)) {
        resolve_properties(&u);
        c->program->props.resolved = 1;
    }
    if (o->emit == EMIT_PROPERTIES)
        print_properties(&c->output, &u);
    if (c->diags.errors || o->emit == EMIT_PROPERTIES)
        return;
    if (c->program->entries.n == 0 && writes_code(o->emit)) {
        if (o->output)
            error_at(&c->diags, CODE_RULE, (Span){0},
                     "nothing to emit: the file has no train, eval or infer");
        return;
    }
    run_passes(c, &u);
    c->plan = u.plan;
    if (c->diags.errors)
        return;
    started = report_time(c, "passes", started);
    if (o->memory_report && u.plan)
        mem_report(&u, &c->report);
    if (can_emit(c))
        emit(c, &u);
    report_time(c, "emit", started);
}

static void compile_source(Compilation *c, Source *source)
{
    double started = now_ms();
    if (is_ir_text(source)) {
        c->program = program_read(source, &c->diags, &c->names, &c->arena);
    } else {
        front(c, source);
        if (!c->program)
            return;
    }
    started = report_time(c, "elaborate", started);
    if (!c->diags.errors)
        compile_program(c, started);
}

int compile(Compilation *c, const Options *options, const char *name, const char *text,
            size_t bytes, int first_line)
{
    jmp_buf out_of_memory;
    memset(c, 0, sizeof *c);
    c->options = options;
    c->arena.failure = c->scratch.failure = &out_of_memory;
    if (setjmp(out_of_memory)) {
        graph_close(); /* it may have been open */
        compilation_free(c);
        c->out_of_memory = 1;
        return SYSTEM_FAILED;
    }
    names_init(&c->names, &c->arena);
    sources_init(&c->sources, &c->arena);
    set_up_diags(c);
    out_init(&c->output, &c->arena);
    out_init(&c->header, &c->arena);
    out_init(&c->report, &c->arena);
    Source *source = read_source(c, name, text, bytes, first_line);
    if (source)
        compile_source(c, source);
    c->arena.failure = c->scratch.failure = NULL; /* the jump buffer ends here */
    return diags_status(&c->diags);
}

void compilation_free(Compilation *c)
{
    arena_free(&c->arena);
    arena_free(&c->scratch);
    memset(c, 0, sizeof *c);
}
