/* How messages look, what the -W options do, and what --verify-diagnostics accepts. */
#include "support/diag.h"
#include "check.h"
#include <string.h>

static Arena arena;
static Sources sources;
static Diags diags;

/* A fresh list, and one file whose text it is about. */
static void start(const char *text)
{
    sources_init(&sources, &arena);
    diags_init(&diags, &arena, &sources);
    source_add(&sources, "t.amp", text, strlen(text));
}

/* The first place where `part` stands in the file. */
static Span span_of(const char *part)
{
    const char *text = sources.files[0]->text, *found = strstr(text, part);
    uint32_t begin = (uint32_t)(found - text);
    return (Span){1, begin, begin + (uint32_t)strlen(part)};
}

static int prints(const char *wanted)
{
    Out o;
    out_init(&o, &arena);
    diags_print(&diags, &o, 0);
    if (strcmp(o.text, wanted) != 0)
        fprintf(stderr, "wanted:\n%sfound:\n%s", wanted, o.text);
    return strcmp(o.text, wanted) == 0;
}

static void layout(void)
{
    start("y = f(x);\n\th = matmul(x, w1);\n");
    Diag *d = error_at(&diags, CODE_SHAPE, span_of("matmul(x, w1)"), "found %d and %d", 784, 748);
    mark_at(d, span_of("h ="));
    note_at(d, span_of("f(x)"), "'%s' is here", "f");
    fix_at(d, span_of("w1"), "w2");
    fix_at(d, span_of("x, "), "");
    fix_at(d, (Span){1, 9, 9}, ";");
    warn_at(&diags, CODE_UNUSED, span_of("y"), "unused");
    system_error(&diags, "cannot write %s", "out.c");
    CHECK(prints("t.amp:2:6: error: found 784 and 748  [shape]\n"
                 "    2 |     h = matmul(x, w1);\n"
                 "      |     ~~~ ^~~~~~~~~~~~~\n"
                 "t.amp:1:5: note: 'f' is here\n"
                 "    1 | y = f(x);\n"
                 "      |     ^~~~\n"
                 "t.amp:2:16: fix: replace 'w1' with 'w2'\n"
                 "t.amp:2:13: fix: remove 'x, '\n"
                 "t.amp:1:10: fix: insert ';'\n"
                 "t.amp:1:1: warning: unused  [-Wunused]\n"
                 "    1 | y = f(x);\n"
                 "      | ^\n"
                 "ampc: error: cannot write out.c  [system]\n"));
    CHECK_EQ(diags.errors, 2);
    CHECK_EQ(diags.warnings, 1);
}

static void widths(void)
{
    start("s = \"\xe6\x97\xa5\xc3\xa4\xcc\x81\" + bad; \x1b[31m\xe2\x80\xae\n");
    error_at(&diags, CODE_NAME, span_of("bad"), "wide");
    CHECK(
        prints("t.amp:1:13: error: wide  [name]\n"
               "    1 | s = \"\xe6\x97\xa5\xc3\xa4\xcc\x81\" + bad; \xef\xbf\xbd[31m\xef\xbf\xbd\n"
               "      |             ^~~\n"));
    start("first line\nlast");
    error_at(&diags, CODE_SYNTAX, (Span){1, 6, 13}, "two lines");
    error_at(&diags, CODE_SYNTAX, (Span){1, 15, 15}, "the end");
    CHECK(prints("t.amp:1:7: error: two lines  [syntax]\n"
                 "    1 | first line\n"
                 "      |       ^~~~\n"
                 "t.amp:2:5: error: the end  [syntax]\n"
                 "    2 | last\n"
                 "      |     ^\n"));
}

static void long_lines(void)
{
    char text[2001];
    memset(text, 'a', 2000);
    text[2000] = '\0';
    text[1500] = 'b';
    start(text);
    error_at(&diags, CODE_SYNTAX, (Span){1, 1500, 1990}, "far right");
    Out o;
    out_init(&o, &arena);
    diags_print(&diags, &o, 0);
    CHECK(o.size < 500); /* a window of the line */
    const char *mark = strchr(o.text, '^'), *letter = strstr(o.text, "ab");
    CHECK(mark && letter && strlen(letter) > strlen(mark));
    const char *line = strstr(o.text, " | ") + 3, *marks = strstr(line, " | ") + 3;
    CHECK_EQ(mark - marks, letter + 1 - line);
}

static void colours(void)
{
    start("x");
    error_at(&diags, CODE_SYNTAX, span_of("x"), "e");
    Out o;
    out_init(&o, &arena);
    diags_print(&diags, &o, 1);
    CHECK(strstr(o.text, "\033[1;31merror: \033[0m") != NULL);
    CHECK(strstr(o.text, "\033[1;32m^\033[0m") != NULL);
}

static void options(void)
{
    start("x");
    CHECK(warn_at(&diags, CODE_CAST_SIZE, span_of("x"), "off by default") == NULL);
    note_at(NULL, span_of("x"), "nothing to hang on");
    fix_at(NULL, span_of("x"), "y");
    mark_at(NULL, span_of("x"));
    CHECK(diags_option(&diags, "cast-size"));
    CHECK(warn_at(&diags, CODE_CAST_SIZE, span_of("x"), "on") != NULL);
    CHECK(diags_option(&diags, "no-cast-size"));
    CHECK(warn_at(&diags, CODE_CAST_SIZE, span_of("x"), "off") == NULL);
    CHECK(diags_option(&diags, "error=cast-size"));
    CHECK_EQ(warn_at(&diags, CODE_CAST_SIZE, span_of("x"), "error")->severity, ERROR);
    CHECK(diags_option(&diags, "error"));
    CHECK_EQ(warn_at(&diags, CODE_UNUSED, span_of("x"), "error")->severity, ERROR);
    CHECK(diags_option(&diags, "no-error=unused"));
    CHECK_EQ(warn_at(&diags, CODE_UNUSED, span_of("x"), "warning")->severity, WARNING);
    CHECK(diags_option(&diags, "no-error"));
    CHECK(diags_option(&diags, "all"));
    CHECK(!diags_option(&diags, "syntax")); /* errors have no switch */
    CHECK(!diags_option(&diags, "no-such-thing"));
    CHECK(!diags_option(&diags, "error=no-such-thing"));
    CHECK_EQ(diags.errors, 2);
    CHECK_EQ(diags.warnings, 2);
    CHECK(remark_at(&diags, span_of("x"), "off") == NULL);
    diags.remarks = 1;
    CHECK(remark_at(&diags, span_of("x"), "on") != NULL);
    CHECK_EQ(code_find("shape"), CODE_SHAPE);
    CHECK_EQ(code_find("shapes"), -1);
    CHECK(strlen(code_explanation(CODE_SHAPE)) > 10);
}

static void limit(void)
{
    start("x");
    diags.max_errors = 2;
    CHECK(error_at(&diags, CODE_NAME, span_of("x"), "1") != NULL);
    CHECK(error_at(&diags, CODE_NAME, span_of("x"), "2") != NULL);
    CHECK(!diags_full(&diags));
    CHECK(error_at(&diags, CODE_NAME, span_of("x"), "3") == NULL);
    CHECK(diags_full(&diags));
    CHECK_EQ(diags.errors, 3);
    Out o;
    out_init(&o, &arena);
    diags_print(&diags, &o, 0);
    CHECK(strstr(o.text, "stopped after 2 errors") != NULL);
}

static int verify(const char *wanted)
{
    Out o;
    out_init(&o, &arena);
    int differences = diags_verify(&diags, &o);
    if (strcmp(o.text, wanted) != 0)
        fprintf(stderr, "wanted:\n%sfound:\n%s", wanted, o.text);
    CHECK_EQ(differences == 0, *wanted == '\0');
    return strcmp(o.text, wanted) == 0;
}

static void verification(void)
{
    start("bad; // expected-error {{is bad}}\n"
          "// expected-note@-1 {{here}} expected-warning@+1 {{odd}}\n"
          "odd;\n"
          "// expected-error@* {{cannot write}}\n");
    Diag *d = error_at(&diags, CODE_NAME, span_of("bad"), "this is bad");
    note_at(d, span_of("bad"), "here");
    fix_at(d, span_of("bad"), "good"); /* need not be expected */
    warn_at(&diags, CODE_UNUSED, span_of("odd;"), "odd");
    system_error(&diags, "cannot write x");
    CHECK(verify(""));

    start("a // expected-error {{one}}\n"
          "b // expected-error {{two}} expected-fix {{replace 'b' with 'c'}}\n");
    error_at(&diags, CODE_NAME, span_of("b"), "one"); /* on the wrong line */
    fix_at(error_at(&diags, CODE_NAME, span_of("b"), "two"), span_of("b"), "d");
    CHECK(verify("t.amp:2: unexpected error: one\n"
                 "t.amp:1: missing error: one\n"
                 "t.amp:2: missing fix: replace 'b' with 'c'\n"));

    start("a // expected-error {{same}}\n");
    error_at(&diags, CODE_NAME, span_of("a"), "same");
    error_at(&diags, CODE_NAME, span_of("a"), "same"); /* once is expected, not twice */
    CHECK(verify("t.amp:1: unexpected error: same\n"));

    start("a // expected-error {{same}}\n");
    warn_at(&diags, CODE_UNUSED, span_of("a"), "same"); /* of another kind */
    CHECK(verify("t.amp:1: unexpected warning: same\n"
                 "t.amp:1: missing error: same\n"));

    start("a // expected-eror {{x}}\n");
    CHECK(verify("t.amp:1: cannot read this expected error: eror {{x}}\n"));
}

int main(void)
{
    layout();
    widths();
    long_lines();
    colours();
    options();
    limit();
    verification();
    arena_free(&arena);
    return check_done();
}
