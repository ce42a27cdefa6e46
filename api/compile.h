/* One compilation, from text to text: what libampc and the command line share.
 *
 *     Compilation c;
 *     int status = compile(&c, &options, "digits.amp", NULL, 0);      NULL: read the file
 *     use(c.output.text, c.diags.first);
 *     compilation_free(&c);
 */
#ifndef AMPC_API_COMPILE_H
#define AMPC_API_COMPILE_H
#include "api/options.h"

/* What compile and ampc's functions return, and ampc's exit codes. */
enum { DONE = 0, WRONG_INPUT = 1, WRONG_USAGE = 2, SYSTEM_FAILED = 3, INTERNAL_ERROR = 4 };

typedef struct Compilation {
    Arena arena, scratch; /* everything below lives in the first */
    const Options *options;
    Names names;
    Sources sources;
    Diags diags;
    Program *program;
    Plan *plan;
    Out output; /* what --emit asked for */
    Out header; /* --emit=lib: the header that goes with it */
    Out report; /* -ftime-report, -fmem-report */
    int out_of_memory;
} Compilation;

/* Reads file `name` ("-": standard input), or takes `text` under that name. Without memory
 * everything is given back already, out_of_memory is set, and the status is SYSTEM_FAILED.
 * `first_line` is the number of the text's first line. */
int compile(Compilation *c, const Options *options, const char *name, const char *text,
            size_t bytes, int first_line);
void compilation_free(Compilation *c);
#endif
