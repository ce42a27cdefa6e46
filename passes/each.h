/* Runs a rewrite over every segment of a program. */
#ifndef AMPC_PASSES_EACH_H
#define AMPC_PASSES_EACH_H
#include "passes/pass.h"

static inline void rewrite_program(Program *p, RewriteFn f, void *data)
{
    Rewrite w = {.program = p, .data = data};
    for (int i = 0; i < p->entries.n; i++) {
        Entry *e = p->entries.at[i];
        for (int s = 0; s < e->segments; s++)
            e->segment[s] = rewrite(e->segment[s], f, &w);
    }
}
#endif
