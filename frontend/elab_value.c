/* Values and what is said about them: constructors, conversions with their errors, texts for
 * people. */
#include "frontend/elab_core.h"
#include <math.h>
#include <string.h>

Diag *elab_error(Elab *e, Code code, Span span, const char *format, ...)
{
    for (Diag *d = e->diags->first; d; d = d->next)
        if (d->code == code && d->severity == ERROR && d->span.file == span.file &&
            d->span.begin == span.begin && d->span.end == span.end)
            return NULL;
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(e->arena, format, args);
    va_end(args);
    return error_at(e->diags, code, span, "%s", text);
}

Value unsupported(Elab *e, Span span, const char *what)
{
    elab_error(e, CODE_UNSUPPORTED, span, "not supported yet: %s", what);
    return value_error();
}

void unknown_name(Elab *e, Code code, Span span, const char *text, const char *name,
                  const Candidates *candidates)
{
    const char *near = nearest_name(name, candidates->at, candidates->n);
    if (near) {
        Diag *d = elab_error(e, code, span, "%s; did you mean '%s'?", text, near);
        if (d && span.end - span.begin == strlen(name))
            fix_at(d, span, near);
    } else {
        elab_error(e, code, span, "%s", text);
    }
}

const char *a_word(Elab *e, ItemKind kind)
{
    const char *word = item_word(kind);
    return arena_printf(e->arena, "%s %s", strchr("aeio", word[0]) ? "an" : "a", word);
}

const char *expr_text(Elab *e, const Expr *x)
{
    Out o;
    out_init(&o, e->arena);
    expr_print(x, &o);
    return o.text;
}

const char *type_expr_text(Elab *e, const TypeExpr *t)
{
    Out o;
    out_init(&o, e->arena);
    type_expr_print(t, &o);
    return o.text;
}

const char *tensor_text(Elab *e, const Node *n)
{
    return n->type ? type_text(e->types, n->type, e->arena) : "?";
}

static const char *runtime_text(OptionKind kind)
{
    switch (kind) {
    case OPTION_INT:
    case OPTION_REAL:
        return "a number known only when the program runs";
    case OPTION_BOOL:
        return "a bool known only when the program runs";
    case OPTION_STRING:
        return "a text known only when the program runs";
    }
    return "";
}

const char *value_text(Elab *e, const Value *v)
{
    switch (v->kind) {
    case VAL_NONE:
        return "nothing";
    case VAL_ERROR:
        return "?";
    case VAL_INT:
        return arena_printf(e->arena, "the integer %lld", (long long)v->i);
    case VAL_REAL:
        return arena_printf(e->arena, "the number %s", double_text(e->arena, v->r));
    case VAL_BOOL:
        return v->i ? "true" : "false";
    case VAL_STRING:
        return "a string";
    case VAL_DIM:
        return arena_printf(e->arena, "the dimension %s", dim_text(e->types, v->dim, e->arena));
    case VAL_RUNTIME:
        return runtime_text(v->runtime_kind);
    case VAL_TENSOR:
        return tensor_text(e, v->node);
    case VAL_TUPLE:
        return arena_printf(e->arena, "%d values", v->n);
    case VAL_LIST:
        return "a list";
    case VAL_DIMS:
        return "dimensions";
    case VAL_LAYER:
        return arena_printf(e->arena, "'%s', which is to be called", v->layer->name);
    case VAL_LAYERS:
        return "an array of layers";
    }
    return "";
}

Value value_error(void)
{
    return (Value){.kind = VAL_ERROR};
}

Value value_int(int64_t i)
{
    return (Value){.kind = VAL_INT, .i = i};
}

Value value_real(double r)
{
    return (Value){.kind = VAL_REAL, .r = r};
}

Value value_bool(bool b)
{
    return (Value){.kind = VAL_BOOL, .i = b};
}

Value value_string(Str s)
{
    return (Value){.kind = VAL_STRING, .s = s};
}

Value value_dim(const Dim *d)
{
    int64_t i;
    if (dim_is_int(d, &i))
        return value_int(i);
    return (Value){.kind = VAL_DIM, .dim = d};
}

Value value_node(Node *n)
{
    if (!n->type)
        return value_error();
    return (Value){.kind = VAL_TENSOR, .node = n};
}

Value value_runtime(Scalar *tree, OptionKind kind)
{
    return (Value){.kind = VAL_RUNTIME, .runtime_kind = kind, .tree = tree};
}

Scalar *scalar_int(Elab *e, int64_t i)
{
    Scalar *s = new (e->arena, Scalar);
    s->kind = S_INT;
    s->i = i;
    return s;
}

Scalar *scalar_real(Elab *e, double r)
{
    Scalar *s = new (e->arena, Scalar);
    s->kind = S_REAL;
    s->r = r;
    return s;
}

/* Arithmetic on options inside a tensor expression: the same arithmetic on 0-d tensors. */
static Node *runtime_tensor(Elab *e, const Scalar *s, Span span)
{
    static const struct {
        const char *spelling;
        Op op;
    } operators[] = {{"+", OP_ADD}, {"-", OP_SUB}, {"*", OP_MUL},  {"/", OP_DIV},
                     {"==", OP_EQ}, {"!=", OP_NE}, {"<", OP_LT},   {"<=", OP_LE},
                     {">", OP_GT},  {">=", OP_GE}, {"&&", OP_AND}, {"||", OP_OR}};
    switch (s->kind) {
    case S_INT:
    case S_BOOL:
        return constant((double)s->i, DT_FLOAT);
    case S_REAL:
        return constant(s->r, DT_FLOAT);
    case S_OPTION: {
        const Option *o = e->program->options.at[s->i];
        if (o->kind == OPTION_STRING)
            break;
        Attr name = attr_str(o->name);
        Node *n = build_source(OP_OPTION, type_scalar(e->types, DT_FLOAT),
                               attrs_make(OP_OPTION, &name, 1), NULL, 0);
        return o->kind == OPTION_BOOL ? build2(OP_NE, n, constant(0, DT_FLOAT)) : n;
    }
    case S_UNARY:
        return build1(s->s[0] == '-' ? OP_NEG : OP_NOT, runtime_tensor(e, s->a, span));
    case S_BINARY:
        for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
            if (!strcmp(operators[i].spelling, s->s))
                return build2(operators[i].op, runtime_tensor(e, s->a, span),
                              runtime_tensor(e, s->b, span));
        break;
    case S_CALL: {
        int op = op_find(s->s);
        if (op < 0 || !op_info((Op)op)->elementwise)
            break;
        Node *a = runtime_tensor(e, s->a, span);
        return s->b ? build2((Op)op, a, runtime_tensor(e, s->b, span)) : build1((Op)op, a);
    }
    case S_STRING:
    case S_COLUMN:
        break;
    }
    elab_error(e, CODE_TYPE, span, "this cannot be computed with tensors");
    return error_node();
}

/* A run-time dimension as a number: a sum of as many ones. */
static Node *dim_tensor(const Dim *d)
{
    const int64_t axis = 0;
    return reduce(OP_SUM, expand_to(constant(1, DT_FLOAT), &d, 1), &axis, 1, 0);
}

Node *as_tensor(Elab *e, Value v, Span span, DType peer)
{
    DType dtype = peer;
    if (peer == DT_NONE || (peer == DT_BOOL && v.kind != VAL_BOOL) ||
        (v.kind == VAL_REAL && !is_real(peer)))
        dtype = DT_FLOAT;
    switch (v.kind) {
    case VAL_ERROR:
        return error_node();
    case VAL_TENSOR:
        return v.node;
    case VAL_INT:
        return constant((double)v.i, dtype);
    case VAL_REAL:
        return constant(v.r, dtype);
    case VAL_BOOL:
        return constant((double)v.i, DT_BOOL);
    case VAL_DIM:
        return dim_tensor(v.dim);
    case VAL_RUNTIME:
        return runtime_tensor(e, v.tree, span);
    default:
        elab_error(e, CODE_TYPE, span, "expected a tensor, found %s", value_text(e, &v));
        return error_node();
    }
}

/* The first option that the number depends on. */
static const Option *option_in(Elab *e, const Scalar *s)
{
    if (!s)
        return NULL;
    if (s->kind == S_OPTION)
        return e->program->options.at[s->i];
    const Option *found = option_in(e, s->a);
    return found ? found : option_in(e, s->b);
}

/* Says that the value is not what is wanted; options get the reason. */
static bool unwanted(Elab *e, Value v, Span span, const char *what, const char *wanted)
{
    if (v.kind == VAL_ERROR)
        return false;
    if (v.kind == VAL_RUNTIME) {
        const Option *o = option_in(e, v.tree);
        Diag *d = elab_error(e, CODE_TYPE, span,
                             "%s must be known when compiling, options are known only when the "
                             "program runs; use a const",
                             what);
        if (d && o)
            note_at(d, o->span, "'%s' is an option, declared here", o->name);
    } else
        elab_error(e, CODE_TYPE, span, "%s must be %s, found %s", what, wanted, value_text(e, &v));
    return false;
}

const Dim *as_dim(Elab *e, Value v, Span span, const char *what)
{
    if (v.kind == VAL_INT)
        return dim_int(e->types, v.i);
    if (v.kind == VAL_DIM)
        return v.dim;
    unwanted(e, v, span, what, "an integer");
    return NULL;
}

bool want_int(Elab *e, Value v, Span span, const char *what, int64_t *out)
{
    if (v.kind != VAL_INT)
        return unwanted(e, v, span, what, "an integer");
    *out = v.i;
    return true;
}

bool want_real(Elab *e, Value v, Span span, const char *what, double *out)
{
    if (v.kind != VAL_INT && v.kind != VAL_REAL)
        return unwanted(e, v, span, what, "a number");
    *out = v.kind == VAL_INT ? (double)v.i : v.r;
    return true;
}

bool want_bool(Elab *e, Value v, Span span, const char *what, bool *out)
{
    if (v.kind != VAL_BOOL)
        return unwanted(e, v, span, what, "true or false");
    *out = v.i != 0;
    return true;
}

bool want_string(Elab *e, Value v, Span span, const char *what, Str *out)
{
    if (v.kind != VAL_STRING)
        return unwanted(e, v, span, what, "a string");
    *out = v.s;
    return true;
}

Scalar *want_scalar(Elab *e, Value v, Span span, const char *what)
{
    Scalar *s = new (e->arena, Scalar);
    s->span = span;
    switch (v.kind) {
    case VAL_INT:
        s->kind = S_INT;
        s->i = v.i;
        return s;
    case VAL_REAL:
        s->kind = S_REAL;
        s->r = v.r;
        return s;
    case VAL_BOOL:
        s->kind = S_BOOL;
        s->i = v.i;
        return s;
    case VAL_STRING:
        s->kind = S_STRING;
        s->s = v.s;
        return s;
    case VAL_RUNTIME:
        return v.tree;
    case VAL_ERROR:
        return NULL;
    default:
        elab_error(e, CODE_TYPE, span, "%s must be a number, found %s", what, value_text(e, &v));
        return NULL;
    }
}
