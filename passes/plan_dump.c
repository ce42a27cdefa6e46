/* The plan as text, for tests and for people: comments under the IR of pass fuse.
 *
 *     // entry fit
 *     //   buffer h: bf16[N, 256] launches 1 to 4
 *     //   0: product fit_h(h, b) = x @ w
 */
#include "ir/kernel.h"
#include "passes/plan.h"
#include <string.h>

static void dump_launch(Out *o, const Launch *l)
{
    static const char *const kinds[] = {"kernel", "product", "update"};
    out_printf(o, "//   %d: %s", l->index, kinds[l->kind]);
    if (l->kind == LAUNCH_UPDATE) {
        out_line(o, " %s", l->optimizer->name);
        return;
    }
    out_printf(o, " %s(", l->kernel->name);
    for (int i = 0; i < l->buffers; i++)
        out_printf(o, "%s%s", i ? ", " : "", l->buffer[i]->name);
    out_text(o, ")");
    if (l->product)
        out_printf(o, " of %s @ %s", l->product->operand[0].buffer->name,
                   l->product->operand[1].buffer->name);
    out_text(o, "\n");
}

static void dump_entry(Out *o, Program *p, const EntryPlan *plan)
{
    static const char *const kinds[] = {"arena", "input",  "param",  "gradient",
                                        "scale", "option", "report", "result"};
    out_line(o, "// entry %s", plan->entry->name);
    for (int i = 0; i < plan->buffers.n; i++) {
        const Buffer *b = plan->buffers.at[i];
        out_line(o, "//   %s %s: %s, launches %d to %d%s%s", kinds[b->kind], b->name,
                 type_text(&p->types, b->type, o->arena), b->first, b->last,
                 b->over ? ", in place of " : "", b->over ? b->over->name : "");
    }
    for (int i = 0; i < plan->launches.n; i++)
        dump_launch(o, plan->launches.at[i]);
}

void plan_dump(Out *o, Program *p, const Plan *plan)
{
    for (int i = 0; i < p->entries.n; i++)
        dump_entry(o, p, &plan->entry[i]);
    for (int i = 0; i < plan->kernels.n; i++) {
        Out text;
        out_init(&text, o->arena);
        kernel_dump(&text, plan->kernels.at[i], &p->types);
        for (const char *line = text.text; *line;) {
            size_t n = strcspn(line, "\n");
            out_line(o, "// %.*s", (int)n, line);
            line += n + (line[n] == '\n');
        }
    }
}
