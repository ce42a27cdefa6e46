/* Adds the backward graph: each `backward loss into opt` becomes gradients of opt's parameters,
 * seeded with the loss scale. The gradient of an element-wise op stands in its row's cells, where g
 * is a gradient, r the op's result, and a b c its operands; other rows have a function
 * (ir/shape.h).
 *
 * It runs after `cast`, so a backward op runs in the type that its forward op ran in. The gradient
 * of a narrowing cast is a widening cast of each contribution by itself: what flows to a weight
 * that is used twice is added in f32, not in half.
 *
 *     loss = …; backward(loss, optimizer=opt)   becomes   s = scale(scaler); d_h = …; gradient(w#0, d_w)
 */
#include "ir/shape.h"
#include "passes/pass.h"
#include <string.h>

typedef Vec(Node *) NodeList;

typedef struct Sweep {
    Program *program;
    Entry *entry;
    Arena *scratch;
    Node **list;       /* nodes of the graph up to the loss, by id */
    char *wanted;      /* by id: depends on a parameter whose gradient is asked for */
    NodeList *flowing; /* by id: contributions so far */
    int *newest;       /* by parameter: the version that stands in this place of the entry */
    char *pending;     /* by parameter: has a gradient that no update has used yet */
    char *asked;       /* by optimizer: there is a backward into it */
    int count;
} Sweep;

static Node *like_attrs(const Node *n, Op op, Node *a, Node *b)
{
    Node *in[] = {a, b};
    return build(op, in, 2, attrs_make(op, n->attrs->at, n->attrs->n));
}

/* Constructors of gradient cells. */
#define NONE NULL
#define NEG(x) build1(OP_NEG, x)
#define SIGN(x) build1(OP_SIGN, x)
#define LOG(x) build1(OP_LOG, x)
#define LOG1P(x) build1(OP_LOG1P, x)
#define SIN(x) build1(OP_SIN, x)
#define COS(x) build1(OP_COS, x)
#define SIGMOID(x) build1(OP_SIGMOID, x)
#define ERF_GRAD(x) build1(OP_ERF_GRAD, x)
#define SILU_GRAD(x) build1(OP_SILU_GRAD, x)
#define GELU_GRAD(x) build1(OP_GELU_GRAD, x)
#define GELU_TANH_GRAD(x) build1(OP_GELU_TANH_GRAD, x)
#define ADD(x, y) build2(OP_ADD, x, y)
#define SUB(x, y) build2(OP_SUB, x, y)
#define MUL(x, y) build2(OP_MUL, x, y)
#define DIV(x, y) build2(OP_DIV, x, y)
#define POW(x, y) build2(OP_POW, x, y)
#define EQ(x, y) build2(OP_EQ, x, y)
#define LT(x, y) build2(OP_LT, x, y)
#define LE(x, y) build2(OP_LE, x, y)
#define GT(x, y) build2(OP_GT, x, y)
#define BCE_GRAD(x, y) build2(OP_BCE_GRAD, x, y)
#define WHERE(x, y, z) build3(OP_WHERE, x, y, z)
#define K(value) constant(value, g->type->dtype)
#define LIKE_ATTRS(op, x, y) like_attrs(r, OP_##op, x, y)

/* What flows to operand k of an element-wise node; NULL: nothing. */
static Node *elementwise_gradient(Node *r, Node *g, int k)
{
    Node *a = r->in[0], *b = r->nin > 1 ? r->in[1] : NULL, *c = r->nin > 2 ? r->in[2] : NULL;
    (void)a, (void)b, (void)c;
    switch (r->op) {
#define ELEM(id, spelling, arity, apex, torch, flags, attrs, value, da, db, dc, prose)             \
    case OP_##id:                                                                                  \
        return k == 0 ? da : k == 1 ? db : dc;
#define OTHER(...)
#include "ir/ops.def"
#undef ELEM
#undef OTHER
    default:
        return NULL;
    }
}

static int is_differentiable(Op op)
{
    if (op_info(op)->elementwise)
        return !op_is(op, F_BOOL_OUT);
    return op_gradient(op) != NULL;
}

static Node *local_gradient(Node *n, Node *g, int k)
{
    if (op_info(n->op)->elementwise)
        return elementwise_gradient(n, g, k);
    GradFn f = op_gradient(n->op);
    return f ? f(n, g, k) : NULL;
}

/* Is n a cast to a type that cannot hold its operand's values? */
static int narrows(const Node *n)
{
    return n->op == OP_CAST && is_real(n->in[0]->type->dtype) &&
           !dtype_holds(n->type->dtype, n->in[0]->type->dtype);
}

static Str gradient_name(Sweep *s, const Node *n)
{
    const char *name = n->param ? n->param->local : n->name;
    return name ? intern_printf(s->program->names, "d_%s", name) : NULL;
}

/* Adds what arrived at n. A parameter that is read in half and used more than once is added in
 * f32. */
static Node *total(Sweep *s, Node *n)
{
    NodeList *list = &s->flowing[n->id];
    int wide = n->op == OP_READ && list->n > 1 && is_half(n->type->dtype);
    Node *sum = NULL;
    for (int i = 0; i < list->n; i++) {
        Node *g = wide ? cast_because(list->at[i], DT_F32, "shared") : list->at[i];
        sum = sum ? build2(OP_ADD, sum, g) : g;
    }
    return sum;
}

/* Hands g on to operand k of n: summed to its shape, in its type. */
static void flow(Sweep *s, Node *n, Node *g, int k)
{
    Node *x = n->in[k];
    if (!s->wanted[x->id])
        return;
    Context former = graph_context((Context){.span = n->span, .name = gradient_name(s, x)});
    Node *d = local_gradient(n, g, k);
    if (d) {
        d = unbroadcast(d, x->type);
        d = cast_because(d, x->type->dtype, "gradient");
        vec_push(s->scratch, &s->flowing[x->id], d);
    }
    graph_context(former);
}

/* Marks what depends on the parameters of the optimizer. */
static void mark_wanted(Sweep *s, const Optimizer *opt)
{
    for (int i = 0; i < s->count; i++) {
        Node *n = s->list[i];
        s->wanted[i] = n->op == OP_READ && n->param->optimizer == opt && !n->param->frozen;
        for (int k = 0; k < n->nin && is_differentiable(n->op); k++)
            s->wanted[i] = (char)(s->wanted[i] | s->wanted[n->in[k]->id]);
    }
}

/* Goes back from the loss. Every gradient is complete when its node's turn comes: users have larger
 * ids. */
static void sweep_back(Sweep *s)
{
    for (int i = s->count - 1; i >= 0; i--) {
        Node *n = s->list[i];
        if (!s->flowing[i].n || !s->wanted[i] || n->op == OP_READ)
            continue;
        NodeList alone = s->flowing[i];
        if (narrows(n)) {
            for (int c = 0; c < alone.n; c++)
                flow(s, n, alone.at[c], 0);
            continue;
        }
        Context former = graph_context((Context){.span = n->span, .name = gradient_name(s, n)});
        Node *g = total(s, n);
        graph_context(former);
        for (int k = 0; k < n->nin; k++)
            flow(s, n, g, k);
    }
}

/* The reads that gradients flowed to, by parameter. Several: one before an update and one behind
 * it. */
static NodeList *reached_reads(Sweep *s)
{
    NodeList *reads = new_array(s->scratch, NodeList, s->program->params.n + 1);
    for (int i = 0; i < s->count; i++)
        if (s->list[i]->op == OP_READ && s->flowing[i].n)
            vec_push(s->scratch, &reads[s->list[i]->param->index], s->list[i]);
    return reads;
}

/* The gradient of a parameter: what flowed to all its reads. */
static Node *param_total(Sweep *s, const NodeList *reads)
{
    Node *newest = reads->at[reads->n - 1];
    for (int i = 0; i < reads->n - 1; i++)
        for (int k = 0; k < s->flowing[reads->at[i]->id].n; k++)
            vec_push(s->scratch, &s->flowing[newest->id], s->flowing[reads->at[i]->id].at[k]);
    return total(s, newest);
}

/* A gradient belongs to the newest version of its parameter, which the next update replaces. */
static void emit_gradients(Sweep *s, Optimizer *opt, Str scaler)
{
    NodeList *reads = reached_reads(s);
    for (int i = 0; i < opt->params.n; i++) {
        Param *param = opt->params.at[i];
        const NodeList *mine = &reads[param->index];
        if (param->frozen || !mine->n)
            continue;
        Node *read = mine->at[mine->n - 1];
        Context former =
            graph_context((Context){.span = read->span, .name = gradient_name(s, read)});
        Node *g = param_total(s, mine);
        Attr attrs[] = {attr_str(opt->name), attr_str(scaler)};
        Node *n = build(OP_GRADIENT, &g, 1, attrs_make(OP_GRADIENT, attrs, 2));
        n->param = param;
        n->version = s->newest[param->index];
        s->pending[param->index] = 1;
        param->has_gradient = 1;
        graph_context(former);
    }
}

static int is_scaled(const Program *p, Str scaler)
{
    const Scaler *s = program_scaler(p, scaler);
    return s && (s->dynamic || s->init != 1);
}

static Node *seed(Program *p, Str scaler)
{
    if (!is_scaled(p, scaler))
        return constant(1, DT_F32);
    Attr attr = attr_str(scaler);
    return build_source(OP_SCALE, type_scalar(types_now(), DT_F32), attrs_make(OP_SCALE, &attr, 1),
                        NULL, 0);
}

static void differentiate(Sweep *s, Node *old, Node *loss)
{
    Graph *g = graph_now();
    Str scaler = old->attrs->at[1].s;
    Optimizer *opt = program_optimizer(s->program, old->attrs->at[0].s);
    s->asked[opt->index] = 1;
    s->count = loss->id + 1;
    s->list = new_array(s->scratch, Node *, s->count);
    s->wanted = new_array(s->scratch, char, s->count);
    s->flowing = new_array(s->scratch, NodeList, s->count);
    int i = 0;
    for (Node *n = g->first; n && i < s->count; n = n->next)
        s->list[i++] = n;
    mark_wanted(s, opt);
    if (!s->wanted[loss->id]) {
        error_at(s->program->diags, CODE_GRADIENT, old->span,
                 "this loss depends on no parameter of '%s'", opt->name);
        return;
    }
    Node *start = cast_because(seed(s->program, scaler), loss->type->dtype, "gradient");
    vec_push(s->scratch, &s->flowing[loss->id], start);
    sweep_back(s);
    emit_gradients(s, opt, scaler);
}

/* Follows the versions of parameters through the entry. */
static void count_version(Sweep *s, const Node *old)
{
    if (old->op == OP_READ) {
        int *newest = &s->newest[old->param->index];
        if (old->version < *newest)
            error_at(s->program->diags, CODE_RULE, old->span,
                     "'%s#%d' is read where an update has made version %d", old->param->name,
                     old->version, *newest);
        *newest = old->version;
    }
    if (old->op != OP_UPDATE)
        return;
    const Optimizer *opt = program_optimizer(s->program, old->attrs->at[0].s);
    for (int i = 0; i < opt->params.n; i++) {
        int k = opt->params.at[i]->index;
        s->newest[k] += s->pending[k];
        s->pending[k] = 0;
    }
}

static Node *replace_backward(Rewrite *w, Node *old, Node **in)
{
    Sweep *s = w->data;
    count_version(s, old);
    if (old->op != OP_BACKWARD)
        return NULL;
    differentiate(s, old, in[0]);
    return error_node();
}

/* A parameter that no loss reaches stays as it starts. */
static void warn_unreached(Program *p, const char *asked)
{
    for (int i = 0; i < p->params.n; i++) {
        const Param *param = p->params.at[i];
        if (param->optimizer && asked[param->optimizer->index] && !param->frozen &&
            !param->has_gradient)
            warn_at(p->diags, CODE_UNREACHED, param->span, "'%s' gets no gradient from any loss",
                    param->name);
    }
}

void pass_autodiff(Unit *u)
{
    Program *p = u->program;
    char *asked = new_array(u->scratch, char, p->optimizers.n + 1);
    for (int i = 0; i < p->entries.n; i++) {
        Entry *e = p->entries.at[i];
        if (e->kind != ENTRY_TRAIN)
            continue;
        Sweep s = {.program = p, .entry = e, .scratch = u->scratch, .asked = asked};
        s.newest = new_array(u->scratch, int, p->params.n + 1);
        s.pending = new_array(u->scratch, char, p->params.n + 1);
        Rewrite w = {.program = p, .data = &s};
        for (int k = 0; k < e->segments; k++)
            e->segment[k] = rewrite(e->segment[k], replace_backward, &w);
    }
    if (!p->diags->errors)
        warn_unreached(p, asked);
}
