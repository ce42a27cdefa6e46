/* Losses and accuracy, as in PyTorch, in primitive ops. Classes are the last dimension:
 *
 *     cross_entropy(logits: float[..B, C], target: i32|i64[..B], smoothing = 0, reduce = "mean")
 */
#include "frontend/elab_core.h"
#include <string.h>

#define BUILTIN(name, least, most, attrs, build, op) Value builtin_##build(Elab *e, Site *s, int o);
#include "frontend/builtin.def"
#undef BUILTIN

static int64_t last_axis(const Node *x)
{
    return x->type->rank - 1;
}

/* The values of an input used as index must be below `classes`: seen through views and integer
 * casts. */
void limit_classes(Elab *e, const Node *index, const Dim *classes)
{
    int64_t c;
    const Node *n = index;
    if (!dim_is_int(classes, &c))
        return;
    while (n->type && n->nin && dtype_info[n->type->dtype].kind == KIND_INT &&
           (op_is(n->op, F_VIEW) || n->op == OP_CAST))
        n = n->in[0];
    if (n->op != OP_INPUT || dtype_info[n->type->dtype].kind != KIND_INT)
        return;
    for (int i = 0; i < e->run->entry->inputs.n; i++) {
        EntryInput *input = &e->run->entry->inputs.at[i];
        if (input->name == attr_s(n, "name") && (!input->classes || c < input->classes))
            input->classes = c;
    }
}

static Value reduce_terms(Elab *e, Site *s, Node *terms)
{
    int64_t axes[MAX_RANK];
    bool ok = true;
    Str how = site_string(e, s, "reduce", "mean", &ok);
    if (!ok || !terms->type)
        return value_error();
    for (int i = 0; i < terms->type->rank; i++)
        axes[i] = i;
    set_span(e, s->span);
    if (!strcmp(how, "none"))
        return value_node(terms);
    if (!strcmp(how, "mean"))
        return value_node(reduce(OP_MEAN, terms, axes, terms->type->rank, 0));
    if (!strcmp(how, "sum"))
        return value_node(reduce(OP_SUM, terms, axes, terms->type->rank, 0));
    elab_error(e, CODE_VALUE, site_find(s, "reduce")->span,
               "'reduce' of '%s' is \"mean\", \"sum\" or \"none\"", s->what);
    return value_error();
}

/* Scores and class indices: float[..B, C] and integers [..B]. */
static bool class_operands(Elab *e, Site *s, Node **scores, Node **target)
{
    *scores = to_real(site_tensor(e, s, 0, DT_NONE));
    *target = site_tensor(e, s, 1, DT_I32);
    if (!(*scores)->type || !(*target)->type)
        return false;
    const Type *x = (*scores)->type, *t = (*target)->type;
    bool fits = x->rank == t->rank + 1;
    for (int i = 0; fits && i < t->rank; i++)
        fits = x->dim[i] == t->dim[i];
    if (dtype_info[t->dtype].kind != KIND_INT) {
        elab_error(e, CODE_TYPE, s->slot[1].span, "'%s' takes class indices as integers, found %s",
                   s->what, tensor_text(e, *target));
        return false;
    }
    if (!fits) {
        elab_error(e, CODE_SHAPE, s->span,
                   "'%s' needs [..B, C] and [..B] (classes last), found %s and %s", s->what,
                   tensor_text(e, *scores), tensor_text(e, *target));
        return false;
    }
    limit_classes(e, *target, x->dim[x->rank - 1]);
    return true;
}

/* Names a value inside of a loss, for whoever reads the program that comes out. */
static Node *called(Elab *e, Node *n, const char *name)
{
    if (n->type && !n->name)
        n->name = intern(e->names, name);
    return n;
}

/* -x[target], without memory access by index: a sum in which one term is not zero. */
static Node *picked(Elab *e, Node *logs, Node *target)
{
    const int64_t axis = last_axis(logs);
    Node *mask = one_hot_mask(e, target, logs->type->dim[axis]);
    Node *terms = build3(OP_WHERE, mask, logs, like(0, logs));
    return called(e, build1(OP_NEG, reduce(OP_SUM, terms, &axis, 1, 0)), "nll");
}

Value builtin_entropy(Elab *e, Site *s, int op)
{
    Node *x, *target;
    bool ok = true;
    if (!class_operands(e, s, &x, &target))
        return value_error();
    double smoothing = site_real(e, s, "smoothing", 0, &ok);
    if (!ok)
        return value_error();
    if (!(smoothing >= 0 && smoothing <= 1)) {
        elab_error(e, CODE_VALUE, site_find(s, "smoothing")->span,
                   "'smoothing' of 'cross_entropy' must be within 0 .. 1");
        return value_error();
    }
    set_span(e, s->span);
    const int64_t axis = last_axis(x);
    Node *logs = called(e, softmax((Op)op, x, (int)axis), "log_probs");
    Node *terms = picked(e, logs, target);
    if (smoothing > 0) {
        Node *even = build1(OP_NEG, reduce(OP_MEAN, logs, &axis, 1, 0));
        terms = build2(OP_ADD, build2(OP_MUL, terms, like(1 - smoothing, terms)),
                       build2(OP_MUL, even, like(smoothing, even)));
    }
    return reduce_terms(e, s, terms);
}

Value builtin_likelihood(Elab *e, Site *s, int op)
{
    Node *logs, *target;
    (void)op;
    if (!class_operands(e, s, &logs, &target))
        return value_error();
    return reduce_terms(e, s, picked(e, logs, target));
}

/* Losses of two tensors of one shape. A shape that would broadcast is a mistake here. */
Value builtin_pairwise(Elab *e, Site *s, int op)
{
    bool ok = true;
    Node *a = to_real(site_tensor(e, s, 0, DT_NONE));
    Node *b = to_real(site_tensor(e, s, 1, a->type ? a->type->dtype : DT_NONE));
    if (!a->type || !b->type)
        return value_error();
    if (!same_shape(a->type, b->type) && slot_value(e, &s->slot[1]).kind == VAL_TENSOR) {
        elab_error(e, CODE_SHAPE, s->span, "'%s' needs two tensors of one shape, found %s and %s",
                   s->what, tensor_text(e, a), tensor_text(e, b));
        return value_error();
    }
    set_span(e, s->span);
    if (op == OP_BCE && a->op == OP_SIGMOID) {
        a = a->in[0];
        op = OP_BCE_LOGITS;
        remark_at(e->diags, s->span,
                  "bce of a sigmoid is computed as bce_with_logits, which does not overflow");
    }
    if (op == OP_SMOOTH_L1) {
        Attr beta = attr_real(site_real(e, s, "beta", 1, &ok));
        Node *in[] = {a, b};
        if (ok && !(beta.r > 0)) {
            elab_error(e, CODE_VALUE, site_find(s, "beta")->span,
                       "'beta' of 'smooth_l1' must be above 0");
            ok = false;
        }
        return ok ? reduce_terms(e, s, build((Op)op, in, 2, attrs_make((Op)op, &beta, 1)))
                  : value_error();
    }
    return reduce_terms(e, s, build2((Op)op, a, b));
}

Value builtin_accuracy(Elab *e, Site *s, int op)
{
    Node *x, *target;
    int64_t axes[MAX_RANK];
    if (!class_operands(e, s, &x, &target))
        return value_error();
    Attr axis = attr_int(last_axis(x));
    set_span(e, s->span);
    Node *best = called(e, build((Op)op, &x, 1, attrs_make((Op)op, &axis, 1)), "predicted");
    if (best->type && best->type->dtype != target->type->dtype)
        best = cast_to(best, target->type->dtype);
    Node *right = called(e, cast_to(build2(OP_EQ, best, target), DT_FLOAT), "right");
    if (!right->type)
        return value_error();
    for (int i = 0; i < right->type->rank; i++)
        axes[i] = i;
    return value_node(reduce(OP_MEAN, right, axes, right->type->rank, 0));
}
