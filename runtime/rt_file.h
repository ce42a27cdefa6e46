/* SPDX-License-Identifier: 0BSD */
/* Whole files: read into memory, and written so that a crash leaves the old file or the new one,
 * never half of one. A writer fills NAME.tmp-PID beside NAME; committing flushes it to the disk,
 * renames it, and flushes the directory, so that the new name survives a power cut.
 *
 *     RtWriter w;
 *     int status = rt_writer_open(&w, "digits.ckpt");
 *     if (!status)
 *         status = rt_writer_add(&w, data, bytes);
 *     status = rt_writer_close(&w, status);    commits if status is 0, else removes the temporary
 */
#ifndef AMPC_RT_FILE_H
#define AMPC_RT_FILE_H
#include "rt_base.h"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RT_FILE_MAX                                                                                \
    ((size_t)1 << 46) /* more bytes than this are refused before any memory is taken */

/* Memory that its holder frees. */
typedef struct RtBytes {
    uint8_t *data;
    size_t bytes;
} RtBytes;

RT_COLD void rt_bytes_free(RtBytes *b)
{
    free(b->data);
    b->data = NULL;
    b->bytes = 0;
}

/* Reads descriptor fd to its end; expected is what its size seems to be. */
RT_COLD int rt_file_read_all(int fd, size_t expected, const char *path, RtBytes *out)
{
    size_t room = expected + 1; /* the last byte stays free: reading it shows the end */
    out->data = (uint8_t *)malloc(room);
    out->bytes = 0;
    if (!out->data)
        return rt_fail(RT_SYSTEM, "cannot read %s: %s", path, strerror(ENOMEM));
    for (;;) {
        if (out->bytes == room) {
            uint8_t *more = room < RT_FILE_MAX ? (uint8_t *)realloc(out->data, 2 * room) : NULL;
            if (!more)
                return rt_fail(RT_SYSTEM, "cannot read %s: %s", path, strerror(ENOMEM));
            out->data = more;
            room *= 2;
        }
        ssize_t got = read(fd, out->data + out->bytes, room - out->bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return rt_fail(RT_SYSTEM, "cannot read %s: %s", path, strerror(errno));
        if (!got)
            return RT_OK;
        out->bytes += (size_t)got;
    }
}

/* The whole file at path. On failure out is empty. */
RT_COLD int rt_file_read(const char *path, RtBytes *out)
{
    struct stat about;
    memset(out, 0, sizeof *out);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return rt_fail(RT_SYSTEM, "cannot open %s: %s", path, strerror(errno));
    int status = RT_OK;
    if (fstat(fd, &about))
        status = rt_fail(RT_SYSTEM, "cannot read %s: %s", path, strerror(errno));
    else if (S_ISDIR(about.st_mode))
        status = rt_fail(RT_SYSTEM, "cannot read %s: %s", path, strerror(EISDIR));
    else if (about.st_size < 0 || (uint64_t)about.st_size > RT_FILE_MAX)
        status = rt_fail(RT_SYSTEM, "cannot read %s: %s", path, strerror(EFBIG));
    else
        status = rt_file_read_all(fd, (size_t)about.st_size, path, out);
    close(fd);
    if (status)
        rt_bytes_free(out);
    return status;
}

typedef struct RtWriter {
    int fd;          /* -1 when closed */
    char *path;      /* the final name */
    char *temporary; /* beside it, of this process */
} RtWriter;

/* "cannot write PATH: why", from errno. */
RT_COLD int rt_writer_fail(const RtWriter *w)
{
    return rt_fail(RT_SYSTEM, "cannot write %s: %s", w->path, strerror(errno));
}

RT_COLD void rt_writer_free(RtWriter *w)
{
    free(w->path);
    free(w->temporary);
    w->path = w->temporary = NULL;
}

/* Starts writing what will become the file at path; a device or a pipe there stays what it is. */
RT_COLD int rt_writer_open(RtWriter *w, const char *path)
{
    size_t room = strlen(path) + sizeof ".tmp-" + 24;
    struct stat facts;
    w->fd = -1;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISDIR(facts.st_mode))
        return rt_fail(RT_SYSTEM, "cannot write %s: it is no regular file", path);
    w->path = (char *)malloc(room);
    w->temporary = (char *)malloc(room);
    if (!w->path || !w->temporary) {
        rt_writer_free(w);
        return rt_fail(RT_SYSTEM, "cannot write %s: %s", path, strerror(ENOMEM));
    }
    snprintf(w->path, room, "%s", path);
    snprintf(w->temporary, room, "%s.tmp-%ld", path, (long)getpid());
    w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (w->fd >= 0)
        return RT_OK;
    rt_writer_fail(w);
    rt_writer_free(w);
    return RT_SYSTEM;
}

RT_COLD int rt_writer_add(RtWriter *w, const void *data, size_t bytes)
{
    const uint8_t *p = (const uint8_t *)data;
    while (bytes) {
        ssize_t done = write(w->fd, p, bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return rt_writer_fail(w);
        p += done;
        bytes -= (size_t)done;
    }
    return RT_OK;
}

/* Flushes the directory that holds w->path. */
RT_COLD int rt_writer_sync_directory(RtWriter *w)
{
    char *slash = strrchr(w->temporary, '/'); /* the temporary's name is no longer needed */
    const char *directory = w->temporary;
    if (!slash)
        directory = ".";
    else if (slash == w->temporary)
        directory = "/";
    else
        *slash = 0;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return rt_writer_fail(w);
    int failed = fsync(fd) && errno != EINVAL; /* some file systems cannot flush a directory */
    if (failed)
        rt_writer_fail(w);
    close(fd);
    return failed ? RT_SYSTEM : RT_OK;
}

/* Ends writing. With status 0 the file appears under its name, complete and on the disk; otherwise,
 * or when that fails, the temporary goes and the old file stays. Returns status or what failed. */
RT_COLD int rt_writer_close(RtWriter *w, int status)
{
    if (w->fd < 0)
        return status;
    if (!status && fsync(w->fd))
        status = rt_writer_fail(w);
    if (close(w->fd) && !status)
        status = rt_writer_fail(w);
    w->fd = -1;
    if (!status && rename(w->temporary, w->path))
        status = rt_writer_fail(w);
    if (status)
        unlink(w->temporary);
    else
        status = rt_writer_sync_directory(w);
    rt_writer_free(w);
    return status;
}

/* Writes a whole file in one go, with the same promise. */
RT_COLD int rt_file_write(const char *path, const void *data, size_t bytes)
{
    RtWriter w;
    int status = rt_writer_open(&w, path);
    if (!status)
        status = rt_writer_add(&w, data, bytes);
    return rt_writer_close(&w, status);
}
#endif
