#include "api/pending.h"

/* clang-format off */
#define MISSING(what) error_at(diags, CODE_UNSUPPORTED, (Span){0}, "not supported yet: %s", what)
/* clang-format on */

#if !__has_include("codegen/emit.h")
void emit_program(Unit *u, Out *o)
{
    (void)o;
    Diags *diags = u->diags;
    MISSING("--emit=program");
}

void emit_lib(Unit *u, const char *prefix, Out *c, Out *h)
{
    (void)prefix, (void)c, (void)h;
    Diags *diags = u->diags;
    MISSING("--emit=lib");
}
#endif

#if !__has_include("passes/memplan.c")
void pass_memplan(Unit *u)
{
    (void)u;
}

void mem_report(Unit *u, Out *o)
{
    (void)o;
    Diags *diags = u->diags;
    MISSING("-fmem-report");
}
#endif
