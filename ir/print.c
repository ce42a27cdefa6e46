#include "ir/text.h"
#include "passes/optim.h"
#include <string.h>

const char *stage_name(Stage stage)
{
    static const char *const names[] = {"parsed",  "typed",    "casted",  "differentiated",
                                        "cleaned", "mastered", "stepped", "expanded",
                                        "fused",   "planned"};
    return names[stage];
}

const char *init_name(InitKind kind)
{
    static const char *const names[] = {"zeros",  "ones",       "constant", "uniform",
                                        "normal", "orthogonal", "eye"};
    return names[kind];
}

const char *region_name(Region region)
{
    static const char *const names[] = {"none", "f32", "f16", "bf16", "off"};
    return names[region];
}

/* Names of values: the user's where they are unique, with a number where they are not. */
typedef struct ValueNames {
    Names table;
    Str *of; /* by node id */
} ValueNames;

static int taken(Str *of, int count, Str name)
{
    for (int i = count - 1; i >= 0; i--)
        if (of[i] == name)
            return 1;
    return 0;
}

/* Base name of a node without a number that an earlier pass gave it. */
static Str base_name(Program *p, const Node *n)
{
    return n->name ? n->name : intern_printf(p->names, "%s", op_info(n->op)->spelling);
}

static Str *name_values(Program *p, Graph *g)
{
    Str *of = new_array(p->arena, Str, g->count + 1);
    for (Node *n = g->first; n; n = n->next) {
        Str base = base_name(p, n), name = base;
        for (int k = 1; taken(of, n->id, name); k++)
            name = intern_printf(p->names, "%s_%d", base, k);
        of[n->id] = name;
    }
    return of;
}

static void print_string(Out *o, const char *s)
{
    out_text(o, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            out_printf(o, "\\%c", *s);
        else if ((unsigned char)*s < 32)
            out_printf(o, "\\x%02x", (unsigned)*s);
        else
            out_printf(o, "%c", *s);
    }
    out_text(o, "\"");
}

static void print_attr(Out *o, Program *p, const Attr *a)
{
    switch (a->kind) {
    case ATTR_NONE:
        break;
    case ATTR_INT:
        out_printf(o, "%lld", (long long)a->i);
        break;
    case ATTR_BOOL:
        out_text(o, a->i ? "true" : "false");
        break;
    case ATTR_REAL:
        out_text(o, double_text(o->arena, a->r));
        break;
    case ATTR_STR:
        print_string(o, a->s);
        break;
    case ATTR_DTYPE:
        out_text(o, dtype_info[a->dtype].name);
        break;
    case ATTR_INTS:
        out_text(o, "[");
        for (int i = 0; i < a->ints.n; i++)
            out_printf(o, "%s%lld", i ? ", " : "", (long long)a->ints.at[i]);
        out_text(o, "]");
        break;
    case ATTR_DIMS:
        out_text(o, "[");
        for (int i = 0; i < a->dims.n; i++)
            out_printf(o, "%s%s", i ? ", " : "", dim_text(&p->types, a->dims.at[i], o->arena));
        out_text(o, "]");
        break;
    }
}

static void print_node(Out *o, Program *p, const Node *n, const Str *of, int spans)
{
    const OpInfo *info = op_info(n->op);
    const char *separator = "";
    if (of)
        out_printf(o, "%s: ", of[n->id]);
    out_printf(o, "%s = %s(", n->type ? type_text(&p->types, n->type, o->arena) : "?",
               info->spelling);
    if (n->param) {
        out_printf(o, "%s#%d", n->param->name, n->version);
        separator = ", ";
    }
    for (int i = 0; i < n->nin; i++) {
        if (of)
            out_printf(o, "%s%s", separator, of[n->in[i]->id]);
        else
            out_printf(o, "%s%s", separator, n->in[i]->name ? n->in[i]->name : "_");
        separator = ", ";
    }
    for (int i = 0; i < info->attrs; i++) {
        if (!n->attrs || n->attrs->at[i].kind == ATTR_NONE)
            continue;
        out_printf(o, "%s%s=", separator, info->attr[i].name);
        print_attr(o, p, &n->attrs->at[i]);
        separator = ", ";
    }
    out_text(o, ")");
    if (n->in_instance)
        out_text(o, " inside");
    if (n->pinned)
        out_text(o, " pinned");
    if (n->region)
        out_printf(o, " region=%s", region_name((Region)n->region));
    if (spans && n->span.file)
        out_printf(o, " @%u:%u", n->span.file - 1, n->span.begin);
    out_text(o, "\n");
}

void node_print(Out *o, Program *p, const Node *n)
{
    print_node(o, p, n, NULL, 0);
}

static void print_param(Out *o, Program *p, const Param *x, int spans)
{
    out_printf(o, "%s %s: %s init=%s", x->is_buffer ? "buffer" : "param", x->name,
               type_text(&p->types, x->type, o->arena), init_name(x->init.kind));
    if (x->init.kind >= INIT_CONSTANT && x->init.kind <= INIT_ORTHOGONAL)
        out_printf(o, "(%s, %s)", double_text(o->arena, x->init.a),
                   double_text(o->arena, x->init.b));
    if (x->instance)
        out_printf(o, " instance=%s", x->instance->name);
    if (x->frozen)
        out_text(o, " frozen");
    if (x->is_norm)
        out_text(o, " norm");
    if (x->optimizer)
        out_printf(o, " optimizer=%s group=%d", x->optimizer->name, x->group);
    if (p->stage >= MASTERED) {
        out_printf(o, " master=%s", dtype_info[x->master].name);
        if (x->copy != DT_NONE)
            out_printf(o, " copy=%s", dtype_info[x->copy].name);
    }
    if (spans && x->span.file)
        out_printf(o, " @%u:%u", x->span.file - 1, x->span.begin);
    out_text(o, "\n");
}

static void print_entry(Out *o, Program *p, Entry *e, int spans)
{
    static const char *const kinds[] = {"train", "eval", "infer"};
    out_printf(o, "entry %s %s", kinds[e->kind], e->name);
    if (e->batch)
        out_printf(o, " batch=%lld", (long long)e->batch);
    out_text(o, "\n");
    out_indent(o, 1);
    for (int i = 0; i < p->types.symbols; i++)
        if (i == e->batch_symbol)
            out_line(o, "dim %s in %lld..%lld", p->types.symbol[i].name,
                     (long long)p->types.symbol[i].low, (long long)p->types.symbol[i].high);
    for (int s = 0; s < e->segments; s++) {
        Str *of = name_values(p, e->segment[s]);
        out_line(o, "segment times=%lld", (long long)e->segment[s]->times);
        out_indent(o, 1);
        for (Node *n = e->segment[s]->first; n; n = n->next)
            print_node(o, p, n, of, spans);
        out_indent(o, -1);
    }
    out_indent(o, -1);
}

void program_print(Out *o, Program *p, int spans)
{
    const Properties *props = &p->props;
    out_line(o, "ampc-ir 1 stage=%s level=O%d half=%s policy=%s rounding=%s", stage_name(p->stage),
             props->level, dtype_info[props->half].name, props->torch_policy ? "torch" : "apex",
             props->strict ? "strict" : "fused");
    for (int i = 0; spans && i < p->diags->sources->count; i++)
        out_line(o, "file %d \"%s\"", i, p->diags->sources->files[i]->path);
    for (int i = 0; i < p->params.n; i++)
        print_param(o, p, p->params.at[i], spans);
    for (int i = 0; i < p->entries.n; i++)
        print_entry(o, p, p->entries.at[i], spans);
}
