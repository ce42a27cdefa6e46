/* Prints the program around the steps: evaluations, training loops, checkpoints, and main.
 *
 *     static int train_fit(State *s, const Data *d, RtRun *run)      a loop over batches
 *     static int evaluate_test(…)                                    means over the rows of a part
 */
#include "codegen/host.h"
#include <string.h>

/* ---- the log ---- */

static int column(Host *h, const char *name)
{
    Str wanted = intern(h->u->names, name);
    for (int i = 0; i < h->columns.n; i++)
        if (h->columns.at[i] == wanted)
            return i;
    vec_push(h->arena, &h->columns, wanted);
    return h->columns.n - 1;
}

static void find_columns(Host *h)
{
    static const char *const common[] = {"step", "entry", "epoch", "skipped", "ms_per_step"};
    Program *p = h->program;
    for (int i = 0; i < 5; i++)
        column(h, common[i]);
    for (int i = 0; p->optimizers.n > 1 && i < p->optimizers.n; i++)
        column(h, arena_printf(h->arena, "skipped.%s", p->optimizers.at[i]->name));
    for (int i = 0; i < p->optimizers.n; i++) {
        column(h, arena_printf(h->arena, "lr.%s", p->optimizers.at[i]->name));
        if (has_norm(h, p->optimizers.at[i]))
            column(h, arena_printf(h->arena, "grad_norm.%s", p->optimizers.at[i]->name));
    }
    for (int i = 0; i < p->scalers.n; i++)
        if (is_scaler_used(h, p->scalers.at[i]))
            column(h, arena_printf(h->arena, "scale.%s", p->scalers.at[i]->name));
    for (int i = 0; i < p->entries.n; i++)
        for (int k = 0; k < p->entries.at[i]->reports.n; k++)
            column(h, p->entries.at[i]->reports.at[k]);
}

static void print_columns(Host *h)
{
    out_text(h->o, "/* The columns of the log. */\nstatic const char *const columns[] = {");
    for (int i = 0; i < h->columns.n; i++)
        out_printf(h->o, "%s%s", i ? ", " : "", string_c(h, h->columns.at[i]));
    out_text(h->o, "};\n\n");
}

static void log_real(Host *h, const char *name, const char *value)
{
    out_line(h->o, "    rt_log_real(&run->log, %d, %s);", column(h, name), value);
}

static void log_reports(Host *h, const Entry *e)
{
    for (int i = 0; i < e->reports.n; i++)
        log_real(h, e->reports.at[i],
                 arena_printf(h->arena, "(double)s->%s.%s", member(h, e, e->name),
                              report_name(h, e->reports.at[i])));
}

static void print_log(Host *h, const Entry *e)
{
    out_line(h->o, "static int log_%s(const State *s, RtRun *run)\n{", host_name(h, e->name));
    out_line(h->o, "    rt_run_row(run, %s);", string_c(h, e->name));
    out_text(h->o, "    rt_log_real(&run->log, RT_COLUMN_MS, run->ms);\n");
    for (int i = 0; i < e->optimizers.n; i++) {
        const Optimizer *o = e->optimizers.at[i];
        Str m = member(h, o, o->name);
        if (h->program->optimizers.n > 1)
            out_line(h->o, "    rt_log_int(&run->log, %d, s->%s.step - s->%s.step);",
                     column(h, arena_printf(h->arena, "skipped.%s", o->name)),
                     member(h, e, e->name), m);
        log_real(h, arena_printf(h->arena, "lr.%s", o->name),
                 arena_printf(h->arena, "s->%s.lr", m));
        if (has_norm(h, o))
            log_real(h, arena_printf(h->arena, "grad_norm.%s", o->name),
                     arena_printf(h->arena, "s->%s.grad_norm", m));
    }
    for (int i = 0; i < h->program->scalers.n; i++) {
        const Scaler *x = h->program->scalers.at[i];
        if (is_scaler_used(h, x))
            log_real(h, arena_printf(h->arena, "scale.%s", x->name),
                     arena_printf(h->arena, "(double)run->scale[%d]", i));
    }
    log_reports(h, e);
    out_text(h->o, "    return rt_log_row(&run->log);\n}\n\n");
}

/* ---- calls of a step on a batch ---- */

static void print_step_call(Host *h, const Entry *e, int depth)
{
    Out o;
    out_init(&o, h->arena);
    out_printf(&o, "%s_step(s, N", host_name(h, e->name));
    for (int i = 0; i < e->inputs.n; i++)
        out_printf(&o, ", (const %s *)rt_batches_field(&batches, %d)",
                   c_type(h, input_dtype(&e->inputs.at[i])), e->inputs.at[i].field);
    out_line(h->o, "%*s%s);", 4 * depth, "", o.text);
}

/* ---- evaluations ---- */

static void print_evaluation(Host *h, const Entry *e)
{
    Str m = member(h, e, e->name), name = host_name(h, e->name), part = part_name(h, e);
    source_comment(h, e->span);
    out_line(h->o, "static int evaluate_%s(State *s, const Data *d, RtRun *run)\n{", name);
    for (int i = 0; i < e->reports.n; i++)
        out_line(h->o, "    double %s = 0; /* the sum over rows */",
                 host_name(h, e->reports.at[i]));
    out_text(h->o, "    RtBatches batches;\n");
    out_line(h->o, "    int status = rt_batches_open(&batches, &%s, %lld, 0, 0);", part,
             (long long)e->batch);
    out_text(h->o, "    while (!status && batches.epoch == 0) {\n        int64_t N;\n"
                   "        if ((status = rt_batches_next(&batches, &N)))\n"
                   "            break;\n");
    print_step_call(h, e, 2);
    for (int i = 0; i < e->reports.n; i++) {
        Str r = e->reports.at[i];
        out_line(h->o, "        %s += (double)N * (double)s->%s.%s;", host_name(h, r), m,
                 report_name(h, r));
    }
    out_text(h->o, "    }\n    rt_batches_close(&batches);\n"
                   "    if (status)\n        return status;\n");
    for (int i = 0; i < e->reports.n; i++) {
        Str r = e->reports.at[i];
        out_line(h->o, "    s->%s.%s = (float)(%s / (double)%s.rows);", m, report_name(h, r),
                 host_name(h, r), part);
    }
    out_line(h->o, "    rt_run_row(run, %s);", string_c(h, e->name));
    log_reports(h, e);
    out_text(h->o, "    return rt_log_row(&run->log);\n}\n\n");
}

static int runs(const Host *h, const Entry *e, EntryKind kind)
{
    return e->kind == kind && is_emitted(h, e);
}

static int count_runs(const Host *h, EntryKind kind)
{
    int count = 0;
    for (int i = 0; i < h->program->entries.n; i++)
        count += runs(h, h->program->entries.at[i], kind);
    return count;
}

/* The function that runs all evaluations. */
static const char *evaluate_c(Host *h)
{
    for (int i = 0; i < h->program->entries.n && count_runs(h, ENTRY_EVAL) == 1; i++)
        if (runs(h, h->program->entries.at[i], ENTRY_EVAL))
            return arena_printf(h->arena, "evaluate_%s",
                                host_name(h, h->program->entries.at[i]->name));
    return "evaluate";
}

static void print_evaluate_all(Host *h)
{
    int first = 1;
    if (count_runs(h, ENTRY_EVAL) < 2)
        return;
    out_text(h->o, "static int evaluate(State *s, const Data *d, RtRun *run)\n{\n");
    for (int i = 0; i < h->program->entries.n; i++) {
        const Entry *e = h->program->entries.at[i];
        if (!runs(h, e, ENTRY_EVAL))
            continue;
        if (first)
            out_line(h->o, "    int status = evaluate_%s(s, d, run);", host_name(h, e->name));
        else
            out_line(h->o, "    if (!status)\n        status = evaluate_%s(s, d, run);",
                     host_name(h, e->name));
        first = 0;
    }
    out_text(h->o, "    return status;\n}\n\n");
}

/* ---- checkpoints ---- */

static const Entry *checkpointed(const Host *h)
{
    for (int i = 0; i < h->program->entries.n; i++)
        if (h->program->entries.at[i]->checkpoint)
            return h->program->entries.at[i];
    return NULL;
}

static void print_open_checkpoints(Host *h)
{
    const Entry *e = checkpointed(h);
    const char *pattern = e ? e->checkpoint : arena_printf(h->arena, "%s.ckpt", program_stem(h));
    out_line(h->o,
             "/* Finds out where checkpoints go, and that they can be written. */\n"
             "static int open_checkpoints(RtRun *run)\n{\n"
             "    return rt_run_checkpoints(run, %s, %s);\n}\n",
             string_c(h, pattern), e && e->checkpoint_keep ? int_c(h, e->checkpoint_keep) : "0");
}

/* "s->fit.step": what numbers a checkpoint. */
static const char *steps_taken_c(Host *h)
{
    Out o;
    out_init(&o, h->arena);
    for (int i = 0; i < h->program->entries.n; i++) {
        const Entry *e = h->program->entries.at[i];
        if (runs(h, e, ENTRY_TRAIN))
            out_printf(&o, "%ss->%s.step", o.size ? " + " : "", member(h, e, e->name));
    }
    return o.text;
}

static void print_save(Host *h)
{
    out_text(h->o, "static int save_checkpoint(State *s, RtRun *run)\n{\n"
                   "    RtTable table = {NULL, 0, 0, 0};\n"
                   "    state_table(s, &table);\n"
                   "    int status = rt_table_status(&table);\n");
    out_text(h->o, "    if (!status)\n        status = open_checkpoints(run);\n");
    out_line(h->o,
             "    if (!status)\n        status = rt_run_save(run, %s, table.entry, table.count);",
             steps_taken_c(h));
    out_text(h->o, "    rt_table_free(&table);\n    return status;\n}\n\n");
}

/* Counts of skipped steps are not in a checkpoint: they are attempted steps less updates. */
static void print_skipped(Host *h)
{
    for (int i = 0; i < h->program->entries.n; i++) {
        const Entry *e = h->program->entries.at[i];
        if (!runs(h, e, ENTRY_TRAIN))
            continue;
        Str train = member(h, e, e->name);
        int before = 0;
        for (int k = 0; k < e->optimizers.n; k++) {
            if (!is_checked(h, e->optimizers.at[k]))
                continue;
            const char *count =
                arena_printf(h->arena, "s->%s.step - s->%s.step", train,
                             member(h, e->optimizers.at[k], e->optimizers.at[k]->name));
            if (before++)
                out_line(h->o, "    if (%s > s->%s.skipped)\n    ", count, train);
            out_line(h->o, "    s->%s.skipped = %s;", train, count);
        }
    }
}

static void print_resume(Host *h)
{
    out_text(h->o, "/* Goes on from a checkpoint, if there is one. */\n"
                   "static int resume(State *s, RtRun *run)\n{\n"
                   "    RtTable table = {NULL, 0, 0, 0};\n"
                   "    state_table(s, &table);\n"
                   "    int status = rt_table_status(&table);\n");
    out_text(h->o, "    if (!status)\n        status = open_checkpoints(run);\n");
    out_text(h->o, "    if (!status)\n"
                   "        status = rt_run_resume(run, table.entry, table.count);\n");
    if (has_copies(h))
        out_text(h->o, "    state_round(s);\n");
    print_skipped(h);
    out_text(h->o, "    rt_table_free(&table);\n    return status;\n}\n\n");
}

/* ---- weight files ---- */

static void print_weight_files(Host *h)
{
    out_text(h->o, "/* Takes the weights of an instance from a file. */\n"
                   "static int load_weights(State *s, RtRun *run, const char *instance, const char "
                   "*path)\n{\n"
                   "    RtTable table = {NULL, 0, 0, 0};\n"
                   "    weight_table(s, &table, instance);\n"
                   "    int status = rt_table_status(&table);\n"
                   "    if (!status)\n"
                   "        status = rt_run_load_weights(run, path, table.entry, table.count);\n");
    if (has_copies(h))
        out_text(h->o, "    state_round(s);\n");
    out_text(h->o, "    rt_table_free(&table);\n    return status;\n}\n\n");
    out_text(h->o,
             "static int export_weights(State *s, const char *instance, const char *path)\n{\n"
             "    RtTable table = {NULL, 0, 0, 0};\n"
             "    weight_table(s, &table, instance);\n"
             "    int status = rt_table_status(&table);\n"
             "    if (!status)\n"
             "        status = rt_table_export(&table, path);\n"
             "    rt_table_free(&table);\n    return status;\n}\n\n");
}

/* ---- training ---- */

static const char *planned_steps_c(Host *h, const Entry *e)
{
    if (e->steps)
        return int_c(h, e->steps);
    const char *epochs = e->epochs ? int_c(h, e->epochs) : "1";
    int plain = !e->epochs || e->epochs->kind != S_BINARY;
    return arena_printf(h->arena, plain ? "batches.steps * %s" : "batches.steps * (%s)", epochs);
}

static const char *scale_c(Host *h, const Entry *e)
{
    const EntryPlan *plan = plan_of(h, e);
    for (int i = 0; i < plan->launches.n; i++) {
        const Launch *l = plan->launches.at[i];
        const Scaler *x =
            l->kind == LAUNCH_UPDATE ? program_scaler(h->program, l->update->attrs->at[1].s) : NULL;
        if (x && x->dynamic)
            return arena_printf(h->arena, "(double)s->%s.scale", scaler_member(h, x));
    }
    return "0";
}

static void print_checkpoint_due(Host *h, const Entry *e)
{
    Str m = member(h, e, e->name);
    if (!e->checkpoint) {
        out_text(h->o, "        if (!status && rt_signal_take_save())\n");
    } else if (e->checkpoint_in_epochs) {
        out_line(h->o, "        const bool due = epoch_ends && s->%s.epoch %% %s == 0;", m,
                 int_c(h, e->checkpoint_every));
        out_text(h->o, "        if (!status && (due || rt_signal_take_save()))\n");
    } else {
        out_line(h->o, "        const bool due = s->%s.step %% %s == 0;", m,
                 int_c(h, e->checkpoint_every));
        out_text(h->o, "        if (!status && (due || rt_signal_take_save()))\n");
    }
    out_text(h->o, "            status = save_checkpoint(s, run);\n");
}

static void remember_scales(Host *h)
{
    for (int i = 0; i < h->program->scalers.n; i++)
        if (is_scaler_used(h, h->program->scalers.at[i]))
            out_line(h->o, "        run->scale[%d] = s->%s.scale;", i,
                     scaler_member(h, h->program->scalers.at[i]));
}

/* Is there an update that may be skipped? */
static int can_skip(const Host *h, const Entry *e)
{
    for (int i = 0; i < e->optimizers.n; i++)
        if (is_checked(h, e->optimizers.at[i]))
            return 1;
    return 0;
}

static void print_train(Host *h, const Entry *e)
{
    Str m = member(h, e, e->name), name = host_name(h, e->name);
    const char *shown = e->reports.n ? e->reports.at[0] : NULL;
    int evals = count_runs(h, ENTRY_EVAL);
    source_comment(h, e->span);
    out_line(h->o,
             "static int train_%s(State *s, const Data *d, RtRun *run)\n{\n"
             "    RtBatches batches;",
             name);
    out_line(h->o, "    int status = rt_batches_open(&batches, &%s, %lld, %s%s%s, s->seed);",
             part_name(h, e), (long long)e->batch, e->shuffle ? "RT_SHUFFLE" : "",
             e->shuffle && e->drop_last ? " | " : "",
             e->drop_last ? "RT_DROP_LAST"
             : e->shuffle ? ""
                          : "0");
    out_line(
        h->o,
        "    if (!status)\n        status = rt_batches_seek(&batches, s->%s.epoch, s->%s.row);", m,
        m);
    out_line(h->o, "    s->%s.steps = %s;", m, planned_steps_c(h, e));
    out_line(h->o, "    rt_run_begins(run, %s, %s, %s, s->%s.steps, s->%s.skipped);",
             string_c(h, e->name), shown ? string_c(h, shown) : "NULL",
             e->epochs && !e->steps ? int_c(h, e->epochs) : "0", m, m);
    out_line(h->o, "    while (!status && s->%s.step < s->%s.steps && !rt_run_stopped(run)) {", m,
             m);
    out_text(h->o, "        int64_t N;\n");
    out_line(h->o, "        rt_run_step_begins(run, s->%s.epoch);", m);
    remember_scales(h);
    out_text(h->o, "        if ((status = rt_batches_next(&batches, &N)))\n            break;\n");
    print_step_call(h, e, 2);
    if (evals || e->checkpoint_in_epochs)
        out_line(h->o, "        const bool epoch_ends = batches.epoch > s->%s.epoch;", m);
    out_line(h->o, "        s->%s.epoch = batches.epoch;\n        s->%s.row = batches.row;", m, m);
    const char *value =
        shown ? arena_printf(h->arena, "(double)s->%s.%s", m, report_name(h, shown)) : "0";
    out_line(h->o, "        rt_run_step_ends(run, s->%s.step, s->%s.skipped, %s, %s);", m, m, value,
             scale_c(h, e));
    out_line(h->o, "        if (rt_run_logs(run))\n            status = log_%s(s, run);", name);
    if (can_skip(h, e))
        out_text(h->o, "        if (!status)\n            status = rt_run_check_skips(run);\n");
    if (evals)
        out_line(h->o,
                 "        if (!status && epoch_ends && s->%s.step < s->%s.steps)\n"
                 "            status = %s(s, d, run);",
                 m, m, evaluate_c(h));
    print_checkpoint_due(h, e);
    out_text(h->o, "    }\n    rt_batches_close(&batches);\n    return status;\n}\n\n");
}

/* ---- main ---- */

static const char *range_c(Host *h, const Option *x)
{
    Out o;
    out_init(&o, h->arena);
    if (x->set_count) {
        for (int i = 0; i < x->set_count; i++)
            out_printf(&o, "%s%s", i ? "|" : "",
                       x->set[i]->kind == S_STRING ? x->set[i]->s : scalar_c(h, x->set[i]));
    } else if (x->low || x->high) {
        out_printf(&o, "%s..%s", x->low ? scalar_c(h, x->low) : "",
                   x->high ? scalar_c(h, x->high) : "");
    } else {
        return "NULL";
    }
    return string_c(h, intern(h->u->names, o.text));
}

static void print_option_row(Host *h, const Option *x)
{
    static const char *const kinds[] = {"INT", "REAL", "BOOL", "STRING"};
    const char *fallback = x->kind == OPTION_BOOL     ? x->value->i ? "true" : "false"
                           : x->kind == OPTION_STRING ? x->value->s
                                                      : scalar_c(h, x->value);
    out_line(h->o, "        {%s, RT_OPTION_%s, &s->option.%s, %s, NULL, %s, %s, 0},",
             string_c(h, x->name), kinds[x->kind], option_name(h, x->name), range_c(h, x),
             string_c(h, fallback), x->doc ? string_c(h, x->doc) : "NULL");
}

static void print_open(Host *h)
{
    Program *p = h->program;
    for (int i = 0; i < p->options.n; i++)
        out_line(h->o, "    s->option.%s = %s;", option_name(h, p->options.at[i]->name),
                 scalar_c(h, p->options.at[i]->value));
    const Entry *e = first_train(h);
    if (e && e->seed)
        out_line(h->o, "    run.seed = %s;", int_c(h, e->seed));
    if (p->options.n) {
        out_text(h->o, "    const RtOption option[] = {\n");
        for (int i = 0; i < p->options.n; i++)
            print_option_row(h, p->options.at[i]);
        out_text(h->o, "    };\n");
    }
    const char *name = string_c(h, program_stem(h));
    out_line(h->o, "    int status = rt_run_open(&run, &this_program, %s, %s, %s, %d, argc, argv);",
             name, e && e->doc ? string_c(h, e->doc) : "NULL", p->options.n ? "option" : "NULL",
             p->options.n);
    out_text(h->o, "    if (status || run.done)\n"
                   "        return rt_run_close(&run, status);\n");
}

static void then(Host *h, const char *call)
{
    out_line(h->o, "    if (!status)\n        status = %s;", call);
}

static const char *first_instance(const Host *h)
{
    return h->program->instances.n ? h->program->instances.at[0]->name : "";
}

static void print_start(Host *h)
{
    Program *p = h->program;
    out_text(h->o, "\n    s->seed = this_program.seed = (uint64_t)run.seed;\n"
                   "    s->threads = rt_run_threads(&run);\n");
    if (p->props.strict)
        out_text(h->o, "    status = rt_check_rounding();\n");
    for (int i = 0; i < p->datasets.n; i++) {
        const Dataset *d = p->datasets.at[i];
        if (is_dataset_used(h, d))
            then(h, arena_printf(h->arena, "load_%s(&data, %s)", host_name(h, d->name),
                                 scalar_c(h, d->path)));
    }
    then(h, "state_create(s)");
    for (int i = 0; i < p->instances.n; i++)
        if (p->instances.at[i]->weights)
            then(h, arena_printf(h->arena, "load_weights(s, &run, %s, %s)",
                                 string_c(h, p->instances.at[i]->name),
                                 string_c(h, p->instances.at[i]->weights)));
    out_line(h->o,
             "    if (!status && run.weights)\n"
             "        status = load_weights(s, &run, %s, run.weights);",
             string_c(h, first_instance(h)));
    if (count_runs(h, ENTRY_TRAIN)) {
        if (checkpointed(h))
            out_text(h->o, "    if (!status && !run.eval)\n"
                           "        status = open_checkpoints(&run);\n");
        out_text(h->o, "    if (!status && run.resume)\n        status = resume(s, &run);\n");
    }
    then(h, arena_printf(h->arena, "rt_run_open_log(&run, columns, %d)", h->columns.n));
}

static void print_results(Host *h)
{
    for (int i = 0; i < h->program->entries.n; i++) {
        const Entry *e = h->program->entries.at[i];
        if (!runs(h, e, ENTRY_EVAL) || !e->reports.n)
            continue;
        Out format, values;
        out_init(&format, h->arena);
        out_init(&values, h->arena);
        for (int k = 0; k < e->reports.n; k++) {
            out_printf(&format, "  %s %%.6g", e->reports.at[k]);
            out_printf(&values, ", (double)s->%s.%s", member(h, e, e->name),
                       report_name(h, e->reports.at[k]));
        }
        out_line(h->o, "        printf(\"%s:%s\\n\"%s);", e->name, format.text, values.text);
    }
}

static void print_work(Host *h)
{
    int trains = count_runs(h, ENTRY_TRAIN), evals = count_runs(h, ENTRY_EVAL);
    for (int i = 0; i < h->program->entries.n; i++) {
        const Entry *e = h->program->entries.at[i];
        if (runs(h, e, ENTRY_TRAIN))
            out_line(h->o,
                     "    if (!status && !run.eval && !rt_run_stopped(&run))\n"
                     "        status = train_%s(s, &data, &run);",
                     host_name(h, e->name));
    }
    if (trains)
        out_text(h->o, "    if (!status && rt_signal_stop())\n"
                       "        status = save_checkpoint(s, &run);\n");
    if (evals) {
        out_line(h->o,
                 "    if (!status && !rt_run_stopped(&run))\n"
                 "        status = %s(s, &data, &run);",
                 evaluate_c(h));
        out_text(h->o, "    rt_run_ends(&run);\n"
                       "    if (!status && !rt_run_stopped(&run)) {\n");
        print_results(h);
        out_text(h->o, "    }\n");
    }
    out_text(h->o, "    if (!status && run.dry_run)\n"
                   "        rt_run_tell_memory(&run, s->block.bytes);\n");
    out_line(h->o,
             "    if (!status && run.export_path)\n"
             "        status = export_weights(s, %s, run.export_path);",
             string_c(h, first_instance(h)));
    out_text(h->o, "    state_destroy(s);\n");
    for (int i = 0; i < h->program->datasets.n; i++)
        if (is_dataset_used(h, h->program->datasets.at[i])) {
            out_text(h->o, "    data_free(&data);\n");
            break;
        }
    out_text(h->o, "    return rt_run_close(&run, status);\n}\n");
}

void print_identity(Host *h)
{
    const Properties *props = &h->program->props;
    out_line(h->o,
             "/* Written into checkpoints, and compared when they are read. */\n"
             "static RtProgram this_program = {\"%s\", \"O%d\", \"%s\", \"%s\", \"%016llx\", 0};\n",
             AMPC_VERSION, props->level, dtype_info[props->half].name,
             props->torch_policy ? "torch" : "apex", (unsigned long long)h->program->graph_hash);
}

void print_main(Host *h)
{
    Program *p = h->program;
    find_columns(h);
    section(h, "Training");
    print_identity(h);
    print_columns(h);
    print_weight_files(h);
    if (count_runs(h, ENTRY_TRAIN)) {
        print_open_checkpoints(h);
        print_save(h);
        print_resume(h);
    }
    for (int i = 0; i < p->entries.n; i++)
        if (runs(h, p->entries.at[i], ENTRY_EVAL))
            print_evaluation(h, p->entries.at[i]);
    print_evaluate_all(h);
    for (int i = 0; i < p->entries.n; i++)
        if (runs(h, p->entries.at[i], ENTRY_TRAIN)) {
            print_log(h, p->entries.at[i]);
            print_train(h, p->entries.at[i]);
        }
    section(h, "Main");
    out_text(h->o, "int main(int argc, char **argv)\n{\n"
                   "    static State state;\n"
                   "    static Data data;\n"
                   "    static RtRun run;\n"
                   "    State *s = &state;\n");
    print_open(h);
    print_start(h);
    print_work(h);
}
