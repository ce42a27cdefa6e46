/* Indentation, positions, templates, and numbers that read back as they were. */
#include "support/out.h"
#include "support/str.h"
#include "check.h"
#include <math.h>
#include <string.h>

static Arena arena;

static void indentation(void)
{
    Out o;
    out_init(&o, &arena);
    out_line(&o, "for (%s) {", "i");
    out_indent(&o, 1);
    out_text(&o, "a;\n\nb");
    CHECK_EQ(o.line, 4);
    CHECK_EQ(o.column, 5);
    out_text(&o, ";\n");
    out_indent(&o, -3); /* never below 0 */
    out_text(&o, "}\n");
    CHECK(strcmp(o.text, "for (i) {\n    a;\n\n    b;\n}\n") == 0);
    CHECK_EQ(o.size, strlen(o.text));
    CHECK_EQ(o.line, 6);
    CHECK_EQ(o.column, 0);
    out_text(&o, "\xc3\xa4"); /* columns are characters */
    CHECK_EQ(o.column, 1);
}

static void growth(void)
{
    Out o;
    out_init(&o, &arena);
    for (int i = 0; i < 10000; i++)
        out_printf(&o, "%d\n", i);
    out_printf(&o, "%3000s", "x");
    CHECK_EQ(o.line, 10001);
    CHECK_EQ(o.column, 3000);
    CHECK_EQ(o.size, 48890 + 3000);
    CHECK(strncmp(o.text, "0\n1\n2\n", 6) == 0 && o.text[o.size] == '\0');
}

static int expands(const char *template_text, const char *wanted)
{
    static const char *const args[] = {"a", "b * c"};
    return strcmp(expand(&arena, template_text, args, 2), wanted) == 0;
}

static void templates(void)
{
    CHECK(expands("max($1, $2)", "max(a, b * c)"));
    CHECK(expands("$2$1$2", "b * cab * c"));
    CHECK(expands("no args", "no args"));
    CHECK(expands("", ""));
    CHECK(expands("$$1", "$1"));
    CHECK(expands("$3 $x $", "$3 $x $")); /* nothing stands for these */
}

static void number_texts(void)
{
    CHECK(strcmp(float_text(&arena, 0.1f), "0.1f") == 0);
    CHECK(strcmp(float_text(&arena, 1), "1.0f") == 0);
    CHECK(strcmp(float_text(&arena, -0.0f), "-0.0f") == 0);
    CHECK(strcmp(float_text(&arena, 1e20f), "1e20f") == 0);
    CHECK(strcmp(float_text(&arena, 1.5e-7f), "1.5e-7f") == 0);
    CHECK(strcmp(float_text(&arena, INFINITY), "INFINITY") == 0);
    CHECK(strcmp(float_text(&arena, -INFINITY), "-INFINITY") == 0);
    CHECK(strcmp(float_text(&arena, NAN), "NAN") == 0);
    CHECK(strcmp(double_text(&arena, 0.1), "0.1") == 0);
    CHECK(strcmp(double_text(&arena, 50257), "50257.0") == 0);
    CHECK(strcmp(double_text(&arena, 1000), "1000.0") == 0);
    CHECK(strcmp(double_text(&arena, 2000000), "2000000.0") == 0);
    CHECK(strcmp(double_text(&arena, 1e7), "1e7") == 0);
    CHECK(strcmp(double_text(&arena, 1e300), "1e300") == 0);
}

static void number_round_trips(void)
{
    int floats = 0, doubles = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t bits = i * 214733u; /* spread over all floats, subnormals included */
        float f;
        memcpy(&f, &bits, sizeof f);
        floats += isnan(f) || read_float(float_text(&arena, f)) == f;
        uint64_t wide = i * 922337203685477u;
        double d;
        memcpy(&d, &wide, sizeof d);
        doubles += isnan(d) || read_double(double_text(&arena, d)) == d;
        arena_reset(&arena);
    }
    CHECK_EQ(floats, 20000);
    CHECK_EQ(doubles, 20000);
}

int main(void)
{
    indentation();
    growth();
    templates();
    number_texts();
    number_round_trips();
    arena_free(&arena);
    return check_done();
}
