/* The command line, in its first form: checks a file, or prints its syntax tree.
 *
 *     ampc --emit=ast|-fsyntax-only [--verify-diagnostics] [--split-input-file] FILE|-
 */
#include "frontend/parse.h"
#include <stdio.h>
#include <string.h>

enum { DONE = 0, BAD_INPUT = 1, BAD_USAGE = 2, SYSTEM_FAILED = 3 }; /* exit codes */

typedef struct Options {
    const char *file;
    int emit_ast, verify, split;
} Options;

static int read_options(int count, char **args, Options *options)
{
    for (int i = 1; i < count; i++) {
        if (strcmp(args[i], "--emit=ast") == 0)
            options->emit_ast = 1;
        else if (strcmp(args[i], "--verify-diagnostics") == 0)
            options->verify = 1;
        else if (strcmp(args[i], "--split-input-file") == 0)
            options->split = 1;
        else if (strcmp(args[i], "-fsyntax-only") == 0)
            options->emit_ast = 0;
        else if (options->file || (args[i][0] == '-' && args[i][1]))
            return 0;
        else
            options->file = args[i];
    }
    return options->file != NULL;
}

/* One unit: a file, or a part of it. */
static int compile(Sources *sources, const Source *source, const Options *options)
{
    Arena *arena = sources->arena;
    Names names;
    Diags diags;
    Out out, messages;
    names_init(&names, arena);
    diags_init(&diags, arena, sources);
    out_init(&out, arena);
    out_init(&messages, arena);
    if (options->verify)
        diags.max_errors = 0;
    Ast *ast = parse(source, &diags, &names, arena);
    if (options->verify) {
        int differences = diags_verify(&diags, &messages);
        fputs(messages.text, stderr);
        return differences ? BAD_INPUT : DONE;
    }
    diags_print(&diags, &messages, 0);
    fputs(messages.text, stderr);
    if (diags.errors)
        return BAD_INPUT;
    if (options->emit_ast)
        ast_print(ast, &out);
    fputs(out.text, stdout);
    return DONE;
}

static int compile_file(Arena *arena, const Options *options)
{
    Sources sources;
    const char *why;
    sources_init(&sources, arena);
    Source *whole = source_read(&sources, options->file, &why);
    if (!whole) {
        fprintf(stderr, "ampc: error: cannot read %s: %s\n", options->file, why);
        return SYSTEM_FAILED;
    }
    if (!options->split)
        return compile(&sources, whole, options);
    Source **parts;
    int count = source_split(&sources, whole, &parts), worst = DONE;
    for (int i = 0; i < count; i++) {
        Sources alone; /* so that a part's expectations are compared with its own messages only */
        sources_init(&alone, arena);
        Source *part = source_add(&alone, parts[i]->path, parts[i]->text, parts[i]->size);
        part->first_line = parts[i]->first_line;
        int status = compile(&alone, part, options);
        worst = status > worst ? status : worst;
    }
    return worst;
}

int main(int count, char **args)
{
    Options options = {0};
    if (!read_options(count, args, &options)) {
        fputs("usage: ampc --emit=ast|-fsyntax-only [--verify-diagnostics] [--split-input-file] "
              "FILE\n",
              stderr);
        return BAD_USAGE;
    }
    Arena arena = {0};
    jmp_buf out_of_memory;
    int status = SYSTEM_FAILED;
    arena.failure = &out_of_memory;
    if (setjmp(out_of_memory) == 0)
        status = compile_file(&arena, &options);
    else
        fputs("ampc: error: out of memory\n", stderr);
    arena_free(&arena);
    return status;
}
