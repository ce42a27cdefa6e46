/* Interning, UTF-8, the nearest name, globs. */
#include "support/str.h"
#include "check.h"
#include <locale.h>
#include <string.h>

static void interning(void)
{
    Arena a = {0};
    Names names;
    names_init(&names, &a);
    Str first[3000];
    for (int i = 0; i < 3000; i++) /* more than the table holds at first */
        first[i] = intern_printf(&names, "name%d", i);
    CHECK_EQ(names.count, 3000);
    int same = 1;
    for (int i = 0; i < 3000; i++) {
        char text[20];
        snprintf(text, sizeof text, "name%d", i);
        same &= intern(&names, text) == first[i] && strcmp(first[i], text) == 0;
    }
    CHECK(same);
    CHECK(intern(&names, "name1") != intern(&names, "name10"));
    CHECK(intern_n(&names, "name10", 5) == intern(&names, "name1"));
    CHECK(intern(&names, "") == intern_n(&names, "x", 0));
    arena_free(&a);
}

/* Names that are asked for again and again get the numbers that trying all from 2 would give. */
static void taking(void)
{
    Arena a = {0};
    Names all, taken;
    names_init(&all, &a);
    names_init(&taken, &a);
    Str x = intern(&all, "x");
    intern(&taken, "x_3"); /* somebody's own */
    CHECK(!names_hold(&taken, "x"));
    CHECK(take_name(&taken, &all, x, "_") == x);
    CHECK(names_hold(&taken, "x"));
    CHECK(take_name(&taken, &all, x, "_") == intern(&all, "x_2"));
    CHECK(take_name(&taken, &all, x, "_") == intern(&all, "x_4"));
    CHECK(take_name(&taken, &all, intern(&all, "x_4"), "_") == intern(&all, "x_4_2"));
    size_t before = all.count;
    for (int i = 5; i < 2000; i++)
        take_name(&taken, &all, x, "_");
    CHECK_EQ(all.count - before, 1995); /* none was tried in vain */
    CHECK(take_name(&taken, &all, x, "_") == intern(&all, "x_2000"));
    arena_free(&a);
}

static int length_of(const char *text, size_t bytes)
{
    uint32_t code_point;
    return utf8_decode(text, bytes, &code_point);
}

static void utf8(void)
{
    uint32_t c = 0;
    CHECK(utf8_decode("a", 1, &c) == 1 && c == 'a');
    CHECK(utf8_decode("\xc3\xa4", 2, &c) == 2 && c == 0xe4);
    CHECK(utf8_decode("\xe2\x82\xac", 3, &c) == 3 && c == 0x20ac);
    CHECK(utf8_decode("\xf0\x9f\x98\x80", 4, &c) == 4 && c == 0x1f600);
    CHECK(utf8_decode("\xf4\x8f\xbf\xbf", 4, &c) == 4 && c == 0x10ffff);
    CHECK_EQ(length_of("", 0), 0);
    CHECK_EQ(length_of("\x80", 1), 0);             /* a tail alone */
    CHECK_EQ(length_of("\xc3", 1), 0);             /* the tail is missing */
    CHECK_EQ(length_of("\xc3z", 2), 0);            /* something else instead */
    CHECK_EQ(length_of("\xc0\x80", 2), 0);         /* overlong */
    CHECK_EQ(length_of("\xe0\x80\x80", 3), 0);     /* overlong */
    CHECK_EQ(length_of("\xf0\x80\x80\x80", 4), 0); /* overlong */
    CHECK_EQ(length_of("\xed\xa0\x80", 3), 0);     /* a surrogate */
    CHECK_EQ(length_of("\xf4\x90\x80\x80", 4), 0); /* past U+10FFFF */
    CHECK_EQ(length_of("\xff", 1), 0);
}

static int nearest_is(const char *wrong, const char *wanted)
{
    static const char *const list[] = {"model", "train", "weight_decay", "lr", "HIDDEN",
                                       "stop",  "x"};
    const char *found = nearest_name(wrong, list, sizeof list / sizeof *list);
    return found == wanted || (found && wanted && strcmp(found, wanted) == 0);
}

static void nearest(void)
{
    CHECK(nearest_is("modle", "model"));
    CHECK(nearest_is("mdel", "model"));
    CHECK(nearest_is("weigth_decay", "weight_decay"));
    CHECK(nearest_is("weight-decay", "weight_decay"));
    CHECK(nearest_is("hidden", "HIDDEN"));
    CHECK(nearest_is("HIDEN", "HIDDEN"));
    CHECK(nearest_is("lrr", "lr"));
    CHECK(nearest_is("step", "stop"));
    CHECK(nearest_is("X", "x"));
    CHECK(nearest_is("y", NULL)); /* one letter is not near another */
    CHECK(nearest_is("swap", NULL));
    CHECK(nearest_is("dataset", NULL));
    char longest[400];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    CHECK(nearest_is(longest, NULL));
    CHECK(nearest_name("model", NULL, 0) == NULL);
}

static void globs(void)
{
    CHECK(glob_match("*", ""));
    CHECK(glob_match("*", "h.0.attn.weight"));
    CHECK(glob_match("*.bias", "h.0.attn.bias"));
    CHECK(!glob_match("*.bias", "bias"));
    CHECK(!glob_match("*.bias", "a.bias.x"));
    CHECK(glob_match("*ln_*", "h.0.ln_1.weight"));
    CHECK(glob_match("*.bn.*", "b1.bn.weight"));
    CHECK(glob_match("a*b*c", "aXbXbXc"));
    CHECK(!glob_match("a*b*c", "aXbXb"));
    CHECK(glob_match("fc1.weight", "fc1.weight"));
    CHECK(!glob_match("fc1.weight", "fc1.weights"));
    CHECK(glob_match("", ""));
    CHECK(!glob_match("", "x"));
    /* many stars against a long text: no exponential time */
    CHECK(!glob_match("*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

int main(void)
{
    interning();
    taking();
    utf8();
    nearest();
    globs();
    CHECK(read_double("1.5e3") == 1500.0);
    CHECK(read_float("0.1") == 0.1f);
    return check_done();
}
