/* Functions of builtin.def other than losses: reductions, views, generators. Each gets its bound
 * arguments and gives the value; the span of new nodes is the call's. */
#include "frontend/elab_core.h"
#include <string.h>

#define BUILTIN(name, least, most, attrs, build, op) Value builtin_##build(Elab *e, Site *s, int o);
#include "frontend/builtin.def"
#undef BUILTIN

/* --- axes and shapes --- */

static bool axis_of(Elab *e, Value v, Span span, const char *what, int rank, int *axis)
{
    int64_t i;
    if (!want_int(e, v, span, what, &i))
        return false;
    if (i < -rank || i >= rank) {
        elab_error(e, CODE_SHAPE, span, "axis %lld is outside a tensor of %d dimension%s",
                   (long long)i, rank, rank == 1 ? "" : "s");
        return false;
    }
    *axis = (int)(i < 0 ? i + rank : i);
    return true;
}

/* The attribute as an axis; absent: the default that *axis holds, counted like it. */
static bool site_axis(Elab *e, Site *s, Slot *slot, int rank, int *axis)
{
    Value v = slot->given ? slot_value(e, slot) : value_int(*axis);
    return axis_of(e, v, slot->given ? slot->span : s->span, slot_what(e, s, slot), rank, axis);
}

static bool axes_list(Elab *e, Site *s, Slot *slot, int rank, int64_t *axes, int *n)
{
    Value v = slot_value(e, slot);
    int axis;
    *n = 0;
    if (v.kind != VAL_LIST) {
        if (!axis_of(e, v, slot->span, slot_what(e, s, slot), rank, &axis))
            return false;
        axes[(*n)++] = axis;
        return true;
    }
    for (int i = 0; i < v.n; i++) {
        if (!axis_of(e, v.at[i], slot->span, slot_what(e, s, slot), rank, &axis))
            return false;
        for (int k = 0; k < *n; k++)
            if (axes[k] == axis) {
                elab_error(e, CODE_SHAPE, slot->span, "axis %d is named twice", axis);
                return false;
            }
        axes[(*n)++] = axis;
    }
    return true;
}

/* axes = […] or axis = …; neither: all of them. Sorted. */
static bool reduced_axes(Elab *e, Site *s, int rank, int64_t *axes, int *n)
{
    Slot *many = site_find(s, "axes"), *one = site_find(s, "axis");
    if (many->given && one->given) {
        elab_error(e, CODE_ATTRIBUTE, one->span, "'axes' and 'axis' of '%s' are both given",
                   s->what);
        return false;
    }
    if (!many->given && !one->given) {
        for (int i = 0; i < rank; i++)
            axes[i] = i;
        *n = rank;
        return true;
    }
    if (!axes_list(e, s, many->given ? many : one, rank, axes, n))
        return false;
    for (int i = 1; i < *n; i++)
        for (int k = i; k > 0 && axes[k - 1] > axes[k]; k--) {
            int64_t swap = axes[k];
            axes[k] = axes[k - 1];
            axes[k - 1] = swap;
        }
    return true;
}

/* A list of sizes. At most one may be -1 when `total` is given: what is left of it. */
static bool shape_of(Elab *e, Site *s, const Dim *total, const Dim **dim, int *rank)
{
    Slot *slot = site_find(s, "shape");
    if (!site_need(e, s, "shape"))
        return false;
    Value v = slot_value(e, slot);
    Value single = v;
    int open = -1;
    const Dim *product = dim_int(e->types, 1);
    *rank = 0;
    if (is_error(v))
        return false;
    int n = v.kind == VAL_LIST ? v.n : 1;
    Value *at = v.kind == VAL_LIST ? v.at : &single;
    for (int i = 0; i < n; i++) {
        int spread = at[i].kind == VAL_DIMS ? at[i].n : 1;
        for (int k = 0; k < spread; k++) {
            int64_t size;
            const Dim *d = at[i].kind == VAL_DIMS
                               ? at[i].dims[k]
                               : as_dim(e, at[i], slot->span, slot_what(e, s, slot));
            if (!d)
                return false;
            if (*rank == MAX_RANK) {
                elab_error(e, CODE_LIMIT, slot->span, "a tensor has at most %d dimensions",
                           MAX_RANK);
                return false;
            }
            if (dim_is_int(d, &size) && size < 1) {
                if (size != -1 || !total || open >= 0) {
                    elab_error(e, CODE_VALUE, slot->span,
                               "a dimension must be at least 1, found %lld", (long long)size);
                    return false;
                }
                open = *rank;
            } else if (dim_least(e, d) < 1) {
                elab_error(e, CODE_VALUE, slot->span, "the dimension %s may be less than 1",
                           dim_text(e->types, d, e->arena));
                return false;
            } else {
                product = product ? dim_mul(e->types, product, d) : NULL;
            }
            dim[(*rank)++] = d;
        }
    }
    if (open >= 0) {
        dim[open] = product ? dim_div(e->types, total, product) : NULL;
        if (!dim[open]) {
            elab_error(e, CODE_SHAPE, slot->span, "%s elements cannot be divided into this shape",
                       dim_text(e->types, total, e->arena));
            return false;
        }
    }
    return true;
}

static const Dim *one(Elab *e)
{
    return dim_int(e->types, 1);
}

/* --- reductions --- */

static Attr correction(Elab *e, Site *s, bool *ok)
{
    return attr_int(site_int(e, s, "correction", 1, ok));
}

Value builtin_reduction(Elab *e, Site *s, int op)
{
    int64_t axes[MAX_RANK];
    int n;
    bool ok = true;
    Node *x = site_tensor(e, s, 0, DT_NONE);
    if (!x->type || !reduced_axes(e, s, x->type->rank, axes, &n))
        return value_error();
    bool keep = site_bool(e, s, "keep", false, &ok);
    if (op == OP_MEAN || op == OP_VAR || x->type->dtype == DT_BOOL)
        x = to_real(x);
    Attr attrs[] = {attr_ints(axes, n), attr_bool(keep), attr_none()};
    if (op == OP_VAR)
        attrs[2] = correction(e, s, &ok);
    if (!ok)
        return value_error();
    set_span(e, s->span);
    return value_node(build((Op)op, &x, 1, attrs_make((Op)op, attrs, op_info((Op)op)->attrs)));
}

/* max and min: of two tensors element by element, of one over axes. */
Value builtin_extreme(Elab *e, Site *s, int op)
{
    if (!s->slot[1].given)
        return builtin_reduction(e, s, op);
    Node *a = site_tensor(e, s, 0, DT_NONE);
    Node *b = site_tensor(e, s, 1, a->type ? a->type->dtype : DT_NONE);
    if (a->type && b->type && slot_value(e, &s->slot[0]).kind != VAL_TENSOR)
        a = site_tensor(e, s, 0, b->type->dtype);
    unify(&a, &b);
    return value_node(build2(op == OP_MAXRED ? OP_MAX : OP_MIN, a, b));
}

Value builtin_argmax(Elab *e, Site *s, int op)
{
    int axis = -1;
    Node *x = site_tensor(e, s, 0, DT_NONE);
    if (!x->type || !site_axis(e, s, site_find(s, "axis"), x->type->rank, &axis))
        return value_error();
    Attr attr = attr_int(axis);
    return value_node(build((Op)op, &x, 1, attrs_make((Op)op, &attr, 1)));
}

Value builtin_rows(Elab *e, Site *s, int op)
{
    int axis = -1;
    Node *x = to_real(site_tensor(e, s, 0, DT_NONE));
    if (!x->type || !site_axis(e, s, site_find(s, "axis"), x->type->rank, &axis))
        return value_error();
    return value_node(softmax((Op)op, x, axis));
}

Value builtin_product(Elab *e, Site *s, int op)
{
    (void)op;
    Node *a = to_real(site_tensor(e, s, 0, DT_NONE)), *b = to_real(site_tensor(e, s, 1, DT_NONE));
    return value_node(matmul(a, b, 0, 0));
}

/* --- views --- */

Value builtin_exchange(Elab *e, Site *s, int op)
{
    int64_t axes[MAX_RANK];
    Node *x = site_tensor(e, s, 0, DT_NONE);
    if (!x->type)
        return value_error();
    int rank = x->type->rank, n = rank;
    Slot *slot = site_find(s, "axes");
    (void)op;
    if (slot->given) {
        if (!axes_list(e, s, slot, rank, axes, &n))
            return value_error();
        if (n != rank) {
            elab_error(e, CODE_SHAPE, slot->span, "%d axes for a tensor %s", n, tensor_text(e, x));
            return value_error();
        }
    } else if (!strcmp(s->what, "permute")) {
        site_need(e, s, "axes");
        return value_error();
    } else if (rank < 2) {
        elab_error(e, CODE_SHAPE, s->span, "'%s' needs at least 2 dimensions, found %s", s->what,
                   tensor_text(e, x));
        return value_error();
    } else {
        for (int i = 0; i < rank; i++)
            axes[i] = i;
        axes[rank - 1] = rank - 2;
        axes[rank - 2] = rank - 1;
    }
    set_span(e, s->span);
    return value_node(permute(x, axes, n));
}

Value builtin_shaped(Elab *e, Site *s, int op)
{
    const Dim *dim[MAX_RANK];
    int rank;
    Node *x = site_tensor(e, s, 0, DT_NONE);
    if (!x->type)
        return value_error();
    const Dim *total = type_count(e->types, x->type);
    if (!shape_of(e, s, op == OP_RESHAPE ? total : NULL, dim, &rank))
        return value_error();
    set_span(e, s->span);
    return value_node(op == OP_RESHAPE ? reshape(x, dim, rank) : expand_to(x, dim, rank));
}

Value builtin_flat(Elab *e, Site *s, int op)
{
    const Dim *dim[MAX_RANK];
    int start = 1;
    (void)op;
    Node *x = site_tensor(e, s, 0, DT_NONE);
    if (!x->type || !site_axis(e, s, site_find(s, "start"), x->type->rank, &start))
        return value_error();
    const Dim *rest = one(e);
    for (int i = 0; i < x->type->rank; i++) {
        if (i < start)
            dim[i] = x->type->dim[i];
        else
            rest = dim_mul(e->types, rest, x->type->dim[i]);
    }
    dim[start] = rest;
    set_span(e, s->span);
    return value_node(reshape(x, dim, start + 1));
}

Value builtin_squeezed(Elab *e, Site *s, int op)
{
    const Dim *dim[MAX_RANK];
    int axis = -1, rank = 0;
    (void)op;
    Node *x = site_tensor(e, s, 0, DT_NONE);
    Slot *slot = site_find(s, "axis");
    if (!x->type || (slot->given && !site_axis(e, s, slot, x->type->rank, &axis)))
        return value_error();
    if (slot->given && x->type->dim[axis] != one(e)) {
        elab_error(e, CODE_SHAPE, s->span, "dimension %d of %s is not 1", axis, tensor_text(e, x));
        return value_error();
    }
    for (int i = 0; i < x->type->rank; i++)
        if (slot->given ? i != axis : x->type->dim[i] != one(e))
            dim[rank++] = x->type->dim[i];
    set_span(e, s->span);
    return value_node(reshape(x, dim, rank));
}

Value builtin_unsqueezed(Elab *e, Site *s, int op)
{
    const Dim *dim[MAX_RANK + 1];
    int axis;
    (void)op;
    Node *x = site_tensor(e, s, 0, DT_NONE);
    if (!x->type || !site_need(e, s, "axis") ||
        !site_axis(e, s, site_find(s, "axis"), x->type->rank + 1, &axis))
        return value_error();
    if (x->type->rank == MAX_RANK) {
        elab_error(e, CODE_LIMIT, s->span, "a tensor has at most %d dimensions", MAX_RANK);
        return value_error();
    }
    for (int i = 0; i <= x->type->rank; i++)
        dim[i] = i == axis ? one(e) : x->type->dim[i < axis ? i : i - 1];
    set_span(e, s->span);
    return value_node(reshape(x, dim, x->type->rank + 1));
}

/* split: pieces of a size; chunk: a number of equal parts. */
Value builtin_pieces(Elab *e, Site *s, int is_chunk)
{
    int axis = 0;
    int64_t total, k = 0;
    bool ok = true;
    const char *name = is_chunk ? "count" : "size";
    Node *x = site_tensor(e, s, 0, DT_NONE);
    if (!x->type || !site_need(e, s, name) ||
        !site_axis(e, s, site_find(s, "axis"), x->type->rank, &axis))
        return value_error();
    k = site_int(e, s, name, 0, &ok);
    if (!ok)
        return value_error();
    if (!dim_is_int(x->type->dim[axis], &total) || k < 1 || (is_chunk && total % k)) {
        elab_error(e, CODE_SHAPE, s->span, "dimension %s cannot be %s %lld",
                   dim_text(e->types, x->type->dim[axis], e->arena),
                   is_chunk ? "divided into equal parts:" : "split into pieces of", (long long)k);
        return value_error();
    }
    int64_t size = is_chunk ? total / k : k;
    Value v = {.kind = VAL_TUPLE, .n = (int)((total + size - 1) / size)};
    v.at = new_array(e->arena, Value, v.n + 1);
    set_span(e, s->span);
    for (int i = 0; i < v.n; i++) {
        int64_t end = (i + 1) * size < total ? (i + 1) * size : total;
        v.at[i] = value_node(slice(x, axis, dim_int(e->types, i * size), dim_int(e->types, end)));
    }
    return v;
}

Value builtin_joined(Elab *e, Site *s, int op)
{
    int axis = 0;
    Slot *slot = site_find(s, "tensors");
    if (!site_need(e, s, "tensors"))
        return value_error();
    Value v = slot_value(e, slot);
    if ((v.kind != VAL_LIST && v.kind != VAL_TUPLE) || !v.n) {
        if (!is_error(v))
            elab_error(e, CODE_TYPE, slot->span, "'concat' takes a list of tensors, found %s",
                       value_text(e, &v));
        return value_error();
    }
    Node **in = new_array(e->arena, Node *, v.n);
    for (int i = 0; i < v.n; i++) {
        in[i] = as_tensor(e, v.at[i], slot->span, DT_NONE);
        if (!in[i]->type)
            return value_error();
    }
    if (!site_axis(e, s, site_find(s, "axis"), in[0]->type->rank, &axis))
        return value_error();
    for (int i = 1; i < v.n; i++)
        unify(&in[0], &in[i]);
    Attr attr = attr_int(axis);
    set_span(e, s->span);
    return value_node(build((Op)op, in, v.n, attrs_make((Op)op, &attr, 1)));
}

Value builtin_gathered(Elab *e, Site *s, int op)
{
    int axis = 0;
    Node *in[] = {site_tensor(e, s, 0, DT_NONE), site_tensor(e, s, 1, DT_I32)};
    if (!in[0]->type || !in[1]->type ||
        !site_axis(e, s, site_find(s, "axis"), in[0]->type->rank, &axis))
        return value_error();
    if (axis)
        return unsupported(e, s->span, "gather along an axis other than 0");
    limit_classes(e, in[1], in[0]->type->dim[0]);
    return value_node(build((Op)op, in, 2, NULL));
}

/* Where an index equals the position along a new last axis: bool[…, classes]. */
Node *one_hot_mask(Elab *e, Node *index, const Dim *classes)
{
    const Dim *dim[MAX_RANK + 1];
    int rank = index->type->rank;
    for (int i = 0; i < rank; i++)
        dim[i] = index->type->dim[i];
    dim[rank] = one(e);
    Node *position = iota(&classes, 1, 0);
    if (index->type->dtype != DT_I32)
        position = cast_to(position, index->type->dtype);
    return build2(OP_EQ, position, reshape(index, dim, rank + 1));
}

Value builtin_hot(Elab *e, Site *s, int op)
{
    (void)op;
    Node *x = site_tensor(e, s, 0, DT_I32);
    if (!x->type || !site_need(e, s, "classes"))
        return value_error();
    Slot *slot = site_find(s, "classes");
    const Dim *classes = as_dim(e, slot_value(e, slot), slot->span, slot_what(e, s, slot));
    if (!classes)
        return value_error();
    if (dtype_info[x->type->dtype].kind != KIND_INT) {
        elab_error(e, CODE_TYPE, s->span, "'one_hot' takes integers, found %s", tensor_text(e, x));
        return value_error();
    }
    limit_classes(e, x, classes);
    return value_node(cast_to(one_hot_mask(e, x, classes), DT_FLOAT));
}

/* --- generators --- */

Value builtin_counted(Elab *e, Site *s, int op)
{
    Slot *begin = site_find(s, "begin"), *end = site_find(s, "end");
    (void)op;
    if (!site_need(e, s, "begin"))
        return value_error();
    const Dim *a = as_dim(e, slot_value(e, begin), begin->span, slot_what(e, s, begin)), *b = NULL;
    if (end->given)
        b = as_dim(e, slot_value(e, end), end->span, slot_what(e, s, end));
    if (!a || (end->given && !b))
        return value_error();
    const Dim *size = b ? dim_sub(e->types, b, a) : a;
    int64_t count;
    if (dim_least(e, size) < 1) {
        elab_error(e, CODE_VALUE, s->span, "this range %s empty",
                   size && dim_is_int(size, &count) ? "is" : "may be");
        return value_error();
    }
    set_span(e, s->span);
    Node *r = iota(&size, 1, 0);
    if (b)
        r = build2(OP_ADD, r, as_tensor(e, value_dim(a), begin->span, DT_I32));
    return value_node(r);
}

static Node *filled_with(Node *value, const Dim *const *dim, int rank)
{
    return rank ? expand_to(value, dim, rank) : value;
}

Value builtin_filled(Elab *e, Site *s, int what)
{
    const Dim *dim[MAX_RANK];
    int rank;
    Node *value = constant(what == 1, DT_FLOAT);
    if (!site_find(s, "shape")->given) {
        elab_error(e, CODE_ATTRIBUTE, s->span, "'%s' needs a shape: %s([…])", s->what, s->what);
        return value_error();
    }
    if (!shape_of(e, s, NULL, dim, &rank))
        return value_error();
    if (what == 2) {
        Slot *slot = site_find(s, "value");
        if (!site_need(e, s, "value"))
            return value_error();
        value = as_tensor(e, slot_value(e, slot), slot->span, DT_FLOAT);
    }
    set_span(e, s->span);
    return value_node(filled_with(value, dim, rank));
}

Value builtin_alike(Elab *e, Site *s, int what)
{
    Node *x = site_tensor(e, s, 0, DT_NONE);
    if (!x->type)
        return value_error();
    return value_node(filled_with(constant(what, x->type->dtype), x->type->dim, x->type->rank));
}

/* The name of a draw, which with seed and step decides its numbers: "net.h.3.attn.dropout#0". */
static Attr stream_of(Elab *e, const char *what)
{
    const char *path = NULL;
    for (const Frame *f = e->frame; f && !path; f = f->caller)
        if (f->layer)
            path = f->layer->path;
    Str base = intern_printf(e->names, "%s.%s", path ? path : e->run->entry->name, what);
    DrawState *found = NULL;
    for (int i = 0; i < e->run->draws.n; i++)
        if (e->run->draws.at[i].base == base)
            found = &e->run->draws.at[i];
    if (!found) {
        DrawState fresh = {.base = base};
        vec_push(e->arena, &e->run->draws, fresh);
        found = &e->run->draws.at[e->run->draws.n - 1];
    }
    return attr_str(intern_printf(e->names, "%s#%d", base, found->count++));
}

static Node *draw(Elab *e, Op op, const char *what, const Dim *const *dim, int rank)
{
    Attr attrs[] = {attr_dims(dim, rank), stream_of(e, what)};
    return build(op, NULL, 0, attrs_make(op, attrs, 2));
}

Value builtin_drawn(Elab *e, Site *s, int op)
{
    const Dim *dim[MAX_RANK];
    int rank;
    if (!shape_of(e, s, NULL, dim, &rank))
        return value_error();
    set_span(e, s->span);
    return value_node(draw(e, (Op)op, s->what, dim, rank));
}

/* In training: zero with probability p, the rest divided by 1 - p. Elsewhere: nothing happens. */
Value builtin_dropped(Elab *e, Site *s, int op)
{
    Slot *slot = site_find(s, "p");
    Node *x = to_real(site_tensor(e, s, 0, DT_NONE));
    Value p = slot->given ? slot_value(e, slot) : value_real(0.5);
    if (!x->type || is_error(p))
        return value_error();
    if (p.kind == VAL_INT || p.kind == VAL_REAL) {
        double rate = p.kind == VAL_INT ? (double)p.i : p.r;
        if (!(rate >= 0 && rate < 1)) {
            elab_error(e, CODE_VALUE, slot->span,
                       "'p' of 'dropout' must be at least 0 and below 1");
            return value_error();
        }
        if (rate == 0)
            return value_node(x);
    }
    if (e->run->entry->kind != ENTRY_TRAIN)
        return value_node(x);
    Node *u = draw(e, (Op)op, "dropout", x->type->dim, x->type->rank);
    Node *rate = as_tensor(e, p, slot->given ? slot->span : s->span, u->type->dtype);
    if (!rate->type)
        return value_error();
    set_span(e, s->span);
    Node *scale = p.kind == VAL_REAL ? like(1 / (1 - p.r), x)
                                     : build2(OP_DIV, like(1, x), build2(OP_SUB, like(1, x), rate));
    Node *kept = build2(OP_GE, u, rate);
    return value_node(build3(OP_WHERE, kept, build2(OP_MUL, x, scale), like(0, x)));
}

Value builtin_detached(Elab *e, Site *s, int op)
{
    Node *x = site_tensor(e, s, 0, DT_NONE);
    return value_node(build1((Op)op, x));
}

Value builtin_gelu(Elab *e, Site *s, int op)
{
    bool ok = true;
    Node *x = to_real(site_tensor(e, s, 0, DT_NONE));
    Str approx = site_string(e, s, "approx", "none", &ok);
    if (!ok || !x->type)
        return value_error();
    if (strcmp(approx, "none") && strcmp(approx, "tanh")) {
        elab_error(e, CODE_VALUE, site_find(s, "approx")->span,
                   "'approx' of 'gelu' is \"none\" or \"tanh\"");
        return value_error();
    }
    set_span(e, s->span);
    return value_node(build1(approx[0] == 't' ? OP_GELU_TANH : (Op)op, x));
}
