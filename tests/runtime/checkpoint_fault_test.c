/* Saving a checkpoint when the world fails: every call to the system fails in turn, or is the last
 * one before a crash. Whatever happens, the newest checkpoint is whole, and a failure is reported
 * and leaves no temporary file. The order of the calls is the one that survives a power cut. */
#include "rt_base.h"

#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a system whose calls can fail ---- */

static enum { FINE, FAIL, CRASH, SHORT } plan;
static int fail_at, calls; /* the call that fails, and how many there were */
static char trace[4096];   /* the calls, in order */

static bool strikes(const char *name, const char *what)
{
    size_t used = strlen(trace);
    const char *suffix = what ? strstr(what, "digits") : NULL;
    snprintf(trace + used, sizeof trace - used, "%s %.21s\n", name, suffix ? suffix : "-");
    bool now = ++calls == fail_at && plan != FINE;
    if (now && plan == CRASH)
        _exit(0);
    errno = ENOSPC;
    return now;
}

static int faulty_open(const char *path, int flags)
{
    return strikes("open", path) ? -1 : open(path, flags, 0666);
}

static ssize_t faulty_write(int fd, const void *data, size_t bytes)
{
    if (strikes("write", NULL) && plan == FAIL)
        return -1;
    if (plan != SHORT)
        return write(fd, data, bytes);
    if (calls % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    return write(fd, data, bytes > 700 ? 700 : bytes);
}

static ssize_t faulty_pwrite(int fd, const void *data, size_t bytes, off_t at)
{
    if (strikes("pwrite", NULL) && plan == FAIL)
        return -1;
    return pwrite(fd, data, plan == SHORT ? 1 : bytes, at);
}

static int faulty_fsync(int fd)
{
    return strikes("fsync", NULL) ? -1 : fsync(fd);
}

/* A failing close still closes. */
static int faulty_close(int fd)
{
    bool failed = strikes("close", NULL);
    return close(fd) || failed ? -1 : 0;
}

static int faulty_rename(const char *from, const char *to)
{
    return strikes("rename", to) ? -1 : rename(from, to);
}

static int faulty_unlink(const char *path)
{
    return strikes("unlink", path) ? -1 : unlink(path);
}

static void *faulty_malloc(size_t bytes)
{
    return strikes("malloc", NULL) ? NULL : malloc(bytes);
}

static void *faulty_calloc(size_t count, size_t bytes)
{
    return strikes("malloc", NULL) ? NULL : calloc(count, bytes);
}

static void *faulty_realloc(void *block, size_t bytes)
{
    return strikes("malloc", NULL) ? NULL : realloc(block, bytes);
}

/* From here on, the parts under test call these. */
#define open(path, ...) faulty_open(path, faulty_flags(__VA_ARGS__, 0))
#define faulty_flags(flags, ...) (flags)
#define write faulty_write
#define pwrite faulty_pwrite
#define fsync faulty_fsync
#define close faulty_close
#define rename faulty_rename
#define unlink faulty_unlink
#define malloc faulty_malloc
#define calloc faulty_calloc
#define realloc faulty_realloc
#include "rt_checkpoint.h"
#undef unlink
#undef malloc

/* ---- the saving program ---- */

static char directory[] = "checkpoint_fault.XXXXXX";
static const RtProgram program = {"0.1.0", "O1", "f16", "apex", "0123456789abcdef", 0};
static float weight[1000];
static int64_t step_count;
static const int64_t weight_shape[] = {1000};
static const RtEntry entry[] = {
    {"param/net/w", RT_ST_F32, RT_ST_F32, 1, weight_shape, weight, NULL, NULL, NULL},
    {"train/fit.step", RT_ST_I64, RT_ST_I64, 0, NULL, &step_count, NULL, NULL, NULL}};

static int save(RtCheckpoints *c, int64_t step)
{
    for (int k = 0; k < 1000; k++)
        weight[k] = (float)(step * 1000 + k);
    step_count = step;
    trace[0] = '\0';
    calls = 0;
    int status = rt_checkpoints_save(c, step, &program, entry, 2, NULL);
    plan = FINE;
    return status;
}

static int load_newest(RtCheckpoints *c, int64_t *step)
{
    RtTensors f;
    int status = rt_checkpoints_newest(c, &f, step, NULL);
    if (!status)
        status = rt_entries_read(&f, entry, 2, RT_LOAD_EXACT, NULL);
    rt_tensors_close(&f);
    return status;
}

static void check_newest(RtCheckpoints *c, int64_t lowest, int64_t highest)
{
    int64_t step = -1;
    CHECK_EQ(load_newest(c, &step), RT_OK);
    CHECK(step >= lowest && step <= highest && step == step_count);
    for (int k = 0; k < 1000; k++)
        CHECK(weight[k] == (float)(step * 1000 + k));
}

/* How many files the directory holds whose names have this part; all of them can be deleted. */
static int count_files(const char *part, bool delete_them)
{
    DIR *d = opendir(directory);
    const struct dirent *e;
    int count = 0;
    while ((e = readdir(d))) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        if (e->d_name[0] == '.' || !strstr(e->d_name, part))
            continue;
        count++;
        if (delete_them)
            unlink(path);
    }
    closedir(d);
    return count;
}

static void start(RtCheckpoints *c)
{
    count_files("", true);
    plan = FINE;
    CHECK_EQ(rt_checkpoints_start(c, directory, "digits.ckpt", 1, NULL), RT_OK);
    CHECK_EQ(save(c, 1), RT_OK);
}

/* Data to the disk, then the name, then the name to the disk, and only then the old one goes. */
static void order_of_calls(void)
{
    static const char *const wanted[] = {"open digits-000000002.ckpt",
                                         "write -",
                                         "pwrite -",
                                         "fsync -",
                                         "close -",
                                         "rename digits-000000002.ckpt",
                                         "open -",
                                         "fsync -",
                                         "close -",
                                         "unlink digits-000000001.ckpt"};
    RtCheckpoints c;
    start(&c);
    CHECK_EQ(save(&c, 2), RT_OK);
    const char *at = trace;
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
        const char *found = at ? strstr(at, wanted[k]) : NULL;
        if (!found)
            fprintf(stderr, "no '%s' in:\n%s", wanted[k], trace);
        CHECK(found != NULL);
        at = found ? found + strlen(wanted[k]) : NULL;
    }
    CHECK(at && !strstr(at, "open") && !strstr(at, "rename") && !strstr(at, "unlink"));
}

static void each_call_fails(void)
{
    int failures = 0;
    for (int n = 1;; n++) {
        RtCheckpoints c;
        start(&c);
        plan = FAIL;
        fail_at = n;
        int status = save(&c, 2);
        if (calls < n)
            break;
        CHECK(status == RT_OK || status == RT_SYSTEM);
        failures += status != RT_OK;
        CHECK(!status || rt_error_text()[0]);
        CHECK_EQ(count_files(".tmp-", false), 0);
        check_newest(&c, status ? 1 : 2, 2);
    }
    CHECK(failures > 10);
}

static void crash_at_each_call(void)
{
    for (int n = 1, last = 0; !last; n++) {
        RtCheckpoints c;
        int how = 0;
        start(&c);
        pid_t child = fork();
        if (!child) {
            plan = CRASH;
            fail_at = n;
            save(&c, 2);
            _exit(7); /* got through: there is no call n */
        }
        CHECK(waitpid(child, &how, 0) == child && WIFEXITED(how));
        last = WEXITSTATUS(how) == 7;
        check_newest(&c, last ? 2 : 1, 2);
        /* The next start clears up behind the dead one. */
        CHECK_EQ(rt_checkpoints_start(&c, directory, "digits.ckpt", 1, NULL), RT_OK);
        CHECK_EQ(count_files(".tmp-", false), 0);
    }
}

static void interrupted_writes(void)
{
    RtCheckpoints c;
    start(&c);
    plan = SHORT;
    CHECK_EQ(save(&c, 2), RT_OK);
    CHECK(strstr(trace, "write -\nwrite -\nwrite -") != NULL);
    check_newest(&c, 2, 2);
}

/* Reading when memory runs out: a status, and nothing is lost or leaked. */
static void memory_runs_out_while_loading(void)
{
    int failures = 0;
    for (int n = 1;; n++) {
        RtCheckpoints c;
        int64_t step;
        start(&c);
        calls = 0;
        plan = FAIL;
        fail_at = n;
        int status = load_newest(&c, &step);
        plan = FINE;
        if (calls < n)
            break;
        CHECK(status == RT_OK || status == RT_SYSTEM);
        failures += status != RT_OK;
        check_newest(&c, 1, 1);
    }
    CHECK(failures > 5);
}

int main(void)
{
    CHECK(mkdtemp(directory) != NULL);
    order_of_calls();
    each_call_fails();
    crash_at_each_call();
    interrupted_writes();
    memory_runs_out_while_loading();
    count_files("", true);
    CHECK(!rmdir(directory));
    return check_done();
}
