/* A text writer that knows indentation and counts lines. All emitted text and all printed IR goes
 * through one.
 *
 *     out_line(o, "for (int64_t i = 0; i < %s; i++) {", n);  out_indent(o, 1);  ...
 *     out_expand(o, "rt_f32_from_bf16($1)", &operand, 1);
 */
#ifndef AMPC_SUPPORT_OUT_H
#define AMPC_SUPPORT_OUT_H
#include "support/arena.h"
#include <stdarg.h>

typedef struct Out {
    Arena *arena;
    char *text; /* NUL-terminated */
    size_t size, room;
    int line;   /* of the next character, from 1 */
    int column; /* of the next character, from 0 */
    int depth;  /* indentation, in steps of four spaces */
} Out;

void out_init(Out *o, Arena *arena);
void out_text(
    Out *o,
    const char *text); /* indentation is put after each newline, before the next character */
void out_printf(Out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
void out_vprintf(Out *o, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
void out_line(Out *o, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* + newline */
void out_indent(Out *o, int steps);        /* may be negative */
/* Writes a template in which $1 … $9 stand for args[0] … args[8]; $$ is a dollar. */
void out_expand(Out *o, const char *template_text, const char *const *args, int count);
const char *expand(Arena *arena, const char *template_text, const char *const *args, int count);
/* Shortest C text that reads back as the same value: "0.1f", "1.0f", "INFINITY" / "0.1", "1.0". */
const char *float_text(Arena *arena, float value);
const char *double_text(Arena *arena, double value);
#endif
