#include "ir/reader.h"
#include "ir/text_word.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int at_comment(const char *p)
{
    return p[0] == '/' && p[1] == '/';
}

static const char *end_of(const Source *source)
{
    return source->text + source->size;
}

static const char *skip_line(const char *p, const char *end)
{
    while (p < end && *p != '\n')
        p++;
    return p;
}

/* Over blanks and comments inside a line. */
static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
        p++;
    return at_comment(p) ? skip_line(p, end) : p;
}

static void set_span(Reader *r, const char *begin)
{
    r->span = (Span){.file = (uint32_t)r->source->index + 1,
                     .begin = (uint32_t)(begin - r->source->text),
                     .end = (uint32_t)(r->at - r->source->text)};
}

void fail_at(Reader *r, Span span, const char *format, ...)
{
    if (r->failed)
        return;
    va_list args;
    va_start(args, format);
    error_at(r->program->diags, CODE_SYNTAX, span, "%s", arena_vprintf(r->arena, format, args));
    va_end(args);
    r->failed = 1;
    r->kind = TOKEN_END;
    r->at = end_of(r->source);
}

static const char *token_text(Reader *r)
{
    if (r->kind == TOKEN_END)
        return "the end of the text";
    if (r->kind == TOKEN_LINE)
        return "the end of the line";
    int n = (int)(r->span.end - r->span.begin);
    return arena_printf(r->arena, "'%.*s'", n < 40 ? n : 40, r->source->text + r->span.begin);
}

void fail(Reader *r, const char *wanted)
{
    fail_at(r, r->span, "expected %s, found %s", wanted, token_text(r));
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "a\"b\\c\x0a": the escapes that the printer writes. */
static void read_string(Reader *r)
{
    const char *begin = r->at, *p = r->at + 1, *end = end_of(r->source);
    char *text = arena_alloc(r->arena, (size_t)(skip_line(p, end) - p) + 1);
    size_t n = 0;
    while (p < end && *p != '"' && *p != '\n') {
        char c = *p++;
        if (c == '\\' && (*p == '"' || *p == '\\')) {
            c = *p++;
        } else if (c == '\\') {
            int high = *p == 'x' ? hex_value(p[1]) : -1, low = high >= 0 ? hex_value(p[2]) : -1;
            if (low < 0 || !(high | low))
                break;
            c = (char)(16 * high + low);
            p += 3;
        }
        text[n++] = c;
    }
    r->at = p;
    set_span(r, begin);
    if (p >= end || *p != '"') {
        fail_at(r, r->span, "a string without an end, or with an unknown escape");
        return;
    }
    r->at = p + 1;
    r->kind = TOKEN_STRING;
    r->text = intern_n(r->names, text, n);
    set_span(r, begin);
}

static void read_number(Reader *r)
{
    const char *begin = r->at, *p = begin;
    int real = 0;
    p += *p == '-';
    while (is_digit(*p))
        p++;
    if (*p == '.' && is_digit(p[1])) {
        real = 1;
        p++;
        while (is_digit(*p))
            p++;
    }
    if (*p == 'e' && (is_digit(p[1]) || ((p[1] == '-' || p[1] == '+') && is_digit(p[2])))) {
        real = 1;
        p += 2;
        while (is_digit(*p))
            p++;
    }
    r->at = p;
    set_span(r, begin);
    char *text = arena_copy(r->arena, begin, (size_t)(p - begin));
    r->kind = real ? TOKEN_REAL : TOKEN_INT;
    r->real = read_double(text);
    if (real)
        return;
    errno = 0;
    r->integer = strtoll(text, NULL, 10);
    if (errno)
        fail_at(r, r->span, "'%s' does not fit into 64 bits", text);
}

static void read_mark(Reader *r)
{
    static const char *const pairs[] = {"..", "<=", ">=", "==", "!=", "&&", "||"};
    const char *begin = r->at;
    size_t n = 1;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (begin[0] == pairs[i][0] && begin[1] == pairs[i][1])
            n = 2;
    r->at += n;
    set_span(r, begin);
    if (n == 1 && (!*begin || !strchr("()[],:=#@+-*/%<>!", *begin))) {
        fail_at(r, r->span, "a character that IR text does not have");
        return;
    }
    r->kind = TOKEN_MARK;
    r->text = intern_n(r->names, begin, n);
}

void next_token(Reader *r)
{
    const char *end = end_of(r->source);
    int fresh = r->kind == TOKEN_LINE; /* ends of empty lines are skipped */
    if (r->failed)
        return;
    r->at = skip_blanks(r->at, end);
    while (fresh && r->at < end && *r->at == '\n')
        r->at = skip_blanks(r->at + 1, end);
    const char *begin = r->at;
    if (r->at >= end) {
        r->kind = fresh ? TOKEN_END : TOKEN_LINE;
        set_span(r, begin);
    } else if (*begin == '\n') {
        r->at++;
        r->kind = TOKEN_LINE;
        set_span(r, begin);
    } else if (is_letter(*begin)) {
        size_t n = word_length(begin);
        r->at += n;
        r->kind = TOKEN_WORD;
        r->text = intern_n(r->names, begin, n);
        set_span(r, begin);
    } else if (*begin == '%' && (is_letter(begin[1]) || is_digit(begin[1]))) {
        do
            r->at++;
        while (is_letter(*r->at) || is_digit(*r->at));
        r->kind = TOKEN_VALUE;
        r->text = intern_n(r->names, begin, (size_t)(r->at - begin));
        set_span(r, begin);
    } else if (is_digit(*begin) || (*begin == '-' && is_digit(begin[1]))) {
        read_number(r);
    } else if (*begin == '"') {
        read_string(r);
    } else {
        read_mark(r);
    }
}

/* Where the header begins: behind blank lines and comments. */
static const char *header_of(const Source *source)
{
    const char *p = source->text, *end = end_of(source);
    for (;;) {
        p = skip_blanks(p, end);
        if (p >= end || *p != '\n')
            return p;
        p++;
    }
}

static const char header[] = "ampc-ir";

int is_ir_text(const Source *source)
{
    const char *p = header_of(source);
    size_t n = sizeof header - 1;
    return (size_t)(end_of(source) - p) > n && !memcmp(p, header, n) &&
           (p[n] == ' ' || p[n] == '\t');
}

void reader_open(Reader *r, const Source *source, Diags *diags, Names *names, Arena *arena)
{
    *r = (Reader){.source = source,
                  .names = names,
                  .arena = arena,
                  .program = program_make(arena, names, diags)};
    r->at = header_of(source);
    if (is_ir_text(source)) {
        r->at += sizeof header - 1;
        next_token(r);
        return;
    }
    set_span(r, r->at);
    fail_at(r, r->span, "expected 'ampc-ir 1'");
}

int is_mark(const Reader *r, const char *mark)
{
    return r->kind == TOKEN_MARK && !strcmp(r->text, mark);
}

int take_mark(Reader *r, const char *mark)
{
    if (!is_mark(r, mark))
        return 0;
    next_token(r);
    return 1;
}

void need_mark(Reader *r, const char *mark)
{
    if (!take_mark(r, mark))
        fail(r, arena_printf(r->arena, "'%s'", mark));
}

int is_keyword(const Reader *r, const char *word)
{
    return r->kind == TOKEN_WORD && !strcmp(r->text, word);
}

int take_keyword(Reader *r, const char *word)
{
    if (!is_keyword(r, word))
        return 0;
    next_token(r);
    return 1;
}

void need_line(Reader *r)
{
    if (r->kind != TOKEN_LINE)
        fail(r, "the end of the line");
    next_token(r);
}

Str need_name(Reader *r)
{
    Str name = r->text;
    if (r->kind != TOKEN_STRING && r->kind != TOKEN_WORD)
        fail(r, "a name");
    next_token(r);
    return r->failed ? intern(r->names, "") : name;
}

Str need_word(Reader *r)
{
    if (r->kind != TOKEN_WORD)
        fail(r, "a word");
    return need_name(r);
}

int64_t need_int(Reader *r)
{
    return need_int_in(r, INT64_MIN, INT64_MAX);
}

int64_t need_int_in(Reader *r, int64_t low, int64_t high)
{
    int64_t value = r->integer;
    if (r->kind != TOKEN_INT)
        fail(r, "an integer");
    else if (value < low || value > high)
        fail_at(r, r->span, "%lld is not in %lld..%lld", (long long)value, (long long)low,
                (long long)high);
    next_token(r);
    return r->failed ? low : value;
}

double need_real(Reader *r)
{
    int negative = take_mark(r, "-");
    double value = r->real;
    if (is_keyword(r, "INFINITY"))
        value = INFINITY;
    else if (is_keyword(r, "NAN"))
        value = NAN;
    else if (r->kind != TOKEN_INT && r->kind != TOKEN_REAL)
        fail(r, "a number");
    next_token(r);
    return negative ? -value : value;
}

int need_choice(Reader *r, const char *choices)
{
    int choice = r->kind == TOKEN_WORD ? choice_find(choices, r->text) : -1;
    if (choice < 0)
        fail(r, arena_printf(r->arena, "one of %s", choices));
    next_token(r);
    return choice < 0 ? 0 : choice;
}

const char *raw_line(Reader *r, size_t *size)
{
    const char *begin = r->at, *end = skip_line(begin, end_of(r->source));
    *size = (size_t)(end - begin);
    r->at = end < end_of(r->source) ? end + 1 : end;
    return begin;
}
