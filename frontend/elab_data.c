/* Datasets: the loader, the fields as trees over the columns of a row, the splits.
 *
 *     dataset digits = csv(data) { x: float[64] = columns(0, 64) / 16;  y: i32 = column(64);  split train = 0.8; }
 */
#include "frontend/elab_core.h"
#include <string.h>

static const struct Loader {
    const char *name, *attrs;
    DataKind kind;
    const char *sources[4]; /* names of the values of a row; columns and column are calls */
} loaders[] = {
    {"csv", "path,header,seed", DATA_CSV, {"columns", "column"}},
    {"idx", "dir,seed", DATA_IDX, {"image", "label"}},
    {"npy", "path,seed", DATA_NPY, {"columns", "column", "row"}},
};
enum { LOADERS = sizeof loaders / sizeof *loaders };

typedef struct FieldScope { /* the field being read */
    const struct Loader *loader;
    int64_t count; /* values of a row of the field */
    Span declared;
} FieldScope;

static bool is_source(const FieldScope *f, Str name)
{
    for (int i = 0; i < 4 && f->loader->sources[i]; i++)
        if (!strcmp(f->loader->sources[i], name))
            return true;
    return false;
}

/* columns(a, b), half-open; column(i); image; label; row. NULL: not one of these. */
static const Expr *source_name(const FieldScope *f, const Expr *x)
{
    const Expr *name = x->kind == EXPR_CALL ? x->a : x;
    return name->kind == EXPR_NAME && is_source(f, name->name) ? name : NULL;
}

static bool has_source(const FieldScope *f, const Expr *x)
{
    if (!x)
        return false;
    if (source_name(f, x))
        return true;
    for (int i = 0; i < x->args.n; i++)
        if (has_source(f, x->args.at[i].value))
            return true;
    return has_source(f, x->a) || has_source(f, x->b);
}

static Scalar *read_source(Elab *e, const FieldScope *f, const Expr *x, const Expr *name)
{
    bool many = !strcmp(name->name, "columns"), single = !strcmp(name->name, "column"), ok = true;
    Scalar *s = new (e->arena, Scalar);
    Site site;
    s->kind = S_COLUMN;
    s->span = x->span;
    s->s = many || single ? intern(e->names, "columns") : name->name;
    if (!many && !single) {
        if (x->kind == EXPR_CALL)
            elab_error(e, CODE_TYPE, x->span, "'%s' is a value of the row, not a function",
                       name->name);
        return x->kind == EXPR_CALL ? NULL : s;
    }
    site_open(&site, name->name, x->span, name->span);
    site_slots(e, &site, many ? "begin,end" : "index");
    if (x->kind != EXPR_CALL) {
        elab_error(e, CODE_TYPE, x->span, many ? "write columns(a, b)" : "write column(i)");
        return NULL;
    }
    if (!site_bind(e, &site, &x->args, NULL, x->span) || !site_need(e, &site, site.slot[0].name) ||
        (many && !site_need(e, &site, "end")))
        return NULL;
    s->from = site_int(e, &site, site.slot[0].name, 0, &ok);
    s->to = many ? site_int(e, &site, "end", 0, &ok) : s->from + 1;
    if (!ok)
        return NULL;
    if (s->from < 0 || s->to <= s->from || s->to > INT32_MAX) {
        elab_error(e, CODE_VALUE, x->span,
                   "columns %lld .. %lld are no columns (the end is not included)",
                   (long long)s->from, (long long)s->to);
        return NULL;
    }
    if (s->to - s->from != 1 && s->to - s->from != f->count) {
        Diag *d =
            elab_error(e, CODE_SHAPE, x->span, "%lld columns for a field of %lld value%s",
                       (long long)(s->to - s->from), (long long)f->count, f->count == 1 ? "" : "s");
        if (d)
            note_at(d, f->declared, "the field is declared here");
        return NULL;
    }
    return s;
}

static Scalar *field_value(Elab *e, const FieldScope *f, const Expr *x)
{
    const Expr *name = source_name(f, x);
    Scalar *s = new (e->arena, Scalar);
    s->span = x->span;
    if (name)
        return read_source(e, f, x, name);
    if (!has_source(f, x))
        return want_scalar(e, eval(e, x), x->span, "the value of a field");
    switch (x->kind) {
    case EXPR_UNARY:
        s->kind = S_UNARY;
        s->s = intern(e->names, operator_spelling(x->operator));
        s->a = field_value(e, f, x->a);
        return s->a ? s : NULL;
    case EXPR_BINARY:
        if (x->operator== OPERATOR_MATMUL)
            break;
        s->kind = S_BINARY;
        s->s = intern(e->names, operator_spelling(x->operator));
        s->a = field_value(e, f, x->a);
        s->b = field_value(e, f, x->b);
        return s->a && s->b ? s : NULL;
    case EXPR_CALL:
        if (x->a->kind == EXPR_SCALAR && x->args.n == 1)
            return field_value(e, f, x->args.at[0].value);
        if (x->a->kind != EXPR_NAME || !is_builtin(x->a->name) || x->args.n < 1 || x->args.n > 2)
            break;
        s->kind = S_CALL;
        s->s = x->a->name;
        s->a = field_value(e, f, x->args.at[0].value);
        s->b = x->args.n > 1 ? field_value(e, f, x->args.at[1].value) : NULL;
        return s->a && (x->args.n < 2 || s->b) ? s : NULL;
    default:
        break;
    }
    elab_error(e, CODE_TYPE, x->span, "a field is computed with arithmetic on numbers only");
    return NULL;
}

static void add_field(Elab *e, Dataset *data, const struct Loader *loader, const DataField *decl)
{
    Field field = {.name = decl->name, .span = decl->name_span};
    FieldScope f = {.loader = loader, .count = 1, .declared = decl->span};
    for (int i = 0; i < data->fields.n; i++)
        if (data->fields.at[i].name == decl->name) {
            Diag *d = elab_error(e, CODE_NAME, decl->name_span, "field '%s' is declared twice",
                                 decl->name);
            if (d)
                note_at(d, data->fields.at[i].span, "the other declaration is here");
            return;
        }
    const Type *type = resolve_type(e, decl->type, arena_printf(e->arena, "'%s'", decl->name));
    for (int i = 0; type && i < type->rank; i++) {
        int64_t size = 1;
        dim_is_int(type->dim[i], &size);
        f.count *= size;
    }
    if (type) {
        field.type = type->dtype == DT_FLOAT ? type_with(e->types, type, DT_F32) : type;
        field.value = field_value(e, &f, decl->value);
    }
    vec_push(e->arena, &data->fields, field);
}

static void add_splits(Elab *e, Dataset *data, const Item *item)
{
    double sum = 0;
    for (int i = 0; i < item->dataset.splits.n; i++) {
        const Args *parts = &item->dataset.splits.at[i];
        for (int k = 0; k < parts->n; k++) {
            const Arg *part = &parts->at[k];
            Split split = {.name = part->name};
            if (!want_real(e, eval(e, part->value), part->value->span, "a share", &split.share))
                continue;
            if (!(split.share > 0 && split.share <= 1)) {
                elab_error(e, CODE_VALUE, part->value->span,
                           "a share must be above 0 and at most 1");
                continue;
            }
            for (int j = 0; j < data->splits.n; j++)
                if (data->splits.at[j].name == part->name)
                    elab_error(e, CODE_NAME, part->name_span, "split '%s' is declared twice",
                               part->name);
            sum += split.share;
            if (sum > 1 + 1e-9)
                elab_error(e, CODE_VALUE, part->value->span,
                           "the shares add up to %s, more than all rows",
                           double_text(e->arena, sum));
            vec_push(e->arena, &data->splits, split);
        }
    }
}

static void own_splits(Elab *e, Dataset *data, const Item *item)
{
    Split train = {.name = intern(e->names, "train")}, test = {.name = intern(e->names, "test")};
    if (item->dataset.splits.n && item->dataset.splits.at[0].n)
        elab_error(e, CODE_RULE, item->dataset.splits.at[0].at[0].span,
                   "idx has the splits train and test by itself");
    vec_push(e->arena, &data->splits, train);
    vec_push(e->arena, &data->splits, test);
}

static void read_loader(Elab *e, Dataset *data, const struct Loader *loader, const Call *call)
{
    Site s;
    bool ok = true;
    data->kind = loader->kind;
    site_open(&s, loader->name, call->span, call->name_span);
    site_slots(e, &s, loader->attrs);
    if (!site_bind(e, &s, &call->args, NULL, call->span) || !site_need(e, &s, s.slot[0].name))
        return;
    Value path = slot_value(e, &s.slot[0]);
    if (path.kind == VAL_STRING || (path.kind == VAL_RUNTIME && path.runtime_kind == OPTION_STRING))
        data->path = want_scalar(e, path, s.slot[0].span, "a path");
    else if (!is_error(path))
        elab_error(e, CODE_TYPE, s.slot[0].span, "%s must be a string, found %s",
                   slot_what(e, &s, &s.slot[0]), value_text(e, &path));
    data->seed = site_int(e, &s, "seed", 0, &ok);
    Slot *header = site_find(&s, "header");
    if (header && header->given)
        data->header = want_scalar(e, slot_value(e, header), header->span, "'header' of 'csv'");
}

static const struct Loader *find_loader(Elab *e, const Call *call)
{
    Candidates names = {0};
    for (int i = 0; i < LOADERS; i++) {
        if (!strcmp(loaders[i].name, call->name))
            return &loaders[i];
        vec_push(e->arena, &names, loaders[i].name);
    }
    if (is_later_work(call->name))
        unsupported(e, call->name_span, call->name);
    else
        unknown_name(e, CODE_NAME, call->name_span,
                     arena_printf(e->arena, "there is no loader '%s'", call->name), call->name,
                     &names);
    return NULL;
}

/* NULL: reported. */
Dataset *dataset_of(Elab *e, Decl *d)
{
    const Item *item = d->item;
    if (d->state == DECL_DONE)
        return d->dataset;
    d->state = DECL_DONE;
    Module *module = e->module;
    Scope *scope = e->scope;
    e->module = d->module;
    e->scope = NULL;
    const struct Loader *loader = find_loader(e, &item->dataset.call);
    if (loader) {
        Dataset *data = new (e->arena, Dataset);
        data->name = d->full;
        data->span = item->name_span;
        data->index = -1;
        read_loader(e, data, loader, &item->dataset.call);
        for (int i = 0; i < item->dataset.fields.n; i++)
            add_field(e, data, loader, &item->dataset.fields.at[i]);
        if (loader->kind == DATA_IDX)
            own_splits(e, data, item);
        else
            add_splits(e, data, item);
        d->dataset = data;
    }
    e->module = module;
    e->scope = scope;
    return d->dataset;
}
