/* The command line: options in, one compilation, then messages to standard error and what was asked
 * for to a file or to standard output. Only this file prints and exits.
 *
 *     ampc digits.amp -O2 -o train.c
 */
#include "api/compile.h"
#include "driver/output.h"
#include "passes/levels.h"
#include "ir/optim.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One run of the program. */
typedef struct Session {
    Arena arena;
    jmp_buf out_of_memory;
    Options options;
    Compilation compilation;   /* the one that runs */
    Out output, header;        /* of all parts */
    Vec(const char *) sources; /* files that were read, for -MD */
} Session;

static int complain(const char *text)
{
    fprintf(stderr, "ampc: error: %s\n", text);
    return WRONG_USAGE;
}

/* --- questions: --help, --list-ops … --- */

static int explain(const char *name, Out *out)
{
    int code = code_find(name);
    if (code >= 0) {
        out_line(out, "%s: %s", name, code_explanation((Code)code));
        return DONE;
    }
    const char *names[CODE_COUNT];
    for (int i = 0; i < CODE_COUNT; i++)
        names[i] = code_name((Code)i);
    const char *near = nearest_name(name, names, CODE_COUNT);
    return complain(arena_printf(out->arena, "no error or warning is called '%s'%s%s%s", name,
                                 near ? "; did you mean '" : "", near ? near : "",
                                 near ? "'?" : ""));
}

static int help(const char *topic, Out *out)
{
    if (!topic) {
        options_help(out);
        return DONE;
    }
    if (strcmp(topic, "man") != 0)
        return complain(arena_printf(out->arena, "--help takes man, found '%s'", topic));
    options_manual(out);
    return DONE;
}

static int answer(const Options *o, Out *out)
{
    switch ((OptionId)o->question) {
    case OPTION_HELP:
        return help(o->argument, out);
    case OPTION_EXPLAIN:
        return explain(o->argument, out);
    case OPTION_VERSION:
        out_line(out, "ampc " AMPC_VERSION);
        out_line(out,
                 "Licence: Apache-2.0 WITH LLVM-exception; what it writes into its output: 0BSD.");
        break;
    case OPTION_LIST_LEVELS:
        levels_list(out);
        break;
    case OPTION_LIST_OPS:
        ops_list(out);
        break;
    case OPTION_LIST_OPTIMIZERS:
        optim_list(out);
        break;
    case OPTION_LIST_PASSES:
        passes_list(out);
        break;
    case OPTION_LIST_TARGETS:
        out_line(out, "c  one self-contained C11 file for the CPU");
        break;
    default:
        break; /* no question */
    }
    return DONE;
}

/* --- messages --- */

static int wants_colour(Colour colour)
{
    const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE"), *term = getenv("TERM");
    if (colour != COLOUR_AUTO)
        return colour == COLOUR_ALWAYS;
    if (no && *no)
        return 0;
    if (force && *force && strcmp(force, "0") != 0)
        return 1;
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

/* Prints what a compilation has to say; gives its status, or that of --verify-diagnostics. */
static int print_messages(Session *s, int status)
{
    Compilation *c = &s->compilation;
    Out messages;
    out_init(&messages, &s->arena);
    if (s->options.verify_diagnostics)
        status = diags_verify(&c->diags, &messages) ? WRONG_INPUT : DONE;
    else
        diags_print(&c->diags, &messages, wants_colour(s->options.colour));
    fputs(messages.text, stderr);
    fputs(c->report.text, stderr);
    return status;
}

/* --- compiling --- */

static void keep_output(Session *s)
{
    const Compilation *c = &s->compilation;
    out_text(&s->output, c->output.text);
    out_text(&s->header, c->header.text);
    for (int i = 0; i < c->sources.count; i++) {
        const char *path = c->sources.files[i]->path;
        int known = strcmp(path, "<stdin>") == 0;
        for (int k = 0; k < s->sources.n; k++)
            known |= strcmp(s->sources.at[k], path) == 0;
        if (!known)
            vec_push(&s->arena, &s->sources, arena_copy(&s->arena, path, strlen(path)));
    }
}

/* A text under a name; text NULL: the file of that name. */
static int compile_part(Session *s, const char *name, const char *text, size_t size, int first_line)
{
    Compilation *c = &s->compilation;
    int status = compile(c, &s->options, name, text, size, first_line);
    if (c->out_of_memory)
        longjmp(s->out_of_memory, 1);
    c->arena.failure = &s->out_of_memory;
    status = print_messages(s, status);
    if (!status)
        keep_output(s);
    compilation_free(c);
    return status;
}

/* --split-input-file: every part alone, so that its expectations meet its own messages only. */
static int compile_parts(Session *s)
{
    Sources sources;
    Source **part;
    const char *why;
    sources_init(&sources, &s->arena);
    Source *whole = source_read(&sources, s->options.input, &why);
    if (!whole) {
        fprintf(stderr, "ampc: error: cannot read %s: %s\n", s->options.input, why);
        return SYSTEM_FAILED;
    }
    int count = source_split(&sources, whole, &part), worst = DONE;
    for (int i = 0; i < count; i++) {
        int status =
            compile_part(s, part[i]->path, part[i]->text, part[i]->size, part[i]->first_line);
        worst = status > worst ? status : worst;
    }
    return worst;
}

/* --- writing --- */

/* A path as make reads it. */
static void make_word(Out *out, const char *path)
{
    for (; *path; path++) {
        if (*path == ' ' || *path == '#' || *path == '\\')
            out_text(out, "\\");
        out_printf(out, *path == '$' ? "$%c" : "%c", *path);
    }
}

/* output: source import … */
static void depfile_text(const Session *s, Out *out)
{
    const char *output = s->options.output ? s->options.output : "-";
    make_word(out, output);
    out_text(out, ":");
    for (int i = 0; i < s->sources.n; i++) {
        out_text(out, " \\\n  ");
        make_word(out, s->sources.at[i]);
    }
    out_text(out, "\n");
}

/* Beside the C file, under the name that it includes: "out/digits.c" gives "out/PREFIX.h". */
static const char *header_path(Arena *arena, const char *path, const char *prefix)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    return arena_printf(arena, "%.*s%s.h", folder, path, prefix);
}

static int write_output(Session *s)
{
    const Options *o = &s->options;
    File files[3];
    int count = 0;
    const char *path = o->output ? o->output : "-";
    if (o->emit != EMIT_NOTHING && !o->verify_diagnostics)
        files[count++] = (File){path, s->output.text, s->output.size};
    if (o->emit == EMIT_LIB && !o->verify_diagnostics)
        files[count++] =
            (File){header_path(&s->arena, path, o->prefix), s->header.text, s->header.size};
    if (o->depfile) {
        Out rule;
        out_init(&rule, &s->arena);
        depfile_text(s, &rule);
        files[count++] = (File){o->depfile, rule.text, rule.size};
    }
    const char *problem = files_write(&s->arena, files, count);
    if (!problem)
        return DONE;
    fprintf(stderr, "ampc: error: %s\n", problem);
    return SYSTEM_FAILED;
}

/* --- running --- */

static int run(Session *s, const char *const *words)
{
    Options *o = &s->options;
    out_init(&s->output, &s->arena);
    out_init(&s->header, &s->arena);
    if (!options_read(o, &s->arena, words, FOR_COMMAND_LINE)) {
        complain(o->problem);
        fputs("ampc: note: 'ampc --help' lists the options\n", stderr);
        return WRONG_USAGE;
    }
    if (o->question >= 0) {
        int status = answer(o, &s->output);
        const File file = {o->output ? o->output : "-", s->output.text, s->output.size};
        const char *problem = status ? NULL : files_write(&s->arena, &file, 1);
        if (problem)
            fprintf(stderr, "ampc: error: %s\n", problem);
        return problem ? SYSTEM_FAILED : status;
    }
    int status;
    if (!o->input && o->emit == EMIT_PROPERTIES)
        status = compile_part(s, "<none>", "", 0, 1); /* those of the level, changed by no file */
    else if (!o->input)
        return complain("no file to compile; 'ampc --help' lists the options");
    else
        status = o->split ? compile_parts(s) : compile_part(s, o->input, NULL, 0, 1);
    return status ? status : write_output(s);
}

/* run, with a way out when there is no memory. */
static int run_guarded(Session *s, const char *const *words)
{
    s->arena.failure = &s->out_of_memory;
    if (setjmp(s->out_of_memory)) {
        fputs("ampc: error: out of memory\n", stderr);
        return SYSTEM_FAILED;
    }
    return run(s, words);
}

/* Our own faults end here. */
static void internal_error(int signal_number)
{
    static const char text[] =
        "ampc: internal error; please report it with the file that led to it\n";
    (void)signal_number;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(INTERNAL_ERROR);
}

int main(int count, char **args)
{
    (void)count;
    signal(SIGABRT, internal_error);
    Session *session = calloc(1, sizeof *session);
    if (!session)
        return SYSTEM_FAILED;
    int status = run_guarded(session, (const char *const *)args + 1);
    compilation_free(&session->compilation);
    arena_free(&session->arena);
    free(session);
    return status;
}
