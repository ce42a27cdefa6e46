/* Expressions: operators by precedence, everything else by recursive descent.
 *
 *     x |> f(a)   ->   PIPE(NAME x, CALL(NAME f, a))
 *     -a * b + c  ->   BINARY + (BINARY * (UNARY - a, b), c)
 */
#include "frontend/parser.h"

/* What binds how tightly; all these associate to the left. */
static const struct {
    Operator operator;
    int precedence; /* 0: not a binary operator */
} binary[TOKEN_COUNT] = {
    [TOKEN_OR_OR] = {OPERATOR_OR, 1},    [TOKEN_AND_AND] = {OPERATOR_AND, 2},
    [TOKEN_EQ] = {OPERATOR_EQ, 3},       [TOKEN_NE] = {OPERATOR_NE, 3},
    [TOKEN_LT] = {OPERATOR_LT, 3},       [TOKEN_LE] = {OPERATOR_LE, 3},
    [TOKEN_GT] = {OPERATOR_GT, 3},       [TOKEN_GE] = {OPERATOR_GE, 3},
    [TOKEN_PLUS] = {OPERATOR_ADD, 4},    [TOKEN_MINUS] = {OPERATOR_SUB, 4},
    [TOKEN_STAR] = {OPERATOR_MUL, 5},    [TOKEN_SLASH] = {OPERATOR_DIV, 5},
    [TOKEN_PERCENT] = {OPERATOR_MOD, 5}, [TOKEN_AT] = {OPERATOR_MATMUL, 5},
};

static Expr *make_expr(Parser *p, ExprKind kind, Span span)
{
    Expr *e = new (p->arena, Expr);
    e->kind = kind;
    e->span = span;
    e->height = 1;
    return e;
}

/* Makes e the parent of a. */
static void adopt(Parser *p, Expr *e, const Expr *a)
{
    if (a->height + 1 > e->height)
        e->height = a->height + 1;
    if (e->height > EXPR_HEIGHT_MAX)
        note_at(limit_error(p, e->span, "this expression has more than %d operators in a row",
                            EXPR_HEIGHT_MAX),
                a->span, "give this part a name");
}

static Expr *primary(Parser *p);

void parse_args(Parser *p, Args *args, TokenKind end)
{
    while (!p->lost && !at(p, end)) {
        Arg arg = {.span = p->token.span};
        int is_word = at(p, TOKEN_NAME) || token_is_word(p->token.kind);
        if (is_word && p->next.kind == TOKEN_EQUAL) {
            arg.name = p->token.name;
            arg.name_span = p->token.span;
            advance(p);
            advance(p);
        }
        arg.value = parse_expr(p);
        arg.span = span_from(p, arg.span);
        vec_push(p->arena, args, arg);
        if (!accept(p, TOKEN_COMMA))
            break;
    }
}

Call parse_call(Parser *p, const char *what)
{
    Call call = {.span = p->token.span};
    call.name = expect_qualified_name(p, &call.name_span, what);
    if (!p->lost && at(p, TOKEN_SEMICOLON)) { /* layer r = relu; */
        Span behind = {p->last.file, p->last.end, p->last.end};
        fix_at(mild_error(p, p->token.span, "expected '(' after %s, found ';'", what), behind,
               "()");
        return call;
    }
    Token open = open_bracket(p, TOKEN_LPAREN, arena_printf(p->arena, "after %s", what));
    parse_args(p, &call.args, TOKEN_RPAREN);
    close_bracket(p, open, TOKEN_RPAREN, "after the arguments");
    call.span = span_from(p, call.span);
    return call;
}

static Expr *call_of(Parser *p, Expr *callee)
{
    Expr *e = make_expr(p, EXPR_CALL, callee->span);
    e->a = callee;
    Token open = open_bracket(p, TOKEN_LPAREN, "");
    parse_args(p, &e->args, TOKEN_RPAREN);
    close_bracket(p, open, TOKEN_RPAREN, "after the arguments");
    for (int i = 0; i < e->args.n; i++)
        adopt(p, e, e->args.at[i].value);
    return e;
}

/* index = [ expr ] [ ":" [ expr ] ] */
static Index parse_index(Parser *p)
{
    Index index = {.span = p->token.span};
    if (!at(p, TOKEN_COLON))
        index.begin = parse_expr(p);
    if (accept(p, TOKEN_COLON)) {
        index.is_slice = 1;
        if (!at(p, TOKEN_COMMA) && !at(p, TOKEN_RBRACKET))
            index.end = parse_expr(p);
    }
    index.span = span_from(p, index.span);
    return index;
}

static Expr *index_of(Parser *p, Expr *base)
{
    Expr *e = make_expr(p, EXPR_INDEX, base->span);
    e->a = base;
    Token open = open_bracket(p, TOKEN_LBRACKET, "");
    do {
        Index index = parse_index(p);
        vec_push(p->arena, &e->indices, index);
        if (index.begin)
            adopt(p, e, index.begin);
        if (index.end)
            adopt(p, e, index.end);
    } while (accept(p, TOKEN_COMMA));
    close_bracket(p, open, TOKEN_RBRACKET, "after the index");
    return e;
}

static Expr *member_of(Parser *p, Expr *base)
{
    Expr *e = make_expr(p, EXPR_MEMBER, base->span);
    e->a = base;
    advance(p);
    e->name = p->token.name;
    e->name_span = p->token.span;
    if (at(p, TOKEN_NAME) || token_is_word(p->token.kind))
        advance(p);
    else
        syntax_error(p, "expected a name after '.', found %s", found(p));
    return e;
}

static Expr *postfix(Parser *p)
{
    Expr *e = primary(p);
    while (!p->lost) {
        Expr *base = e;
        if (at(p, TOKEN_LPAREN))
            e = call_of(p, base);
        else if (at(p, TOKEN_LBRACKET))
            e = index_of(p, base);
        else if (at(p, TOKEN_DOT))
            e = member_of(p, base);
        else
            break;
        e->span = span_from(p, base->span);
        adopt(p, e, base);
    }
    refuse_dotted_number(p);
    return e;
}

static Expr *unary(Parser *p)
{
    if (!at(p, TOKEN_MINUS) && !at(p, TOKEN_BANG))
        return postfix(p);
    Expr *e = make_expr(p, EXPR_UNARY, p->token.span);
    e->operator= at(p, TOKEN_MINUS) ? OPERATOR_NEG : OPERATOR_NOT;
    e->operator_span = p->token.span;
    advance(p);
    e->a = enter(p) ? unary(p) : e;
    leave(p);
    e->span = span_from(p, e->span);
    adopt(p, e, e->a);
    return e;
}

static Expr *join(Parser *p, ExprKind kind, Expr *a, Span operator_span)
{
    Expr *e = make_expr(p, kind, a->span);
    e->operator_span = operator_span;
    e->a = a;
    return e;
}

/* Operators that bind at least as tightly as `least`. */
static Expr *binary_expr(Parser *p, int least)
{
    Expr *e = unary(p);
    while (!p->lost && binary[p->token.kind].precedence >= least) {
        TokenKind kind = p->token.kind;
        e = join(p, EXPR_BINARY, e, p->token.span);
        e->operator= binary[kind].operator;
        advance(p);
        e->b = binary_expr(p, binary[kind].precedence + 1);
        e->span = span_from(p, e->span);
        adopt(p, e, e->a);
        adopt(p, e, e->b);
    }
    return e;
}

Expr *parse_expr(Parser *p)
{
    if (!enter(p)) {
        leave(p);
        return make_expr(p, EXPR_INT, p->token.span);
    }
    Expr *e = binary_expr(p, 1);
    while (!p->lost && at(p, TOKEN_PIPE)) {
        e = join(p, EXPR_PIPE, e, p->token.span);
        advance(p);
        e->b = postfix(p);
        e->span = span_from(p, e->span);
        adopt(p, e, e->a);
        adopt(p, e, e->b);
    }
    leave(p);
    return e;
}

/* "(" expr { "," expr } ")": grouping, or a tuple. */
static Expr *parenthesized(Parser *p)
{
    Token open = open_bracket(p, TOKEN_LPAREN, "");
    Expr *e = parse_expr(p);
    if (at(p, TOKEN_COMMA)) {
        Expr *tuple = make_expr(p, EXPR_TUPLE, open.span);
        vec_push(p->arena, &tuple->items, e);
        while (accept(p, TOKEN_COMMA))
            vec_push(p->arena, &tuple->items, parse_expr(p));
        for (int i = 0; i < tuple->items.n; i++)
            adopt(p, tuple, tuple->items.at[i]);
        e = tuple;
    }
    close_bracket(p, open, TOKEN_RPAREN, "after the expression");
    e->span = span_from(p, open.span);
    return e;
}

static Expr *list(Parser *p)
{
    Expr *e = make_expr(p, EXPR_LIST, p->token.span);
    Token open = open_bracket(p, TOKEN_LBRACKET, "");
    while (!p->lost && !at(p, TOKEN_RBRACKET)) {
        Expr *item = parse_expr(p);
        vec_push(p->arena, &e->items, item);
        adopt(p, e, item);
        if (!accept(p, TOKEN_COMMA))
            break;
    }
    close_bracket(p, open, TOKEN_RBRACKET, "after the list");
    e->span = span_from(p, e->span);
    return e;
}

static Expr *primary(Parser *p)
{
    const Token t = p->token;
    if (t.kind == TOKEN_LPAREN)
        return parenthesized(p);
    if (t.kind == TOKEN_LBRACKET)
        return list(p);
    Expr *e = make_expr(p, EXPR_INT, t.span);
    e->name = t.kind == TOKEN_NAME ? t.name : NULL;
    e->integer = t.integer;
    e->real = t.real;
    e->text = t.text;
    e->scalar = token_scalar(t.kind);
    if (t.kind == TOKEN_NAME)
        e->kind = EXPR_NAME;
    else if (t.kind == TOKEN_REAL)
        e->kind = EXPR_REAL;
    else if (t.kind == TOKEN_STRING)
        e->kind = EXPR_STRING;
    else if (e->scalar)
        e->kind = EXPR_SCALAR;
    else if (token_is_word(t.kind) && !t.is_first)
        syntax_error(p, "expected an expression, but %s is a reserved word", found(p));
    else if (t.kind == TOKEN_PLUS)
        syntax_error(p, "expected an expression, found '+'; there is no sign '+'");
    else if (t.kind != TOKEN_INT)
        syntax_error(p, "expected an expression, found %s", found(p));
    if (!p->lost)
        advance(p);
    return e;
}

/* range = expr ".." expr | "{" expr { "," expr } "}" */
Range *parse_range(Parser *p)
{
    Range *range = new (p->arena, Range);
    range->span = p->token.span;
    if (!at(p, TOKEN_LBRACE)) {
        range->low = parse_expr(p);
        expect(p, TOKEN_DOT_DOT, "between the ends of the range");
        if (!p->lost)
            range->high = parse_expr(p);
    } else {
        Token open = open_bracket(p, TOKEN_LBRACE, "");
        do
            vec_push(p->arena, &range->values, parse_expr(p));
        while (accept(p, TOKEN_COMMA));
        close_bracket(p, open, TOKEN_RBRACE, "after the values");
        while (p->lost && !at(p, TOKEN_RBRACE) && !at(p, TOKEN_SEMICOLON) && !at(p, TOKEN_END))
            advance(p); /* this '}' must not be taken for the end of a block */
        if (p->lost && at(p, TOKEN_RBRACE))
            advance(p);
    }
    range->span = span_from(p, range->span);
    return range;
}
