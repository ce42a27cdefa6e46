/* SPDX-License-Identifier: 0BSD */
/* libampc: the compiler as a library. Texts in, texts out; nothing prints, exits or keeps global
 * state, so contexts may be used in different threads at the same time, each by one at a time.
 *
 *     const char *options[] = {"-O2", "-DHIDDEN=64", NULL};
 *     AmpcContext *context;
 *     const char *c;
 *     size_t bytes;
 *     if (ampc_open(&context, options))
 *         puts(ampc_error(NULL));
 *     else if (ampc_emit(context, "digits.amp", NULL, 0, &c, &bytes))
 *         puts(ampc_error(context));                  ampc_diagnostics has every message
 *     ampc_close(context);
 *
 * Functions return 0, or why not: 1 errors in the text, 2 wrong options, 3 a file or memory failed,
 * 4 the compiler broke one of its own rules. Building and running models from here (ampc_build,
 * ampc_run and what belongs to them) comes with the JIT.
 */
#ifndef AMPC_H
#define AMPC_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AMPC_ABI 1

typedef struct AmpcContext AmpcContext;

typedef enum AmpcSeverity {
    AMPC_ERROR,
    AMPC_WARNING,
    AMPC_REMARK,
    AMPC_NOTE, /* more about its parent */
    AMPC_FIX   /* a repair of its parent: `message` says what to replace at the place */
} AmpcSeverity;

typedef struct AmpcDiagnostic {
    int severity;                           /* AmpcSeverity */
    const char *file;                       /* NULL: about no place in a file */
    int line, column, end_line, end_column; /* from 1; the end is behind the last character */
    const char *code, *message;             /* code: "shape", as after -W; "" where there is none */
    int parent;                             /* index of the message that this belongs to; -1 */
} AmpcDiagnostic;

uint32_t ampc_abi(void); /* of the library: is AMPC_ABI of the header that it was built with */

/* `options` is NULL-ended and spelt as on the command line: "-O2", "--half=f16", "-DHIDDEN=64",
 * "--emit=lib". NULL: none. Where it fails, *context is NULL and ampc_error(NULL) says why. */
int ampc_open(AmpcContext **context, const char *const *options);
void ampc_close(AmpcContext *context); /* frees every text and message of it; NULL is fine */

/* Text of the last failure, "" if there was none. NULL asks for that of ampc_open, in this
 * thread. */
const char *ampc_error(const AmpcContext *context);

/* Compiles `text` under the name `name`, or with text NULL the file of that name. *out is what
 * --emit says (a program), NUL-terminated, and lives until ampc_close. */
int ampc_emit(AmpcContext *context, const char *name, const char *text, size_t bytes,
              const char **out, size_t *out_bytes);

/* The messages of the last ampc_emit; they live until the next one. Gives their number. */
size_t ampc_diagnostics(const AmpcContext *context, const AmpcDiagnostic **list);

#ifdef __cplusplus
}
#endif
#endif
