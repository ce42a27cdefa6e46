/* Interned names: two names are the same text exactly when they are the same pointer. */
#ifndef AMPC_SUPPORT_STR_H
#define AMPC_SUPPORT_STR_H
#include "support/arena.h"

typedef const char *Str; /* NUL-terminated; compare with == */

typedef struct Names {
    Arena *arena;
    Str *slots;  /* open addressing; size is a power of two */
    int *number; /* by slot: take_name has given all numbers below this to the name */
    size_t size, count;
} Names;

void names_init(Names *names, Arena *arena);
Str intern(Names *names, const char *text);
Str intern_n(Names *names, const char *text, size_t bytes);
Str intern_printf(Names *names, const char *format, ...) __attribute__((format(printf, 2, 3)));
int names_hold(const Names *names, const char *text); /* has it been interned? */
/* Adds a name to `taken` that is not there yet, and interns it in `names`: base itself, or base,
 * `between` and the lowest number from 2 that makes it new. */
Str take_name(Names *taken, Names *names, Str base, const char *between);

/* Decodes the UTF-8 character at `text`; gives its length, 0 when the bytes are not UTF-8 (overlong
 * forms, surrogates and an end in the middle included). */
int utf8_decode(const char *text, size_t bytes, uint32_t *code_point);
/* strtod and strtof without the locale. */
double read_double(const char *text);
float read_float(const char *text);

/* The name of the list nearest to `wrong` by edit distance, NULL when none is near: "did you
 * mean". */
const char *nearest_name(const char *wrong, const char *const *list, int count);
/* Does `text` match the glob `pattern`? A star crosses dots. */
int glob_match(const char *pattern, const char *text);
#endif
