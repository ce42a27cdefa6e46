#include "ir/verify.h"
#include "ir/shape.h"
#include "ir/text.h"
#include <limits.h>

typedef struct Check {
    Program *program;
    Entry *entry;
    const char *pass; /* NULL: the program was read from text */
    Arena *arena;
    int *
        made; /* by parameter: the newest version that a node has made or seen so far in the entry */
    int *possible; /* by parameter, before pass step: updates of its optimizer since */
} Check;

static void breach(Check *c, const Node *n, const char *rule)
{
    Out o;
    out_init(&o, c->arena);
    node_print(&o, c->program, n);
    if (o.size && o.text[o.size - 1] == '\n')
        o.text[o.size - 1] = '\0';
    if (c->pass)
        error_at(c->program->diags, CODE_INTERNAL, n->span,
                 "internal error after pass '%s': %s: %s", c->pass, rule, o.text);
    else
        error_at(c->program->diags, CODE_RULE, n->span, "%s: %s", rule, o.text);
}

/* ---- at every stage ---- */

static int attrs_fit(const Node *n)
{
    const OpInfo *info = op_info(n->op);
    if (!info->attrs)
        return !n->attrs;
    if (!n->attrs || n->attrs->n != info->attrs)
        return 0;
    for (int i = 0; i < info->attrs; i++) {
        AttrKind kind = n->attrs->at[i].kind;
        if (kind != info->attr[i].kind && !(kind == ATTR_NONE && info->attr[i].optional))
            return 0;
    }
    return 1;
}

static int arity_fits(const Node *n)
{
    int arity = op_info(n->op)->arity;
    if (n->op == OP_UPDATE && !n->nin)
        return !n->param; /* a whole optimizer, before pass step */
    return arity < 0 ? n->nin > 0 : n->nin == arity;
}

/* Operands come before their uses; a node that breaks this cannot be looked at further. */
static int has_sound_form(Check *c, const Node *n)
{
    if (!n->type) {
        breach(c, n, "a node has no type");
        return 0;
    }
    if (!arity_fits(n) || !attrs_fit(n)) {
        breach(c, n, "operands or attributes are not those of the row");
        return 0;
    }
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->id >= n->id || !n->in[i]->type) {
            breach(c, n, "an operand does not come before its use");
            return 0;
        }
    return 1;
}

static int has_param(Op op)
{
    return op == OP_READ || op == OP_GRADIENT || op == OP_STORE;
}

/* Before pass step an update is that of all the optimizer's parameters that a gradient has
 * reached. */
static void update_all(Check *c, const Node *n)
{
    Program *p = c->program;
    for (int i = 0; i < p->optimizers.n; i++) {
        const Optimizer *opt = p->optimizers.at[i];
        for (int k = 0; opt->name == n->attrs->at[0].s && k < opt->params.n; k++)
            c->possible[opt->params.at[k]->index]++;
    }
}

/* The newest version that a read may see. */
static int last_version(const Check *c, int i)
{
    return c->program->stage < STEPPED ? c->made[i] + c->possible[i] : INT_MAX;
}

/* A read sees the newest version, an update or store makes one that nothing has seen before. Behind
 * pass step a version may have been made without a node: the update found no gradient. */
static void check_version(Check *c, const Node *n)
{
    if (!n->param) {
        if (has_param(n->op))
            breach(c, n, "no parameter");
        else if (n->op == OP_UPDATE)
            update_all(c, n);
        return;
    }
    int i = n->param->index, makes = n->op == OP_UPDATE || n->op == OP_STORE;
    if (!same_shape(n->type, n->param->type))
        breach(c, n, "not the shape of the parameter");
    if (makes ? n->version <= c->made[i]
              : n->version < c->made[i] || n->version > last_version(c, i))
        breach(c, n,
               makes ? "an update to a version that is there already"
                     : "a read of a version that does not exist here");
    if (n->version <= c->made[i])
        return;
    if (!makes) /* an update without a node made it */
        c->possible[i] -= n->version - c->made[i];
    c->made[i] = n->version;
}

static int in_list(const Str *list, int n, Str name)
{
    while (n--)
        if (list[n] == name)
            return 1;
    return 0;
}

static int has_input(const Entry *e, const Node *n)
{
    for (int i = 0; i < e->inputs.n; i++)
        if (e->inputs.at[i].name == n->attrs->at[0].s)
            return e->inputs.at[i].type == n->type;
    return 0;
}

static int knows_optimizer(const Entry *e, Str name)
{
    for (int i = 0; i < e->optimizers.n; i++)
        if (e->optimizers.at[i]->name == name)
            return 1;
    return 0;
}

/* What a node says of its entry. */
static void check_names(Check *c, const Node *n)
{
    const Entry *e = c->entry;
    switch ((int)n->op) {
    case OP_INPUT:
        if (!has_input(e, n))
            breach(c, n, "not an input of the entry");
        break;
    case OP_REPORT:
        if (!in_list(e->reports.at, e->reports.n, n->attrs->at[0].s))
            breach(c, n, "not a report of the entry");
        break;
    case OP_RESULT:
        if (!in_list(e->results.at, e->results.n, n->attrs->at[0].s))
            breach(c, n, "not a result of the entry");
        break;
    case OP_BACKWARD:
    case OP_CLIP:
    case OP_UPDATE:
    case OP_GRADIENT:
        if (!knows_optimizer(e, n->attrs->at[0].s))
            breach(c, n, "not an optimizer of the entry");
        if (e->kind != ENTRY_TRAIN)
            breach(c, n, "a statement of a step outside of a train");
        break;
    default:
        break;
    }
}

/* ---- from stage typed on ---- */

static void check_type(Check *c, const Node *n)
{
    graph_context((Context){.span = n->span, .name = n->name});
    const Type *type = node_infer(n);
    if (type != n->type)
        breach(c, n, "not the type that the row gives");
}

/* ---- from stage casted on ---- */

/* Real operands of one node have one type once casts are explicit. */
static int operands_agree(const Node *n)
{
    DType seen = DT_NONE;
    for (int i = op_is(n->op, F_CHOICE) ? 1 : 0; i < n->nin; i++) {
        DType dtype = n->in[i]->type->dtype;
        if (!is_real(dtype))
            continue;
        if (seen != DT_NONE && dtype != seen)
            return 0;
        seen = dtype;
    }
    return 1;
}

static int is_f32_scalar(const Type *type)
{
    return type->dtype == DT_F32 && !type->rank;
}

static void check_casted(Check *c, const Node *n)
{
    const Properties *props = &c->program->props;
    if (n->type->dtype == DT_FLOAT && !(op_is(n->op, F_EFFECT) && !n->nin))
        breach(c, n, "'float' is left");
    if ((op_info(n->op)->elementwise || n->op == OP_MATMUL || n->op == OP_CONCAT) &&
        !operands_agree(n))
        breach(c, n, "real operands differ in type");
    if (op_is(n->op, F_EARLY))
        breach(c, n, "a composite that goes in pass cast is left");
    if (n->op == OP_ENTER || n->op == OP_LEAVE)
        breach(c, n, "a border of an instance is left");
    if ((n->op == OP_READ || n->op == OP_STORE) &&
        n->type->dtype != param_read_type(props, n->param))
        breach(c, n, "not the type in which the level reads the parameter");
    if ((n->op == OP_BACKWARD || (n->op == OP_REPORT && is_real(n->type->dtype))) &&
        !is_f32_scalar(n->in[0]->type))
        breach(c, n, "not an f32 scalar");
}

/* ---- later stages ---- */

/* The axes of a reduction are one run. */
static int is_run(const Attr *axes)
{
    for (int i = 1; i < axes->ints.n; i++)
        if (axes->ints.at[i] != axes->ints.at[i - 1] + 1)
            return 0;
    return 1;
}

static void check_stage(Check *c, const Node *n)
{
    Stage stage = c->program->stage;
    if (stage >= DIFFERENTIATED && n->op == OP_BACKWARD)
        breach(c, n, "a backward is left");
    if (stage < DIFFERENTIATED && n->op == OP_GRADIENT)
        breach(c, n, "a gradient before pass autodiff");
    if (stage >= STEPPED && (n->op == OP_GRADIENT || n->op == OP_CLIP))
        breach(c, n, "a statement of the step is left");
    if (n->op == OP_UPDATE && (stage >= STEPPED) != (n->param != NULL))
        breach(c, n,
               stage >= STEPPED ? "an update without parameter and gradient"
                                : "an update of one parameter before pass step");
    if (stage >= EXPANDED && (op_is(n->op, F_EXPAND) || n->op == OP_DETACH))
        breach(c, n, "a composite is left");
    if (stage >= EXPANDED && (n->op == OP_SUM || n->op == OP_MAXRED || n->op == OP_MINRED) &&
        !is_run(&n->attrs->at[0]))
        breach(c, n, "a reduction over axes that are not one run");
}

static void check_node(Check *c, const Node *n)
{
    if (!has_sound_form(c, n))
        return;
    if (n->mark)
        breach(c, n, "a mark was left");
    check_version(c, n);
    check_names(c, n);
    if (c->program->stage >= TYPED)
        check_type(c, n);
    if (c->program->stage >= CASTED)
        check_casted(c, n);
    check_stage(c, n);
}

static void check_graph(Check *c, Graph *g)
{
    int id = 0;
    graph_open(g);
    for (Node *n = g->first; n; n = n->next) {
        if (n->id != id++)
            breach(c, n, "ids are not positions");
        check_node(c, n);
    }
    graph_close();
}

void verify_program(Program *p, const char *pass)
{
    Check c = {.program = p, .pass = pass, .arena = p->arena};
    for (int i = 0; i < p->entries.n; i++) {
        c.entry = p->entries.at[i];
        c.made = new_array(p->arena, int, p->params.n + 1);
        c.possible = new_array(p->arena, int, p->params.n + 1);
        for (int s = 0; s < c.entry->segments; s++)
            check_graph(&c, c.entry->segment[s]);
    }
}
