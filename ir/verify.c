#include "ir/verify.h"
#include "ir/text.h"
#include <stdlib.h>

typedef struct Check {
    Program *program;
    const char *pass;
} Check;

static void breach(Check *c, const Node *n, const char *rule)
{
    Out o;
    out_init(&o, c->program->arena);
    node_print(&o, c->program, n);
    error_at(c->program->diags, CODE_INTERNAL, n->span, "internal error after pass '%s': %s: %s",
             c->pass, rule, o.text);
}

/* The axes of a reduction are one run. */
static int is_run(const Attr *axes)
{
    for (int i = 1; i < axes->ints.n; i++)
        if (axes->ints.at[i] != axes->ints.at[i - 1] + 1)
            return 0;
    return 1;
}

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

static void check_casted(Check *c, const Node *n)
{
    if (n->type->dtype == DT_FLOAT && !op_is(n->op, F_EFFECT))
        breach(c, n, "'float' is left");
    if ((op_info(n->op)->elementwise || n->op == OP_MATMUL || n->op == OP_CONCAT) &&
        !operands_agree(n))
        breach(c, n, "real operands differ in type");
    if (op_is(n->op, F_EARLY))
        breach(c, n, "a composite that goes in pass cast is left");
}

static void check_node(Check *c, const Node *n)
{
    Stage stage = c->program->stage;
    if (!n->type) {
        breach(c, n, "a node has no type");
        return;
    }
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->id >= n->id || !n->in[i]->type) {
            breach(c, n, "an operand does not come before its use");
            return;
        }
    if (n->mark)
        breach(c, n, "a mark was left");
    if (stage >= CASTED)
        check_casted(c, n);
    if (stage >= DIFFERENTIATED && n->op == OP_BACKWARD)
        breach(c, n, "a backward is left");
    if (stage >= STEPPED && (n->op == OP_GRADIENT || n->op == OP_CLIP))
        breach(c, n, "a statement of the step is left");
    if (stage >= STEPPED && n->op == OP_UPDATE && (!n->param || !n->nin))
        breach(c, n, "an update without parameter or gradient");
    if (stage >= EXPANDED && op_is(n->op, F_EXPAND))
        breach(c, n, "a composite is left");
    if (stage >= EXPANDED && (n->op == OP_SUM || n->op == OP_MAXRED || n->op == OP_MINRED) &&
        !is_run(&n->attrs->at[0]))
        breach(c, n, "a reduction over axes that are not one run");
}

void verify_program(Program *p, const char *pass)
{
    Check c = {.program = p, .pass = pass};
    for (int i = 0; i < p->entries.n; i++) {
        Entry *e = p->entries.at[i];
        for (int s = 0; s < e->segments; s++) {
            int id = 0;
            for (Node *n = e->segment[s]->first; n; n = n->next) {
                if (n->id != id++)
                    breach(&c, n, "ids are not positions");
                check_node(&c, n);
            }
        }
    }
}
