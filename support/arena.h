/* Memory that is given back all at once. An arena hands out zeroed, 16-byte aligned pieces and
 * never frees one; arena_reset() takes back all of them. Running out of memory leaves through the
 * jump buffer `failure`, the only longjmp of the library.
 *
 *     Node *n = new(arena, Node);        int64_t *dims = new_array(arena, int64_t, rank);
 */
#ifndef AMPC_SUPPORT_ARENA_H
#define AMPC_SUPPORT_ARENA_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ArenaBlock ArenaBlock;
typedef struct Arena {
    ArenaBlock *block; /* newest block; older ones hang on it */
    size_t total;      /* bytes asked from the system */
    jmp_buf *failure;  /* where to go when there is no memory; NULL: abort */
} Arena;

void *arena_alloc(Arena *a, size_t bytes);
void arena_reset(Arena *a); /* keeps one block for reuse; poisons it under ASan */
void arena_free(Arena *a);
char *arena_copy(Arena *a, const char *text, size_t bytes); /* NUL-terminated copy */
char *arena_printf(Arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *a, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* For tests: the n-th allocation that this thread's arenas ask of the system from now on fails, and
 * with `for_good` all after it. n = 0 ends it. */
void arena_fail_at(long n, int for_good);

/* clang-format off */
#define new(arena, T) ((T *)arena_alloc((arena), sizeof(T)))
#define new_array(arena, T, n) ((T *)arena_alloc((arena), sizeof(T) * (size_t)(n)))
/* clang-format on */
#endif
