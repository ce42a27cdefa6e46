/* Checks every node's type against its row. The elaborator types nodes as it makes them, so this
 * finds nothing there; IR text may say anything. */
#include "ir/shape.h"
#include "passes/pass.h"

static void check(Unit *u, Graph *g)
{
    graph_open(g);
    for (Node *n = g->first; n; n = n->next) {
        graph_context((Context){.span = n->span, .name = n->name});
        const Type *type = node_infer(n);
        if (type && type != n->type)
            error_at(u->diags, CODE_TYPE, n->span, "'%s' is declared as %s, but '%s' gives %s",
                     n->name ? n->name : "_", node_type_text(n), op_info(n->op)->spelling,
                     type_text(types_now(), type, u->scratch));
    }
    graph_close();
}

void pass_infer(Unit *u)
{
    for (int i = 0; i < u->program->entries.n; i++)
        for (int s = 0; s < u->program->entries.at[i]->segments; s++)
            check(u, u->program->entries.at[i]->segment[s]);
}
