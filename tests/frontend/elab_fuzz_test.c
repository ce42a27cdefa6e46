/* Exchanges words of the files named on the command line for other words of them, in many random,
 * but always the same, ways, and elaborates what still parses: it must end, complain at no place
 * twice, and what has no error must be a sound program. Worth most under ASan and UBSan.
 */
#include "frontend/elab.h"
#include "frontend/parse.h"
#include "ir/verify.h"
#include "check.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 2000, LARGEST = 1 << 14, MAX_WORDS = 1 << 14 };

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

typedef struct Word {
    const char *at;
    uint32_t size;
} Word;

typedef struct File {
    char text[LARGEST + 1];
    Word word[MAX_WORDS];
    uint32_t words;
} File;

/* Names and numbers are words, and so is every other character; comments are left out. */
static void split(File *f)
{
    const char *p = f->text;
    while (*p && f->words < MAX_WORDS) {
        const char *end = p + 1;
        if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n");
            continue;
        }
        if (isalnum((unsigned char)*p) || *p == '_')
            while (isalnum((unsigned char)*end) || *end == '_')
                end++;
        if (*p == '"' && strchr(end, '"'))
            end = strchr(end, '"') + 1;
        f->word[f->words++] = (Word){p, (uint32_t)(end - p)};
        p = end;
    }
}

static int is_alike(const Word *a, const Word *b)
{
    unsigned char x = (unsigned char)*a->at, y = (unsigned char)*b->at;
    return (isdigit(x) != 0) == (isdigit(y) != 0) && (isalpha(x) != 0) == (isalpha(y) != 0);
}

/* The file with a few words exchanged, mostly for words of the same kind. */
static size_t vary(const File *f, const File *files, uint32_t n, char *out)
{
    static Word words[MAX_WORDS];
    size_t size = 0;
    memcpy(words, f->word, sizeof *words * f->words);
    for (uint32_t changes = 1 + draw(3); changes > 0; changes--) {
        Word *old = &words[draw(f->words)];
        for (int tries = 0; tries < 100; tries++) {
            const File *other = draw(2) ? f : &files[draw(n)];
            const Word *fresh = &other->word[draw(other->words)];
            if (isspace((unsigned char)*old->at) || isspace((unsigned char)*fresh->at) ||
                !is_alike(old, fresh)) {
                old = &words[draw(f->words)];
                continue;
            }
            *old = *fresh;
            break;
        }
    }
    for (uint32_t i = 0; i < f->words && size + words[i].size < LARGEST; i++) {
        memcpy(out + size, words[i].at, words[i].size);
        size += words[i].size;
    }
    out[size] = '\0';
    return size;
}

static int is_same_place(const Diag *a, const Diag *b)
{
    return a->severity == b->severity && a->code == b->code && a->span.begin == b->span.begin &&
           a->span.end == b->span.end && strcmp(a->text, b->text) == 0;
}

/* Gives whether the text was elaborated without errors. */
static int check_text(const char *text, size_t size)
{
    Arena arena = {0};
    Sources sources;
    Diags diags;
    Names names;
    ElabOptions options = {.define_count = 0};
    int sound = 0;
    sources_init(&sources, &arena);
    diags_init(&diags, &arena, &sources);
    names_init(&names, &arena);
    diags.max_errors = 0;
    Ast *ast = parse(source_add(&sources, "f.amp", text, size), &diags, &names, &arena);
    if (diags.errors == 0) {
        Program *program = elaborate(ast, &options, &diags, &names, &arena);
        sound = diags.errors == 0;
        if (sound)
            verify_program(program, "elaborate");
        CHECK(sound == (diags.errors == 0));
        for (const Diag *d = diags.first; d; d = d->next)
            for (const Diag *other = d->next; other; other = other->next)
                CHECK(!is_same_place(d, other));
        Out o;
        out_init(&o, &arena);
        diags_print(&diags, &o, 0);
        if (check_failed)
            fprintf(stderr, "%s\n%s\n", text, o.text);
    }
    arena_free(&arena);
    return sound;
}

static void load(const char *path, File *f)
{
    FILE *file = fopen(path, "rb");
    CHECK(file != NULL);
    if (!file)
        return;
    f->text[fread(f->text, 1, LARGEST, file)] = '\0';
    fclose(file);
    split(f);
}

int main(int count, char **args)
{
    File *files = calloc((size_t)count, sizeof *files);
    char *text = malloc(LARGEST + 1);
    uint32_t n = 0;
    int sound = 0;
    for (int i = 1; i < count; i++)
        load(args[i], &files[n++]);
    CHECK(n > 0);
    for (int round = 0; n > 0 && round < ROUNDS && !check_failed; round++) {
        const File *f = &files[draw(n)];
        sound += check_text(text, vary(f, files, n, text));
    }
    CHECK(sound > ROUNDS / 100); /* some of it gets through */
    free(text);
    free(files);
    return check_done();
}
