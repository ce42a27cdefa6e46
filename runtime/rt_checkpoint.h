/* SPDX-License-Identifier: 0BSD */
/* Checkpoints: everything a training needs to go on bit for bit, as a safetensors file whose
 * metadata say which program wrote it. Each gets a name of its own, appears complete or not at
 * all, and older ones go only when the new one is on the disk, so that a kill or a power cut at
 * any moment leaves one that loads.
 *
 *     RtCheckpoints c;      digits-000000720.ckpt, digits-000001440.ckpt, ...; the last two stay
 *     status = rt_checkpoints_start(&c, NULL, "digits.ckpt", 2, &note);
 *     status = rt_checkpoints_save(&c, 1440, &program, entry, entries, &note);
 *
 *     RtTensors f;          the newest that is whole, or an older one and a note that says why
 *     status = rt_checkpoints_newest(&c, &f, &step, &note);
 *     if (!status && step >= 0) status = rt_checkpoint_check(&f, &program, force, &note);
 *     if (!status && step >= 0) status = rt_entries_read(&f, entry, entries, RT_LOAD_EXACT, &note);
 *     rt_tensors_close(&f);
 */
#ifndef AMPC_RT_CHECKPOINT_H
#define AMPC_RT_CHECKPOINT_H
#include "rt_base.h"
#include "rt_safetensors.h"
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RT_CHECKPOINT_PATH = 1024 };

/* Which program a checkpoint belongs to. */
typedef struct RtProgram {
    const char *version; /* of the compiler */
    const char *level;   /* "O0" to "O3" */
    const char *half;    /* "f16" or "bf16" */
    const char *policy;
    const char *graph; /* hash of the network and the training, without the precision */
    uint64_t seed;
} RtProgram;

typedef struct RtCheckpoints {
    char directory[RT_CHECKPOINT_PATH];
    char stem[256];                /* "digits" */
    char suffix[256];              /* ".ckpt" */
    char path[RT_CHECKPOINT_PATH]; /* of the last file that was saved or found */
    int keep;                      /* 0: all */
} RtCheckpoints;

/* What a user should know although nothing failed; lines. */
typedef struct RtNote {
    char text[2048];
} RtNote;

typedef enum RtLoad {
    RT_LOAD_EXACT, /* the file holds the entries and nothing else: a checkpoint */
    RT_LOAD_EXTRA, /* it may hold more, which is noted: a weight file */
    RT_LOAD_ANY    /* whatever fits is taken, the rest is noted: --force-load */
} RtLoad;

/* Adds a line; the first part of what does not fit stays. NULL is nobody to tell. */
#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
RT_COLD void
rt_note(RtNote *note, const char *format, ...)
{
    if (!note)
        return;
    size_t used = strlen(note->text), room = sizeof note->text - used;
    va_list arguments;
    va_start(arguments, format);
    if (used && room > 1) {
        note->text[used++] = '\n';
        room--;
    }
    vsnprintf(note->text + used, room, format, arguments);
    va_end(arguments);
}

/* ---- names ---- */

/* The path of the checkpoint after so many attempted steps, in c->path. */
RT_COLD int rt_checkpoints_path(RtCheckpoints *c, int64_t step)
{
    int length = snprintf(c->path, sizeof c->path, "%s/%s-%09lld%s", c->directory, c->stem,
                          (long long)step, c->suffix);
    return length < (int)sizeof c->path
               ? RT_OK
               : rt_fail(RT_USAGE, "the path of checkpoint '%s%s' is too long", c->stem, c->suffix);
}

/* The step in a file name, or -1; *rest is what follows the name of a checkpoint. */
RT_COLD int64_t rt_checkpoints_step(const RtCheckpoints *c, const char *name, const char **rest)
{
    size_t stem = strlen(c->stem), digits = 0, suffix = strlen(c->suffix);
    int64_t step = 0;
    if (strncmp(name, c->stem, stem) || name[stem] != '-')
        return -1;
    for (name += stem + 1; name[digits] >= '0' && name[digits] <= '9' && digits < 19; digits++)
        step = digits < 18 ? step * 10 + (name[digits] - '0') : step;
    if (digits < 9 || digits > 18 || (digits > 9 && name[0] == '0') ||
        strncmp(name + digits, c->suffix, suffix))
        return -1;
    *rest = name + digits + suffix;
    return step;
}

RT_COLD int rt_checkpoints_compare(const void *a, const void *b)
{
    int64_t s = *(const int64_t *)a, t = *(const int64_t *)b;
    return s < t ? 1 : s > t ? -1 : 0;
}

/* The steps of all checkpoints in the directory, newest first; the caller frees them. */
RT_COLD int rt_checkpoints_list(const RtCheckpoints *c, int64_t **step, int *count)
{
    DIR *directory = opendir(c->directory);
    const struct dirent *entry;
    int status = RT_OK;
    *step = NULL;
    *count = 0;
    if (!directory)
        return rt_fail(RT_SYSTEM, "cannot read %s: %s", c->directory, strerror(errno));
    while (!status && (entry = readdir(directory))) {
        const char *rest;
        int64_t found = rt_checkpoints_step(c, entry->d_name, &rest);
        if (found < 0 || *rest)
            continue;
        void *grown = rt_tensors_grow(*step, *count, sizeof **step);
        if (!grown) {
            status = rt_fail(RT_SYSTEM, "out of memory");
            break;
        }
        *step = (int64_t *)grown;
        (*step)[(*count)++] = found;
    }
    closedir(directory);
    if (status) {
        free(*step);
        *step = NULL;
        *count = 0;
    }
    if (*count)
        qsort(*step, (size_t)*count, sizeof **step, rt_checkpoints_compare);
    return status;
}

/* Removes what killed processes left half written. */
RT_COLD void rt_checkpoints_sweep(const RtCheckpoints *c)
{
    DIR *directory = opendir(c->directory);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory))) {
        const char *rest;
        char path[RT_CHECKPOINT_PATH + 256], *end;
        if (rt_checkpoints_step(c, entry->d_name, &rest) < 0 || strncmp(rest, ".tmp-", 5))
            continue;
        long process = strtol(rest + 5, &end, 10);
        if (process <= 0 || *end || !kill((pid_t)process, 0) || errno != ESRCH)
            continue;
        snprintf(path, sizeof path, "%s/%s", c->directory, entry->d_name);
        unlink(path);
    }
    if (directory)
        closedir(directory);
}

/* ---- saving ---- */

/* Finds out now, not after an hour of training, whether a checkpoint can be written. */
RT_COLD int rt_checkpoints_try(RtCheckpoints *c)
{
    static const char block[4096] = {0};
    RtWriter w;
    int status = rt_checkpoints_path(c, 0);
    if (status || (status = rt_writer_open(&w, c->path)))
        return status;
    status = rt_writer_add(&w, block, sizeof block);
    if (!status && fsync(w.fd))
        status = rt_writer_fail(&w);
    rt_writer_close(&w, status ? status : RT_STOPPED); /* a status: the file is not wanted */
    return status;
}

/* Splits "out/digits.ckpt" into directory, stem and suffix. */
RT_COLD int rt_checkpoints_split(RtCheckpoints *c, const char *directory, const char *pattern)
{
    const char *slash = strrchr(pattern, '/'), *name = slash ? slash + 1 : pattern;
    const char *dot = strrchr(name, '.');
    size_t stem = dot && dot != name ? (size_t)(dot - name) : strlen(name);
    int length;
    if (directory)
        length = snprintf(c->directory, sizeof c->directory, "%s", *directory ? directory : ".");
    else if (slash)
        length = snprintf(c->directory, sizeof c->directory, "%.*s",
                          slash == pattern ? 1 : (int)(slash - pattern), pattern);
    else
        length = snprintf(c->directory, sizeof c->directory, ".");
    if (!*name || stem >= sizeof c->stem || strlen(name + stem) >= sizeof c->suffix ||
        length >= (int)sizeof c->directory)
        return rt_fail(RT_USAGE, "'%s' cannot name a checkpoint", pattern);
    memcpy(c->stem, name, stem);
    c->stem[stem] = '\0';
    strcpy(c->suffix, name + stem);
    return RT_OK;
}

/* Prepares to keep the last `keep` checkpoints (0: all) called after the pattern, in the directory
 * (NULL: the pattern's), which is made if it is missing. */
RT_COLD int rt_checkpoints_start(RtCheckpoints *c, const char *directory, const char *pattern,
                                 int keep, RtNote *note)
{
    int64_t *step;
    int count;
    memset(c, 0, sizeof *c);
    c->keep = keep;
    int status = rt_checkpoints_split(c, directory, pattern);
    if (status)
        return status;
    if (mkdir(c->directory, 0777) && errno != EEXIST)
        return rt_fail(RT_SYSTEM, "cannot make the directory %s: %s", c->directory,
                       strerror(errno));
    rt_checkpoints_sweep(c);
    if ((status = rt_checkpoints_try(c)) || (status = rt_checkpoints_list(c, &step, &count)))
        return status;
    if (count)
        rt_note(note, "%s holds a checkpoint of step %lld", c->directory, (long long)step[0]);
    free(step);
    return RT_OK;
}

/* Deletes what is older than `step` and not among the last ones. Later steps, of another run, are
 * left alone: only the user knows whether they are wanted. */
RT_COLD int rt_checkpoints_prune(const RtCheckpoints *c, int64_t newest, RtNote *note)
{
    int64_t *step;
    int count, kept = 0;
    RtCheckpoints old = *c;
    int status = rt_checkpoints_list(c, &step, &count);
    for (int k = 0; !status && k < count; k++) {
        if (step[k] > newest || kept++ < c->keep || rt_checkpoints_path(&old, step[k]))
            continue;
        if (unlink(old.path) && errno != ENOENT)
            rt_note(note, "cannot delete the old checkpoint %s: %s", old.path, strerror(errno));
    }
    free(step);
    return status;
}

/* Writes the entries as a checkpoint of this program. */
RT_COLD int rt_checkpoint_write(const char *path, const RtProgram *program, const RtEntry *entry,
                                int entries)
{
    char seed[24];
    const RtPair pair[] = {{"format", "ampc-checkpoint"},
                           {"ampc.format", "1"},
                           {"ampc.version", program->version},
                           {"ampc.level", program->level},
                           {"ampc.half", program->half},
                           {"ampc.policy", program->policy},
                           {"ampc.seed", seed},
                           {"ampc.graph", program->graph},
                           {"ampc.data", "0000000000000000"}};
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)program->seed);
    return rt_entries_write(path, entry, entries, pair, (int)(sizeof pair / sizeof *pair), true);
}

/* Saves the entries as the checkpoint of this attempted step. */
RT_COLD int rt_checkpoints_save(RtCheckpoints *c, int64_t step, const RtProgram *program,
                                const RtEntry *entry, int entries, RtNote *note)
{
    int status = rt_checkpoints_path(c, step);
    if (!status)
        status = rt_checkpoint_write(c->path, program, entry, entries);
    return status || !c->keep ? status : rt_checkpoints_prune(c, step, note);
}

/* ---- loading ---- */

/* Opens a checkpoint and verifies that its data are those that were written. */
RT_COLD int rt_checkpoint_open(RtTensors *f, const char *path)
{
    char digits[17];
    int status = rt_tensors_open(f, path);
    if (status)
        return status;
    const char *format = rt_tensors_metadatum(f, "format");
    const char *number = rt_tensors_metadatum(f, "ampc.format");
    const char *data = rt_tensors_metadatum(f, "ampc.data");
    snprintf(digits, sizeof digits, "%016llx",
             (unsigned long long)rt_hash64(f->data, (size_t)f->data_bytes, 0));
    if (!format || strcmp(format, "ampc-checkpoint") || !number)
        status = rt_fail(RT_BAD_DATA, "%s: not a checkpoint of an ampc program", path);
    else if (strcmp(number, "1"))
        status =
            rt_fail(RT_BAD_DATA, "%s: checkpoint format %s, this program reads 1", path, number);
    else if (!data || strcmp(data, digits))
        status = rt_fail(RT_BAD_DATA, "%s: damaged: the hash of the data is %s, recorded is %s",
                         path, digits, data ? data : "none");
    if (status)
        rt_tensors_close(f);
    return status;
}

/* Opens the newest checkpoint that verifies; *step is -1 when there is none at all. What had to be
 * passed over is noted. Its path stays in c. */
RT_COLD int rt_checkpoints_newest(RtCheckpoints *c, RtTensors *f, int64_t *step, RtNote *note)
{
    int64_t *all;
    int count;
    int status = rt_checkpoints_list(c, &all, &count), why = RT_OK;
    *step = -1;
    memset(f, 0, sizeof *f);
    for (int k = 0; !status && k < count; k++) {
        if ((status = rt_checkpoints_path(c, all[k])))
            break;
        if (!(why = rt_checkpoint_open(f, c->path))) {
            *step = all[k];
            break;
        }
        rt_note(note, "%s; trying the one before", rt_error_text());
    }
    free(all);
    if (!status && count && *step < 0)
        status = rt_fail(why, "no checkpoint in %s can be used; the last: %s", c->directory,
                         rt_error_text());
    return status;
}

RT_COLD const char *rt_checkpoint_word(const RtTensors *f, const char *key)
{
    const char *word = rt_tensors_metadatum(f, key);
    return word ? word : "unknown";
}

/* Does the checkpoint belong to this program? Another network or training is refused unless
 * forced; another precision is noted, but O3, which has no f32 weights, goes only with O3. */
RT_COLD int rt_checkpoint_check(const RtTensors *f, const RtProgram *program, bool force,
                                RtNote *note)
{
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)program->seed);
    const RtPair may_differ[] = {{"ampc.level", program->level},
                                 {"ampc.half", program->half},
                                 {"ampc.policy", program->policy},
                                 {"ampc.seed", seed}};
    const char *graph = rt_checkpoint_word(f, "ampc.graph");
    const char *level = rt_checkpoint_word(f, "ampc.level");
    if (!strcmp(level, "O3") != !strcmp(program->level, "O3"))
        return rt_fail(RT_BAD_DATA, "%s: written at level %s, which cannot go on at %s", f->path,
                       level, program->level);
    if (strcmp(graph, program->graph)) {
        if (!force)
            return rt_fail(RT_BAD_DATA,
                           "%s: belongs to another program (graph %s, ours is %s); --force-load "
                           "takes what fits",
                           f->path, graph, program->graph);
        rt_note(note, "%s: belongs to another program", f->path);
    }
    for (int k = 0; k < (int)(sizeof may_differ / sizeof *may_differ); k++) {
        const char *word = rt_checkpoint_word(f, may_differ[k].key);
        if (strcmp(word, may_differ[k].value))
            rt_note(note, "%s: written with %s %s, goes on with %s", f->path, may_differ[k].key + 5,
                    word, may_differ[k].value);
    }
    return RT_OK;
}

RT_COLD bool rt_entry_same_shape(const RtEntry *e, const RtTensor *t)
{
    for (int k = 0; k < e->rank && k < t->rank; k++)
        if (e->shape[k] != t->shape[k])
            return false;
    return e->rank == t->rank;
}

RT_COLD const char *rt_entry_shape_text(char text[128], int rank, const int64_t *shape)
{
    size_t used = 1;
    strcpy(text, "[");
    for (int k = 0; k < rank && used < 100; k++)
        used +=
            (size_t)snprintf(text + used, 128 - used, k ? ", %lld" : "%lld", (long long)shape[k]);
    snprintf(text + used, 128 - used, "]");
    return text;
}

/* Can the file fill this entry? Returns the status, with the text that says why not. */
RT_COLD int rt_entry_check(const RtTensors *f, const RtEntry *e, const RtTensor *t)
{
    char found[128], wanted[128];
    if (!t)
        return rt_fail(RT_BAD_DATA, "%s: tensor '%s' is missing", f->path, e->name);
    if (!rt_entry_same_shape(e, t))
        return rt_fail(RT_BAD_DATA, "%s: tensor '%s' has shape %s, needed is %s", f->path, e->name,
                       rt_entry_shape_text(found, t->rank, t->shape),
                       rt_entry_shape_text(wanted, e->rank, e->shape));
    return rt_tensor_read(f, t, e->type, NULL);
}

RT_COLD int rt_entry_fill(const RtTensors *f, const RtEntry *e, const RtTensor *t)
{
    if (!e->unpack)
        return rt_tensor_read(f, t, e->type, e->data);
    void *values = malloc((size_t)t->count * (size_t)rt_st_bytes(e->type) + 1);
    if (!values)
        return rt_fail(RT_SYSTEM, "out of memory");
    int status = rt_tensor_read(f, t, e->type, values);
    if (!status)
        e->unpack(e, values);
    free(values);
    return status;
}

/* Notes or refuses what the file has and the entries do not ask for. */
RT_COLD int rt_entries_extra(const RtTensors *f, const bool *used, RtLoad load, RtNote *note)
{
    char names[512] = "";
    int extra = 0;
    for (int k = 0; k < f->count; k++) {
        size_t length = strlen(names);
        if (used[k])
            continue;
        if (length + strlen(f->tensor[k].name) + 4 < sizeof names)
            snprintf(names + length, sizeof names - length, "%s'%s'", extra ? ", " : "",
                     f->tensor[k].name);
        extra++;
    }
    if (!extra)
        return RT_OK;
    if (load == RT_LOAD_EXACT)
        return rt_fail(RT_BAD_DATA, "%s: %d tensors that this program does not have: %s", f->path,
                       extra, names);
    rt_note(note, "%s: %d tensors are not used: %s", f->path, extra, names);
    return RT_OK;
}

RT_COLD void rt_entries_note_nonfinite(const RtTensors *f, const RtTensor *t, RtNote *note)
{
    int64_t count = rt_tensor_nonfinite(f, t);
    if (count)
        rt_note(note, "%s: tensor '%s' has %lld values that are not finite", f->path, t->name,
                (long long)count);
}

/* Fills the entries from the file. Everything is checked before the first value changes. */
RT_COLD int rt_entries_read(const RtTensors *f, const RtEntry *entry, int entries, RtLoad load,
                            RtNote *note)
{
    const RtTensor **found = (const RtTensor **)calloc((size_t)entries + 1, sizeof *found);
    bool *used = (bool *)calloc((size_t)f->count + 1, sizeof *used);
    int status = found && used ? RT_OK : rt_fail(RT_SYSTEM, "out of memory");
    for (int k = 0; !status && k < entries; k++) {
        found[k] = rt_tensors_find(f, entry[k].name);
        if (found[k])
            used[found[k] - f->tensor] = true;
        status = rt_entry_check(f, &entry[k], found[k]);
        if (status && load == RT_LOAD_ANY) {
            rt_note(note, "%s; it keeps its value", rt_error_text());
            found[k] = NULL;
            status = RT_OK;
        }
        if (!status && found[k] && load != RT_LOAD_EXACT)
            rt_entries_note_nonfinite(f, found[k], note);
    }
    if (!status)
        status = rt_entries_extra(f, used, load, note);
    for (int k = 0; !status && k < entries; k++)
        if (found[k])
            status = rt_entry_fill(f, &entry[k], found[k]);
    free(found);
    free(used);
    return status;
}
#endif
