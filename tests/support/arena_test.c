/* Pieces are zeroed, aligned and apart; reset reuses memory; running out of it leaves by the
 * jump. */
#include "support/arena.h"
#include "check.h"
#include <string.h>

static void pieces(void)
{
    Arena a = {0};
    char *last = NULL;
    for (size_t size = 0; size < 5000; size += 37) {
        char *piece = arena_alloc(&a, size);
        CHECK_EQ((uintptr_t)piece % 16, 0);
        CHECK(piece != last);
        int is_zero = 1;
        for (size_t i = 0; i < size; i++)
            is_zero &= piece[i] == 0;
        CHECK(is_zero);
        memset(piece, 0xff, size); /* a neighbour that overlaps would no longer be zero */
        last = piece;
    }
    int64_t *big = new_array(&a, int64_t, 1 << 20);
    CHECK(big[0] == 0 && big[(1 << 20) - 1] == 0);
    CHECK(a.total > 8 << 20);
    arena_free(&a);
    CHECK(a.block == NULL && a.total == 0);
}

static void reset(void)
{
    Arena a = {0};
    for (int i = 0; i < 1000; i++)
        memset(arena_alloc(&a, 100), 1, 100);
    size_t before = a.total;
    arena_reset(&a);
    CHECK(a.total > 0 && a.total < before);
    size_t kept = a.total;
    char *piece = arena_alloc(&a, 100);
    CHECK(piece[0] == 0 && piece[99] == 0);
    CHECK_EQ(a.total, kept);
    arena_free(&a);
    arena_reset(&a); /* of an empty arena: nothing */
    CHECK(a.block == NULL);
}

static void texts(void)
{
    Arena a = {0};
    CHECK(strcmp(arena_copy(&a, "abcdef", 3), "abc") == 0);
    CHECK(strcmp(arena_copy(&a, NULL, 0), "") == 0);
    CHECK(strcmp(arena_printf(&a, "%d %s", 7, "x"), "7 x") == 0);
    CHECK_EQ(strlen(arena_printf(&a, "%5000d", 1)), 5000);
    arena_free(&a);
}

/* How often one of `count` allocations of a block fails before the jump is taken; 0: never. */
static int allocations_until_jump(int count)
{
    Arena a = {0};
    jmp_buf failure;
    volatile int done = 0;
    a.failure = &failure;
    if (setjmp(failure)) {
        arena_free(&a);
        return done + 1;
    }
    for (; done < count; done = done + 1)
        arena_alloc(&a, 2 << 20); /* more than a block: each asks the system */
    arena_free(&a);
    return 0;
}

static void out_of_memory(void)
{
    for (int n = 1; n <= 5; n++) {
        arena_fail_at(n, 0);
        CHECK_EQ(allocations_until_jump(5), n);
        CHECK_EQ(allocations_until_jump(5), 0); /* it failed once */
        arena_fail_at(n, 1);
        CHECK_EQ(allocations_until_jump(5), n);
        CHECK_EQ(allocations_until_jump(5), 1); /* and now for good */
        arena_fail_at(0, 0);
    }
    Arena a = {0};
    jmp_buf failure;
    a.failure = &failure;
    volatile int jumped = 0;
    if (setjmp(failure))
        jumped = 1;
    else
        arena_alloc(&a, SIZE_MAX - 8); /* would wrap */
    CHECK(jumped);
    arena_free(&a);
}

int main(void)
{
    pieces();
    reset();
    texts();
    out_of_memory();
    return check_done();
}
