/* Entries: each train, eval and infer gets its inputs and one graph.
 *
 * The leading dimension of the data is the batch: N is 1 .. batch at run time. With a dataset the
 * inputs are its fields, by name; other sizes come from the fields, or from attributes with a
 * range.
 */
#include "frontend/elab_core.h"
#include <string.h>

static const NameRef *item_on(const Item *item)
{
    static const NameRef none;
    return item->kind == ITEM_TRAIN  ? &item->train.on
           : item->kind == ITEM_EVAL ? &item->eval.on
                                     : &none;
}

static const Signature *item_signature(const Item *item)
{
    return item->kind == ITEM_TRAIN  ? &item->train.signature
           : item->kind == ITEM_EVAL ? &item->eval.signature
                                     : &item->function.signature;
}

/* --- data --- */

static void unknown_split(Elab *e, const NameRef *on, const Dataset *data, const char *name)
{
    Candidates names = {0};
    for (int i = 0; i < data->splits.n; i++)
        vec_push(e->arena, &names, data->splits.at[i].name);
    unknown_name(e, CODE_NAME, on->span,
                 arena_printf(e->arena, "dataset '%s' has no split '%s'", data->name, name), name,
                 &names);
}

static void unknown_dataset(Elab *e, const NameRef *on, const char *name)
{
    Candidates names = {0};
    for (int i = 0; i < e->module->decls.n; i++)
        if (e->module->decls.at[i]->item->kind == ITEM_DATASET)
            vec_push(e->arena, &names, e->module->decls.at[i]->name);
    unknown_name(e, CODE_NAME, on->span, arena_printf(e->arena, "there is no dataset '%s'", name),
                 name, &names);
}

/* `on digits.train`: the dataset and its split. False: reported. */
static bool find_data(Elab *e, const NameRef *on, Entry *entry)
{
    const char *dot = strrchr(on->name, '.'), *split = NULL;
    Decl *d = find_decl(e->module, on->name);
    if (!d && dot) {
        d = find_decl(e->module, intern_n(e->names, on->name, (size_t)(dot - on->name)));
        split = dot + 1;
    }
    if (!d || d->item->kind != ITEM_DATASET) {
        unknown_dataset(e, on,
                        dot ? intern_n(e->names, on->name, (size_t)(dot - on->name)) : on->name);
        return false;
    }
    Dataset *data = dataset_of(e, d);
    if (!data)
        return false;
    d->used = true;
    entry->dataset = data;
    entry->split = -1;
    for (int i = 0; split && i < data->splits.n; i++)
        if (!strcmp(data->splits.at[i].name, split))
            entry->split = i;
    if (split && entry->split < 0) {
        unknown_split(e, on, data, split);
        return false;
    }
    if (!split && data->kind == DATA_IDX) {
        elab_error(e, CODE_NAME, on->span, "'%s' has two parts; write %s.train or %s.test",
                   data->name, data->name, data->name);
        return false;
    }
    if (data->index < 0) {
        data->index = e->program->datasets.n;
        vec_push(e->arena, &e->program->datasets, data);
    }
    return true;
}

static int find_field(Elab *e, const ParamDecl *p, const Dataset *data)
{
    Candidates names = {0};
    for (int i = 0; i < data->fields.n; i++) {
        if (data->fields.at[i].name == p->name)
            return i;
        vec_push(e->arena, &names, data->fields.at[i].name);
    }
    unknown_name(e, CODE_NAME, p->name_span,
                 arena_printf(e->arena, "dataset '%s' has no field '%s'", data->name, p->name),
                 p->name, &names);
    return -1;
}

/* --- inputs --- */

static Value symbol_value(Elab *e, Str name, int64_t low, int64_t high, int *symbol)
{
    *symbol = symbol_add(e->types, name, low, high);
    return value_dim(dim_symbol(e->types, *symbol));
}

/* An attribute with the name of a dimension bounds it; others are numbers with a default. */
static void bind_attribute(Elab *e, const ValueDecl *a)
{
    int64_t low, high;
    int symbol;
    Value v = value_error();
    if (a->value) {
        const char *what = arena_printf(e->arena, "'%s'", a->name);
        v = convert_value(e, eval(e, a->value), a->type, a->value->span, what);
        check_range(e, a->range, v, a->value->span, what, a->span);
    } else if (a->type != VALUE_INT || !a->range || !a->range->low) {
        elab_error(e, CODE_VALUE, a->span,
                   "'%s' needs a default or, as a dimension, a range: %s: int in 1 .. 256", a->name,
                   a->name);
    } else if (want_int(e, eval(e, a->range->low), a->range->span, "a bound", &low) &&
               want_int(e, eval(e, a->range->high), a->range->span, "a bound", &high)) {
        if (low < 1 || high < low || high > INT32_MAX)
            elab_error(e, CODE_VALUE, a->range->span, "a dimension's range is within 1 .. %d",
                       INT32_MAX);
        else
            v = symbol_value(e, a->name, low, high, &symbol);
    }
    bind_name(e, a->name, v, a->name_span)->is_declared = true;
}

static bool is_unbound(Elab *e, const DimExpr *d)
{
    bool is_new = false;
    return d->size && d->size->kind == EXPR_NAME && !find_binding(e, d->size->name) &&
           (signature_dim(e, d, &is_new), is_new);
}

/* The leading dimension of the first parameter is the batch. */
static void bind_batch(Elab *e, const Signature *s, Entry *entry)
{
    if (!s->data.n)
        return;
    const TypeExpr *t = s->data.at[0].type;
    if (!t || t->kind != TYPE_EXPR_TENSOR || !t->dims.n || !is_unbound(e, &t->dims.at[0]))
        return;
    if (entry->kind == ENTRY_INFER) {
        elab_error(e, CODE_RULE, t->dims.at[0].span,
                   "'%s' needs a bound, so that memory can be planned: '; %s: int in 1 .. 256'",
                   t->dims.at[0].size->name, t->dims.at[0].size->name);
        bind_name(e, t->dims.at[0].size->name, value_error(), t->dims.at[0].span);
        return;
    }
    Value v = symbol_value(e, t->dims.at[0].size->name, 1, entry->batch > 0 ? entry->batch : 1,
                           &entry->batch_symbol);
    bind_name(e, t->dims.at[0].size->name, v, t->dims.at[0].span)->is_declared = true;
}

/* Sizes that the field of the dataset tells. */
static void bind_field_dims(Elab *e, const TypeExpr *t, const Field *field)
{
    for (int i = 1; i < t->dims.n && i <= field->type->rank; i++)
        if (is_unbound(e, &t->dims.at[i]))
            bind_name(e, t->dims.at[i].size->name, value_dim(field->type->dim[i - 1]),
                      t->dims.at[i].span)
                ->is_declared = true;
}

static bool fits_field(const Type *type, const Field *field)
{
    bool real = is_real(type->dtype) && is_real(field->type->dtype);
    if (type->rank != field->type->rank + 1 || (!real && type->dtype != field->type->dtype))
        return false;
    for (int i = 1; i < type->rank; i++)
        if (type->dim[i] != field->type->dim[i - 1])
            return false;
    return true;
}

static bool starts_with_batch(Elab *e, const ParamDecl *p, const Type *type, const Entry *entry)
{
    if (entry->kind == ENTRY_INFER || (entry->batch_symbol >= 0 && type->rank &&
                                       type->dim[0] == dim_symbol(e->types, entry->batch_symbol)))
        return true;
    elab_error(e, CODE_SHAPE, p->type->span,
               "every input begins with the batch dimension, as in %s: float[N, 64]", p->name);
    return false;
}

static const Type *input_type(Elab *e, const ParamDecl *p, const Entry *entry, int *field_index)
{
    const Field *field = NULL;
    *field_index = -1;
    if (!p->type || p->type->kind != TYPE_EXPR_TENSOR) {
        DType unused;
        if (p->type)
            resolve_element(e, p->type, &unused);
        return NULL;
    }
    if (entry->dataset) {
        *field_index = find_field(e, p, entry->dataset);
        if (*field_index < 0 || !entry->dataset->fields.at[*field_index].type)
            return NULL;
        field = &entry->dataset->fields.at[*field_index];
        bind_field_dims(e, p->type, field);
    }
    const Type *type = resolve_type(e, p->type, arena_printf(e->arena, "'%s'", p->name));
    if (!type || !starts_with_batch(e, p, type, entry))
        return NULL;
    if (field && !fits_field(type, field)) {
        Diag *d = elab_error(e, CODE_SHAPE, p->type->span, "'%s' is %s, but a row of '%s' has %s",
                             p->name, type_text(e->types, type, e->arena), entry->dataset->name,
                             type_text(e->types, field->type, e->arena));
        if (d)
            note_at(d, field->span, "the field is declared here");
        return NULL;
    }
    return type;
}

static void add_input(Elab *e, const ParamDecl *p, Entry *entry)
{
    EntryInput input = {.name = p->name, .span = p->name_span};
    const Binding *other = find_binding(e, p->name);
    if (other)
        elab_error(e, CODE_NAME, p->name_span, "'%s' is declared twice", p->name);
    input.type = input_type(e, p, entry, &input.field);
    if (!input.type) {
        bind_name(e, p->name, value_error(), p->name_span);
        return;
    }
    vec_push(e->arena, &entry->inputs, input);
    set_span(e, p->name_span);
    Attr attr = attr_str(p->name);
    Node *n = build_source(OP_INPUT, input.type, attrs_make(OP_INPUT, &attr, 1), NULL, 0);
    n->name = p->name;
    if (is_real(input.type->dtype) && input.type->dtype != DT_FLOAT)
        mark_pinned(n);
    bind_name(e, p->name, value_node(n), p->name_span);
}

static void bind_inputs(Elab *e, const Item *item, Entry *entry)
{
    const Signature *s = item_signature(item);
    for (int i = 0; i < s->attributes.n; i++)
        bind_attribute(e, &s->attributes.at[i]);
    bind_batch(e, s, entry);
    for (int i = 0; i < s->data.n; i++)
        add_input(e, &s->data.at[i], entry);
    if (entry->kind == ENTRY_INFER && entry->inputs.n && entry->inputs.at[0].type->rank) {
        const Dim *d = entry->inputs.at[0].type->dim[0];
        if (d->count == 1 && d->term[0].degree == 1 && d->term[0].coefficient == 1)
            entry->batch_symbol = d->term[0].symbol[0];
        entry->batch = dim_max(e->types, d);
    }
}

/* --- results of infer --- */

static void add_result(Elab *e, Entry *entry, Str name, Value v)
{
    Node *n = v.node;
    if (v.kind != VAL_TENSOR)
        return;
    Attr attr = attr_str(name);
    vec_push(e->arena, &entry->results, name);
    build(OP_RESULT, &n, 1, attrs_make(OP_RESULT, &attr, 1));
}

static void run_infer(Elab *e, const Item *item, Entry *entry)
{
    const TypeExpr *t = item->function.result;
    exec_block(e, &item->function.body);
    if (!e->frame->returned) {
        elab_error(e, CODE_RULE, item->name_span, "'%s' returns nothing", item->name);
        return;
    }
    Value v = bind_result(e, t, e->frame->result, e->frame->result_span, item->name);
    set_span(e, e->frame->result_span);
    Str only = t->kind == TYPE_EXPR_TUPLE ? t->parts.at[0].name : NULL;
    if (t->kind != TYPE_EXPR_TUPLE || t->parts.n == 1)
        add_result(e, entry, only ? only : intern(e->names, "result"), v);
    for (int i = 0; v.kind == VAL_TUPLE && i < v.n; i++) {
        Str name = t->parts.at[i].name;
        add_result(e, entry, name ? name : intern_printf(e->names, "result%d", i), v.at[i]);
    }
}

/* --- entries --- */

static void run_eval(Elab *e, const Item *item, Entry *entry)
{
    exec_block(e, &item->eval.body);
    if (!entry->reports.n && !e->diags->errors)
        warn_at(e->diags, CODE_UNUSED, item->name_span, "'%s' reports nothing", item->name);
}

static void run_train(Elab *e, const Item *item)
{
    train_optimizers(e, item);
    if (!item->train.step) {
        elab_error(e, CODE_RULE, item->name_span, "'%s' has no step", item->name);
        return;
    }
    exec_block(e, item->train.step);
    train_finish(e, item);
}

static void eval_batch(Elab *e, const Item *item, Entry *entry)
{
    entry->batch = e->eval_batch;
    if (item->eval.batch &&
        want_int(e, eval(e, item->eval.batch), item->eval.batch->span, "the batch",
                 &entry->batch) &&
        (entry->batch < 1 || entry->batch > INT32_MAX))
        elab_error(e, CODE_VALUE, item->eval.batch->span, "a batch is within 1 .. %d", INT32_MAX);
    if (entry->batch < 1) {
        if (!e->has_train && !item->eval.batch)
            elab_error(e, CODE_RULE, item->name_span,
                       "'%s' needs a batch size, since there is no train: 'batch 64'", item->name);
        entry->batch = 1;
    }
}

static Entry *fresh_entry(Elab *e, const Decl *d)
{
    const Item *item = d->item;
    Entry *entry = new (e->arena, Entry);
    entry->kind = item->kind == ITEM_TRAIN  ? ENTRY_TRAIN
                  : item->kind == ITEM_EVAL ? ENTRY_EVAL
                                            : ENTRY_INFER;
    entry->name = d->full;
    entry->doc = item->doc;
    entry->batch_symbol = -1;
    entry->split = -1;
    entry->drop_last = entry->kind == ENTRY_TRAIN;
    entry->shuffle = entry->kind == ENTRY_TRAIN;
    entry->span = item->name_span;
    entry->index = e->program->entries.n;
    entry->segments = 1;
    entry->segment = new_array(e->arena, Graph *, 1);
    entry->segment[0] = graph_make(e->program);
    vec_push(e->arena, &e->program->entries, entry);
    return entry;
}

void entry_make(Elab *e, Decl *d)
{
    const Item *item = d->item;
    Entry *entry = fresh_entry(e, d);
    Run run = {.entry = entry};
    Frame frame = {.decl = d, .module = d->module};
    Scope *former = scope_push(e, SCOPE_CALL);
    e->module = d->module;
    e->context = (Context){.span = item->name_span};
    graph_open(entry->segment[0]);
    set_span(e, item->name_span);
    if (item->kind == ITEM_TRAIN)
        train_settings(e, item, entry);
    if (item->kind == ITEM_EVAL)
        eval_batch(e, item, entry);
    const NameRef *on = item_on(item);
    bool has_data = !on->name || find_data(e, on, entry);
    e->run = &run;
    e->frame = &frame;
    if (has_data)
        bind_inputs(e, item, entry);
    else
        for (int i = 0; i < item_signature(item)->data.n; i++)
            bind_name(e, item_signature(item)->data.at[i].name, value_error(), item->name_span);
    if (item->kind == ITEM_TRAIN)
        run_train(e, item);
    else if (item->kind == ITEM_EVAL)
        run_eval(e, item, entry);
    else
        run_infer(e, item, entry);
    e->program->expanded_nodes += entry->segment[0]->count;
    graph_close();
    e->run = NULL;
    e->frame = NULL;
    scope_pop(e, former);
}

/* The largest batch of any train is the default of every eval. */
void find_batches(Elab *e)
{
    for (int m = 0; m < e->modules.n; m++) {
        e->module = e->modules.at[m];
        for (int i = 0; i < e->module->decls.n; i++) {
            const Item *item = e->module->decls.at[i]->item;
            e->has_train |= item->kind == ITEM_TRAIN;
            for (int k = 0; item->kind == ITEM_TRAIN && k < item->train.settings.n; k++) {
                const Arg *arg = &item->train.settings.at[k];
                int64_t batch;
                if (strcmp(arg->name, "batch") ||
                    !want_int(e, eval(e, arg->value), arg->value->span, "'batch'", &batch))
                    continue;
                if (batch > e->eval_batch)
                    e->eval_batch = batch;
            }
        }
    }
}
