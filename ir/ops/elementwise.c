/* Types of element-wise ops: broadcasting as in NumPy, promotion of the operands' types. */
#include "ir/program.h"
#include "ir/shape.h"

TypeTable *types_now(void)
{
    return &graph_now()->program->types;
}

const Type *type_of(DType dtype, int rank, const Dim *const *dim)
{
    return type_make(types_now(), dtype, rank, dim);
}

const char *node_type_text(const Node *n)
{
    return n->type ? type_text(types_now(), n->type, graph_now()->arena) : "?";
}

const Type *shape_error(Code code, const char *format, ...)
{
    va_list args;
    Context context = graph_context((Context){.name = NULL});
    graph_context(context);
    va_start(args, format);
    Out o;
    out_init(&o, graph_now()->arena);
    out_vprintf(&o, format, args);
    va_end(args);
    error_at(graph_now()->program->diags, code, context.span, "%s", o.text);
    return NULL;
}

/* Broadcasts the shape of type into dim[0 … *rank); 0 if it does not fit. */
static int broadcast(const Dim **dim, int *rank, const Type *type)
{
    const Dim *one = dim_int(types_now(), 1);
    if (type->rank > *rank) {
        int shift = type->rank - *rank;
        for (int i = *rank - 1; i >= 0; i--)
            dim[i + shift] = dim[i];
        for (int i = 0; i < shift; i++)
            dim[i] = one;
        *rank = type->rank;
    }
    int shift = *rank - type->rank;
    for (int i = 0; i < type->rank; i++) {
        const Dim *have = dim[i + shift], *want = type->dim[i];
        if (have == one)
            dim[i + shift] = want;
        else if (want != one && want != have)
            return 0;
    }
    return 1;
}

const Type *shape_elementwise(Op op, Node *const *in, int nin)
{
    const Dim *dim[MAX_RANK];
    int rank = 0, first = op_is(op, F_CHOICE) ? 1 : 0;
    DType dtype = in[first]->type->dtype;
    for (int i = 0; i < nin; i++) {
        const Type *type = in[i]->type;
        if (!broadcast(dim, &rank, type))
            return shape_error(CODE_SHAPE, "the shapes of %s and %s do not broadcast in '%s'",
                               node_type_text(in[0]), node_type_text(in[i]), op_info(op)->spelling);
        if ((op_is(op, F_LOGIC) || i < first) && type->dtype != DT_BOOL)
            return shape_error(CODE_TYPE, "'%s' needs a bool here, found %s", op_info(op)->spelling,
                               node_type_text(in[i]));
        if (op_is(op, F_REALS) && !is_real(type->dtype))
            return shape_error(CODE_TYPE, "'%s' needs real numbers, found %s; write float(…)",
                               op_info(op)->spelling, node_type_text(in[i]));
        if (i >= first)
            dtype = dtype_promote(dtype, type->dtype);
    }
    return type_of(op_is(op, F_BOOL_OUT) ? DT_BOOL : dtype, rank, dim);
}
