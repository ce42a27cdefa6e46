/* Lowers a group to a kernel. What the group writes asks for values, each value for its operands,
 * until memory, a constant or the anchor's result is reached; so only what is needed is computed. A
 * value is made where it belongs: outside of all loops, once a row, or in a sweep.
 *
 * Sweeps. A reduction over a row is finished by its sweep; what uses it belongs to the point behind
 * or to the next sweep. A value of an earlier sweep is worked out again there if it is cheap; if
 * not (exp, tanh, a random number) the first sweep keeps it in a row-long array, provided the row
 * has at most KEPT_MAX elements.
 *
 * Rounding. In strict mode every half value is rounded as soon as it is computed, except where that
 * changes nothing; in fused mode only where a cast that the user wrote says so. Stores round in
 * both.
 */
#include "passes/fuse.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct Memo {
    Index at;
    int context; /* the sweep or point it is for; -1: any */
    Let *value;
    struct Memo *next;
} Memo;

typedef struct Lower {
    Fuse *f;
    Group *g;
    Kernel *k;
    IndexMaker m;
    Arena *arena; /* what the kernel is made of */
    Vec(Phase) phases;
    Vec(Buffer *) buffers;
    Vec(Str) streams;
    Vec(Span) spans;
    int exprs, written;
    int guarded; /* inside the operand of a guard: nothing is shared */
} Lower;

static Let *value_of(Lower *w, Node *n, const Index *at, int context);

/* ---- expressions ---- */

static Phase *phase_at(Lower *w, int index)
{
    while (w->phases.n <= index)
        vec_push(w->arena, &w->phases, (Phase){.first = NULL});
    return &w->phases.at[index];
}

static int affine_depends(Lower *w, const Affine *a)
{
    int parts = 0;
    for (int l = 0; l < w->g->loops; l++)
        if (a->stride[l]->count)
            parts |= 1 << w->g->part[l];
    return parts;
}

/* Is a value that depends on these parts made in the sweep (or, behind it, in the columns'
 * point)? */
static int is_inner(const Lower *w, int depends)
{
    int per_row = w->k->kind == KERNEL_ROWS || w->k->kind == KERNEL_EPILOGUE;
    return per_row ? depends >> 1 & 1 : depends != 0;
}

/* Appends e, whose operands are set, where it belongs. */
static Let *place_expr(Lower *w, Let *e, int context)
{
    int phase = 0;
    for (int i = 0; i < e->nin; i++) {
        e->depends |= e->in[i]->depends;
        if (e->kind != X_KEPT && e->in[i]->phase > phase)
            phase = e->in[i]->phase;
    }
    if (is_inner(w, e->depends))
        phase = context;
    else if (e->depends && phase == 0)
        phase = 1;
    if (e->kind == X_REDUCED)
        phase = context;
    e->phase = phase;
    e->id = w->exprs++;
    e->guarded = w->guarded;
    Phase *p = phase_at(w, phase);
    if (p->last)
        p->last->next = e;
    else
        p->first = e;
    p->last = e;
    return e;
}

static Let *make_expr(Lower *w, LetKind kind, DType dtype, int nin)
{
    Let *e = new (w->arena, Let);
    e->kind = kind;
    e->dtype = dtype;
    e->round = DT_NONE;
    e->nin = nin;
    e->in = new_array(w->arena, Let *, nin + 1);
    return e;
}

static void set_index(Lower *w, Let *e, const Affine *at)
{
    e->at = *at;
    e->depends |= affine_depends(w, at);
}

/* ---- rounding ---- */

/* Do these ops give one of their operands (or zero, or its negative)? Then a half stays a half. */
static int selects(const Node *n)
{
    switch (n->op) {
    case OP_NEG:
    case OP_ABS:
    case OP_SIGN:
    case OP_RELU:
    case OP_MIN:
    case OP_MAX:
    case OP_WHERE:
    case OP_MAXRED:
    case OP_MINRED:
    case OP_PAD:
    case OP_CONCAT:
    case OP_GATHER:
        for (int i = n->op == OP_WHERE; i < n->nin - (n->op == OP_GATHER); i++)
            if (n->in[i]->type->dtype != n->type->dtype)
                return 0;
        return 1;
    default:
        return 0;
    }
}

static int is_written_cast(const Node *n)
{
    return n->op == OP_CAST && n->attrs->at[1].kind == ATTR_NONE;
}

static DType rounding_of(const Lower *w, const Node *n)
{
    if (!is_half(n->type->dtype) || selects(n))
        return DT_NONE;
    return w->f->program->props.strict || is_written_cast(n) ? n->type->dtype : DT_NONE;
}

/* ---- memory ---- */

static int param_of(Lower *w, Buffer *b, int written)
{
    for (int i = 0; i < w->buffers.n; i++)
        if (w->buffers.at[i] == b)
            return i;
    vec_push(w->arena, &w->buffers, b);
    w->written += written;
    return w->buffers.n - 1;
}

static Let *load(Lower *w, Node *n, const Index *at, int context)
{
    Let *e = make_expr(w, X_LOAD, n->type->dtype, 0);
    Affine number = index_number(&w->m, n->type, at);
    e->param = param_of(w, source_buffer(w->f, n), 0);
    e->name = n->name;
    set_index(w, e, &number);
    return place_expr(w, e, context);
}

/* Indices that are inputs with a known range are checked before the step; others when they are
 * used. */
static int is_checked(const Lower *w, const Node *index)
{
    while (is_view(index))
        index = index->in[0];
    if (index->op != OP_INPUT)
        return 0;
    for (int i = 0; i < w->f->entry->inputs.n; i++)
        if (w->f->entry->inputs.at[i].name == index->attrs->at[0].s)
            return w->f->entry->inputs.at[i].classes > 0;
    return 0;
}

/* Row b[i] of a: the row is one more loop, whose stride is what the indirect row is multiplied
 * by. */
static Let *gather(Lower *w, Node *n, const Index *at, int context)
{
    Node *a = n->in[0];
    int loops = w->m.loops;
    IndexMaker m = w->m;
    Index row = {.linear = 0};
    m.loops = loops + 1;
    row.at[0] = affine_loop(&m, loops);
    for (int i = 1; i < a->type->rank; i++) {
        const Affine *from = &at->at[n->in[1]->type->rank + i - 1];
        row.at[i] = affine_int(&m, 0);
        row.at[i].offset = from->offset;
        memcpy(row.at[i].stride, from->stride, sizeof *from->stride * (size_t)loops);
    }
    while (!is_loaded(w->g, a) && is_view(a)) {
        index_through(&m, a, &row, &row);
        a = a->in[0];
    }
    Let *index = value_of(w, n->in[1], at, context);
    Let *e = make_expr(w, X_LOAD, n->type->dtype, 1);
    Affine number = index_number(&m, a->type, &row);
    e->in[0] = index;
    e->param = param_of(w, source_buffer(w->f, a), 0);
    e->scale = number.stride[loops];
    if (!is_checked(w, n->in[1]))
        e->high = n->in[0]->type->dim[0];
    e->name = n->name;
    set_index(w, e, &number);
    return place_expr(w, e, context);
}

/* ---- sources and pieces ---- */

static Let *constant_value(Lower *w, double value, DType dtype)
{
    Let *e = make_expr(w, X_CONST, dtype, 0);
    e->value = value;
    return place_expr(w, e, 0);
}

static Let *random_number(Lower *w, Node *n, const Index *at, int context)
{
    Let *e = make_expr(w, n->op == OP_RAND ? X_UNIFORM : X_NORMAL, DT_F32, 0);
    Affine number = index_number(&w->m, n->type, at);
    Str name = n->attrs->at[1].s;
    while (e->stream < w->streams.n && w->streams.at[e->stream] != name)
        e->stream++;
    if (e->stream == w->streams.n)
        vec_push(w->arena, &w->streams, name);
    e->name = n->name;
    set_index(w, e, &number);
    return place_expr(w, e, context);
}

/* low <= at < high ? inside : outside, whose operands were made for this guard alone. */
static Let *guard(Lower *w, Node *n, const Affine *at, const Dim *low, const Dim *high, Let *inside,
                  Let *outside, int context)
{
    Let *e = make_expr(w, X_GUARD, n->type->dtype, 2);
    e->in[0] = inside;
    e->in[1] = outside;
    e->low = low;
    e->high = high;
    e->name = n->name;
    set_index(w, e, at);
    return place_expr(w, e, context);
}

/* The part of a PAD or CONCAT that begins at `begin` of the axis. */
static Let *piece(Lower *w, Node *part, const Index *at, int axis, const Dim *begin, int context)
{
    TypeTable *t = &w->f->program->types;
    Index inside = *at;
    inside.at[axis] = affine_shift(&w->m, &at->at[axis], dim_sub(t, dim_int(t, 0), begin));
    w->guarded++;
    Let *e = value_of(w, part, &inside, context);
    w->guarded--;
    return e;
}

static Let *pad(Lower *w, Node *n, const Index *at, int context)
{
    TypeTable *t = &w->f->program->types;
    int axis = (int)n->attrs->at[0].i;
    const Dim *begin = n->attrs->at[1].dims.at[0];
    Let *inside = piece(w, n->in[0], at, axis, begin, context);
    w->guarded++;
    Let *outside = constant_value(w, 0, n->type->dtype);
    w->guarded--;
    return guard(w, n, &at->at[axis], begin, dim_add(t, begin, n->in[0]->type->dim[axis]), inside,
                 outside, context);
}

static Let *concat(Lower *w, Node *n, const Index *at, int context)
{
    TypeTable *t = &w->f->program->types;
    int axis = (int)n->attrs->at[0].i;
    const Dim *begin = n->type->dim[axis];
    Let *e = NULL;
    for (int k = n->nin - 1; k >= 0; k--) {
        const Dim *end = begin;
        begin = dim_sub(t, begin, n->in[k]->type->dim[axis]);
        w->guarded += k > 0;
        Let *part = piece(w, n->in[k], at, axis, begin, context);
        part->guarded = n->nin > 1;
        e = e ? guard(w, n, &at->at[axis], begin, end, part, e, context) : part;
        w->guarded -= k > 0;
    }
    return e;
}

/* ---- sweeps ---- */

/* The first sweep in which a value can be computed at every element; a row's result counts from the
 * sweep behind it. */
static int first_sweep(Lower *w, Node *n)
{
    if (w->k->kind != KERNEL_ROWS || is_loaded(w->g, n))
        return 2;
    if (w->f->lowered_for[n->id] == w->g && w->f->sweep[n->id])
        return w->f->sweep[n->id];
    int sweep = 2;
    for (int i = 0; i < n->nin; i++) {
        int needs = first_sweep(w, n->in[i]);
        sweep = needs > sweep ? needs : sweep;
    }
    if (is_reduction(n))
        sweep += 2;
    if (w->f->lowered_for[n->id] != w->g) {
        w->f->lowered_for[n->id] = w->g;
        w->f->memo[n->id] = NULL;
    }
    return w->f->sweep[n->id] = sweep;
}

static Let *reduced(Lower *w, Node *n)
{
    Node *x = n->in[0];
    Index at;
    int sweep = first_sweep(w, x), fits = group_index(&w->m, w->g, x->type, SITE_FULL, &at);
    assert(fits);
    (void)fits;
    Reduce *r = new (w->arena, Reduce);
    r->op = n->op;
    r->name = n->name;
    r->value = value_of(w, x, &at, sweep);
    r->result = make_expr(w, X_REDUCED, n->type->dtype, 0);
    r->result->reduce = r;
    r->result->name = n->name;
    r->result->round = rounding_of(w, n);
    for (int l = 0; l < w->g->loops; l++)
        if (w->g->part[l] != 1 && !is_one(w->g->extent[l]))
            r->result->depends |= 1 << w->g->part[l];
    Reduce **end = &phase_at(w, sweep)->reduces;
    while (*end)
        end = &(*end)->next;
    *end = r;
    return place_expr(w, r->result, sweep + 1);
}

/* Too much work to be done again in a later sweep? */
static int is_expensive(const Node *n)
{
    return n->op == OP_RAND || n->op == OP_RANDN ||
           (op_info(n->op)->value && strstr(op_info(n->op)->value, "rt_"));
}

static int can_keep(Lower *w)
{
    int64_t elements = 1;
    for (int l = 0; l < w->g->loops; l++) {
        int64_t extent;
        if (w->g->part[l] == 1 &&
            (!dim_is_int(w->g->extent[l], &extent) || (elements *= extent) > KEPT_MAX))
            return 0;
    }
    return 1;
}

/* ---- values ---- */

static Let *elementwise(Lower *w, Node *n, const Index *at, int context)
{
    Let *in[4] = {NULL};
    Index operand;
    for (int i = 0; i < n->nin; i++) {
        index_broadcast(&w->m, n->type, at, n->in[i]->type, &operand);
        in[i] = value_of(w, n->in[i], &operand, context);
    }
    DType round = rounding_of(w, n), from = n->nin ? in[0]->dtype : DT_F32;
    if (n->op == OP_CAST && round == DT_NONE && is_real(from) && is_real(n->type->dtype))
        return in[0];
    Let *e = make_expr(w,
                       n->op == OP_CAST   ? X_CAST
                       : n->op == OP_DIVN ? X_DIVN
                                          : X_ELEM,
                       n->type->dtype, n->nin);
    memcpy(e->in, in, sizeof *in * (size_t)n->nin);
    e->op = n->op;
    e->round = round;
    e->name = n->name;
    if (n->op == OP_DIVN) {
        TypeTable *t = &w->f->program->types;
        e->low = dim_int(t, 1);
        for (int i = 0; i < n->attrs->at[0].dims.n; i++)
            e->low = dim_mul(t, e->low, n->attrs->at[0].dims.at[i]);
    } else if (n->op != OP_CAST && n->attrs) {
        e->p = n->attrs->n > 0 ? n->attrs->at[0].r : 0;
        e->q = n->attrs->n > 1 ? n->attrs->at[1].r : 0;
    }
    return place_expr(w, e, context);
}

static Let *anchor_sums(Lower *w, Node *n, int context)
{
    Let *e = make_expr(w, X_SUMS, n->type->dtype, 0);
    e->name = n->name;
    e->round = rounding_of(w, n);
    e->depends = w->g->kind == GROUP_PRODUCT ? 3 : 5;
    return place_expr(w, e, context);
}

static Let *make_value(Lower *w, Node *n, const Index *at, int context)
{
    if (n->span.file && !is_memory(n) && !op_is(n->op, F_GENERATOR))
        vec_push(w->arena, &w->spans, n->span);
    if (is_loaded(w->g, n))
        return load(w, n, at, context);
    if (is_reduction(n))
        return reduced(w, n);
    switch (n->op) {
    case OP_MATMUL:
    case OP_SCATTER:
        return anchor_sums(w, n, context);
    case OP_CONST:
        return constant_value(w, n->attrs->at[0].r, n->type->dtype);
    case OP_IOTA: {
        Let *e = make_expr(w, X_INDEX, DT_I32, 0);
        set_index(w, e, &at->at[n->attrs->at[1].i]);
        return place_expr(w, e, context);
    }
    case OP_RAND:
    case OP_RANDN:
        return random_number(w, n, at, context);
    case OP_GATHER:
        return gather(w, n, at, context);
    case OP_PAD:
        return pad(w, n, at, context);
    case OP_CONCAT:
        return concat(w, n, at, context);
    default:
        return elementwise(w, n, at, context);
    }
}

static int same_index(Lower *w, const Node *n, const Index *a, const Index *b)
{
    if (a->linear != b->linear)
        return 0;
    for (int i = 0; i < (a->linear ? 1 : n->type->rank); i++)
        if (!affine_equal(&w->m, &a->at[i], &b->at[i]))
            return 0;
    return 1;
}

/* The value of n at an index, in a sweep (2, 4, …) or, for columns and scattered rows, in the point
 * behind (3). */
static Let *value_of(Lower *w, Node *n, const Index *given, int context)
{
    Index at = *given;
    while (is_view(n) && !is_loaded(w->g, n)) {
        index_through(&w->m, n, &at, &at);
        n = n->in[0];
    }
    Fuse *f = w->f;
    if (f->lowered_for[n->id] != w->g) {
        f->lowered_for[n->id] = w->g;
        f->memo[n->id] = NULL;
        f->sweep[n->id] = 0;
    }
    for (Memo *memo = f->memo[n->id]; memo && !w->guarded; memo = memo->next)
        if ((memo->context == context || memo->context == -1) && same_index(w, n, &memo->at, &at))
            return memo->value;
    Let *e;
    int sweep = context % 2 ? context : first_sweep(w, n);
    if (sweep < context && is_expensive(n) && !is_loaded(w->g, n) && can_keep(w) && !w->guarded) {
        Let *earlier = value_of(w, n, &at, sweep);
        if (earlier->phase != sweep)
            return earlier;
        earlier->kept = 1;
        e = make_expr(w, X_KEPT, earlier->dtype, 1);
        e->in[0] = earlier;
        e->name = earlier->name;
        place_expr(w, e, context);
    } else {
        e = make_value(w, n, &at, context);
    }
    if (!w->guarded) {
        Memo *memo = new (w->f->u->scratch, Memo);
        *memo = (Memo){at, is_inner(w, e->depends) ? context : -1, e, f->memo[n->id]};
        f->memo[n->id] = memo;
    }
    return e;
}

/* ---- what is written ---- */

static void store_output(Lower *w, const Output *out)
{
    Index at;
    KernelKind kind = w->k->kind;
    int fits = group_index(&w->m, w->g, out->node->type, out->site, &at);
    assert(fits);
    (void)fits;
    int full = out->site == SITE_FULL;
    int context = kind == KERNEL_SCATTER            ? 3
                  : kind == KERNEL_COLUMNS && !full ? 3
                  : kind == KERNEL_ROWS && full     ? first_sweep(w, out->node)
                                                    : 2;
    Store *s = new (w->arena, Store);
    s->value = value_of(w, out->node, &at, context);
    s->at = index_number(&w->m, out->node->type, &at);
    s->param = param_of(w, out->buffer, 1);
    int phase = full || kind == KERNEL_COLUMNS ? context
                : s->value->phase > 1          ? s->value->phase
                                               : 1;
    Store **end = &phase_at(w, phase)->stores;
    while (*end)
        end = &(*end)->next;
    *end = s;
}

static void lower_scatter(Lower *w)
{
    Node *n = w->g->anchor, *x = n->in[0], *index = n->in[1];
    Index at = {.linear = 0};
    int loop = 1;
    for (int i = 0; i < x->type->rank; i++, loop++)
        at.at[i] = is_one(x->type->dim[i]) ? affine_int(&w->m, 0) : affine_loop(&w->m, loop);
    w->k->scatter_row = value_of(w, index, &at, 2);
    w->k->scatter_value = value_of(w, x, &at, 2);
}

/* ---- loops ---- */

typedef Vec(Affine *) Affines;

static Affines all_indices(Lower *w)
{
    Affines all = {.at = NULL};
    for (int i = 0; i < w->phases.n; i++) {
        for (Let *e = w->phases.at[i].first; e; e = e->next)
            if (e->at.offset)
                vec_push(w->m.arena, &all, &e->at);
        for (Store *s = w->phases.at[i].stores; s; s = s->next)
            vec_push(w->m.arena, &all, &s->at);
    }
    return all;
}

/* Can loop l + 1 go on where loop l steps, in every index? */
static int can_join(Lower *w, const Affines *all, const Loop *loop, int l)
{
    TypeTable *t = &w->f->program->types;
    if (loop[l].part != loop[l + 1].part)
        return 0;
    for (int i = 0; i < all->n; i++)
        if (all->at[i]->stride[l] != dim_mul(t, all->at[i]->stride[l + 1], loop[l + 1].extent))
            return 0;
    return dim_mul(t, loop[l].extent, loop[l + 1].extent) != NULL;
}

static void remove_loop(const Affines *all, Loop *loop, int *loops, int l)
{
    for (int i = 0; i < all->n; i++)
        for (int k = l; k + 1 < *loops; k++)
            all->at[i]->stride[k] = all->at[i]->stride[k + 1];
    for (int k = l; k + 1 < *loops; k++)
        loop[k] = loop[k + 1];
    --*loops;
}

/* Is loop l the only one of the part that a reduction runs over? */
static int is_needed(const Lower *w, const Loop *loop, int loops, int l)
{
    int others = 0, needed = w->k->kind != KERNEL_FLAT;
    for (int k = 0; k < loops; k++)
        others += k != l && loop[k].part == loop[l].part;
    return needed && !others &&
           (loop[l].part == 1 || w->k->kind == KERNEL_SCATTER || loop[l].part == 2);
}

/* Drops loops of one step and joins neighbours, so that most kernels end up with one loop or
 * two. */
static void join_loops(Lower *w)
{
    Kernel *k = w->k;
    Affines all = all_indices(w);
    k->loop = new_array(w->arena, Loop, w->g->loops + 1);
    k->loops = w->g->loops;
    for (int l = 0; l < k->loops; l++)
        k->loop[l] = (Loop){w->g->extent[l], w->g->part[l]};
    for (int i = 0; i < all.n; i++) { /* some share their strides */
        const Dim **stride = new_array(w->arena, const Dim *, k->loops + 1);
        memcpy(stride, all.at[i]->stride, sizeof *stride * (size_t)k->loops);
        all.at[i]->stride = stride;
    }
    for (int l = k->loops - 1; l >= 0; l--)
        if (is_one(k->loop[l].extent) && !is_needed(w, k->loop, k->loops, l))
            remove_loop(&all, k->loop, &k->loops, l);
    for (int l = k->loops - 2; l >= 0; l--)
        if (can_join(w, &all, k->loop, l)) {
            k->loop[l + 1].extent =
                dim_mul(&w->f->program->types, k->loop[l].extent, k->loop[l + 1].extent);
            remove_loop(&all, k->loop, &k->loops, l);
        }
    if (k->kind == KERNEL_FLAT && k->loops > 1) {
        k->kind = KERNEL_ROWS;
        k->loop[k->loops - 1].part = 1;
    }
}

/* ---- the kernel ---- */

static void add_dim_symbols(const Dim *d, unsigned char *used)
{
    for (int i = 0; d && i < d->count; i++)
        for (int k = 0; k < d->term[i].degree; k++)
            used[d->term[i].symbol[k]] = 1;
}

static void add_index_symbols(const Kernel *k, const Affine *at, unsigned char *used)
{
    if (!at->offset)
        return;
    add_dim_symbols(at->offset, used);
    for (int l = 0; l < k->loops; l++)
        add_dim_symbols(at->stride[l], used);
}

/* The run-time dimensions that the function needs beside its range. */
static void find_symbols(Lower *w)
{
    Kernel *k = w->k;
    TypeTable *t = &w->f->program->types;
    unsigned char *used = new_array(w->m.arena, unsigned char, t->symbols + 1);
    int split = k->kind == KERNEL_COLUMNS ? 2 : 0, seen = 0;
    int *symbol = new_array(w->arena, int, t->symbols + 1);
    for (int l = 0; l < k->loops; l++) {
        /* The range says how long the first split loop is; so do the arguments of an epilogue. */
        if ((k->loop[l].part == split && seen++ == 0) ||
            (k->kind == KERNEL_EPILOGUE && k->loop[l].part == 1))
            continue;
        add_dim_symbols(k->loop[l].extent, used);
    }
    for (int i = 0; i < k->phases; i++) {
        for (const Let *e = k->phase[i].first; e; e = e->next) {
            add_index_symbols(k, &e->at, used);
            add_dim_symbols(e->low, used);
            add_dim_symbols(e->high, used);
            add_dim_symbols(e->scale, used);
        }
        for (const Store *s = k->phase[i].stores; s; s = s->next)
            add_index_symbols(k, &s->at, used);
    }
    for (int i = 0; i < t->symbols; i++)
        if (used[i])
            symbol[k->symbols++] = i;
    k->symbol = symbol;
}

static void count_uses(Kernel *k)
{
    for (int i = 0; i < k->phases; i++) {
        for (Let *e = k->phase[i].first; e; e = e->next) {
            for (int x = 0; x < e->nin; x++)
                e->in[x]->uses++;
            if (i >= 2)
                k->weight += e->kind == X_UNIFORM || e->kind == X_NORMAL                 ? 20
                             : e->kind == X_ELEM && strstr(op_info(e->op)->value, "rt_") ? 10
                                                                                         : 1;
        }
        for (Reduce *r = k->phase[i].reduces; r; r = r->next)
            r->value->uses++;
        for (Store *s = k->phase[i].stores; s; s = s->next)
            s->value->uses++;
    }
    if (k->scatter_value) {
        k->scatter_value->uses++;
        k->scatter_row->uses++;
    }
}

static int by_place(const void *a, const void *b)
{
    const Span *x = a, *y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The user's lines that the kernel computes, in order, each once. */
static void sort_spans(Lower *w)
{
    const Sources *sources = w->f->program->diags ? w->f->program->diags->sources : NULL;
    Span *kept = new_array(w->arena, Span, w->spans.n + 1);
    int lines = 0, last = -1;
    uint32_t file = 0;
    if (w->spans.n)
        qsort(w->spans.at, (size_t)w->spans.n, sizeof *w->spans.at, by_place);
    for (int i = 0; i < w->spans.n && sources && lines < 64; i++) {
        Span span = w->spans.at[i];
        int line = line_of(sources, span.file, span.begin);
        if (line != last || span.file != file)
            kept[lines++] = span;
        last = line;
        file = span.file;
    }
    w->k->span = kept;
    w->k->spans = lines;
}

static KernelKind kind_of(const Group *g)
{
    switch (g->kind) {
    case GROUP_ROWS:
        return KERNEL_ROWS;
    case GROUP_COLUMNS:
        return KERNEL_COLUMNS;
    case GROUP_PRODUCT:
        return KERNEL_EPILOGUE;
    case GROUP_SCATTER:
        return KERNEL_SCATTER;
    case GROUP_ELEMENTS:
    case GROUP_UPDATE:
        break;
    }
    return KERNEL_FLAT;
}

/* The value after which the function is named: the last one with a name of the user's, else the
 * last. */
static const char *main_name(Lower *w)
{
    const Node *best = NULL;
    for (int i = 0; i < w->g->outputs.n; i++) {
        const Node *n = w->g->outputs.at[i].node;
        if (!best || n->name || !best->name)
            best = n;
    }
    return value_name(w->f, best);
}

static void describe_product(Lower *w, Launch *l)
{
    Node *n = w->g->anchor;
    TypeTable *t = &w->f->program->types;
    const Type *a = n->in[0]->type;
    int rank = a->rank;
    Product *p = new (w->arena, Product);
    p->batch = dim_int(t, 1);
    for (int i = 0; i < rank - 2; i++)
        p->batch = dim_mul(t, p->batch, a->dim[i]);
    p->m = n->type->dim[rank - 2];
    p->n = n->type->dim[rank - 1];
    p->k = a->dim[rank - (n->attrs->at[0].i ? 2 : 1)];
    for (int k = 0; k < 2; k++) {
        const Node *base = NULL;
        int fits = product_operand(w->f, n, k, p, &base);
        assert(fits);
        (void)fits;
        p->operand[k].buffer = source_buffer(w->f, base);
    }
    /* Rows that go on from one product to the next, with the same matrix: one product. */
    if (!is_one(p->batch) && !p->operand[1].step->count &&
        p->operand[0].step == dim_mul(t, p->operand[0].row, p->m)) {
        p->m = dim_mul(t, p->batch, p->m);
        p->batch = dim_int(t, 1);
    }
    l->product = p;
}

/* The kernel that does the same and exists already, or this one, which gets a name. */
static Kernel *share(Lower *w)
{
    Fuse *f = w->f;
    Program *p = f->program;
    Str text = intern(f->signatures, kernel_signature(w->k, &p->types, f->u->scratch));
    Kernel *same = map_get(f->shared, text);
    if (same)
        return same;
    const char *wanted = arena_printf(f->u->scratch, "%s_%s", f->entry->name, main_name(w));
    w->k->name = fresh_name(f, f->functions, wanted);
    map_put(f->u->scratch, f->shared, text, w->k);
    vec_push(p->arena, &f->u->plan->kernels, w->k);
    return w->k;
}

void lower_group(Fuse *f, Group *g, Launch *launch)
{
    Arena *arena = f->program->arena;
    Lower w = {.f = f, .g = g, .arena = arena, .m = index_maker(f, g)};
    w.k = new (arena, Kernel);
    w.k->kind = kind_of(g);
    w.k->entry = f->entry;
    w.k->strict = f->program->props.strict;
    for (int i = 0; i < g->outputs.n; i++)
        param_of(&w, g->outputs.at[i].buffer, 1);
    if (g->kind == GROUP_SCATTER)
        lower_scatter(&w);
    for (int i = 0; i < g->outputs.n; i++)
        store_output(&w, &g->outputs.at[i]);
    join_loops(&w);
    w.k->phase = w.phases.at;
    w.k->phases = w.phases.n;
    w.k->params = w.buffers.n;
    w.k->param = new_array(arena, KernelParam, w.buffers.n + 1);
    for (int i = 0; i < w.buffers.n; i++)
        w.k->param[i] =
            (KernelParam){w.buffers.at[i]->name, w.buffers.at[i]->type, i < w.written, -1};
    w.k->streams = w.streams.n;
    find_symbols(&w);
    count_uses(w.k);
    sort_spans(&w);
    const char *fault = kernel_check(w.k, &f->program->types, f->u->scratch);
    assert(!fault);
    (void)fault;
    launch->buffer = w.buffers.at;
    launch->buffers = w.buffers.n;
    launch->stream = w.streams.at;
    if (g->kind == GROUP_PRODUCT)
        describe_product(&w, launch);
    launch->kernel = share(&w);
}
