/* Places the values of each entry in one arena: buffers whose lives do not overlap share bytes.
 *
 *     launch      0    1    2    3            offset
 *     x_1         w    r                      0
 *     h                w    r                 8192
 *     logits                w    r            0        x_1 is dead by then
 *
 * Largest first, each at the lowest offset that is free all its life. A buffer lives from the
 * launch that writes it first to the one that reads it last, both included: a launch never finds an
 * operand and a result in the same bytes, because kernels promise their compiler so (`restrict`).
 */
#include "passes/memplan.h"
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
        if (b->first > p->last || p->first > b->last || p->end <= offset)
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
    held[low] = (Held){b->offset, b->offset + rounded_up(b->bytes), b->first, b->last};
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
}

void pass_memplan(Unit *u)
{
    u->plan->arena_bytes = 0;
    for (int i = 0; i < u->program->entries.n; i++) {
        EntryPlan *e = &u->plan->entry[i];
        find_lives(e);
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
        out_line(o, "  %10lld %10lld  %-9s %-16s %s", (long long)b->offset, (long long)b->bytes,
                 life, type_text(&u->program->types, b->type, u->scratch), b->name);
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
