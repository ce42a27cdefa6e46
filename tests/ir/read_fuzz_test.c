/* Takes IR texts apart in many random, but always the same, ways and reads what comes out: wrong
 * text is errors and nothing worse; right text prints to a fixpoint, and the passes, with the
 * verifier behind each, find nothing that breaks our own rules. Worth most under ASan and UBSan.
 */
#include "check.h"
#include "ir/text.h"
#include "passes/levels.h"
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 6000, LARGEST = 1 << 14 };

static uint64_t state = 1;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return below ? (uint32_t)(state >> 33) % below : 0;
}

/* Words that are put in place of others. */
static const char *const pieces[] = {
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    "=",
    "..",
    "#",
    "@0:1",
    "\"",
    "|",
    "%",
    "-",
    "1",
    "0",
    "2",
    "-1",
    "3000000000",
    "9223372036854775807",
    "-9223372036854775808",
    "N",
    "M",
    "x",
    "h",
    "\n",
    "float",
    "f32",
    "f16",
    "bf16",
    "i32",
    "u8",
    "bool",
    "axis",
    "axes=[0]",
    "inside",
    "pinned",
    "read",
    "matmul",
    "true",
    "mean",
    "sum",
    "update",
    "backward",
    "exp",
    "neg",
    "region=bf16",
    "region=off",
    "//",
    "\\",
    "\xff",
    "max",
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

static int is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '%';
}

/* The word, or the single character, at or behind a place. */
static uint32_t word_at(const Buffer *b, uint32_t *begin)
{
    uint32_t size = 0;
    while (*begin > 0 && is_word_byte(b->at[*begin]) && is_word_byte(b->at[*begin - 1]))
        --*begin;
    while (*begin + size < b->size && is_word_byte(b->at[*begin + size]))
        size++;
    return size ? size : *begin < b->size;
}

static uint32_t line_at(const Buffer *b, uint32_t *begin)
{
    uint32_t size = 0;
    while (*begin > 0 && b->at[*begin - 1] != '\n')
        --*begin;
    while (*begin + size < b->size && b->at[*begin + size] != '\n')
        size++;
    return *begin + size < b->size ? size + 1 : size;
}

static void mutate(Buffer *b, const Buffer *other)
{
    uint32_t begin = draw(b->size), from = draw(other->size), size, other_size;
    const char *piece = pieces[draw(sizeof pieces / sizeof *pieces)];
    switch (draw(8)) {
    case 0: /* another word */
        size = word_at(b, &begin);
        replace(b, begin, size, piece, (uint32_t)strlen(piece));
        break;
    case 1:
    case 2: /* a word of some file */
        size = word_at(b, &begin);
        other_size = word_at(other, &from);
        replace(b, begin, size, other->at + from, other_size);
        break;
    case 3: /* a word more */
        size = word_at(b, &begin);
        replace(b, begin + size, 0, piece, (uint32_t)strlen(piece));
        break;
    case 4: /* a line of some file */
        size = line_at(b, &begin);
        other_size = line_at(other, &from);
        replace(b, begin, 0, other->at + from, other_size);
        break;
    case 5: /* a line less */
        size = line_at(b, &begin);
        replace(b, begin, size, "", 0);
        break;
    case 6: /* a word less */
        size = word_at(b, &begin);
        replace(b, begin, size, "", 0);
        break;
    default: /* any byte; now and then the rest goes */
        if (b->size && draw(8))
            b->at[begin] = (char)draw(256);
        else
            b->size = begin;
    }
}

typedef struct Work {
    Arena arena, scratch;
    Sources sources;
    Diags diags;
    Names names;
} Work;

static Program *read_text(Work *w, const char *text, size_t size)
{
    sources_init(&w->sources, &w->arena);
    diags_init(&w->diags, &w->arena, &w->sources);
    names_init(&w->names, &w->arena);
    return program_read(source_add(&w->sources, "f.ir", text, size), &w->diags, &w->names,
                        &w->arena);
}

static const char *print(Work *w, Program *p)
{
    Out o;
    out_init(&o, &w->arena);
    program_print(&o, p, PRINT_SPANS);
    return o.text;
}

static void check_diags(Work *w)
{
    Out o;
    out_init(&o, &w->arena);
    diags_print(&w->diags, &o, 1);
    for (const Diag *d = w->diags.first; d; d = d->next) {
        CHECK(d->code != CODE_INTERNAL);
        if (d->code == CODE_INTERNAL)
            fputs(d->text, stderr);
    }
}

static void run_passes(Work *w, Program *p, int level)
{
    Settings settings = {.level = level,
                         .half = level & 1 ? DT_F16 : DT_BF16,
                         .keep_norm_f32 = UNSET,
                         .master_weights = UNSET,
                         .cast_model_type = DT_NONE,
                         .torch_policy = level == 2,
                         .policy_given = level == 2,
                         .verify = 1};
    Unit u = {.arena = &w->arena,
              .scratch = &w->scratch,
              .names = &w->names,
              .diags = &w->diags,
              .settings = &settings,
              .program = p};
    if (p->stage < CASTED)
        resolve_properties(&u);
    if (!w->diags.errors)
        passes_run(&u, NULL, "expand");
    check_diags(w);
}

static int programs; /* that were read without an error */

static void check_text(const char *text, size_t size, int level)
{
    Work once = {.scratch = {0}}, twice = {.scratch = {0}};
    Program *p = read_text(&once, text, size);
    check_diags(&once);
    if (!once.diags.errors) {
        const char *printed = print(&once, p);
        Program *again = read_text(&twice, printed, strlen(printed));
        check_diags(&twice);
        CHECK(!twice.diags.errors);
        int same = !twice.diags.errors && !strcmp(printed, print(&twice, again));
        CHECK(same);
        if (!same)
            fputs(printed, stderr);
        programs++;
        run_passes(&once, p, level);
    }
    arena_free(&once.arena);
    arena_free(&once.scratch);
    arena_free(&twice.arena);
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
        for (int level = 0; level < 4; level++)
            check_text(files[i].at, files[i].size, level);
    for (int round = 0; n > 0 && round < ROUNDS; round++) {
        *b = files[draw((uint32_t)n)];
        for (uint32_t changes = 1 + draw(3); changes > 0; changes--)
            mutate(b, &files[draw((uint32_t)n)]);
        b->at[b->size] = '\0';
        check_text(b->at, b->size, (int)draw(4));
    }
    CHECK(programs > ROUNDS / 50);
    free(files);
    free(b);
    return check_done();
}
