/* Kernels against the interpreter. Random graphs of every row go through expand and fuse; their
 * kernels and launches are printed into one C file, which the C compiler of the system builds and
 * which is run on the same data as the interpreter:
 *
 *     strict   every result equals that of the interpreter bit for bit (a NaN is a NaN)
 *     fused    every result is within 4 times the interpreter's error bound of its exact value
 *
 * Data goes to the program in a file of buffers, in the order of the plan, and comes back the same
 * way.
 */
#include "check.h"
#include "codegen/kernel_print.h"
#include "ir/eval.h"
#include "passes/pass.h"
#include "rt_half.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRAPHS = 30, MAX_NODES = 26, KEEP = 3, SEED = 77, STEP = 5 };

typedef struct Suite {
    Arena arena, scratch;
    Names names;
    Sources sources;
    Diags diags;
    Program *program;
    Unit unit;
    Settings settings;
    uint64_t random;
    int64_t symbol; /* value of N */
    int in_place;   /* buffers that replace another */
} Suite;

static uint64_t next_random(Suite *s)
{
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    s->random ^= s->random << 17;
    return s->random;
}

static int pick(Suite *s, int n)
{
    return (int)(next_random(s) >> 33) % n;
}

/* ---- graphs ---- */

static const Dim *random_dim(Suite *s)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 10, 33, 64, 70};
    TypeTable *t = &s->program->types;
    return pick(s, 4) == 0 ? dim_symbol(t, 0) : dim_int(t, sizes[pick(s, 8)]);
}

static DType random_real(Suite *s)
{
    static const DType types[] = {DT_F32, DT_F32, DT_F16, DT_BF16};
    return types[pick(s, 4)];
}

static Node *new_input(Suite *s, Entry *e, const Type *type)
{
    EntryInput input = {.name = intern_printf(&s->names, "x%d", e->inputs.n), .type = type};
    Attr name = attr_str(input.name);
    vec_push(&s->arena, &e->inputs, input);
    Node *n = build_source(OP_INPUT, type, attrs_make(OP_INPUT, &name, 1), NULL, 0);
    n->name = input.name;
    return n;
}

static Node *random_input(Suite *s, Entry *e, DType dtype)
{
    const Dim *dim[3];
    int rank = pick(s, 4);
    for (int i = 0; i < rank; i++)
        dim[i] = random_dim(s);
    return new_input(s, e, type_make(&s->program->types, dtype, rank, dim));
}

/* An operand that broadcasts against x: of its shape, or with a dimension of 1. */
static Node *partner(Suite *s, Entry *e, Node **made, int count, Node *x, DType dtype)
{
    for (int tries = 0; tries < 6; tries++) {
        Node *y = made[pick(s, count)];
        if (y->type->dtype == dtype && same_shape(y->type, x->type))
            return y;
    }
    const Dim *dim[MAX_RANK];
    int drop = pick(s, 2) ? pick(s, x->type->rank + 1) : -1;
    for (int i = 0; i < x->type->rank; i++)
        dim[i] = i == drop ? dim_int(&s->program->types, 1) : x->type->dim[i];
    return new_input(s, e, type_make(&s->program->types, dtype, x->type->rank, dim));
}

static Node *random_elementwise(Suite *s, Entry *e, Node **made, int count, Node *x)
{
    static const Op ops[] = {
#define ELEM(id, ...) OP_##id,
#define OTHER(...)
#include "ir/ops.def"
#undef ELEM
#undef OTHER
    };
    Op op = ops[pick(s, (int)(sizeof ops / sizeof *ops))];
    const OpInfo *info = op_info(op);
    DType dtype = x->type->dtype;
    Node *in[3] = {x};
    Attr attrs[MAX_ATTRS];
    if (op_is(op, F_LOGIC)) {
        for (int i = 0; i < info->arity; i++)
            in[i] = build2(OP_LT, x, partner(s, e, made, count, x, dtype));
    } else {
        for (int i = 1; i < info->arity; i++)
            in[i] = partner(s, e, made, count, x, pick(s, 4) ? dtype : random_real(s));
    }
    if (op_is(op, F_CHOICE))
        in[0] = build2(OP_GT, x, in[1]);
    if (op_is(op, F_REALS) && !is_real(in[0]->type->dtype))
        in[0] = cast_to(x, DT_F32);
    for (int i = 0; i < info->attrs; i++)
        attrs[i] = attr_real(isfinite(info->attr[i].fallback) ? info->attr[i].fallback
                                                              : (i ? 1.5 : -0.75));
    return build(op, in, info->arity, attrs_make(op, attrs, info->attrs));
}

static Node *random_reduction(Suite *s, Node *x)
{
    static const Op ops[] = {OP_SUM, OP_MEAN, OP_MAXRED, OP_MINRED, OP_ARGMAX, OP_SUM};
    Op op = ops[pick(s, 6)];
    int64_t axes[MAX_RANK];
    int n = 0, rank = x->type->rank, first = pick(s, rank);
    if (op == OP_ARGMAX) {
        Attr axis = attr_int(first);
        return build(op, &x, 1, attrs_make(op, &axis, 1));
    }
    int last = first + pick(s, rank - first);
    for (int i = first; i <= last; i++)
        axes[n++] = i;
    if (op == OP_SUM)
        return sum_to(x, axes, n, pick(s, 2), pick(s, 2) ? DT_F32 : x->type->dtype);
    return reduce(op, x, axes, n, pick(s, 2));
}

static Node *random_view(Suite *s, Node *x)
{
    TypeTable *t = &s->program->types;
    int rank = x->type->rank, axis = pick(s, rank);
    const Dim *dim[MAX_RANK];
    int64_t order[MAX_RANK], size;
    switch (pick(s, 6)) {
    case 0:
        for (int i = 0; i < rank; i++)
            order[i] = (i + axis) % rank;
        return permute(x, order, rank);
    case 1: /* all in one dimension */
        dim[0] = type_count(t, x->type);
        return reshape(x, dim, 1);
    case 2: { /* two dimensions joined */
        int k = 0;
        for (int i = 0; i < rank; i++)
            if (i > 0 && i == axis)
                dim[k - 1] = dim_mul(t, dim[k - 1], x->type->dim[i]);
            else
                dim[k++] = x->type->dim[i];
        return reshape(x, dim, k);
    }
    case 3: /* a dimension more */
        dim[0] = dim_int(t, 3);
        for (int i = 0; i < rank; i++)
            dim[i + 1] = x->type->dim[i];
        return rank < 4 ? expand_to(x, dim, rank + 1) : x;
    case 4:
        if (dim_is_int(x->type->dim[axis], &size) && size > 2)
            return slice(x, axis, dim_int(t, 1), dim_int(t, size - 1));
        return x;
    default: {
        const Dim *around[] = {dim_int(t, 1), dim_int(t, 2)};
        Attr attrs[] = {attr_int(axis), attr_dims(around, 2)};
        return build(OP_PAD, &x, 1, attrs_make(OP_PAD, attrs, 2));
    }
    }
}

static Node *random_product(Suite *s, Entry *e, Node *x)
{
    int rank = x->type->rank, ta = pick(s, 2), tb = pick(s, 2);
    const Dim *dim[MAX_RANK], *k = x->type->dim[rank - (ta ? 2 : 1)], *n = random_dim(s);
    for (int i = 0; i < rank; i++)
        dim[i] = x->type->dim[i];
    dim[rank - (tb ? 1 : 2)] = k;
    dim[rank - (tb ? 2 : 1)] = n;
    DType dtype = pick(s, 4) ? x->type->dtype : random_real(s);
    Node *w = new_input(s, e, type_make(&s->program->types, dtype, rank, dim));
    return matmul(x, w, ta, tb);
}

/* Values that die where one of their shape is made: memplan lets it have their bytes. */
static Node *random_replaced(Suite *s, Entry *e, Node *x)
{
    int rank = x->type->rank;
    Node *first = softmax(OP_SOFTMAX, random_product(s, e, x), rank - 1);
    DType dtype = first->type->dtype;
    const Dim *dim[MAX_RANK], *k = random_dim(s);
    for (int i = 0; i < rank; i++)
        dim[i] = first->type->dim[i];
    dim[rank - 1] = k;
    Node *a = new_input(s, e, type_make(&s->program->types, dtype, rank, dim));
    dim[rank - 2] = k;
    dim[rank - 1] = first->type->dim[rank - 1];
    Node *b = new_input(s, e, type_make(&s->program->types, dtype, rank, dim));
    return build2(OP_MUL, matmul(a, b, 0, 0), first);
}

static Node *random_other(Suite *s, Entry *e, Node *x)
{
    TypeTable *t = &s->program->types;
    const Dim *dim[MAX_RANK];
    int rank = x->type->rank;
    switch (pick(s, 5)) {
    case 0: {
        Attr attrs[] = {attr_dims(x->type->dim, rank),
                        attr_str(intern_printf(&s->names, "draw#%d", pick(s, 2)))};
        Node *draw = build(pick(s, 2) ? OP_RAND : OP_RANDN, NULL, 0, attrs_make(OP_RAND, attrs, 2));
        return build3(OP_WHERE, build2(OP_LT, draw, constant(0.5, DT_F32)), x,
                      constant(0, x->type->dtype));
    }
    case 1: {
        Attr axis = attr_int(pick(s, rank));
        Node *in[] = {x, build1(OP_NEG, x), x};
        return build(OP_CONCAT, in, 1 + pick(s, 3), attrs_make(OP_CONCAT, &axis, 1));
    }
    case 2: { /* rows by index */
        dim[0] = random_dim(s);
        Node *index = new_input(s, e, type_make(t, DT_I32, 1, dim));
        e->inputs.at[e->inputs.n - 1].classes = dim_value(x->type->dim[0], &s->symbol);
        if (pick(s, 2)) /* some lie outside: rows of zeros */
            index = build2(OP_SUB, index, constant(1, DT_I32));
        Node *in[] = {x, index};
        return build(OP_GATHER, in, 2, NULL);
    }
    case 3: {
        const Dim *rows = dim_int(t, 40);
        Attr attr = attr_dims(&rows, 1);
        dim[0] = x->type->dim[0];
        Node *index = new_input(s, e, type_make(t, DT_I32, 1, dim));
        e->inputs.at[e->inputs.n - 1].classes = 40;
        Node *in[] = {x, index};
        return build(OP_SCATTER, in, 2, attrs_make(OP_SCATTER, &attr, 1));
    }
    default: {
        Node *at = iota(x->type->dim, rank, pick(s, rank));
        return build3(OP_WHERE, build2(OP_LT, at, constant(4, DT_I32)), x,
                      constant(0.25, x->type->dtype));
    }
    }
}

static Node *random_node(Suite *s, Entry *e, Node **made, int count)
{
    Node *x = made[pick(s, 3) ? count - 1 - pick(s, count < 4 ? count : 4) : pick(s, count)];
    int rank = x->type->rank;
    if (!is_real(x->type->dtype))
        return cast_to(x, random_real(s));
    switch (pick(s, rank ? 13 : 5)) {
    case 0:
        return cast_because(x, random_real(s), "policy");
    case 1:
        if (pick(s, 4))
            return cast_to(x, random_real(s));
        { /* a float beyond the integers has no value there */
            Attr limits[] = {attr_real(-1000), attr_real(1000)};
            x = build(OP_CLAMP, &x, 1, attrs_make(OP_CLAMP, limits, 2));
            x = build3(OP_WHERE, build2(OP_EQ, x, x), x, constant(0, x->type->dtype));
            return cast_to(x, DT_I32);
        }
    case 5:
    case 6:
        return random_reduction(s, x);
    case 7:
        return random_view(s, x);
    case 8:
        return rank >= 2 && rank <= 4 ? random_product(s, e, x) : x;
    case 9:
        return softmax(pick(s, 2) ? OP_SOFTMAX : OP_LOG_SOFTMAX, x, rank - 1);
    case 10:
        return random_other(s, e, x);
    case 11:
        return rank >= 2 && rank <= 4 ? random_replaced(s, e, x) : x;
    default:
        return random_elementwise(s, e, made, count, x);
    }
}

static void add_result(Suite *s, Entry *e, Node *n)
{
    Attr name = attr_str(intern_printf(&s->names, "r%d", e->results.n));
    vec_push(&s->arena, &e->results, name.s);
    build(OP_RESULT, &n, 1, attrs_make(OP_RESULT, &name, 1));
}

static void random_graph(Suite *s, int index)
{
    Entry *e = new (&s->arena, Entry);
    Node *made[4 * MAX_NODES];
    int count = 0, nodes = 5 + pick(s, MAX_NODES - 5);
    e->kind = ENTRY_INFER;
    e->name = intern_printf(&s->names, "g%d", index);
    e->index = index;
    e->segments = 1;
    e->segment = new_array(&s->arena, Graph *, 1);
    e->segment[0] = graph_make(s->program);
    graph_open(e->segment[0]);
    made[count++] = random_input(s, e, random_real(s));
    made[count++] = random_input(s, e, random_real(s));
    while (count < nodes) {
        Node *n = random_node(s, e, made, count);
        const Dim *size = n->type ? type_count(&s->program->types, n->type) : NULL;
        int64_t most = size ? dim_max(&s->program->types, size) : -1;
        if (most > 0 && most < 60000 && n->type->rank <= 4)
            made[count++] = n;
        else
            made[count++] = random_input(s, e, random_real(s));
        if (s->diags.errors) {
            Out o;
            out_init(&o, &s->arena);
            diags_print(&s->diags, &o, 0);
            fprintf(stderr, "%s", o.text);
            exit(1);
        }
    }
    for (int i = 0; i < KEEP; i++)
        add_result(s, e, made[count - 1 - (i ? pick(s, count) : 0)]);
    graph_close();
    vec_push(&s->arena, &s->program->entries, e);
}

/* ---- data ---- */

static void store_element(DType dtype, void *data, int64_t at, double value)
{
    switch (dtype) {
    case DT_F16:
        ((uint16_t *)data)[at] = rt_f16_from_f32((float)value);
        break;
    case DT_BF16:
        ((uint16_t *)data)[at] = rt_bf16_from_f32((float)value);
        break;
    case DT_I32:
        ((int32_t *)data)[at] = (int32_t)value;
        break;
    case DT_BOOL:
        ((uint8_t *)data)[at] = value != 0;
        break;
    default:
        ((float *)data)[at] = (float)value;
    }
}

static double load_element(DType dtype, const void *data, int64_t at)
{
    switch (dtype) {
    case DT_F16:
        return (double)rt_f32_from_f16(((const uint16_t *)data)[at]);
    case DT_BF16:
        return (double)rt_f32_from_bf16(((const uint16_t *)data)[at]);
    case DT_I32:
        return ((const int32_t *)data)[at];
    case DT_BOOL:
        return ((const uint8_t *)data)[at];
    default:
        return (double)((const float *)data)[at];
    }
}

static int64_t count_of(Suite *s, const Type *type)
{
    return dim_value(type_count(&s->program->types, type), &s->symbol);
}

/* The same values for the interpreter and the program: a function of input and element. */
static double input_value(Suite *s, const Entry *e, int input, int64_t at)
{
    uint64_t hash = ((uint64_t)e->index * 131 + (uint64_t)input) * 0x9e3779b97f4a7c15u +
                    (uint64_t)at * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 29) * 0x94d049bb133111ebu;
    const EntryInput *x = &e->inputs.at[input];
    if (x->classes)
        return (double)(hash >> 40) -
               floor((double)(hash >> 40) / (double)x->classes) * (double)x->classes;
    double value = (double)(int64_t)(hash >> 11) * 0x1p-52 - 1;
    (void)s;
    return dtype_round(x->type->dtype, value * (hash % 7 == 0 ? 40 : 2));
}

static Suite *suite_now;
static const Entry *entry_now;

static void give_source(void *data, const Node *n, Tensor *out)
{
    Suite *s = data;
    int k = 0;
    while (entry_now->inputs.at[k].name != n->attrs->at[0].s)
        k++;
    for (int64_t i = 0; i < out->count; i++) {
        double value = input_value(s, entry_now, k, i);
        if (out->i)
            out->i[i] = (int64_t)value;
        else if (out->f)
            out->f[i] = (float)value;
        else
            out->d[i] = value;
    }
}

/* ---- the program ---- */

static void print_entry(Out *o, Suite *s, const EntryPlan *plan)
{
    out_line(o, "static void run_%s(void **buffer, int64_t N, RtScratch scratch)",
             plan->entry->name);
    out_line(o, "{");
    out_indent(o, 1);
    out_line(o, "const uint64_t seed = %d;", SEED);
    out_line(o, "const uint32_t step = %d;", STEP);
    out_line(o, "(void)buffer, (void)N, (void)scratch, (void)seed, (void)step;");
    for (int i = 0; i < plan->buffers.n; i++) {
        const Buffer *b = plan->buffers.at[i], *first = b;
        while (first->over)
            first = first->over;
        s->in_place += first != b;
        out_line(o, "%s *%s = buffer[%d];", dialect_c.type[b->type->dtype].storage, b->name,
                 first == b ? i : first->index);
    }
    for (int i = 0; i < plan->launches.n; i++)
        launch_print(o, s->program, plan->launches.at[i], &dialect_c);
    out_indent(o, -1);
    out_line(o, "}\n");
}

static void print_main(Out *o, Suite *s)
{
    out_line(o, "int main(int argc, char **argv)");
    out_line(o, "{");
    out_indent(o, 1);
    out_line(o, "static void *buffer[1000];");
    out_line(o, "RtScratch scratch = {rt_alloc_pages(1 << 28), 1 << 28};");
    out_line(o, "FILE *in = fopen(argv[1], \"rb\"), *out = fopen(argv[2], \"wb\");");
    out_line(o, "if (argc != 3 || !in || !out)\n    return 3;");
    for (int e = 0; e < s->program->entries.n; e++) {
        const EntryPlan *plan = &s->unit.plan->entry[e];
        for (int i = 0; i < plan->buffers.n; i++) {
            const Buffer *b = plan->buffers.at[i];
            long long bytes = (long long)count_of(s, b->type) * dtype_bytes(b->type->dtype);
            /* exactly as large as it must be, so that a sanitizer sees what goes beyond */
            if (b->over) {
                out_line(o, "buffer[%d] = NULL;", i);
                continue;
            }
            out_line(o, "buffer[%d] = malloc(%lld);", i, bytes ? bytes : 1);
            out_line(o, "memset(buffer[%d], 0xa5, %lld);", i, bytes);
            if (b->kind == BUFFER_INPUT)
                out_line(o, "if (fread(buffer[%d], 1, %lld, in) != %lld)\n    return 4;", i, bytes,
                         bytes);
        }
        out_line(o, "run_%s(buffer, %lld, scratch);", plan->entry->name, (long long)s->symbol);
        for (int i = 0; i < plan->buffers.n; i++) {
            const Buffer *b = plan->buffers.at[i];
            if (b->kind == BUFFER_RESULT)
                out_line(o, "fwrite(buffer[%d], 1, %lld, out);", i,
                         (long long)count_of(s, b->type) * dtype_bytes(b->type->dtype));
            out_line(o, "free(buffer[%d]);", i);
        }
    }
    out_line(o, "return fclose(out) ? 5 : 0;");
    out_indent(o, -1);
    out_line(o, "}");
}

static void write_program(Suite *s, const char *path)
{
    Out o;
    FILE *f = fopen(path, "w");
    out_init(&o, &s->arena);
    out_text(&o, "#define _GNU_SOURCE\n#include \"rt_gemm.h\"\n#include \"rt_math.h\"\n"
                 "#include \"rt_rng.h\"\n#include \"rt_sum.h\"\n\n");
    for (int i = 0; i < s->unit.plan->kernels.n; i++) {
        const Kernel *k = s->unit.plan->kernels.at[i];
        const char *fault = kernel_check(k, &s->program->types, &s->arena);
        if (fault)
            fprintf(stderr, "%s: %s\n", k->name, fault);
        CHECK(!fault);
        kernel_print(&o, s->program, k, &dialect_c);
        out_text(&o, "\n");
    }
    for (int e = 0; e < s->program->entries.n; e++)
        print_entry(&o, s, &s->unit.plan->entry[e]);
    print_main(&o, s);
    CHECK(f && fwrite(o.text, 1, o.size, f) == o.size);
    if (f)
        fclose(f);
    int columns = 0, longest = 0;
    for (size_t i = 0; i < o.size; i++) {
        columns = o.text[i] == '\n' ? 0 : columns + 1;
        longest = columns > longest ? columns : longest;
    }
    CHECK(longest <= 100);
}

static void write_data(Suite *s, const char *path)
{
    FILE *f = fopen(path, "wb");
    for (int e = 0; f && e < s->program->entries.n; e++) {
        const EntryPlan *plan = &s->unit.plan->entry[e];
        for (int i = 0; i < plan->buffers.n; i++) {
            const Buffer *b = plan->buffers.at[i];
            int64_t count = count_of(s, b->type), bytes = count * dtype_bytes(b->type->dtype);
            if (b->kind != BUFFER_INPUT)
                continue;
            void *data = arena_alloc(&s->scratch, (size_t)bytes + 1);
            for (int64_t k = 0; k < count; k++)
                store_element(b->type->dtype, data, k, input_value(s, plan->entry, b->index, k));
            fwrite(data, 1, (size_t)bytes, f);
        }
    }
    if (f)
        fclose(f);
}

/* ---- comparison ---- */

static int is_equal(DType dtype, float wanted, double found)
{
    float f = (float)found;
    (void)dtype;
    if (isnan(wanted) || isnan(f))
        return isnan(wanted) && isnan(f);
    return memcmp(&wanted, &f, sizeof f) == 0;
}

static int compare_result(Suite *s, const Buffer *b, const Tensor *wanted, const void *found)
{
    for (int64_t i = 0; i < wanted->count; i++) {
        double x = load_element(b->type->dtype, found, i);
        int equal;
        if (s->settings.strict) {
            equal = wanted->i ? (double)(int32_t)wanted->i[i] == x
                              : is_equal(b->type->dtype, wanted->f[i], x);
        } else if (wanted->i) {
            equal = wanted->bound[i] > 0 || (double)(int32_t)wanted->i[i] == x;
        } else {
            double bound =
                4 * (wanted->bound[i] + dtype_unit(b->type->dtype) * fabs(wanted->d[i])) + 0x1p-24;
            equal = !isfinite(bound) || !isfinite(wanted->d[i]) ||
                    fabs(wanted->d[i]) > dtype_max(b->type->dtype) / 2 ||
                    fabs(wanted->d[i] - x) <= bound;
        }
        check_count++;
        if (equal)
            continue;
        fprintf(stderr, "%s %s[%lld]: wanted %.9g, found %.9g (bound %g)\n", entry_now->name,
                b->name, (long long)i,
                wanted->i   ? (double)wanted->i[i]
                : wanted->f ? (double)wanted->f[i]
                            : wanted->d[i],
                x, wanted->bound ? wanted->bound[i] : 0);
        return 1;
    }
    return 0;
}

static void compare(Suite *s, const char *path)
{
    FILE *f = fopen(path, "rb");
    CHECK(f != NULL);
    for (int e = 0; f && e < s->program->entries.n; e++) {
        const EntryPlan *plan = &s->unit.plan->entry[e];
        entry_now = plan->entry;
        Eval eval = {.program = s->program,
                     .arena = &s->scratch,
                     .mode = s->settings.strict ? EVAL_STRICT : EVAL_EXACT,
                     .symbols = &s->symbol,
                     .seed = SEED,
                     .step = STEP,
                     .source = give_source,
                     .data = s};
        eval_graph(&eval, plan->entry->segment[0]);
        for (int i = 0; i < plan->buffers.n; i++) {
            const Buffer *b = plan->buffers.at[i];
            if (b->kind != BUFFER_RESULT)
                continue;
            int64_t bytes = count_of(s, b->type) * dtype_bytes(b->type->dtype);
            void *found = arena_alloc(&s->scratch, (size_t)bytes + 1);
            CHECK(fread(found, 1, (size_t)bytes, f) == (size_t)bytes);
            for (Node *n = plan->entry->segment[0]->first; n; n = n->next)
                if (n->op == OP_RESULT && n->attrs->at[0].s == plan->entry->results.at[b->index] &&
                    compare_result(s, b, &eval.value[n->id], found))
                    check_failed++;
        }
        arena_reset(&s->scratch);
    }
    if (f)
        fclose(f);
}

static int run(const char *command)
{
    int status = system(command);
    if (status)
        fprintf(stderr, "failed: %s\n", command);
    return status;
}

static void run_suite(uint64_t seed, int graphs, int strict, int64_t symbol, const char *compiler)
{
    static Suite suite;
    Suite *s = suite_now = &suite;
    char folder[] = "/tmp/ampc-kernels-XXXXXX";
    memset(s, 0, sizeof *s);
    s->random = seed * 0x9e3779b97f4a7c15u + 1;
    s->symbol = symbol;
    names_init(&s->names, &s->arena);
    sources_init(&s->sources, &s->arena);
    diags_init(&s->diags, &s->arena, &s->sources);
    s->program = program_make(&s->arena, &s->names, &s->diags);
    s->program->props = (Properties){.half = DT_BF16, .strict = strict};
    s->settings.strict = strict;
    s->unit = (Unit){.arena = &s->arena,
                     .scratch = &s->scratch,
                     .names = &s->names,
                     .diags = &s->diags,
                     .settings = &s->settings,
                     .program = s->program};
    symbol_add(&s->program->types, intern(&s->names, "N"), 1, 64);
    for (int i = 0; i < graphs; i++)
        random_graph(s, i);
    pass_expand(&s->unit);
    pass_fuse(&s->unit);
    pass_memplan(&s->unit);
    arena_reset(&s->scratch);
    CHECK(mkdtemp(folder) != NULL);
    const char *at = folder;
    write_program(s, arena_printf(&s->arena, "%s/k.c", at));
    write_data(s, arena_printf(&s->arena, "%s/in", at));
    CHECK_EQ(run(arena_printf(&s->arena, "%s -I%s -o %s/k %s/k.c -lm", compiler, RUNTIME_FOLDER, at,
                              at)),
             0);
    if (!check_failed)
        CHECK_EQ(run(arena_printf(&s->arena, "%s/k %s/in %s/out", at, at, at)), 0);
    if (!check_failed)
        compare(s, arena_printf(&s->arena, "%s/out", at));
    CHECK(s->in_place > 0);
    if (!check_failed && !getenv("AMPC_KEEP"))
        run(arena_printf(&s->arena, "rm -r %s", at));
    else
        fprintf(stderr, "left in %s\n", at);
    arena_free(&s->arena);
    arena_free(&s->scratch);
}

#define WARNINGS " -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Werror -Wno-unused-function"

int main(int argc, char **argv)
{
    const char *compiler = "cc -O1 -fopenmp -DRT_NO_CLONES" WARNINGS;
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int graphs = argc > 2 ? atoi(argv[2]) : GRAPHS;
    if (argc > 3)
        compiler = argv[3];
    run_suite(first, graphs, 1, 7, compiler);
    run_suite(first + 1, graphs, 1, 64, compiler);
    run_suite(first + 2, graphs, 0, 7, compiler);
    return check_done();
}
