/* Elaboration, from the top: files, then consts and options, then what the files declare, in order. */
#include "frontend/elab_core.h"
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
    if (!diags->errors && e->program->entries.n)
        warn_unused(e);
    return e->program;
}
