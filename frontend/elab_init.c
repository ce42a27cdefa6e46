/* How parameters start: zeros(), ones(), constant(c), uniform(low, high), normal(mean, std),
 * he_normal(), xavier_uniform(), orthogonal(gain), eye(), or a number.
 */
#include "frontend/elab_core.h"
#include <math.h>
#include <string.h>

static const struct {
    const char *name, *attrs;
    InitRuleKind kind;
    double a, b; /* defaults of the attributes */
} rules[] = {
    {"zeros", "", RULE_ZEROS, 0, 0},
    {"ones", "", RULE_ONES, 0, 0},
    {"constant", "value", RULE_CONSTANT, 0, 0},
    {"uniform", "low,high", RULE_UNIFORM, 0, 1},
    {"normal", "mean,std", RULE_NORMAL, 0, 1},
    {"he_normal", "", RULE_HE, 0, 0},
    {"xavier_uniform", "gain", RULE_XAVIER, 1, 0},
    {"orthogonal", "gain", RULE_ORTHOGONAL, 1, 0},
    {"eye", "", RULE_EYE, 0, 0},
};
enum { RULES = sizeof rules / sizeof *rules };

static int find_rule(Elab *e, const Expr *x)
{
    const Expr *name = x->kind == EXPR_CALL ? x->a : x;
    Candidates names = {0};
    for (int i = 0; i < RULES; i++) {
        if (name->kind == EXPR_NAME && !strcmp(rules[i].name, name->name))
            return i;
        vec_push(e->arena, &names, rules[i].name);
    }
    if (name->kind == EXPR_NAME)
        unknown_name(e, CODE_NAME, name->span,
                     arena_printf(e->arena, "'%s' is no way to initialise a parameter", name->name),
                     name->name, &names);
    else
        elab_error(e, CODE_TYPE, x->span, "expected an initialiser such as normal(0, 0.02)");
    return -1;
}

static bool is_rule(const char *name)
{
    for (int i = 0; i < RULES; i++)
        if (!strcmp(rules[i].name, name))
            return true;
    return false;
}

/* A name or a call that is not a value: a variable, a const and a number are numbers. */
static bool is_number_expr(Elab *e, const Expr *x)
{
    if (x->kind == EXPR_CALL)
        return x->a->kind == EXPR_NAME && is_builtin(x->a->name) && !is_rule(x->a->name);
    if (x->kind != EXPR_NAME)
        return true;
    return find_binding(e, x->name) || find_decl(e->module, x->name) || !strcmp(x->name, "pi");
}

static bool constant_rule(Elab *e, const Expr *x, InitRule *out)
{
    *out = (InitRule){.kind = RULE_CONSTANT, .span = x->span};
    return want_real(e, eval(e, x), x->span, "an initial value", &out->a);
}

bool parse_init(Elab *e, const Expr *x, InitRule *out)
{
    bool ok = true;
    Site s;
    if (is_number_expr(e, x))
        return constant_rule(e, x, out);
    int i = find_rule(e, x);
    if (i < 0)
        return false;
    *out = (InitRule){.kind = rules[i].kind, .a = rules[i].a, .b = rules[i].b, .span = x->span};
    site_open(&s, rules[i].name, x->span, x->kind == EXPR_CALL ? x->a->span : x->span);
    site_slots(e, &s, rules[i].attrs);
    if (x->kind == EXPR_CALL && !site_bind(e, &s, &x->args, NULL, x->span))
        return false;
    if (s.slots > 0)
        out->a = site_real(e, &s, s.slot[0].name, out->a, &ok);
    if (s.slots > 1)
        out->b = site_real(e, &s, s.slot[1].name, out->b, &ok);
    if (rules[i].kind == RULE_CONSTANT)
        ok = site_need(e, &s, "value") && ok;
    if (ok && ((out->kind == RULE_UNIFORM && !(out->a < out->b)) ||
               (out->kind == RULE_NORMAL && !(out->b >= 0)))) {
        elab_error(e, CODE_VALUE, x->span,
                   out->kind == RULE_UNIFORM ? "'uniform' needs a lower end below the upper one"
                                             : "'std' of 'normal' must not be negative");
        return false;
    }
    return ok;
}

/* Fans as in PyTorch: a weight is [out, in, …]; in_out: [in, out]. */
Init init_of(Elab *e, const InitRule *rule, const Type *type, bool in_out)
{
    int64_t size[MAX_RANK] = {1, 1}, field = 1;
    for (int i = 0; i < type->rank; i++)
        dim_is_int(type->dim[i], &size[i]);
    for (int i = 2; i < type->rank; i++)
        field *= size[i];
    double fan_in = (double)(size[in_out || type->rank < 2 ? 0 : 1] * field);
    double fan_out = (double)(size[in_out ? 1 : 0] * field), bound;
    switch (rule->kind) {
    case RULE_ZEROS:
        return (Init){.kind = INIT_ZEROS};
    case RULE_ONES:
        return (Init){.kind = INIT_ONES};
    case RULE_CONSTANT:
        return (Init){.kind = INIT_CONSTANT, .a = rule->a};
    case RULE_UNIFORM:
        return (Init){.kind = INIT_UNIFORM, .a = rule->a, .b = rule->b};
    case RULE_NORMAL:
        return (Init){.kind = INIT_NORMAL, .a = rule->a, .b = rule->b};
    case RULE_HE:
        return (Init){.kind = INIT_NORMAL, .a = 0, .b = sqrt(2 / fan_in)};
    case RULE_XAVIER:
        bound = rule->a * sqrt(6 / (fan_in + fan_out));
        return (Init){.kind = INIT_UNIFORM, .a = -bound, .b = bound};
    case RULE_ORTHOGONAL:
    case RULE_EYE:
        if (type->rank != 2)
            elab_error(e, CODE_SHAPE, rule->span, "this initialiser is for matrices, found %s",
                       type_text(e->types, type, e->arena));
        return (Init){.kind = rule->kind == RULE_EYE ? INIT_EYE : INIT_ORTHOGONAL, .a = rule->a};
    }
    return (Init){.kind = INIT_ZEROS};
}
