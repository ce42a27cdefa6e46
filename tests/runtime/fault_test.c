/* Files and readers when the world fails: each system call and each request for memory fails in
 * turn, alone and from then on. Whatever fails is reported as a system error with a text, nothing
 * leaks (as a sanitizer sees), a written file holds all old or all new bytes, and no temporary
 * stays. Short reads and writes and interrupted calls are no failures at all. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static long calls, failing, lasting; /* calls so far, which fails (from 1), and do all after it */
static int with_error;
static int gentle; /* nothing fails, but reads and writes are short and often interrupted */

static int fails(void)
{
    calls++;
    if (calls != failing && !(lasting && failing && calls > failing))
        return 0;
    errno = with_error;
    return 1;
}

static void *faulty_malloc(size_t n)
{
    return fails() ? NULL : malloc(n);
}

static void *faulty_calloc(size_t n, size_t size)
{
    return fails() ? NULL : calloc(n, size);
}

static void *faulty_realloc(void *p, size_t n)
{
    return fails() ? NULL : realloc(p, n);
}

static int interrupted(void)
{
    static unsigned turn;
    errno = EINTR;
    return gentle && turn++ % 3 == 0;
}

static ssize_t faulty_read(int fd, void *to, size_t n)
{
    return fails() || interrupted() ? -1 : read(fd, to, gentle && n > 3 ? 3 : n);
}

static ssize_t faulty_write(int fd, const void *from, size_t n)
{
    return fails() || interrupted() ? -1 : write(fd, from, gentle && n > 3 ? 3 : n);
}

static int faulty_close(int fd)
{
    int status = close(fd); /* a failed close closes too */
    return fails() ? -1 : status;
}

#define malloc faulty_malloc
#define calloc faulty_calloc
#define realloc faulty_realloc
#define read faulty_read
#define write faulty_write
#define close faulty_close
#define open(...) (fails() ? -1 : open(__VA_ARGS__))
#define fsync(fd) (fails() ? -1 : fsync(fd))
#define fstat(fd, about) (fails() ? -1 : fstat(fd, about))
#define rename(from, to) (fails() ? -1 : rename(from, to))
#include "rt_csv.h"
#include "rt_idx.h"
#include "rt_npy.h"
#undef malloc
#undef calloc
#undef realloc
#undef read
#undef write
#undef close
#undef open
#undef fsync
#undef fstat
#undef rename
#include "check.h"
#include <zlib.h>

static char folder[] = "/tmp/ampc-fault-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void arm(long call, int stay, int error)
{
    calls = 0;
    failing = call;
    lasting = stay;
    with_error = error;
    rt_fail(0, "-");
}

static void write_old(void)
{
    arm(0, 0, 0);
    CHECK_EQ(rt_file_write(in_folder("file"), "old", 3), 0);
}

static int content_is(const char *text)
{
    RtBytes b;
    arm(0, 0, 0);
    CHECK_EQ(rt_file_read(in_folder("file"), &b), 0);
    int same = b.bytes == strlen(text) && !memcmp(b.data, text, b.bytes);
    rt_bytes_free(&b);
    return same;
}

static int files(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2;
}

/* A file that is not there before stays away, or is whole; one that is there is old or new. */
static void check_write(int stay, int error)
{
    long call = 1;
    char text[400], none[320];
    for (int status = 1; status && call < 100; call++) {
        write_old();
        int before = files();
        arm(call, stay, error);
        status = rt_file_write(in_folder("file"), "newer", 5);
        CHECK(status == RT_SYSTEM || call == 10); /* closing the directory loses nothing */
        snprintf(text, sizeof text, "cannot write %s: %s", in_folder("file"),
                 strerror(call <= 2 ? ENOMEM : error));
        CHECK(!status || !strcmp(rt_error_text(), text));
        CHECK(content_is(status ? "old" : "newer") || (status && content_is("newer")));
        CHECK_EQ(files(), before);
    }
    CHECK_EQ(call, 11); /* malloc twice, open, write, fsync, close, rename, open, fsync, close */
    snprintf(none, sizeof none, "%s", in_folder("file"));
    unlink(none);
    arm(4, stay, error);
    CHECK_EQ(rt_file_write(none, "newer", 5), RT_SYSTEM);
    CHECK_EQ(access(none, F_OK), -1);
}

static int read_csv(const char *path, RtSource *s)
{
    return rt_csv_read(path, ',', 0, s);
}

/* A reader fails with a system error for each call that fails; unless it is the close. */
static void check_read(const char *name, int (*reader)(const char *, RtSource *), int stay)
{
    RtSource s;
    long call = 1;
    for (int reached = 1; reached && call < 1000; call++) {
        arm(call, stay, EIO);
        int status = reader(in_folder(name), &s);
        reached = calls >= call;
        CHECK(status == RT_SYSTEM || status == RT_OK);
        CHECK(!status || (!s.data && strcmp(rt_error_text(), "-")));
        CHECK(reached || !status);
        if (!status) {
            CHECK(s.rows == 2 && rt_source_value(&s, 1, 0) == 3);
            rt_source_free(&s);
        }
    }
    CHECK(call > 5);
}

static int read_folder(const char *path, RtSource *s)
{
    RtIdxFolder f;
    (void)path;
    int status = rt_idx_folder(folder, &f);
    CHECK(!status || (!f.image.data && !f.label.data));
    rt_source_free(&f.image);
    *s = f.label;
    return status;
}

static void pack(const char *name, const char *bytes, unsigned n)
{
    gzFile z = gzopen(in_folder(name), "wb");
    CHECK_EQ(gzwrite(z, bytes, n), n);
    gzclose(z);
}

int main(void)
{
    static const float numbers[] = {1, 3};
    static const int64_t shape[] = {2};
    RtSource s;
    CHECK(mkdtemp(folder));
    check_write(0, EIO);
    check_write(1, ENOSPC);

    arm(0, 0, 0);
    CHECK_EQ(rt_npy_write(in_folder("a.npy"), numbers, 1, shape), 0);
    CHECK_EQ(rt_file_write(in_folder("a.csv"), "1,2\n3,4\n", 8), 0);
    pack("a.csv.gz", "1,2\n3,4\n", 8);
    pack("a.idx.gz", "\0\0\x08\1\0\0\0\2\1\3", 10);
    pack("train-labels-idx1-ubyte.gz", "\0\0\x08\1\0\0\0\1\1", 9);
    pack("t10k-labels-idx1-ubyte.gz", "\0\0\x08\1\0\0\0\1\3", 9);
    pack("train-images-idx3-ubyte.gz", "\0\0\x08\1\0\0\0\1\1", 9);
    pack("t10k-images-idx3-ubyte.gz", "\0\0\x08\1\0\0\0\1\3", 9);
    for (int stay = 0; stay < 2; stay++) {
        check_read("a.npy", rt_npy_read, stay);
        check_read("a.csv", read_csv, stay);
        check_read("a.csv.gz", read_csv, stay);
        check_read("a.idx.gz", rt_idx_read, stay);
        check_read("", read_folder, stay);
    }

    gentle = 1;
    arm(0, 0, 0);
    CHECK_EQ(rt_file_write(in_folder("file"), "a long text in short pieces", 27), 0);
    CHECK(content_is("a long text in short pieces"));
    CHECK_EQ(rt_csv_read(in_folder("a.csv.gz"), ',', 0, &s), 0);
    rt_source_free(&s);

    static const char *const names[] = {"file",
                                        "a.npy",
                                        "a.csv",
                                        "a.csv.gz",
                                        "a.idx.gz",
                                        "train-labels-idx1-ubyte.gz",
                                        "t10k-labels-idx1-ubyte.gz",
                                        "train-images-idx3-ubyte.gz",
                                        "t10k-images-idx3-ubyte.gz"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK(!unlink(in_folder(names[i])));
    CHECK(!rmdir(folder)); /* no temporary was left */
    return check_done();
}
