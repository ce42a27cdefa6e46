/* Takes the files named on the command line apart in many random, but always the same, ways and
 * parses what comes out: it must end, complain at no place twice, and what parses must print to a
 * fixpoint. Worth most under ASan and UBSan.
 */
#include "frontend/parse.h"
#include "check.h"
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 4000, LARGEST = 1 << 14 };

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return below ? (uint32_t)(state >> 33) % below : 0;
}

/* What is put in: tokens and pieces of tokens, right and wrong ones. */
static const char *const pieces[] = {
    "(",          ")",        "[",       "]",        "{",      "}",        ",",
    ";",          ":",        "=",       ":=",       ".",      "..",       "->",
    "|>",         "||",       "&&",      "==",       "-",      "!",        "*",
    "@",          " x ",      " 1 ",     " 1.5e3 ",  "\"s\"",  "\"",       "\n",
    "/*",         "*/",       "//",      "///",      " f32",   " model ",  " if ",
    " else ",     " return ", " layer ", " train ",  " step ", " in ",     " group ",
    " backward ", " into ",   "\\",      "\xc3\xa4", "\xff",   "0x",       "9999999999999999999",
    "'",          "#",        "$",       "1e",       "\r\n",   " extern ", " op ",
    " split ",    " amp ",    " const ", " struct ",
};

typedef struct Buffer {
    char at[LARGEST + 1];
    uint32_t size;
} Buffer;

static void replace(Buffer *b, uint32_t begin, uint32_t old_size, const char *piece, uint32_t size)
{
    if (b->size - old_size + size > LARGEST)
        return;
    memmove(b->at + begin + size, b->at + begin + old_size, b->size - begin - old_size);
    memcpy(b->at + begin, piece, size);
    b->size += size - old_size;
}

static void mutate(Buffer *b, const Buffer *other)
{
    uint32_t begin = draw(b->size + 1), rest = b->size - begin;
    const char *piece = pieces[draw(sizeof pieces / sizeof *pieces)];
    switch (draw(6)) {
    case 0: /* insert */
        replace(b, begin, 0, piece, (uint32_t)strlen(piece));
        break;
    case 1: /* replace a character */
        replace(b, begin, rest > 0, piece, (uint32_t)strlen(piece));
        break;
    case 2: /* remove a few */
        replace(b, begin, draw(rest < 30 ? rest + 1 : 30), "", 0);
        break;
    case 3: /* remove much */
        replace(b, begin, draw(rest + 1), "", 0);
        break;
    case 4: { /* a part of another file */
        uint32_t from = draw(other->size),
                 size = draw(other->size - from < 200 ? other->size - from : 200);
        replace(b, begin, 0, other->at + from, size);
        break;
    }
    default: /* any byte */
        if (rest)
            b->at[begin] = (char)draw(256);
    }
}

static int is_same_place(const Diag *a, const Diag *b)
{
    return a->span.begin == b->span.begin && a->span.end == b->span.end && a->code == b->code;
}

/* Parses; *printed gets the canonical text if there was no error, else NULL. */
static void parse_text(Arena *arena, const char *text, size_t size, const char **printed)
{
    Sources sources;
    Diags diags;
    Names names;
    sources_init(&sources, arena);
    diags_init(&diags, arena, &sources);
    names_init(&names, arena);
    diags.max_errors = 0;
    Ast *ast = parse(source_add(&sources, "f.amp", text, size), &diags, &names, arena);
    for (const Diag *d = diags.first; d && d->next; d = d->next)
        CHECK(!is_same_place(d, d->next));
    CHECK((size_t)diags.errors <= size + 1);
    Out o;
    out_init(&o, arena);
    diags_print(&diags, &o, 1);
    CHECK((diags.first != NULL) == (o.size > 0));
    out_init(&o, arena);
    if (diags.errors == 0)
        ast_print(ast, &o);
    *printed = diags.errors ? NULL : o.text;
}

static void check_text(const Buffer *b)
{
    Arena arena = {0};
    const char *once, *twice;
    parse_text(&arena, b->at, b->size, &once);
    if (once) {
        parse_text(&arena, once, strlen(once), &twice);
        CHECK(twice && strcmp(once, twice) == 0);
    }
    arena_free(&arena);
}

static void load(const char *path, Buffer *b)
{
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    if (!file)
        return;
    b->size = (uint32_t)fread(b->at, 1, LARGEST, file);
    fclose(file);
}

int main(int count, char **args)
{
    Buffer *files = calloc((size_t)count, sizeof *files), *b = malloc(sizeof *b);
    int n = 0;
    for (int i = 1; i < count; i++)
        load(args[i], &files[n++]);
    CHECK(n > 0);
    for (int i = 0; i < n; i++)
        check_text(&files[i]);
    for (int round = 0; n > 0 && round < ROUNDS; round++) {
        *b = files[draw((uint32_t)n)];
        for (uint32_t changes = 1 + draw(8); changes > 0; changes--)
            mutate(b, &files[draw((uint32_t)n)]);
        b->at[b->size] = '\0';
        check_text(b);
    }
    free(files);
    free(b);
    return check_done();
}
