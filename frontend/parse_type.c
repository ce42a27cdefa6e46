/* Types, signatures, and declarations of values. */
#include "frontend/parser.h"
#include <string.h>

/* dim = expr | ".." [ NAME ] */
static DimExpr parse_dim(Parser *p)
{
    DimExpr dim = {.span = p->token.span};
    if (accept(p, TOKEN_DOT_DOT)) {
        dim.rest = at(p, TOKEN_NAME) ? p->token.name : NULL;
        dim.rest_span = p->token.span;
        accept(p, TOKEN_NAME);
    } else {
        dim.size = parse_expr(p);
    }
    dim.span = span_from(p, dim.span);
    return dim;
}

static void parse_dims(Parser *p, TypeExpr *type)
{
    if (p->lost || !at(p, TOKEN_LBRACKET))
        return;
    Token open = open_bracket(p, TOKEN_LBRACKET, "");
    if (!at(p, TOKEN_RBRACKET))
        do
            vec_push(p->arena, &type->dims, parse_dim(p));
        while (accept(p, TOKEN_COMMA));
    close_bracket(p, open, TOKEN_RBRACKET, "after the dimensions");
}

static TypeExpr *parse_any_type(Parser *p, int may_be_named);

/* "(" [ NAME ":" ] type { "," [ NAME ":" ] type } ")" */
static void parse_tuple_type(Parser *p, TypeExpr *type, int may_be_named)
{
    type->kind = TYPE_EXPR_TUPLE;
    Token open = open_bracket(p, TOKEN_LPAREN, "");
    do {
        ParamDecl part = {.span = p->token.span};
        if (at(p, TOKEN_NAME) && p->next.kind == TOKEN_COLON) {
            if (!may_be_named)
                mild_error(p, p->token.span, "only the results of infer have names");
            part.name = p->token.name;
            part.name_span = p->token.span;
            accept(p, TOKEN_NAME);
            accept(p, TOKEN_COLON);
        }
        part.type = parse_any_type(p, 0);
        part.span = span_from(p, part.span);
        vec_push(p->arena, &type->parts, part);
    } while (accept(p, TOKEN_COMMA));
    close_bracket(p, open, TOKEN_RPAREN, "after the types");
}

static TypeExpr *parse_any_type(Parser *p, int may_be_named)
{
    TypeExpr *type = new (p->arena, TypeExpr);
    type->span = p->token.span;
    if (!enter(p)) {
        leave(p);
        return type;
    }
    if (at(p, TOKEN_LPAREN)) {
        parse_tuple_type(p, type, may_be_named);
    } else if (token_scalar(p->token.kind)) {
        type->scalar = token_scalar(p->token.kind);
        type->scalar_span = p->token.span;
        advance(p);
        parse_dims(p, type);
    } else {
        type->kind = TYPE_EXPR_STRUCT;
        type->name = expect_qualified_name(p, &type->scalar_span, "a type");
    }
    leave(p);
    type->span = span_from(p, type->span);
    if (type->kind == TYPE_EXPR_TUPLE && type->parts.n == 1 && !type->parts.at[0].name)
        return type->parts.at[0].type;
    return type;
}

TypeExpr *parse_type(Parser *p)
{
    return parse_any_type(p, 0);
}

TypeExpr *parse_result(Parser *p, int may_be_named)
{
    expect(p, TOKEN_ARROW, "and the type of the result");
    return parse_any_type(p, may_be_named);
}

/* stype = "int" | "real" | "bool" | "string" */
static ValueType parse_value_type(Parser *p)
{
    static const char *const names[] = {"int", "real", "bool", "string"};
    for (int i = VALUE_INT; i <= VALUE_STRING; i++)
        if (p->token.name && strcmp(p->token.name, names[i]) == 0) {
            advance(p);
            return (ValueType)i;
        }
    ElementType scalar = token_scalar(p->token.kind);
    const char *meant = at(p, TOKEN_NAME)       ? nearest_name(p->token.name, names, 4)
                        : scalar >= SCALAR_I8   ? "int"
                        : scalar != SCALAR_NONE ? "real"
                                                : NULL;
    Span span = p->token.span;
    Diag *d = syntax_error(p, "expected int, real, bool or string, found %s%s", found(p),
                           meant ? arena_printf(p->arena, "; did you mean '%s'?", meant) : "");
    if (meant)
        fix_at(d, span, meant);
    return VALUE_INT;
}

ValueDecl parse_value_decl(Parser *p)
{
    ValueDecl decl = {.span = p->token.span};
    decl.name = expect_name(p, &decl.name_span, "a name");
    expect(p, TOKEN_COLON, "and a type after the name");
    decl.type_span = p->token.span;
    if (!p->lost)
        decl.type = parse_value_type(p);
    if (accept(p, TOKEN_EQUAL))
        decl.value = parse_expr(p);
    if (accept_word(p, "in"))
        decl.range = parse_range(p);
    decl.span = span_from(p, decl.span);
    return decl;
}

/* Is the parameter at hand an attribute that stands before the ';'? */
static int is_misplaced_attribute(const Parser *p, const TypeExpr *type)
{
    if (type->kind == TYPE_EXPR_TUPLE)
        return 0;
    int is_value_type =
        type->name && (strcmp(type->name, "int") == 0 || strcmp(type->name, "real") == 0 ||
                       strcmp(type->name, "string") == 0);
    return is_value_type || at(p, TOKEN_EQUAL) || at_word(p, "in");
}

static ParamDecl parse_param(Parser *p)
{
    ParamDecl param = {.span = p->token.span};
    param.name = expect_name(p, &param.name_span, "the name of a parameter");
    expect(p, TOKEN_COLON, "and a type after the name");
    param.type = parse_type(p);
    param.span = span_from(p, param.span);
    if (p->lost || !is_misplaced_attribute(p, param.type))
        return param;
    mild_error(p, param.span, "'%s' is an attribute; attributes come after the data and a ';'",
               param.name);
    if (accept(p, TOKEN_EQUAL))
        parse_expr(p);
    if (accept_word(p, "in"))
        parse_range(p);
    return param;
}

Signature parse_signature(Parser *p)
{
    Signature sig = {.span = p->token.span};
    Token open = open_bracket(p, TOKEN_LPAREN, "and the parameters");
    while (!p->lost && !at(p, TOKEN_RPAREN) && !at(p, TOKEN_SEMICOLON)) {
        ParamDecl param = parse_param(p);
        vec_push(p->arena, &sig.data, param);
        if (!accept(p, TOKEN_COMMA))
            break;
    }
    if (accept(p, TOKEN_SEMICOLON))
        while (!p->lost && !at(p, TOKEN_RPAREN)) {
            ValueDecl decl = parse_value_decl(p);
            vec_push(p->arena, &sig.attributes, decl);
            if (!accept(p, TOKEN_COMMA))
                break;
        }
    close_bracket(p, open, TOKEN_RPAREN, "after the parameters");
    sig.span = span_from(p, sig.span);
    return sig;
}
