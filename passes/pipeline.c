#include "passes/pass.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "rt_hash.h"
#include <string.h>
#include <time.h>

const PassInfo pass_info[] = {
#define PASS(name, kind, needs, gives, summary)                                                    \
    {#name, summary, KIND_##kind, needs, gives, pass_##name},
#define KIND_REWRITE 1
#define KIND_ANNOTATE 0
#include "passes/passes.def"
#undef PASS
};
const int pass_count = sizeof pass_info / sizeof *pass_info;

void passes_list(Out *o)
{
    for (int i = 0; i < pass_count; i++)
        out_line(o, "%-9s %s", pass_info[i].name, pass_info[i].summary);
}

static const PassInfo *find_pass(const char *name, size_t n)
{
    for (int i = 0; i < pass_count; i++)
        if (strlen(pass_info[i].name) == n && !memcmp(pass_info[i].name, name, n))
            return &pass_info[i];
    return NULL;
}

/* The hash of the program as its author wrote it, before any pass looks at the level: it tells
 * whose a checkpoint is. */
static void record_graph(Unit *u)
{
    Out text;
    out_init(&text, u->scratch);
    program_print(&text, u->program, PRINT_GRAPH);
    u->program->graph_hash = rt_hash64(text.text, text.size, 0);
}

/* Runs one pass; its input must be at the stage that it needs. */
static int run_pass(Unit *u, const PassInfo *pass)
{
    if (u->program->stage != pass->needs) {
        error_at(u->diags, CODE_RULE, (Span){0, 0, 0},
                 "pass '%s' cannot run here: it needs another stage", pass->name);
        return 0;
    }
    if (pass->gives == CASTED)
        record_graph(u);
    pass->run(u);
    arena_reset(u->scratch);
    if (u->diags->errors)
        return 0;
    u->program->stage = pass->gives;
    if (u->settings->verify)
        verify_program(u->program, pass->name);
    return !u->diags->errors;
}

int passes_run(Unit *u, const char *list, const char *last)
{
    if (!list) {
        for (int i = 0; i < pass_count; i++) {
            int done = pass_info[i].gives <= u->program->stage;
            if (!done && !run_pass(u, &pass_info[i]))
                return 1;
            if (last && !strcmp(pass_info[i].name, last))
                return 1;
        }
        return 1;
    }
    while (*list) {
        size_t n = strcspn(list, ",");
        const PassInfo *pass = find_pass(list, n);
        if (!pass) {
            error_at(u->diags, CODE_NAME, (Span){0, 0, 0}, "there is no pass '%.*s'", (int)n, list);
            return 0;
        }
        if (!run_pass(u, pass))
            return 1;
        list += n + (list[n] == ',');
    }
    return 1;
}
