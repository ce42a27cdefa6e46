#include "api/summary.h"
#include "passes/levels.h"
#include <string.h>

/* Every named value of every entry with its type, in program order. */
void print_types(Out *o, Program *p)
{
    for (int i = 0; i < p->params.n; i++)
        out_line(o, "%s: %s", p->params.at[i]->name,
                 type_text(&p->types, p->params.at[i]->type, o->arena));
    for (int i = 0; i < p->entries.n; i++) {
        Entry *e = p->entries.at[i];
        out_line(o, "%s:", e->name);
        out_indent(o, 1);
        for (int s = 0; s < e->segments; s++)
            for (Node *n = e->segment[s]->first; n; n = n->next)
                if (n->name && n->type)
                    out_line(o, "%s: %s", n->name, type_text(&p->types, n->type, o->arena));
        out_indent(o, -1);
    }
}

/* One line of the summary: the parameters that have a name in common up to the last dot. */
typedef struct Layer {
    Str name; /* "net.fc1" */
    int64_t parameters, bytes;
    DType dtype;        /* in which the graph reads the first of them */
    const Type *output; /* of the last node that uses them; NULL: nothing does */
    const Dim *macs;    /* multiplications with additions of one forward pass */
} Layer;

typedef struct Summary {
    Program *program;
    Arena *arena;
    Vec(Layer) layers;
    int *layer_of; /* by Param.index */
} Summary;

static int find_layer(Summary *s, Str name)
{
    for (int i = 0; i < s->layers.n; i++)
        if (s->layers.at[i].name == name)
            return i;
    Layer layer = {.name = name, .macs = dim_int(&s->program->types, 0)};
    vec_push(s->arena, &s->layers, layer);
    return s->layers.n - 1;
}

static int64_t count_of(Program *p, const Type *type)
{
    const Dim *count = type_count(&p->types, type);
    int64_t value = 0;
    return count && dim_is_int(count, &value) ? value : 0;
}

static void add_params(Summary *s)
{
    Program *p = s->program;
    s->layer_of = new_array(s->arena, int, p->params.n + 1);
    for (int i = 0; i < p->params.n; i++) {
        const Param *x = p->params.at[i];
        const char *dot = strrchr(x->name, '.');
        size_t length = dot ? (size_t)(dot - x->name) : strlen(x->name);
        int index = find_layer(s, intern_n(p->names, x->name, length));
        Layer *layer = &s->layers.at[index];
        DType dtype = param_read_type(&p->props, x);
        int64_t count = count_of(p, x->type);
        if (layer->parameters == 0)
            layer->dtype = dtype;
        layer->parameters += x->is_buffer ? 0 : count;
        layer->bytes += count * dtype_bytes(dtype);
        s->layer_of[x->index] = index;
    }
}

/* Is the node a weight, or the same weight in another type or shape? */
static int passes_weight_on(const Node *n)
{
    return n->nin == 1 && (n->op == OP_CAST || op_is(n->op, F_VIEW));
}

static void add_product(Summary *s, Layer *layer, const Node *n)
{
    TypeTable *types = &s->program->types;
    const Type *a = n->in[0]->type;
    const Dim *k = a->dim[a->rank - (attr_i(n, "ta") ? 2 : 1)];
    const Dim *count = type_count(types, n->type);
    const Dim *macs = count ? dim_mul(types, count, k) : NULL;
    if (macs && layer->macs)
        layer->macs = dim_add(types, layer->macs, macs);
}

/* Finds what each layer computes: nodes with one of its weights as an operand. */
static void add_uses(Summary *s, const Graph *g)
{
    int *weight = new_array(s->arena, int, g->count + 1); /* layer + 1 of nodes that are weights */
    for (const Node *n = g->first; n; n = n->next) {
        if (n->op == OP_READ) {
            weight[n->id] = s->layer_of[n->param->index] + 1;
            continue;
        }
        int layer = 0;
        for (int i = 0; i < n->nin; i++)
            layer = weight[n->in[i]->id] ? weight[n->in[i]->id] : layer;
        if (!layer || !n->type || op_is(n->op, F_EFFECT))
            continue;
        if (passes_weight_on(n)) {
            weight[n->id] = layer;
            continue;
        }
        s->layers.at[layer - 1].output = n->type;
        if (n->op == OP_MATMUL)
            add_product(s, &s->layers.at[layer - 1], n);
    }
}

/* The entry that shows the forward pass: the first train, else the first of all. */
static const Entry *shown_entry(const Program *p)
{
    for (int i = 0; i < p->entries.n; i++)
        if (p->entries.at[i]->kind == ENTRY_TRAIN)
            return p->entries.at[i];
    return p->entries.n ? p->entries.at[0] : NULL;
}

static const char *macs_text(const Summary *s, const Layer *layer)
{
    int64_t none;
    if (!layer->macs || (dim_is_int(layer->macs, &none) && none == 0))
        return "-";
    return dim_text(&s->program->types, layer->macs, s->arena);
}

enum { COLUMNS = 6 };

/* Columns as wide as their widest cell; names and types to the left, numbers to the right. */
static void print_table(Out *o, const char *(*row)[COLUMNS], int rows)
{
    static const int is_number[COLUMNS] = {0, 0, 1, 0, 1, 1};
    int width[COLUMNS] = {0};
    for (int i = 0; i < rows; i++)
        for (int c = 0; c < COLUMNS; c++)
            if ((int)strlen(row[i][c]) > width[c])
                width[c] = (int)strlen(row[i][c]);
    for (int i = 0; i < rows; i++) {
        for (int c = 0; c < COLUMNS - 1; c++)
            out_printf(o, "%*s  ", is_number[c] ? width[c] : -width[c], row[i][c]);
        out_printf(o, "%*s\n", width[COLUMNS - 1], row[i][COLUMNS - 1]);
    }
}

void print_summary(Out *o, Program *p)
{
    Summary s = {.program = p, .arena = o->arena};
    const Entry *e = shown_entry(p);
    add_params(&s);
    for (int i = 0; e && i < e->segments; i++)
        add_uses(&s, e->segment[i]);
    const char *(*row)[COLUMNS] = arena_alloc(o->arena, sizeof *row * (size_t)(s.layers.n + 2));
    static const char *const title[COLUMNS] = {"layer", "output", "parameters",
                                               "type",  "bytes",  "multiply-adds"};
    Layer total = {.macs = dim_int(&p->types, 0)};
    memcpy(row[0], title, sizeof title);
    for (int i = 0; i <= s.layers.n; i++) {
        int last = i == s.layers.n;
        const Layer *layer = last ? &total : &s.layers.at[i];
        row[i + 1][0] = last ? "total" : layer->name;
        row[i + 1][1] = layer->output ? type_text(&p->types, layer->output, o->arena) : "";
        row[i + 1][2] = arena_printf(o->arena, "%lld", (long long)layer->parameters);
        row[i + 1][3] = last ? "" : dtype_info[layer->dtype].name;
        row[i + 1][4] = arena_printf(o->arena, "%lld", (long long)layer->bytes);
        row[i + 1][5] = macs_text(&s, layer);
        total.parameters += layer->parameters;
        total.bytes += layer->bytes;
        total.macs = total.macs && layer->macs ? dim_add(&p->types, total.macs, layer->macs) : NULL;
    }
    out_line(o, "%s at %s, half type %s", p->source_name ? p->source_name : "model",
             level_info[p->props.level].name, dtype_info[p->props.half].name);
    print_table(o, row, s.layers.n + 2);
}
