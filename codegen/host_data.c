/* Prints data sets: how a field is computed from a row of a file, and how the file is read, checked
 * and cut into parts.
 */
#include "codegen/host.h"
#include <string.h>

/* ---- what is used ---- */

int is_dataset_used(const Host *h, const Dataset *d)
{
    for (int i = 0; i < h->program->entries.n; i++)
        if (h->program->entries.at[i]->dataset == d)
            return 1;
    return 0;
}

/* Does an entry run over all rows, whatever the splits? */
static int uses_all_rows(const Host *h, const Dataset *d)
{
    for (int i = 0; i < h->program->entries.n; i++)
        if (h->program->entries.at[i]->dataset == d && h->program->entries.at[i]->split < 0)
            return 1;
    return 0;
}

/* The classes that a field's values stand for, if some entry uses them as such. */
static int64_t field_classes(const Host *h, const Dataset *d, int field)
{
    int64_t least = 0;
    for (int i = 0; i < h->program->entries.n; i++) {
        const Entry *e = h->program->entries.at[i];
        for (int k = 0; e->dataset == d && k < e->inputs.n; k++) {
            int64_t classes = e->inputs.at[k].field == field ? e->inputs.at[k].classes : 0;
            if (classes && (!least || classes < least))
                least = classes;
        }
    }
    return least;
}

Str part_name(Host *h, const Entry *e)
{
    Str data = host_name(h, e->dataset->name);
    return e->split < 0 ? intern_printf(h->u->names, "d->%s_all", data)
                        : intern_printf(h->u->names, "d->%s_part[%d]", data, e->split);
}

/* ---- fields ---- */

static const char *kind_of(DType d)
{
    static const char *const kinds[] = {
        [DT_F32] = "F32", [DT_I8] = "I8",   [DT_U8] = "U8",     [DT_I16] = "I16",
        [DT_I32] = "I32", [DT_I64] = "I64", [DT_BOOL] = "BOOL",
    };
    return d < DTYPE_COUNT && kinds[d] ? kinds[d] : "F32";
}

static Str field_function(Host *h, const Dataset *d, const Field *f)
{
    return host_name(h, arena_printf(h->arena, "%s.%s", d->name, f->name));
}

static void print_field(Host *h, const Dataset *d, const Field *f)
{
    const char *value = real_c(h, f->value);
    out_line(h->o, "static double %s(const RtSource *from, int64_t row, int64_t i)",
             field_function(h, d, f));
    out_text(h->o, "{\n");
    static const char *const parameters[] = {"from", "row", "i"};
    for (int k = 0; k < 3; k++)
        if (!text_names(value, parameters[k]))
            out_line(h->o, "    (void)%s;", parameters[k]);
    out_line(h->o, "    return %s;\n}\n", value);
}

/* The last column that the fields of a csv file read, and one. */
static int64_t columns_read(const Scalar *s)
{
    if (!s)
        return 0;
    if (s->kind == S_COLUMN)
        return s->to;
    if (s->kind != S_UNARY && s->kind != S_BINARY && s->kind != S_CALL)
        return 0;
    int64_t a = columns_read(s->a), b = s->kind == S_UNARY ? 0 : columns_read(s->b);
    return a > b ? a : b;
}

static int64_t most_columns(const Dataset *d)
{
    int64_t most = 0;
    for (int i = 0; i < d->fields.n; i++)
        if (columns_read(d->fields.at[i].value) > most)
            most = columns_read(d->fields.at[i].value);
    return most;
}

/* ---- reading ---- */

static void then(Host *h, const char *call)
{
    out_line(h->o, "    if (!status)\n        status = %s;", call);
}

static int reads_whole_rows(const Scalar *s, const char *name)
{
    if (!s)
        return 0;
    if (s->kind == S_COLUMN)
        return !strcmp(s->s, name);
    if (s->kind != S_UNARY && s->kind != S_BINARY && s->kind != S_CALL)
        return 0;
    return reads_whole_rows(s->a, name) || (s->kind != S_UNARY && reads_whole_rows(s->b, name));
}

static int64_t field_width(Host *h, const Field *f)
{
    int64_t n = 1;
    dim_is_int(type_count(h->types, f->type), &n);
    return n;
}

/* Opens the source: `from` and `rows`. */
static void print_open(Host *h, const Dataset *d)
{
    switch (d->kind) {
    case DATA_CSV:
        out_text(h->o, "    RtSource from[1];\n");
        out_line(h->o, "    int status = rt_csv_read(path, ',', %s, from);",
                 d->header ? int_c(h, d->header) : "0");
        then(h, arena_printf(h->arena, "rt_source_has_columns(from, path, %lld)",
                             (long long)most_columns(d)));
        break;
    case DATA_NPY:
        out_text(h->o, "    RtSource from[1];\n"
                       "    int status = rt_npy_read(path, from);\n");
        if (most_columns(d))
            then(h, arena_printf(h->arena, "rt_source_has_columns(from, path, %lld)",
                                 (long long)most_columns(d)));
        break;
    case DATA_IDX:
        out_text(h->o, "    RtIdxFolder folder;\n"
                       "    int status = rt_idx_folder(path, &folder);\n"
                       "    const RtSource from[] = {folder.image, folder.label};\n");
        break;
    case DATA_MEMORY:
        break;
    }
    for (int i = 0; i < d->fields.n; i++) {
        const Field *f = &d->fields.at[i];
        const char *which = reads_whole_rows(f->value, "image") ? "&from[0]"
                            : reads_whole_rows(f->value, "row") ? "from"
                                                                : NULL;
        if (which)
            then(h, arena_printf(h->arena, "rt_source_has_width(%s, path, %lld)", which,
                                 (long long)field_width(h, f)));
    }
}

static void print_parts(Host *h, const Dataset *d)
{
    Str name = host_name(h, d->name);
    if (d->kind == DATA_IDX)
        then(h, arena_printf(h->arena, "rt_dataset_cut(&d->%s, 2, rows, part, d->%s_part)", name,
                             name));
    else if (d->splits.n)
        then(h,
             arena_printf(h->arena, "rt_dataset_split(&d->%s, %llu, %d, share, part, d->%s_part)",
                          name, (unsigned long long)d->seed, d->splits.n, name));
    if (uses_all_rows(h, d))
        then(h, arena_printf(h->arena,
                             "rt_part_make(&d->%s_all, &d->%s, \"all\", NULL, 0, d->%s.rows)", name,
                             name, name));
}

static void print_part_names(Host *h, const Dataset *d)
{
    if (!d->splits.n)
        return;
    if (d->kind != DATA_IDX) {
        out_text(h->o, "    static const double share[] = {");
        for (int i = 0; i < d->splits.n; i++)
            out_printf(h->o, "%s%s", i ? ", " : "", double_text(h->arena, d->splits.at[i].share));
        out_text(h->o, "};\n");
    }
    out_text(h->o, "    static const char *const part[] = {");
    for (int i = 0; i < d->splits.n; i++)
        out_printf(h->o, "%s%s", i ? ", " : "", string_c(h, d->splits.at[i].name));
    out_text(h->o, "};\n");
}

static void print_load(Host *h, const Dataset *d)
{
    Str name = host_name(h, d->name);
    source_comment(h, d->span);
    out_line(h->o, "static int load_%s(Data *d, const char *path)\n{", name);
    print_part_names(h, d);
    print_open(h, d);
    if (d->kind == DATA_IDX)
        out_text(h->o, "    const int64_t rows[] = {folder.train_rows, folder.test_rows};\n");
    out_line(h->o, "    rt_dataset_start(&d->%s, %s, from[0].rows);", name, string_c(h, d->name));
    for (int i = 0; i < d->fields.n; i++) {
        const Field *f = &d->fields.at[i];
        then(h, arena_printf(h->arena, "rt_dataset_field(&d->%s, %s, RT_KIND_%s, %lld, %s, from)",
                             name, string_c(h, f->name), kind_of(f->type->dtype),
                             (long long)field_width(h, f), field_function(h, d, f)));
    }
    for (int i = 0; i < d->fields.n; i++)
        if (field_classes(h, d, i))
            then(h, arena_printf(h->arena, "rt_dataset_check_classes(&d->%s, %d, %lld)", name, i,
                                 (long long)field_classes(h, d, i)));
    print_parts(h, d);
    out_text(h->o, d->kind == DATA_IDX ? "    rt_idx_folder_free(&folder);\n"
                                       : "    rt_source_free(from);\n");
    out_text(h->o, "    return status;\n}\n");
}

static void print_parts_comment(Host *h, const Dataset *d)
{
    out_printf(h->o, "    RtPart %s_part[%d]; /* ", host_name(h, d->name), d->splits.n);
    for (int i = 0; i < d->splits.n; i++)
        out_printf(h->o, "%s%s", i ? ", " : "", d->splits.at[i].name);
    out_text(h->o, " */\n");
}

static void print_struct(Host *h)
{
    out_text(h->o, "typedef struct Data {\n");
    for (int i = 0; i < h->program->datasets.n; i++) {
        const Dataset *d = h->program->datasets.at[i];
        if (!is_dataset_used(h, d))
            continue;
        out_line(h->o, "    RtDataset %s;", host_name(h, d->name));
        if (d->splits.n)
            print_parts_comment(h, d);
        if (uses_all_rows(h, d))
            out_line(h->o, "    RtPart %s_all;", host_name(h, d->name));
    }
    out_text(h->o, "} Data;\n\n");
}

static void print_free(Host *h)
{
    out_text(h->o, "\nstatic void data_free(Data *d)\n{\n");
    for (int i = 0; i < h->program->datasets.n; i++) {
        const Dataset *d = h->program->datasets.at[i];
        if (!is_dataset_used(h, d))
            continue;
        Str name = host_name(h, d->name);
        for (int k = 0; k < d->splits.n; k++)
            out_line(h->o, "    rt_part_free(&d->%s_part[%d]);", name, k);
        if (uses_all_rows(h, d))
            out_line(h->o, "    rt_part_free(&d->%s_all);", name);
        out_line(h->o, "    rt_dataset_free(&d->%s);", name);
    }
    out_text(h->o, "}\n");
}

void print_data(Host *h)
{
    int count = 0;
    for (int i = 0; i < h->program->datasets.n; i++)
        count += is_dataset_used(h, h->program->datasets.at[i]);
    if (!count)
        return;
    section(h, "Data");
    print_struct(h);
    for (int i = 0; i < h->program->datasets.n; i++) {
        const Dataset *d = h->program->datasets.at[i];
        if (!is_dataset_used(h, d))
            continue;
        for (int k = 0; k < d->fields.n; k++)
            print_field(h, d, &d->fields.at[k]);
        print_load(h, d);
    }
    print_free(h);
}
