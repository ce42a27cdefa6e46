#include "ir/graph.h"
#include "ir/fold.h"
#include "ir/program.h"
#include "ir/shape.h"
#include <assert.h>
#include <string.h>

static _Thread_local Graph *current;
static _Thread_local Context context;

Graph *graph_make(Program *program)
{
    Graph *g = new (program->arena, Graph);
    g->program = program;
    g->arena = program->arena;
    g->times = 1;
    g->table_size = 256;
    g->table = new_array(g->arena, Node *, g->table_size);
    return g;
}

void graph_open(Graph *g)
{
    assert(!current && "a graph is open already");
    current = g;
    memset(&context, 0, sizeof context);
}

void graph_close(void)
{
    current = NULL;
}

Graph *graph_now(void)
{
    assert(current && "no graph is open");
    return current;
}

Context graph_context(Context fresh)
{
    Context former = context;
    context = fresh;
    return former;
}

Node *error_node(void)
{
    static Node error = {.op = OP_CONST};
    return &error;
}

static uint32_t mix(uint32_t h, uint64_t value)
{
    return (h ^ (uint32_t)(value ^ value >> 32)) * 16777619u;
}

static uint32_t attr_hash(const Attr *a)
{
    uint32_t h = mix(2166136261u, a->kind);
    uint64_t bits = 0;
    switch (a->kind) {
    case ATTR_NONE:
        break;
    case ATTR_INT:
    case ATTR_BOOL:
        h = mix(h, (uint64_t)a->i);
        break;
    case ATTR_REAL:
        memcpy(&bits, &a->r, sizeof bits);
        h = mix(h, bits);
        break;
    case ATTR_STR:
        for (const char *s = a->s; *s; s++)
            h = mix(h, (unsigned char)*s);
        break;
    case ATTR_DTYPE:
        h = mix(h, a->dtype);
        break;
    case ATTR_INTS:
        for (int i = 0; i < a->ints.n; i++)
            h = mix(h, (uint64_t)a->ints.at[i]);
        break;
    case ATTR_DIMS:
        for (int i = 0; i < a->dims.n; i++)
            h = mix(h, a->dims.at[i]->hash);
        break;
    }
    return h;
}

static int attr_equal(const Attr *a, const Attr *b)
{
    if (a->kind != b->kind)
        return 0;
    switch (a->kind) {
    case ATTR_NONE:
        return 1;
    case ATTR_INT:
    case ATTR_BOOL:
        return a->i == b->i;
    case ATTR_REAL:
        return !memcmp(&a->r, &b->r, sizeof a->r);
    case ATTR_STR:
        return a->s == b->s;
    case ATTR_DTYPE:
        return a->dtype == b->dtype;
    case ATTR_INTS:
        return a->ints.n == b->ints.n &&
               !memcmp(a->ints.at, b->ints.at, sizeof *a->ints.at * (size_t)a->ints.n);
    case ATTR_DIMS:
        return a->dims.n == b->dims.n &&
               !memcmp(a->dims.at, b->dims.at, sizeof *a->dims.at * (size_t)a->dims.n);
    }
    return 0;
}

const Attrs *attrs_make(Op op, const Attr *values, int n)
{
    Program *p = current->program;
    assert(n == op_info(op)->attrs && "attributes in the order of the row");
    if (!n)
        return NULL;
    uint32_t hash = mix(2166136261u, op);
    for (int i = 0; i < n; i++) {
        assert(values[i].kind == op_info(op)->attr[i].kind ||
               (values[i].kind == ATTR_NONE && op_info(op)->attr[i].optional));
        hash = mix(hash, attr_hash(&values[i]));
    }
    Attrs **slot = &p->attr_table[hash % ATTR_TABLE];
    for (Attrs *a = *slot; a; a = a->next) {
        int same = a->hash == hash && a->n == n;
        for (int i = 0; same && i < n; i++)
            same = attr_equal(&a->at[i], &values[i]);
        if (same)
            return a;
    }
    Attrs *a = new (p->arena, Attrs);
    a->n = n;
    a->hash = hash;
    memcpy(a->at, values, sizeof *values * (size_t)n);
    a->next = *slot;
    *slot = a;
    return a;
}

Attr attr_ints(const int64_t *at, int n)
{
    int64_t *copy = new_array(current->arena, int64_t, n + 1);
    if (n)
        memcpy(copy, at, sizeof *at * (size_t)n);
    Attr a = {.kind = ATTR_INTS, .ints = {n, copy}};
    return a;
}

Attr attr_dims(const Dim *const *at, int n)
{
    const Dim **copy = new_array(current->arena, const Dim *, n + 1);
    for (int i = 0; i < n; i++)
        copy[i] = at[i];
    Attr a = {.kind = ATTR_DIMS, .dims = {n, copy}};
    return a;
}

const Attr *attr_of(const Node *n, const char *name)
{
    const OpInfo *info = op_info(n->op);
    for (int i = 0; i < info->attrs; i++)
        if (!strcmp(info->attr[i].name, name))
            return &n->attrs->at[i];
    assert(!"the row has no such attribute");
    return NULL;
}

static uint32_t node_hash(const Node *n)
{
    uint32_t h = mix(2166136261u, n->op);
    h = mix(h, (uint64_t)n->type->hash + n->type->dtype);
    h = mix(h, n->attrs ? n->attrs->hash : 0);
    h = mix(h, n->param ? (uint64_t)n->param->index * 64 + (uint64_t)n->version : 0);
    h = mix(h, (uint64_t)n->in_instance * 8 + n->region);
    for (int i = 0; i < n->nin; i++)
        h = mix(h, (uint64_t)n->in[i]->id);
    h ^= h >> 16; /* what differs high up alone must reach the low bits, which choose the bucket */
    h *= 0x7feb352du;
    return h ^ h >> 15;
}

static int node_equal(const Node *a, const Node *b)
{
    return a->op == b->op && a->type == b->type && a->attrs == b->attrs && a->param == b->param &&
           a->version == b->version && a->in_instance == b->in_instance && a->region == b->region &&
           a->pinned == b->pinned && a->nin == b->nin &&
           (!a->nin || !memcmp(a->in, b->in, sizeof *a->in * (size_t)a->nin));
}

static void make_table(Graph *g, int size)
{
    Node **table = new_array(g->arena, Node *, size);
    for (Node *n = g->first; n; n = n->next) {
        if (op_is(n->op, F_EFFECT))
            continue;
        Node **slot = &table[node_hash(n) % (uint32_t)size];
        n->chain = *slot;
        *slot = n;
    }
    g->table = table;
    g->table_size = size;
}

/* Marks what effects need, from the last node to the first. */
static void mark_live(Graph *g)
{
    Node **list = new_array(g->arena, Node *, g->count + 1);
    int count = 0;
    for (Node *n = g->first; n; n = n->next)
        list[count++] = n;
    while (count--) {
        Node *n = list[count];
        if (op_is(n->op, F_EFFECT))
            n->mark = 1;
        for (int k = 0; n->mark && k < n->nin; k++)
            n->in[k]->mark = 1;
    }
}

void graph_sweep(Graph *g)
{
    Node **link = &g->first;
    int count = 0;
    mark_live(g);
    g->last = NULL;
    for (Node *n = g->first; n; n = n->next) {
        if (!n->mark)
            continue;
        n->mark = 0;
        n->id = count++;
        *link = g->last = n;
        link = &n->next;
    }
    *link = NULL;
    if (count == g->count)
        return;
    g->count = count;
    make_table(g, g->table_size); /* it is by id */
}

/* Appends a copy of the node, with operands of its own. */
static Node *place(Graph *g, const Node *fresh)
{
    Node *n = new (g->arena, Node);
    *n = *fresh;
    n->in = new_array(g->arena, Node *, n->nin + 1);
    if (n->nin)
        memcpy(n->in, fresh->in, sizeof *n->in * (size_t)n->nin);
    n->id = g->count++;
    if (g->last)
        g->last->next = n;
    else
        g->first = n;
    g->last = n;
    if (op_is(n->op, F_EFFECT))
        return n;
    if (g->count > 2 * g->table_size) {
        make_table(g, 4 * g->table_size);
    } else {
        Node **slot = &g->table[node_hash(n) % (uint32_t)g->table_size];
        n->chain = *slot;
        *slot = n;
    }
    return n;
}

Node *graph_append(const Node *fresh)
{
    return place(current, fresh);
}

/* Finds an equal node, or places this one. */
static Node *append(Node *fresh)
{
    Graph *g = current;
    if (!op_is(fresh->op, F_EFFECT))
        for (Node *n = g->table[node_hash(fresh) % (uint32_t)g->table_size]; n; n = n->chain)
            if (node_equal(n, fresh)) {
                if (!n->name)
                    n->name = context.name;
                return n;
            }
    fresh->name = context.name;
    fresh->span = context.span;
    return place(g, fresh);
}

static const Type *type_by_row(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    switch (op) {
#define ELEM(id, ...)                                                                              \
    case OP_##id:                                                                                  \
        return shape_elementwise(op, in, nin);
#define OTHER(id, spelling, arity, apex, torch, flags, grad, family, schema, prose)                \
    case OP_##id:                                                                                  \
        return shape_##family(op, in, nin, attrs);
#include "ir/ops.def"
#undef ELEM
#undef OTHER
    case OP_COUNT:
        break;
    }
    return NULL;
}

/* Integers that meet reals are converted first; a cell sees one kind of number. */
static void unify_kinds(Op op, Node **in, int nin)
{
    int first = op_is(op, F_CHOICE) ? 1 : 0;
    DType real = DT_NONE;
    for (int i = first; i < nin; i++)
        if (is_real(in[i]->type->dtype))
            real = real == DT_NONE ? in[i]->type->dtype : dtype_promote(real, in[i]->type->dtype);
    for (int i = first; real != DT_NONE && i < nin; i++)
        if (!is_real(in[i]->type->dtype))
            in[i] = cast_to(in[i], real);
}

Node *build(Op op, Node *const *in, int nin, const Attrs *attrs)
{
    Node *operands[64], **list = operands;
    assert(current && "no graph is open");
    assert(op_info(op)->arity < 0 || op_info(op)->arity == nin || op_is(op, F_EFFECT));
    if (nin > 64)
        list = new_array(current->arena, Node *, nin);
    for (int i = 0; i < nin; i++) {
        if (!in[i]->type)
            return error_node();
        list[i] = in[i];
    }
    if (op_info(op)->elementwise && !op_is(op, F_LOGIC))
        unify_kinds(op, list, nin);
    const Type *type = type_by_row(op, list, nin, attrs);
    if (!type)
        return error_node();
    Node *folded = fold(op, type, list, nin, attrs);
    if (folded)
        return folded;
    Node fresh = {.op = op,
                  .type = type,
                  .in = list,
                  .nin = nin,
                  .attrs = attrs,
                  .in_instance = context.in_instance,
                  .region = context.region};
    return append(&fresh);
}

const Type *node_infer(const Node *n)
{
    if (!n->type || (!n->nin && !op_is(n->op, F_EFFECT) && n->op != OP_IOTA && n->op != OP_RAND &&
                     n->op != OP_RANDN))
        return n->type;
    return type_by_row(n->op, n->in, n->nin, n->attrs);
}

Node *build_source(Op op, const Type *type, const Attrs *attrs, Param *param, int version)
{
    Node fresh = {.op = op,
                  .type = type,
                  .attrs = attrs,
                  .param = param,
                  .version = version,
                  .in_instance = context.in_instance,
                  .region = context.region};
    return append(&fresh);
}
