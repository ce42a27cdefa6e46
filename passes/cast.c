/* Decides in which type every node computes and inserts the casts. `float` is gone afterwards.
 *
 *     O1, policy apex:   h = matmul(x: f32, w: f32)   becomes   h: f16 = matmul(cast(x, f16), cast(w, f16))
 *                        y = exp(h)                   becomes   y: f32 = exp(cast(h, f32))
 *     O0 O2 O3: values are cast where an instance is called and where it returns, weights have the level's type,
 *     and every op runs in the type that arrives.
 */
#include "ir/shape.h"
#include "passes/each.h"
#include <math.h>

/* What `float` means for a value made at this place. */
static DType float_type(const Properties *props, const Node *old)
{
    if (old->region == REGION_F32)
        return DT_F32;
    if (old->region == REGION_F16 || old->region == REGION_BF16)
        return old->region == REGION_F16 ? DT_F16 : DT_BF16;
    return old->in_instance && is_half(props->model_type) ? props->model_type : DT_F32;
}

static DType concrete(const Properties *props, const Node *old, DType dtype)
{
    return dtype == DT_FLOAT ? float_type(props, old) : dtype;
}

/* A literal, whose type is that of its peers. */
static int is_literal(const Node *n)
{
    return n->op == OP_CONST && n->type && n->type->dtype == DT_FLOAT;
}

/* First of the operands that hold numbers: WHERE chooses by its first. */
static int first_number(Op op)
{
    return op_is(op, F_CHOICE) ? 1 : 0;
}

/* The widest type of the real operands, literals aside; DT_NONE if there is none. */
static DType widest(const Node *old, Node **in)
{
    DType wide = DT_NONE;
    for (int i = first_number(old->op); i < old->nin; i++)
        if (is_real(in[i]->type->dtype) && !is_literal(old->in[i]))
            wide = wide == DT_NONE ? in[i]->type->dtype : dtype_promote(wide, in[i]->type->dtype);
    return wide;
}

/* The pinned type among the operands of a contraction; two different ones are an error. */
static DType pinned_type(Rewrite *w, const Node *old)
{
    DType pin = DT_NONE;
    for (int i = 0; i < old->nin; i++) {
        if (!old->in[i]->pinned)
            continue;
        DType dtype = old->in[i]->type->dtype;
        if (pin != DT_NONE && pin != dtype)
            error_at(w->program->diags, CODE_TYPE, old->span,
                     "'%s' of operands pinned to %s and %s; cast one", op_info(old->op)->spelling,
                     dtype_info[pin].name, dtype_info[dtype].name);
        pin = dtype;
    }
    return pin;
}

/* A row on the half list: half, unless an operand is pinned to f32. */
static DType contraction_type(Rewrite *w, const Node *old)
{
    DType pin = pinned_type(w, old);
    if (pin == DT_F32)
        remark_at(w->program->diags, old->span, "'%s' runs in f32: an operand is pinned to f32",
                  op_info(old->op)->spelling);
    return pin == DT_NONE ? w->program->props.half : pin;
}

/* A banned row takes no half operand at all, as in Apex. */
static void check_banned(Rewrite *w, const Node *old, Node **in)
{
    int in_half = old->region == REGION_F16 || old->region == REGION_BF16;
    int in_f32 = old->region == REGION_F32;
    for (int i = 0; i < old->nin && !in_f32; i++) {
        if (!in_half && !is_half(in[i]->type->dtype))
            continue;
        error_at(
            w->program->diags, CODE_TYPE, old->span,
            "'%s' of %s values overflows: log(0) is reached too early; use bce_with_logits on "
            "the values before the sigmoid, or cast to f32",
            old->op == OP_BCE ? "bce" : op_info(old->op)->spelling,
            dtype_info[in_half ? float_type(&w->program->props, old) : in[i]->type->dtype].name);
        return;
    }
}

/* The type that the node computes in; DT_NONE: the operands stay as they are. */
static DType compute_type(Rewrite *w, const Node *old, Node **in)
{
    const Properties *props = &w->program->props;
    const OpInfo *info = op_info(old->op);
    DType wide = widest(old, in);
    Policy policy = props->torch_policy ? info->torch : info->apex;
    if (policy == POLICY_BANNED)
        check_banned(w, old, in);
    if (old->region != REGION_NONE && old->region != REGION_OFF)
        return float_type(props, old);
    if (props->cast_by_policy && old->region == REGION_NONE) {
        if (policy == POLICY_HALF)
            return contraction_type(w, old);
        if (policy == POLICY_FLOAT)
            return DT_F32;
    } else if (policy == POLICY_HALF) {
        pinned_type(w, old);
    }
    return wide == DT_NONE ? float_type(props, old) : wide;
}

/* A literal in a half type: -1e9 becomes -inf in f16, 1e-8 becomes 0. */
static void check_literal(Rewrite *w, const Node *literal, DType want)
{
    double value = literal->attrs->at[0].r, half = dtype_round(want, value);
    if (isfinite(value) && (isinf(half) || (value != 0 && half == 0)))
        warn_at(w->program->diags, CODE_HALF_CONST, literal->span, "%g is %s in %s", value,
                half > 0   ? "inf"
                : half < 0 ? "-inf"
                           : "0",
                dtype_info[want].name);
}

/* Brings operand x to the type; literals are rebuilt, not cast. */
static Node *to_type(Rewrite *w, const Node *old_operand, Node *x, DType want, const char *why)
{
    if (!is_real(x->type->dtype))
        return x;
    if (!is_literal(old_operand))
        return cast_because(x, want, why);
    check_literal(w, old_operand, want);
    return constant(old_operand->attrs->at[0].r, want);
}

static const char *reason(const Properties *props, const Node *old)
{
    if (old->region != REGION_NONE)
        return "region";
    Policy policy = props->torch_policy ? op_info(old->op)->torch : op_info(old->op)->apex;
    int listed = policy == POLICY_HALF || policy == POLICY_FLOAT;
    return props->cast_by_policy && listed ? "policy" : "promote";
}

static Node *cast_source(Rewrite *w, Node *old)
{
    const Properties *props = &w->program->props;
    DType dtype = old->type->dtype;
    if (old->op == OP_READ)
        dtype = param_read_type(props, old->param);
    else if (old->op == OP_INPUT || old->op == OP_OPTION)
        dtype = dtype == DT_FLOAT ? DT_F32 : dtype;
    else if (is_literal(old))
        return constant(old->attrs->at[0].r, float_type(props, old));
    Node *n = build_source(old->op, type_with(types_now(), old->type, dtype), old->attrs,
                           old->param, old->version);
    n->pinned = old->pinned;
    return n;
}

/* Losses, reports and results leave the graph as f32; a result keeps a type that the user fixed. */
static Node *cast_effect(Rewrite *w, Node *old, Node **in)
{
    if (!old->nin || !is_real(in[0]->type->dtype))
        return copy_node(old, in);
    DType declared = old->in[0]->type->dtype, want = DT_F32;
    if (old->op == OP_STORE)
        want = param_read_type(&w->program->props, old->param);
    else if (old->op == OP_RESULT && declared != DT_FLOAT)
        want = declared;
    in[0] = to_type(w, old->in[0], in[0], want, old->op == OP_STORE ? "store" : "boundary");
    return copy_node(old, in);
}

static Node *insert_casts(Rewrite *w, Node *old, Node **in)
{
    const Properties *props = &w->program->props;
    if (op_is(old->op, F_EFFECT))
        return cast_effect(w, old, in);
    if (!old->nin)
        return cast_source(w, old);
    switch (old->op) {
    case OP_CAST: {
        DType to = concrete(props, old, old->attrs->at[0].dtype);
        Node *n = old->attrs->at[1].kind == ATTR_STR ? cast_because(in[0], to, old->attrs->at[1].s)
                                                     : cast_to(in[0], to);
        n->pinned |= old->pinned;
        return n;
    }
    case OP_ENTER:
        if (props->model_type == DT_NONE || !is_real(in[0]->type->dtype) || old->in[0]->pinned)
            return in[0];
        return to_type(w, old->in[0], in[0], props->model_type, "boundary");
    case OP_LEAVE:
        if (props->model_type == DT_NONE || !is_real(in[0]->type->dtype))
            return in[0];
        return to_type(w, old->in[0], in[0], DT_F32, "boundary");
    default:
        break;
    }
    DType want = compute_type(w, old, in);
    for (int i = first_number(old->op); i < old->nin; i++)
        in[i] = to_type(w, old->in[i], in[i], want, reason(props, old));
    if (!op_is(old->op, F_EARLY) && !old->pinned)
        return NULL;
    Node *n = op_is(old->op, F_EARLY) ? expand_composite(old, in) : copy_node(old, in);
    if (old->pinned && n->type && n->type->dtype != old->type->dtype)
        n = cast_because(n, old->type->dtype, "pinned");
    n->pinned |= old->pinned;
    return n;
}

/* What `float` in a signature means outside of instances. */
static void fix_inputs(Program *p)
{
    for (int i = 0; i < p->entries.n; i++) {
        Entry *e = p->entries.at[i];
        for (int k = 0; k < e->inputs.n; k++)
            if (e->inputs.at[k].type->dtype == DT_FLOAT)
                e->inputs.at[k].type = type_with(&p->types, e->inputs.at[k].type, DT_F32);
    }
}

void pass_cast(Unit *u)
{
    rewrite_program(u->program, insert_casts, NULL);
    fix_inputs(u->program);
}
