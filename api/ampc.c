/* libampc's functions, on top of compile(). */
#include "runtime/ampc.h"
#include "api/compile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One ampc_emit: its output and messages live in the compilation. */
typedef struct Job {
    Compilation compilation;
    struct Job *older;
} Job;

struct AmpcContext {
    Arena arena; /* the options */
    Options options;
    Job *job; /* newest */
    AmpcDiagnostic *diagnostic;
    size_t diagnostics;
    char error[512];
};

static _Thread_local char open_error[512];

uint32_t ampc_abi(void)
{
    return AMPC_ABI;
}

const char *ampc_error(const AmpcContext *context)
{
    return context ? context->error : open_error;
}

static int fail(char error[512], int status, const char *text)
{
    snprintf(error, 512, "%s", text);
    return status;
}

/* Copies the words, since the caller's need not live on, and reads them. */
static int read_options(AmpcContext *context, const char *const *words)
{
    Arena *arena = &context->arena;
    Vec(const char *) copy = {0};
    for (; words && *words; words++)
        vec_push(arena, &copy, arena_copy(arena, *words, strlen(*words)));
    vec_push(arena, &copy, NULL);
    return options_read(&context->options, arena, copy.at, FOR_LIBRARY);
}

int ampc_open(AmpcContext **context, const char *const *options)
{
    open_error[0] = '\0';
    *context = NULL;
    AmpcContext *fresh = calloc(1, sizeof *fresh);
    if (!fresh)
        return fail(open_error, SYSTEM_FAILED, "out of memory");
    jmp_buf out_of_memory;
    fresh->arena.failure = &out_of_memory;
    if (setjmp(out_of_memory)) {
        ampc_close(fresh);
        return fail(open_error, SYSTEM_FAILED, "out of memory");
    }
    if (!read_options(fresh, options)) {
        fail(open_error, WRONG_USAGE, fresh->options.problem);
        ampc_close(fresh);
        return WRONG_USAGE;
    }
    fresh->arena.failure = NULL;
    *context = fresh;
    return DONE;
}

void ampc_close(AmpcContext *context)
{
    if (!context)
        return;
    while (context->job) {
        Job *job = context->job;
        context->job = job->older;
        compilation_free(&job->compilation);
        free(job);
    }
    arena_free(&context->arena);
    free(context);
}

/* --- messages --- */

static size_t count_messages(const Diag *d)
{
    size_t count = 0;
    for (; d; d = d->next)
        count += d->severity != MARK ? 1 + count_messages(d->child) : 0;
    return count;
}

/* Adds the message, and those that belong to it behind it. */
static void add_message(AmpcContext *context, const Diags *diags, const Diag *d, int parent)
{
    static const int severities[] = {AMPC_ERROR, AMPC_WARNING, AMPC_REMARK, AMPC_NOTE, AMPC_FIX, 0};
    if (d->severity == MARK)
        return;
    Place begin = place_of(diags->sources, d->span.file, d->span.begin);
    Place end = place_of(diags->sources, d->span.file, d->span.end);
    int index = (int)context->diagnostics++;
    context->diagnostic[index] =
        (AmpcDiagnostic){.severity = severities[d->severity],
                         .file = begin.path,
                         .line = begin.line,
                         .column = begin.column,
                         .end_line = end.line,
                         .end_column = end.column,
                         .code = d->severity < REMARK ? code_name(d->code) : "",
                         .message = diag_text(d),
                         .parent = parent};
    for (const Diag *child = d->child; child; child = child->next)
        add_message(context, diags, child, index);
}

static void keep_messages(AmpcContext *context, Compilation *c)
{
    size_t count = 0;
    for (const Diag *d = c->diags.first; d; d = d->next)
        count += count_messages(d);
    context->diagnostic = new_array(&c->arena, AmpcDiagnostic, count + 1);
    context->diagnostics = 0;
    for (const Diag *d = c->diags.first; d; d = d->next)
        add_message(context, &c->diags, d, -1);
}

/* The first error, for ampc_error. */
static void keep_error(AmpcContext *context)
{
    for (size_t i = 0; i < context->diagnostics; i++) {
        const AmpcDiagnostic *d = &context->diagnostic[i];
        if (d->severity != AMPC_ERROR)
            continue;
        if (d->file)
            snprintf(context->error, sizeof context->error, "%s:%d:%d: %s", d->file, d->line,
                     d->column, d->message);
        else
            snprintf(context->error, sizeof context->error, "%s", d->message);
        return;
    }
}

size_t ampc_diagnostics(const AmpcContext *context, const AmpcDiagnostic **list)
{
    *list = context->diagnostic;
    return context->diagnostics;
}

int ampc_emit(AmpcContext *context, const char *name, const char *text, size_t bytes,
              const char **out, size_t *out_bytes)
{
    *out = NULL;
    *out_bytes = 0;
    context->error[0] = '\0';
    context->diagnostic = NULL;
    context->diagnostics = 0;
    Job *job = calloc(1, sizeof *job);
    if (!job)
        return fail(context->error, SYSTEM_FAILED, "out of memory");
    job->older = context->job;
    context->job = job;
    Compilation *c = &job->compilation;
    int status = compile(c, &context->options, name, text, bytes, 1);
    if (c->out_of_memory)
        return fail(context->error, SYSTEM_FAILED, "out of memory");
    jmp_buf out_of_memory;
    c->arena.failure = &out_of_memory;
    if (setjmp(out_of_memory)) {
        context->diagnostic = NULL;
        context->diagnostics = 0;
        c->arena.failure = NULL;
        return fail(context->error, SYSTEM_FAILED, "out of memory");
    }
    keep_messages(context, c);
    c->arena.failure = NULL;
    if (status) {
        keep_error(context);
        return status;
    }
    *out = c->output.text;
    *out_bytes = c->output.size;
    return DONE;
}
