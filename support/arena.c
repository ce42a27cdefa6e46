/* Bump allocation in blocks that double up to 1 MiB. Under ASan everything not handed out is
 * poisoned, so that a pointer kept across arena_reset, or a write past a piece, is caught at
 * once. */
#include "support/arena.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_ASAN 1
#endif
#endif
#ifdef HAVE_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

enum { ALIGN = 16, FIRST_BLOCK = 8 << 10, LARGEST_BLOCK = 1 << 20 };

struct ArenaBlock {
    ArenaBlock *older;
    size_t size, used; /* of data */
    _Alignas(ALIGN) char data[];
};

static _Thread_local long fail_countdown;
static _Thread_local int fail_for_good;

void arena_fail_at(long n, int for_good)
{
    fail_countdown = n;
    fail_for_good = for_good;
}

static int told_to_fail(void)
{
    if (fail_countdown == 0)
        return 0;
    if (fail_countdown == 1) {
        fail_countdown = fail_for_good;
        return 1;
    }
    fail_countdown--;
    return 0;
}

static void out_of_memory(Arena *a)
{
    if (a->failure)
        longjmp(*a->failure, 1);
    fputs("ampc: out of memory\n", stderr);
    abort();
}

static void add_block(Arena *a, size_t bytes)
{
    size_t size = a->block ? 2 * a->block->size : FIRST_BLOCK;
    if (size > LARGEST_BLOCK)
        size = LARGEST_BLOCK;
    if (size < bytes)
        size = bytes;
    ArenaBlock *block = told_to_fail() ? NULL : malloc(sizeof *block + size);
    if (!block)
        out_of_memory(a);
    *block = (ArenaBlock){.older = a->block, .size = size};
    POISON(block->data, size);
    a->block = block;
    a->total += sizeof *block + size;
}

void *arena_alloc(Arena *a, size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        out_of_memory(a);
    size_t room = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (room == 0)
        room = ALIGN; /* pieces have different addresses */
    if (!a->block || a->block->size - a->block->used < room)
        add_block(a, room);
    char *piece = a->block->data + a->block->used;
    a->block->used += room;
    UNPOISON(piece, bytes);
    return memset(piece, 0, bytes);
}

static void free_from(Arena *a, ArenaBlock *block)
{
    while (block) {
        ArenaBlock *older = block->older;
        a->total -= sizeof *block + block->size;
        UNPOISON(block->data, block->size);
        free(block);
        block = older;
    }
}

void arena_reset(Arena *a)
{
    ArenaBlock *kept = a->block;
    if (!kept)
        return;
    free_from(a, kept->older);
    kept->older = NULL;
    kept->used = 0;
    POISON(kept->data, kept->size);
}

void arena_free(Arena *a)
{
    free_from(a, a->block);
    a->block = NULL;
}

char *arena_copy(Arena *a, const char *text, size_t bytes)
{
    char *copy = arena_alloc(a, bytes + 1);
    if (bytes)
        memcpy(copy, text, bytes);
    return copy;
}

char *arena_vprintf(Arena *a, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = arena_alloc(a, length < 0 ? 1 : (size_t)length + 1);
    if (length > 0)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *arena_printf(Arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(a, format, args);
    va_end(args);
    return text;
}
