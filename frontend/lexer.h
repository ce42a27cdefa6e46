/* Turns the text of a source into tokens, one at a time. What the language does not have is
 * reported here, once and precisely; the lexer then goes on as well as it can and marks the tokens
 * around the place as spoiled, so that the parser does not complain about the same mistake.
 */
#ifndef AMPC_FRONTEND_LEXER_H
#define AMPC_FRONTEND_LEXER_H
#include "frontend/ast.h"
#include "support/diag.h"

typedef enum TokenKind {
#define TOKEN(id, spelling, class) TOKEN_##id,
#include "frontend/token.def"
#undef TOKEN
    TOKEN_COUNT
} TokenKind;

typedef struct Token {
    TokenKind kind;
    Span span;
    Str name; /* names and reserved words */
    int64_t integer;
    double real;
    const char *text; /* strings: the value */
    const char *doc;  /* the /// lines before it, or NULL */
    int column;       /* bytes before it on its line */
    int is_first;     /* nothing but space stands before it on its line */
    int spoiled;      /* the lexer reported an error in it or just before it */
} Token;

typedef struct Lexer {
    const Source *source;
    Diags *diags;
    Names *names;
    Arena *arena;
    Str words[TOKEN_COUNT]; /* interned spellings of the reserved words */
    /* re2c's: where it reads, the end of the text, the last place it could fall back to */
    const unsigned char *cursor, *limit, *marker;
    const unsigned char *start, *line; /* of the current token; of its line */
    Vec(Span) doc;
    int is_first, spoiled;
} Lexer;

/* Refuses (with one error, and an empty text) what is too large, not UTF-8, or holds a NUL. */
void lexer_init(Lexer *l, const Source *source, Diags *diags, Names *names, Arena *arena);
Token lexer_next(Lexer *l); /* TOKEN_END for ever at the end */

const char *token_spelling(TokenKind kind);
int token_is_word(TokenKind kind);        /* reserved */
ElementType token_scalar(TokenKind kind); /* SCALAR_NONE if it does not name one */
#endif
