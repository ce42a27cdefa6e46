#include "ir/graph.h"
#include "ir/program.h"

Node *copy_node(Node *old, Node **in)
{
    Node *n;
    if (!old->nin && !op_is(old->op, F_EFFECT))
        n = build_source(old->op, old->type, old->attrs, old->param, old->version);
    else
        n = build(old->op, in, old->nin, old->attrs);
    if (op_is(old->op, F_EFFECT)) {
        n->param = old->param;
        n->version = old->version;
    }
    n->pinned |= old->pinned;
    return n;
}

Graph *rewrite(Graph *old, RewriteFn f, Rewrite *w)
{
    Graph *g = graph_make(w->program);
    graph_sweep(old);
    g->times = old->times;
    graph_open(g);
    for (Node *n = old->first; n; n = n->next) {
        Node **in = new_array(g->arena, Node *, n->nin + 1);
        for (int k = 0; k < n->nin; k++)
            in[k] = n->in[k]->mapped;
        Context former = graph_context((Context){
            .span = n->span, .name = n->name, .in_instance = n->in_instance, .region = n->region});
        Node *fresh = f(w, n, in);
        n->mapped = fresh ? fresh : copy_node(n, in);
        graph_context(former);
    }
    graph_close();
    graph_sweep(g);
    return g;
}
