/* A checkpoint comes back bit for bit; one that is damaged, foreign or of another shape is refused
 * before any value changes; the newest that verifies is found; old ones go in time; and a process
 * killed while it writes loses nothing. */
#include "rt_checkpoint.h"

#include "check.h"

#include <sys/resource.h>
#include <sys/wait.h>

enum { SIZE = 10000 };

static char directory[] = "checkpoint_test.XXXXXX";
static const RtProgram program = {"0.1.0", "O2", "f16", "apex", "0123456789abcdef", 42};

/* What the checkpoints of these tests hold. */
static float weight[SIZE], tiled[4];
static uint16_t half[3];
static double power;
static int64_t step_count;
static int32_t growth;

/* A layout of our own: the transpose of a 2x2 matrix. */
static void from_tiled(const RtEntry *e, void *out)
{
    const float *x = e->self;
    float *y = out;
    for (int k = 0; k < 4; k++)
        y[k] = x[k % 2 * 2 + k / 2];
}

static void to_tiled(const RtEntry *e, const void *in)
{
    float *x = e->self;
    const float *y = in;
    for (int k = 0; k < 4; k++)
        x[k % 2 * 2 + k / 2] = y[k];
}

static const int64_t weight_shape[] = {100, 100}, two[] = {2, 2}, three[] = {3};
static const RtEntry entry[] = {
    {"param/net/w", RT_ST_F32, RT_ST_F32, 2, weight_shape, weight, NULL, NULL, NULL},
    {"param/net/t", RT_ST_F32, RT_ST_F32, 2, two, NULL, from_tiled, to_tiled, tiled},
    {"param/net/h", RT_ST_BF16, RT_ST_BF16, 1, three, half, NULL, NULL, NULL},
    {"opt/o.beta1_pow", RT_ST_F64, RT_ST_F64, 0, NULL, &power, NULL, NULL, NULL},
    {"train/fit.step", RT_ST_I64, RT_ST_I64, 0, NULL, &step_count, NULL, NULL, NULL},
    {"scaler/scaler.growth", RT_ST_I32, RT_ST_I32, 0, NULL, &growth, NULL, NULL, NULL}};
enum { ENTRIES = sizeof entry / sizeof *entry };

/* The state after so many steps; a NaN and a subnormal are in it. */
static void set_state(int64_t step)
{
    for (int k = 0; k < SIZE; k++)
        weight[k] = (float)(step * 31 + k) * 0x1p-10f;
    weight[1] = rt_f32_from_bits(0x7FC01234);
    weight[2] = rt_f32_from_bits(1);
    for (int k = 0; k < 4; k++)
        tiled[k] = (float)(step + k);
    for (int k = 0; k < 3; k++)
        half[k] = (uint16_t)(step * 3 + k);
    power = 1.0 / (double)(step + 1);
    step_count = step;
    growth = (int32_t)step;
}

static void clear_state(void)
{
    memset(weight, 0, sizeof weight);
    memset(tiled, 0, sizeof tiled);
    memset(half, 0, sizeof half);
    power = 0;
    step_count = growth = 0;
}

static uint64_t state_hash(void)
{
    RtHash h;
    rt_hash_start(&h, 0);
    rt_hash_add(&h, weight, sizeof weight);
    rt_hash_add(&h, tiled, sizeof tiled);
    rt_hash_add(&h, half, sizeof half);
    rt_hash_add(&h, &power, sizeof power);
    rt_hash_add(&h, &step_count, sizeof step_count);
    rt_hash_add(&h, &growth, sizeof growth);
    return rt_hash_value(&h);
}

static uint64_t hash_of_step(int64_t step)
{
    set_state(step);
    return state_hash();
}

static RtNote note;

static bool text_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fprintf(stderr, "'%s' lacks '%s'\n", text, part);
    return strstr(text, part) != NULL;
}

static void save(RtCheckpoints *c, int64_t step)
{
    set_state(step);
    CHECK_EQ(rt_checkpoints_save(c, step, &program, entry, ENTRIES, NULL), RT_OK);
}

static int steps_kept(RtCheckpoints *c, int64_t found[8])
{
    int64_t *step;
    int count;
    CHECK_EQ(rt_checkpoints_list(c, &step, &count), RT_OK);
    for (int k = 0; k < count && k < 8; k++)
        found[k] = step[k];
    free(step);
    return count;
}

/* Writes some bytes at a place of a file, or cuts it there. */
static void damage(const char *path, long at, const char *bytes)
{
    FILE *file = fopen(path, "r+b");
    CHECK(file && !fseek(file, at, at < 0 ? SEEK_END : SEEK_SET));
    if (bytes)
        fputs(bytes, file);
    else
        CHECK(!ftruncate(fileno(file), ftell(file)));
    fclose(file);
}

static void empty_directory(void)
{
    DIR *d = opendir(directory);
    const struct dirent *e;
    while ((e = readdir(d))) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        if (e->d_name[0] != '.')
            unlink(path);
    }
    closedir(d);
}

static void start(RtCheckpoints *c, int keep)
{
    empty_directory();
    CHECK_EQ(rt_checkpoints_start(c, directory, "digits.ckpt", keep, NULL), RT_OK);
}

static void round_trip(void)
{
    RtCheckpoints c;
    RtTensors f;
    int64_t step, kept[8];
    start(&c, 2);
    CHECK_EQ(steps_kept(&c, kept), 0); /* the test write leaves nothing */
    CHECK_EQ(rt_checkpoints_newest(&c, &f, &step, NULL), RT_OK);
    CHECK_EQ(step, -1);
    save(&c, 1440);
    CHECK(text_has(c.path, "/digits-000001440.ckpt"));
    clear_state();
    CHECK_EQ(rt_checkpoints_newest(&c, &f, &step, &note), RT_OK);
    CHECK_EQ(step, 1440);
    CHECK_EQ(rt_checkpoint_check(&f, &program, false, &note), RT_OK);
    CHECK_EQ(rt_entries_read(&f, entry, ENTRIES, RT_LOAD_EXACT, &note), RT_OK);
    uint64_t loaded = state_hash();
    CHECK(loaded == hash_of_step(1440));
    CHECK(!strcmp(note.text, ""));
    const float *row =
        (const float *)(const void *)(f.data + rt_tensors_find(&f, "param/net/t")->begin);
    float values[4];
    memcpy(values, row, sizeof values); /* row-major in the file */
    CHECK(values[0] == 1440 && values[1] == 1442 && values[2] == 1441 && values[3] == 1443);
    CHECK(!strcmp(rt_tensors_metadatum(&f, "ampc.seed"), "42"));
    rt_tensors_close(&f);
}

static void keeping(void)
{
    RtCheckpoints c;
    int64_t kept[8] = {0};
    start(&c, 2);
    for (int64_t step = 72; step <= 360; step += 72)
        save(&c, step);
    CHECK_EQ(steps_kept(&c, kept), 2);
    CHECK(kept[0] == 360 && kept[1] == 288);
    save(&c, 100); /* a new run in the same directory: the other one's are not ours to delete */
    CHECK_EQ(steps_kept(&c, kept), 3);
    save(&c, 200);
    save(&c, 250);
    CHECK_EQ(steps_kept(&c, kept), 4);
    CHECK(kept[0] == 360 && kept[1] == 288 && kept[2] == 250 && kept[3] == 200);
    c.keep = 0;
    save(&c, 1000000000); /* ten digits */
    save(&c, 1000000001);
    CHECK_EQ(steps_kept(&c, kept), 6);
    CHECK_EQ(kept[0], 1000000001);
    memset(&note, 0, sizeof note);
    CHECK_EQ(rt_checkpoints_start(&c, directory, "digits.ckpt", 2, &note), RT_OK);
    CHECK(text_has(note.text, "holds a checkpoint of step 1000000001"));
}

static void names(void)
{
    RtCheckpoints c;
    const char *rest;
    start(&c, 1);
    CHECK_EQ(rt_checkpoints_step(&c, "digits-000001440.ckpt", &rest), 1440);
    CHECK(!strcmp(rest, ""));
    CHECK_EQ(rt_checkpoints_step(&c, "digits-000001440.ckpt.tmp-7", &rest), 1440);
    CHECK(!strcmp(rest, ".tmp-7"));
    CHECK_EQ(rt_checkpoints_step(&c, "digits-123456789012345678.ckpt", &rest), 123456789012345678);
    static const char *const foreign[] = {"digits.ckpt",
                                          "digits-00001440.ckpt",
                                          "digits-0000001440.ckpt",
                                          "digits-1234567890123456789.ckpt",
                                          "digits-00000144x.ckpt",
                                          "digit-000001440.ckpt",
                                          "digits-000001440.safetensors",
                                          "digits-+00001440.ckpt"};
    for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++)
        CHECK_EQ(rt_checkpoints_step(&c, foreign[k], &rest), -1);
    CHECK_EQ(rt_checkpoints_split(&c, NULL, "a.b/c.d.e"), RT_OK);
    CHECK(!strcmp(c.directory, "a.b") && !strcmp(c.stem, "c.d") && !strcmp(c.suffix, ".e"));
    CHECK_EQ(rt_checkpoints_split(&c, NULL, "/c"), RT_OK);
    CHECK(!strcmp(c.directory, "/") && !strcmp(c.stem, "c") && !strcmp(c.suffix, ""));
    CHECK_EQ(rt_checkpoints_split(&c, "out", "sub/c.ckpt"), RT_OK);
    CHECK(!strcmp(c.directory, "out") && !strcmp(c.stem, "c"));
    CHECK_EQ(rt_checkpoints_split(&c, NULL, "c.ckpt"), RT_OK);
    CHECK(!strcmp(c.directory, "."));
    CHECK_EQ(rt_checkpoints_split(&c, NULL, "out/"), RT_USAGE);
}

/* Every kind of damage to the newest is passed over with a note; without another it is an error. */
static void damaged(void)
{
    static const struct {
        long at;
        const char *bytes, *why;
    } row[] = {{-1, "x", "damaged: the hash of the data is"},
               {-20000, "x", "damaged: the hash of the data is"},
               {-1, NULL, "truncated: "},
               {3, NULL, "shorter than 8 bytes"},
               {0, NULL, "shorter than 8 bytes"},
               {9, "!", "expected a string"},
               {38, "x", "not a checkpoint"}};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        RtCheckpoints c;
        RtTensors f;
        int64_t step = 0;
        start(&c, 2);
        save(&c, 5);
        CHECK_EQ(rt_checkpoints_path(&c, 5), RT_OK);
        save(&c, 6);
        damage(c.path, row[k].at, row[k].bytes);
        memset(&note, 0, sizeof note);
        CHECK_EQ(rt_checkpoints_newest(&c, &f, &step, &note), RT_OK);
        CHECK_EQ(step, 5);
        CHECK(text_has(note.text, "digits-000000006.ckpt: "));
        CHECK(text_has(note.text, row[k].why));
        CHECK(text_has(note.text, "; trying the one before"));
        rt_tensors_close(&f);
        damage(c.path, row[k].at, row[k].bytes);
        CHECK_EQ(rt_checkpoints_newest(&c, &f, &step, NULL), RT_BAD_DATA);
        CHECK(text_has(rt_error_text(), "no checkpoint in "));
        CHECK(text_has(rt_error_text(), row[k].why));
        CHECK(f.file.data == NULL);
    }
}

static void other_program(void)
{
    RtCheckpoints c;
    RtTensors f;
    RtProgram other = program;
    start(&c, 1);
    save(&c, 1);
    CHECK_EQ(rt_checkpoint_open(&f, c.path), RT_OK);
    other.graph = "fedcba9876543210";
    CHECK_EQ(rt_checkpoint_check(&f, &other, false, NULL), RT_BAD_DATA);
    CHECK(text_has(rt_error_text(), "belongs to another program (graph 0123456789abcdef, ours is "
                                    "fedcba9876543210); --force-load"));
    memset(&note, 0, sizeof note);
    CHECK_EQ(rt_checkpoint_check(&f, &other, true, &note), RT_OK);
    CHECK(text_has(note.text, "belongs to another program"));
    other = program;
    other.level = "O1";
    other.half = "bf16";
    other.policy = "torch";
    other.seed = 43;
    memset(&note, 0, sizeof note);
    CHECK_EQ(rt_checkpoint_check(&f, &other, false, &note), RT_OK);
    CHECK(text_has(note.text, "written with level O2, goes on with O1\n"));
    CHECK(text_has(note.text, "written with half f16, goes on with bf16\n"));
    CHECK(text_has(note.text, "written with policy apex, goes on with torch\n"));
    CHECK(text_has(note.text, "written with seed 42, goes on with 43"));
    other = program;
    other.level = "O3";
    CHECK_EQ(rt_checkpoint_check(&f, &other, true, NULL), RT_BAD_DATA);
    CHECK(text_has(rt_error_text(), "written at level O2, which cannot go on at O3"));
    rt_tensors_close(&f);
}

/* Entries that do not match the file: refused, and nothing changes. */
static void mismatches(void)
{
    static const int64_t flat[] = {10000};
    RtEntry changed[ENTRIES + 1];
    RtCheckpoints c;
    RtTensors f;
    float extra = 0;
    start(&c, 1);
    save(&c, 3);
    CHECK_EQ(rt_checkpoint_open(&f, c.path), RT_OK);
    uint64_t before = hash_of_step(4);

    memcpy(changed, entry, sizeof entry);
    changed[0].rank = 1;
    changed[0].shape = flat;
    CHECK_EQ(rt_entries_read(&f, changed, ENTRIES, RT_LOAD_EXACT, NULL), RT_BAD_DATA);
    CHECK(
        text_has(rt_error_text(), "tensor 'param/net/w' has shape [100, 100], needed is [10000]"));
    memcpy(changed, entry, sizeof entry);
    changed[ENTRIES - 1].name = "scaler/other.growth";
    CHECK_EQ(rt_entries_read(&f, changed, ENTRIES, RT_LOAD_EXACT, NULL), RT_BAD_DATA);
    CHECK(text_has(rt_error_text(), "tensor 'scaler/other.growth' is missing"));
    changed[ENTRIES - 1] = entry[ENTRIES - 1];
    changed[ENTRIES - 1].type = RT_ST_F32;
    CHECK_EQ(rt_entries_read(&f, changed, ENTRIES, RT_LOAD_EXACT, NULL), RT_BAD_DATA);
    CHECK(text_has(rt_error_text(), "tensor 'scaler/scaler.growth' has dtype I32, needed is F32"));
    CHECK_EQ(rt_entries_read(&f, entry, ENTRIES - 1, RT_LOAD_EXACT, NULL), RT_BAD_DATA);
    CHECK(text_has(rt_error_text(),
                   "1 tensors that this program does not have: 'scaler/scaler.growth'"));
    CHECK(state_hash() == before);

    memset(&note, 0, sizeof note);
    CHECK_EQ(rt_entries_read(&f, entry, ENTRIES - 1, RT_LOAD_EXTRA, &note), RT_OK);
    CHECK(text_has(note.text, "1 tensors are not used: 'scaler/scaler.growth'"));
    CHECK(text_has(note.text, "tensor 'param/net/w' has 1 values that are not finite"));
    CHECK(growth == 4 && step_count == 3);

    memcpy(changed, entry, sizeof entry);
    changed[ENTRIES] = (RtEntry){.name = "param/net/new", .data = &extra};
    changed[ENTRIES].type = changed[ENTRIES].stored = RT_ST_F32;
    set_state(4);
    CHECK_EQ(rt_entries_read(&f, changed, ENTRIES + 1, RT_LOAD_EXTRA, NULL), RT_BAD_DATA);
    CHECK(state_hash() == before);
    memset(&note, 0, sizeof note);
    CHECK_EQ(rt_entries_read(&f, changed, ENTRIES + 1, RT_LOAD_ANY, &note), RT_OK);
    CHECK(text_has(note.text, "tensor 'param/net/new' is missing; it keeps its value"));
    uint64_t loaded = state_hash();
    CHECK(loaded == hash_of_step(3));
    rt_tensors_close(&f);
}

/* A disk that fills up, seen as a limit on file sizes: the failed save says so, leaves the old
 * checkpoint and no temporary file; the test write finds out before training. */
static void full_disk(void)
{
    RtCheckpoints c;
    RtTensors f;
    struct rlimit old, small;
    int64_t step = 0;
    start(&c, 1);
    save(&c, 8);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(!getrlimit(RLIMIT_FSIZE, &old));
    small = old;
    small.rlim_cur = 20000;
    CHECK(!setrlimit(RLIMIT_FSIZE, &small));
    CHECK_EQ(rt_checkpoints_save(&c, 9, &program, entry, ENTRIES, NULL), RT_SYSTEM);
    CHECK(text_has(rt_error_text(), "cannot write "));
    CHECK(text_has(rt_error_text(), "digits-000000009.ckpt: File too large"));
    small.rlim_cur = 1000;
    CHECK(!setrlimit(RLIMIT_FSIZE, &small));
    CHECK_EQ(rt_checkpoints_start(&c, directory, "digits.ckpt", 1, NULL), RT_SYSTEM);
    CHECK(!setrlimit(RLIMIT_FSIZE, &old));
    CHECK_EQ(rt_checkpoints_newest(&c, &f, &step, NULL), RT_OK);
    CHECK_EQ(step, 8);
    rt_tensors_close(&f);
    CHECK(!unlink(c.path));
    CHECK(!rmdir(directory)); /* nothing else was left */
    CHECK_EQ(rt_checkpoints_start(&c, "/dev/null", "digits.ckpt", 1, NULL), RT_SYSTEM);
    CHECK_EQ(rt_checkpoints_start(&c, directory, "digits.ckpt", 1, NULL), RT_OK); /* made anew */
}

/* Writes one checkpoint after the other and acknowledges each through the pipe. */
static void write_forever(RtCheckpoints *c, int64_t step, int out)
{
    for (;; step++) {
        set_state(step);
        if (rt_checkpoints_save(c, step, &program, entry, ENTRIES, NULL) ||
            write(out, &step, sizeof step) != sizeof step)
            _exit(1);
    }
}

/* Kills the writer at many moments. What it acknowledged is never lost, and the newest checkpoint
 * is whole. Which moments are hit differs from run to run; the promise does not. */
static void kill_while_writing(void)
{
    RtCheckpoints c;
    int64_t last = 0;
    uint32_t random = 5;
    start(&c, 2);
    for (int round = 0; round < 60; round++) {
        int ends[2];
        CHECK(!pipe(ends));
        pid_t child = fork();
        if (!child)
            write_forever(&c, last + 1, ends[1]);
        close(ends[1]);
        random = random * 1664525u + 1013904223u;
        struct timespec wait = {0, (long)(random >> 8) % 12000000};
        nanosleep(&wait, NULL);
        int how = 0;
        CHECK(!kill(child, SIGKILL) && waitpid(child, &how, 0) == child);
        CHECK(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
        int64_t acknowledged = last, step = 0;
        while (read(ends[0], &step, sizeof step) == sizeof step)
            acknowledged = step;
        close(ends[0]);

        RtTensors f;
        memset(&note, 0, sizeof note);
        int status = rt_checkpoints_newest(&c, &f, &step, &note);
        CHECK_EQ(status, RT_OK);
        CHECK(!strcmp(note.text, ""));                   /* nothing had to be passed over */
        int nothing_yet = step < 0 && acknowledged == 0; /* on a busy machine */
        CHECK(nothing_yet || (step >= acknowledged && step <= acknowledged + 1));
        if (status || step < 0)
            continue; /* killed before the first was written */
        clear_state();
        CHECK_EQ(rt_entries_read(&f, entry, ENTRIES, RT_LOAD_EXACT, NULL), RT_OK);
        uint64_t loaded = state_hash();
        CHECK(loaded == hash_of_step(step));
        rt_tensors_close(&f);
        last = step;
    }
    CHECK(last > 0);
}

/* The temporaries of dead processes go at the next start, those of living ones stay. */
static void sweep(void)
{
    RtCheckpoints c;
    char dead[512], living[512];
    start(&c, 1);
    pid_t child = fork();
    if (!child)
        _exit(0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    snprintf(dead, sizeof dead, "%s/digits-000000001.ckpt.tmp-%ld", directory, (long)child);
    snprintf(living, sizeof living, "%s/digits-000000001.ckpt.tmp-%ld", directory, (long)getpid());
    fclose(fopen(dead, "w"));
    fclose(fopen(living, "w"));
    CHECK_EQ(rt_checkpoints_start(&c, directory, "digits.ckpt", 1, NULL), RT_OK);
    CHECK(access(dead, F_OK) && !access(living, F_OK));
}

int main(void)
{
    CHECK(mkdtemp(directory) != NULL);
    round_trip();
    keeping();
    names();
    damaged();
    other_program();
    mismatches();
    full_disk();
    kill_while_writing();
    sweep();
    empty_directory();
    CHECK(!rmdir(directory));
    return check_done();
}
