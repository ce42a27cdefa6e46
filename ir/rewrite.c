#include "ir/graph.h"
#include "ir/program.h"
#include <assert.h>

/* Marks what effects need, from the last node to the first. */
static Node **live_nodes(Graph *g)
{
    Node **list = new_array(g->arena, Node *, g->count + 1);
    int i = 0;
    for (Node *n = g->first; n; n = n->next)
        list[i++] = n;
    assert(i == g->count);
    while (i--) {
        Node *n = list[i];
        if (op_is(n->op, F_EFFECT))
            n->mark = 1;
        for (int k = 0; n->mark && k < n->nin; k++)
            n->in[k]->mark = 1;
    }
    return list;
}

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
    Node **list = live_nodes(old);
    g->times = old->times;
    graph_open(g);
    for (int i = 0; i < old->count; i++) {
        Node *n = list[i];
        if (!n->mark)
            continue;
        n->mark = 0;
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
    return g;
}
