/* Places the values of each entry in one arena: buffers whose lives do not overlap share bytes.
 *
 *     launch      0    1    2    3            offset
 *     x_1         w    r                      0
 *     h                w    r                 8192
 *     logits                w    r            0        x_1 is dead by then
 *     d_logits                   w    r       0        replaces logits in place
 *
 * Largest first, each at the lowest offset that is free all its life. A buffer lives from the
 * launch that writes it first to the one that reads it last, both included: a launch never finds an
 * operand and a result in the same bytes, because kernels promise their compiler so (`restrict`).
 *
 * Except in place: a result takes the bytes of an operand that dies at its launch if they have one
 * type and size and the kernel reads each element before it writes that element, and nowhere else.
 * One pointer then serves both (KernelParam.over), and the two are placed as one buffer.
 */
#include "passes/memplan.h"
#include "ir/kernel.h"
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };
#define BYTES_MAX ((int64_t)1 << 46) /* of a value, and of all that an entry has at once */

static int64_t rounded_up(int64_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static void touch(Buffer *b, int launch)
{
    if (!b || b->kind != BUFFER_ARENA)
        return;
    if (b->first < 0)
        b->first = launch;
    b->last = launch;
}

/* The last launch of the segment that launch i belongs to. */
static int segment_end(const EntryPlan *e, int i)
{
    int segment = e->launches.at[i]->segment;
    while (i + 1 < e->launches.n && e->launches.at[i + 1]->segment == segment)
        i++;
    return i;
}

/* A value from before a segment that runs several times must outlive the last of them. */
static void outlive_repeats(const EntryPlan *e, Buffer *b)
{
    if (b->kind != BUFFER_ARENA || b->first < 0)
        return;
    const Launch *last = e->launches.at[b->last];
    if (e->entry->segment[last->segment]->times > 1 &&
        e->launches.at[b->first]->segment != last->segment)
        b->last = segment_end(e, b->last);
}

/* Sets first and last of every buffer. */
static void find_lives(EntryPlan *e)
{
    for (int i = 0; i < e->buffers.n; i++)
        e->buffers.at[i]->first = e->buffers.at[i]->last = -1;
    for (int i = 0; i < e->launches.n; i++) {
        Launch *l = e->launches.at[i];
        for (int k = 0; k < l->buffers; k++)
            touch(l->buffer[k], i);
        for (int k = 0; l->product && k < 2; k++)
            touch(l->product->operand[k].buffer, i);
    }
    for (int i = 0; i < e->buffers.n; i++)
        outlive_repeats(e, e->buffers.at[i]);
}

static int is_placed(const Buffer *b)
{
    return b->kind == BUFFER_ARENA && b->first >= 0;
}

/* ---- in place ---- */

static int is_operand(const Launch *l, const Buffer *b)
{
    return l->product && (l->product->operand[0].buffer == b || l->product->operand[1].buffer == b);
}

/* Is this launch the last that needs b? What an earlier segment made, a segment that runs several
 * times needs again. */
static int dies_at(const EntryPlan *e, const Buffer *b, const Launch *l)
{
    return is_placed(b) && b->first < l->index && b->last == l->index &&
           (e->entry->segment[l->segment]->times <= 1 ||
            e->launches.at[b->first]->segment == l->segment);
}

static int may_replace(Unit *u, const EntryPlan *e, const Launch *l, int in, int out)
{
    const Buffer *x = l->buffer[in], *y = l->buffer[out];
    const KernelParam *param = l->kernel->param;
    TypeTable *t = &u->program->types;
    return param[out].written && !param[in].written && dies_at(e, x, l) && is_placed(y) &&
           y->first == l->index && !is_operand(l, x) && x->type->dtype == y->type->dtype &&
           type_count(t, x->type) == type_count(t, y->type) &&
           kernel_may_overwrite(l->kernel, in, out);
}

/* A name for a second form of a kernel: "fit_h_in_place", or "fit_h_apart" if the first is in
 * place. */
static Str variant_name(Unit *u, Names *functions, Str kernel, int in_place)
{
    const char *base = arena_printf(u->scratch, "%s_%s", kernel, in_place ? "in_place" : "apart");
    return take_name(functions, u->program->names, intern(u->program->names, base), "_");
}

/* The launch's kernel with these parameters in place: itself, the first time. */
static Kernel *variant(Unit *u, Names *functions, Kernel *k, const int *over)
{
    Kernel *made = k;
    int in_place = 0;
    for (int i = 0; i < k->params; i++)
        in_place |= over[i] >= 0;
    for (Kernel *v = k; v; v = v->variant) {
        int same = v->planned;
        for (int i = 0; i < k->params; i++)
            same = same && v->param[i].over == over[i];
        if (same)
            return v;
    }
    if (k->planned) {
        made = new (u->arena, Kernel);
        *made = *k;
        made->param = new_array(u->arena, KernelParam, k->params);
        memcpy(made->param, k->param, sizeof *k->param * (size_t)k->params);
        made->name = variant_name(u, functions, k->name, in_place);
        k->variant = made;
    }
    for (int i = 0; i < k->params; i++)
        made->param[i].over = over[i];
    made->planned = 1;
    vec_push(u->arena, &u->plan->kernels, made);
    return made;
}

/* Finds an operand for every result; the first result that may have an operand gets it. */
static void replace_operands(Unit *u, Names *functions, EntryPlan *e, Launch *l)
{
    int params = l->kernel->params;
    int *over = new_array(u->scratch, int, params + 1);
    for (int in = 0; in < params; in++)
        over[in] = -1;
    for (int out = 0; out < params; out++) {
        int in = 0;
        while (in < params && (over[in] >= 0 || !may_replace(u, e, l, in, out)))
            in++;
        if (in < params) {
            l->buffer[out]->over = l->buffer[in];
            over[in] = out;
        }
    }
    l->kernel = variant(u, functions, l->kernel, over);
}

/* Lets the first of each row of buffers that replace one another live as long as the last. */
static void join_lives(EntryPlan *e)
{
    for (int i = 0; i < e->buffers.n; i++)
        e->buffers.at[i]->until = e->buffers.at[i]->last;
    for (int i = e->launches.n - 1; i >= 0; i--) { /* what replaces a value is made after it */
        const Launch *l = e->launches.at[i];
        for (int k = 0; k < l->buffers; k++) {
            const Buffer *b = l->buffer[k];
            if (b->over && b->until > b->over->until)
                b->over->until = b->until;
        }
    }
}

/* ---- order ---- */

static int writes(const Launch *l, const Buffer *b)
{
    for (int k = 0; k < l->buffers; k++)
        if (l->buffer[k] == b && l->kernel->param[k].written)
            return 1;
    return 0;
}

static int reads(const Launch *l, const Buffer *b)
{
    for (int k = 0; k < l->buffers; k++)
        if (l->buffer[k] == b && !l->kernel->param[k].written)
            return 1;
    return is_operand(l, b);
}

/* Do both orders give the same? */
static int can_swap(const Launch *a, const Launch *b)
{
    if (a->kind == LAUNCH_UPDATE || b->kind == LAUNCH_UPDATE || a->segment != b->segment)
        return 0;
    for (int k = 0; k < a->buffers; k++)
        if (a->kernel->param[k].written ? reads(b, a->buffer[k]) || writes(b, a->buffer[k])
                                        : writes(b, a->buffer[k]))
            return 0;
    for (int k = 0; a->product && k < 2; k++)
        if (writes(b, a->product->operand[k].buffer))
            return 0;
    return 1;
}

/* Does launch i make something that could lie in place of a value if only the next launch, which is
 * the last to read it, came first? */
static int wants_swap(Unit *u, const EntryPlan *e, int i)
{
    Launch *l = e->launches.at[i];
    if (!l->kernel || i + 1 == e->launches.n || !can_swap(l, e->launches.at[i + 1]))
        return 0;
    for (int in = 0; in < l->buffers; in++) {
        Buffer *x = l->buffer[in];
        if (x->last != i + 1 || !reads(e->launches.at[i + 1], x))
            continue;
        for (int out = 0; out < l->buffers; out++) {
            x->last = i;
            int may = may_replace(u, e, l, in, out);
            x->last = i + 1;
            if (may)
                return 1;
        }
    }
    return 0;
}

static int uses(const Launch *l, const Buffer *b)
{
    for (int k = 0; k < l->buffers; k++)
        if (l->buffer[k] == b)
            return 1;
    return is_operand(l, b);
}

/* One end of the life of b, which the launch that moved uses and its neighbour does not. */
static void move_life(const EntryPlan *e, Buffer *b, int from, int to)
{
    if (!b || b->kind != BUFFER_ARENA || uses(e->launches.at[from], b))
        return;
    if (b->first == from)
        b->first = to;
    if (b->last == from)
        b->last = to;
    outlive_repeats(e, b);
}

/* Launch l has changed places with the one that is at `from` now. */
static void move_lives(const EntryPlan *e, const Launch *l, int from, int to)
{
    for (int k = 0; k < l->buffers; k++)
        move_life(e, l->buffer[k], from, to);
    for (int k = 0; l->product && k < 2; k++)
        move_life(e, l->product->operand[k].buffer, from, to);
}

/* A gradient with respect to a layer's input is made before that of its weights, which reads the
 * input: turns such pairs, so that the first may replace the input. */
static void turn_pairs(Unit *u, EntryPlan *e)
{
    for (int i = 0; i + 1 < e->launches.n; i++) {
        if (!wants_swap(u, e, i))
            continue;
        Launch *l = e->launches.at[i];
        e->launches.at[i] = e->launches.at[i + 1];
        e->launches.at[i + 1] = l;
        e->launches.at[i]->index = i;
        l->index = i + 1;
        move_lives(e, e->launches.at[i], i + 1, i);
        move_lives(e, l, i, i + 1);
    }
}

/* ---- places ---- */

static int larger_first(const void *x, const void *y)
{
    const Buffer *a = *(Buffer *const *)x, *b = *(Buffer *const *)y;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->first != b->first ? a->first - b->first : a->index - b->index;
}

typedef struct Held { /* bytes that a buffer placed before holds */
    int64_t offset, end;
    int first, last;
} Held;

/* The lowest offset at which b meets none of the held bytes, sorted by offset, all its life. */
static int64_t lowest_offset(const Buffer *b, const Held *held, int count)
{
    int64_t offset = 0;
    for (int i = 0; i < count; i++) {
        const Held *p = &held[i];
        if (b->first > p->last || p->first > b->until || p->end <= offset)
            continue;
        if (p->offset >= offset + b->bytes)
            break;
        offset = p->end;
    }
    return offset;
}

/* Adds the bytes of b behind the last that begins at its offset or below. */
static void add_held(Held *held, int count, const Buffer *b)
{
    int low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (held[middle].offset <= b->offset)
            low = middle + 1;
        else
            high = middle;
    }
    memmove(&held[low + 1], &held[low], sizeof *held * (size_t)(count - low));
    held[low] = (Held){b->offset, b->offset + rounded_up(b->bytes), b->first, b->until};
}

/* Sets the bytes of b; 0 with an error when they are too many. */
static int measure(Unit *u, Buffer *b)
{
    TypeTable *t = &u->program->types;
    const Dim *count = type_count(t, b->type);
    int64_t elements = count ? dim_max(t, count) : -1;
    if (elements < 0 || elements > BYTES_MAX / dtype_bytes(b->type->dtype)) {
        error_at(u->program->diags, CODE_LIMIT, b->node ? b->node->span : (Span){.file = 0},
                 "'%s' %s is larger than ampc accepts", b->name, type_text(t, b->type, u->scratch));
        return 0;
    }
    b->bytes = elements * dtype_bytes(b->type->dtype);
    return 1;
}

static void place(Unit *u, EntryPlan *e)
{
    Buffer **placed = new_array(u->scratch, Buffer *, e->buffers.n + 1);
    Held *held = new_array(u->scratch, Held, e->buffers.n + 1);
    int count = 0;
    for (int i = 0; i < e->buffers.n; i++) {
        Buffer *b = e->buffers.at[i];
        if (!is_placed(b))
            continue;
        if (!measure(u, b))
            return;
        b->index = i;
        if (!b->over)
            placed[count++] = b;
    }
    qsort(placed, (size_t)count, sizeof *placed, larger_first);
    e->arena_bytes = 0;
    for (int i = 0; i < count; i++) {
        placed[i]->offset = lowest_offset(placed[i], held, i);
        add_held(held, i, placed[i]);
        int64_t end = placed[i]->offset + rounded_up(placed[i]->bytes);
        if (end > e->arena_bytes)
            e->arena_bytes = end;
        if (end > BYTES_MAX) {
            error_at(u->program->diags, CODE_LIMIT, e->entry->span,
                     "the values of '%s' need more memory than ampc accepts", e->entry->name);
            return;
        }
    }
    for (int i = 0; i < e->buffers.n; i++) {
        Buffer *b = e->buffers.at[i], *first = b;
        while (first->over)
            first = first->over;
        b->offset = first->offset;
    }
}

void pass_memplan(Unit *u)
{
    Names functions;
    names_init(&functions, u->scratch);
    for (int i = 0; i < u->plan->kernels.n; i++)
        intern(&functions, u->plan->kernels.at[i]->name);
    u->plan->kernels.n = 0; /* each comes back in the forms in which it is launched */
    u->plan->arena_bytes = 0;
    for (int i = 0; i < u->program->entries.n; i++) {
        EntryPlan *e = &u->plan->entry[i];
        find_lives(e);
        turn_pairs(u, e);
        for (int k = 0; k < e->launches.n; k++)
            if (e->launches.at[k]->kernel)
                replace_operands(u, &functions, e, e->launches.at[k]);
        join_lives(e);
        place(u, e);
        if (e->arena_bytes > u->plan->arena_bytes)
            u->plan->arena_bytes = e->arena_bytes;
    }
}

/* ---- -fmem-report ---- */

static void report_entry(Unit *u, Out *o, const EntryPlan *e)
{
    int64_t sum = 0;
    out_line(o, "%s: %d launches, %lld bytes of arena", e->entry->name, e->launches.n,
             (long long)e->arena_bytes);
    out_line(o, "  %10s %10s  %-9s %-16s %s", "offset", "bytes", "launches", "type", "value");
    for (int i = 0; i < e->buffers.n; i++) {
        const Buffer *b = e->buffers.at[i];
        if (!is_placed(b))
            continue;
        const char *life = arena_printf(u->scratch, "%d..%d", b->first, b->last);
        out_line(o, "  %10lld %10lld  %-9s %-16s %s%s%s", (long long)b->offset, (long long)b->bytes,
                 life, type_text(&u->program->types, b->type, u->scratch), b->name,
                 b->over ? ", in place of " : "", b->over ? b->over->name : "");
        sum += rounded_up(b->bytes);
    }
    out_line(o, "  %lld bytes without sharing", (long long)sum);
}

void mem_report(Unit *u, Out *o)
{
    for (int i = 0; i < u->program->entries.n; i++)
        report_entry(u, o, &u->plan->entry[i]);
    out_line(o, "arena: %lld bytes", (long long)u->plan->arena_bytes);
}
