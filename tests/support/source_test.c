/* Offsets to lines and columns, with tabs, UTF-8 and both line ends; splitting; reading. */
#include "support/source.h"
#include "check.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Arena arena;
static Sources sources;

static int is_place(const Source *source, uint32_t offset, int line, int column)
{
    Place place = place_of(&sources, (uint32_t)source->index + 1, offset);
    return place.line == line && place.column == column && strcmp(place.path, source->path) == 0;
}

static void places(void)
{
    /*                  0 1  2       6    7  8  9         */
    const char text[] = "a\n\tx\xc3\xa4y\r\n\nend";
    Source *s = source_add(&sources, "t.amp", text, sizeof text - 1);
    CHECK(is_place(s, 0, 1, 1));
    CHECK(is_place(s, 1, 1, 2)); /* the newline itself */
    CHECK(is_place(s, 2, 2, 1));
    CHECK(is_place(s, 3, 2, 2));  /* a tab is one column */
    CHECK(is_place(s, 6, 2, 4));  /* so is a letter of two bytes */
    CHECK(is_place(s, 9, 3, 1));  /* an empty line */
    CHECK(is_place(s, 13, 4, 4)); /* the end */
    CHECK(is_place(s, 99, 4, 4)); /* and past it */
    size_t length;
    CHECK(strncmp(source_line(s, 4, &length), "\tx\xc3\xa4y", 5) == 0);
    CHECK_EQ(length, 5); /* without \r */
    CHECK(place_of(&sources, 0, 0).path == NULL);
    CHECK(source_of(&sources, (Span){1, 0, 0}) == s);
    CHECK(source_of(&sources, (Span){99, 0, 0}) == NULL);
}

/* Lines of a text of many blocks are those that counting gives. */
static void far_places(void)
{
    enum { SIZE = 5 * SOURCE_BLOCK };
    char text[SIZE + 1];
    for (int i = 0; i < SIZE; i++)
        text[i] = i % 37 == 36 || i % SOURCE_BLOCK == 0 ? '\n' : 'a';
    text[SIZE] = '\0';
    Source *s = source_add(&sources, "far.amp", text, SIZE);
    int line = 1, column = 1, right = 1;
    for (int i = 0; i <= SIZE; i++) {
        right &= is_place(s, (uint32_t)i, line, column);
        line += text[i] == '\n';
        column = text[i] == '\n' ? 1 : column + 1;
    }
    CHECK(right);
}

static void joins(void)
{
    Span joined = span_join((Span){1, 4, 6}, (Span){1, 9, 12});
    CHECK(joined.file == 1 && joined.begin == 4 && joined.end == 12);
    joined = span_join((Span){0}, (Span){1, 9, 12});
    CHECK(joined.file == 1 && joined.begin == 9);
    joined = span_join((Span){1, 4, 6}, (Span){2, 9, 12});
    CHECK(joined.file == 1 && joined.end == 6);
}

static void splits(void)
{
    Source **parts;
    const char text[] = "a\n// -----\nb\nc\n// ----- more\n";
    Source *whole = source_add(&sources, "s.amp", text, sizeof text - 1);
    CHECK_EQ(source_split(&sources, whole, &parts), 3);
    CHECK(strcmp(parts[0]->text, "a\n") == 0 && parts[0]->first_line == 1);
    CHECK(strcmp(parts[1]->text, "b\nc\n") == 0 && parts[1]->first_line == 3);
    CHECK(strcmp(parts[2]->text, "") == 0 && parts[2]->first_line == 6);
    CHECK(is_place(parts[1], 2, 4, 1)); /* lines are those of the whole file */
    Source *plain = source_add(&sources, "p.amp", "a // -----\n", 11);
    CHECK_EQ(source_split(&sources, plain, &parts), 1);
    CHECK(parts[0] == plain);
}

static void reading(void)
{
    const char *why = NULL;
    CHECK(source_read(&sources, "/no/such/file.amp", &why) == NULL && why);
    CHECK(source_read(&sources, "/", &why) == NULL && why);
    CHECK(source_read(&sources, "/dev/zero", &why) == NULL && strstr(why, "16 MiB"));
    Source *empty = source_read(&sources, "/dev/null", &why);
    CHECK(empty && empty->size == 0 && empty->text[0] == '\0');
    char path[] = "/tmp/ampc-source-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    for (int i = 0; i < 1000; i++)
        CHECK(write(fd, "0123456789", 10) == 10);
    close(fd);
    Source *s = source_read(&sources, path, &why);
    CHECK(s && s->size == 10000 && s->text[9999] == '9' && s->text[10000] == '\0');
    unlink(path);
}

int main(void)
{
    sources_init(&sources, &arena);
    places();
    far_places();
    joins();
    splits();
    reading();
    arena_free(&arena);
    return check_done();
}
