/* SPDX-License-Identifier: 0BSD */
/* The command line of a program, from one table: parsing, ranges, --help, a configuration file and
 * its printing. `--name V` and `--name=V` are the same, `_` and `-` are the same, a later option
 * wins over an earlier one, and the command line over the file. Values are read strictly: the whole
 * word, within the range, never NaN or infinite.
 *
 *     static int64_t epochs = 60;
 *     static RtOption option[] = {
 *         {"epochs", RT_OPTION_INT, &epochs, "1..100000", "N", "60", "passes over the data", 0}};
 *     RtOptions options = {option, 1, "digits", "Trains digits.amp at O2.", {NULL, 0}};
 *     status = rt_options_parse(&options, argc, argv);        --epoch 3: 2, and rt_error_text() is
 *                         "unknown option '--epoch'; did you mean '--epochs'?"
 *     rt_options_help(&options, stdout);
 *     rt_options_free(&options);                              values from the file go with it
 *
 * An option called "config" names the file: lines `name = value`, and `#` begins a comment line.
 */
#ifndef AMPC_RT_OPTIONS_H
#define AMPC_RT_OPTIONS_H
#include "rt_base.h"
#include "rt_file.h"
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum RtOptionKind {
    RT_OPTION_INT,    /* int64_t */
    RT_OPTION_REAL,   /* double */
    RT_OPTION_BOOL,   /* int; --name true or false */
    RT_OPTION_STRING, /* const char * */
    RT_OPTION_MAYBE,  /* const char *: --name alone gives "", --name=V gives V */
    RT_OPTION_FLAG,   /* int; --name alone gives 1 */
    RT_OPTION_ACTION, /* a flag for the command line only: --help */
    RT_OPTION_TITLE   /* no option: a heading of the help, in `name` */
} RtOptionKind;

typedef struct RtOption {
    const char *name; /* without the dashes */
    RtOptionKind kind;
    void *value;          /* holds the default; what the kind says */
    const char *range;    /* "1..8", "0..", "tsv|jsonl", or NULL */
    const char *metavar;  /* what the help calls the value; NULL: chosen by kind and range */
    const char *fallback; /* what the help calls the default; NULL: not told */
    const char *help;
    int given; /* set when the user gave it */
} RtOption;

typedef struct RtOptions {
    RtOption *option;
    int count;
    const char *program; /* for the usage line */
    const char *about;   /* what it does; may be NULL */
    RtBytes config;      /* the text of the configuration file; values point into it */
} RtOptions;

enum { RT_OPTION_NAME = 64, RT_OPTION_COLUMN = 30, RT_OPTION_WIDTH = 80 };

RT_COLD void rt_options_free(RtOptions *o)
{
    rt_bytes_free(&o->config);
}

/* ---- values ---- */

/* Reads a whole number in decimal digits; false if the text is anything else or does not fit. */
RT_COLD bool rt_option_int(const char *text, int64_t *value)
{
    bool negative = *text == '-';
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1 : 0), magnitude = 0;
    const char *s = text + (negative ? 1 : 0);
    if (!*s)
        return false;
    for (; *s; s++) {
        uint64_t digit = (uint64_t)(*s - '0');
        if (*s < '0' || *s > '9' || magnitude > (limit - digit) / 10)
            return false;
        magnitude = magnitude * 10 + digit;
    }
    *value = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

/* Reads a decimal number such as -1, .5 or 2e-3: finite, and a whole one not so large that
 * doubles skip some (2^53). Otherwise *why says what is wrong. */
RT_COLD bool rt_option_real(const char *text, double *value, const char **why)
{
    const char *s = text + (*text == '-' ? 1 : 0), *first = s;
    int digits = 0;
    bool whole = true;
    *why = "is not a finite number";
    for (; *s >= '0' && *s <= '9'; s++)
        digits++;
    if (*s == '.') {
        whole = false;
        for (s++; *s >= '0' && *s <= '9'; s++)
            digits++;
    }
    if (digits && (*s == 'e' || *s == 'E')) {
        whole = false;
        s += s[1] == '+' || s[1] == '-' ? 2 : 1;
        digits = 0;
        for (; *s >= '0' && *s <= '9'; s++)
            digits++;
    }
    if (!digits || *s)
        return false;
    errno = 0;
    *value = strtod(text, NULL);
    *why = whole ? "is beyond 2^53, where real numbers skip integers" : "is too large or too small";
    if (whole) {
        int64_t exact;
        return rt_option_int(first, &exact) && exact <= (int64_t)1 << 53;
    }
    return errno != ERANGE && isfinite(*value);
}

/* The next piece of a range, up to the separator or the end; NULL when there is none left. */
RT_COLD const char *rt_option_piece(const char *range, const char *separator, char out[256])
{
    const char *end = strstr(range, separator);
    size_t length = end ? (size_t)(end - range) : strlen(range);
    while (length && *range == ' ') {
        range++;
        length--;
    }
    while (length && range[length - 1] == ' ')
        length--;
    if (length > 255)
        length = 255;
    memcpy(out, range, length);
    out[length] = '\0';
    return end ? end + strlen(separator) : NULL;
}

/* -1, 0 or 1 for a value less than, equal to or greater than the one in text. */
RT_COLD int rt_option_compare(const RtOption *p, int64_t whole, double real, const char *text)
{
    const char *why;
    int64_t other = 0;
    double real_other = 0;
    if (p->kind == RT_OPTION_INT && rt_option_int(text, &other))
        return whole < other ? -1 : whole > other;
    if (p->kind == RT_OPTION_INT)
        real = (double)whole;
    (void)rt_option_real(text, &real_other, &why);
    return real < real_other ? -1 : real > real_other;
}

/* Is the value in the range? `text` is its spelling, which decides for strings. */
RT_COLD bool rt_option_in_range(const RtOption *p, int64_t whole, double real, const char *text)
{
    char piece[256];
    if (!p->range)
        return true;
    bool word = p->kind == RT_OPTION_STRING || p->kind == RT_OPTION_MAYBE;
    if (!word && strstr(p->range, "..")) {
        const char *high = rt_option_piece(p->range, "..", piece);
        if (*piece && rt_option_compare(p, whole, real, piece) < 0)
            return false;
        rt_option_piece(high, "..", piece);
        return !*piece || rt_option_compare(p, whole, real, piece) <= 0;
    }
    for (const char *rest = p->range; rest;) {
        rest = rt_option_piece(rest, "|", piece);
        if (word ? !strcmp(text, piece) : !rt_option_compare(p, whole, real, piece))
            return true;
    }
    return false;
}

/* Sets the value of an option from its text. */
RT_COLD int rt_option_set(RtOption *p, const char *text)
{
    int64_t whole = 0;
    double real = 0;
    const char *why = NULL;
    if (p->kind == RT_OPTION_INT && !rt_option_int(text, &whole))
        why = "is not a whole number";
    if (p->kind == RT_OPTION_REAL && rt_option_real(text, &real, &why))
        why = NULL;
    if (p->kind == RT_OPTION_BOOL || p->kind == RT_OPTION_FLAG) {
        whole = !strcmp(text, "true");
        if (!whole && strcmp(text, "false"))
            why = "is neither true nor false";
    }
    if (why)
        return rt_fail(RT_USAGE, "option '--%s': '%s' %s", p->name, text, why);
    if (!rt_option_in_range(p, whole, real, text))
        return rt_fail(RT_USAGE, "option '--%s': '%s' is not in %s", p->name, text, p->range);
    if (p->kind == RT_OPTION_INT)
        *(int64_t *)p->value = whole;
    else if (p->kind == RT_OPTION_REAL)
        *(double *)p->value = real;
    else if (p->kind == RT_OPTION_STRING || p->kind == RT_OPTION_MAYBE)
        *(const char **)p->value = text;
    else
        *(int *)p->value = (int)whole;
    p->given = 1;
    return RT_OK;
}

/* ---- names ---- */

RT_COLD bool rt_option_same(const char *name, const char *text, size_t length)
{
    size_t k = 0;
    for (; k < length && name[k]; k++)
        if (name[k] != text[k] && !(strchr("-_", name[k]) && strchr("-_", text[k])))
            return false;
    return k == length && !name[k];
}

RT_COLD RtOption *rt_options_find(const RtOptions *o, const char *name, size_t length)
{
    for (int k = 0; k < o->count; k++)
        if (o->option[k].kind != RT_OPTION_TITLE && rt_option_same(o->option[k].name, name, length))
            return &o->option[k];
    return NULL;
}

/* How many letters must be added, dropped or changed to make a into b (Levenshtein). */
RT_COLD int rt_option_distance(const char *a, size_t length, const char *b)
{
    int row[RT_OPTION_NAME + 1];
    size_t width = strlen(b);
    if (width > RT_OPTION_NAME || length > RT_OPTION_NAME)
        return RT_OPTION_NAME;
    for (size_t k = 0; k <= width; k++)
        row[k] = (int)k;
    for (size_t i = 1; i <= length; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t k = 1; k <= width; k++) {
            int best = diagonal + (a[i - 1] != b[k - 1]);
            if (row[k] + 1 < best)
                best = row[k] + 1;
            if (row[k - 1] + 1 < best)
                best = row[k - 1] + 1;
            diagonal = row[k];
            row[k] = best;
        }
    }
    return row[width];
}

/* The option the user may have meant: one with few letters wrong, or one that begins so. */
RT_COLD const RtOption *rt_options_guess(const RtOptions *o, const char *name, size_t length)
{
    const RtOption *best = NULL;
    int least = length < 4 ? 2 : 3;
    for (int k = 0; k < o->count; k++) {
        const RtOption *p = &o->option[k];
        if (p->kind == RT_OPTION_TITLE)
            continue;
        int distance = rt_option_distance(name, length, p->name);
        if (distance < least) {
            least = distance;
            best = p;
        }
    }
    for (int k = 0; k < o->count && !best && length > 1; k++)
        if (o->option[k].kind != RT_OPTION_TITLE && !strncmp(o->option[k].name, name, length))
            best = &o->option[k];
    return best;
}

RT_COLD int rt_options_unknown(const RtOptions *o, const char *name, size_t length)
{
    const RtOption *guess = rt_options_guess(o, name, length);
    int shown = length < 100 ? (int)length : 100;
    if (guess)
        return rt_fail(RT_USAGE, "unknown option '--%.*s'; did you mean '--%s'?", shown, name,
                       guess->name);
    return rt_fail(RT_USAGE, "unknown option '--%.*s'; --help lists all", shown, name);
}

/* ---- the command line ---- */

RT_COLD bool rt_option_takes_value(const RtOption *p)
{
    return p->kind < RT_OPTION_MAYBE;
}

/* Takes the option at argv[*at] and steps over it. With `wanted`, only that one is set. */
RT_COLD int rt_options_word(RtOptions *o, int argc, char **argv, int *at, const RtOption *wanted)
{
    const char *word = argv[(*at)++];
    if (!strcmp(word, "-h"))
        word = "--help";
    if (strncmp(word, "--", 2) || !word[2])
        return rt_fail(RT_USAGE, "unexpected argument '%s'; options begin with two dashes", word);
    const char *equals = strchr(word, '='), *value = equals ? equals + 1 : NULL;
    size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
    RtOption *p = rt_options_find(o, word + 2, length);
    if (!p)
        return rt_options_unknown(o, word + 2, length);
    if (!value && rt_option_takes_value(p)) {
        if (*at == argc || !strncmp(argv[*at], "--", 2))
            return rt_fail(RT_USAGE, "option '--%s' needs a value", p->name);
        value = argv[(*at)++];
    }
    bool flag = p->kind == RT_OPTION_FLAG || p->kind == RT_OPTION_ACTION;
    if (value && flag)
        return rt_fail(RT_USAGE, "option '--%s' takes no value", p->name);
    if (wanted && p != wanted)
        return RT_OK;
    if (value)
        return rt_option_set(p, value);
    if (flag)
        *(int *)p->value = 1;
    else
        *(const char **)p->value = "";
    p->given = 1;
    return RT_OK;
}

/* ---- the configuration file ---- */

/* Cuts the spaces at both ends off, in place. */
RT_COLD char *rt_option_trim(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t length = strlen(s);
    while (length && isspace((unsigned char)s[length - 1]))
        s[--length] = '\0';
    return s;
}

RT_COLD int rt_options_line(RtOptions *o, char *line, const char *path, int number)
{
    char *name = rt_option_trim(line), *equals = strchr(name, '=');
    if (!*name || *name == '#')
        return RT_OK;
    if (!equals)
        return rt_fail(RT_USAGE, "%s:%d: expected 'name = value'", path, number);
    *equals = '\0';
    name = rt_option_trim(name);
    char *value = rt_option_trim(equals + 1);
    size_t length = strlen(value);
    if (length > 1 && *value == '"' && value[length - 1] == '"') {
        value[length - 1] = '\0';
        value++;
    }
    RtOption *p = rt_options_find(o, name, strlen(name));
    int status = p ? RT_OK : rt_options_unknown(o, name, strlen(name));
    if (p && (p->kind == RT_OPTION_ACTION || !strcmp(p->name, "config")))
        status = rt_fail(RT_USAGE, "option '--%s' belongs on the command line", p->name);
    else if (p && p->given)
        status = rt_fail(RT_USAGE, "option '--%s' comes twice", p->name);
    else if (p)
        status = rt_option_set(p, value);
    return status ? rt_fail(status, "%s:%d: %s", path, number, rt_error_text()) : RT_OK;
}

RT_COLD int rt_options_config(RtOptions *o, const char *path)
{
    int status = rt_file_read(path, &o->config), number = 0;
    if (status)
        return status;
    char *text = (char *)realloc(o->config.data, o->config.bytes + 1);
    if (!text)
        return rt_fail(RT_SYSTEM, "out of memory");
    text[o->config.bytes] = '\0';
    o->config.data = (uint8_t *)text;
    if (strlen(text) != o->config.bytes)
        return rt_fail(RT_USAGE, "%s: not a text file", path);
    while (!status && text) {
        char *line = text, *end = strchr(text, '\n');
        if (end)
            *end = '\0';
        text = end ? end + 1 : NULL;
        status = rt_options_line(o, line, path, ++number);
    }
    return status;
}

/* Reads the command line, and before it the file that --config names. */
RT_COLD int rt_options_parse(RtOptions *o, int argc, char **argv)
{
    RtOption *config = rt_options_find(o, "config", 6);
    int status = RT_OK;
    for (int at = 1; config && at < argc && !status;)
        status = rt_options_word(o, argc, argv, &at, config);
    if (!status && config && config->given) {
        config->given = 0;
        status = rt_options_config(o, *(const char **)config->value);
    }
    for (int at = 1; at < argc && !status;)
        status = rt_options_word(o, argc, argv, &at, NULL);
    return status;
}

/* ---- printing ---- */

RT_COLD const char *rt_option_metavar(const RtOption *p)
{
    static const char *const by_kind[] = {"N", "X", "true|false", "TEXT", "TEXT", "", "", ""};
    if (p->metavar)
        return p->metavar;
    return p->range && !strstr(p->range, "..") ? p->range : by_kind[p->kind];
}

/* Appends a word at column `at`, on a new line if it does not fit. */
RT_COLD int rt_options_wrap(FILE *out, const char *word, size_t length, int at)
{
    bool fits = at == RT_OPTION_COLUMN || at + 1 + (int)length < RT_OPTION_WIDTH;
    if (!fits) {
        fprintf(out, "\n%*s", RT_OPTION_COLUMN, "");
        at = RT_OPTION_COLUMN;
    }
    fprintf(out, "%s%.*s", at == RT_OPTION_COLUMN ? "" : " ", (int)length, word);
    return at + (at == RT_OPTION_COLUMN ? 0 : 1) + (int)length;
}

RT_COLD int rt_options_wrap_text(FILE *out, const char *text, int at)
{
    while (*text) {
        size_t length = strcspn(text, " ");
        if (length)
            at = rt_options_wrap(out, text, length, at);
        text += length + strspn(text + length, " ");
    }
    return at;
}

RT_COLD void rt_options_help_row(const RtOption *p, FILE *out)
{
    char left[160], extra[300];
    const char *metavar = rt_option_metavar(p);
    bool shows_range = p->range && strcmp(metavar, p->range);
    snprintf(left, sizeof left, "  --%s%s%s%s", p->name,
             p->kind == RT_OPTION_MAYBE ? "[="
             : *metavar                 ? " "
                                        : "",
             metavar, p->kind == RT_OPTION_MAYBE ? "]" : "");
    snprintf(extra, sizeof extra, "%s%s%s%s%s%s", shows_range || p->fallback ? "(" : "",
             shows_range ? p->range : "", shows_range && p->fallback ? ", " : "",
             p->fallback ? "default " : "", p->fallback ? p->fallback : "",
             shows_range || p->fallback ? ")" : "");
    fputs(left, out);
    bool alone = !p->help && !*extra;
    if (!alone && strlen(left) + 2 > RT_OPTION_COLUMN)
        fprintf(out, "\n%*s", RT_OPTION_COLUMN, "");
    else if (!alone)
        fprintf(out, "%*s", RT_OPTION_COLUMN - (int)strlen(left), "");
    int at = rt_options_wrap_text(out, p->help ? p->help : "", RT_OPTION_COLUMN);
    rt_options_wrap_text(out, extra, at);
    fputc('\n', out);
}

RT_COLD void rt_options_help(const RtOptions *o, FILE *out)
{
    fprintf(out, "usage: %s [options]\n", o->program);
    if (o->about)
        fprintf(out, "\n%s\n", o->about);
    for (int k = 0; k < o->count; k++) {
        const RtOption *p = &o->option[k];
        if (p->kind == RT_OPTION_TITLE)
            fprintf(out, "\n%s\n", p->name);
        else
            rt_options_help_row(p, out);
    }
}

/* Prints a real number with the fewest digits that give it back. */
RT_COLD void rt_option_print_real(FILE *out, double x)
{
    char text[40];
    int digits = 1;
    do
        snprintf(text, sizeof text, "%.*g", digits, x);
    while (strtod(text, NULL) != x && digits++ < 17);
    fputs(text, out);
}

/* Prints the values in force as a configuration file that would set them. */
RT_COLD void rt_options_print(const RtOptions *o, FILE *out)
{
    for (int k = 0; k < o->count; k++) {
        const RtOption *p = &o->option[k];
        bool word = p->kind == RT_OPTION_STRING || p->kind == RT_OPTION_MAYBE;
        const char *text = word ? *(const char *const *)p->value : NULL;
        if (p->kind == RT_OPTION_ACTION || !strcmp(p->name, "config") || (word && !text))
            continue;
        if (p->kind == RT_OPTION_TITLE) {
            fprintf(out, "%s# %s\n", k ? "\n" : "", p->name);
            continue;
        }
        fprintf(out, "%s = ", p->name);
        if (p->kind == RT_OPTION_INT)
            fprintf(out, "%lld", (long long)*(const int64_t *)p->value);
        else if (p->kind == RT_OPTION_REAL)
            rt_option_print_real(out, *(const double *)p->value);
        else if (word)
            fprintf(out, "\"%s\"", text);
        else
            fputs(*(const int *)p->value ? "true" : "false", out);
        fputc('\n', out);
    }
}
#endif
