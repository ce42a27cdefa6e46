/* Holds the gradient of every row of the op table to central differences in double: h = 1e-6, and
 * |found - wanted| <= 1e-7 + 1e-5 |wanted|. A row that says that something flows is tested by itself; nobody
 * writes a test an op. What is listed below is only what a row cannot say: where its operands live,
 * and shapes and attributes of structured ops.
 */
#include "check.h"
#include "ir/eval.h"
#include "ir/shape.h"
#include "passes/pass.h"
#include <math.h>
#include <string.h>

enum { SAMPLES = 20, MAX_OPERANDS = 3 };

typedef struct Trial {
    Arena arena, scratch;
    Names names;
    Sources sources;
    Diags diags;
    Program *program;
    Optimizer optimizer;
    Entry entry;
    Graph *segment[1];
    double *value[MAX_OPERANDS]; /* of the parameters */
    uint64_t random;
} Trial;

static double uniform(Trial *t, double low, double high)
{
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * (double)(t->random >> 11) * 0x1p-53;
}

static void trial_open(Trial *t, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->random = seed * 7919 + 1;
    names_init(&t->names, &t->arena);
    sources_init(&t->sources, &t->arena);
    diags_init(&t->diags, &t->arena, &t->sources);
    t->program = program_make(&t->arena, &t->names, &t->diags);
    t->program->props = (Properties){.half = DT_BF16, .model_type = DT_F32, .static_scale = 1};
    t->optimizer.name = intern(&t->names, "opt");
    t->entry.name = intern(&t->names, "fit");
    t->entry.kind = ENTRY_TRAIN;
    t->entry.batch_symbol = -1;
    t->segment[0] = graph_make(t->program);
    t->entry.segment = t->segment;
    t->entry.segments = 1;
    vec_push(&t->arena, &t->program->optimizers, &t->optimizer);
    vec_push(&t->arena, &t->entry.optimizers, &t->optimizer);
    vec_push(&t->arena, &t->entry.reports, intern(&t->names, "loss"));
    vec_push(&t->arena, &t->program->entries, &t->entry);
    graph_open(t->segment[0]);
}

/* A parameter with values in +-[low, high], signs mixed if `mixed`. */
static Node *operand(Trial *t, int rank, const int64_t *size, double low, double high, int mixed)
{
    const Dim *dim[MAX_RANK];
    int index = t->program->params.n;
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        dim[i] = dim_int(&t->program->types, size[i]);
        count *= size[i];
    }
    Param *p = new (&t->arena, Param);
    p->name = p->local = intern_printf(&t->names, "x%d", index);
    p->type = type_make(&t->program->types, DT_FLOAT, rank, dim);
    p->index = index;
    p->optimizer = &t->optimizer;
    vec_push(&t->arena, &t->program->params, p);
    vec_push(&t->arena, &t->optimizer.params, p);
    t->value[index] = new_array(&t->arena, double, count);
    for (int64_t i = 0; i < count; i++) {
        t->value[index][i] = uniform(t, low, high);
        if (mixed && uniform(t, 0, 1) < 0.5)
            t->value[index][i] = -t->value[index][i];
    }
    return build_source(OP_READ, p->type, NULL, p, 0);
}

static void give_source(void *data, const Node *n, Tensor *out)
{
    Trial *t = data;
    for (int64_t i = 0; i < out->count; i++)
        out->d[i] = t->value[n->param->index][i];
}

static double loss_of(Trial *t, Eval *e)
{
    e->arena = &t->scratch;
    eval_graph(e, t->segment[0]);
    for (Node *n = t->segment[0]->first; n; n = n->next)
        if (n->op == OP_REPORT)
            return e->value[n->id].d[0];
    return NAN;
}

/* Compares the gradient that UPDATE gets with differences of the loss. */
static int compare(Trial *t, const char *what)
{
    Eval e = {.program = t->program, .mode = EVAL_EXACT, .source = give_source, .data = t};
    int wrong = 0, updates = 0;
    loss_of(t, &e);
    Tensor *at = e.value;
    for (Node *n = t->segment[0]->first; n; n = n->next) {
        if (n->op != OP_UPDATE)
            continue;
        Tensor g = at[n->in[0]->id];
        double *x = t->value[n->param->index];
        updates++;
        for (int64_t i = 0; i < g.count; i++) {
            double keep = x[i], h = 1e-6;
            x[i] = keep + h;
            double up = loss_of(t, &e);
            x[i] = keep - h;
            double down = loss_of(t, &e), wanted = (up - down) / (2 * h);
            x[i] = keep;
            check_count++;
            if (fabs(g.d[i] - wanted) <= 1e-7 + 1e-5 * fabs(wanted))
                continue;
            if (!wrong++)
                fprintf(stderr, "ops.def: %s: d/d%s[%d] at %g is %g, finite differences say %g\n",
                        what, n->param->name, (int)i, keep, g.d[i], wanted);
        }
    }
    CHECK(updates > 0);
    check_failed += wrong;
    return wrong;
}

/* Finishes the step: loss = sum(r * fixed random weights), then the passes. */
static void run_trial(Trial *t, Node *r, const char *what)
{
    Program *p = t->program;
    CHECK(r->type != NULL);
    if (r->type) {
        Attr attrs[] = {attr_dims(r->type->dim, r->type->rank),
                        attr_str(intern(&t->names, "weights"))};
        Node *w = build(OP_RAND, NULL, 0, attrs_make(OP_RAND, attrs, 2));
        int64_t axes[MAX_RANK];
        for (int i = 0; i < r->type->rank; i++)
            axes[i] = i;
        Node *loss = reduce(OP_SUM, build2(OP_MUL, r, w), axes, r->type->rank, 0);
        Attr report = attr_str(intern(&t->names, "loss"));
        build(OP_REPORT, &loss, 1, attrs_make(OP_REPORT, &report, 1));
        Attr backward[] = {attr_str(t->optimizer.name), attr_str(intern(&t->names, "scaler"))};
        build(OP_BACKWARD, &loss, 1, attrs_make(OP_BACKWARD, backward, 2));
        Attr update[] = {attr_str(t->optimizer.name), backward[1], attr_str(intern(&t->names, "")),
                         attr_real(0)};
        build(OP_UPDATE, NULL, 0, attrs_make(OP_UPDATE, update, 4));
        graph_close();
        Settings settings = {.verify = 1};
        Unit u = {.arena = &t->arena,
                  .scratch = &t->scratch,
                  .names = &t->names,
                  .diags = &t->diags,
                  .settings = &settings,
                  .program = p};
        passes_run(&u, "infer,cast,autodiff,clean,master,step,expand", NULL);
        for (Diag *d = t->diags.first; d; d = d->next)
            if (d->severity == ERROR)
                fprintf(stderr, "%s: %s\n", what, d->text);
        CHECK_EQ(t->diags.errors, 0);
        if (!t->diags.errors)
            compare(t, what);
    } else {
        graph_close();
    }
    arena_free(&t->scratch);
    arena_free(&t->arena);
}

/* ---- element-wise rows ---- */

/* Where operands of a row live, if not +-[0.1, 1.6]. */
static const struct {
    Op op;
    double low, high;
    int mixed;
} homes[] = {
    {OP_SQRT, 0.2, 3, 0},  {OP_RSQRT, 0.2, 3, 0},      {OP_LOG, 0.2, 3, 0}, {OP_LOG1P, 0.2, 3, 0},
    {OP_POW, 0.3, 2.5, 0}, {OP_RECIPROCAL, 0.3, 2, 1}, {OP_DIV, 0.3, 2, 1}, {OP_BCE, 0.1, 0.9, 0},
};

static double attribute(Op op, int i)
{
    if (op == OP_CLAMP)
        return i ? 0.7 : -0.5;
    return op_info(op)->attr[i].fallback + (i ? 0 : 0.25);
}

static void elementwise_trial(Op op, uint64_t seed)
{
    Trial t;
    Node *in[MAX_OPERANDS];
    Attr attrs[MAX_ATTRS];
    const OpInfo *info = op_info(op);
    static const int64_t shapes[][3] = {{2, 3}, {3}, {2, 1}};
    static const int ranks[] = {2, 1, 2};
    double low = 0.1, high = 1.6;
    int mixed = 1;
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
        if (homes[i].op == op) {
            low = homes[i].low;
            high = homes[i].high;
            mixed = homes[i].mixed;
        }
    trial_open(&t, seed);
    for (int k = 0; k < info->arity; k++)
        in[k] = operand(&t, ranks[k], shapes[k], low, high, mixed);
    if (op_is(op, F_CHOICE)) {
        Node *condition = build2(OP_GT, in[0], in[1]);
        in[0] = condition;
    }
    for (int i = 0; i < info->attrs; i++)
        attrs[i] = attr_real(attribute(op, i));
    Node *r = build(op, in, info->arity, attrs_make(op, attrs, info->attrs));
    run_trial(&t, r, info->spelling);
}

/* Does any cell of the row say that something flows? */
static int flows(Op op)
{
    switch (op) {
#define ELEM(id, spelling, arity, apex, torch, flags, attrs, value, da, db, dc, prose)             \
    case OP_##id:                                                                                  \
        return strcmp(#da, "NONE") || strcmp(#db, "NONE") || strcmp(#dc, "NONE");
#define OTHER(...)
#include "ir/ops.def"
#undef ELEM
#undef OTHER
    default:
        return 0;
    }
}

/* ---- structured rows: one line a case ---- */

static Node *x_of(Trial *t, int rank, const int64_t *size)
{
    return operand(t, rank, size, 0.1, 1.6, 1);
}

static const Dim *d(Trial *t, int64_t value)
{
    return dim_int(&t->program->types, value);
}

static Node *case_reduce(Trial *t, Op op, int variant)
{
    static const int64_t size[] = {2, 3, 2, 2},
                         axes[][4] = {{0}, {3}, {1, 2}, {0, 2}, {0, 1, 2, 3}};
    static const int count[] = {1, 1, 2, 2, 4};
    Node *x = x_of(t, 4, size);
    if (op == OP_VAR) {
        Attr attrs[] = {attr_ints(axes[variant], count[variant]), attr_bool(variant & 1),
                        attr_int(variant & 1)};
        return build(op, &x, 1, attrs_make(op, attrs, 3));
    }
    return reduce(op, x, axes[variant], count[variant], variant & 1);
}

static Node *case_matmul(Trial *t, Op op, int variant)
{
    (void)op;
    static const int64_t a[][3] = {{2, 3}, {3, 2}, {2, 3}, {3, 2}},
                         b[][3] = {{3, 4}, {3, 4}, {4, 3}, {4, 3}};
    static const int64_t stack[] = {2, 2, 3}, other[] = {2, 3, 2}, matrix[] = {3, 2},
                         vector[] = {3};
    static const int64_t wide[] = {3, 1, 2, 3};
    if (variant < 4)
        return matmul(x_of(t, 2, a[variant]), x_of(t, 2, b[variant]), variant & 1, variant >> 1);
    if (variant == 4)
        return matmul(x_of(t, 3, stack), x_of(t, 3, other), 0, 0);
    if (variant == 5)
        return matmul(x_of(t, 3, other), x_of(t, 3, stack), 1, 1);
    if (variant == 6)
        return matmul(x_of(t, 3, stack), x_of(t, 2, matrix), 0, 0);
    if (variant == 7) /* leading dimensions broadcast */
        return matmul(x_of(t, 2, a[0]), x_of(t, 3, other), 0, 0);
    if (variant == 8)
        return matmul(x_of(t, 4, wide), x_of(t, 3, other), 0, 0);
    return matmul(x_of(t, 2, a[0]), x_of(t, 1, vector), 0, 0);
}

static Node *case_linear(Trial *t, Op op, int variant)
{
    static const int64_t x[] = {2, 2, 3}, w[][2] = {{4, 3}, {3, 4}}, b[] = {4};
    Node *in[3] = {x_of(t, 3, x), x_of(t, 2, w[variant & 1]), NULL};
    in[2] = variant < 2 ? x_of(t, 1, b) : in[1];
    Attr attrs[] = {attr_bool(variant & 1), attr_bool(variant < 2)};
    return build(op, in, 3, attrs_make(op, attrs, 2));
}

static Node *case_softmax(Trial *t, Op op, int variant)
{
    static const int64_t size[] = {2, 3, 2};
    return softmax(op, x_of(t, 3, size), variant);
}

static Node *case_view(Trial *t, Op op, int variant)
{
    static const int64_t size[] = {2, 3, 4}, order[][3] = {{1, 2, 0}, {2, 1, 0}},
                         thin[] = {2, 1, 4};
    const Dim *to[] = {d(t, 4), d(t, 6)}, *wide[] = {d(t, 3), d(t, 2), d(t, 5), d(t, 4)};
    const Dim *range[] = {d(t, 1), d(t, 2)};
    Node *x = x_of(t, 3, op == OP_EXPAND ? thin : size);
    Attr around[] = {attr_int(variant), attr_dims(range, 2)};
    switch (op) {
    case OP_RESHAPE:
        return reshape(x, to, 2);
    case OP_PERMUTE:
        return permute(x, order[variant], 3);
    case OP_SLICE:
        return slice(x, variant + 1, d(t, 1), d(t, 3));
    case OP_PAD:
        return build(OP_PAD, &x, 1, attrs_make(OP_PAD, around, 2));
    case OP_EXPAND:
        return expand_to(x, wide, 4);
    case OP_DIVN:
        return divide_by_count(x, range, 2);
    default:
        return cast_to(x, DT_F32);
    }
}

static Node *case_concat(Trial *t, Op op, int variant)
{
    static const int64_t a[] = {2, 3}, b[][2] = {{1, 3}, {2, 2}};
    Node *in[] = {x_of(t, 2, a), x_of(t, 2, b[variant])};
    Attr axis = attr_int(variant);
    return build(op, in, 2, attrs_make(op, &axis, 1));
}

static Node *case_gather(Trial *t, Op op, int variant)
{
    static const int64_t size[] = {3, 2};
    const Dim *shape[] = {d(t, 2), d(t, 3)};
    Node *in[] = {x_of(t, 2, size), iota(shape, 2, variant)};
    return build(op, in, 2, NULL);
}

static const struct {
    Op op;
    int variants;
    Node *(*make)(Trial *t, Op op, int variant);
} structured[] = {
    {OP_SUM, 5, case_reduce},    {OP_MEAN, 5, case_reduce},     {OP_MAXRED, 5, case_reduce},
    {OP_MINRED, 5, case_reduce}, {OP_VAR, 5, case_reduce},      {OP_MATMUL, 10, case_matmul},
    {OP_LINEAR, 4, case_linear}, {OP_SOFTMAX, 3, case_softmax}, {OP_LOG_SOFTMAX, 3, case_softmax},
    {OP_RESHAPE, 1, case_view},  {OP_PERMUTE, 2, case_view},    {OP_SLICE, 2, case_view},
    {OP_PAD, 3, case_view},      {OP_EXPAND, 1, case_view},     {OP_DIVN, 1, case_view},
    {OP_CAST, 1, case_view},     {OP_CONCAT, 2, case_concat},   {OP_GATHER, 2, case_gather},
};
enum { STRUCTURED = sizeof structured / sizeof *structured };

static int has_case(Op op)
{
    for (int i = 0; i < STRUCTURED; i++)
        if (structured[i].op == op)
            return 1;
    return op == OP_ENTER || op == OP_LEAVE; /* gone before autodiff */
}

int main(void)
{
    int rows = 0;
    for (int op = 0; op < OP_COUNT; op++) {
        if (op_gradient((Op)op) && !has_case((Op)op)) {
            fprintf(stderr, "ops.def: %s has a gradient and no case here\n",
                    op_info((Op)op)->spelling);
            check_failed++;
        }
        if (!flows((Op)op))
            continue;
        rows++;
        for (uint64_t seed = 0; seed < SAMPLES; seed++)
            elementwise_trial((Op)op, seed);
    }
    for (int i = 0; i < STRUCTURED; i++)
        for (int v = 0; v < structured[i].variants; v++)
            for (uint64_t seed = 0; seed < SAMPLES; seed++) {
                Trial t;
                trial_open(&t, seed);
                run_trial(&t, structured[i].make(&t, structured[i].op, v),
                          op_info(structured[i].op)->spelling);
            }
    printf("%d element-wise rows, %d structured ones\n", rows, STRUCTURED);
    return check_done();
}
