/* SPDX-License-Identifier: 0BSD */
/* What surrounds the steps of a training program: the options that all programs have, the log, the
 * progress line, checkpoints, and signals. The loop itself is the program's own text.
 *
 *     status = rt_run_open(&run, &program, option, 3, argc, argv);
 *     if (!status && !run.done) {
 *         ...load data, make or resume the state...
 *         rt_run_begins(&run, "fit", "loss", epochs, steps, skipped);
 *         while (step < steps && !status && !rt_run_stopped(&run)) {
 *             rt_run_step_begins(&run, epoch);
 *             ...one step...
 *             rt_run_step_ends(&run, step, skipped, loss, scale);
 *             status = rt_run_check_skips(&run);
 *         }
 *     }
 *     return rt_run_close(&run, status);
 *
 * Messages and notes go to standard error, the help to standard output.
 */
#ifndef AMPC_RT_TRAIN_H
#define AMPC_RT_TRAIN_H
#include "rt_base.h"
#include "rt_checkpoint.h"
#include "rt_log.h"
#include "rt_options.h"
#include "rt_progress.h"
#include "rt_signal.h"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RT_RUN_OPTIONS = 96, RT_RUN_SCALERS = 16, RT_MAX_SKIPS = 50 };

typedef struct RtRun {
    const RtProgram *program;
    const char *name; /* of the program, for messages */
    bool done;        /* there is nothing to run: --help and its kin */
    /* the command line */
    int64_t seed, threads, log_every;
    const char *config, *resume, *checkpoint_dir, *weights, *export_path;
    const char *log_path, *log_format, *progress_mode;
    int eval, dry_run, force_load, help, version, print_config;
    RtOption option[RT_RUN_OPTIONS];
    RtOptions options;
    /* the world */
    RtLog log;
    RtProgress progress;
    RtProgressNow now; /* where training stands */
    RtCheckpoints checkpoints;
    bool checkpoints_ready;
    RtNote note;
    double began;                /* when the step did */
    double ms;                   /* what the last step took */
    float scale[RT_RUN_SCALERS]; /* the loss scales that it used */
    int64_t skips_in_row;
} RtRun;

/* ---- notes and errors ---- */

/* Prints what has been noted, and forgets it. */
RT_FN void rt_run_tell(RtRun *r)
{
    if (!*r->note.text)
        return;
    rt_progress_clear(&r->progress);
    fprintf(stderr, "%s: note: %s\n", r->name, r->note.text);
    *r->note.text = '\0';
}

/* ---- the command line ---- */

RT_FN void rt_run_add(RtRun *r, const char *name, RtOptionKind kind, void *value, const char *range,
                      const char *metavar, const char *fallback, const char *help)
{
    RtOption *o = &r->option[r->options.count++];
    o->name = name;
    o->kind = kind;
    o->value = value;
    o->range = range;
    o->metavar = metavar;
    o->fallback = fallback;
    o->help = help;
    o->given = 0;
}

RT_FN void rt_run_add_common(RtRun *r)
{
    const char *const modes = "auto|bar|lines|off";
    r->log_every = 1;
    r->log_format = "tsv";
    r->progress_mode = "auto";
    rt_run_add(r, "Run:", RT_OPTION_TITLE, NULL, NULL, NULL, NULL, NULL);
    rt_run_add(r, "seed", RT_OPTION_INT, &r->seed, "0..", NULL, NULL,
               "of first weights, order and draws");
    rt_run_add(r, "threads", RT_OPTION_INT, &r->threads, "0..4096", NULL, "all", "to compute with");
    rt_run_add(r, "eval", RT_OPTION_FLAG, &r->eval, NULL, NULL, NULL, "evaluate only");
    rt_run_add(r, "dry-run", RT_OPTION_FLAG, &r->dry_run, NULL, NULL, NULL,
               "one step; print what memory is taken");
    rt_run_add(r, "weights", RT_OPTION_STRING, &r->weights, NULL, "FILE", NULL,
               "start from the weights of a safetensors file");
    rt_run_add(r, "export", RT_OPTION_STRING, &r->export_path, NULL, "FILE", NULL,
               "write the weights at the end");
    rt_run_add(r, "Checkpoints:", RT_OPTION_TITLE, NULL, NULL, NULL, NULL, NULL);
    rt_run_add(r, "resume", RT_OPTION_MAYBE, &r->resume, NULL, "FILE", NULL,
               "go on from a checkpoint, by default the newest");
    rt_run_add(r, "checkpoint-dir", RT_OPTION_STRING, &r->checkpoint_dir, NULL, "DIR", NULL,
               "where to keep them");
    rt_run_add(r, "force-load", RT_OPTION_FLAG, &r->force_load, NULL, NULL, NULL,
               "take what fits from another program's");
    rt_run_add(r, "Output:", RT_OPTION_TITLE, NULL, NULL, NULL, NULL, NULL);
    rt_run_add(r, "log", RT_OPTION_STRING, &r->log_path, NULL, "FILE", NULL,
               "write a row a step; - is standard output");
    rt_run_add(r, "log-format", RT_OPTION_STRING, &r->log_format, "tsv|jsonl", NULL, "tsv", NULL);
    rt_run_add(r, "log-every", RT_OPTION_INT, &r->log_every, "1..", NULL, "1", "steps");
    rt_run_add(r, "progress", RT_OPTION_STRING, &r->progress_mode, modes, NULL, "auto", NULL);
    rt_run_add(r, "config", RT_OPTION_STRING, &r->config, NULL, "FILE", NULL,
               "read options from a file: lines `name = value`");
    rt_run_add(r, "print-config", RT_OPTION_ACTION, &r->print_config, NULL, NULL, NULL,
               "print the values in force as such a file");
    rt_run_add(r, "version", RT_OPTION_ACTION, &r->version, NULL, NULL, NULL, NULL);
    rt_run_add(r, "help", RT_OPTION_ACTION, &r->help, NULL, NULL, NULL, NULL);
}

/* Prints what was asked for instead of running. */
RT_FN void rt_run_answer(RtRun *r)
{
    r->done = r->help || r->version || r->print_config;
    if (r->help)
        rt_options_help(&r->options, stdout);
    else if (r->version)
        printf("%s, written by ampc %s at %s, %s\n", r->name, r->program->version,
               r->program->level, r->program->half);
    else if (r->print_config)
        rt_options_print(&r->options, stdout);
}

RT_FN RtProgressMode rt_run_progress_mode(const RtRun *r)
{
    return !strcmp(r->progress_mode, "bar")     ? RT_PROGRESS_BAR
           : !strcmp(r->progress_mode, "lines") ? RT_PROGRESS_LINES
           : !strcmp(r->progress_mode, "off")   ? RT_PROGRESS_OFF
                                                : RT_PROGRESS_AUTO;
}

/* Reads the command line: first the program's own options, then those of all programs. The seed
 * must be set to its default before. */
RT_FN int rt_run_open(RtRun *r, const RtProgram *program, const char *name, const char *about,
                      const RtOption *own, int count, int argc, char **argv)
{
    r->program = program;
    r->name = name;
    r->options.option = r->option;
    r->options.program = name;
    r->options.about = about;
    if (count + 24 > RT_RUN_OPTIONS)
        return rt_fail(RT_INTERNAL, "more than %d options", RT_RUN_OPTIONS - 24);
    if (count)
        rt_run_add(r, "Options:", RT_OPTION_TITLE, NULL, NULL, NULL, NULL, NULL);
    for (int i = 0; i < count; i++)
        r->option[r->options.count++] = own[i];
    rt_run_add_common(r);
    int status = rt_options_parse(&r->options, argc, argv);
    if (status)
        return status;
    rt_run_answer(r);
    rt_progress_start(&r->progress, stderr, rt_run_progress_mode(r), rt_now_ms());
    return r->done ? RT_OK : rt_signal_install();
}

/* Sets the number of threads, and returns it. */
RT_FN int rt_run_threads(const RtRun *r)
{
#ifdef _OPENMP
    if (r->threads)
        omp_set_num_threads((int)r->threads);
    return omp_get_max_threads();
#else
    (void)r;
    return 1;
#endif
}

/* ---- the log ---- */

enum { RT_COLUMN_STEP, RT_COLUMN_ENTRY, RT_COLUMN_EPOCH, RT_COLUMN_SKIPPED, RT_COLUMN_MS };

/* Opens the log if one is wanted; the first five columns are those named here. */
RT_FN int rt_run_open_log(RtRun *r, const char *const *column, int columns)
{
    RtLogFormat format = !strcmp(r->log_format, "jsonl") ? RT_LOG_JSONL : RT_LOG_TSV;
    return r->log_path ? rt_log_open(&r->log, r->log_path, format, column, columns, r->resume)
                       : RT_OK;
}

/* Is a row due for the step that ended? */
RT_FN bool rt_run_logs(const RtRun *r)
{
    const int64_t step = r->now.step;
    return r->log.file && (step % r->log_every == 0 || step == r->now.steps);
}

/* Fills the columns that rows of all entries have. */
RT_FN void rt_run_row(RtRun *r, const char *entry)
{
    rt_log_int(&r->log, RT_COLUMN_STEP, r->now.step);
    rt_log_text(&r->log, RT_COLUMN_ENTRY, entry);
    rt_log_int(&r->log, RT_COLUMN_EPOCH, r->now.epoch);
    rt_log_int(&r->log, RT_COLUMN_SKIPPED, r->now.skipped);
}

/* ---- steps ---- */

RT_FN bool rt_run_stopped(const RtRun *r)
{
    return rt_signal_stop() != 0 || (r->dry_run && r->ms > 0);
}

/* A train begins, or goes on: what the progress line shows. */
RT_FN void rt_run_begins(RtRun *r, const char *entry, const char *report, int64_t epochs,
                         int64_t steps, int64_t skipped)
{
    memset(&r->now, 0, sizeof r->now);
    r->now.entry = entry;
    r->now.report = report;
    r->now.epochs = epochs;
    r->now.steps = steps;
    r->now.skipped = skipped;
    r->ms = 0;
}

RT_FN void rt_run_step_begins(RtRun *r, int64_t epoch)
{
    r->now.epoch = epoch + 1;
    r->began = rt_now_ms();
}

/* Shows where training stands after `step` attempts. Counts, the report that is shown, and the loss
 * scale are those after the step. */
RT_FN void rt_run_step_ends(RtRun *r, int64_t step, int64_t skipped, double value, double scale)
{
    const double end = rt_now_ms();
    r->ms = end - r->began;
    r->skips_in_row = skipped > r->now.skipped ? r->skips_in_row + 1 : 0;
    r->now.ms_per_step = r->now.ms_per_step > 0 ? 0.95 * r->now.ms_per_step + 0.05 * r->ms : r->ms;
    r->now.step = step;
    r->now.skipped = skipped;
    r->now.value = value;
    r->now.scale = scale;
    rt_progress_show(&r->progress, &r->now, end);
}

/* Stops training when too many steps in a row were skipped. */
RT_FN int rt_run_check_skips(const RtRun *r)
{
    if (r->skips_in_row < RT_MAX_SKIPS)
        return RT_OK;
    return rt_fail(RT_STOPPED,
                   "%s: stopped at step %lld: %d steps in a row were skipped because gradients "
                   "were not finite; the loss scale is %.9g",
                   r->now.entry, (long long)r->now.step, RT_MAX_SKIPS, r->now.scale);
}

/* ---- checkpoints ---- */

/* Finds out where checkpoints go, and that they can be written. */
RT_FN int rt_run_checkpoints(RtRun *r, const char *pattern, int64_t keep)
{
    if (r->checkpoints_ready)
        return RT_OK;
    r->checkpoints_ready = true;
    RtNote *note = r->resume ? NULL : &r->note;
    return rt_checkpoints_start(&r->checkpoints, r->checkpoint_dir, pattern, (int)keep, note);
}

RT_FN int rt_run_save(RtRun *r, int64_t step, const RtEntry *entry, int count)
{
    int status = rt_checkpoints_save(&r->checkpoints, step, r->program, entry, count, &r->note);
    rt_run_tell(r);
    return status;
}

/* Fills the entries from the checkpoint of --resume, if there is one. */
RT_FN int rt_run_resume(RtRun *r, const RtEntry *entry, int count)
{
    RtTensors f;
    int64_t step = 0;
    int status = *r->resume ? rt_checkpoint_open(&f, r->resume)
                            : rt_checkpoints_newest(&r->checkpoints, &f, &step, &r->note);
    const bool found = !status && step >= 0;
    if (!status && !found)
        rt_note(&r->note, "there is no checkpoint yet; starting from the beginning");
    if (found) {
        status = rt_checkpoint_check(&f, r->program, r->force_load, &r->note);
        if (!status)
            status = rt_entries_read(&f, entry, count, r->force_load ? RT_LOAD_ANY : RT_LOAD_EXACT,
                                     &r->note);
        rt_tensors_close(&f);
    }
    rt_run_tell(r);
    return status;
}

/* Fills the entries, which have no prefix, from a weight file. */
RT_FN int rt_run_load_weights(RtRun *r, const char *path, const RtEntry *entry, int count)
{
    RtTensors f;
    int status = rt_tensors_open(&f, path);
    if (status)
        return status;
    status =
        rt_entries_read(&f, entry, count, r->force_load ? RT_LOAD_ANY : RT_LOAD_EXTRA, &r->note);
    rt_tensors_close(&f);
    rt_run_tell(r);
    return status;
}

/* ---- the end ---- */

/* Leaves the progress line standing. */
RT_FN void rt_run_ends(RtRun *r)
{
    if (r->now.step)
        rt_progress_end(&r->progress, &r->now, rt_now_ms());
}

/* The answer to --dry-run. */
RT_FN void rt_run_tell_memory(const RtRun *r, size_t bytes)
{
    printf("%s: one step in %.3g ms; %zu bytes of memory\n", r->name, r->ms, bytes);
}

/* Tells what went wrong, closes everything, and gives the exit code. */
RT_FN int rt_run_close(RtRun *r, int status)
{
    rt_run_tell(r);
    rt_progress_clear(&r->progress);
    if (!status)
        status = rt_log_close(&r->log);
    if (fflush(stdout) && !status && errno != EBADF) /* closed on purpose */
        status = rt_fail(RT_SYSTEM, "cannot write to standard output: %s", strerror(errno));
    if (status)
        fprintf(stderr, "%s: %s\n", r->name, rt_error_text());
    rt_log_close(&r->log);
    rt_options_free(&r->options);
    return status ? status : rt_signal_stop() ? 128 + rt_signal_stop() : 0;
}
#endif
