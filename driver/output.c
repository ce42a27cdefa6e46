#include "driver/output.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file while it is being written. */
typedef struct Writing {
    const char *target;    /* where it goes: the end of symbolic links */
    const char *temporary; /* NULL: written in place, since it is a device or a pipe */
} Writing;

static const char *failure(Arena *arena, const char *path)
{
    const char *why = strerror(errno);
    if (strcmp(path, "-") == 0)
        return arena_printf(arena, "cannot write to standard output: %s", why);
    return arena_printf(arena, "cannot write %s: %s", path, why);
}

static int write_all(int fd, const char *text, size_t size)
{
    while (size) {
        ssize_t n = write(fd, text, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return 0;
        text += n;
        size -= (size_t)n;
    }
    return 1;
}

/* Writes and closes; errno tells why it gives 0. */
static int write_and_close(int fd, const File *file)
{
    if (fd < 0)
        return 0;
    int written = write_all(fd, file->text, file->size);
    int why = errno;
    if (close(fd) != 0 && written)
        return 0;
    errno = why;
    return written;
}

static const char *follow_links(Arena *arena, const char *path)
{
    char *real = realpath(path, NULL);
    if (!real)
        return path; /* it does not exist yet */
    const char *copy = arena_copy(arena, real, strlen(real));
    free(real);
    return copy;
}

/* Opens a new file beside the target. */
static int open_temporary(Arena *arena, Writing *w)
{
    for (int attempt = 0; attempt < 100; attempt++) {
        char *name = arena_printf(arena, "%s.%ld-%d.tmp", w->target, (long)getpid(), attempt);
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            w->temporary = name;
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Puts the text beside the target, or into it if it is no regular file. */
static int put(Arena *arena, Writing *w, const File *file)
{
    struct stat facts;
    if (strcmp(file->path, "-") == 0)
        return write_all(STDOUT_FILENO, file->text, file->size);
    w->target = follow_links(arena, file->path);
    int exists = stat(w->target, &facts) == 0;
    if (exists && !S_ISREG(facts.st_mode))
        return write_and_close(open(w->target, O_WRONLY | O_CLOEXEC), file);
    if (exists && access(w->target, W_OK) != 0)
        return 0; /* renaming would replace a file that may not be written */
    int fd = open_temporary(arena, w);
    if (fd >= 0 && exists)
        (void)!fchmod(fd, facts.st_mode & 07777); /* keeps an executable executable; best effort */
    return write_and_close(fd, file);
}

const char *files_write(Arena *arena, const File *file, int count)
{
    Writing *w = new_array(arena, Writing, count);
    const char *problem = NULL;
    for (int i = 0; i < count && !problem; i++)
        if (!put(arena, &w[i], &file[i]))
            problem = failure(arena, file[i].path);
    for (int i = 0; i < count; i++) {
        if (!w[i].temporary)
            continue;
        if (!problem && rename(w[i].temporary, w[i].target) != 0)
            problem = failure(arena, file[i].path);
        if (problem)
            unlink(w[i].temporary);
    }
    return problem;
}
