/* Source files and places in them. A span is two offsets into one file; lines and columns are
 * worked out only when something is printed. */
#ifndef AMPC_SUPPORT_SOURCE_H
#define AMPC_SUPPORT_SOURCE_H
#include "support/arena.h"
#include "support/str.h"

enum {
    SOURCE_MAX = 16 << 20, /* bytes of one file; larger ones are refused */
    SOURCE_BLOCK = 1024
};

typedef struct Source {
    const char *path; /* as the user gave it */
    const char *text; /* NUL-terminated; may hold NULs inside, see size */
    size_t size;
    int index;      /* in Sources */
    int first_line; /* number of the text's first line: more than 1 for parts after a // ----- line */
    int *
        newlines; /* before each SOURCE_BLOCK bytes, so that a line is found without counting all */
} Source;

typedef struct Span {
    uint32_t file; /* index in Sources, plus 1; 0: no place */
    uint32_t begin, end;
} Span;

typedef struct Sources {
    Arena *arena;
    Source **files;
    int count, room;
} Sources;

typedef struct Place {
    const char *path;
    int line, column; /* from 1; columns count code points */
} Place;

void sources_init(Sources *s, Arena *arena);
Source *source_add(Sources *s, const char *path, const char *text,
                   size_t size); /* copies the text */
/* Gives a source another text, which stays where it is. */
void source_set_text(Sources *s, Source *source, const char *text, size_t size);
Source *source_read(Sources *s, const char *path,
                    const char **why); /* "-": standard input; NULL: see why */
/* Adds each part of `whole` between lines that begin with "// -----" as a source of its own; *parts
 * gets them in order. One part, the whole itself, when there is no such line. */
int source_split(Sources *s, Source *whole, Source ***parts);
Source *source_of(const Sources *s, Span span);
Place place_of(const Sources *s, uint32_t file, uint32_t offset); /* file as in Span */
int line_of(const Sources *s, uint32_t file, uint32_t offset);    /* 0: no place */
Span span_join(Span first, Span last);
/* The line of text that holds the offset, without its newline. */
const char *source_line(const Source *source, uint32_t offset, size_t *length);
#endif
