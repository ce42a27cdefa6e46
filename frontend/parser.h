/* What the parts of the parser share; private to frontend/parse*.c.
 *
 * After a syntax error the parser is `lost`: it reports nothing more and unwinds, until the loop
 * over statements, members or items has skipped to where the next one begins. So every loop below
 * ends when the parser is lost, and what was half read is dropped.
 */
#ifndef AMPC_FRONTEND_PARSER_H
#define AMPC_FRONTEND_PARSER_H
#include "frontend/lexer.h"
#include "frontend/parse.h"

typedef struct Parser {
    Lexer lexer;
    Diags *diags;
    Names *names;
    Arena *arena;
    Token token, next; /* the one looked at, and the one after it */
    Span last;         /* of the token before */
    int lost;
    uint32_t begun; /* offset of the statement, member or item that is being read */
    uint32_t
        complained;  /* 1 + end of the token of the last complaint, and 1 + begin of the place it */
    uint32_t blamed; /* was about: no token and no place gets two */
    int depth;       /* of nesting: expressions, types, blocks */
    int open;        /* parentheses and brackets that are open now, */
    int open_when_lost; /* and were when the parser got lost */
    int in_step;        /* statements of a step are allowed */
} Parser;

/* parse_token.c: tokens, and what to do about wrong ones. */
void advance(Parser *p);
int at(const Parser *p, TokenKind kind);
int at_word(const Parser *p, const char *word); /* a contextual word: a NAME spelled so */
int accept(Parser *p, TokenKind kind);          /* takes the token if it is of the kind */
int accept_word(Parser *p, const char *word);
/* Each reports and gets lost when it finds something else; `where` completes "expected ';' …". */
void expect(Parser *p, TokenKind kind, const char *where);
/* A missing semicolon at the end of a line is reported and made up. */
void expect_semicolon(Parser *p, const char *where);
Str expect_name(Parser *p, Span *span, const char *what);
Str expect_qualified_name(Parser *p, Span *span, const char *what); /* a.b.c, one name */
Text expect_string(Parser *p, const char *what);
NameRefs expect_names(Parser *p, const char *what); /* a, b.c, … */
Token open_bracket(Parser *p, TokenKind kind, const char *where);
void close_bracket(Parser *p, Token open, TokenKind kind, const char *where);
/* An error at the current token; NULL if it would say the same mistake twice. Gets lost. */
Diag *syntax_error(Parser *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same at another place, but the parser knows how to go on. */
Diag *mild_error(Parser *p, Span span, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
Diag *limit_error(Parser *p, Span span, const char *format, ...)
    __attribute__((format(printf, 3, 4))); /* gets lost */
void refuse_dotted_number(Parser *p);      /* the .3 of h.3, where only names may follow */
const char *found(Parser *p);              /* the current token, for "found …" */
/* One level deeper; 0 (and lost) if that is too deep. Always paired with leave. */
int enter(Parser *p);
void leave(Parser *p);
Span span_from(const Parser *p, Span first); /* to the last token taken */
/* When lost: skip to where the next statement or member of the block begins (behind a ';' or a {…},
 * before a '}', or before a word that begins one), or the next item. */
void resume_in_block(Parser *p);
void resume_at_item(Parser *p);
int begins_item(const Token *t);
/* Loops over the members of a {…}: 0 at its '}' or where the rest of it is missing. */
int more_members(Parser *p, Token open, const char *what);

/* parse_expr.c */
Expr *parse_expr(Parser *p);
void parse_args(Parser *p, Args *args, TokenKind end); /* up to, not including, end */
Call parse_call(Parser *p, const char *what);
Range *parse_range(Parser *p);

/* parse_type.c */
TypeExpr *parse_type(Parser *p);
TypeExpr *parse_result(Parser *p, int may_be_named); /* "->" type */
Signature parse_signature(Parser *p);
ValueDecl parse_value_decl(Parser *p); /* name ":" stype [ "=" expr ] [ "in" range ] */

/* parse_stmt.c */
Block parse_block(Parser *p, int in_step, const char *what);

/* parse.c */
Item *parse_item(Parser *p); /* NULL if it could not be read */
#endif
