/* Items, and the whole file. */
#include "frontend/parse.h"
#include "frontend/parser.h"
#include <string.h>

/* --- one function an item; the first word has been taken --- */

/* "import" STRING [ "as" NAME ] ";" */
static void parse_import(Parser *p, Item *item)
{
    item->import.path = expect_string(p, "the path of a file");
    if (accept_word(p, "as"))
        item->name = expect_name(p, &item->name_span, "a prefix");
    expect_semicolon(p, "after the import");
}

/* NAME ":" stype "=" expr [ "in" range ] [ STRING ] ";" */
static void parse_value(Parser *p, Item *item)
{
    item->value = parse_value_decl(p);
    item->name = item->value.name;
    item->name_span = item->value.name_span;
    if (!p->lost && !item->value.value)
        syntax_error(p, "expected '=' and a value for '%s', found %s", item->name, found(p));
    if (!p->lost && at(p, TOKEN_STRING))
        item->value.help = expect_string(p, "a help text");
    expect_semicolon(p, item->kind == ITEM_CONST ? "after the constant" : "after the option");
}

/* NAME ":" ( type | "opaque" STRING ) ";" */
static void parse_struct_field(Parser *p, Item *item)
{
    ParamDecl field = {.span = p->token.span};
    field.name = expect_name(p, &field.name_span, "the name of a field");
    expect(p, TOKEN_COLON, "and a type after the name");
    if (at_word(p, "opaque") && p->next.kind == TOKEN_STRING && accept_word(p, "opaque"))
        field.opaque = expect_string(p, "a type of C");
    else
        field.type = parse_type(p);
    expect_semicolon(p, "after the field");
    field.span = span_from(p, field.span);
    if (!p->lost)
        vec_push(p->arena, &item->structure.fields, field);
}

/* NAME [ "from" STRING ] [ "cast" STRING ] "{" … "}" */
static void parse_struct(Parser *p, Item *item)
{
    item->name = expect_name(p, &item->name_span, "the name of the structure");
    if (accept_word(p, "from"))
        item->structure.header = expect_string(p, "the name of a header");
    if (accept_word(p, "cast"))
        item->structure.cast = expect_string(p, "the name of a function");
    Token open = p->token;
    expect(p, TOKEN_LBRACE, "and the fields");
    if (p->lost)
        return;
    while (more_members(p, open, "the structure"))
        parse_struct_field(p, item);
}

static void parse_function(Parser *p, Item *item)
{
    static const char *const names[] = {
        [ITEM_DEF] = "the function", [ITEM_MODEL] = "the model", [ITEM_INFER] = "the entry point"};
    item->name = expect_name(p, &item->name_span,
                             arena_printf(p->arena, "the name of %s", names[item->kind]));
    item->function.signature = parse_signature(p);
    if (!p->lost)
        item->function.result = parse_result(p, item->kind == ITEM_INFER);
    if (!p->lost)
        item->function.body = parse_block(p, 0, names[item->kind]);
}

/* NAME "=" qname "(" [ args ] ")" [ "from" STRING ] [ "frozen" ] ";" */
static void parse_instance(Parser *p, Item *item)
{
    item->name = expect_name(p, &item->name_span, "the name of the instance");
    expect(p, TOKEN_EQUAL, "after the name of the instance");
    item->instance.call = parse_call(p, "the name of a model");
    if (accept_word(p, "from"))
        item->instance.weights = expect_string(p, "a file of weights");
    item->instance.frozen = accept_word(p, "frozen");
    expect_semicolon(p, "after the instance");
}

static Policy parse_policy_word(Parser *p)
{
    static const char *const words[] = {"half", "float", "promote", "keep", "banned"};
    for (int i = POLICY_HALF; i <= POLICY_BANNED; i++)
        if (p->token.name && strcmp(p->token.name, words[i]) == 0) {
            if (!p->lost)
                advance(p);
            return (Policy)i;
        }
    const char *meant = at(p, TOKEN_NAME) ? nearest_name(p->token.name, words, 5) : NULL;
    Span span = p->token.span;
    Diag *d = syntax_error(p, "expected half, float, promote, keep or banned, found %s%s", found(p),
                           meant ? arena_printf(p->arena, "; did you mean '%s'?", meant) : "");
    if (meant)
        fix_at(d, span, meant);
    return POLICY_KEEP;
}

/* ( "cpu" | "cuda" ) STRING ( "call" | "inline" ) STRING */
static void parse_code(Parser *p, Clause *clause)
{
    clause->is_cuda = at_word(p, "cuda");
    if (!accept_word(p, "cuda") && !accept_word(p, "cpu"))
        syntax_error(p, "expected 'cpu' or 'cuda', found %s", found(p));
    clause->header = expect_string(p, "the name of a header");
    clause->is_inline = at_word(p, "inline");
    if (!accept_word(p, "inline") && !accept_word(p, "call"))
        syntax_error(p, "expected 'call' or 'inline' after the header, found %s", found(p));
    clause->function = expect_string(p, "the name of a function");
}

/* NAME "in" range { "," NAME "in" range } */
static void parse_check(Parser *p, Clause *clause)
{
    do {
        NameRef ref = {0};
        ref.name = expect_name(p, &ref.span, "a parameter of the op");
        if (!accept_word(p, "in"))
            syntax_error(p, "expected 'in' and a range after '%s', found %s",
                         ref.name ? ref.name : "", found(p));
        if (p->lost)
            return;
        vec_push(p->arena, &clause->names, ref);
        vec_push(p->arena, &clause->ranges, parse_range(p));
    } while (accept(p, TOKEN_COMMA));
}

static void parse_clause(Parser *p, Item *item)
{
    Clause clause = {.span = p->token.span};
    if (accept(p, TOKEN_POLICY)) {
        clause.kind = CLAUSE_POLICY;
        clause.policy = parse_policy_word(p);
        if (at(p, TOKEN_STRING))
            clause.text = expect_string(p, "a reason");
    } else if (accept_word(p, "forward")) {
        clause.kind = CLAUSE_FORWARD;
        parse_code(p, &clause);
    } else if (accept_word(p, "backward")) {
        clause.kind = CLAUSE_BACKWARD;
        parse_code(p, &clause);
    } else if (accept_word(p, "saves")) {
        clause.kind = CLAUSE_SAVES;
        clause.names = expect_names(p, "a parameter of the op");
    } else if (accept_word(p, "check")) {
        clause.kind = CLAUSE_CHECK;
        parse_check(p, &clause);
    } else {
        syntax_error(p, "expected policy, forward, backward, saves or check, found %s", found(p));
    }
    expect_semicolon(p, "after the clause");
    clause.span = span_from(p, clause.span);
    if (!p->lost)
        vec_push(p->arena, &item->op.clauses, clause);
}

/* ( struct | "op" NAME sig "->" type "{" { clause ";" } "}" ) */
static void parse_extern(Parser *p, Item *item)
{
    if (accept(p, TOKEN_STRUCT)) {
        item->kind = ITEM_STRUCT;
        item->structure.is_extern = 1;
        parse_struct(p, item);
        return;
    }
    if (!accept_word(p, "op"))
        syntax_error(p, "expected 'op' or 'struct' after 'extern', found %s", found(p));
    item->name = expect_name(p, &item->name_span, "the name of the op");
    item->op.signature = parse_signature(p);
    if (!p->lost)
        item->op.result = parse_result(p, 0);
    Token open = p->token;
    expect(p, TOKEN_LBRACE, "and the clauses of the op");
    if (p->lost)
        return;
    while (more_members(p, open, "the op"))
        parse_clause(p, item);
}

/* pol ":" NAME { "," NAME } ";" */
static void parse_policy(Parser *p, Item *item)
{
    item->policy.policy = parse_policy_word(p);
    expect(p, TOKEN_COLON, "and the names of ops");
    item->policy.ops = expect_names(p, "the name of an op");
    expect_semicolon(p, "after the ops");
}

/* word "=" expr */
static Arg parse_word_setting(Parser *p, const char *what)
{
    Arg arg = {.name = p->token.name, .name_span = p->token.span, .span = p->token.span};
    if (at(p, TOKEN_NAME) || token_is_word(p->token.kind)) {
        advance(p);
        expect(p, TOKEN_EQUAL, arena_printf(p->arena, "after '%s'", arg.name));
    } else {
        syntax_error(p, "expected %s, found %s", what, found(p));
    }
    arg.value = parse_expr(p);
    arg.span = span_from(p, arg.span);
    return arg;
}

/* "{" { word "=" expr ";" } "}" */
static void parse_props(Parser *p, Item *item)
{
    Token open = p->token;
    expect(p, TOKEN_LBRACE, "and the properties");
    if (p->lost)
        return;
    while (more_members(p, open, "the properties")) {
        Arg arg = parse_word_setting(p, "the name of a property");
        expect_semicolon(p, "after the property");
        if (!p->lost)
            vec_push(p->arena, &item->props.settings, arg);
    }
}

/* "split" word "=" expr { "," word "=" expr } ";" */
static void parse_split(Parser *p, Item *item)
{
    Args parts = {0};
    do {
        Arg arg = parse_word_setting(p, "the name of a part");
        vec_push(p->arena, &parts, arg);
    } while (accept(p, TOKEN_COMMA));
    expect_semicolon(p, "after the split");
    if (!p->lost)
        vec_push(p->arena, &item->dataset.splits, parts);
}

/* NAME ":" type "=" expr ";" */
static void parse_data_field(Parser *p, Item *item)
{
    DataField field = {.span = p->token.span};
    field.name = expect_name(p, &field.name_span, "a field or 'split'");
    expect(p, TOKEN_COLON, "and a type after the name");
    field.type = parse_type(p);
    expect(p, TOKEN_EQUAL, "and the value of the field");
    field.value = parse_expr(p);
    expect_semicolon(p, "after the field");
    field.span = span_from(p, field.span);
    if (!p->lost)
        vec_push(p->arena, &item->dataset.fields, field);
}

static void parse_dataset(Parser *p, Item *item)
{
    item->name = expect_name(p, &item->name_span, "the name of the dataset");
    expect(p, TOKEN_EQUAL, "after the name of the dataset");
    item->dataset.call = parse_call(p, "the kind of the dataset");
    Token open = p->token;
    expect(p, TOKEN_LBRACE, "and the fields of the dataset");
    if (p->lost)
        return;
    while (more_members(p, open, "the dataset")) {
        if (at_word(p, "split") && p->next.kind != TOKEN_COLON && accept_word(p, "split"))
            parse_split(p, item);
        else
            parse_data_field(p, item);
    }
}

/* [ "on" NAME { "." word } ] */
static NameRef parse_on(Parser *p)
{
    NameRef on = {0};
    if (accept_word(p, "on"))
        on.name = expect_qualified_name(p, &on.span, "the name of a dataset");
    return on;
}

/* "group" STRING { "," STRING } ":" NAME "=" expr { "," NAME "=" expr } ";" */
static void parse_group(Parser *p, OptimizerDecl *optimizer)
{
    GroupDecl group = {.span = p->token.span};
    if (!accept_word(p, "group"))
        syntax_error(p, "expected 'group', found %s", found(p));
    do {
        Text pattern = expect_string(p, "a pattern of names");
        vec_push(p->arena, &group.patterns, pattern);
    } while (accept(p, TOKEN_COMMA));
    expect(p, TOKEN_COLON, "and the settings of the group");
    do {
        Arg arg = parse_word_setting(p, "the name of a setting");
        vec_push(p->arena, &group.settings, arg);
    } while (accept(p, TOKEN_COMMA));
    expect_semicolon(p, "after the group");
    group.span = span_from(p, group.span);
    if (!p->lost)
        vec_push(p->arena, &optimizer->groups, group);
}

/* NAME "=" NAME "(" args ")" ( ";" | "{" { group } "}" ) */
static void parse_optimizer(Parser *p, Item *item, Span first)
{
    OptimizerDecl optimizer = {0};
    optimizer.name = expect_name(p, &optimizer.name_span, "the name of the optimizer");
    expect(p, TOKEN_EQUAL, "after the name of the optimizer");
    optimizer.call = parse_call(p, "the kind of the optimizer");
    Token open = p->token;
    if (accept(p, TOKEN_LBRACE))
        while (more_members(p, open, "the groups"))
            parse_group(p, &optimizer);
    else
        expect_semicolon(p, "or groups after the optimizer");
    optimizer.span = span_from(p, first);
    if (!p->lost)
        vec_push(p->arena, &item->train.optimizers, optimizer);
}

/* NAME "=" NAME "(" [ args ] ")" ";" */
static void parse_scaler(Parser *p, Item *item, Span first)
{
    ScalerDecl scaler = {0};
    scaler.name = expect_name(p, &scaler.name_span, "the name of the scaler");
    expect(p, TOKEN_EQUAL, "after the name of the scaler");
    scaler.call = parse_call(p, "'dynamic' or 'static'");
    expect_semicolon(p, "after the scaler");
    scaler.span = span_from(p, first);
    if (!p->lost)
        vec_push(p->arena, &item->train.scalers, scaler);
}

/* STRING "every" expr ( "steps" | "epochs" ) [ "keep" expr ] ";" */
static void parse_checkpoint(Parser *p, Item *item, Span first)
{
    CheckpointDecl checkpoint = {.path = expect_string(p, "the path of the checkpoint")};
    if (!accept_word(p, "every"))
        syntax_error(p, "expected 'every' after the path, found %s", found(p));
    checkpoint.every = parse_expr(p);
    checkpoint.in_epochs = at_word(p, "epochs");
    if (!accept_word(p, "epochs") && !accept_word(p, "steps"))
        syntax_error(p, "expected 'steps' or 'epochs' after the number, found %s", found(p));
    if (accept_word(p, "keep"))
        checkpoint.keep = parse_expr(p);
    expect_semicolon(p, "after the checkpoint");
    checkpoint.span = span_from(p, first);
    if (!p->lost)
        vec_push(p->arena, &item->train.checkpoints, checkpoint);
}

static void parse_step(Parser *p, Item *item, Span first)
{
    if (item->train.step)
        note_at(mild_error(p, first, "a train has one step, this is its second"),
                item->train.step_span, "the first one is here");
    item->train.step = new (p->arena, Block);
    item->train.step_span = first;
    *item->train.step = parse_block(p, 1, "the step");
}

/* NAME "=" expr ";", or one of the four words when no '=' follows. */
static void parse_train_member(Parser *p, Item *item)
{
    static const char *const words[] = {"optimizer", "scaler", "checkpoint", "step"};
    static void (*const parsers[])(Parser *, Item *, Span) = {parse_optimizer, parse_scaler,
                                                              parse_checkpoint, parse_step};
    Span first = p->token.span;
    if (at(p, TOKEN_NAME) && p->next.kind == TOKEN_EQUAL) {
        Arg arg = parse_word_setting(p, "");
        expect_semicolon(p, "after the setting");
        if (!p->lost)
            vec_push(p->arena, &item->train.settings, arg);
        return;
    }
    for (int i = 0; i < 4; i++)
        if (accept_word(p, words[i])) {
            parsers[i](p, item, first);
            return;
        }
    const char *meant = at(p, TOKEN_NAME) ? nearest_name(p->token.name, words, 4) : NULL;
    if (meant && p->next.kind != TOKEN_SEMICOLON) {
        fix_at(mild_error(p, first,
                          "expected a setting or optimizer, scaler, checkpoint or step, "
                          "found %s; did you mean '%s'?",
                          found(p), meant),
               first, meant);
        p->token.name = intern(p->names, meant);
        parse_train_member(p, item);
        return;
    }
    syntax_error(
        p, "expected a setting (name = value;) or optimizer, scaler, checkpoint or step, found %s",
        found(p));
}

/* NAME sig [ "on" … ] "{" { titem } "}" */
static void parse_train(Parser *p, Item *item)
{
    item->name = expect_name(p, &item->name_span, "the name of the train");
    item->train.signature = parse_signature(p);
    item->train.on = parse_on(p);
    Token open = p->token;
    expect(p, TOKEN_LBRACE, "and the settings of the train");
    if (p->lost)
        return;
    while (more_members(p, open, "the train"))
        parse_train_member(p, item);
}

/* NAME sig [ "on" … ] [ "batch" expr ] block */
static void parse_eval(Parser *p, Item *item)
{
    item->name = expect_name(p, &item->name_span, "the name of the eval");
    item->eval.signature = parse_signature(p);
    item->eval.on = parse_on(p);
    if (accept_word(p, "batch"))
        item->eval.batch = parse_expr(p);
    item->eval.body = parse_block(p, 0, "the eval");
}

/* --- which one it is --- */

static const struct ItemRule {
    const char *word;
    ItemKind kind;
    void (*parse)(Parser *, Item *);
} rules[] = {
    {"import", ITEM_IMPORT, parse_import},    {"const", ITEM_CONST, parse_value},
    {"option", ITEM_OPTION, parse_value},     {"struct", ITEM_STRUCT, parse_struct},
    {"def", ITEM_DEF, parse_function},        {"model", ITEM_MODEL, parse_function},
    {"infer", ITEM_INFER, parse_function},    {"instance", ITEM_INSTANCE, parse_instance},
    {"extern", ITEM_EXTERN_OP, parse_extern}, {"policy", ITEM_POLICY, parse_policy},
    {"dataset", ITEM_DATASET, parse_dataset}, {"train", ITEM_TRAIN, parse_train},
    {"eval", ITEM_EVAL, parse_eval},          {"amp", ITEM_PROPS, parse_props},
};
enum { RULES = sizeof rules / sizeof *rules };

static const struct ItemRule *find_rule(const char *word)
{
    for (int i = 0; i < RULES; i++)
        if (strcmp(rules[i].word, word) == 0)
            return &rules[i];
    return NULL;
}

/* What cannot begin an item. A misspelt word is taken for what it means. */
static const struct ItemRule *puzzle_out(Parser *p)
{
    const char *words[RULES];
    for (int i = 0; i < RULES; i++)
        words[i] = rules[i].word;
    int is_stmt = p->token.kind >= TOKEN_PARAM && p->token.kind <= TOKEN_RETURN;
    const char *meant = at(p, TOKEN_NAME) ? nearest_name(p->token.name, words, RULES) : NULL;
    if (at(p, TOKEN_RBRACE))
        syntax_error(p, "there is no '{' that this '}' closes");
    else if (at_word(p, "ampc") && p->next.kind == TOKEN_INT)
        syntax_error(p, "'ampc' and the version stand at the beginning of the file");
    else if (is_stmt)
        syntax_error(p, "%s stands inside a model or another block, not here", found(p));
    else if (meant) {
        fix_at(mild_error(p, p->token.span, "there is no item %s; did you mean '%s'?", found(p),
                          meant),
               p->token.span, meant);
        return find_rule(meant);
    } else {
        syntax_error(p, "expected an item such as model, instance or train, found %s", found(p));
    }
    return NULL;
}

Item *parse_item(Parser *p)
{
    Item *item = new (p->arena, Item);
    const struct ItemRule *rule = p->token.name ? find_rule(p->token.name) : NULL;
    if (!rule)
        rule = puzzle_out(p);
    if (!rule)
        return NULL;
    item->kind = rule->kind;
    item->doc = p->token.doc;
    item->span = item->word_span = p->token.span;
    advance(p);
    rule->parse(p, item);
    item->span = span_from(p, item->span);
    return p->lost ? NULL : item;
}

/* [ "ampc" INT ";" ] */
static void parse_version(Parser *p, Ast *ast)
{
    if (!at_word(p, "ampc") || p->next.kind != TOKEN_INT)
        return;
    ast->version_span = p->token.span;
    int64_t version = p->next.integer;
    advance(p);
    if (version != 1)
        mild_error(p, p->token.span, "this ampc knows version 1 of the language, found %s",
                   found(p));
    advance(p);
    ast->version = 1;
    ast->version_span = span_from(p, ast->version_span);
    expect_semicolon(p, "after the version");
}

Ast *parse(const Source *source, Diags *diags, Names *names, Arena *arena)
{
    Parser p = {.diags = diags, .names = names, .arena = arena};
    Ast *ast = new (arena, Ast);
    ast->source = source;
    lexer_init(&p.lexer, source, diags, names, arena);
    p.token = lexer_next(&p.lexer);
    p.next = lexer_next(&p.lexer);
    parse_version(&p, ast);
    while (!at(&p, TOKEN_END)) {
        p.begun = p.token.span.begin;
        Item *item = parse_item(&p);
        if (item)
            vec_push(arena, &ast->items, item);
        if (p.lost)
            resume_at_item(&p);
    }
    return ast;
}
