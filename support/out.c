/* The text writer, and numbers as text. */
#include "support/out.h"
#include "support/str.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void out_init(Out *o, Arena *arena)
{
    *o = (Out){.arena = arena, .line = 1, .room = 1024};
    o->text = new_array(arena, char, o->room);
}

static void reserve(Out *o, size_t more)
{
    if (o->size + more < o->room)
        return;
    while (o->room <= o->size + more)
        o->room *= 2;
    char *larger = new_array(o->arena, char, o->room);
    memcpy(larger, o->text, o->size + 1);
    o->text = larger;
}

static void append(Out *o, const char *text, size_t bytes)
{
    reserve(o, bytes);
    memcpy(o->text + o->size, text, bytes);
    o->size += bytes;
    o->text[o->size] = '\0';
    for (size_t i = 0; i < bytes; i++)
        o->column += (text[i] & 0xc0) != 0x80; /* code points */
}

static void indent_line(Out *o)
{
    for (int i = 0; i < o->depth; i++)
        append(o, "    ", 4);
}

static void append_indented(Out *o, const char *text, size_t bytes)
{
    while (bytes) {
        const char *newline = memchr(text, '\n', bytes);
        size_t part = newline ? (size_t)(newline - text) : bytes;
        if (part) {
            if (o->column == 0)
                indent_line(o);
            append(o, text, part);
        }
        if (newline) {
            append(o, "\n", 1);
            o->line++;
            o->column = 0;
            part++;
        }
        text += part;
        bytes -= part;
    }
}

void out_text(Out *o, const char *text)
{
    append_indented(o, text, strlen(text));
}

void out_vprintf(Out *o, const char *format, va_list args)
{
    char small[256];
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(small, sizeof small, format, args);
    if (length >= (int)sizeof small)
        out_text(o, arena_vprintf(o->arena, format, again));
    else if (length > 0)
        out_text(o, small);
    va_end(again);
}

void out_printf(Out *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    out_vprintf(o, format, args);
    va_end(args);
}

void out_line(Out *o, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    out_vprintf(o, format, args);
    va_end(args);
    out_text(o, "\n");
}

void out_indent(Out *o, int steps)
{
    o->depth += steps;
    if (o->depth < 0)
        o->depth = 0;
}

void out_expand(Out *o, const char *template_text, const char *const *args, int count)
{
    for (const char *t = template_text; *t;) {
        size_t plain = strcspn(t, "$");
        append_indented(o, t, plain);
        t += plain;
        if (*t != '$')
            return;
        int arg = t[1] - '1';
        if (arg >= 0 && arg < count && arg < 9)
            out_text(o, args[arg]);
        else
            append_indented(o, "$", 1);
        t += (arg >= 0 && arg < count && arg < 9) || t[1] == '$' ? 2 : 1;
    }
}

const char *expand(Arena *arena, const char *template_text, const char *const *args, int count)
{
    Out o;
    out_init(&o, arena);
    out_expand(&o, template_text, args, count);
    return o.text;
}

/* Makes what "%.*g" gave independent of the locale, and C: 1 -> 1.0, 1e+06 -> 1e6. */
static const char *tidy(Arena *arena, const char *text)
{
    char tidied[40];
    size_t n = 0;
    int is_integer = 1;
    for (const char *t = text; *t && n < sizeof tidied - 3; t++) {
        if (*t == 'e') {
            is_integer = 0;
            tidied[n++] = *t;
            int negative = t[1] == '-';
            t += 1 + strspn(t + 1, "+-0");
            if (negative)
                tidied[n++] = '-';
            t--;
        } else if ((*t >= '0' && *t <= '9') || *t == '-') {
            tidied[n++] = *t;
        } else if (is_integer) { /* the decimal point of whatever locale */
            is_integer = 0;
            tidied[n++] = '.';
        }
    }
    if (is_integer) {
        tidied[n++] = '.';
        tidied[n++] = '0';
    }
    return arena_copy(arena, tidied, n);
}

static const char *special_text(double value)
{
    return isnan(value)         ? "NAN"
           : value == INFINITY  ? "INFINITY"
           : value == -INFINITY ? "-INFINITY"
                                : NULL;
}

/* "1000" rather than "1e3": numbers below 1e7 are written out. */
static const char *digits_text(Arena *arena, double value, int digits)
{
    char text[40];
    snprintf(text, sizeof text, "%.*g", digits, value);
    const char *exponent = strchr(text, 'e');
    if (exponent && exponent[1] == '+' && atoi(exponent + 1) < 7)
        snprintf(text, sizeof text, "%.*g", atoi(exponent + 1) + 1, value);
    return tidy(arena, text);
}

const char *double_text(Arena *arena, double value)
{
    const char *text = special_text(value);
    for (int digits = 1; !text && digits <= 17; digits++) {
        const char *tried = digits_text(arena, value, digits);
        if (read_double(tried) == value)
            text = tried;
    }
    return text;
}

const char *float_text(Arena *arena, float value)
{
    const char *text = special_text((double)value);
    for (int digits = 1; !text && digits <= 9; digits++) {
        const char *tried = digits_text(arena, (double)value, digits);
        if (read_float(tried) == value)
            text = arena_printf(arena, "%sf", tried);
    }
    return text;
}
