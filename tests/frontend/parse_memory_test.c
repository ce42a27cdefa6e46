/* Every allocation of the front end fails in turn, once and for good: it leaves by the arena's
 * jump, and (under ASan) nothing leaks.
 */
#include "frontend/parse.h"
#include "check.h"
#include <string.h>

/* Parses and prints the file; 1 if memory ran out. */
static int runs_out(const char *path)
{
    Arena arena = {0};
    jmp_buf failure;
    arena.failure = &failure;
    if (setjmp(failure)) {
        arena_free(&arena);
        return 1;
    }
    Sources sources;
    Diags diags;
    Names names;
    Out o;
    const char *why;
    sources_init(&sources, &arena);
    diags_init(&diags, &arena, &sources);
    names_init(&names, &arena);
    Source *source = source_read(&sources, path, &why);
    CHECK(source != NULL);
    if (source) {
        Ast *ast = parse(source, &diags, &names, &arena);
        out_init(&o, &arena);
        diags_print(&diags, &o, 0);
        if (diags.errors == 0)
            ast_print(ast, &o);
        CHECK(o.size > 0);
    }
    arena_free(&arena);
    return 0;
}

int main(int count, char **args)
{
    CHECK(count > 1);
    for (int i = 1; i < count; i++)
        for (int for_good = 0; for_good < 2; for_good++) {
            long n = 0;
            do
                arena_fail_at(++n, for_good);
            while (runs_out(args[i]));
            CHECK(n > 2); /* it did run out, twice at least */
            arena_fail_at(0, 0);
        }
    return check_done();
}
