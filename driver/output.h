/* Files that appear complete or not at all: each is written under another name beside its own and
 * then renamed, once all of them could be written.
 *
 *     File files[] = {{"digits.c", text, size}, {"digits.h", header, header_size}};
 *     const char *why = files_write(&arena, files, 2);        "cannot write digits.c: No space left …"
 */
#ifndef AMPC_DRIVER_OUTPUT_H
#define AMPC_DRIVER_OUTPUT_H
#include "support/arena.h"

typedef struct File {
    const char *path; /* "-": standard output */
    const char *text;
    size_t size;
} File;

/* Gives NULL, or what failed; then no file was changed. */
const char *files_write(Arena *arena, const File *file, int count);
#endif
