/* rt_file.h: what is written is read back; a failed or abandoned write leaves the old file and no
 * temporary; errors name the file and the reason. */
#include "rt_file.h"
#include "check.h"

static char folder[] = "/tmp/ampc-file-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[8][300];
    static int turn;
    char *p = path[turn++ % 8];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

/* rt_file_read fails with this text after "cannot VERB PATH: ". */
static void check_unreadable(const char *path, const char *verb, const char *why)
{
    RtBytes b;
    char text[400];
    snprintf(text, sizeof text, "cannot %s %s: %s", verb, path, why);
    CHECK_EQ(rt_file_read(path, &b), RT_SYSTEM);
    CHECK(!strcmp(rt_error_text(), text));
    CHECK(!b.data && !b.bytes);
}

static void check_content(const char *path, const char *text)
{
    RtBytes b;
    CHECK_EQ(rt_file_read(path, &b), 0);
    CHECK(b.bytes == strlen(text) && !memcmp(b.data, text, b.bytes));
    rt_bytes_free(&b);
}

int main(void)
{
    CHECK(mkdtemp(folder));
    const char *path = in_folder("a");
    char temporary[320];
    snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());

    CHECK_EQ(rt_file_write(path, "", 0), 0);
    check_content(path, "");
    CHECK_EQ(rt_file_write(path, "old", 3), 0);
    check_content(path, "old");

    RtWriter w; /* in pieces; nothing appears before the end */
    CHECK_EQ(rt_writer_open(&w, path), 0);
    CHECK_EQ(rt_writer_add(&w, "n", 1), 0);
    CHECK_EQ(rt_writer_add(&w, "ew", 2), 0);
    check_content(path, "old");
    CHECK(!access(temporary, F_OK));
    CHECK_EQ(rt_writer_close(&w, RT_OK), 0);
    check_content(path, "new");
    CHECK(access(temporary, F_OK));

    CHECK_EQ(rt_writer_open(&w, path), 0); /* abandoned */
    CHECK_EQ(rt_writer_add(&w, "half", 4), 0);
    CHECK_EQ(rt_writer_close(&w, RT_BAD_DATA), RT_BAD_DATA);
    check_content(path, "new");
    CHECK(access(temporary, F_OK));
    CHECK_EQ(rt_writer_close(&w, RT_BAD_DATA), RT_BAD_DATA); /* closing twice is harmless */

    CHECK_EQ(rt_file_write("ampc-file-test", "here", 4), 0); /* no folder in the name */
    check_content("ampc-file-test", "here");
    unlink("ampc-file-test");

    const char *big = in_folder("big");
    size_t bytes = 300001;
    char *text = (char *)malloc(bytes);
    memset(text, 'x', bytes);
    text[bytes - 1] = 0;
    CHECK_EQ(rt_file_write(big, text, bytes - 1), 0);
    check_content(big, text);
    int ends[2]; /* a pipe's size is not known beforehand */
    CHECK(!pipe(ends) && write(ends[1], text, 5000) == 5000 && !close(ends[1]));
    char name[40];
    snprintf(name, sizeof name, "/dev/fd/%d", ends[0]);
    text[5000] = 0;
    check_content(name, text);
    close(ends[0]);
    free(text);

    check_unreadable(in_folder("none"), "open", "No such file or directory");
    check_unreadable(folder, "read", "Is a directory");
    char wanted[400];
    const char *lost = in_folder("none/a");
    snprintf(wanted, sizeof wanted, "cannot write %s: No such file or directory", lost);
    CHECK_EQ(rt_file_write(lost, "x", 1), RT_SYSTEM);
    CHECK(!strcmp(rt_error_text(), wanted));
    const char *sub =
        in_folder("sub"); /* a folder in the way: the rename fails, no temporary stays */
    CHECK(!mkdir(sub, 0777));
    snprintf(wanted, sizeof wanted, "cannot write %s: Is a directory", sub);
    CHECK_EQ(rt_file_write(sub, "x", 1), RT_SYSTEM);
    CHECK(!strcmp(rt_error_text(), wanted));
    CHECK(!rmdir(sub));
    struct stat facts; /* nor is a device or a pipe replaced */
    CHECK(!mkfifo(sub, 0666));
    snprintf(wanted, sizeof wanted, "cannot write %s: it is no regular file", sub);
    CHECK_EQ(rt_file_write(sub, "x", 1), RT_SYSTEM);
    CHECK(!strcmp(rt_error_text(), wanted));
    CHECK(!stat(sub, &facts) && S_ISFIFO(facts.st_mode));
    unlink(sub);
    if (!access("/dev/full", W_OK)) {
        w.fd = -1;
        CHECK_EQ(rt_writer_open(&w, path), 0);
        int full = open("/dev/full", O_WRONLY);
        dup2(full, w.fd);
        close(full);
        snprintf(wanted, sizeof wanted, "cannot write %s: No space left on device", path);
        CHECK_EQ(rt_writer_close(&w, rt_writer_add(&w, "x", 1)), RT_SYSTEM);
        CHECK(!strcmp(rt_error_text(), wanted));
        check_content(path, "new");
    }
    unlink(path);
    unlink(big);
    CHECK(!rmdir(folder)); /* nothing else was left in it */
    return check_done();
}
