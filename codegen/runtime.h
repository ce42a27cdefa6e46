/* The runtime parts that emitted programs are pasted from, cut down to the pieces a program uses.
 *
 * A part is ordinary C whose top-level pieces (a function with its comment, a type, a macro) are
 * separated by blank lines. A piece is pasted when the program names something it defines, or
 * when another pasted piece does. So parts need no list of features, and an emitted program has no
 * function that nothing calls.
 */
#ifndef AMPC_CODEGEN_RUNTIME_H
#define AMPC_CODEGEN_RUNTIME_H
#include "support/out.h"

typedef struct RuntimePart {
    const char *file;        /* "rt_half.h" */
    const char *const *line; /* NULL-ended */
} RuntimePart;
extern const RuntimePart runtime_part[]; /* ended by a file of NULL; made by embed.c */

/* Pastes what `program` needs, in the order of runtime.def; `includes` gets the system headers,
 * sorted, each once. */
void runtime_paste(Arena *arena, const char *program, Out *includes, Out *o);
#endif
