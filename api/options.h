/* The command line as data, read by the rows of options.def.
 *
 *     Options options;
 *     if (!options_read(&options, &arena, words, FOR_COMMAND_LINE))   words: "-O2", "digits.amp", NULL
 *         complain(options.problem);                                  "unknown option '-O9'"
 */
#ifndef AMPC_API_OPTIONS_H
#define AMPC_API_OPTIONS_H
#include "passes/pass.h"

typedef enum OptionId {
#define GROUP(title)
#define OPTION(id, ...) OPTION_##id,
#include "api/options.def"
#undef GROUP
#undef OPTION
    OPTION_ID_COUNT
} OptionId;

typedef enum Emit {
    EMIT_PROGRAM,
    EMIT_LIB,    /* a C file without main, and its header */
    EMIT_HEADER, /* the header alone */
    EMIT_AST,
    EMIT_IR,
    EMIT_TYPES,
    EMIT_SUMMARY,
    EMIT_PROPERTIES,
    EMIT_NOTHING
} Emit;

typedef enum Colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER } Colour;

typedef struct Options {
    Settings settings;
    Emit emit;
    const char *last_pass; /* --emit=ir:PASS; NULL: the last one */
    const char *passes;    /* --passes; NULL: all */
    const char *prefix;    /* of a library's names; set when the emit kind needs one */
    Vec(const char *) defines, folders, weights, warnings;
    int max_errors, no_warnings, remarks, memory_report;
    /* for the command line only */
    const char *input, *output; /* NULL: none given */
    const char *depfile;        /* NULL: no rule is wanted */
    int split, verify_diagnostics;
    Colour colour;
    int question;         /* OptionId of --help, --version, --list-…; -1: none */
    const char *argument; /* of the question, or NULL */
    const char *problem;  /* why options_read gave 0 */
} Options;

enum { FOR_COMMAND_LINE, FOR_LIBRARY };

/* Reads NULL-ended `words`; gives 0 when they are wrong. Texts live in the arena or in the
 * words. */
int options_read(Options *o, Arena *arena, const char *const *words, int reader);
void options_help(Out *out);
void options_manual(Out *out); /* --help as a manual page */
#endif
