/* Holds every row of the op table to its word: spellings and attributes are well formed, flags
 * agree with what the row is, the row's type rule takes a node made from the row alone, IR text of
 * that node reads back and prints the same, and what a row says is rewritten into primitives is
 * rewritten, with the same type.
 */
#include "check.h"
#include "ir/shape.h"
#include "ir/text.h"
#include "ir/optim.h"
#include <math.h>
#include <string.h>

enum { SIZE = 4 };

typedef struct Trial {
    Arena arena;
    Names names;
    Sources sources;
    Diags diags;
    Program *program;
    Entry *entry;
    Optimizer *opt;
    Param *param;
    Graph *graph;
} Trial;

static void trial_open(Trial *t)
{
    memset(t, 0, sizeof *t);
    names_init(&t->names, &t->arena);
    sources_init(&t->sources, &t->arena);
    diags_init(&t->diags, &t->arena, &t->sources);
    Program *p = t->program = program_make(&t->arena, &t->names, &t->diags);
    p->stage = TYPED;
    p->props =
        (Properties){.resolved = 1, .half = DT_BF16, .model_type = DT_F32, .static_scale = 1};
    t->opt = new (&t->arena, Optimizer);
    t->opt->name = intern(&t->names, "opt");
    for (int i = 0; i < optim_info(0)->hypers; i++)
        t->opt->hyper[i] = new (&t->arena, Scalar);
    vec_push(&t->arena, &p->optimizers, t->opt);
    Scaler *scaler = new (&t->arena, Scaler);
    scaler->name = intern(&t->names, "s");
    vec_push(&t->arena, &p->scalers, scaler);
    Option *option = new (&t->arena, Option);
    option->name = intern(&t->names, "o");
    option->value = new (&t->arena, Scalar);
    vec_push(&t->arena, &p->options, option);
    t->entry = new (&t->arena, Entry);
    t->entry->name = intern(&t->names, "fit");
    t->entry->batch_symbol = -1;
    t->entry->segment = &t->graph;
    t->entry->segments = 1;
    t->graph = graph_make(p);
    vec_push(&t->arena, &p->entries, t->entry);
    graph_open(t->graph);
    const Dim *dim[] = {dim_int(&p->types, SIZE), dim_int(&p->types, SIZE)};
    t->param = new (&t->arena, Param);
    t->param->name = t->param->local = intern(&t->names, "w");
    t->param->type = type_of(DT_F32, 2, dim);
    t->param->optimizer = t->opt;
    vec_push(&t->arena, &p->params, t->param);
    vec_push(&t->arena, &t->opt->params, t->param);
}

static Node *input(Trial *t, int k, DType dtype, int rank)
{
    const Dim *dim[] = {dim_int(&t->program->types, SIZE), dim_int(&t->program->types, SIZE)};
    EntryInput x = {.name = intern_printf(&t->names, "%c", 'a' + k), .field = -1};
    x.type = type_of(dtype, rank, dim);
    vec_push(&t->arena, &t->entry->inputs, x);
    Attr name = attr_str(x.name);
    return build_source(OP_INPUT, x.type, attrs_make(OP_INPUT, &name, 1), NULL, 0);
}

/* An operand that the row takes at place k. */
static Node *operand(Trial *t, Op op, int k)
{
    if (op_is(op, F_LOGIC) || (op_is(op, F_CHOICE) && k == 0))
        return input(t, k, DT_BOOL, 2);
    if ((op == OP_GATHER || op == OP_SCATTER) && k == 1)
        return input(t, k, DT_I32, 1);
    if (op == OP_BACKWARD || op == OP_REPORT)
        return input(t, k, DT_F32, 0);
    return input(t, k, DT_F32, 2);
}

static Attr dims(Trial *t, int n, int64_t a, int64_t b, int64_t c)
{
    const Dim *dim[] = {dim_int(&t->program->types, a), dim_int(&t->program->types, b),
                        dim_int(&t->program->types, c)};
    return attr_dims(dim, n);
}

/* A value of the attribute, such that no identity of fold.c takes the node away. */
static Attr attribute(Trial *t, Op op, const AttrSchema *schema)
{
    static const int64_t first[] = {0}, swapped[] = {1, 0};
    const char *name = schema->name;
    switch (schema->kind) {
    case ATTR_INT:
        return attr_int(1);
    case ATTR_BOOL:
        return attr_bool(op != OP_LINEAR);
    case ATTR_REAL:
        return attr_real(isfinite(schema->fallback) ? schema->fallback + 0.5 : schema->fallback);
    case ATTR_DTYPE:
        return attr_dtype(DT_F16);
    case ATTR_INTS:
        return op == OP_PERMUTE ? attr_ints(swapped, 2) : attr_ints(first, 1);
    case ATTR_DIMS:
        return op == OP_RESHAPE         ? dims(t, 2, 2, 8, 0)
               : op == OP_EXPAND        ? dims(t, 3, 3, SIZE, SIZE)
               : !strcmp(name, "shape") ? dims(t, 2, SIZE, SIZE, 0)
               : !strcmp(name, "range") ? dims(t, 2, 1, 3, 0)
                                        : dims(t, 1, 7, 0, 0);
    case ATTR_STR:
        return attr_str(intern(&t->names, !strncmp(name, "optimizer", 9) ? "opt"
                                          : !strcmp(name, "scaler")      ? "s"
                                          : op == OP_OPTION              ? "o"
                                                                         : "n 1"));
    case ATTR_NONE:
        break;
    }
    return attr_none();
}

static int takes_param(Op op)
{
    return op == OP_READ || op == OP_UPDATE || op == OP_GRADIENT || op == OP_STORE;
}

static const Type *given_type(Trial *t, Op op)
{
    return op == OP_READ ? t->param->type : type_scalar(&t->program->types, DT_F32);
}

/* The node that the row alone describes. */
static Node *node_of(Trial *t, Op op)
{
    const OpInfo *info = op_info(op);
    Node *in[3];
    Attr attr[MAX_ATTRS];
    int nin = info->arity < 0 ? 2 : info->arity;
    if (op == OP_INPUT)
        return input(t, 0, DT_F32, 2);
    for (int k = 0; k < nin; k++)
        in[k] = op == OP_LINEAR && k == 2 ? in[1] : operand(t, op, k);
    for (int i = 0; i < info->attrs; i++)
        attr[i] = attribute(t, op, &info->attr[i]);
    const Attrs *attrs = attrs_make(op, attr, info->attrs);
    int is_source =
        !nin && !op_is(op, F_EFFECT) && op != OP_IOTA && op != OP_RAND && op != OP_RANDN;
    Node *n = is_source
                  ? build_source(op, given_type(t, op), attrs, takes_param(op) ? t->param : NULL, 0)
                  : build(op, in, nin, attrs);
    if (op_is(op, F_EFFECT) && takes_param(op)) {
        n->param = t->param;
        n->version = op == OP_GRADIENT ? 0 : 1;
    }
    return n;
}

static const char *print(Trial *t, Program *p)
{
    Out o;
    out_init(&o, &t->arena);
    program_print(&o, p, PRINT_PLAIN);
    return o.text;
}

static void complain(const Trial *t, const OpInfo *info, const char *text)
{
    fprintf(stderr, "row %s:\n%s", info->id, text ? text : "");
    for (const Diag *d = t->diags.first; d; d = d->next)
        fprintf(stderr, "    %s\n", d->text);
}

static void check_text(Trial *t, const OpInfo *info)
{
    vec_push(&t->arena, &t->entry->reports, intern(&t->names, "n 1"));
    vec_push(&t->arena, &t->entry->results, intern(&t->names, "n 1"));
    vec_push(&t->arena, &t->entry->optimizers, t->opt);
    vec_push(&t->arena, &t->entry->scalers, t->program->scalers.at[0]);
    const char *once = print(t, t->program);
    char *call = arena_printf(&t->arena, " %s(", info->spelling);
    CHECK(strstr(once, call) != NULL);
    const Source *source = source_add(&t->sources, "f.ir", once, strlen(once));
    Program *again = program_read(source, &t->diags, &t->names, &t->arena);
    CHECK_EQ(t->diags.errors, 0);
    int same = !t->diags.errors && !strcmp(once, print(t, again));
    CHECK(same);
    if (!same)
        complain(t, info, once);
}

static void check_expansion(Trial *t, Node *n)
{
    graph_open(t->graph);
    int before = t->graph->count;
    Node *r = expand_composite(n, n->in);
    CHECK(r != NULL);
    CHECK(r && r->type == n->type);
    for (Node *x = t->graph->first; x; x = x->next)
        CHECK(x->id < before || !op_is(x->op, F_EARLY));
    graph_close();
}

static void check_node(Op op)
{
    Trial trial, *t = &trial;
    const OpInfo *info = op_info(op);
    trial_open(t);
    if (op == OP_GRADIENT)
        t->program->stage = DIFFERENTIATED;
    if (op == OP_UPDATE)
        t->program->stage = STEPPED;
    Node *n = node_of(t, op);
    graph_close();
    CHECK(n->op == op && n->type);
    if (n->op == op && n->type) {
        check_text(t, info);
        if (op_is(op, F_EXPAND) || op_is(op, F_EARLY))
            check_expansion(t, n);
    } else {
        complain(t, info, NULL);
    }
    arena_free(&t->arena);
}

static void check_attr(const OpInfo *info, int i)
{
    const AttrSchema *a = &info->attr[i];
    CHECK(*a->name && strspn(a->name, "abcdefghijklmnopqrstuvwxyz_") == strlen(a->name));
    CHECK(a->kind != ATTR_NONE);
    if (info->elementwise)
        CHECK(a->kind == ATTR_REAL && !a->optional);
    for (int k = 0; k < i; k++)
        CHECK(strcmp(a->name, info->attr[k].name) != 0);
}

static void check_row(Op op)
{
    const OpInfo *info = op_info(op);
    const char *letters = "abcdefghijklmnopqrstuvwxyz0123456789_";
    CHECK(*info->spelling && strspn(info->spelling, letters) == strlen(info->spelling));
    CHECK_EQ(op_find(info->spelling), op); /* the first with this spelling: no other has it */
    CHECK(*info->prose);
    CHECK(info->arity >= -1 && info->arity <= 3);
    CHECK(info->elementwise == (info->value != NULL));
    if (info->elementwise)
        CHECK(info->arity >= 1 && info->attrs <= 2 && *info->value);
    if (op_is(op, F_COMM))
        CHECK_EQ(info->arity, 2);
    if (op_is(op, F_LOGIC))
        CHECK(op_is(op, F_BOOL_OUT) && !op_is(op, F_INTS) && !op_is(op, F_REALS));
    CHECK(!(op_is(op, F_INTS) && op_is(op, F_REALS)));
    if (op_is(op, F_GENERATOR))
        CHECK_EQ(info->arity, 0);
    if (op_is(op, F_VIEW))
        CHECK_EQ(info->arity, 1);
    CHECK(!(op_is(op, F_EXPAND) && op_is(op, F_EARLY)));
    for (int i = 0; i < info->attrs; i++)
        check_attr(info, i);
}

int main(void)
{
    for (int op = 0; op < OP_COUNT; op++) {
        check_row((Op)op);
        check_node((Op)op);
    }
    return check_done();
}
