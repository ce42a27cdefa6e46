/* The parser's hands: looking at tokens, taking them, complaining, and finding the way again. */
#include "frontend/parser.h"
#include <string.h>

/* --- taking --- */

static void stop(Parser *p)
{
    p->token.kind = p->next.kind = TOKEN_END;
    p->token.spoiled = p->next.spoiled = 1; /* nothing more is worth saying */
}

void advance(Parser *p)
{
    p->last = p->token.span;
    p->token = p->next;
    p->next = lexer_next(&p->lexer);
    if (diags_full(p->diags))
        stop(p);
}

int at(const Parser *p, TokenKind kind)
{
    return p->token.kind == kind;
}

int at_word(const Parser *p, const char *word)
{
    return p->token.kind == TOKEN_NAME && strcmp(p->token.name, word) == 0;
}

int accept(Parser *p, TokenKind kind)
{
    if (p->lost || !at(p, kind))
        return 0;
    advance(p);
    return 1;
}

int accept_word(Parser *p, const char *word)
{
    if (p->lost || !at_word(p, word))
        return 0;
    advance(p);
    return 1;
}

Span span_from(const Parser *p, Span first)
{
    return span_join(first, p->last);
}

/* --- complaining --- */

const char *found(Parser *p)
{
    const Token *t = &p->token;
    int length = (int)(t->span.end - t->span.begin);
    if (t->kind == TOKEN_END || t->kind == TOKEN_STRING)
        return token_spelling(t->kind);
    return arena_printf(p->arena, "'%.*s'", length > 60 ? 60 : length,
                        p->lexer.source->text + t->span.begin);
}

static void get_lost(Parser *p)
{
    if (!p->lost)
        p->open_when_lost = p->open;
    p->lost = 1;
}

static Diag *complain(Parser *p, Code code, Span span, const char *format, va_list args)
{
    int may = !p->lost && !p->token.spoiled && p->complained != p->token.span.end + 1 &&
              p->blamed != span.begin + 1;
    p->complained = p->token.span.end + 1;
    p->blamed = span.begin + 1;
    return may ? error_at(p->diags, code, span, "%s", arena_vprintf(p->arena, format, args)) : NULL;
}

Diag *syntax_error(Parser *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Diag *d = complain(p, CODE_SYNTAX, p->token.span, format, args);
    va_end(args);
    get_lost(p);
    return d;
}

Diag *limit_error(Parser *p, Span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Diag *d = complain(p, CODE_LIMIT, span, format, args);
    va_end(args);
    get_lost(p);
    return d;
}

Diag *mild_error(Parser *p, Span span, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    Diag *d = complain(p, CODE_SYNTAX, span, format, args);
    va_end(args);
    return d;
}

void expect(Parser *p, TokenKind kind, const char *where)
{
    if (accept(p, kind) || p->lost)
        return;
    syntax_error(p, "expected '%s' %s, found %s", token_spelling(kind), where, found(p));
}

static Span behind_last(const Parser *p)
{
    return (Span){p->last.file, p->last.end, p->last.end};
}

void expect_semicolon(Parser *p, const char *where)
{
    if (accept(p, TOKEN_SEMICOLON) || p->lost)
        return;
    if (!p->token.is_first && !at(p, TOKEN_RBRACE) && !at(p, TOKEN_END)) {
        syntax_error(p, "expected ';' %s, found %s", where, found(p));
        return;
    }
    fix_at(mild_error(p, behind_last(p), "expected ';' %s", where), behind_last(p), ";");
}

Str expect_name(Parser *p, Span *span, const char *what)
{
    *span = p->token.span;
    Str name = p->token.name;
    if (accept(p, TOKEN_NAME))
        return name;
    if (p->lost)
        return NULL;
    if (token_is_word(p->token.kind))
        syntax_error(p, "expected %s, but %s is a reserved word", what, found(p));
    else
        syntax_error(p, "expected %s, found %s", what, found(p));
    return NULL;
}

void refuse_dotted_number(Parser *p)
{
    if (at(p, TOKEN_REAL) && p->lexer.source->text[p->token.span.begin] == '.')
        syntax_error(p, "%s is not part of a name; an index is written in [ ]", found(p));
}

enum { QUALIFIED_NAME_MAX = 1023 };

Str expect_qualified_name(Parser *p, Span *span, const char *what)
{
    Str name = expect_name(p, span, what);
    while (!p->lost && accept(p, TOKEN_DOT)) {
        if (!at(p, TOKEN_NAME) && !token_is_word(p->token.kind)) {
            syntax_error(p, "expected a name after '.', found %s", found(p));
            return NULL;
        }
        name = intern_printf(p->names, "%s.%s", name, p->token.name);
        advance(p);
        *span = span_from(p, *span);
        if (span->end - span->begin > QUALIFIED_NAME_MAX)
            limit_error(p, *span, "this name has more than %d bytes", QUALIFIED_NAME_MAX);
    }
    refuse_dotted_number(p);
    return name;
}

NameRefs expect_names(Parser *p, const char *what)
{
    NameRefs refs = {0};
    do {
        NameRef ref = {0};
        ref.name = expect_qualified_name(p, &ref.span, what);
        if (ref.name)
            vec_push(p->arena, &refs, ref);
    } while (accept(p, TOKEN_COMMA));
    return refs;
}

Text expect_string(Parser *p, const char *what)
{
    Text text = {p->token.text, p->token.span};
    if (accept(p, TOKEN_STRING))
        return text;
    if (!p->lost)
        syntax_error(p, "expected %s in double quotes, found %s", what, found(p));
    return (Text){.text = NULL};
}

Token open_bracket(Parser *p, TokenKind kind, const char *where)
{
    Token open = p->token;
    expect(p, kind, where);
    p->open++;
    return open;
}

static void complain_about_closing(Parser *p, Token open, const char *closing, const char *where)
{
    int is_end = at(p, TOKEN_SEMICOLON); /* then it was only forgotten, and all is well again */
    const char *text =
        arena_printf(p->arena, "expected '%s' %s, found %s", closing, where, found(p));
    Diag *d = is_end ? mild_error(p, p->token.span, "%s", text) : syntax_error(p, "%s", text);
    note_at(d, open.span, "to match this '%s'", token_spelling(open.kind));
    if (is_end)
        fix_at(d, behind_last(p), closing);
}

void close_bracket(Parser *p, Token open, TokenKind kind, const char *where)
{
    if (!accept(p, kind) && !p->lost)
        complain_about_closing(p, open, token_spelling(kind), where);
    p->open--;
}

int enter(Parser *p)
{
    if (++p->depth <= NESTING_MAX)
        return 1;
    limit_error(p, p->token.span, "this is nested deeper than %d levels", NESTING_MAX);
    return 0;
}

void leave(Parser *p)
{
    p->depth--;
}

/* --- finding the way again --- */

int begins_item(const Token *t)
{
    return t->is_first && t->kind >= TOKEN_IMPORT && t->kind <= TOKEN_EVAL;
}

static int begins_stmt(const Parser *p)
{
    static const char *const words[] = {"backward",  "clip",   "update",     "zero", "accumulate",
                                        "optimizer", "scaler", "checkpoint", "step"};
    const Token *t = &p->token;
    if (!t->is_first)
        return 0;
    if ((t->kind >= TOKEN_PARAM && t->kind <= TOKEN_RETURN && t->kind != TOKEN_ELSE) ||
        begins_item(t))
        return 1;
    if (t->kind != TOKEN_NAME || p->open_when_lost > 0)
        return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(t->name, words[i]) == 0)
            return 1;
    return p->next.kind == TOKEN_EQUAL || p->next.kind == TOKEN_COLON_EQUAL;
}

/* Skips a whole {…}, or to the end of the file. */
static void skip_braces(Parser *p)
{
    int depth = 0;
    do {
        depth += at(p, TOKEN_LBRACE) - at(p, TOKEN_RBRACE);
        advance(p);
    } while (depth > 0 && !at(p, TOKEN_END));
}

void resume_in_block(Parser *p)
{
    while (!at(p, TOKEN_END) && !at(p, TOKEN_RBRACE)) {
        if (p->token.span.begin != p->begun && begins_stmt(p))
            break;
        if (at(p, TOKEN_LBRACE)) {
            skip_braces(p);
            if (at(p, TOKEN_ELSE))
                continue;
            break;
        }
        int is_end = at(p, TOKEN_SEMICOLON);
        advance(p);
        if (is_end)
            break;
    }
    p->lost = 0;
}

void resume_at_item(Parser *p)
{
    int open = p->open_when_lost;
    while (!at(p, TOKEN_END)) {
        if (p->token.span.begin != p->begun && begins_item(&p->token))
            break;
        if (at(p, TOKEN_LBRACE)) {
            skip_braces(p);
            break;
        }
        open += at(p, TOKEN_LPAREN) - at(p, TOKEN_RPAREN);
        int is_end = at(p, TOKEN_SEMICOLON) && open <= 0;
        advance(p);
        if (is_end)
            break;
    }
    p->lost = 0;
}

int more_members(Parser *p, Token open, const char *what)
{
    if (p->lost)
        resume_in_block(p);
    if (accept(p, TOKEN_RBRACE))
        return 0;
    int is_missing = at(p, TOKEN_END) || (begins_item(&p->token) && p->token.column == 0);
    p->begun = p->token.span.begin;
    if (!is_missing)
        return 1;
    Diag *d =
        mild_error(p, p->token.span, "expected '}' at the end of %s, found %s", what, found(p));
    note_at(d, open.span, "it begins here");
    return 0;
}
