/* Elaboration, from the top: files, then consts and options, then what the files declare, in
 * order. */
#include "frontend/elab_core.h"
#include "rt_rng.h"
#include <stdlib.h>
#include <string.h>

/* Does f for every item of every file, imports first, with the names of its file. */
static void each_decl(Elab *e, void (*f)(Elab *e, Decl *d))
{
    for (int m = 0; m < e->modules.n; m++)
        for (int i = 0; i < e->modules.at[m]->decls.n && !e->stopped; i++) {
            e->module = e->modules.at[m];
            f(e, e->module->decls.at[i]);
        }
}

static void make_number(Elab *e, Decl *d)
{
    if (d->item->kind == ITEM_CONST || d->item->kind == ITEM_OPTION)
        decl_value(e, d, d->item->name_span);
}

static void make_declared(Elab *e, Decl *d)
{
    switch (d->item->kind) {
    case ITEM_DATASET:
        dataset_of(e, d);
        break;
    case ITEM_INSTANCE:
        instance_value(e, d);
        break;
    case ITEM_EXTERN_OP:
        unsupported(e, d->item->word_span, "extern ops");
        break;
    case ITEM_STRUCT:
        if (d->item->structure.is_extern)
            unsupported(e, d->item->word_span, "extern structs");
        break;
    default:
        break;
    }
}

static void make_entry(Elab *e, Decl *d)
{
    ItemKind kind = d->item->kind;
    if (kind == ITEM_TRAIN || kind == ITEM_EVAL || kind == ITEM_INFER)
        entry_make(e, d);
}

static void check_rest(Elab *e, Decl *d)
{
    if ((d->item->kind == ITEM_MODEL || d->item->kind == ITEM_DEF) && !d->used)
        check_uncalled(e, d);
}

/* Items without a name: policies and amp { }. The main file's amp counts. */
static void make_nameless(Elab *e)
{
    for (int m = 0; m < e->modules.n; m++) {
        const Ast *ast = e->modules.at[m]->ast;
        const Item *seen = NULL;
        e->module = e->modules.at[m];
        for (int i = 0; i < ast->items.n; i++) {
            const Item *item = ast->items.at[i];
            if (item->kind == ITEM_POLICY)
                unsupported(e, item->word_span, "policy overrides");
            if (item->kind != ITEM_PROPS)
                continue;
            Diag *d =
                seen ? elab_error(e, CODE_RULE, item->word_span, "a file has one 'amp'") : NULL;
            if (d)
                note_at(d, seen->word_span, "the other one is here");
            seen = item;
            AmpBlock *amp = amp_block(e, item);
            if (m == e->modules.n - 1)
                e->program->amp = amp;
        }
    }
}

static void warn_unused(Elab *e)
{
    for (int i = 0; i < e->roots.n; i++)
        if (!e->roots.at[i]->called)
            warn_at(e->diags, CODE_UNUSED, e->roots.at[i]->span, "instance '%s' is never called",
                    e->roots.at[i]->name);
}

/* --- names of draws --- */

typedef struct Stream {
    uint32_t hash;
    Str name;
    Span span;
} Stream;

static int compare_streams(const void *a, const void *b)
{
    const Stream *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->span.begin < y->span.begin ? -1 : x->span.begin > y->span.begin;
}

/* Random numbers are told apart by a hash of 32 bits; two names with one hash would draw the
 * same. */
static void check_streams(Elab *e)
{
    Program *p = e->program;
    Vec(Stream) all = {0};
    for (int i = 0; i < p->params.n; i++) {
        Param *param = p->params.at[i];
        Stream s = {rt_stream(param->name), param->name, param->span};
        vec_push(e->arena, &all, s);
    }
    for (int i = 0; i < p->entries.n; i++)
        for (Node *n = p->entries.at[i]->segment[0]->first; n; n = n->next)
            if (n->op == OP_RAND || n->op == OP_RANDN) {
                Stream s = {rt_stream(attr_s(n, "stream")), attr_s(n, "stream"), n->span};
                vec_push(e->arena, &all, s);
            }
    if (all.n)
        qsort(all.at, (size_t)all.n, sizeof *all.at, compare_streams);
    for (int i = 1; i < all.n; i++) {
        const Stream *a = &all.at[i - 1], *b = &all.at[i];
        if (a->hash != b->hash || a->name == b->name)
            continue;
        Diag *d = elab_error(e, CODE_RULE, b->span,
                             "'%s' and '%s' would draw the same random numbers; rename one",
                             b->name, a->name);
        if (d)
            note_at(d, a->span, "the other one is here");
    }
}

/* What emitted programs count in 64 bits is within reach of them. */
static void check_memory(Elab *e)
{
    enum { BYTES = 16 }; /* weight, gradient and two moments in f32 */
    int64_t left = MAX_BYTES / BYTES;
    for (int i = 0; i < e->program->params.n; i++) {
        const Param *p = e->program->params.at[i];
        int64_t elements = 0;
        dim_is_int(type_count(&e->program->types, p->type), &elements);
        if (elements > left) {
            elab_error(e, CODE_LIMIT, p->span,
                       "the parameters up to '%s' are more than ampc accepts", p->name);
            return;
        }
        left -= elements;
    }
}

/* --- all of it --- */

static Elab *elab_make(const ElabOptions *options, Diags *diags, Names *names, Arena *arena)
{
    Elab *e = new (arena, Elab);
    e->arena = arena;
    e->names = names;
    e->diags = diags;
    e->program = program_make(arena, names, diags);
    e->types = &e->program->types;
    e->options = options;
    e->define_used = new_array(arena, bool, options->define_count + 1);
    return e;
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

Program *elaborate(Ast *ast, const ElabOptions *options, Diags *diags, Names *names, Arena *arena)
{
    Elab *e = elab_make(options, diags, names, arena);
    e->program->source_name = intern(names, file_name(ast->source->path));
    module_load(e, ast, NULL);
    each_decl(e, make_number);
    defines_check(e);
    make_nameless(e);
    each_decl(e, make_declared);
    find_batches(e);
    each_decl(e, make_entry);
    if (!e->stopped)
        optimizers_finish(e);
    each_decl(e, check_rest);
    check_streams(e);
    if (!diags->errors)
        check_memory(e);
    if (!diags->errors && e->program->entries.n)
        warn_unused(e);
    return e->program;
}
