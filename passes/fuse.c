/* Groups nodes into kernels and makes the plan: buffers, kernels and launches, in order.
 *
 *     h = matmul(x, w); s = h + b; r = relu(s)          one product with the epilogue s, r
 *     m = max(r, 1); e = exp(r - m); p = e / sum(e, 1)  one kernel of rows: three sweeps
 *
 * Nodes are taken in program order. A node joins the last group that it can join, or opens a new
 * one. Groups run in the order in which they were opened, so a node may join a group only if
 * everything else it needs comes from earlier groups; no cycle can arise, and every node looks at
 * its operands' groups only. A group has at most GROUP_LIMIT nodes.
 *
 * A value is stored when another group wants it, unless that group can work it out again from what
 * is in memory already for at most INLINE_LIMIT operations (casts, masks, scalars; random numbers
 * always are). A node that takes at most FLOAT_LIMIT floats: it has no group, each user works it
 * out, until somebody needs it in memory. Views are followed, not stored. A view is copied where an
 * index cannot be followed through it (a reshape of a permuted value) or a matrix product needs
 * plainer strides. A parameter that is read after its update at an earlier version is copied before
 * it.
 */
#include "passes/fuse.h"
#include <assert.h>
#include <string.h>

enum {
    INLINE_LIMIT = 24,
    FLOAT_LIMIT = 8,
    INLINE_DEPTH = 24,
    NEVER = 1000,
    EXPENSIVE = 10,
    NEAR_GROUPS = 8,
    GROUP_LIMIT = 96
};

/* ---- what a node is ---- */

int is_memory(const Node *n)
{
    return n->op == OP_INPUT || n->op == OP_OPTION || n->op == OP_READ || n->op == OP_SCALE;
}

static int is_generator(const Node *n)
{
    return op_is(n->op, F_GENERATOR);
}

int is_reduction(const Node *n)
{
    return n->op == OP_SUM || n->op == OP_MAXRED || n->op == OP_MINRED || n->op == OP_ARGMAX;
}

/* Computed at each element from its operands. */
static int is_pointwise(const Node *n)
{
    return op_info(n->op)->elementwise || n->op == OP_CAST || n->op == OP_DIVN;
}

static int is_floating(const Node *n)
{
    return !n->group && is_pointwise(n);
}

/* Reads its operands at other elements, under a condition, or by an index: they must be in
 * memory. */
static int needs_memory(const Node *n, int k)
{
    return n->op == OP_PAD || n->op == OP_CONCAT || (n->op == OP_GATHER && k == 0);
}

static int is_scalar(const Node *n)
{
    for (int i = 0; i < n->type->rank; i++)
        if (!is_one(n->type->dim[i]))
            return 0;
    return 1;
}

/* What a view looks at, through all views that are not copied. */
static Node *base_of(Node *n)
{
    while (is_view(n) && !n->group)
        n = n->in[0];
    return n;
}

/* ---- groups ---- */

static Group *open_group(Fuse *f, GroupKind kind, Node *anchor)
{
    Group *g = new (f->u->scratch, Group);
    g->kind = kind;
    g->order = f->groups.n;
    g->anchor = anchor;
    g->point_count = -1;
    vec_push(f->u->scratch, &f->groups, g);
    return g;
}

static void add_loop(Group *g, const Dim *extent, int part, int is_full)
{
    g->extent[g->loops] = extent;
    g->part[g->loops] = part;
    if (is_full)
        g->full[g->full_count++] = g->loops;
    g->loops++;
}

static void add_member(Fuse *f, Group *g, Node *n, Site site)
{
    n->group = g;
    f->site[n->id] = (unsigned char)site;
    vec_push(f->u->scratch, &g->members, n);
}

int group_index(IndexMaker *m, const Group *g, const Type *type, Site site, Index *out)
{
    const int *loop = site == SITE_POINT ? g->point : g->full;
    int count = site == SITE_POINT ? g->point_count : g->full_count, k = 0;
    *out = (Index){.linear = 0};
    for (int i = 0; i < type->rank; i++) {
        while (k < count && is_one(g->extent[loop[k]]))
            k++;
        if (is_one(type->dim[i])) {
            out->at[i] = affine_int(m, 0);
        } else if (k < count && g->extent[loop[k]] == type->dim[i]) {
            out->at[i] = affine_loop(m, loop[k++]);
        } else {
            return 0;
        }
    }
    while (k < count && is_one(g->extent[loop[k]]))
        k++;
    return k == count;
}

/* Is `at` the index at which the member b of g is computed? */
static int is_own_index(Fuse *f, IndexMaker *m, const Group *g, const Node *b, const Index *at)
{
    Index own;
    if (at->linear || !group_index(m, g, b->type, f->site[b->id], &own))
        return 0;
    for (int i = 0; i < b->type->rank; i++)
        if (!is_one(b->type->dim[i]) && !affine_equal(m, &own.at[i], &at->at[i]))
            return 0;
    return 1;
}

int is_loaded(const Group *g, const Node *n)
{
    if (is_memory(n) && (!n->group || n->group == g))
        return 1;
    return n->stored && n->group != g && n->group->order < g->order;
}

/* ---- versions of parameters ---- */

static void make_version(Fuse *f, const Node *effect, int order)
{
    Made *made = new (f->u->scratch, Made);
    *made = (Made){effect->version, order, f->made[effect->param->index]};
    f->made[effect->param->index] = made;
}

/* Does the parameter have the version that n reads while group number `order` runs? */
static int is_current(Fuse *f, const Node *n, int order)
{
    if (n->op != OP_READ)
        return 1;
    for (const Made *made = f->made[n->param->index]; made; made = made->next) {
        if (made->version == n->version && made->order >= order)
            return 0;
        if (made->version > n->version && made->order < order)
            return 0;
    }
    return 1;
}

/* ---- recomputing instead of storing ---- */

static int op_cost(const Node *n)
{
    if (is_scalar(n) || n->op == OP_CAST)
        return 1;
    if (!op_info(n->op)->elementwise)
        return 2;
    return strstr(op_info(n->op)->value, "rt_") ? EXPENSIVE
           : strchr(op_info(n->op)->value, '/') ? 4
                                                : 1;
}

/* Operations that group number `order` needs to work n out from memory; at least NEVER when it
 * cannot. Looks at no more than `depth` levels. */
static int inline_cost(Fuse *f, Node *n, int order, int depth)
{
    n = base_of(n);
    if (is_memory(n) && !n->group)
        return is_current(f, n, order) ? !is_scalar(n) : NEVER;
    if (is_generator(n) && !n->group)
        return n->op == OP_RAND || n->op == OP_RANDN;
    if (n->stored && n->group && n->group->order < order)
        return !is_scalar(n);
    if (!is_pointwise(n) || depth == 0)
        return NEVER;
    int cost = op_cost(n);
    for (int i = 0; i < n->nin && cost <= INLINE_LIMIT; i++)
        cost += inline_cost(f, n->in[i], order, depth - 1);
    return cost <= INLINE_LIMIT ? cost : NEVER;
}

static int can_inline(Fuse *f, Node *n, int order)
{
    return inline_cost(f, n, order, INLINE_DEPTH) < NEVER;
}

/* Group g uses n, which is not its own: from memory, or worked out again. */
static void demand(Fuse *f, Group *g, Node *n)
{
    n = base_of(n);
    if (!n->group || n->group == g || is_loaded(g, n) || can_inline(f, n, g->order))
        return; /* floating values are settled already */
    assert(n->group->order < g->order);
    n->stored = 1;
}

static void sink(Fuse *f, Node *n);

/* Before a group that uses n is opened: n must be there. */
static void settle(Fuse *f, Node *n)
{
    Node *base = base_of(n);
    if (is_floating(base) && !can_inline(f, base, f->groups.n))
        sink(f, base);
}

/* Group g reads n by address: from memory, whatever it costs. */
static void demand_stored(Fuse *f, Node *n)
{
    n = base_of(n);
    sink(f, n);
    if (n->group)
        n->stored = 1;
}

/* Can group g have the value of its operand n, which it sees at the index `at`? */
static int is_available(Fuse *f, IndexMaker *m, const Group *g, Node *n, const Index *at,
                        int must_load, int *own)
{
    Index here = *at;
    while (is_view(n) && !n->group) {
        if (!index_through(m, n, &here, &here))
            return 0;
        n = n->in[0];
    }
    if (n->group == g) {
        *own = 1;
        return !must_load && is_own_index(f, m, g, n, &here);
    }
    if (is_floating(n))
        return !must_load && can_inline(f, n, g->order);
    if (!n->group)
        return is_current(f, n, g->order);
    if (n->group->order < g->order)
        return 1;
    return !must_load && can_inline(f, n, g->order);
}

/* ---- element-wise nodes ---- */

/* The operand's index, given that of the pointwise n. A guarded or indexed operand is seen at other
 * places: any index that is not its own will do. */
static void operand_index(IndexMaker *m, const Node *n, const Index *at, int k, Index *out)
{
    const Type *from = n->in[k]->type;
    if (needs_memory(n, k)) {
        *out = (Index){.linear = 0};
        for (int i = 0; i < from->rank; i++)
            out->at[i] = affine_int(m, -1);
    } else if (n->op == OP_GATHER) {
        *out = *at; /* the leading dimensions are the index's */
    } else if (is_view(n)) {
        index_through(m, n, at, out);
    } else {
        index_broadcast(m, n->type, at, from, out);
    }
}

/* Does n fit into g at `site`? *uses: whether some operand is g's own and could not be had
 * cheaper. */
static int fits(Fuse *f, Group *g, Node *n, Site site, int *uses)
{
    IndexMaker m = index_maker(f, g);
    Index at, operand;
    *uses = 0;
    if (!group_index(&m, g, n->type, site, &at))
        return 0;
    for (int k = 0; k < n->nin; k++) {
        int own = 0;
        Node *base = base_of(n->in[k]);
        operand_index(&m, n, &at, k, &operand);
        if (!is_available(f, &m, g, n->in[k], &operand, needs_memory(n, k), &own))
            return 0;
        if (own && site == SITE_POINT && f->site[base->id] == SITE_FULL)
            return 0;
        if (own && site == SITE_FULL && f->site[base->id] == SITE_POINT && g->kind == GROUP_COLUMNS)
            return 0;
        if (own && !can_inline(f, base, g->order))
            *uses = 1;
    }
    return 1;
}

static Site find_site(Fuse *f, Group *g, Node *n, int *uses)
{
    if (g->kind == GROUP_UPDATE || g->members.n >= GROUP_LIMIT)
        return SITE_NONE;
    if (g->point_count >= 0 && fits(f, g, n, SITE_POINT, uses))
        return SITE_POINT;
    return fits(f, g, n, SITE_FULL, uses) ? SITE_FULL : SITE_NONE;
}

/* The latest group of an operand that n can join; one that it needs for more than a cheap value if
 * there is any. */
static Group *find_group(Fuse *f, Node *n, Site *site, int *needed)
{
    Group *best = NULL;
    int best_uses = 0;
    for (int k = 0; k < n->nin && k < 8; k++) {
        Group *g = base_of(n->in[k])->group;
        int uses;
        if (!g || g == best)
            continue;
        Site here = find_site(f, g, n, &uses);
        if (here == SITE_NONE)
            continue;
        if (!best || uses > best_uses || (uses == best_uses && g->order > best->order)) {
            best = g;
            best_uses = uses;
            *site = here;
        }
    }
    *needed = best_uses;
    return best;
}

static Group *open_elements(Fuse *f, Node *n)
{
    Group *g = open_group(f, GROUP_ELEMENTS, n);
    for (int i = 0; i < n->type->rank; i++)
        add_loop(g, n->type->dim[i], 0, 1);
    return g;
}

/* n, a view, generator or parameter, becomes a tensor of its own. */
static void copy(Fuse *f, Node *n)
{
    if (n->group)
        return;
    if (is_view(n))
        settle(f, n->in[0]);
    Group *g = open_elements(f, n);
    if (is_view(n))
        demand(f, g, n->in[0]);
    add_member(f, g, n, SITE_FULL);
    n->stored = 1;
}

static void demand_operands(Fuse *f, Group *g, Node *n)
{
    for (int k = 0; k < n->nin; k++) {
        Node *base = base_of(n->in[k]);
        if (needs_memory(n, k) && n->op == OP_GATHER && is_generator(base) && !base->group)
            copy(f, n->in[k]);
        if (needs_memory(n, k))
            demand_stored(f, n->in[k]);
        else
            demand(f, g, n->in[k]);
    }
}

/* Before a group is opened for n. */
static void settle_operands(Fuse *f, Node *n)
{
    for (int k = 0; k < n->nin; k++) {
        if (needs_memory(n, k))
            sink(f, base_of(n->in[k]));
        else
            settle(f, n->in[k]);
    }
}

/* A floating value gets a group of its own and is stored. */
static void sink(Fuse *f, Node *n)
{
    if (!is_floating(n))
        return;
    settle_operands(f, n);
    Group *g = open_elements(f, n);
    demand_operands(f, g, n);
    add_member(f, g, n, SITE_FULL);
    n->stored = 1;
}

static void add_pointwise(Fuse *f, Node *n)
{
    Site site = SITE_FULL;
    int uses = 0;
    Group *g = find_group(f, n, &site, &uses);
    if (!uses && inline_cost(f, n, f->groups.n, INLINE_DEPTH) <= FLOAT_LIMIT) {
        vec_push(f->u->scratch, &f->floating, n);
        return;
    }
    if (!g) {
        settle_operands(f, n);
        g = open_elements(f, n);
    }
    demand_operands(f, g, n);
    add_member(f, g, n, site);
}

/* A reshape whose index cannot be followed reads its operand by number. */
static void add_view(Fuse *f, Node *n)
{
    IndexMaker m = {.types = &f->program->types, .arena = f->u->scratch, .loops = 0};
    if (view_is_plain(&m, n))
        return;
    Node *x = n->in[0];
    while (!x->group && is_view(x) &&
           (x->op == OP_RESHAPE || same_shape(x->type, x->in[0]->type)) && x->op != OP_PERMUTE)
        x = x->in[0];
    if (is_view(x) || x->op == OP_IOTA)
        copy(f, x);
    demand_stored(f, x);
}

/* ---- reductions ---- */

/* Is axis i reduced by n? */
static int is_reduced(const Node *n, int i)
{
    const Attr *axes = &n->attrs->at[0];
    if (n->op == OP_ARGMAX)
        return axes->i == i;
    for (int a = 0; a < axes->ints.n; a++)
        if (axes->ints.at[a] == i)
            return 1;
    return 0;
}

/* The loops of g that n reduces: neighbours, which *first and *end are set to. */
static int reduced_loops(Fuse *f, Group *g, Node *n, int *first, int *end)
{
    IndexMaker m = index_maker(f, g);
    Index at;
    const Node *x = n->in[0];
    if (!group_index(&m, g, x->type, SITE_FULL, &at))
        return 0;
    *first = g->loops;
    *end = 0;
    for (int i = 0, k = 0; i < x->type->rank; i++) {
        if (is_one(x->type->dim[i]))
            continue;
        while (is_one(g->extent[g->full[k]]))
            k++;
        if (is_reduced(n, i)) {
            *first = *first < k ? *first : k;
            *end = k + 1;
        }
        k++;
    }
    return *first < *end;
}

/* Sums that end at the last axis go by lanes, others by rows, whatever the extents are. */
static int is_innermost(const Node *n)
{
    int rank = n->in[0]->type->rank;
    return rank == 0 || is_reduced(n, rank - 1);
}

/* Loops [first, end) of g are reduced, in rows or in columns. */
static void set_reduction(Group *g, int first, int end, GroupKind kind)
{
    g->kind = kind;
    if (kind == GROUP_ROWS)
        end = g->loops;
    g->point_count = 0;
    for (int l = 0; l < g->loops; l++) {
        g->part[l] = l < first ? 0 : l < end ? 1 : 2;
        if (g->part[l] != 1)
            g->point[g->point_count++] = l;
    }
}

static int joins_reduction(Fuse *f, Group *g, Node *n)
{
    int first, end, own = 0;
    if (!g || g->kind == GROUP_PRODUCT || g->kind == GROUP_SCATTER || g->kind == GROUP_UPDATE ||
        g->members.n >= GROUP_LIMIT)
        return 0;
    if (!reduced_loops(f, g, n, &first, &end))
        return 0;
    IndexMaker m = index_maker(f, g);
    Index at;
    group_index(&m, g, n->in[0]->type, SITE_FULL, &at);
    if (!is_available(f, &m, g, n->in[0], &at, 0, &own) ||
        (own && f->site[base_of(n->in[0])->id] != SITE_FULL))
        return 0;
    int behind = 0;
    for (int l = end; l < g->loops; l++)
        behind |= !is_one(g->extent[l]);
    if (g->kind == GROUP_ELEMENTS) {
        /* Sums of columns have few threads: they do not drag element-wise work along. */
        if (behind || !is_innermost(n))
            return 0;
        set_reduction(g, first, end, GROUP_ROWS);
        return 1;
    }
    if ((g->kind == GROUP_ROWS) != is_innermost(n))
        return 0;
    for (int l = 0; l < g->loops; l++)
        if (!is_one(g->extent[l]) && (g->part[l] == 1) != (l >= first && l < end))
            return 0;
    return 1;
}

static void add_reduction(Fuse *f, Node *n)
{
    const Type *x = n->in[0]->type;
    Group *g = base_of(n->in[0])->group;
    if (!joins_reduction(f, g, n)) {
        g = NULL; /* one that goes over the same rows anyway */
        for (int i = f->groups.n - 1; i >= 0 && i >= f->groups.n - NEAR_GROUPS && !g; i--)
            if (f->groups.at[i]->kind != GROUP_ELEMENTS && joins_reduction(f, f->groups.at[i], n))
                g = f->groups.at[i];
    }
    if (!g) {
        settle(f, n->in[0]);
        g = open_group(f, GROUP_ROWS, n);
        int first = x->rank, end = 0;
        for (int i = 0; i < x->rank; i++) {
            add_loop(g, x->dim[i], 0, 1);
            if (is_reduced(n, i)) {
                first = first < i ? first : i;
                end = i + 1;
            }
        }
        if (first >= end) { /* over no axes: one element each */
            add_loop(g, dim_int(&f->program->types, 1), 0, 1);
            first = x->rank;
            end = x->rank + 1;
        }
        set_reduction(g, first, end, is_innermost(n) ? GROUP_ROWS : GROUP_COLUMNS);
    }
    demand(f, g, n->in[0]);
    add_member(f, g, n, SITE_POINT);
}

/* ---- products ---- */

/* The step of the leading `count` loops as one index; 0 when they do not lie one after the
 * other. */
static int batch_step(IndexMaker *m, const Affine *at, const Dim *const *dim, int count,
                      const Dim **step)
{
    const Dim *expected = NULL;
    *step = dim_int(m->types, 0);
    for (int i = count - 1; i >= 0; i--) {
        if (is_one(dim[i]))
            continue;
        if (!expected)
            *step = at->stride[i];
        else if (at->stride[i] != expected)
            return 0;
        expected = dim_mul(m->types, at->stride[i], dim[i]);
    }
    return 1;
}

int product_operand(Fuse *f, const Node *product, int k, Product *out, const Node **base)
{
    Node *x = product->in[k];
    int rank = x->type->rank, turned = (int)product->attrs->at[k].i;
    IndexMaker m = {.types = &f->program->types, .arena = f->u->scratch, .loops = rank};
    Index at = {.linear = 0};
    for (int i = 0; i < rank; i++)
        at.at[i] = is_one(x->type->dim[i]) ? affine_int(&m, 0) : affine_loop(&m, i);
    while (is_view(x) && !x->group) {
        if (!index_through(&m, x, &at, &at))
            return 0;
        x = x->in[0];
    }
    Affine number = index_number(&m, x->type, &at);
    const Dim *step;
    if (!batch_step(&m, &number, product->in[k]->type->dim, rank - 2, &step))
        return 0;
    out->operand[k].offset = number.offset;
    out->operand[k].step = step;
    out->operand[k].row = number.stride[rank - (turned ? 1 : 2)];
    out->operand[k].column = number.stride[rank - (turned ? 2 : 1)];
    *base = x;
    return 1;
}

static void add_product(Fuse *f, Node *n)
{
    for (int k = 0; k < 2; k++) {
        Product product;
        const Node *base;
        if (!product_operand(f, n, k, &product, &base) || (is_generator(base) && !base->group))
            copy(f, n->in[k]);
        demand_stored(f, n->in[k]);
    }
    Group *g = open_group(f, GROUP_PRODUCT, n);
    for (int i = 0; i < n->type->rank; i++)
        add_loop(g, n->type->dim[i], i == n->type->rank - 1, 1);
    add_member(f, g, n, SITE_FULL);
}

static void add_scatter(Fuse *f, Node *n)
{
    settle_operands(f, n);
    Group *g = open_group(f, GROUP_SCATTER, n);
    const Type *index = n->in[1]->type;
    add_loop(g, n->type->dim[0], 0, 1);
    for (int i = 0; i < index->rank; i++)
        add_loop(g, index->dim[i], 1, 0);
    for (int i = 1; i < n->type->rank; i++)
        add_loop(g, n->type->dim[i], 2, 1);
    demand(f, g, n->in[0]);
    demand(f, g, n->in[1]);
    add_member(f, g, n, SITE_FULL);
}

/* ---- effects ---- */

/* The value of n goes to the buffer: from the group that has it if that runs after `order` and has
 * it whole, else by a copy. */
static void add_output(Fuse *f, Node *n, Buffer *buffer, int order)
{
    Node *base = base_of(n);
    Group *g = base->group;
    Site site = g && g->kind != GROUP_UPDATE ? f->site[base->id] : SITE_NONE;
    int fit = 0;
    if (site != SITE_NONE && g->order > order) {
        IndexMaker m = index_maker(f, g);
        Index at;
        int own = 0;
        fit = group_index(&m, g, n->type, site, &at) && is_available(f, &m, g, n, &at, 0, &own) &&
              own;
    }
    if (!fit) {
        settle(f, n);
        g = open_elements(f, n);
        site = SITE_FULL;
        demand(f, g, n);
    }
    Output output = {n, buffer, site};
    vec_push(f->u->scratch, &g->outputs, output);
}

/* The last group that makes a version of the parameter. */
static int last_made(Fuse *f, const Param *p)
{
    int order = -1;
    for (const Made *made = f->made[p->index]; made; made = made->next)
        order = made->order > order ? made->order : order;
    return order;
}

static Buffer *add_buffer(Fuse *f, BufferKind kind, int index, const Type *type, const char *name);

static Buffer *gradient_buffer(Fuse *f, Param *p, const Type *type)
{
    Buffer **b = &f->gradient_buffer[p->index];
    if (!*b) {
        *b = add_buffer(f, BUFFER_GRADIENT, p->index, type,
                        arena_printf(f->u->scratch, "d_%s", p->local ? p->local : p->name));
        (*b)->param = p;
    }
    return *b;
}

static Buffer *param_buffer(Fuse *f, Param *p, const Type *type)
{
    Buffer **b = &f->param_buffer[p->index];
    if (!*b) {
        *b = add_buffer(f, BUFFER_PARAM, p->index, type, p->name);
        (*b)->param = p;
    }
    return *b;
}

static int find_name(const Str *names, int count, Str name)
{
    for (int i = 0; i < count; i++)
        if (names[i] == name)
            return i;
    return 0;
}

/* Neighbouring updates of one optimizer are one launch: is `n` continued by a later one? */
static Node *next_update(const Node *n)
{
    for (Node *x = n->next; x; x = x->next) {
        if (x->op == OP_READ && x->version > 0)
            return NULL;
        if (x->op == OP_UPDATE)
            return x->attrs == n->attrs && x->param != n->param ? x : NULL;
    }
    return NULL;
}

static int reads_param(const Node *n, const Param *p, int depth)
{
    if (n->op == OP_READ)
        return n->param == p;
    for (int k = 0; k < n->nin && depth && !n->group; k++)
        if (reads_param(n->in[k], p, depth - 1))
            return 1;
    return 0;
}

/* Before the parameter changes: floating values that come from it and are used later go to
 * memory. */
static void sink_readers(Fuse *f, const Node *effect)
{
    int kept = 0;
    for (int i = 0; i < f->floating.n; i++) {
        Node *n = f->floating.at[i];
        if (!is_floating(n) || f->last_use[n->id] <= effect->id)
            continue;
        if (reads_param(n, effect->param, INLINE_DEPTH))
            sink(f, n);
        else
            f->floating.at[kept++] = n;
    }
    f->floating.n = kept;
}

static void add_update(Fuse *f, Node *n, Node **first)
{
    sink_readers(f, n);
    add_output(f, n->in[0], gradient_buffer(f, n->param, n->in[0]->type), last_made(f, n->param));
    if (!*first)
        *first = n;
    if (next_update(n))
        return;
    Group *g = open_group(f, GROUP_UPDATE, *first);
    for (Node *x = *first; x; x = x == n ? NULL : x->next)
        if (x->op == OP_UPDATE) {
            add_member(f, g, x, SITE_NONE);
            make_version(f, x, g->order);
        }
    *first = NULL;
}

static void add_effect(Fuse *f, Node *n, Node **first_update)
{
    Entry *e = f->entry;
    Str name = n->op == OP_REPORT || n->op == OP_RESULT ? n->attrs->at[0].s : NULL;
    const Type *f32 = type_scalar(&f->program->types, DT_F32);
    int k;
    switch (n->op) {
    case OP_UPDATE:
        add_update(f, n, first_update);
        break;
    case OP_STORE: /* after everything that may read the old value */
        sink_readers(f, n);
        add_output(f, n->in[0], param_buffer(f, n->param, n->in[0]->type), f->groups.n);
        make_version(f, n, f->groups.n - 1);
        break;
    case OP_REPORT:
        k = find_name(e->reports.at, e->reports.n, name);
        add_output(
            f, n->in[0],
            add_buffer(f, BUFFER_REPORT, k, f32, arena_printf(f->u->scratch, "%s_report", name)),
            -1);
        break;
    case OP_RESULT:
        k = find_name(e->results.at, e->results.n, name);
        add_output(f, n->in[0], add_buffer(f, BUFFER_RESULT, k, n->in[0]->type, name), -1);
        break;
    default:
        assert(!"an effect that earlier passes take away");
    }
}

/* ---- buffers ---- */

/* A name that no other buffer of the entry has. */
Str fresh_name(Fuse *f, Names *taken, const char *wanted)
{
    Names *names = f->program->names;
    return take_name(taken, names, c_name(names, wanted), "_");
}

static Buffer *add_buffer(Fuse *f, BufferKind kind, int index, const Type *type, const char *name)
{
    Arena *arena = f->program->arena;
    Buffer *b = new (arena, Buffer);
    b->name = fresh_name(f, f->names, name);
    b->kind = kind;
    b->index = index;
    b->type = type;
    b->first = -1;
    b->last = -1;
    vec_push(arena, &f->plan->buffers, b);
    return b;
}

/* What the user calls a value, or what it is, of what: x_bf16, fc1_relu, max_h, matmul. */
const char *value_name(Fuse *f, const Node *n)
{
    const Node *x = n->nin ? n->in[0] : NULL;
    if (n->name && !(n->op == OP_CAST && is_memory(x) && x->name == n->name))
        return n->name;
    for (int i = 1; x && !x->name && i < n->nin; i++)
        if (n->in[i]->name)
            x = n->in[i];
    while (x && !x->name && x->nin == 1 && (is_view(x) || x->op == OP_CAST))
        x = x->in[0];
    const char *what =
        n->op == OP_CAST ? dtype_info[n->type->dtype].name : op_info(n->op)->spelling;
    if (!x || !x->name)
        return n->op == OP_CAST && x ? op_info(x->op)->spelling : op_info(n->op)->spelling;
    if (is_view(n))
        return x->name;
    return is_reduction(n) ? arena_printf(f->u->scratch, "%s_%s", what, x->name)
                           : arena_printf(f->u->scratch, "%s_%s", x->name, what);
}

static Buffer *node_buffer(Fuse *f, Node *n)
{
    if (!n->buffer) {
        Buffer *b = add_buffer(f, BUFFER_ARENA, 0, n->type, value_name(f, n));
        b->node = n;
        n->buffer = f->plan->buffers.n;
    }
    return f->plan->buffers.at[n->buffer - 1];
}

static Buffer *named_buffer(Fuse *f, BufferKind kind, int index, const Type *type, Str name)
{
    for (int i = 0; i < f->given.n; i++) {
        Buffer *b = f->given.at[i];
        if (b->kind == kind && b->index == index)
            return b;
    }
    Buffer *fresh = add_buffer(f, kind, index, type, name);
    vec_push(f->u->scratch, &f->given, fresh);
    return fresh;
}

Buffer *source_buffer(Fuse *f, const Node *n)
{
    Program *p = f->program;
    int k = 0;
    switch (n->op) {
    case OP_READ:
        return param_buffer(f, n->param, n->type);
    case OP_INPUT:
        while (k < f->entry->inputs.n && f->entry->inputs.at[k].name != n->attrs->at[0].s)
            k++;
        return named_buffer(f, BUFFER_INPUT, k, n->type, n->attrs->at[0].s);
    case OP_OPTION:
        while (k < p->options.n && p->options.at[k]->name != n->attrs->at[0].s)
            k++;
        return named_buffer(f, BUFFER_OPTION, k, n->type, n->attrs->at[0].s);
    case OP_SCALE:
        while (k < p->scalers.n && p->scalers.at[k]->name != n->attrs->at[0].s)
            k++;
        return named_buffer(f, BUFFER_SCALE, k, n->type,
                            intern_printf(p->names, "%s_scale", n->attrs->at[0].s));
    default:
        return f->plan->buffers.at[n->buffer - 1];
    }
}

/* ---- the pass ---- */

static void add_node(Fuse *f, Node *n, Node **first_update)
{
    if (!n->type)
        return;
    if (op_is(n->op, F_EFFECT))
        add_effect(f, n, first_update);
    else if (is_view(n))
        add_view(f, n);
    else if (is_reduction(n))
        add_reduction(f, n);
    else if (n->op == OP_MATMUL)
        add_product(f, n);
    else if (n->op == OP_SCATTER)
        add_scatter(f, n);
    else if (n->op == OP_READ && n->mark)
        copy(f, n);
    else if (!is_memory(n) && !is_generator(n))
        add_pointwise(f, n);
    n->mark = 0;
}

/* The last node that uses each, views followed. Marks parameters that are read again after their
 * next version was made. */
static void find_uses(Fuse *f)
{
    int *killed = new_array(f->u->scratch, int, f->program->params.n + 1); /* newest version */
    for (Node *n = f->graph->first; n; n = n->next) {
        for (int k = 0; k < n->nin; k++) {
            Node *x = base_of(n->in[k]);
            f->last_use[x->id] = n->id;
            if (x->op == OP_READ && killed[x->param->index] > x->version)
                x->mark = 1;
        }
        if (n->op == OP_UPDATE || n->op == OP_STORE)
            killed[n->param->index] = n->version;
    }
}

/* A result of the value's own type serves as its buffer. */
static int is_result(Fuse *f, const Group *g, Node *n)
{
    for (int i = 0; i < g->outputs.n; i++) {
        const Output *out = &g->outputs.at[i];
        if (out->node != n || out->buffer->kind != BUFFER_RESULT || out->buffer->type != n->type)
            continue;
        for (int k = 0; k < f->plan->buffers.n; k++)
            if (f->plan->buffers.at[k] == out->buffer)
                n->buffer = k + 1;
        return 1;
    }
    return 0;
}

static void add_launch(Fuse *f, Group *g)
{
    Arena *arena = f->program->arena;
    for (int i = 0; i < g->members.n && g->kind != GROUP_UPDATE; i++) {
        Node *n = g->members.at[i];
        Output output = {n, NULL, f->site[n->id]};
        if (!n->stored || is_result(f, g, n))
            continue;
        output.buffer = node_buffer(f, n);
        vec_push(f->u->scratch, &g->outputs, output);
    }
    if (!g->outputs.n && g->kind != GROUP_UPDATE)
        return;
    Launch *l = new (arena, Launch);
    l->segment = f->segment;
    l->index = f->plan->launches.n;
    l->span = g->anchor->span;
    if (g->kind == GROUP_UPDATE) {
        l->kind = LAUNCH_UPDATE;
        l->update = g->anchor;
        l->optimizer = program_optimizer(f->program, g->anchor->attrs->at[0].s);
    } else {
        l->kind = g->kind == GROUP_PRODUCT ? LAUNCH_PRODUCT : LAUNCH_KERNEL;
        lower_group(f, g, l);
    }
    vec_push(arena, &f->plan->launches, l);
}

/* First write and last read of every buffer, in launches. */
static void find_lifetimes(EntryPlan *plan)
{
    for (int i = 0; i < plan->launches.n; i++) {
        Launch *l = plan->launches.at[i];
        for (int k = 0; k < l->buffers + 2; k++) {
            Buffer *b = k < l->buffers ? l->buffer[k]
                        : l->product   ? l->product->operand[k - l->buffers].buffer
                                       : NULL;
            if (!b)
                continue;
            if (b->first < 0)
                b->first = i;
            b->last = i;
        }
    }
}

/* A value that was written only to a gradient or result of its own type is rounded there too. */
static void mark_outputs(Fuse *f)
{
    for (int i = 0; i < f->groups.n; i++)
        for (int k = 0; k < f->groups.at[i]->outputs.n; k++) {
            const Output *out = &f->groups.at[i]->outputs.at[k];
            Node *base = base_of(out->node);
            if (out->buffer->type->dtype == base->type->dtype && base->group)
                base->stored = 1;
        }
}

static void fuse_segment(Fuse *f, Graph *graph)
{
    Node *first_update = NULL;
    f->graph = graph;
    f->groups.n = 0;
    f->site = new_array(f->u->scratch, unsigned char, graph->count + 1);
    f->sweep = new_array(f->u->scratch, int, graph->count + 1);
    f->memo = new_array(f->u->scratch, struct Memo *, graph->count + 1);
    f->lowered_for = new_array(f->u->scratch, const Group *, graph->count + 1);
    f->last_use = new_array(f->u->scratch, int, graph->count + 1);
    f->floating.n = 0;
    for (Node *n = graph->first; n; n = n->next) {
        n->group = NULL;
        n->stored = 0;
        n->buffer = 0;
    }
    find_uses(f);
    for (Node *n = graph->first; n; n = n->next)
        add_node(f, n, &first_update);
    for (int i = 0; i < f->groups.n; i++)
        add_launch(f, f->groups.at[i]);
    mark_outputs(f);
    for (Node *n = graph->first; n; n = n->next)
        n->group = NULL;                           /* groups live in scratch memory */
    for (int i = 0; i < f->program->params.n; i++) /* groups count anew in the next segment */
        f->made[i] = NULL;
}

static void reserve_names(Fuse *f)
{
    TypeTable *t = &f->program->types;
    for (int i = 0; i < t->symbols; i++)
        intern(f->names, t->symbol[i].name);
}

void pass_fuse(Unit *u)
{
    Program *p = u->program;
    u->plan = new (u->arena, Plan);
    u->plan->entry = new_array(u->arena, EntryPlan, p->entries.n + 1);
    Names functions, signatures;
    names_init(&functions, u->scratch);
    names_init(&signatures, u->scratch);
    Map shared = {.key = NULL};
    for (int i = 0; i < p->entries.n; i++) {
        Names names;
        names_init(&names, u->scratch);
        Fuse f = {.u = u,
                  .program = p,
                  .entry = p->entries.at[i],
                  .plan = &u->plan->entry[i],
                  .names = &names,
                  .functions = &functions,
                  .signatures = &signatures,
                  .shared = &shared};
        f.plan->entry = f.entry;
        f.made = new_array(u->scratch, Made *, p->params.n + 1);
        f.param_buffer = new_array(u->scratch, Buffer *, p->params.n + 1);
        f.gradient_buffer = new_array(u->scratch, Buffer *, p->params.n + 1);
        reserve_names(&f);
        for (int k = 0; k < f.entry->segments; k++) {
            f.segment = k;
            fuse_segment(&f, f.entry->segment[k]);
        }
        find_lifetimes(f.plan);
    }
}
