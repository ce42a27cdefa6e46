/* Files and names: follows imports, looks names up, and works out consts and options when they are
 * first asked for.
 *
 * An import is found relative to the importing file, then in the folders of -I. A file is read
 * once; its items are seen by the importer under the prefix of `as`, or without one.
 */
#include "frontend/elab_core.h"
#include "frontend/parse.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* --- scopes --- */

Scope *scope_push(Elab *e, ScopeKind kind)
{
    Scope *former = e->scope;
    Scope *s = new (e->arena, Scope);
    s->kind = kind;
    s->up = kind == SCOPE_CALL ? NULL : former;
    e->scope = s;
    return former;
}

void scope_pop(Elab *e, Scope *former)
{
    e->scope = former;
}

Binding *find_binding(Elab *e, Str name)
{
    for (Scope *s = e->scope; s; s = s->up)
        for (int i = s->bindings.n - 1; i >= 0; i--)
            if (s->bindings.at[i].name == name)
                return &s->bindings.at[i];
    return NULL;
}

Binding *bind_name(Elab *e, Str name, Value value, Span span)
{
    Binding b = {.name = name, .value = value, .span = span};
    vec_push(e->arena, &e->scope->bindings, b);
    return &e->scope->bindings.at[e->scope->bindings.n - 1];
}

Str qualified_text(Elab *e, const Expr *x)
{
    if (x->kind == EXPR_NAME)
        return x->name;
    if (x->kind != EXPR_MEMBER)
        return NULL;
    Str left = qualified_text(e, x->a);
    return left ? intern_printf(e->names, "%s.%s", left, x->name) : NULL;
}

/* --- items --- */

Decl *find_decl(Module *m, const char *name)
{
    for (int i = 0; i < m->decls.n; i++)
        if (!strcmp(m->decls.at[i]->name, name))
            return m->decls.at[i];
    for (int i = 0; i < m->imports.n; i++) {
        const Import *import = &m->imports.at[i];
        const char *rest = name;
        if (import->prefix) {
            size_t length = strlen(import->prefix);
            if (strncmp(name, import->prefix, length) || name[length] != '.')
                continue;
            rest = name + length + 1;
        }
        Decl *d = find_decl(import->module, rest);
        if (d)
            return d;
    }
    return NULL;
}

void add_decl_names(const Module *m, Candidates *out, const char *prefix, Arena *arena)
{
    for (int i = 0; i < m->decls.n; i++)
        vec_push(arena, out,
                 *prefix ? arena_printf(arena, "%s.%s", prefix, m->decls.at[i]->name)
                         : m->decls.at[i]->name);
    for (int i = 0; i < m->imports.n; i++)
        add_decl_names(m->imports.at[i].module, out,
                       m->imports.at[i].prefix ? m->imports.at[i].prefix : prefix, arena);
}

static void declare(Elab *e, Module *m, Item *item)
{
    if (!item->name || item->kind == ITEM_IMPORT)
        return;
    Decl *other = find_decl(m, item->name);
    if (other) {
        Diag *d = elab_error(e, CODE_NAME, item->name_span, "'%s' is declared twice", item->name);
        if (d)
            note_at(d, other->item->name_span, "the other declaration is here");
        return;
    }
    Decl *d = new (e->arena, Decl);
    d->name = item->name;
    d->full = m->prefix ? intern_printf(e->names, "%s_%s", m->prefix, item->name) : item->name;
    d->item = item;
    d->module = m;
    vec_push(e->arena, &m->decls, d);
}

/* --- imports --- */

static Source *read_import(Elab *e, const Module *m, const Text *path, const char **why)
{
    const char *slash = strrchr(m->path, '/');
    const char *near = path->text;
    if (path->text[0] != '/' && slash)
        near = arena_printf(e->arena, "%.*s/%s", (int)(slash - m->path), m->path, path->text);
    Source *source = source_read(e->diags->sources, near, why);
    for (int i = 0; !source && path->text[0] != '/' && i < e->options->include_count; i++) {
        const char *unused;
        source = source_read(e->diags->sources,
                             arena_printf(e->arena, "%s/%s", e->options->include[i], path->text),
                             &unused);
    }
    return source;
}

/* The module of a file that was loaded before, by its real path. */
static Module *find_module(Elab *e, const char *path)
{
    char real[PATH_MAX], other[PATH_MAX];
    if (!realpath(path, real))
        return NULL;
    for (int i = 0; i < e->modules.n; i++)
        if (realpath(e->modules.at[i]->path, other) && !strcmp(real, other))
            return e->modules.at[i];
    return NULL;
}

static void follow_import(Elab *e, Module *m, const Item *item)
{
    const Text *path = &item->import.path;
    if (!strncmp(path->text, "std/", 4)) {
        unsupported(e, path->span, "the standard library");
        return;
    }
    const char *why = "";
    Source *source = read_import(e, m, path, &why);
    if (!source) {
        elab_error(e, CODE_SYSTEM, path->span, "cannot read '%s': %s", path->text, why);
        return;
    }
    Module *other = find_module(e, source->path);
    if (other && other->busy) {
        elab_error(e, CODE_RULE, path->span, "'%s' imports itself, over a circle of imports",
                   path->text);
        return;
    }
    if (!other) {
        int errors = e->diags->errors;
        Ast *ast = parse(source, e->diags, e->names, e->arena);
        if (e->diags->errors > errors)
            return;
        Str prefix = item->name;
        if (m->prefix)
            prefix = prefix ? intern_printf(e->names, "%s_%s", m->prefix, prefix) : m->prefix;
        other = module_load(e, ast, prefix);
    }
    Import import = {.prefix = item->name, .module = other};
    vec_push(e->arena, &m->imports, import);
}

Module *module_load(Elab *e, Ast *ast, Str prefix)
{
    Module *m = new (e->arena, Module);
    m->ast = ast;
    m->path = ast->source->path;
    m->prefix = prefix;
    m->busy = true;
    vec_push(e->arena, &e->modules, m); /* so that a circle is seen */
    int place = e->modules.n - 1;
    for (int i = 0; i < ast->items.n; i++)
        if (ast->items.at[i]->kind == ITEM_IMPORT)
            follow_import(e, m, ast->items.at[i]);
    for (int i = 0; i < ast->items.n; i++)
        declare(e, m, ast->items.at[i]);
    m->busy = false;
    /* imports come first */
    memmove(&e->modules.at[place], &e->modules.at[place + 1],
            sizeof *e->modules.at * (size_t)(e->modules.n - 1 - place));
    e->modules.at[e->modules.n - 1] = m;
    return m;
}

/* --- consts and options --- */

/* The text after -D NAME=, for this const; NULL if there is none. Later ones win. */
static const char *define_of(Elab *e, const Decl *d)
{
    const char *text = NULL;
    size_t length = strlen(d->full);
    for (int i = 0; i < e->options->define_count; i++) {
        const char *define = e->options->defines[i];
        if (!strncmp(define, d->full, length) && (define[length] == '=' || !define[length])) {
            text = define[length] ? define + length + 1 : "true";
            e->define_used[i] = true;
        }
    }
    return text;
}

static Value parse_define(Elab *e, const ValueDecl *decl, const char *text)
{
    char *end = NULL;
    if (decl->type == VALUE_STRING)
        return value_string(intern(e->names, text));
    if (decl->type == VALUE_BOOL && (!strcmp(text, "true") || !strcmp(text, "false")))
        return value_bool(text[0] == 't');
    if (decl->type == VALUE_INT) {
        long long i = strtoll(text, &end, 10);
        if (*text && !*end && i != INT64_MIN && i != INT64_MAX)
            return value_int(i);
    }
    if (decl->type == VALUE_REAL) {
        double r = strtod(text, &end);
        if (*text && !*end && r - r == 0)
            return value_real(r);
    }
    elab_error(e, CODE_VALUE, decl->name_span, "'-D %s=%s' is not %s %s", decl->name, text,
               decl->type == VALUE_INT ? "an" : "a", value_type_spelling(decl->type));
    return value_error();
}

static Scalar *range_end(Elab *e, const Expr *x)
{
    return x ? want_scalar(e, eval(e, x), x->span, "the end of a range") : NULL;
}

static Value make_option(Elab *e, Decl *d, Value value)
{
    static const OptionKind kinds[] = {OPTION_INT, OPTION_REAL, OPTION_BOOL, OPTION_STRING};
    const ValueDecl *decl = &d->item->value;
    Option *o = new (e->arena, Option);
    o->name = d->full;
    o->doc = decl->help.text ? decl->help.text : d->item->doc;
    o->kind = kinds[decl->type];
    o->span = decl->name_span;
    if (is_error(value))
        return value;
    o->value = want_scalar(e, value, decl->value->span, "the default");
    if (decl->range) {
        o->low = range_end(e, decl->range->low);
        o->high = range_end(e, decl->range->high);
        o->set_count = decl->range->values.n;
        o->set = new_array(e->arena, Scalar *, o->set_count + 1);
        for (int i = 0; i < o->set_count; i++)
            o->set[i] = range_end(e, decl->range->values.at[i]);
    }
    Scalar *s = new (e->arena, Scalar);
    s->kind = S_OPTION;
    s->span = decl->name_span;
    s->i = e->program->options.n;
    vec_push(e->arena, &e->program->options, o);
    return value_runtime(s, o->kind);
}

/* Works the value out in the declaration's own file, without the names of the body that asks. */
static Value compute_decl(Elab *e, Decl *d)
{
    const ValueDecl *decl = &d->item->value;
    Module *module = e->module;
    Scope *scope = e->scope;
    e->module = d->module;
    e->scope = NULL;
    const char *what = arena_printf(e->arena, "'%s'", d->name);
    const char *define = d->item->kind == ITEM_CONST ? define_of(e, d) : NULL;
    Value v = define ? parse_define(e, decl, define) : eval(e, decl->value);
    Span span = define ? decl->name_span : decl->value->span;
    if (v.kind == VAL_RUNTIME || v.kind == VAL_DIM) {
        elab_error(e, CODE_VALUE, span, "%s must be known when compiling, but an option is not",
                   what);
        v = value_error();
    }
    v = convert_value(e, v, decl->type, span, what);
    if (!check_range(e, decl->range, v, span, what, decl->range ? decl->range->span : span))
        v = value_error();
    if (d->item->kind == ITEM_OPTION)
        v = make_option(e, d, v);
    e->module = module;
    e->scope = scope;
    return v;
}

Value decl_value(Elab *e, Decl *d, Span use)
{
    if (d->state == DECL_BUSY) {
        elab_error(e, CODE_RULE, use, "'%s' depends on itself", d->name);
        return value_error();
    }
    if (d->state == DECL_FRESH) {
        d->state = DECL_BUSY;
        d->value = compute_decl(e, d);
        d->state = DECL_DONE;
    }
    return d->value;
}

/* -D that names no const. */
void defines_check(Elab *e)
{
    Module *main_file = e->modules.at[e->modules.n - 1];
    Span top = {.file = (uint32_t)main_file->ast->source->index + 1};
    for (int i = 0; i < e->options->define_count; i++) {
        if (e->define_used[i])
            continue;
        const char *define = e->options->defines[i];
        Str key = intern_n(e->names, define, strcspn(define, "="));
        Candidates consts = {0};
        for (int m = 0; m < e->modules.n; m++)
            for (int k = 0; k < e->modules.at[m]->decls.n; k++) {
                Decl *d = e->modules.at[m]->decls.at[k];
                if (d->item->kind == ITEM_CONST)
                    vec_push(e->arena, &consts, d->full);
                if (d->item->kind == ITEM_OPTION && d->full == key)
                    consts.n = -1;
                if (consts.n < 0)
                    break;
            }
        if (consts.n < 0) {
            error_at(e->diags, CODE_NAME, top,
                     "'-D %s' names an option; give '--%s' to the emitted program, or declare a "
                     "const",
                     define, key);
            continue;
        }
        const char *near = nearest_name(key, consts.at, consts.n);
        if (near)
            error_at(e->diags, CODE_NAME, top,
                     "'-D %s' names no const of this program; did you mean '%s'?", define, near);
        else
            error_at(e->diags, CODE_NAME, top, "'-D %s' names no const of this program", define);
    }
}
