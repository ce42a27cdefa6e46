/* Statements. Words like `backward` and `update` begin one only where a statement of a step may
 * stand and no '=' follows, so that they stay free as names. */
#include "frontend/parser.h"
#include <string.h>

static Stmt *parse_stmt(Parser *p);

Block parse_block(Parser *p, int in_step, const char *what)
{
    Block block = {.span = p->token.span};
    Token open = p->token;
    int outer = p->in_step;
    p->in_step = in_step;
    if (enter(p))
        expect(p, TOKEN_LBRACE, arena_printf(p->arena, "to begin %s", what));
    if (!p->lost)
        while (more_members(p, open, what)) {
            Stmt *s = parse_stmt(p);
            if (s && !p->lost)
                vec_push(p->arena, &block.stmts, s);
        }
    leave(p);
    p->in_step = outer;
    block.span = span_from(p, block.span);
    return block;
}

static Block inner_block(Parser *p, const char *what)
{
    return parse_block(p, p->in_step, what);
}

/* --- one function a statement; the first word has been taken --- */

static void parse_param_or_buffer(Parser *p, Stmt *s)
{
    s->name = expect_name(p, &s->name_span, "a name");
    expect(p, TOKEN_COLON, "and a type after the name");
    s->type = parse_type(p);
    expect(p, TOKEN_EQUAL, "and the initial value");
    s->value = parse_expr(p);
    s->frozen = s->kind == STMT_PARAM && accept_word(p, "frozen");
    expect_semicolon(p, "after the initial value");
}

static void parse_layer(Parser *p, Stmt *s)
{
    s->name = expect_name(p, &s->name_span, "the name of the layer");
    if (at(p, TOKEN_LBRACKET) && !p->lost) {
        Token open = open_bracket(p, TOKEN_LBRACKET, "");
        s->count = parse_expr(p);
        close_bracket(p, open, TOKEN_RBRACKET, "after the number of layers");
    }
    expect(p, TOKEN_EQUAL, "after the name of the layer");
    s->call = parse_call(p, "the kind of the layer");
    expect_semicolon(p, "after the layer");
}

static void parse_repeat(Parser *p, Stmt *s)
{
    s->name = expect_name(p, &s->name_span, "the name of the counter");
    if (!accept_word(p, "in"))
        syntax_error(p, "expected 'in' after the counter, found %s", found(p));
    s->low = parse_expr(p);
    expect(p, TOKEN_DOT_DOT, "between the bounds of the loop");
    s->high = parse_expr(p);
    s->body = inner_block(p, "the loop");
}

static void parse_precision(Parser *p, Stmt *s)
{
    s->scalar_span = p->token.span;
    s->scalar = token_scalar(p->token.kind);
    if (s->scalar)
        advance(p);
    else if (!accept_word(p, "off"))
        syntax_error(p, "expected a type such as f32, or 'off', after 'precision', found %s",
                     found(p));
    s->body = inner_block(p, "the precision block");
}

/* [ "else" ( block | stmt ) ]; a statement is made a block of one. */
static void parse_else(Parser *p, Stmt *s)
{
    if (!accept(p, TOKEN_ELSE))
        return;
    s->otherwise = new (p->arena, Block);
    if (at(p, TOKEN_LBRACE)) {
        *s->otherwise = inner_block(p, "the else block");
        return;
    }
    s->otherwise->span = p->token.span;
    Stmt *only = enter(p) ? parse_stmt(p) : NULL;
    leave(p);
    if (only)
        vec_push(p->arena, &s->otherwise->stmts, only);
    s->otherwise->span = span_from(p, s->otherwise->span);
}

static void parse_if(Parser *p, Stmt *s)
{
    s->value = parse_expr(p);
    s->body = inner_block(p, "the if block");
    parse_else(p, s);
}

static void parse_assert(Parser *p, Stmt *s)
{
    s->value = parse_expr(p);
    if (accept(p, TOKEN_COMMA))
        s->text = expect_string(p, "a message");
    expect_semicolon(p, "after the assertion");
}

static void parse_report(Parser *p, Stmt *s)
{
    if (at(p, TOKEN_SEMICOLON))
        syntax_error(p, "expected what to report, found ';'");
    parse_args(p, &s->args, TOKEN_SEMICOLON);
    expect_semicolon(p, "after the report");
}

static void parse_return(Parser *p, Stmt *s)
{
    s->value = parse_expr(p);
    expect_semicolon(p, "after the result");
}

/* backward expr into names { scaler name | delay_unscale } */
static void parse_backward(Parser *p, Stmt *s)
{
    s->value = parse_expr(p);
    if (!accept_word(p, "into"))
        syntax_error(p, "expected 'into' and an optimizer after the loss, found %s", found(p));
    s->names = expect_names(p, "the name of an optimizer");
    while (!p->lost && (at_word(p, "scaler") || at_word(p, "delay_unscale"))) {
        if (at_word(p, "scaler") ? s->scaler.name != NULL : s->delay_unscale)
            mild_error(p, p->token.span, "%s stands here twice", found(p));
        if (accept_word(p, "delay_unscale"))
            s->delay_unscale = 1;
        else if (accept_word(p, "scaler"))
            s->scaler.name = expect_qualified_name(p, &s->scaler.span, "the name of a scaler");
    }
    expect_semicolon(p, "after the backward pass");
}

static void parse_clip(Parser *p, Stmt *s)
{
    s->by_value = at_word(p, "value");
    if (!accept_word(p, "value") && !accept_word(p, "norm"))
        syntax_error(p, "expected 'norm' or 'value' after 'clip', found %s", found(p));
    s->value = parse_expr(p);
    if (!accept_word(p, "of"))
        syntax_error(p, "expected 'of' and an optimizer after the limit, found %s", found(p));
    s->names = expect_names(p, "the name of an optimizer");
    expect_semicolon(p, "after the clip");
}

static void parse_update(Parser *p, Stmt *s)
{
    s->names = expect_names(p, "the name of an optimizer");
    if (s->kind == STMT_UPDATE && accept(p, TOKEN_IF))
        s->value = parse_expr(p);
    expect_semicolon(p, "after the update");
}

static void parse_zero(Parser *p, Stmt *s)
{
    s->names = expect_names(p, "the name of an optimizer");
    expect_semicolon(p, "after the optimizers");
}

static void parse_accumulate(Parser *p, Stmt *s)
{
    s->value = parse_expr(p);
    s->body = inner_block(p, "the accumulate block");
}

/* target ( "=" | ":=" ) expr, from the target on */
static void parse_assign(Parser *p, Stmt *s)
{
    s->is_tuple = at(p, TOKEN_LPAREN);
    if (s->is_tuple) {
        Token open = open_bracket(p, TOKEN_LPAREN, "");
        do {
            NameRef ref = {0};
            ref.name = expect_name(p, &ref.span, "a name to assign to");
            vec_push(p->arena, &s->names, ref);
        } while (accept(p, TOKEN_COMMA));
        close_bracket(p, open, TOKEN_RPAREN, "after the names");
    } else {
        NameRef ref = {p->token.name, p->token.span};
        vec_push(p->arena, &s->names, ref);
        advance(p);
    }
    s->to_buffer = at(p, TOKEN_COLON_EQUAL);
    if (!accept(p, TOKEN_COLON_EQUAL))
        expect(p, TOKEN_EQUAL, "after the name");
    s->value = parse_expr(p);
    expect_semicolon(p, "after the value");
}

/* --- which one it is --- */

static const struct StmtRule {
    const char *word;
    StmtKind kind;
    void (*parse)(Parser *, Stmt *);
    TokenKind token; /* END: a contextual word, for steps only */
} rules[] = {
    {"param", STMT_PARAM, parse_param_or_buffer, TOKEN_PARAM},
    {"buffer", STMT_BUFFER, parse_param_or_buffer, TOKEN_BUFFER},
    {"layer", STMT_LAYER, parse_layer, TOKEN_LAYER},
    {"repeat", STMT_REPEAT, parse_repeat, TOKEN_REPEAT},
    {"precision", STMT_PRECISION, parse_precision, TOKEN_PRECISION},
    {"if", STMT_IF, parse_if, TOKEN_IF},
    {"assert", STMT_ASSERT, parse_assert, TOKEN_ASSERT},
    {"report", STMT_REPORT, parse_report, TOKEN_REPORT},
    {"return", STMT_RETURN, parse_return, TOKEN_RETURN},
    {"backward", STMT_BACKWARD, parse_backward, TOKEN_END},
    {"clip", STMT_CLIP, parse_clip, TOKEN_END},
    {"update", STMT_UPDATE, parse_update, TOKEN_END},
    {"zero", STMT_ZERO, parse_zero, TOKEN_END},
    {"accumulate", STMT_ACCUMULATE, parse_accumulate, TOKEN_END},
};
enum { RULES = sizeof rules / sizeof *rules };

static int is_assigned(const Parser *p)
{
    return p->next.kind == TOKEN_EQUAL || p->next.kind == TOKEN_COLON_EQUAL;
}

static const struct StmtRule *find_rule(const char *word)
{
    for (int i = 0; i < RULES; i++)
        if (word && strcmp(rules[i].word, word) == 0)
            return &rules[i];
    return NULL;
}

/* Can the token after a contextual word go on with its statement? clip(x) and zero.x are not meant
 * so. */
static int goes_on(const Parser *p, const struct StmtRule *rule)
{
    TokenKind next = p->next.kind;
    if (next == TOKEN_EQUAL || next == TOKEN_COLON_EQUAL || next == TOKEN_DOT ||
        next == TOKEN_LBRACKET)
        return 0;
    return next != TOKEN_LPAREN || rule->kind == STMT_BACKWARD || rule->kind == STMT_ACCUMULATE;
}

/* The rule of the statement that begins with the current token, or NULL. */
static const struct StmtRule *rule_at(Parser *p)
{
    const struct StmtRule *rule = find_rule(p->token.name);
    if (!rule || rule->token != TOKEN_END)
        return rule && at(p, rule->token) ? rule : NULL;
    if (!at(p, TOKEN_NAME) || !goes_on(p, rule))
        return NULL;
    if (!p->in_step)
        mild_error(p, p->token.span, "'%s' stands only in the step of a train", rule->word);
    return rule;
}

/* A word of another language, and what is written here instead. */
static const char *advice_for(const char *word)
{
    static const char *const advice[][2] = {
        {"for", "a loop is written 'repeat i in 0 .. n { … }'"},
        {"while", "the only loop is 'repeat i in 0 .. n { … }'"},
        {"let", "a name is bound by 'name = value;'"},
        {"var", "a name is bound by 'name = value;'"},
        {"auto", "a name is bound by 'name = value;'"},
        {"elif", "write 'else if'"},
        {"print", "a value is shown by 'report value;'"},
    };
    for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
        if (strcmp(advice[i][0], word) == 0)
            return advice[i][1];
    return NULL;
}

/* A statement that begins with a name, but is no assignment. A misspelt word is taken for what it
 * means: the rule is returned. */
static const struct StmtRule *puzzle_out(Parser *p)
{
    const char *words[RULES];
    for (int i = 0; i < RULES; i++)
        words[i] = rules[i].word;
    const char *word = p->token.name;
    int is_begin = p->next.kind == TOKEN_NAME || p->next.kind == TOKEN_INT ||
                   p->next.kind == TOKEN_REAL || token_is_word(p->next.kind);
    const char *meant = is_begin ? nearest_name(word, words, RULES) : NULL;
    const char *advice = advice_for(word);
    if (advice) {
        syntax_error(p, "there is no statement '%s'; %s", word, advice);
    } else if (meant) {
        fix_at(mild_error(p, p->token.span, "there is no statement '%s'; did you mean '%s'?", word,
                          meant),
               p->token.span, meant);
        return find_rule(meant);
    } else if (p->next.kind == TOKEN_LPAREN) {
        syntax_error(p, "a call alone has no effect; give its result a name: 'y = %s(…);'", word);
    } else if (p->next.kind == TOKEN_LBRACKET || p->next.kind == TOKEN_DOT) {
        syntax_error(p, "a part of '%s' cannot be assigned to, and a value alone has no effect",
                     word);
    } else {
        advance(p);
        syntax_error(p, "expected '=' after '%s', found %s", word, found(p));
    }
    return NULL;
}

static void complain_about_start(Parser *p)
{
    if (at(p, TOKEN_RECOMPUTE))
        syntax_error(p, "'recompute' is reserved for a later version of the language");
    else if (at(p, TOKEN_ELSE))
        syntax_error(p, "'else' without an 'if' before it");
    else if (at(p, TOKEN_SEMICOLON))
        syntax_error(p, "there is no empty statement");
    else
        syntax_error(p, "expected a statement, found %s", found(p));
}

static Stmt *parse_stmt(Parser *p)
{
    if (begins_item(&p->token)) {
        mild_error(p, p->token.span, "%s cannot stand inside a block", found(p));
        parse_item(p);
        return NULL;
    }
    const struct StmtRule *rule = rule_at(p);
    int is_target = (at(p, TOKEN_NAME) && is_assigned(p)) || at(p, TOKEN_LPAREN);
    if (!rule && !is_target && at(p, TOKEN_NAME))
        rule = puzzle_out(p);
    Stmt *s = new (p->arena, Stmt);
    s->span = s->word_span = p->token.span;
    if (rule) {
        s->kind = rule->kind;
        advance(p);
        rule->parse(p, s);
    } else if (is_target) {
        s->kind = STMT_ASSIGN;
        parse_assign(p, s);
    } else if (!p->lost) {
        complain_about_start(p);
    }
    s->span = span_from(p, s->span);
    return s;
}
