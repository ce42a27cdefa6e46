/* The lexer's rules, and one small function for each job that a rule starts.
 *
 *     w = x * 2e-3;   ->   NAME w  EQUAL  NAME x  STAR  REAL 0.002  SEMICOLON
 *
 * Names are ASCII: they become names of C. lexer_init has checked that the text is UTF-8 without NULs,
 * so the rules below see whole characters, and a NUL is the end.
 */
#include "frontend/lexer.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_BYTES = 255 };

enum TokenClass { VALUE, PUNCTUATION, WORD, SCALAR };

static const struct {
    const char *spelling;
    enum TokenClass class;
} tokens[TOKEN_COUNT] = {
#define TOKEN(id, spelling, class) [TOKEN_##id] = {spelling, class},
#include "frontend/token.def"
#undef TOKEN
};

const char *token_spelling(TokenKind kind)
{
    return tokens[kind].spelling;
}

int token_is_word(TokenKind kind)
{
    return tokens[kind].class == WORD || tokens[kind].class == SCALAR;
}

ElementType token_scalar(TokenKind kind)
{
    if (tokens[kind].class != SCALAR)
        return SCALAR_NONE;
    return (ElementType)(SCALAR_FLOAT + (kind - TOKEN_FLOAT)); /* the same order in both */
}

/* --- errors --- */

static uint32_t offset_of(const Lexer *l, const unsigned char *p)
{
    return (uint32_t)(p - (const unsigned char *)l->source->text);
}

static Span span_of(const Lexer *l, const unsigned char *begin, const unsigned char *end)
{
    return (Span){(uint32_t)l->source->index + 1, offset_of(l, begin), offset_of(l, end)};
}

#define lex_error(l, begin, end, ...)                                                              \
    ((l)->spoiled = 1, error_at((l)->diags, CODE_LEX, span_of((l), (begin), (end)), __VA_ARGS__))

static int length_of(const unsigned char *begin, const unsigned char *end)
{
    return (int)(end - begin);
}

/* How much of a text to quote: at most 60 bytes, and whole characters. */
static int quoted_length(const unsigned char *begin, const unsigned char *end)
{
    int length = length_of(begin, end);
    if (length <= 60)
        return length;
    length = 60;
    while ((begin[length] & 0xc0) == 0x80)
        length--;
    return length;
}

/* --- the start --- */

/* Is the text ours to read? */
static int check_text(Lexer *l, const unsigned char *begin, size_t size)
{
    if (size > SOURCE_MAX) {
        error_at(l->diags, CODE_LIMIT, span_of(l, begin, begin), "the file is larger than 16 MiB");
        return 0;
    }
    for (const unsigned char *p = begin, *end = begin + size; p < end;) {
        uint32_t c;
        int length = utf8_decode((const char *)p, (size_t)(end - p), &c);
        if (length == 0)
            lex_error(l, p, p + 1, "the text is not UTF-8: unexpected byte 0x%02x", *p);
        else if (c == 0)
            lex_error(l, p, p + 1, "the text holds a NUL byte");
        if (length == 0 || c == 0)
            return 0;
        p += length;
    }
    return 1;
}

void lexer_init(Lexer *l, const Source *source, Diags *diags, Names *names, Arena *arena)
{
    *l = (Lexer){.source = source, .diags = diags, .names = names, .arena = arena, .is_first = 1};
    for (int i = 0; i < TOKEN_COUNT; i++)
        if (token_is_word((TokenKind)i))
            l->words[i] = intern(names, tokens[i].spelling);
    const unsigned char *begin = (const unsigned char *)source->text;
    l->cursor = l->start = l->line = begin;
    l->limit = begin + source->size;
    if (!check_text(l, begin, source->size)) {
        l->cursor = l->limit;
        l->spoiled = 1;
    }
    if (l->limit - begin >= 3 && memcmp(begin, "\xef\xbb\xbf", 3) == 0)
        l->cursor += 3; /* a byte order mark */
    if (l->limit - l->cursor >= 2 && memcmp(l->cursor, "#!", 2) == 0) {
        const unsigned char *newline = memchr(l->cursor, '\n', (size_t)(l->limit - l->cursor));
        l->cursor = newline ? newline : l->limit;
    }
}

/* --- characters --- */

/* Does the character change the reading direction of the text around it? */
static int is_bidi(uint32_t c)
{
    return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e ||
           c == 0x200f || c == 0x61c;
}

/* The first such character, or NULL. */
static const unsigned char *find_bidi(const unsigned char *p, const unsigned char *end)
{
    while (p < end) {
        uint32_t c = 0;
        int length = utf8_decode((const char *)p, (size_t)(end - p), &c);
        if (is_bidi(c))
            return p;
        p += length;
    }
    return NULL;
}

static int is_name_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c >= 0x80;
}

static int is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

/* A character that no rule takes; re2c has taken its first byte. */
static void stray(Lexer *l)
{
    uint32_t c = 0;
    l->cursor = l->start + utf8_decode((const char *)l->start, (size_t)(l->limit - l->start), &c);
    if (is_bidi(c))
        lex_error(l, l->start, l->cursor,
                  "U+%04X changes the reading direction of the text and is refused here", (unsigned)c);
    else if (c == 0x201c || c == 0x201d || c == 0x2018 || c == 0x2019)
        lex_error(l, l->start, l->cursor, "U+%04X is a typographic quote; strings are written \"…\"",
                  (unsigned)c);
    else if (c > ' ' && c < 0x7f)
        lex_error(l, l->start, l->cursor, "'%c' is not part of the language", (int)c);
    else
        lex_error(l, l->start, l->cursor, "the character U+%04X is not part of the language",
                  (unsigned)c);
}

/* --- comments --- */

static void check_comment(Lexer *l)
{
    const unsigned char *bidi = find_bidi(l->start, l->cursor);
    if (bidi)
        warn_at(l->diags, CODE_BIDI, span_of(l, bidi, bidi + 2),
                "this comment changes the reading direction of the text; what follows may not be what "
                "it looks like");
}

static void line_comment(Lexer *l)
{
    const unsigned char *newline = memchr(l->cursor, '\n', (size_t)(l->limit - l->cursor));
    l->cursor = newline ? newline : l->limit;
    check_comment(l);
}

/* A line of ///, kept for the next token. */
static void doc_comment(Lexer *l)
{
    line_comment(l);
    const unsigned char *begin = l->start + 3, *end = l->cursor;
    if (begin < end && *begin == ' ')
        begin++;
    while (end > begin && (end[-1] == '\r' || end[-1] == ' '))
        end--;
    vec_push(l->arena, &l->doc, span_of(l, begin, end));
}

static void block_comment(Lexer *l)
{
    const unsigned char *end = memmem(l->cursor, (size_t)(l->limit - l->cursor), "*/", 2);
    if (!end)
        lex_error(l, l->start, l->start + 2, "this comment is not closed by '*/'");
    const unsigned char *stop = end ? end + 2 : l->limit;
    for (const unsigned char *p = l->cursor; p < stop; p++)
        if (*p == '\n') {
            l->line = p + 1;
            l->is_first = 1;
        }
    l->cursor = stop;
    check_comment(l);
}

/* The lines of /// since the last token, joined by newlines. */
static const char *take_doc(Lexer *l)
{
    if (l->doc.n == 0)
        return NULL;
    Out o;
    out_init(&o, l->arena);
    for (int i = 0; i < l->doc.n; i++)
        out_printf(&o, "%s%.*s", i ? "\n" : "", (int)(l->doc.at[i].end - l->doc.at[i].begin),
                   l->source->text + l->doc.at[i].begin);
    l->doc.n = 0;
    return o.size ? o.text : NULL;
}

/* --- tokens --- */

static Token token(Lexer *l, TokenKind kind)
{
    Token t = {.kind = kind,
               .span = span_of(l, l->start, l->cursor),
               .name = l->words[kind],
               .doc = take_doc(l),
               .column = length_of(l->line, l->start),
               .is_first = l->is_first,
               .spoiled = l->spoiled};
    l->is_first = l->spoiled = 0;
    return t;
}

static Token name(Lexer *l)
{
    int length = length_of(l->start, l->cursor);
    if (length > NAME_MAX_BYTES) {
        l->spoiled = 1;
        error_at(l->diags, CODE_LIMIT, span_of(l, l->start, l->cursor),
                 "this name has %d bytes, more than the %d a name may have", length, NAME_MAX_BYTES);
    }
    Str text = intern_n(l->names, (const char *)l->start, (size_t)length);
    for (int i = 0; i < TOKEN_COUNT; i++)
        if (l->words[i] == text)
            return token(l, (TokenKind)i);
    Token t = token(l, TOKEN_NAME);
    t.name = text;
    return t;
}

/* A word with letters that are not ASCII. */
static Token foreign_name(Lexer *l)
{
    lex_error(l, l->start, l->cursor,
              "names are made of the letters a to z, A to Z, digits and '_', found '%.*s'",
              quoted_length(l->start, l->cursor), (const char *)l->start);
    return name(l);
}

/* --- numbers --- */

static const unsigned char *skip_digits(const unsigned char *p)
{
    while (is_digit(*p))
        p++;
    return p;
}

/* The end of the number that starts at p; *is_real. "0..1" is 0, then "..". */
static const unsigned char *number_end(const unsigned char *p, int *is_real)
{
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X') && is_name_byte(p[2])) {
        p += 2;
        while (is_digit(*p) || (*p >= 'a' && *p <= 'f') || (*p >= 'A' && *p <= 'F'))
            p++;
        return p;
    }
    p = skip_digits(p);
    if (p[0] == '.' && p[1] != '.') {
        *is_real = 1;
        p = skip_digits(p + 1);
    }
    if (*p == 'e' || *p == 'E') {
        const unsigned char *exponent = p[1] == '+' || p[1] == '-' ? p + 2 : p + 1;
        if (is_digit(*exponent)) {
            *is_real = 1;
            p = skip_digits(exponent);
        }
    }
    return p;
}

static const char *why_not_a_number(const unsigned char *rest, size_t length)
{
    int is_suffix = length <= 3 && strspn((const char *)rest, "fFlLuU") >= length;
    return is_suffix ? ": numbers have no suffix; for a type write f32(1)" : "";
}

/* Reports what is stuck to the number ("1abc", "1.2.3") and makes it part of the token. */
static void check_number_end(Lexer *l)
{
    const unsigned char *rest = l->cursor, *end = rest;
    while (is_name_byte(*end) || (*end == '.' && is_digit(end[1]) && end > l->start))
        end++;
    if (end == rest)
        return;
    lex_error(l, l->start, end, "'%.*s' is not a number%s", quoted_length(l->start, end),
              (const char *)l->start, why_not_a_number(rest, (size_t)(end - rest)));
    l->cursor = end;
}

static Token integer(Lexer *l, const char *digits)
{
    int is_octal = digits[0] == '0' && is_digit((unsigned char)digits[1]);
    errno = 0;
    long long value = strtoll(digits, NULL, digits[0] == '0' && !is_octal ? 0 : 10);
    if (is_octal && !l->spoiled)
        lex_error(l, l->start, l->cursor,
                  "a number that starts with 0 would be octal in C; leave the 0 out");
    else if (errno == ERANGE && !l->spoiled)
        lex_error(l, l->start, l->cursor, "%.60s does not fit in 64 bits", digits);
    Token t = token(l, TOKEN_INT);
    t.integer = value;
    return t;
}

static Token real(Lexer *l, const char *digits)
{
    double value = read_double(digits);
    size_t mantissa = strcspn(digits, "eE");
    if (l->spoiled)
        value = 1;
    else if (isinf(value))
        lex_error(l, l->start, l->cursor, "%.60s is too large for a real", digits);
    else if (value == 0 && strcspn(digits, "123456789") < mantissa)
        lex_error(l, l->start, l->cursor, "%.60s is too small for a real: it would be 0", digits);
    Token t = token(l, TOKEN_REAL);
    t.real = isfinite(value) ? value : 1;
    return t;
}

static Token number(Lexer *l)
{
    int is_real = 0;
    l->cursor = number_end(l->start, &is_real);
    const char *digits =
        arena_copy(l->arena, (const char *)l->start, (size_t)(l->cursor - l->start));
    check_number_end(l);
    return is_real ? real(l, digits) : integer(l, digits);
}

/* --- strings --- */

static int hex_digit(unsigned char c)
{
    return is_digit(c)              ? c - '0'
           : (c >= 'a' && c <= 'f') ? c - 'a' + 10
           : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                    : -1;
}

/* Reads the escape at p (a backslash) into *value; gives its length. */
static int escape(Lexer *l, const unsigned char *p, char *value)
{
    *value = '?';
    switch (p[1]) {
    case 'n':
        *value = '\n';
        return 2;
    case 't':
        *value = '\t';
        return 2;
    case '\\':
    case '"':
        *value = (char)p[1];
        return 2;
    case 'x':
        if (hex_digit(p[2]) >= 0 && hex_digit(p[3]) >= 0) {
            *value = (char)(hex_digit(p[2]) * 16 + hex_digit(p[3]));
            if (*value == '\0')
                lex_error(l, p, p + 4, "a string cannot hold a NUL");
            return 4;
        }
        lex_error(l, p, p + 2, "'\\x' needs two hexadecimal digits");
        return 2;
    default:
        if (p[1] < 0x20 || p[1] >= 0x7f)
            lex_error(l, p, p + 1, "a backslash needs one of n t \\ \" xHH after it");
        else
            lex_error(l, p, p + 2, "unknown escape '\\%c'; there are \\n \\t \\\\ \\\" \\xHH", p[1]);
        return p[1] < 0x20 || p[1] >= 0x7f ? 1 : 2;
    }
}

/* Where a string's text ends: at the quote it began with, or at the end of its line. */
static const unsigned char *string_end(const Lexer *l, const unsigned char *p, unsigned char quote)
{
    while (p < l->limit && *p != quote && *p != '\n')
        p += *p == '\\' && p + 1 < l->limit && p[1] != '\n' ? 2 : 1;
    return p;
}

static void check_string(Lexer *l, unsigned char quote, int is_closed)
{
    const unsigned char *bidi = find_bidi(l->start, l->cursor);
    if (!is_closed)
        lex_error(l, l->start, l->start + 1, "this string is not closed on its line");
    else if (quote != '"')
        lex_error(l, l->start, l->cursor, "strings are written in double quotes");
    else if (bidi)
        lex_error(l, bidi, bidi + 2,
                  "a character that changes the reading direction is refused in a string; write it as \\x…");
}

static Token string(Lexer *l, unsigned char quote)
{
    const unsigned char *p = l->cursor, *end = string_end(l, p, quote);
    int is_closed = end < l->limit && *end == quote;
    char *value = arena_alloc(l->arena, (size_t)(end - p) + 1);
    size_t size = 0;
    while (p < end) {
        if (*p == '\\') {
            p += escape(l, p, &value[size++]);
            continue;
        }
        if (*p < ' ' && *p != '\t' && !l->spoiled && (is_closed || *p != '\r'))
            lex_error(l, p, p + 1, "a control character in a string is written \\x%02x", *p);
        value[size++] = (char)*p++;
    }
    l->cursor = is_closed ? end + 1 : end;
    check_string(l, quote, is_closed);
    Token t = token(l, TOKEN_STRING);
    t.text = value;
    l->spoiled = !is_closed; /* the rest of the line is in it */
    return t;
}

/* --- operators of other languages --- */

static Token no_such_operator(Lexer *l, TokenKind meant, const char *advice)
{
    lex_error(l, l->start, l->cursor, "there is no '%.*s'; %s", length_of(l->start, l->cursor),
              (const char *)l->start, advice);
    Token t = token(l, meant);
    l->spoiled = 1;
    return t;
}

Token lexer_next(Lexer *l)
{
    for (;;) {
        l->start = l->cursor;
        /*!re2c
          re2c:define:YYCTYPE = "unsigned char";
          re2c:define:YYCURSOR = "l->cursor";
          re2c:define:YYLIMIT = "l->limit";
          re2c:define:YYMARKER = "l->marker";
          re2c:yyfill:enable = 0;
          re2c:eof = 0;
          re2c:encoding:utf8 = 1;
          re2c:encoding-policy = fail;

          letter  = [a-zA-Z_];
          digit   = [0-9];
          symbol  = [\u0080-\u00bf\u00d7\u00f7\u061c\u2000-\u206f\u2190-\u2bff\u3000-\u303f\ufe00-\uffff];
          foreign = [^\x00-\x7f] \ symbol;

          *                      { stray(l); continue; }
          $                      { return token(l, TOKEN_END); }
          [ \t\r]+               { continue; }
          "\n"                   { l->line = l->cursor; l->is_first = 1; continue; }
          "//"                   { line_comment(l); continue; }
          "///"                  { doc_comment(l); continue; }
          "////"                 { line_comment(l); continue; }
          "/" "*"                { block_comment(l); continue; }
          "#"                    { lex_error(l, l->start, l->cursor, "comments begin with '//'");
                                   line_comment(l); continue; }

          letter (letter | digit)*                          { return name(l); }
          (letter | foreign) (letter | digit | foreign)*    { return foreign_name(l); }
          digit | "." digit      { return number(l); }
          ["]                    { return string(l, '"'); }
          [']                    { return string(l, '\''); }

          "("                    { return token(l, TOKEN_LPAREN); }
          ")"                    { return token(l, TOKEN_RPAREN); }
          "["                    { return token(l, TOKEN_LBRACKET); }
          "]"                    { return token(l, TOKEN_RBRACKET); }
          "{"                    { return token(l, TOKEN_LBRACE); }
          "}"                    { return token(l, TOKEN_RBRACE); }
          ","                    { return token(l, TOKEN_COMMA); }
          ";"                    { return token(l, TOKEN_SEMICOLON); }
          ":"                    { return token(l, TOKEN_COLON); }
          "="                    { return token(l, TOKEN_EQUAL); }
          ":="                   { return token(l, TOKEN_COLON_EQUAL); }
          "."                    { return token(l, TOKEN_DOT); }
          ".."                   { return token(l, TOKEN_DOT_DOT); }
          "->"                   { return token(l, TOKEN_ARROW); }
          "|>"                   { return token(l, TOKEN_PIPE); }
          "||"                   { return token(l, TOKEN_OR_OR); }
          "&&"                   { return token(l, TOKEN_AND_AND); }
          "=="                   { return token(l, TOKEN_EQ); }
          "!="                   { return token(l, TOKEN_NE); }
          "<"                    { return token(l, TOKEN_LT); }
          "<="                   { return token(l, TOKEN_LE); }
          ">"                    { return token(l, TOKEN_GT); }
          ">="                   { return token(l, TOKEN_GE); }
          "+"                    { return token(l, TOKEN_PLUS); }
          "-"                    { return token(l, TOKEN_MINUS); }
          "*"                    { return token(l, TOKEN_STAR); }
          "/"                    { return token(l, TOKEN_SLASH); }
          "%"                    { return token(l, TOKEN_PERCENT); }
          "@"                    { return token(l, TOKEN_AT); }
          "!"                    { return token(l, TOKEN_BANG); }

          "&"                    { return no_such_operator(l, TOKEN_AND_AND, "write '&&'"); }
          "|"                    { return no_such_operator(l, TOKEN_OR_OR, "write '||' or '|>'"); }
          "**"                   { return no_such_operator(l, TOKEN_STAR, "write pow(a, b)"); }
          "++"                   { return no_such_operator(l, TOKEN_MINUS, "write x = x + 1"); }
          "=>"                   { return no_such_operator(l, TOKEN_ARROW, "write '->'"); }
          [-+*/%@] "="           { return no_such_operator(l, TOKEN_EQUAL, "write x = x + y"); }
        */
    }
}
