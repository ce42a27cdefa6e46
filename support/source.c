/* Source files, and offsets turned into lines and columns. */
#include "support/source.h"
#include "support/vec.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void sources_init(Sources *s, Arena *arena)
{
    *s = (Sources){.arena = arena};
}

/* Newlines in the bytes [from, to) of the text. */
static int count_newlines(const Source *source, size_t from, size_t to)
{
    int count = 0;
    for (size_t i = from; i < to; i++)
        count += source->text[i] == '\n';
    return count;
}

void source_set_text(Sources *s, Source *source, const char *text, size_t size)
{
    size_t blocks = size / SOURCE_BLOCK;
    source->text = text;
    source->size = size;
    source->newlines = new_array(s->arena, int, blocks + 1);
    for (size_t i = 0; i < blocks; i++)
        source->newlines[i + 1] =
            source->newlines[i] + count_newlines(source, i * SOURCE_BLOCK, (i + 1) * SOURCE_BLOCK);
}

/* Like source_add, for text that is already in the arena. */
static Source *add(Sources *s, const char *path, const char *text, size_t size)
{
    Source *source = new (s->arena, Source);
    *source = (Source){
        .path = arena_copy(s->arena, path, strlen(path)), .index = s->count, .first_line = 1};
    source_set_text(s, source, text, size);
    if (s->count == s->room)
        s->files = vec_grow(s->arena, s->files, s->count, &s->room, sizeof *s->files);
    return s->files[s->count++] = source;
}

Source *source_add(Sources *s, const char *path, const char *text, size_t size)
{
    return add(s, path, arena_copy(s->arena, text, size), size);
}

/* Reads the descriptor to its end into *text, which has `room` bytes and is replaced when that is
 * too little; gives the size, or -1 with *why. */
static ssize_t read_all(Arena *arena, int fd, char **text, size_t room, const char **why)
{
    size_t size = 0;
    for (;;) {
        if (size == room - 1) {
            char *larger = new_array(arena, char, 2 * room);
            memcpy(larger, *text, size);
            *text = larger;
            room *= 2;
        }
        ssize_t got = read(fd, *text + size, room - 1 - size);
        if (got > 0 && size + (size_t)got <= SOURCE_MAX) {
            size += (size_t)got;
            continue;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got != 0)
            *why = got < 0 ? strerror(errno) : "it is larger than 16 MiB";
        break;
    }
    (*text)[size] = '\0';
    return *why ? -1 : (ssize_t)size;
}

Source *source_read(Sources *s, const char *path, const char **why)
{
    int is_stdin = strcmp(path, "-") == 0;
    struct stat facts;
    size_t room = 4096;
    if (!is_stdin && stat(path, &facts) == 0 && S_ISREG(facts.st_mode) &&
        facts.st_size <= SOURCE_MAX)
        room = (size_t)facts.st_size + 2; /* the NUL, and one to see the end of the file */
    char *text =
        new_array(s->arena, char, room); /* before open, so that no file stays open if it fails */
    *why = NULL;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        *why = strerror(errno);
        return NULL;
    }
    ssize_t size = read_all(s->arena, fd, &text, room, why);
    if (!is_stdin)
        close(fd);
    return *why ? NULL : add(s, is_stdin ? "<stdin>" : path, text, (size_t)size);
}

static const char split_line[] = "// -----";

int source_split(Sources *s, Source *whole, Source ***parts)
{
    Vec(Source *) found = {0};
    const char *begin = whole->text, *end = whole->text + whole->size;
    int line = whole->first_line, first_line = line;
    for (const char *p = begin; p < end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        const char *next = newline ? newline + 1 : end;
        if ((size_t)(end - p) >= sizeof split_line - 1 &&
            memcmp(p, split_line, sizeof split_line - 1) == 0) {
            Source *part = source_add(s, whole->path, begin, (size_t)(p - begin));
            part->first_line = first_line;
            vec_push(s->arena, &found, part);
            begin = next;
            first_line = line + 1;
        }
        p = next;
    }
    Source *rest = whole;
    if (found.n) {
        rest = source_add(s, whole->path, begin, (size_t)(end - begin));
        rest->first_line = first_line;
    }
    vec_push(s->arena, &found, rest);
    *parts = found.at;
    return found.n;
}

Source *source_of(const Sources *s, Span span)
{
    return span.file == 0 || (int)span.file > s->count ? NULL : s->files[span.file - 1];
}

const char *source_line(const Source *source, uint32_t offset, size_t *length)
{
    size_t begin = offset < source->size ? offset : source->size;
    const char *before = memrchr(source->text, '\n', begin);
    begin = before ? (size_t)(before + 1 - source->text) : 0;
    const char *newline = memchr(source->text + begin, '\n', source->size - begin);
    size_t end = newline ? (size_t)(newline - source->text) : source->size;
    if (end > begin && source->text[end - 1] == '\r')
        end--;
    *length = end - begin;
    return source->text + begin;
}

int line_of(const Sources *s, uint32_t file, uint32_t offset)
{
    const Source *source = source_of(s, (Span){.file = file});
    if (!source)
        return 0;
    size_t end = offset < source->size ? offset : source->size, block = end / SOURCE_BLOCK;
    return source->first_line + source->newlines[block] +
           count_newlines(source, block * SOURCE_BLOCK, end);
}

Place place_of(const Sources *s, uint32_t file, uint32_t offset)
{
    const Source *source = source_of(s, (Span){.file = file});
    if (!source)
        return (Place){.path = NULL};
    Place place = {.path = source->path, .line = line_of(s, file, offset), .column = 1};
    size_t length, end = offset < source->size ? offset : source->size;
    for (const char *p = source_line(source, offset, &length); p < source->text + end; p++)
        place.column += (*p & 0xc0) != 0x80;
    return place;
}

Span span_join(Span first, Span last)
{
    if (first.file == 0)
        return last;
    if (first.file != last.file)
        return first;
    return (Span){.file = first.file,
                  .begin = first.begin < last.begin ? first.begin : last.begin,
                  .end = first.end > last.end ? first.end : last.end};
}
