/* Functions from kernels, and the statements that launch them. */
#include "codegen/kernel_print.h"
#include "codegen/expr_print.h"
#include <string.h>

enum { SOURCE_LINES = 6, COMMENT_COLUMN = 78, GRAIN_WORK = 32768, SCATTER_ROWS = 32 };

/* ---- loops ---- */

/* Product of the extents of a part's loops; *loops: how many there are. */
static const Dim *part_extent(KernelPrinter *p, int part, int *loops)
{
    const Dim *extent = dim_int(p->types, 1);
    int count = 0;
    for (int l = 0; l < p->k->loops; l++)
        if (p->k->loop[l].part == part) {
            extent = dim_mul(p->types, extent, p->k->loop[l].extent);
            count++;
        }
    if (loops)
        *loops = count;
    return extent;
}

static int part_loops(KernelPrinter *p, int part)
{
    int loops;
    part_extent(p, part, &loops);
    return loops;
}

static int reads_part(KernelPrinter *p, int phase, int part)
{
    for (int l = 0; l < p->k->loops; l++)
        if (p->k->loop[l].part == part && reads_loop(p->k, phase, phase, l))
            return 1;
    return 0;
}

static void open_loop(KernelPrinter *p, const char *index, const char *from, const char *to)
{
    const char *args[] = {index, from, to};
    out_expand(p->o, p->d->sweep_loop, args, 3);
    out_text(p->o, "\n");
    out_indent(p->o, 1);
}

static void close_loop(KernelPrinter *p)
{
    out_indent(p->o, -1);
    out_line(p->o, "}");
}

static const char *divisor(KernelPrinter *p, const Dim *d)
{
    const char *text = dim_plain(p, d);
    return strchr(text, ' ') ? arena_printf(p->o->arena, "(%s)", text) : text;
}

/* Works the loops of a part out from its flat index, where there are several; those that the phases
 * read. */
static void split_index(KernelPrinter *p, int part, const char *flat, int first, int last)
{
    int loops = part_loops(p, part), seen = 0;
    Arena *arena = p->o->arena;
    for (int l = 0; l < p->k->loops; l++) {
        if (p->k->loop[l].part != part)
            continue;
        if (loops == 1) {
            p->loop[l] = flat;
            continue;
        }
        const Dim *below = dim_int(p->types, 1);
        for (int i = l + 1; i < p->k->loops && p->k->loop[i].part == part; i++)
            below = dim_mul(p->types, below, p->k->loop[i].extent);
        const char *text = strchr(flat, ' ') ? arena_printf(arena, "(%s)", flat) : flat;
        int64_t one;
        if (!(dim_is_int(below, &one) && one == 1))
            text = arena_printf(arena, "%s / %s", text, divisor(p, below));
        if (seen++)
            text = arena_printf(arena, "%s %% %s", text, divisor(p, p->k->loop[l].extent));
        if (!reads_loop(p->k, first, last, l))
            continue;
        p->loop[l] =
            local_name(p, arena_printf(arena, "%c%d", strchr(flat, 'j') ? 'j' : 'i', seen));
        print_line(p->o, "const int64_t %s = %s;", p->loop[l], text);
    }
}

/* ---- reductions ---- */

/* How a sweep with reductions is run. */
typedef struct Shape {
    int lanes;    /* 32 of them; else one variable */
    int extremes; /* maxima and minima too have lanes: their order is free, but not in strict mode */
    int blocks;   /* more than 32 elements: loops of 32 */
    int chunks;   /* more than SUM_CHUNK elements */
    int even;     /* a multiple of 32 */
} Shape;

static int is_extreme(Op op)
{
    return op == OP_MAXRED || op == OP_MINRED;
}

static Shape sweep_shape(KernelPrinter *p, const Phase *phase)
{
    Shape s = {0};
    const Dim *extent = part_extent(p, 1, NULL);
    int64_t most = dim_max(p->types, extent), exact = 0;
    int is_int = dim_is_int(extent, &exact), sums = 0, extremes = 0;
    for (const Reduce *r = phase->reduces; r; r = r->next) {
        sums |= r->op == OP_SUM;
        extremes |= is_extreme(r->op);
    }
    s.extremes = extremes && !p->k->strict && (!is_int || exact > 2 * SUM_LANES);
    s.lanes = sums || s.extremes;
    s.blocks = s.lanes && (!is_int || exact > SUM_LANES);
    s.chunks = sums && (most < 0 || most > SUM_CHUNK);
    s.even = is_int && exact % SUM_LANES == 0;
    return s;
}

static int uses_lanes(const Reduce *r, const Shape *s)
{
    return r->op == OP_SUM || (is_extreme(r->op) && s->extremes);
}

static const char *first_value(Op op)
{
    return op == OP_SUM ? "0.0f" : op == OP_MINRED ? "INFINITY" : "-INFINITY";
}

static const char *lane_name(KernelPrinter *p, const Reduce *r)
{
    return arena_printf(p->o->arena, "%s_lane", r->result->text);
}

static void declare_lanes(KernelPrinter *p, const Phase *phase, const Shape *s)
{
    for (Reduce *r = phase->reduces; r; r = r->next) {
        if (!uses_lanes(r, s))
            continue;
        if (r->op == OP_SUM) {
            out_line(p->o, "float %s[RT_LANES] = {0};", lane_name(p, r));
        } else {
            out_line(p->o, "float %s[RT_LANES];", lane_name(p, r));
            out_line(p->o, "for (int64_t l = 0; l < RT_LANES; l++)");
            out_line(p->o, "    %s[l] = %s;", lane_name(p, r), first_value(r->op));
        }
    }
}

static const char *folded(KernelPrinter *p, const Reduce *r)
{
    return arena_printf(p->o->arena, "%s(%s)",
                        r->op == OP_SUM      ? "rt_fold32"
                        : r->op == OP_MAXRED ? "rt_fold32_max"
                                             : "rt_fold32_min",
                        lane_name(p, r));
}

/* Variables that live longer than the sweep. */
static void declare_results(KernelPrinter *p, const Phase *phase, const Shape *s)
{
    for (Reduce *r = phase->reduces; r; r = r->next) {
        const char *wanted = r->name ? r->name : op_info(r->op)->spelling;
        for (int i = 0; i < p->k->params; i++)
            if (p->k->param[i].name == wanted)
                wanted = arena_printf(p->o->arena, "%s_i", wanted);
        r->result->text = local_name(p, wanted);
        if (r->op == OP_ARGMAX) {
            r->name = local_name(p, "best");
            out_line(p->o, "%s %s = %s;", p->d->type[r->value->dtype].value, r->name,
                     is_real(r->value->dtype) ? "-INFINITY" : "INT32_MIN");
            out_line(p->o, "int32_t %s = 0;", r->result->text);
        } else if (!uses_lanes(r, s) || s->chunks) {
            out_line(p->o, "float %s = %s;", r->result->text, first_value(r->op));
        }
    }
}

/* One element more. `into`: the variable or lane. */
static void accumulate(KernelPrinter *p, const Reduce *r, const char *into)
{
    const char *x = let_text(p, r->value);
    switch (r->op) {
    case OP_SUM:
        print_line(p->o, "%s += %s;", into, x);
        break;
    case OP_MAXRED:
        print_line(p->o, "%s = rt_max(%s, %s);", into, x, into);
        break;
    case OP_MINRED:
        print_line(p->o, "%s = rt_min(%s, %s);", into, x, into);
        break;
    default:
        break;
    }
}

/* The index of the first largest; a NaN counts as largest. */
static void accumulate_place(KernelPrinter *p, const Reduce *r, const char *best, const char *at,
                             const char *index)
{
    const char *x = let_text(p, r->value);
    if (is_real(r->value->dtype))
        print_line(p->o, "if (%s > %s || (%s != %s && %s == %s)) {", x, best, x, x, best, best);
    else
        print_line(p->o, "if (%s > %s) {", x, best);
    out_line(p->o, "    %s = %s;", best, x);
    out_line(p->o, "    %s = (int32_t)%s;", at, index);
    out_line(p->o, "}");
}

static void fold_lanes(KernelPrinter *p, const Phase *phase, const Shape *s)
{
    for (Reduce *r = phase->reduces; r; r = r->next) {
        const char *name = r->result->text;
        if (!uses_lanes(r, s))
            continue;
        if (!s->chunks)
            print_line(p->o, "const float %s = %s;", name,
                       r->result->round == DT_NONE
                           ? folded(p, r)
                           : expand(p->o->arena, p->d->type[r->result->round].round,
                                    (const char *[]){folded(p, r)}, 1));
        else if (r->op == OP_SUM)
            print_line(p->o, "%s += %s;", name, folded(p, r));
        else
            print_line(p->o, "%s = %s(%s, %s);", name, r->op == OP_MAXRED ? "rt_max" : "rt_min",
                       folded(p, r), name);
    }
}

static void round_results(KernelPrinter *p, const Phase *phase, const Shape *s)
{
    for (Reduce *r = phase->reduces; r; r = r->next)
        if (r->result->round != DT_NONE && (s->chunks || !uses_lanes(r, s))) {
            const char *name = r->result->text;
            print_line(p->o, "%s = %s;", name,
                       expand(p->o->arena, p->d->type[r->result->round].round, &name, 1));
        }
}

/* ---- rows ---- */

static void print_sweep_body(KernelPrinter *p, int index, const Shape *s, const char *lane)
{
    const Phase *phase = &p->k->phase[index];
    split_index(p, 1, p->sweep, index, index);
    print_lets(p, index, 0, 0);
    for (const Reduce *r = phase->reduces; r; r = r->next) {
        if (r->op == OP_ARGMAX)
            accumulate_place(p, r, r->name, r->result->text, p->sweep);
        else if (uses_lanes(r, s))
            accumulate(p, r, arena_printf(p->o->arena, "%s[%s]", lane_name(p, r), lane));
        else
            accumulate(p, r, r->result->text);
    }
    print_stores(p, index);
}

/* Says in a line what the sweep is for. */
static void print_sweep_note(KernelPrinter *p, const Phase *phase)
{
    Out note;
    out_init(&note, p->o->arena);
    for (const Reduce *r = phase->reduces; r; r = r->next)
        out_printf(&note, "%s%s", note.size ? ", " : "", r->result->text);
    for (const Store *s = phase->stores; s; s = s->next)
        out_printf(&note, "%s%s", note.size ? ", " : "", p->k->param[s->param].name);
    if (note.size)
        print_line(p->o, "// %s", note.text);
}

static void declare_kept(KernelPrinter *p, const Phase *phase)
{
    for (Let *e = phase->first; e; e = e->next)
        if (e->kept) {
            e->array = local_name(p, arena_printf(p->o->arena, "%s_row",
                                                  e->name ? e->name : op_info(e->op)->spelling));
            out_line(p->o, "%s %s[%s];", p->d->type[e->dtype].value, e->array,
                     dim_plain(p, part_extent(p, 1, NULL)));
        }
}

static void print_sweep(KernelPrinter *p, int index, int sweeps)
{
    const Phase *phase = &p->k->phase[index];
    const Shape s = sweep_shape(p, phase);
    const char *extent = dim_plain(p, part_extent(p, 1, NULL)), *end = extent, *from = "0";
    p->sweep = "j";
    declare_kept(p, phase);
    declare_results(p, phase, &s);
    if (sweeps > 1)
        print_sweep_note(p, phase);
    if (s.chunks) {
        out_line(p->o, "for (int64_t chunk = 0; chunk < %s; chunk += RT_CHUNK) {", extent);
        out_indent(p->o, 1);
        print_line(p->o, "const int64_t end = %s - chunk < RT_CHUNK ? %s : chunk + RT_CHUNK;",
                   dim_factor(p, part_extent(p, 1, NULL)), extent);
        from = "chunk";
        end = "end";
    }
    declare_lanes(p, phase, &s);
    if (s.blocks) {
        out_line(p->o, "for (int64_t block = %s; block < %s; block += RT_LANES) {", from, end);
        out_indent(p->o, 1);
        if (!s.even)
            print_line(p->o, "const int64_t width = %s - block < RT_LANES ? %s - block : RT_LANES;",
                       s.chunks ? end : dim_factor(p, part_extent(p, 1, NULL)), end);
        open_loop(p, "l", "0", s.even ? "RT_LANES" : "width");
        if (reads_part(p, index, 1))
            out_line(p->o, "const int64_t j = block + l;");
        print_sweep_body(p, index, &s, "l");
        close_loop(p);
        close_loop(p);
    } else {
        open_loop(p, "j", from, end);
        print_sweep_body(p, index, &s, "j");
        close_loop(p);
    }
    fold_lanes(p, phase, &s);
    if (s.chunks)
        close_loop(p);
    round_results(p, phase, &s);
}

static int has_work(const Phase *phase)
{
    for (const Let *e = phase->first; e; e = e->next)
        if (e->kept)
            return 1;
    return phase->reduces || phase->stores;
}

static void print_rows(KernelPrinter *p)
{
    const Kernel *k = p->k;
    int split = part_loops(p, 0) > 0, sweeps = 0;
    for (int i = 2; i < k->phases; i += 2)
        sweeps += has_work(&k->phase[i]);
    print_lets(p, 0, 0, 0);
    if (split) {
        const char *index = "i";
        out_expand(p->o, p->d->row_loop, &index, 1);
        out_text(p->o, "\n");
        out_indent(p->o, 1);
        split_index(p, 0, "i", 1, k->phases);
    }
    for (int i = 1; i < k->phases; i++) {
        if (i % 2) {
            print_lets(p, i, 0, 0);
            print_stores(p, i);
        } else if (has_work(&k->phase[i])) {
            print_sweep(p, i, sweeps);
        }
    }
    if (split)
        close_loop(p);
}

static void print_flat(KernelPrinter *p)
{
    print_lets(p, 0, 0, 0);
    int split = p->k->loops > 0;
    if (split) {
        const char *index = "i";
        out_expand(p->o, p->d->row_loop, &index, 1);
        out_text(p->o, "\n");
        out_indent(p->o, 1);
        p->loop[0] = "i";
    }
    for (int i = 1; i < p->k->phases; i++) {
        print_lets(p, i, 0, 0);
        print_stores(p, i);
    }
    if (split)
        close_loop(p);
}

/* ---- columns ---- */

static void each_column(KernelPrinter *p, const char *width)
{
    open_loop(p, "l", "0", width);
}

static void print_column_index(KernelPrinter *p, int phase)
{
    if (!reads_part(p, phase, 2))
        return;
    out_line(p->o, "const int64_t j = column + l;");
    split_index(p, 2, "j", phase, phase);
}

static void start_columns(KernelPrinter *p, const Phase *phase, const char *suffix)
{
    for (Reduce *r = phase->reduces; r; r = r->next) {
        const char *name = arena_printf(p->o->arena, "%s%s", r->result->array, suffix);
        if (r->op == OP_SUM) {
            out_line(p->o, "float %s[%d] = {0};", name, COLUMN_BLOCK);
            continue;
        }
        if (*suffix)
            continue;
        out_line(p->o, "%s %s[%d];", p->d->type[r->value->dtype].value, name, COLUMN_BLOCK);
        if (r->op == OP_ARGMAX)
            out_line(p->o, "int32_t %s_at[%d] = {0};", name, COLUMN_BLOCK);
        out_line(p->o, "for (int64_t l = 0; l < %d; l++)", COLUMN_BLOCK);
        out_line(p->o, "    %s[l] = %s;", name,
                 is_real(r->value->dtype) ? first_value(r->op) : "INT32_MIN");
    }
}

static void add_columns(KernelPrinter *p, int index, const char *suffix)
{
    const Phase *phase = &p->k->phase[index];
    Arena *arena = p->o->arena;
    print_column_index(p, index);
    print_lets(p, index, 0, 0);
    for (const Reduce *r = phase->reduces; r; r = r->next) {
        const char *name = r->result->array;
        if (r->op == OP_ARGMAX)
            accumulate_place(p, r, arena_printf(arena, "%s[l]", name),
                             arena_printf(arena, "%s_at[l]", name), "i");
        else
            accumulate(p, r, arena_printf(arena, "%s%s[l]", name, r->op == OP_SUM ? suffix : ""));
    }
    print_stores(p, index);
}

static void print_column_sums(KernelPrinter *p, const char *width)
{
    const Phase *phase = &p->k->phase[2];
    const Dim *rows = part_extent(p, 1, NULL);
    const char *extent = dim_plain(p, rows);
    int64_t most = dim_max(p->types, rows);
    int sums = 0;
    for (const Reduce *r = phase->reduces; r; r = r->next)
        sums |= r->op == OP_SUM;
    int chunks = sums && (most < 0 || most > COLUMN_CHUNK);
    start_columns(p, phase, "");
    if (chunks) {
        out_line(p->o, "for (int64_t chunk = 0; chunk < %s; chunk += RT_ROW_CHUNK) {", extent);
        out_indent(p->o, 1);
        print_line(p->o,
                   "const int64_t end = %s - chunk < RT_ROW_CHUNK ? %s : chunk + RT_ROW_CHUNK;",
                   dim_factor(p, rows), extent);
        start_columns(p, phase, "_part");
    }
    open_loop(p, "i", chunks ? "chunk" : "0", chunks ? "end" : extent);
    split_index(p, 1, "i", 2, 2);
    each_column(p, width);
    add_columns(p, 2, chunks ? "_part" : "");
    close_loop(p);
    close_loop(p);
    if (!chunks)
        return;
    out_line(p->o, "for (int64_t l = 0; l < %s; l++) {", width);
    for (const Reduce *r = phase->reduces; r; r = r->next)
        if (r->op == OP_SUM)
            out_line(p->o, "    %s[l] += %s_part[l];", r->result->array, r->result->array);
    out_line(p->o, "}");
    close_loop(p);
}

static void print_columns(KernelPrinter *p)
{
    const Kernel *k = p->k;
    Phase *phase = &k->phase[2];
    int64_t columns;
    int even = dim_is_int(part_extent(p, 2, NULL), &columns) && columns % COLUMN_BLOCK == 0;
    const char *width = even ? arena_printf(p->o->arena, "%d", COLUMN_BLOCK) : "width";
    for (Reduce *r = phase->reduces; r; r = r->next) {
        const char *wanted = r->name ? r->name : op_info(r->op)->spelling;
        for (int i = 0; i < k->params; i++)
            if (k->param[i].name == wanted)
                wanted = arena_printf(p->o->arena, "%s_%s", wanted, op_info(r->op)->spelling);
        r->result->array = local_name(p, wanted);
    }
    print_lets(p, 0, 0, 0);
    int front = part_loops(p, 0);
    if (front) {
        open_loop(p, "g", "0", dim_plain(p, part_extent(p, 0, NULL)));
        split_index(p, 0, "g", 1, 3);
    }
    out_line(p->o, "for (int64_t column = lo; column < hi; column += %d) {", COLUMN_BLOCK);
    out_indent(p->o, 1);
    if (!even)
        out_line(p->o, "const int64_t width = hi - column < %d ? hi - column : %d;", COLUMN_BLOCK,
                 COLUMN_BLOCK);
    print_column_sums(p, width);
    each_column(p, width);
    print_column_index(p, 3);
    for (Reduce *r = phase->reduces; r; r = r->next) {
        Let *e = r->result;
        const char *text =
            arena_printf(p->o->arena, r->op == OP_ARGMAX ? "%s_at[l]" : "%s[l]", e->array);
        e->text =
            e->round == DT_NONE ? text : expand(p->o->arena, p->d->type[e->round].round, &text, 1);
    }
    print_lets(p, 3, 0, 0);
    print_stores(p, 3);
    close_loop(p);
    close_loop(p);
    if (front)
        close_loop(p);
}

/* ---- scattered rows ---- */

static void print_scatter(KernelPrinter *p)
{
    const Kernel *k = p->k;
    const char *columns = dim_plain(p, part_extent(p, 2, NULL)), *sum = "sums[row][l]";
    int64_t exact;
    int even = dim_is_int(part_extent(p, 2, NULL), &exact) && exact % COLUMN_BLOCK == 0;
    const char *width = even ? arena_printf(p->o->arena, "%d", COLUMN_BLOCK) : "width";
    print_lets(p, 0, 0, 0);
    out_line(p->o, "for (int64_t first = lo; first < hi; first += %d) {", SCATTER_ROWS);
    out_indent(p->o, 1);
    out_line(p->o, "const int64_t rows = hi - first < %d ? hi - first : %d;", SCATTER_ROWS,
             SCATTER_ROWS);
    out_line(p->o, "for (int64_t column = 0; column < %s; column += %d) {", columns, COLUMN_BLOCK);
    out_indent(p->o, 1);
    if (!even)
        print_line(p->o, "const int64_t width = %s - column < %d ? %s - column : %d;",
                   dim_factor(p, part_extent(p, 2, NULL)), COLUMN_BLOCK, columns, COLUMN_BLOCK);
    out_line(p->o, "float sums[%d][%d] = {{0}};", SCATTER_ROWS, COLUMN_BLOCK);
    open_loop(p, "i", "0", dim_plain(p, part_extent(p, 1, NULL)));
    split_index(p, 1, "i", 2, 2);
    print_lets(p, 2, 1 << 2, 0);
    print_line(p->o, "const int64_t row = %s - first;", let_text(p, k->scatter_row));
    out_line(p->o, "if (row < 0 || row >= rows)");
    out_line(p->o, "    continue;");
    each_column(p, width);
    print_column_index(p, 2);
    print_lets(p, 2, 1 << 2, 1);
    print_line(p->o, "sums[row][l] += %s;", let_text(p, k->scatter_value));
    close_loop(p);
    close_loop(p);
    open_loop(p, "row", "0", "rows");
    each_column(p, width);
    print_column_index(p, 3);
    split_index(p, 0, "first + row", 3, 3);
    p->sums = &sum;
    print_lets(p, 3, 0, 0);
    print_stores(p, 3);
    close_loop(p);
    close_loop(p);
    close_loop(p);
    close_loop(p);
}

/* ---- epilogues ---- */

static void print_epilogue(KernelPrinter *p)
{
    const char *sum = "acc[j]";
    p->sums = &sum;
    p->sweep = "j";
    if (!reads_part(p, 1, 0) && !reads_part(p, 2, 0))
        out_line(p->o, "(void)m;");
    if (!reads_part(p, 2, 1))
        out_line(p->o, "(void)n;");
    print_lets(p, 0, 0, 0);
    split_index(p, 0, "m", 1, 2);
    print_lets(p, 1, 0, 0);
    open_loop(p, "j", "0", "count");
    for (int l = 0; l < p->k->loops; l++)
        if (p->k->loop[l].part == 1)
            p->loop[l] = "n + j";
    print_lets(p, 2, 0, 0);
    print_stores(p, 2);
    close_loop(p);
}

/* ---- functions ---- */

static int is_split(KernelPrinter *p)
{
    return part_loops(p, p->k->kind == KERNEL_COLUMNS ? 2 : 0) > 0;
}

static void print_source_lines(KernelPrinter *p)
{
    const Sources *sources = p->program->diags ? p->program->diags->sources : NULL;
    for (int i = 0; sources && i < p->k->spans && i < SOURCE_LINES; i++) {
        Span span = p->k->span[i];
        const Source *source = source_of(sources, span);
        if (!source)
            continue;
        size_t length;
        const char *line = source_line(source, span.begin, &length);
        const char *base = strrchr(source->path, '/');
        const char *where = arena_printf(p->o->arena, "%s:%d", base ? base + 1 : source->path,
                                         line_of(sources, span.file, span.begin));
        while (length && (*line == ' ' || *line == '\t')) {
            line++;
            length--;
        }
        while (length && (line[length - 1] == ' ' || line[length - 1] == '\\'))
            length--;
        int room = COMMENT_COLUMN - 3 - (int)strlen(where);
        int shown = (int)length > room ? room - 4 : (int)length;
        out_line(p->o, "// %.*s%s%*s%s", shown, line, shown < (int)length ? " ..." : "",
                 shown < (int)length ? 1 : room - shown, "", where);
    }
}

/* One parameter a line, with its shape. */
static void print_buffer(KernelPrinter *p, const KernelParam *x, const char *restrict_kw,
                         const char *end, int width)
{
    const char *text = arena_printf(p->o->arena, "%s%s *%s%s%s", x->written ? "" : "const ",
                                    p->d->type[x->type->dtype].storage, restrict_kw, x->name, end);
    out_line(p->o, "%-*s // %s", width, text, type_text(p->types, x->type, p->o->arena));
}

static int buffer_width(KernelPrinter *p, size_t extra)
{
    size_t width = 0;
    for (int i = 0; i < p->k->params; i++) {
        const KernelParam *x = &p->k->param[i];
        if (x->over >= 0)
            continue;
        size_t n = strlen(p->d->type[x->type->dtype].storage) + strlen(x->name) +
                   (x->written ? 0 : 6) + 2 + extra;
        width = n > width ? n : width;
    }
    return (int)width;
}

/* "int64_t N, uint64_t seed, …" in the form `item` with the separator; empty without any. */
static const char *scalar_list(KernelPrinter *p, const char *before, const char *after)
{
    Out o;
    out_init(&o, p->o->arena);
    for (int i = 0; i < p->k->symbols; i++)
        out_printf(&o, "%sint64_t %s%s", i && !*after ? ", " : before,
                   p->types->symbol[p->k->symbol[i]].name, after);
    if (p->k->streams) {
        out_printf(&o, "%suint64_t seed%s", o.size && !*after ? ", " : before, after);
        out_printf(&o, "%suint32_t step%s", !*after ? ", " : before, after);
        for (int i = 0; i < p->k->streams; i++)
            out_printf(&o, "%suint32_t stream%d%s", !*after ? ", " : before, i, after);
    }
    return o.text ? o.text : "";
}

static void print_signature(KernelPrinter *p)
{
    const Kernel *k = p->k;
    Out *o = p->o;
    const char *scalars = scalar_list(p, "", "");
    const char *keyword = arena_printf(o->arena, "%s ", p->d->restrict_kw);
    int width = buffer_width(p, strlen(keyword) + 1);
    out_printf(o, "%s %s(%s", p->d->leaf, k->name, is_split(p) ? "int64_t lo, int64_t hi," : "");
    out_text(o, "\n");
    out_indent(o, 2);
    int last = k->params - 1;
    while (k->param[last].over >= 0)
        last--;
    for (int i = 0; i <= last; i++)
        if (k->param[i].over < 0)
            print_buffer(p, &k->param[i], keyword, i < last || *scalars ? "," : ")", width);
    if (*scalars)
        print_line(o, "%s)", scalars);
    out_indent(o, -2);
    out_line(o, "{");
    out_indent(o, 1);
}

/* The arguments of an epilogue: a struct, and its fields as local variables. */
static void print_arguments(KernelPrinter *p)
{
    const Kernel *k = p->k;
    Out *o = p->o;
    out_line(o, "typedef struct %s_args {", k->name);
    out_indent(o, 1);
    int width = buffer_width(p, 1);
    for (int i = 0; i < k->params; i++)
        if (k->param[i].over < 0)
            print_buffer(p, &k->param[i], "", ";", width);
    if (k->symbols || k->streams) {
        out_text(o, scalar_list(p, "", ";\n"));
    }
    out_indent(o, -1);
    out_line(o, "} %s_args;", k->name);
    out_text(o, "\n");
    print_line(o,
               "%s %s(const void *args, int64_t m, int64_t n, int64_t count, const float *%s acc)",
               p->d->leaf, k->name, p->d->restrict_kw);
    out_line(o, "{");
    out_indent(o, 1);
    out_line(o, "const %s_args *a = (const %s_args *)args;", k->name, k->name);
    for (int i = 0; i < k->params; i++) {
        const KernelParam *x = &k->param[i];
        if (x->over >= 0)
            continue;
        out_line(o, "%s%s *%s %s = a->%s;", x->written ? "" : "const ",
                 p->d->type[x->type->dtype].storage, p->d->restrict_kw, x->name, x->name);
    }
    for (int i = 0; i < k->symbols; i++) {
        Str name = p->types->symbol[k->symbol[i]].name;
        out_line(o, "const int64_t %s = a->%s;", name, name);
    }
    if (k->streams) {
        out_line(o, "const uint64_t seed = a->seed;");
        out_line(o, "const uint32_t step = a->step;");
        for (int i = 0; i < k->streams; i++)
            out_line(o, "const uint32_t stream%d = a->stream%d;", i, i);
    }
}

/* The names of what is replaced in place: made from the one pointer, so that it may stay
 * `restrict`. */
static void print_replaced(KernelPrinter *p)
{
    for (int i = 0; i < p->k->params; i++) {
        const KernelParam *x = &p->k->param[i];
        if (x->over >= 0)
            print_line(p->o, "const %s *%s = %s; // replaced in place",
                       p->d->type[x->type->dtype].storage, x->name, p->k->param[x->over].name);
    }
}

static void take_names(KernelPrinter *p)
{
    names_init(&p->names, p->o->arena);
    for (int i = 0; i < p->k->params; i++)
        intern(&p->names, p->k->param[i].name);
    for (int i = 0; i < p->types->symbols; i++)
        intern(&p->names, p->types->symbol[i].name);
}

void kernel_print(Out *o, const Program *program, const Kernel *k, const Dialect *d)
{
    KernelPrinter p = {.o = o, .program = program, .k = k, .d = d};
    /* Dimensions are interned: making one that exists changes nothing. */
    p.types = (TypeTable *)(uintptr_t)&program->types;
    p.loop = new_array(o->arena, const char *, k->loops + 1);
    take_names(&p);
    name_lets(k);
    print_source_lines(&p);
    if (k->kind == KERNEL_EPILOGUE)
        print_arguments(&p);
    else
        print_signature(&p);
    print_replaced(&p);
    switch (k->kind) {
    case KERNEL_FLAT:
        print_flat(&p);
        break;
    case KERNEL_ROWS:
        print_rows(&p);
        break;
    case KERNEL_COLUMNS:
        print_columns(&p);
        break;
    case KERNEL_EPILOGUE:
        print_epilogue(&p);
        break;
    case KERNEL_SCATTER:
        print_scatter(&p);
        break;
    }
    out_indent(o, -1);
    out_line(o, "}");
}

/* ---- launches ---- */

static const char *arguments(KernelPrinter *p, const Launch *l)
{
    Out o;
    out_init(&o, p->o->arena);
    for (int i = 0; i < l->buffers; i++)
        if (p->k->param[i].over < 0)
            out_printf(&o, "%s%s", o.size ? ", " : "", l->buffer[i]->name);
    for (int i = 0; i < p->k->symbols; i++)
        out_printf(&o, ", %s", p->types->symbol[p->k->symbol[i]].name);
    if (p->k->streams)
        out_text(&o, ", seed, step");
    for (int i = 0; i < p->k->streams; i++)
        out_printf(&o, ", rt_stream(\"%s\")", l->stream[i]);
    return o.text;
}

/* How many rows (elements, columns) make one piece of work for a thread. */
static int64_t grain_of(KernelPrinter *p)
{
    const Kernel *k = p->k;
    if (k->kind == KERNEL_COLUMNS)
        return COLUMN_BLOCK;
    if (k->kind == KERNEL_SCATTER)
        return SCATTER_ROWS;
    int64_t weight = k->weight > 0 ? k->weight : 1;
    int64_t inner = dim_max(p->types, part_extent(p, 1, NULL));
    int64_t grain = GRAIN_WORK / weight / (k->kind == KERNEL_ROWS && inner > 0 ? inner : 1);
    if (k->kind == KERNEL_FLAT)
        return grain < 256 ? 256 : grain / 256 * 256;
    int64_t power = 1;
    while (power * 2 <= grain)
        power *= 2;
    return power;
}

static void launch_kernel(KernelPrinter *p, const Launch *l)
{
    const Dim *rows = part_extent(p, p->k->kind == KERNEL_COLUMNS ? 2 : 0, NULL);
    Arena *arena = p->o->arena;
    const char *args[] = {dim_plain(p, rows), arena_printf(arena, "%lld", (long long)grain_of(p)),
                          p->k->name, arguments(p, l)};
    const char *form = is_split(p) ? p->d->launch : p->d->launch_one;
    print_line(p->o, "%s", expand(arena, form, args, 4));
}

static const char *matrix_text(KernelPrinter *p, const Product *product, int k)
{
    Arena *arena = p->o->arena;
    const Dim *offset = product->operand[k].offset;
    Str name = product->operand[k].buffer->name;
    const char *start =
        offset->count ? arena_printf(arena, "%s + %s", name, dim_factor(p, offset)) : name;
    return arena_printf(arena, "rt_matrix(%s, %s, %s)", start,
                        dim_plain(p, product->operand[k].row),
                        dim_plain(p, product->operand[k].column));
}

static void launch_product(KernelPrinter *p, const Launch *l)
{
    const Product *x = l->product;
    Arena *arena = p->o->arena;
    int64_t one = 0;
    int single = dim_is_int(x->batch, &one) && one == 1;
    DType dtype = x->operand[0].buffer->type->dtype;
    const char *type = dtype == DT_F16 ? "RT_F16" : dtype == DT_BF16 ? "RT_BF16" : "RT_F32";
    const char *rounding = p->k->strict ? "RT_STRICT" : "RT_FUSED";
    const char *a = matrix_text(p, x, 0), *b = matrix_text(p, x, 1);
    Out o;
    out_init(&o, arena);
    out_printf(&o, "%s(%s, %s, ", single ? "rt_gemm" : "rt_gemm_batch", type, rounding);
    if (!single)
        out_printf(&o, "%s, ", dim_plain(p, x->batch));
    out_printf(&o, "%s, %s, %s, ", dim_plain(p, x->m), dim_plain(p, x->n), dim_plain(p, x->k));
    if (single)
        out_printf(&o, "%s, %s, ", a, b);
    else
        out_printf(&o, "%s, %s, %s, %s, ", a, dim_plain(p, x->operand[0].step), b,
                   dim_plain(p, x->operand[1].step));
    out_printf(&o, "%s, &(%s_args){%s}, scratch);", p->k->name, p->k->name, arguments(p, l));
    print_line(p->o, "%s", o.text);
}

void launch_print(Out *o, const Program *program, const Launch *l, const Dialect *d)
{
    KernelPrinter p = {.o = o, .program = program, .k = l->kernel, .d = d};
    p.types = (TypeTable *)(uintptr_t)&program->types;
    if (l->kind == LAUNCH_KERNEL)
        launch_kernel(&p, l);
    else if (l->kind == LAUNCH_PRODUCT)
        launch_product(&p, l);
}
