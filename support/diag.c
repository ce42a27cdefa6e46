/* Diagnostics: recorded, then printed with the line they are about.
 *
 *     mlp.amp:12:9: error: matmul needs equal inner dimensions, found 784 and 748  [shape]
 *        12 |     h = matmul(x, w1);
 *           |         ^~~~~~~~~~~~~
 *     mlp.amp:4:17: fix: replace '748' with '784'
 */
#include "support/diag.h"
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    char kind; /* E, W, X: see warning.def */
    const char *explanation;
} codes[CODE_COUNT] = {
#define CODE(id, name, kind, explanation) [CODE_##id] = {name, #kind[0], explanation},
#include "support/warning.def"
#undef CODE
};

const char *code_name(Code code)
{
    return code < CODE_COUNT ? codes[code].name : ""; /* remarks have none */
}

const char *code_explanation(Code code)
{
    return codes[code].explanation;
}

int code_find(const char *name)
{
    for (int i = 0; i < CODE_COUNT; i++)
        if (strcmp(codes[i].name, name) == 0)
            return i;
    return -1;
}

void diags_init(Diags *d, Arena *arena, Sources *sources)
{
    *d = (Diags){.arena = arena, .sources = sources, .max_errors = 20};
    for (int i = 0; i < CODE_COUNT; i++)
        d->enabled[i] = codes[i].kind != 'X';
}

static int is_warning(int code)
{
    return code >= 0 && codes[code].kind != 'E';
}

static int starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

int diags_option(Diags *d, const char *text)
{
    int on = !starts_with(text, "no-");
    const char *name = on ? text : text + 3;
    if (strcmp(name, "error") == 0) {
        d->warnings_are_errors = on;
        return 1;
    }
    if (strcmp(text, "all") == 0) {
        memset(d->enabled, 1, sizeof d->enabled);
        return 1;
    }
    int to_error = starts_with(name, "error=");
    int code = code_find(to_error ? name + strlen("error=") : name);
    if (!is_warning(code))
        return 0;
    if (to_error)
        d->as_error[code] = on ? 1 : -1;
    if (!to_error || on)
        d->enabled[code] = (signed char)on;
    return 1;
}

static void append(Diags *d, Diag *diag)
{
    if (d->last)
        d->last->next = diag;
    else
        d->first = diag;
    d->last = diag;
}

static Diag *raise(Diags *d, Severity severity, Code code, Span span, const char *format,
                   va_list args)
{
    d->errors += severity == ERROR;
    d->warnings += severity == WARNING;
    if (severity == ERROR && diags_full(d))
        return NULL;
    Diag *diag = new (d->arena, Diag);
    *diag = (Diag){.owner = d,
                   .severity = severity,
                   .code = code,
                   .span = span,
                   .text = arena_vprintf(d->arena, format, args)};
    append(d, diag);
    return diag;
}

int diags_full(const Diags *d)
{
    return d->max_errors > 0 && d->errors > d->max_errors;
}

Diag *error_at(Diags *d, Code code, Span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Diag *diag = raise(d, ERROR, code, span, format, args);
    va_end(args);
    return diag;
}

Diag *warn_at(Diags *d, Code code, Span span, const char *format, ...)
{
    if (!d->enabled[code])
        return NULL;
    int is_error = d->as_error[code] ? d->as_error[code] > 0 : d->warnings_are_errors;
    va_list args;
    va_start(args, format);
    Diag *diag = raise(d, is_error ? ERROR : WARNING, code, span, format, args);
    va_end(args);
    return diag;
}

Diag *remark_at(Diags *d, Span span, const char *format, ...)
{
    if (!d->remarks)
        return NULL;
    va_list args;
    va_start(args, format);
    Diag *diag = raise(d, REMARK, CODE_COUNT, span, format, args);
    va_end(args);
    return diag;
}

Diag *system_error(Diags *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Diag *diag = raise(d, ERROR, CODE_SYSTEM, (Span){0}, format, args);
    va_end(args);
    return diag;
}

static void add_child(Diag *parent, Severity severity, Span span, const char *text)
{
    Diag *child = new (parent->owner->arena, Diag);
    *child = (Diag){.owner = parent->owner, .severity = severity, .span = span, .text = text};
    Diag **end = &parent->child;
    while (*end)
        end = &(*end)->next;
    *end = child;
}

void note_at(Diag *d, Span span, const char *format, ...)
{
    if (!d)
        return;
    va_list args;
    va_start(args, format);
    add_child(d, NOTE, span, arena_vprintf(d->owner->arena, format, args));
    va_end(args);
}

void fix_at(Diag *d, Span span, const char *replacement)
{
    if (d)
        add_child(d, FIX, span, arena_copy(d->owner->arena, replacement, strlen(replacement)));
}

void mark_at(Diag *d, Span span)
{
    if (d)
        add_child(d, MARK, span, "");
}

const char *diag_text(const Diag *d)
{
    Arena *arena = d->owner->arena;
    if (d->severity != FIX)
        return d->text;
    const Source *source = source_of(d->owner->sources, d->span);
    if (!source || d->span.begin >= d->span.end)
        return arena_printf(arena, "insert '%s'", d->text);
    int old_bytes = (int)(d->span.end - d->span.begin);
    const char *old = source->text + d->span.begin;
    if (!*d->text)
        return arena_printf(arena, "remove '%.*s'", old_bytes, old);
    return arena_printf(arena, "replace '%.*s' with '%s'", old_bytes, old, d->text);
}

/* --- printing --- */

enum { TAB = 4, WIDEST = 160 }; /* columns */

/* Columns that a character takes on a terminal; tabs aside. */
static int display_width(uint32_t c)
{
    static const struct {
        uint32_t first, last;
        int width;
    } ranges[] = {
        {0x300, 0x36f, 0},     {0x483, 0x489, 0},     {0x591, 0x5bd, 0},     {0x64b, 0x65f, 0},
        {0x1100, 0x115f, 2},   {0x1ab0, 0x1aff, 0},   {0x1dc0, 0x1dff, 0},   {0x200b, 0x200d, 0},
        {0x20d0, 0x20ff, 0},   {0x2e80, 0x303e, 2},   {0x3041, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},
        {0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},   {0xfe20, 0xfe2f, 0},   {0xfe30, 0xfe6f, 2},
        {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2},
        {0x1f900, 0x1f9ff, 2}, {0x20000, 0x3fffd, 2},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return ranges[i].width;
    return 1;
}

/* Would this character change the terminal or the order of what is shown? */
static int is_unsafe(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069) || c == 0x200e || c == 0x200f || c == 0x61c;
}

/* One character of a source line: as it is shown, and where. */
typedef struct Cell {
    const char *shown;
    int shown_bytes, bytes, column, width;
} Cell;

static Cell cell_at(const char *p, const char *end, int column)
{
    static const char spaces[] = "    ";
    uint32_t c = 0;
    int bytes = utf8_decode(p, (size_t)(end - p), &c);
    if (c == '\t') {
        int width = TAB - column % TAB;
        return (Cell){spaces, width, 1, column, width};
    }
    if (bytes == 0 || is_unsafe(c))
        return (Cell){"\xef\xbf\xbd", 3, bytes ? bytes : 1, column, 1};
    return (Cell){p, bytes, bytes, column, display_width(c)};
}

typedef struct Printer {
    Out *o;
    const Diags *diags;
    int colour;
} Printer;

static void paint(const Printer *p, const char *escape)
{
    if (p->colour)
        out_text(p->o, escape);
}

/* The part of the span that lies on the line, in columns of the shown line. */
static void span_columns(Span span, uint32_t line_offset, const char *line, const char *end,
                         int *first, int *last)
{
    *first = *last = -1;
    int column = 0;
    for (const char *p = line; p < end;) {
        Cell cell = cell_at(p, end, column);
        uint32_t offset = line_offset + (uint32_t)(p - line);
        if (offset >= span.begin && offset < span.end) {
            if (*first < 0)
                *first = column;
            *last = column + (cell.width ? cell.width : 1) - 1;
        }
        if (*first < 0 && offset + (uint32_t)cell.bytes > span.begin && offset >= span.begin)
            *first = *last = column;
        column += cell.width;
        p += cell.bytes;
    }
    if (*first < 0)
        *first = *last = column; /* just behind the line */
}

/* Prints the columns from `from` on, at most WIDEST of them. */
static void print_line(const Printer *p, const char *line, const char *end, int from)
{
    int column = 0;
    for (const char *c = line; c < end && column < from + WIDEST;) {
        Cell cell = cell_at(c, end, column);
        if (column >= from)
            out_printf(p->o, "%.*s", cell.shown_bytes, cell.shown);
        column += cell.width;
        c += cell.bytes;
    }
    out_text(p->o, "\n");
}

static void print_marks(const Printer *p, const Diag *d, const Source *source, const char *line,
                        const char *end, int from)
{
    char marks[WIDEST + 2];
    memset(marks, ' ', sizeof marks);
    uint32_t line_offset = (uint32_t)(line - source->text);
    int length = 0;
    for (const Diag *m = d->child; m; m = m->next) {
        int is_here = m->severity == MARK && m->span.file == d->span.file &&
                      m->span.begin >= line_offset &&
                      m->span.begin <= line_offset + (uint32_t)(end - line);
        int first, last;
        if (!is_here)
            continue;
        span_columns(m->span, line_offset, line, end, &first, &last);
        for (int i = first; i <= last; i++)
            if (i >= from && i - from <= WIDEST)
                marks[i - from] = '~';
        length = last + 1 > length ? last + 1 : length;
    }
    int first, last;
    span_columns(d->span, line_offset, line, end, &first, &last);
    for (int i = first; i <= last && i - from <= WIDEST; i++)
        marks[i - from] = i == first ? '^' : '~';
    length = last + 1 > length ? last + 1 : length;
    length -= from;
    out_text(p->o, "      | ");
    paint(p, "\033[1;32m");
    out_printf(p->o, "%.*s", length <= WIDEST + 1 ? length : WIDEST + 1, marks);
    paint(p, "\033[0m");
    out_text(p->o, "\n");
}

static void print_source(const Printer *p, const Diag *d, int line_number)
{
    const Source *source = source_of(p->diags->sources, d->span);
    size_t length;
    const char *line = source_line(source, d->span.begin, &length), *end = line + length;
    int first, last;
    span_columns(d->span, (uint32_t)(line - source->text), line, end, &first, &last);
    int from = first >= WIDEST ? first - WIDEST / 2 : 0;
    out_printf(p->o, "%5d | ", line_number);
    print_line(p, line, end, from);
    print_marks(p, d, source, line, end, from);
}

static const char *const severity_names[] = {"error", "warning", "remark", "note", "fix", ""};
static const char *const severity_colours[] = {"\033[1;31m", "\033[1;35m", "\033[1;34m",
                                               "\033[1;36m", "\033[1;32m", ""};

static void print_code(const Printer *p, const Diag *d)
{
    if (d->severity > WARNING)
        return;
    if (!is_warning((int)d->code))
        out_printf(p->o, "  [%s]", code_name(d->code));
    else if (d->severity == ERROR)
        out_printf(p->o, "  [-Werror=%s]", code_name(d->code));
    else
        out_printf(p->o, "  [-W%s]", code_name(d->code));
}

static void print_one(const Printer *p, const Diag *d)
{
    if (d->severity == MARK)
        return;
    paint(p, "\033[1m");
    Place place = place_of(p->diags->sources, d->span.file, d->span.begin);
    if (place.path)
        out_printf(p->o, "%s:%d:%d: ", place.path, place.line, place.column);
    else
        out_text(p->o, "ampc: ");
    paint(p, severity_colours[d->severity]);
    out_printf(p->o, "%s: ", severity_names[d->severity]);
    paint(p, "\033[0m");
    out_text(p->o, diag_text(d));
    print_code(p, d);
    out_text(p->o, "\n");
    if (place.path && d->severity != FIX)
        print_source(p, d, place.line);
    for (const Diag *child = d->child; child; child = child->next)
        print_one(p, child);
}

void diags_print(const Diags *d, Out *o, int colour)
{
    Printer p = {.o = o, .diags = d, .colour = colour};
    for (const Diag *diag = d->first; diag; diag = diag->next)
        print_one(&p, diag);
    if (diags_full(d))
        out_printf(o, "ampc: note: stopped after %d errors (-fmax-errors=%d)\n", d->max_errors,
                   d->max_errors);
}
