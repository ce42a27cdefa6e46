/* Joins the statements of a step: each `update opt` becomes one UPDATE a parameter, next to each
 * other, which carries the gradient, the scaler and the clip. Code generation makes one sweep an
 * optimizer of them.
 *
 *     gradient(w#0, d_w, optimizer=opt); clip(opt, norm, 5); update(opt)
 *     becomes
 *     w#1 = update(d_w, optimizer=opt, scaler=scaler, clip=norm, limit=5)
 */
#include "passes/pass.h"

typedef struct Pending {   /* since the last update of an optimizer */
    Vec(Node *) gradients; /* GRADIENT nodes of the new graph, one a parameter */
    Graph *graph;          /* whose nodes they are */
    Str clip;
    double limit;
} Pending;

typedef struct Step {
    Program *program;
    Pending *pending; /* by optimizer */
    Node **gradient;  /* by parameter: the first that is pending; NULL: none */
    Node **sum;       /* by parameter: the sum of all that are pending */
} Step;

/* A non-finite test is needed when anything on the way to a gradient may be half, or a scale is not
 * 1. */
static int needs_check(const Program *p, const Pending *pending)
{
    if (p->props.level != 0)
        return 1;
    for (int i = 0; i < pending->gradients.n; i++) {
        const Scaler *s = program_scaler(p, pending->gradients.at[i]->attrs->at[1].s);
        if (s && (s->dynamic || s->init != 1))
            return 1;
    }
    return 0;
}

static void emit_updates(Step *s, Optimizer *opt)
{
    Pending *pending = &s->pending[opt->index];
    Program *p = s->program;
    if (pending->gradients.n && pending->graph != graph_now()) {
        error_at(p->diags, CODE_UNSUPPORTED, pending->gradients.at[0]->span,
                 "not supported yet: an update of '%s' in another segment than its gradients",
                 opt->name);
        return;
    }
    for (int i = 0; i < pending->gradients.n; i++) {
        Node *g = pending->gradients.at[i];
        s->gradient[g->param->index] = NULL;
        Attr attrs[] = {attr_str(opt->name), g->attrs->at[1],
                        attr_str(pending->clip ? pending->clip : intern(p->names, "")),
                        attr_real(pending->limit)};
        Context former = graph_context((Context){.span = g->span, .name = g->param->local});
        Node *update =
            build(OP_UPDATE, &s->sum[g->param->index], 1, attrs_make(OP_UPDATE, attrs, 4));
        graph_context(former);
        update->param = g->param;
        update->version = g->version + 1;
    }
    opt->clip_kind = pending->clip;
    opt->clip_limit = pending->limit;
    opt->checks = needs_check(p, pending);
    *pending = (Pending){.clip = NULL};
}

/* A gradient of a second backward is added to that of the first, in f32: both are scaled alike. */
static Node *add_gradient(Step *s, Node *old, Node **in)
{
    Optimizer *opt = program_optimizer(s->program, old->attrs->at[0].s);
    Pending *pending = &s->pending[opt->index];
    int k = old->param->index;
    Node *first = s->gradient[k];
    if (!first) {
        s->gradient[k] = copy_node(old, in);
        s->sum[k] = in[0];
        pending->graph = graph_now();
        vec_push(s->program->arena, &pending->gradients, s->gradient[k]);
        return s->gradient[k];
    }
    if (pending->graph != graph_now() || first->attrs != old->attrs) {
        error_at(s->program->diags, CODE_UNSUPPORTED, old->span,
                 "not supported yet: gradients for '%s' from several %s before its update",
                 opt->name, first->attrs != old->attrs ? "scalers" : "segments");
        return first;
    }
    s->sum[k] = build2(OP_ADD, cast_because(s->sum[k], DT_F32, "shared"),
                       cast_because(in[0], DT_F32, "shared"));
    return first;
}

/* Statements of the old graph, in order; everything else is copied. */
static Node *join(Rewrite *w, Node *old, Node **in)
{
    Step *s = w->data;
    Optimizer *opt;
    switch (old->op) {
    case OP_GRADIENT:
        return add_gradient(s, old, in);
    case OP_CLIP:
        opt = program_optimizer(s->program, old->attrs->at[0].s);
        s->pending[opt->index].clip = old->attrs->at[1].s;
        s->pending[opt->index].limit = old->attrs->at[2].r;
        return copy_node(old, in);
    case OP_UPDATE: {
        opt = program_optimizer(s->program, old->attrs->at[0].s);
        Node *before = graph_now()->last;
        emit_updates(s, opt);
        return graph_now()->last == before ? error_node() : graph_now()->last;
    }
    default:
        return NULL;
    }
}

/* The statements have done their work; the updates stay. */
static Node *drop_statements(Rewrite *w, Node *old, Node **in)
{
    (void)w, (void)in;
    return old->op == OP_GRADIENT || old->op == OP_CLIP ? error_node() : NULL;
}

void pass_step(Unit *u)
{
    Program *p = u->program;
    for (int i = 0; i < p->entries.n; i++) {
        Entry *e = p->entries.at[i];
        if (e->kind != ENTRY_TRAIN)
            continue;
        Step s = {.program = p,
                  .pending = new_array(u->scratch, Pending, p->optimizers.n + 1),
                  .gradient = new_array(u->scratch, Node *, p->params.n + 1),
                  .sum = new_array(u->scratch, Node *, p->params.n + 1)};
        Rewrite w = {.program = p, .data = &s};
        for (int k = 0; k < e->segments; k++)
            e->segment[k] = rewrite(e->segment[k], join, &w);
        for (int k = 0; k < e->segments; k++)
            e->segment[k] = rewrite(e->segment[k], drop_statements, &w);
    }
}
