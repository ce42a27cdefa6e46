/* Types and nodes of IR text. Nodes are kept as they are written: nothing is folded or shared, and
 * what the text says of types and operands is checked here, so that passes meet only graphs that
 * make sense. */
#include "ir/shape.h"
#include "ir/text.h"
#include "ir/reader.h"
#include "ir/text_word.h"
#include <string.h>

enum { MAX_OPERANDS = 4096 };
static const int64_t MOST_ELEMENTS = (int64_t)1 << 44; /* of one tensor */

static TypeTable *types(Reader *r)
{
    return &r->program->types;
}

static const Dim *parse_factor(Reader *r)
{
    if (r->kind == TOKEN_INT) {
        const Dim *d = dim_int(types(r), r->integer);
        next_token(r);
        return d;
    }
    if (r->kind != TOKEN_WORD)
        fail(r, "a dimension");
    Symbol *found = r->failed ? NULL : map_get(&r->symbols, r->text);
    if (!found) {
        fail_at(r, r->span, "there is no dimension '%s' here", r->text ? r->text : "");
        return dim_int(types(r), 1);
    }
    next_token(r);
    return dim_symbol(types(r), (int)((uintptr_t)found - 1));
}

static const Dim *parse_term(Reader *r)
{
    Span span = r->span;
    const Dim *d = parse_factor(r);
    while (d && take_mark(r, "*"))
        d = dim_mul(types(r), d, parse_factor(r));
    if (!d)
        fail_at(r, span, "this dimension is too large or has too many factors");
    return d ? d : dim_int(types(r), 1);
}

/* "4*N*M - N + 1" */
static const Dim *read_dim(Reader *r)
{
    Span span = r->span;
    int negative = take_mark(r, "-");
    const Dim *d = parse_term(r);
    if (negative)
        d = dim_sub(types(r), dim_int(types(r), 0), d);
    while (d && (is_mark(r, "+") || is_mark(r, "-"))) {
        int minus = is_mark(r, "-");
        next_token(r);
        const Dim *term = parse_term(r);
        d = minus ? dim_sub(types(r), d, term) : dim_add(types(r), d, term);
    }
    if (!d)
        fail_at(r, span, "this dimension is too large");
    return d ? d : dim_int(types(r), 1);
}

/* "[a, b]" into dim; how many. */
static int parse_dims(Reader *r, const Dim **dim)
{
    int n = 0;
    need_mark(r, "[");
    while (!r->failed && !is_mark(r, "]")) {
        if (n == MAX_RANK)
            fail_at(r, r->span, "more than %d dimensions", MAX_RANK);
        else
            dim[n++] = read_dim(r);
        if (!take_mark(r, ","))
            break;
    }
    need_mark(r, "]");
    return n;
}

DType read_dtype(Reader *r)
{
    DType dtype = r->kind == TOKEN_WORD ? dtype_find(r->text) : DT_NONE;
    if (dtype == DT_NONE)
        fail(r, "an element type");
    next_token(r);
    return dtype == DT_NONE ? DT_F32 : dtype;
}

const Type *read_type(Reader *r)
{
    const Dim *dim[MAX_RANK];
    Span span = r->span;
    DType dtype = read_dtype(r);
    int rank = is_mark(r, "[") ? parse_dims(r, dim) : 0;
    for (int i = 0; i < rank; i++)
        if (dim_max(types(r), dim[i]) < 1)
            fail_at(r, span, "a dimension must be at least 1");
    if (r->failed)
        return type_scalar(types(r), dtype);
    const Type *type = type_make(types(r), dtype, rank, dim);
    const Dim *count = type_count(types(r), type);
    int64_t most = count ? dim_max(types(r), count) : -1;
    if (most < 1 || most > MOST_ELEMENTS)
        fail_at(r, span, "a tensor of this type has too many elements");
    return type;
}

Span read_span(Reader *r, Span fallback)
{
    if (r->files.n) /* a dump says where things come from; what has no place there has none */
        fallback = (Span){.file = 0};
    if (!take_mark(r, "@"))
        return fallback;
    Span at = r->span;
    int64_t file = need_int_in(r, 0, INT32_MAX - 1);
    need_mark(r, ":");
    int64_t begin = need_int_in(r, 0, SOURCE_MAX), end = begin;
    if (take_mark(r, ".."))
        end = need_int_in(r, begin, SOURCE_MAX);
    if (!r->failed && file >= r->files.n)
        fail_at(r, at, "there is no file %lld", (long long)file);
    if (r->failed)
        return fallback;
    if (r->file_need.at[file] < (uint32_t)end)
        r->file_need.at[file] = (uint32_t)end;
    return (Span){.file = (uint32_t)r->files.at[file]->index + 1,
                  .begin = (uint32_t)begin,
                  .end = (uint32_t)end};
}

static Attr parse_ints(Reader *r)
{
    int64_t at[MAX_RANK];
    int n = 0;
    need_mark(r, "[");
    while (!r->failed && !is_mark(r, "]")) {
        if (n == MAX_RANK)
            fail_at(r, r->span, "more than %d numbers", MAX_RANK);
        else
            at[n++] = need_int(r);
        if (!take_mark(r, ","))
            break;
    }
    need_mark(r, "]");
    return attr_ints(at, n);
}

static Attr parse_attr(Reader *r, AttrKind kind)
{
    const Dim *dim[MAX_RANK];
    switch (kind) {
    case ATTR_NONE:
        break;
    case ATTR_INT:
        return attr_int(need_int(r));
    case ATTR_BOOL:
        return attr_bool(need_choice(r, "false|true"));
    case ATTR_REAL:
        return attr_real(need_real(r));
    case ATTR_STR:
        return attr_str(need_name(r));
    case ATTR_DTYPE:
        return attr_dtype(read_dtype(r));
    case ATTR_INTS:
        return parse_ints(r);
    case ATTR_DIMS: {
        int n = parse_dims(r, dim);
        return attr_dims(dim, n);
    }
    }
    return attr_none();
}

/* What stands between the parentheses of a node. */
typedef struct Operands {
    Node **in;
    int nin, room;
    Attr attr[MAX_ATTRS];
    Param *param;
    int64_t version;
} Operands;

static void set_attr(Reader *r, Operands *x, const OpInfo *info, Str key, Span span)
{
    for (int i = 0; i < info->attrs; i++) {
        if (strcmp(info->attr[i].name, key))
            continue;
        if (x->attr[i].kind != ATTR_NONE)
            fail_at(r, span, "'%s' is given twice", key);
        x->attr[i] = parse_attr(r, info->attr[i].kind);
        return;
    }
    fail_at(r, span, "'%s' has no attribute '%s'", info->spelling, key);
}

static void add_operand(Reader *r, Operands *x, Str name, Span span)
{
    Node *n = map_get(&r->values, name);
    if (!n)
        fail_at(r, span, "there is no value '%s' before this line", name);
    else if (x->nin == MAX_OPERANDS)
        fail_at(r, span, "more than %d operands", MAX_OPERANDS);
    if (r->failed)
        return;
    if (x->nin == x->room)
        x->in = vec_grow(r->arena, x->in, x->nin, &x->room, sizeof *x->in);
    x->in[x->nin++] = n;
}

static void set_param(Reader *r, Operands *x, Str name, Span span)
{
    Param *param = map_get(&r->params, name);
    if (!param)
        fail_at(r, span, "there is no parameter '%s'", name);
    else if (x->param)
        fail_at(r, span, "a second parameter");
    x->param = param;
    x->version = need_int_in(r, 0, INT32_MAX);
}

static void parse_operands(Reader *r, Operands *x, const OpInfo *info)
{
    need_mark(r, "(");
    while (!r->failed && !is_mark(r, ")")) {
        Span span = r->span;
        Str name = r->text;
        if (r->kind == TOKEN_VALUE)
            next_token(r);
        else
            name = need_name(r);
        if (take_mark(r, "#"))
            set_param(r, x, name, span);
        else if (take_mark(r, "="))
            set_attr(r, x, info, name, span);
        else if (!r->failed)
            add_operand(r, x, name, span);
        if (!take_mark(r, ","))
            break;
    }
    need_mark(r, ")");
}

/* Attributes that may be left out: reals of element-wise rows, and bools, which are then false. */
static void fill_attrs(Reader *r, Operands *x, const OpInfo *info, Span span)
{
    for (int i = 0; i < info->attrs; i++) {
        const AttrSchema *a = &info->attr[i];
        if (x->attr[i].kind != ATTR_NONE || a->optional)
            continue;
        if (info->elementwise)
            x->attr[i] = attr_real(a->fallback);
        else if (a->kind == ATTR_BOOL)
            x->attr[i] = attr_bool(0);
        else
            fail_at(r, span, "'%s' needs %s=…", info->spelling, a->name);
    }
}

static int takes_param(Op op)
{
    return op == OP_READ || op == OP_UPDATE || op == OP_GRADIENT || op == OP_STORE;
}

/* Before `step`, UPDATE stands for a whole optimizer and has neither parameter nor operand. */
static void check_form(Reader *r, const OpInfo *info, Op op, const Operands *x, Span span)
{
    int whole = op == OP_UPDATE && !x->param && !x->nin;
    if (takes_param(op) != (x->param != NULL) && !whole)
        fail_at(r, span, "'%s' %s", info->spelling,
                x->param ? "takes no parameter" : "needs a parameter: name#version");
    else if (info->arity < 0 ? x->nin < 1 : x->nin != info->arity && !whole)
        fail_at(r, span, "'%s' takes %d operands, found %d", info->spelling,
                info->arity < 0 ? 1 : info->arity, x->nin);
}

static void use_optimizer(Reader *r, Str name, Span span)
{
    Optimizer *found = program_optimizer(r->program, name);
    if (!found) {
        fail_at(r, span, "there is no optimizer '%s'", name);
        return;
    }
    for (int i = 0; i < r->entry->optimizers.n; i++)
        if (r->entry->optimizers.at[i] == found)
            return;
    vec_push(r->arena, &r->entry->optimizers, found);
    found->entry = r->entry;
}

static void use_scaler(Reader *r, Str name, Span span)
{
    Scaler *found = program_scaler(r->program, name);
    if (!found) {
        if (*name)
            fail_at(r, span, "there is no scaler '%s'", name);
        return;
    }
    for (int i = 0; i < r->entry->scalers.n; i++)
        if (r->entry->scalers.at[i] == found)
            return;
    vec_push(r->arena, &r->entry->scalers, found);
}

/* An input that the entry does not declare is handed in by the host. */
static void use_input(Reader *r, Str name, const Type *type, Span span)
{
    for (int i = 0; i < r->entry->inputs.n; i++) {
        EntryInput *x = &r->entry->inputs.at[i];
        if (x->name != name)
            continue;
        if (x->type != type)
            fail_at(r, span, "the input '%s' is declared as %s", name,
                    type_text(types(r), x->type, r->arena));
        return;
    }
    EntryInput fresh = {.name = name, .type = type, .field = -1, .span = span};
    vec_push(r->arena, &r->entry->inputs, fresh);
}

static int has_name(const Str *list, int n, Str name)
{
    while (n--)
        if (list[n] == name)
            return 1;
    return 0;
}

static void use_option(Reader *r, Str name, Span span)
{
    for (int i = 0; i < r->program->options.n; i++)
        if (r->program->options.at[i]->name == name)
            return;
    fail_at(r, span, "there is no option '%s'", name);
}

/* Names in attributes mean something; what the entry does not list yet is added to it. */
static void resolve_names(Reader *r, const Node *n)
{
    const OpInfo *info = op_info(n->op);
    for (int i = 0; i < info->attrs && !r->failed; i++) {
        if (n->attrs->at[i].kind != ATTR_STR)
            continue;
        Str s = n->attrs->at[i].s;
        if (!strcmp(info->attr[i].name, "optimizer") || !strcmp(info->attr[i].name, "optimizers"))
            use_optimizer(r, s, n->span);
        else if (!strcmp(info->attr[i].name, "scaler"))
            use_scaler(r, s, n->span);
    }
    Entry *e = r->entry;
    Str name = info->attrs && n->attrs->at[0].kind == ATTR_STR ? n->attrs->at[0].s : NULL;
    switch ((int)n->op) {
    case OP_INPUT:
        use_input(r, name, n->type, n->span);
        break;
    case OP_OPTION:
        use_option(r, name, n->span);
        break;
    case OP_SCALE:
        if (!*name)
            fail_at(r, n->span, "there is no scaler ''");
        break;
    case OP_REPORT:
        if (!has_name(e->reports.at, e->reports.n, name))
            vec_push(r->arena, &e->reports, name);
        break;
    case OP_RESULT:
        if (!has_name(e->results.at, e->results.n, name))
            vec_push(r->arena, &e->results, name);
        break;
    default:
        break;
    }
}

/* Types of nodes that no rule gives: scalars, and the shape of a parameter. */
static void check_given(Reader *r, const Node *n, Span span)
{
    int is_scalar_op = n->op == OP_SCALE || n->op == OP_CONST || n->op == OP_OPTION;
    if (is_scalar_op && n->type->rank)
        fail_at(r, span, "'%s' is a scalar", op_info(n->op)->spelling);
    if (n->op == OP_SCALE && n->type->dtype != DT_F32)
        fail_at(r, span, "the loss scale is f32");
    if (n->param && n->type && !same_shape(n->type, n->param->type))
        fail_at(r, span, "'%s' is %s", n->param->name,
                type_text(types(r), n->param->type, r->arena));
}

/* The type that the row gives; at stage parsed pass `infer` compares it with what the text says. */
static void check_type(Reader *r, Node *n, Span span)
{
    int compare = r->program->stage > PARSED;
    if (n->type && !compare)
        return;
    Context former = graph_context((Context){.span = span, .name = n->name});
    const Type *type = n->type || op_is(n->op, F_EFFECT) ? node_infer(n) : NULL;
    if (op_is(n->op, F_EFFECT) && !n->type) {
        n->type = type_scalar(types(r), DT_F32);
        type = node_infer(n);
        n->type = type;
    }
    graph_context(former);
    if (!type)
        r->failed = 1; /* the rule has reported it */
    else if (type != n->type)
        fail_at(r, span, "'%s' gives %s", op_info(n->op)->spelling,
                type_text(types(r), type, r->arena));
    if (r->failed) {
        r->kind = TOKEN_END;
        n->type = NULL;
    }
}

static void parse_flags(Reader *r, Node *n)
{
    n->in_instance = (unsigned char)take_keyword(r, "inside");
    n->pinned = (unsigned char)take_keyword(r, "pinned");
    if (take_keyword(r, "region")) {
        need_mark(r, "=");
        n->region = (unsigned char)need_choice(r, region_choices);
    }
}

/* Everything behind "name: type =". */
static void parse_call(Reader *r, Node *n, Span first)
{
    Operands x = {.nin = 0};
    int op = r->kind == TOKEN_WORD ? op_find(r->text) : -1;
    if (op < 0) {
        fail(r, "an op");
        return;
    }
    const OpInfo *info = op_info((Op)op);
    n->op = (Op)op;
    if (!n->type && !op_is(n->op, F_EFFECT))
        fail_at(r, first, "a value needs a name and a type: name: type = %s(…)", info->spelling);
    next_token(r);
    parse_operands(r, &x, info);
    Span whole = span_join(first, r->span);
    whole.end = r->failed ? whole.end : r->span.begin;
    fill_attrs(r, &x, info, first);
    check_form(r, info, n->op, &x, first);
    parse_flags(r, n);
    n->span = read_span(r, whole);
    if (r->failed)
        return;
    n->in = x.in;
    n->nin = x.nin;
    n->param = x.param;
    n->version = (int)x.version;
    n->attrs = attrs_make(n->op, x.attr, info->attrs);
    check_type(r, n, first);
    if (!r->failed)
        check_given(r, n, first);
    if (!r->failed)
        resolve_names(r, n);
}

/* x: f32[N, 64] = relu(h) inside @0:12..20     or, of an effect that has no name,     report(x,
 * name=loss) */
static void parse_node(Reader *r)
{
    Node n = {.op = OP_CONST};
    Span first = r->span;
    Str name = NULL;
    const char *p = r->at;
    while (*p == ' ')
        p++;
    if (*p == ':') {
        name = r->text;
        if (r->kind == TOKEN_WORD)
            n.name = intern_n(r->names, name, base_length(name));
        next_token(r);
        need_mark(r, ":");
        n.type = read_type(r);
        need_mark(r, "=");
    }
    if (name && map_get(&r->values, name))
        fail_at(r, first, "a second value '%s'", name);
    parse_call(r, &n, first);
    need_line(r);
    if (r->failed)
        return;
    Node *made = graph_append(&n);
    if (name)
        map_put(r->arena, &r->values, name, made);
}

/* Nodes begin with "name:" or "op("; declarations have a second word there. */
static int begins_node(const Reader *r)
{
    const char *p = r->at;
    if (r->kind != TOKEN_WORD)
        return r->kind == TOKEN_VALUE;
    while (*p == ' ')
        p++;
    return *p == ':' || *p == '(';
}

void read_nodes(Reader *r, Graph *g)
{
    r->values = (Map){.room = 0};
    graph_open(g);
    while (begins_node(r))
        parse_node(r);
    graph_close();
}
