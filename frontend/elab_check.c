/* What can be said about a model or def that nothing calls: names, functions and attributes exist.
 * Types and shapes are not known without a call. All branches are looked at.
 */
#include "frontend/elab_core.h"
#include <ctype.h>
#include <string.h>

static void check_expr(Elab *e, const Expr *x);
static void check_block(Elab *e, const Block *block);

static void declare(Elab *e, Str name, Span span)
{
    if (name && !find_binding(e, name))
        bind_name(e, name, value_error(), span);
}

static bool is_known(Elab *e, const Expr *x)
{
    return find_binding(e, x->name) || find_decl(e->module, x->name) || !strcmp(x->name, "true") ||
           !strcmp(x->name, "false") || !strcmp(x->name, "pi") || !strcmp(x->name, "training");
}

static void check_name(Elab *e, const Expr *x)
{
    Candidates names = {0};
    if (is_known(e, x))
        return;
    for (Scope *s = e->scope; s; s = s->up)
        for (int i = 0; i < s->bindings.n; i++)
            vec_push(e->arena, &names, s->bindings.at[i].name);
    add_decl_names(e->module, &names, "", e->arena);
    unknown_name(e, CODE_NAME, x->span, arena_printf(e->arena, "'%s' is not declared", x->name),
                 x->name, &names);
}

static void check_callee(Elab *e, const Expr *x)
{
    Candidates names = {0};
    if (x->kind != EXPR_NAME) {
        if (x->kind != EXPR_SCALAR)
            check_expr(e, x);
        return;
    }
    if (find_binding(e, x->name) || find_decl(e->module, x->name) || is_builtin(x->name))
        return;
    if (is_later_work(x->name)) {
        unsupported(e, x->span, x->name);
        return;
    }
    add_decl_names(e->module, &names, "", e->arena);
    add_builtin_names(&names, e->arena);
    unknown_name(e, CODE_NAME, x->span,
                 arena_printf(e->arena, "there is no function '%s'", x->name), x->name, &names);
}

/* The names that the arguments of `what` may have, against those that they have. */
static void check_attributes(Elab *e, const char *what, const char *attributes, const Args *args)
{
    Site s;
    Candidates names = {0};
    site_open(&s, what, (Span){0}, (Span){0});
    site_slots(e, &s, attributes);
    for (int i = 0; i < s.slots; i++)
        vec_push(e->arena, &names, s.slot[i].name);
    for (int i = 0; i < args->n; i++)
        if (args->at[i].name && !site_find(&s, args->at[i].name))
            unknown_name(
                e, CODE_ATTRIBUTE, args->at[i].name_span,
                arena_printf(e->arena, "unknown attribute '%s' of '%s'", args->at[i].name, what),
                args->at[i].name, &names);
}

static const char *signature_attributes(Elab *e, const Decl *d)
{
    const char *text = "";
    const Signature *s = &d->item->function.signature;
    for (int i = 0; i < s->attributes.n; i++)
        text = arena_printf(e->arena, "%s%s%s", text, i ? "," : "", s->attributes.at[i].name);
    return text;
}

static void check_args(Elab *e, const Args *args)
{
    for (int i = 0; i < args->n; i++)
        check_expr(e, args->at[i].value);
}

static void check_call(Elab *e, const Expr *callee, const Args *args)
{
    check_callee(e, callee);
    check_args(e, args);
    if (callee->kind != EXPR_NAME || find_binding(e, callee->name))
        return;
    const Decl *d = find_decl(e->module, callee->name);
    if (d && d->item->kind == ITEM_DEF)
        check_attributes(e, callee->name, signature_attributes(e, d), args);
    else if (!d && is_builtin(callee->name)) {
        const char *attributes = builtin_attributes(e, callee->name);
        if (attributes)
            check_attributes(e, callee->name, attributes, args);
    }
}

static void check_expr(Elab *e, const Expr *x)
{
    if (!x)
        return;
    switch (x->kind) {
    case EXPR_NAME:
        check_name(e, x);
        break;
    case EXPR_CALL:
        check_call(e, x->a, &x->args);
        break;
    case EXPR_PIPE:
        check_expr(e, x->a);
        if (x->b->kind == EXPR_CALL)
            check_call(e, x->b->a, &x->b->args);
        else
            check_callee(e, x->b);
        break;
    case EXPR_MEMBER:
        if (!qualified_text(e, x) || !find_decl(e->module, qualified_text(e, x)))
            check_expr(e, x->a);
        break;
    case EXPR_INDEX:
        check_expr(e, x->a);
        for (int i = 0; i < x->indices.n; i++) {
            check_expr(e, x->indices.at[i].begin);
            check_expr(e, x->indices.at[i].end);
        }
        break;
    case EXPR_UNARY:
    case EXPR_BINARY:
        check_expr(e, x->a);
        check_expr(e, x->b);
        break;
    case EXPR_TUPLE:
    case EXPR_LIST:
        for (int i = 0; i < x->items.n; i++)
            check_expr(e, x->items.at[i]);
        break;
    case EXPR_INT:
    case EXPR_REAL:
    case EXPR_STRING:
    case EXPR_SCALAR:
        break;
    }
}

/* layer NAME = kind(…): init is checked by its own rule, where the layer is made. */
static void check_layer(Elab *e, const Stmt *s)
{
    const Call *call = &s->call;
    const Decl *d = find_decl(e->module, call->name);
    const char *attributes = layer_attributes(call->name);
    Candidates names = {0};
    for (int i = 0; i < call->args.n; i++)
        if (!call->args.at[i].name || strcmp(call->args.at[i].name, "init"))
            check_expr(e, call->args.at[i].value);
    if (d && d->item->kind == ITEM_MODEL)
        check_attributes(e, call->name, signature_attributes(e, d), &call->args);
    else if (!d && attributes)
        check_attributes(e, call->name, attributes, &call->args);
    else if (!d && is_later_work(call->name))
        unsupported(e, call->name_span, call->name);
    else {
        add_decl_names(e->module, &names, "", e->arena);
        vec_push(e->arena, &names, "linear");
        vec_push(e->arena, &names, "embedding");
        unknown_name(e, CODE_NAME, call->name_span,
                     arena_printf(e->arena, "there is no layer or model '%s'", call->name),
                     call->name, &names);
    }
    declare(e, s->name, s->name_span);
}

static void check_stmt(Elab *e, const Stmt *s)
{
    switch (s->kind) {
    case STMT_LAYER:
        check_expr(e, s->count);
        check_layer(e, s);
        break;
    case STMT_PARAM:
    case STMT_BUFFER:
        declare(e, s->name, s->name_span);
        break;
    case STMT_REPEAT:
        check_expr(e, s->low);
        check_expr(e, s->high);
        declare(e, s->name, s->name_span);
        check_block(e, &s->body);
        break;
    case STMT_PRECISION:
        check_block(e, &s->body);
        break;
    case STMT_IF:
        check_expr(e, s->value);
        check_block(e, &s->body);
        if (s->otherwise)
            check_block(e, s->otherwise);
        break;
    case STMT_ASSERT:
    case STMT_RETURN:
        check_expr(e, s->value);
        break;
    case STMT_ASSIGN:
        check_expr(e, s->value);
        for (int i = 0; i < s->names.n; i++)
            declare(e, s->names.at[i].name, s->names.at[i].span);
        break;
    case STMT_REPORT:
        elab_error(e, CODE_RULE, s->word_span, "only train and eval report");
        break;
    case STMT_BACKWARD:
    case STMT_CLIP:
    case STMT_UPDATE:
    case STMT_ZERO:
    case STMT_ACCUMULATE:
        break;
    }
}

static void check_block(Elab *e, const Block *block)
{
    for (int i = 0; i < block->stmts.n; i++)
        check_stmt(e, block->stmts.at[i]);
}

/* Names that a type of the signature brings. */
static void declare_dims(Elab *e, const TypeExpr *t)
{
    if (!t)
        return;
    for (int i = 0; i < t->parts.n; i++)
        declare_dims(e, t->parts.at[i].type);
    for (int i = 0; i < t->dims.n; i++) {
        const DimExpr *d = &t->dims.at[i];
        if (!d->size)
            declare(e, d->rest, d->rest_span);
        else if (d->size->kind == EXPR_NAME && isupper((unsigned char)d->size->name[0]))
            declare(e, d->size->name, d->span);
    }
}

static bool returns(const Block *block)
{
    for (int i = 0; i < block->stmts.n; i++) {
        const Stmt *s = block->stmts.at[i];
        if (s->kind == STMT_RETURN || returns(&s->body) || (s->otherwise && returns(s->otherwise)))
            return true;
    }
    return false;
}

void check_uncalled(Elab *e, Decl *d)
{
    const Item *item = d->item;
    const Signature *s = &item->function.signature;
    Scope *former = scope_push(e, SCOPE_CALL);
    for (int i = 0; i < s->attributes.n; i++)
        declare(e, s->attributes.at[i].name, s->attributes.at[i].name_span);
    for (int i = 0; i < s->data.n; i++) {
        declare_dims(e, s->data.at[i].type);
        declare(e, s->data.at[i].name, s->data.at[i].name_span);
    }
    declare_dims(e, item->function.result);
    check_block(e, &item->function.body);
    if (!returns(&item->function.body))
        elab_error(e, CODE_RULE, item->name_span, "'%s' returns nothing", d->name);
    scope_pop(e, former);
}
