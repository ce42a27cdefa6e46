/* Prints what the emitted program keeps: its options, its state, the table of its weights, and the
 * functions that make, free and list them.
 */
#include "codegen/host.h"
#include "rt_scaler.h"
#include <assert.h>
#include <string.h>

/* ---- options ---- */

static const char *option_type(OptionKind kind)
{
    switch (kind) {
    case OPTION_INT:
        return "int64_t ";
    case OPTION_REAL:
        return "double ";
    case OPTION_BOOL:
        return "int ";
    case OPTION_STRING:
        return "const char *";
    }
    return "";
}

void print_options(Host *h)
{
    Program *p = h->program;
    if (!p->options.n)
        return;
    out_text(h->o, "/* What the command line, or the caller, decides. */\n");
    out_text(h->o, "typedef struct Options {\n");
    for (int i = 0; i < p->options.n; i++) {
        const Option *x = p->options.at[i];
        const char *field =
            arena_printf(h->arena, "%s%s;", option_type(x->kind), option_name(h, x->name));
        out_line(h->o, x->doc ? "    %-24s /* %s */" : "    %s", field, x->doc ? x->doc : "");
    }
    out_text(h->o, "} Options;\n\n");
}

/* ---- the state ---- */

static void field(Host *h, const char *declaration, const char *comment)
{
    out_line(h->o, comment ? "%-*s /* %s */" : "%-*s", comment ? 44 - 4 * h->o->depth : 0,
             declaration, comment);
}

static const char *halves(const Pool *pool)
{
    return dtype_info[pool->copy].name;
}

/* "uint16_t *copy, *gradient;" when they have one type, else a line each. */
static void print_pool_fields(Host *h, const Pool *pool)
{
    const char *x = pool->suffix, *weight = c_type(h, pool->weight);
    const char *what = pool->copy != DT_NONE    ? "masters"
                       : pool->weight == DT_F32 ? "weights"
                                                : dtype_info[pool->weight].name;
    field(h, arena_printf(h->arena, "%s *weight%s;", weight, x), what);
    if (pool->copy != DT_NONE && pool->copy == pool->gradient) {
        field(h, arena_printf(h->arena, "%s *copy%s, *gradient%s;", c_type(h, pool->copy), x, x),
              halves(pool));
    } else {
        if (pool->copy != DT_NONE)
            field(h, arena_printf(h->arena, "%s *copy%s;", c_type(h, pool->copy), x), halves(pool));
        if (pool->gradient != DT_NONE)
            field(h, arena_printf(h->arena, "%s *gradient%s;", c_type(h, pool->gradient), x),
                  dtype_info[pool->gradient].name);
    }
    if (pool->gradient == DT_NONE || !pool->optimizer)
        return;
    const OptimInfo *info = optim_info(pool->optimizer->kind);
    for (int i = 0; i < info->states; i++)
        out_printf(h->o, "%s*%s%s%s", i ? ", " : "float ", info->state[i], x,
                   i + 1 == info->states ? ";\n" : "");
    if (optim_derives(info, "trust"))
        field(h, arena_printf(h->arena, "float *direction%s;", x), "of this step");
}

/* Is the norm of its gradients computed? */
int has_norm(const Host *h, const Optimizer *o)
{
    return is_checked(h, o) || (o->clip_kind && !strcmp(o->clip_kind, "norm"));
}

static void print_optimizer_fields(Host *h, const Optimizer *o)
{
    out_line(h->o, "struct { /* %s */", optim_info(o->kind)->name);
    out_indent(h->o, 1);
    for (int i = 0; i < h->pools.n; i++)
        if (h->pools.at[i]->optimizer == o)
            print_pool_fields(h, h->pools.at[i]);
    field(h, "int64_t step;", "updates taken");
    if (optim_derives(optim_info(o->kind), "bc1"))
        field(h, "double beta1_pow, beta2_pow;", "beta1 and beta2 to the power of step");
    field(h, has_norm(h, o) ? "double lr, grad_norm;" : "double lr;", "of the last step");
    out_indent(h->o, -1);
    out_line(h->o, "} %s;", member(h, o, o->name));
}

static void print_fixed_fields(Host *h)
{
    int any = 0;
    for (int i = 0; i < h->pools.n; i++)
        any |= !h->pools.at[i]->optimizer;
    if (!any)
        return;
    out_line(h->o, "struct { /* what no optimizer steps on */");
    out_indent(h->o, 1);
    for (int i = 0; i < h->pools.n; i++)
        if (!h->pools.at[i]->optimizer)
            print_pool_fields(h, h->pools.at[i]);
    out_indent(h->o, -1);
    out_line(h->o, "} fixed;");
}

static void print_entry_fields(Host *h, const Entry *e)
{
    if (e->kind == ENTRY_INFER || (e->kind == ENTRY_EVAL && !e->reports.n))
        return;
    out_line(h->o, "struct { /* %s %s */", e->kind == ENTRY_TRAIN ? "train" : "eval", e->name);
    out_indent(h->o, 1);
    if (e->kind == ENTRY_TRAIN) {
        field(h, "int64_t step, steps;", "attempted, planned in all");
        field(h, "int64_t epoch, row;", "where the next step begins");
        field(h, "int64_t skipped;", "steps that an optimizer skipped");
    }
    for (int i = 0; i < e->reports.n; i++)
        out_printf(h->o, "%s%s%s", i ? ", " : "float ", report_name(h, e->reports.at[i]),
                   i + 1 == e->reports.n ? ";\n" : "");
    out_indent(h->o, -1);
    out_line(h->o, "} %s;", member(h, e, e->name));
}

/* Does any launch name this scaler? */
int is_scaler_used(const Host *h, const Scaler *s)
{
    for (int i = 0; i < h->program->entries.n; i++) {
        const EntryPlan *e = &h->plan->entry[i];
        for (int k = 0; k < e->launches.n; k++) {
            const Launch *l = e->launches.at[k];
            if (l->kind == LAUNCH_UPDATE &&
                program_scaler(h->program, l->update->attrs->at[1].s) == s)
                return 1;
        }
        for (int k = 0; k < e->buffers.n; k++)
            if (e->buffers.at[k]->kind == BUFFER_SCALE && e->buffers.at[k]->index == s->index)
                return 1;
    }
    return 0;
}

static int has_products(const Host *h)
{
    for (int i = 0; i < h->program->entries.n; i++)
        for (int k = 0; k < h->plan->entry[i].launches.n; k++)
            if (h->plan->entry[i].launches.at[k]->kind == LAUNCH_PRODUCT)
                return 1;
    return 0;
}

static int needs_chunks(const Host *h, const Optimizer *o)
{
    return has_norm(h, o) || optim_derives(optim_info(o->kind), "trust");
}

/* The most chunks of 4096 that a norm is added from. */
static int64_t most_chunks(const Host *h)
{
    int64_t most = 0;
    for (int i = 0; i < h->pools.n; i++) {
        const Pool *pool = h->pools.at[i];
        int64_t chunks = (pool->size + 4095) / 4096;
        if (pool->optimizer && pool->gradient != DT_NONE && needs_chunks(h, pool->optimizer) &&
            chunks > most)
            most = chunks;
    }
    return most;
}

void print_state(Host *h)
{
    Program *p = h->program;
    out_text(h->o,
             "/* Everything that outlives a step. One block of memory holds the buffers. */\n");
    out_text(h->o, "typedef struct State {\n");
    out_indent(h->o, 1);
    if (p->options.n)
        out_line(h->o, "Options option;");
    field(h, "uint64_t seed;", NULL);
    field(h, "int threads;", NULL);
    field(h, "RtBlock block;", NULL);
    for (int i = 0; i < p->optimizers.n; i++)
        print_optimizer_fields(h, p->optimizers.at[i]);
    print_fixed_fields(h);
    for (int i = 0; i < p->scalers.n; i++)
        if (is_scaler_used(h, p->scalers.at[i]))
            field(h, arena_printf(h->arena, "RtScaler %s;", scaler_member(h, p->scalers.at[i])),
                  "of the loss");
    for (int i = 0; i < p->entries.n; i++)
        print_entry_fields(h, p->entries.at[i]);
    if (most_chunks(h))
        field(h, "double *chunk;", "partial sums of a norm");
    if (h->plan->arena_bytes)
        field(h, "char *arena;", "values that live within a step");
    if (has_products(h))
        field(h, "RtScratch scratch;", "of the matrix products");
    out_indent(h->o, -1);
    out_text(h->o, "} State;\n");
}

/* ---- parameters ---- */

static const char *init_text(Host *h, const Init *init)
{
    static const char *const names[] = {"ZEROS",  "ONES",       "CONSTANT", "UNIFORM",
                                        "NORMAL", "ORTHOGONAL", "EYE"};
    const char *a = float_text(h->arena, (float)init->a), *b = float_text(h->arena, (float)init->b);
    int numbers = init->kind == INIT_CONSTANT || init->kind == INIT_ORTHOGONAL ? 1
                  : init->kind == INIT_UNIFORM || init->kind == INIT_NORMAL    ? 2
                                                                               : 0;
    return arena_printf(h->arena, "{RT_INIT_%s, %s, %s}", names[init->kind], numbers > 0 ? a : "0",
                        numbers > 1 ? b : "0");
}

static const char *dims_text(Host *h, const Type *type)
{
    Out o;
    out_init(&o, h->arena);
    out_text(&o, "{");
    for (int i = 0; i < type->rank; i++) {
        int64_t n = 0;
        dim_is_int(type->dim[i], &n);
        out_printf(&o, "%s%lld", i ? ", " : "", (long long)n);
    }
    out_text(&o, type->rank ? "}" : "0}");
    return o.text;
}

/* Enumerators are ints: where one number is larger, all are macros. */
static void print_constant(Host *h, int is_large, Str name, int64_t value, const char *shape)
{
    const char *text =
        is_large ? arena_printf(h->arena, "#define %s INT64_C(%lld)", name, (long long)value)
                 : arena_printf(h->arena, "    %s = %lld,", name, (long long)value);
    if (*shape)
        out_line(h->o, "%-44s /* %s */", text, shape);
    else
        out_line(h->o, "%s", text);
}

static void print_offsets(Host *h, const Pool *pool)
{
    int is_large = pool->size > INT32_MAX;
    out_line(h->o, "/* Where each weight begins in the flat buffers of %s. */",
             pool->optimizer ? pool->optimizer->name : "what is fixed");
    if (!is_large)
        out_text(h->o, "enum {\n");
    for (int i = 0; i < pool->params.n; i++) {
        const Param *p = pool->params.at[i];
        print_constant(h, is_large, h->place[p->index].constant, h->place[p->index].offset,
                       shape_text(h, p->type));
    }
    print_constant(h, is_large, pool->elements, pool->size, "");
    if (is_large)
        out_line(h->o, "enum { %s = %d };\n", pool->count, pool->params.n);
    else
        out_line(h->o, "    %s = %d\n};\n", pool->count, pool->params.n);
}

static void print_table(Host *h, const Pool *pool)
{
    out_line(h->o, "static const RtParam %s[%s] = {", pool->table, pool->count);
    for (int i = 0; i < pool->params.n; i++) {
        const Param *p = pool->params.at[i];
        const ParamPlace *place = &h->place[p->index];
        out_line(h->o, "    {%s, %s, %s, %lld, %d, %s, %s},", string_c(h, p->instance->name),
                 string_c(h, p->local), place->constant, (long long)place->count, p->type->rank,
                 dims_text(h, p->type), init_text(h, &p->init));
    }
    out_text(h->o, "};\n");
}

void print_parameters(Host *h)
{
    for (int i = 0; i < h->pools.n; i++) {
        if (i)
            out_text(h->o, "\n");
        print_offsets(h, h->pools.at[i]);
        print_table(h, h->pools.at[i]);
    }
    if (h->plan->arena_bytes)
        out_line(h->o,
                 h->plan->arena_bytes > INT32_MAX ? "\n#define ARENA_BYTES INT64_C(%lld)"
                                                  : "\nenum { ARENA_BYTES = %lld };",
                 (long long)h->plan->arena_bytes);
}

/* ---- memory ---- */

/* A piece of the block for one buffer of a pool. */
static void print_cut(Host *h, const Pool *pool, const char *name, DType dtype)
{
    if (dtype == DT_NONE)
        return;
    const char *type = c_type(h, dtype);
    out_line(h->o, "    s->%s.%s%s = (%s *)rt_cut(b, %s, sizeof(%s));", pool_member(h, pool), name,
             pool->suffix, type, pool->elements, type);
}

static void print_layout(Host *h)
{
    out_text(h->o, "/* Cuts the block into the buffers of the state. */\n"
                   "static void state_layout(State *s)\n{\n    RtBlock *b = &s->block;\n");
    size_t from = h->o->size;
    for (int i = 0; i < h->pools.n; i++) {
        const Pool *pool = h->pools.at[i];
        print_cut(h, pool, "weight", pool->weight);
        print_cut(h, pool, "copy", pool->copy);
        print_cut(h, pool, "gradient", pool->gradient);
        if (!pool->optimizer || pool->gradient == DT_NONE)
            continue;
        const OptimInfo *info = optim_info(pool->optimizer->kind);
        for (int k = 0; k < info->states; k++)
            print_cut(h, pool, info->state[k], DT_F32);
        if (optim_derives(info, "trust"))
            print_cut(h, pool, "direction", DT_F32);
    }
    if (most_chunks(h))
        out_line(h->o, "    s->chunk = (double *)rt_cut(b, %lld, sizeof(double));",
                 (long long)most_chunks(h));
    if (h->plan->arena_bytes)
        out_text(h->o, "    s->arena = (char *)rt_cut(b, ARENA_BYTES, 1);\n");
    if (has_products(h))
        out_text(h->o, "    s->scratch.data = rt_cut(b, s->scratch.bytes, 1);\n");
    end_function(h, from, (const char *const[]){"b"}, 1);
    out_text(h->o, "\n");
}

/* The largest product of a type, in each dimension. */
typedef struct Largest {
    DType dtype;
    int64_t m, n, k;
} Largest;

static int64_t larger(const Host *h, int64_t a, const Dim *d)
{
    int64_t b = dim_max(h->types, d);
    return a > b ? a : b;
}

static int find_largest(const Host *h, Largest *found)
{
    int count = 0;
    for (int i = 0; i < h->program->entries.n; i++)
        for (int k = 0; k < h->plan->entry[i].launches.n; k++) {
            const Launch *l = h->plan->entry[i].launches.at[k];
            if (l->kind != LAUNCH_PRODUCT)
                continue;
            const Product *p = l->product;
            DType dtype = p->operand[0].buffer->type->dtype;
            int at = 0;
            while (at < count && found[at].dtype != dtype)
                at++;
            if (at == count)
                found[count++] = (Largest){.dtype = dtype};
            found[at].m = larger(h, found[at].m, p->m);
            found[at].n = larger(h, found[at].n, p->n);
            found[at].k = larger(h, found[at].k, p->k);
        }
    return count;
}

static void print_scratch_size(Host *h)
{
    static const char *const names[] = {
        [DT_F32] = "RT_F32", [DT_F16] = "RT_F16", [DT_BF16] = "RT_BF16"};
    Largest largest[DTYPE_COUNT];
    int count = find_largest(h, largest);
    for (int i = 0; i < count; i++) {
        const Largest *x = &largest[i];
        assert(names[x->dtype]);
        const char *size =
            arena_printf(h->arena, "rt_gemm_scratch(%s, %s, %lld, %lld, %lld, s->threads)",
                         names[x->dtype], h->program->props.strict ? "RT_STRICT" : "RT_FUSED",
                         (long long)x->m, (long long)x->n, (long long)x->k);
        if (i == 0)
            out_line(h->o, "    s->scratch.bytes = %s;", size);
        else
            out_line(h->o, "    s->scratch.bytes = rt_max64(s->scratch.bytes, %s);", size);
    }
}

static void print_scaler_start(Host *h, const Scaler *x)
{
    static const char *const modes[] = {"ampc", "apex", "torch", "megatron", "deepspeed", "flax"};
    const char *s = scaler_member(h, x);
    if (!x->dynamic) {
        out_line(h->o, "    s->%s = rt_scaler_make_static(%s);", s,
                 float_text(h->arena, (float)x->init));
        return;
    }
    int mode = 0;
    for (int i = 0; i < RT_SCALER_MODES; i++)
        if (x->mode && !strcmp(x->mode, modes[i]))
            mode = i;
    RtScaler made = rt_scaler_make(mode);
    static const char *const constants[] = {"AMPC",     "APEX",      "TORCH",
                                            "MEGATRON", "DEEPSPEED", "FLAX"};
    out_line(h->o, "    s->%s = rt_scaler_make(RT_SCALER_%s);", s, constants[mode]);
    struct {
        const char *name;
        float now, wanted;
    } reals[] = {{"scale", made.scale, (float)x->init},
                 {"factor", made.factor, (float)x->factor},
                 {"floor", made.floor, (float)x->low},
                 {"limit", made.limit, (float)x->high}};
    for (int i = 0; i < 4; i++)
        if (reals[i].now < reals[i].wanted || reals[i].now > reals[i].wanted)
            out_line(h->o, "    s->%s.%s = %s;", s, reals[i].name,
                     float_text(h->arena, reals[i].wanted));
    if (made.window != x->window)
        out_line(h->o, "    s->%s.window = %lld;", s, (long long)x->window);
    if (made.hysteresis_full != x->hysteresis)
        out_line(h->o, "    s->%s.hysteresis = s->%s.hysteresis_full = %lld;", s, s,
                 (long long)x->hysteresis);
}

/* ---- first values and copies ---- */

int has_copies(const Host *h)
{
    for (int i = 0; i < h->pools.n; i++)
        if (h->pools.at[i]->copy != DT_NONE)
            return 1;
    return 0;
}

static void print_round(Host *h)
{
    if (!has_copies(h))
        return;
    out_text(h->o, "/* Rounds the masters to the copies that the kernels read. */\n"
                   "static void state_round(State *s)\n{\n");
    for (int i = 0; i < h->pools.n; i++) {
        const Pool *pool = h->pools.at[i];
        if (pool->copy == DT_NONE)
            continue;
        const char *m = pool_member(h, pool);
        const char *value = arena_printf(h->arena, "s->%s.weight%s[i]", m, pool->suffix);
        out_line(h->o, "    for (int64_t i = 0; i < %s; i++)", pool->elements);
        out_line(h->o, "        s->%s.copy%s[i] = %s;", m, pool->suffix,
                 convert(h, h->dialect->type[pool->copy].store, value));
    }
    out_text(h->o, "}\n\n");
}

static void print_first_values(Host *h, const Pool *pool)
{
    const char *suffix = is_half(pool->weight) ? dtype_info[pool->weight].name : NULL;
    out_line(h->o, "    for (int i = 0; i < %s && !status; i++)", pool->count);
    out_line(h->o,
             "        status = rt_param_init%s%s(&%s[i], s->seed, s->%s.weight%s + %s[i].offset);",
             suffix ? "_" : "", suffix ? suffix : "", pool->table, pool_member(h, pool),
             pool->suffix, pool->table);
}

static void print_create(Host *h)
{
    out_text(h->o, "/* Takes all memory and draws the first weights; seed and threads are set. */\n"
                   "static int state_create(State *s)\n{\n");
    print_scratch_size(h);
    out_text(h->o, "    state_layout(s);\n"
                   "    int status = rt_block_take(&s->block);\n"
                   "    if (status)\n"
                   "        return status;\n"
                   "    state_layout(s);\n");
    for (int i = 0; i < h->pools.n; i++)
        print_first_values(h, h->pools.at[i]);
    if (has_copies(h))
        out_text(h->o, "    state_round(s);\n");
    for (int i = 0; i < h->program->optimizers.n; i++) {
        const Optimizer *o = h->program->optimizers.at[i];
        if (optim_derives(optim_info(o->kind), "bc1"))
            out_line(h->o, "    s->%s.beta1_pow = s->%s.beta2_pow = 1;", member(h, o, o->name),
                     member(h, o, o->name));
    }
    for (int i = 0; i < h->program->scalers.n; i++)
        if (is_scaler_used(h, h->program->scalers.at[i]))
            print_scaler_start(h, h->program->scalers.at[i]);
    out_text(h->o, "    return status;\n}\n\n"
                   "static void state_destroy(State *s)\n{\n    rt_block_free(&s->block);\n}\n\n");
}

/* ---- files ---- */

static const char *st_type(DType dtype)
{
    return dtype == DT_F16 ? "RT_ST_F16" : dtype == DT_BF16 ? "RT_ST_BF16" : "RT_ST_F32";
}

static void print_pool_rows(Host *h, const Pool *pool)
{
    const char *m = pool_member(h, pool), *x = pool->suffix;
    out_line(h->o, "    for (int i = 0; i < %s; i++) {", pool->count);
    out_line(h->o, "        const RtParam *p = &%s[i];", pool->table);
    out_line(h->o, "        rt_table_add(t, \"%s/\", p, \"\", %s, s->%s.weight%s + p->offset);",
             pool->params.at[0]->is_buffer ? "buffer" : "param", st_type(pool->weight), m, x);
    if (pool->optimizer && pool->gradient != DT_NONE) {
        const OptimInfo *info = optim_info(pool->optimizer->kind);
        for (int k = 0; k < info->states; k++)
            out_line(h->o,
                     "        rt_table_add(t, \"opt/%s/\", p, \".%s\", RT_ST_F32, s->%s.%s%s + "
                     "p->offset);",
                     pool->optimizer->name, info->state[k], m, info->state[k], x);
    }
    out_text(h->o, "    }\n");
}

static void scalar_row(Host *h, const char *name, const char *type, const char *place)
{
    out_line(h->o, "    rt_table_scalar(t, \"%s\", RT_ST_%s, &s->%s);", name, type, place);
}

static void print_scalar_rows(Host *h)
{
    Program *p = h->program;
    for (int i = 0; i < p->optimizers.n; i++) {
        const Optimizer *o = p->optimizers.at[i];
        const char *m = member(h, o, o->name);
        const char *const names[] = {"step", "beta1_pow", "beta2_pow"};
        int count = optim_derives(optim_info(o->kind), "bc1") ? 3 : 1;
        for (int k = 0; k < count; k++)
            scalar_row(h, arena_printf(h->arena, "opt/%s.%s", o->name, names[k]), k ? "F64" : "I64",
                       arena_printf(h->arena, "%s.%s", m, names[k]));
    }
    for (int i = 0; i < p->scalers.n; i++) {
        static const char *const rows[][2] = {
            {"scale", "F32"}, {"growth", "I32"}, {"hysteresis", "I32"}, {"skips", "I64"}};
        const Scaler *x = p->scalers.at[i];
        for (int k = 0; is_scaler_used(h, x) && k < 4; k++)
            scalar_row(h, arena_printf(h->arena, "scaler/%s.%s", x->name, rows[k][0]), rows[k][1],
                       arena_printf(h->arena, "%s.%s", scaler_member(h, x), rows[k][0]));
    }
    for (int i = 0; i < p->entries.n; i++) {
        static const char *const rows[] = {"step", "epoch", "row"};
        const Entry *e = p->entries.at[i];
        for (int k = 0; e->kind == ENTRY_TRAIN && k < 3; k++)
            scalar_row(h, arena_printf(h->arena, "train/%s.%s", e->name, rows[k]), "I64",
                       arena_printf(h->arena, "%s.%s", member(h, e, e->name), rows[k]));
    }
}

/* Checkpoints are for what trains, and for whoever holds a library. */
static void print_state_table(Host *h)
{
    if (!h->prefix && !first_train(h))
        return;
    out_text(h->o, "/* Lists what a checkpoint holds. */\n"
                   "static void state_table(State *s, RtTable *t)\n{\n");
    size_t from = h->o->size;
    for (int i = 0; i < h->pools.n; i++)
        print_pool_rows(h, h->pools.at[i]);
    print_scalar_rows(h);
    end_function(h, from, (const char *const[]){"s", "t"}, 2);
    out_text(h->o, "\n");
}

static void print_weight_table(Host *h)
{
    if (!h->program->instances.n)
        return;
    out_text(h->o, "/* Lists the weights of an instance, called as weight files do. */\n"
                   "static void weight_table(State *s, RtTable *t, const char *instance)\n{\n");
    size_t from = h->o->size;
    for (int i = 0; i < h->pools.n; i++) {
        const Pool *pool = h->pools.at[i];
        out_line(h->o, "    for (int i = 0; i < %s; i++)", pool->count);
        out_line(h->o, "        if (!strcmp(%s[i].instance, instance))", pool->table);
        out_line(
            h->o,
            "            rt_table_add(t, \"\", &%s[i], \"\", %s, s->%s.weight%s + %s[i].offset);",
            pool->table, st_type(pool->weight), pool_member(h, pool), pool->suffix, pool->table);
    }
    end_function(h, from, (const char *const[]){"s", "t", "instance"}, 3);
}

void print_state_functions(Host *h)
{
    print_layout(h);
    print_round(h);
    print_create(h);
    print_state_table(h);
    print_weight_table(h);
}
