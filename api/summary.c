#include "api/summary.h"

/* Every named value of every entry with its type, in program order. */
void print_types(Out *o, Program *p)
{
    for (int i = 0; i < p->params.n; i++)
        out_line(o, "%s: %s", p->params.at[i]->name,
                 type_text(&p->types, p->params.at[i]->type, o->arena));
    for (int i = 0; i < p->entries.n; i++) {
        Entry *e = p->entries.at[i];
        out_line(o, "%s:", e->name);
        out_indent(o, 1);
        for (int s = 0; s < e->segments; s++)
            for (Node *n = e->segment[s]->first; n; n = n->next)
                if (n->name && n->type)
                    out_line(o, "%s: %s", n->name, type_text(&p->types, n->type, o->arena));
        out_indent(o, -1);
    }
}

void print_summary(Out *o, Program *p)
{
    for (int i = 0; i < p->params.n; i++)
        out_line(o, "%s: %s", p->params.at[i]->name,
                 type_text(&p->types, p->params.at[i]->type, o->arena));
}
