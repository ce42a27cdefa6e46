#include "api/options.h"
#include "ir/kernel.h"
#include "support/diag.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef enum Kind { FLAG, VALUE, JOINED, EITHER, OPTIONAL } Kind;
typedef enum Use { TEXT, NAMED, PLAIN, CALLER, LATER } Use;

typedef struct Row {
    const char *title; /* of a group; then the rest is empty */
    OptionId id;
    const char *spelling;
    Kind kind;
    const char *argument;
    Use use;
    const char *help;
} Row;

static const Row rows[] = {
#define GROUP(title) {title, OPTION_ID_COUNT, NULL, FLAG, NULL, PLAIN, NULL},
#define OPTION(id, spelling, kind, argument, use, help)                                            \
    {NULL, OPTION_##id, spelling, kind, argument, use, help},
#include "api/options.def"
#undef GROUP
#undef OPTION
};
enum { ROWS = sizeof rows / sizeof *rows };

static const struct {
    const char *name;
    int emit; /* -1: not supported yet */
} emit_kinds[] = {{"program", EMIT_PROGRAM},
                  {"lib", EMIT_LIB},
                  {"header", EMIT_HEADER},
                  {"ast", EMIT_AST},
                  {"ir", EMIT_IR},
                  {"types", EMIT_TYPES},
                  {"summary", EMIT_SUMMARY},
                  {"infer", -1},
                  {"dot", -1},
                  {"json", -1},
                  {"ptx", -1}};
enum { EMIT_KINDS = sizeof emit_kinds / sizeof *emit_kinds };

typedef struct Reader {
    Options *o;
    Arena *arena;
    const char *const *next; /* the word to read next */
    int reader;
    int depfile; /* -MD was given */
    Out command; /* see Settings.command */
} Reader;

static int complain(Reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int complain(Reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    r->o->problem = arena_vprintf(r->arena, format, args);
    va_end(args);
    return 0;
}

/* The option without its "=". */
static const char *bare(Reader *r, const Row *row)
{
    return arena_copy(r->arena, row->spelling, strcspn(row->spelling, "="));
}

/* --- values --- */

/* Is `argument` a closed list, such as "auto|f16|bf16"? A capital stands for something open. */
static int is_closed(const char *argument)
{
    for (const char *p = argument; *p; p++)
        if (isupper((unsigned char)*p))
            return 0;
    return 1;
}

/* The words of "a|b|c". */
static int split_choices(Reader *r, const char *argument, const char **list, int room)
{
    int count = 0;
    while (*argument && count < room) {
        size_t n = strcspn(argument, "|");
        list[count++] = arena_copy(r->arena, argument, n);
        argument += n + (argument[n] == '|');
    }
    return count;
}

/* Index of the value in the row's list; -1 when it is not there. */
static int choice(Reader *r, const Row *row, const char *value)
{
    const char *list[8];
    int count = split_choices(r, row->argument, list, 8);
    for (int i = 0; i < count; i++)
        if (strcmp(list[i], value) == 0)
            return i;
    const char *near = nearest_name(value, list, count);
    complain(r, "%s takes %s, found '%s'%s%s%s", bare(r, row), row->argument, value,
             near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return -1;
}

static int read_emit(Reader *r, const char *value)
{
    size_t n = strcspn(value, ":");
    const char *names[EMIT_KINDS];
    for (int i = 0; i < EMIT_KINDS; i++) {
        names[i] = emit_kinds[i].name;
        if (strlen(names[i]) != n || strncmp(names[i], value, n) != 0)
            continue;
        if (emit_kinds[i].emit < 0)
            return complain(r, "not supported yet: --emit=%s", names[i]);
        if (value[n] && emit_kinds[i].emit != EMIT_IR)
            return complain(r, "--emit=%s takes no pass, found '%s'", names[i], value);
        r->o->emit = (Emit)emit_kinds[i].emit;
        r->o->last_pass = value[n] ? value + n + 1 : NULL;
        return 1;
    }
    const char *near = nearest_name(value, names, EMIT_KINDS);
    return complain(r, "there is no --emit=%s%s%s%s", value, near ? "; did you mean '" : "",
                    near ? near : "", near ? "'?" : "");
}

static int check_passes(Reader *r, const char *list)
{
    while (list && *list) {
        size_t n = strcspn(list, ",");
        int known = 0;
        for (int i = 0; i < pass_count; i++)
            known |= strlen(pass_info[i].name) == n && strncmp(pass_info[i].name, list, n) == 0;
        if (!known)
            return complain(r, "there is no pass '%.*s'; see --list-passes", (int)n, list);
        list += n + (list[n] == ',');
    }
    return 1;
}

static int read_warning(Reader *r, const char *value)
{
    Sources sources;
    Diags diags; /* to ask whether there is such a warning; the compilation sets its own */
    sources_init(&sources, r->arena);
    diags_init(&diags, r->arena, &sources);
    if (!diags_option(&diags, value)) {
        const char *names[CODE_COUNT], *equals = strrchr(value, '=');
        const char *name = equals ? equals + 1 : strncmp(value, "no-", 3) == 0 ? value + 3 : value;
        int count = 0;
        for (int i = 0; i < CODE_COUNT; i++)
            if (diags_option(&diags, code_name((Code)i)))
                names[count++] = code_name((Code)i);
        const char *near = nearest_name(name, names, count);
        return complain(r, "there is no warning '-W%s'%s%s%s", value,
                        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    vec_push(r->arena, &r->o->warnings, value);
    return 1;
}

static int read_define(Reader *r, const char *value)
{
    const char *equals = strchr(value, '=');
    if (!equals || equals == value)
        return complain(r, "-D needs NAME=VALUE, found '%s'", value);
    vec_push(r->arena, &r->o->defines, value);
    return 1;
}

static int read_count(Reader *r, const Row *row, const char *value, int *to)
{
    char *end;
    long n = strtol(value, &end, 10);
    if (!isdigit((unsigned char)*value) || *end || n > 1000000)
        return complain(r, "%s takes a number up to 1000000, found '%s'", bare(r, row), value);
    *to = (int)n;
    return 1;
}

/* A property that is set, or (`unset`) taken back from the file. */
static void set_property(Settings *s, Tristate *property, int which, unsigned bit)
{
    *property = which == 0 ? ON : which == 1 ? OFF : UNSET;
    s->unset = which == 2 ? s->unset | bit : s->unset & ~bit;
}

/* Adds an option to the banner's text, quoted where a shell would need it, and harmless in a
 * comment. */
static void remember(Reader *r, const Row *row, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-+=.,:/@%";
    int quote = value && value[strspn(value, plain)] != '\0';
    out_printf(&r->command, "%s%s%s", r->command.size ? " " : "", row->spelling, quote ? "'" : "");
    for (const char *p = value; p && *p; p++) {
        if ((unsigned char)*p < 32 || (*p == '*' && p[1] == '/'))
            out_text(&r->command, "?"); /* no newline, and no end of a comment */
        else
            out_printf(&r->command, "%c", *p);
    }
    out_text(&r->command, quote ? "'" : "");
}

/* --- options --- */

static int apply(Reader *r, const Row *row, const char *value)
{
    Options *o = r->o;
    Settings *s = &o->settings;
    int which = row->argument && value && is_closed(row->argument) ? choice(r, row, value) : 0;
    if (which < 0)
        return 0;
    static const DType halves[] = {DT_NONE, DT_F16, DT_BF16};
    static const DType model_types[] = {DT_F32, DT_F16, DT_BF16, DT_NONE};
    switch (row->id) {
    case OPTION_LEVEL:
        s->level = which;
        return 1;
    case OPTION_HALF:
        s->half = halves[which];
        s->half_given = 1;
        return 1;
    case OPTION_LOSS_SCALE:
        s->loss_scale = value;
        return 1;
    case OPTION_SCALER:
        s->scaler_mode = value;
        return 1;
    case OPTION_KEEP_NORM:
        set_property(s, &s->keep_norm_f32, which, UNSET_KEEP_NORM);
        return 1;
    case OPTION_MASTER:
        set_property(s, &s->master_weights, which, UNSET_MASTER);
        return 1;
    case OPTION_MODEL_TYPE:
        s->cast_model_type = model_types[which];
        s->unset =
            which == 3 ? s->unset | UNSET_MODEL_TYPE : s->unset & ~(unsigned)UNSET_MODEL_TYPE;
        return 1;
    case OPTION_POLICY:
        s->torch_policy = which;
        s->policy_given = 1;
        return 1;
    case OPTION_ROUNDING:
        s->strict = which;
        s->rounding_given = 1;
        return 1;
    case OPTION_OUTPUT:
        o->output = value;
        return 1;
    case OPTION_EMIT:
        return read_emit(r, value);
    case OPTION_PREFIX:
        o->prefix = value;
        return 1;
    case OPTION_TARGET:
        s->cuda = which;
        return which ? complain(r, "not supported yet: --target=cuda") : 1;
    case OPTION_PASSES:
        o->passes = value;
        return check_passes(r, value);
    case OPTION_SYNTAX_ONLY:
        o->emit = EMIT_NOTHING;
        return 1;
    case OPTION_DEFINE:
        return read_define(r, value);
    case OPTION_INCLUDE:
        vec_push(r->arena, &o->folders, value);
        return 1;
    case OPTION_WEIGHTS:
        vec_push(r->arena, &o->weights, value);
        return 1;
    case OPTION_SPLIT:
        o->split = 1;
        return 1;
    case OPTION_WARNING:
        return read_warning(r, value);
    case OPTION_NO_WARNINGS:
        o->no_warnings = 1;
        return 1;
    case OPTION_MAX_ERRORS:
        return read_count(r, row, value, &o->max_errors);
    case OPTION_COLOUR:
        o->colour = (Colour)which;
        return 1;
    case OPTION_REMARKS:
        o->remarks = 1;
        return 1;
    case OPTION_VERIFY_DIAGS:
        o->verify_diagnostics = 1;
        o->max_errors = 0; /* every one of them is expected or not */
        return 1;
    case OPTION_DEPFILE:
        r->depfile = 1;
        return 1;
    case OPTION_DEPFILE_NAME:
        o->depfile = value;
        return 1;
    case OPTION_TIME_REPORT:
        s->time_report = 1;
        return 1;
    case OPTION_MEM_REPORT:
        o->memory_report = 1;
        return 1;
    case OPTION_VERIFY:
        s->verify = 1;
        return 1;
    case OPTION_PRINT_PROPERTIES:
        o->emit = EMIT_PROPERTIES;
        return 1;
    case OPTION_EXPLAIN:
    case OPTION_HELP:
    case OPTION_VERSION:
    case OPTION_LIST_LEVELS:
    case OPTION_LIST_OPS:
    case OPTION_LIST_OPTIMIZERS:
    case OPTION_LIST_PASSES:
    case OPTION_LIST_TARGETS:
        if (o->question < 0) {
            o->question = (int)row->id;
            o->argument = value;
        }
        return 1;
    case OPTION_RUN:
    case OPTION_EXPLAIN_CASTS:
    case OPTION_DIFF:
    case OPTION_CHECK_OPS:
    case OPTION_ID_COUNT:
        break; /* USE is LATER: refused before */
    }
    return complain(r, "not supported yet: %s", bare(r, row));
}

/* Does the row read the word? *value is set to what is written behind the option, or NULL. */
static int matches(const Row *row, const char *word, const char **value)
{
    *value = NULL;
    if (row->title)
        return 0;
    size_t n = strlen(row->spelling);
    if (strcmp(word, row->spelling) == 0) /* -o, --half=, --help */
        return 1;
    switch (row->kind) {
    case FLAG:
        return 0;
    case VALUE: {
        if (strncmp(word, row->spelling, n) == 0)
            *value = word + n;
        return *value || (strncmp(word, row->spelling, n - 1) == 0 && word[n - 1] == '\0');
    }
    case JOINED:
    case EITHER:
        if (strncmp(word, row->spelling, n) == 0)
            *value = word + n;
        return *value != NULL;
    case OPTIONAL:
        if (strncmp(word, row->spelling, n) == 0 && word[n] == '=')
            *value = word + n + 1;
        return *value != NULL;
    }
    return 0;
}

static int unknown(Reader *r, const char *word)
{
    const char *names[ROWS];
    int count = 0;
    for (int i = 0; i < ROWS; i++)
        if (!rows[i].title)
            names[count++] = bare(r, &rows[i]);
    const char *near = nearest_name(arena_copy(r->arena, word, strcspn(word, "=")), names, count);
    return complain(r, "unknown option '%s'%s%s%s", word, near ? "; did you mean '" : "",
                    near ? near : "", near ? "'?" : "");
}

static int read_option(Reader *r)
{
    const char *word = *r->next++, *value;
    for (int i = 0; i < ROWS; i++) {
        const Row *row = &rows[i];
        if (!matches(row, word, &value))
            continue;
        if (row->use == LATER)
            return complain(r, "not supported yet: %s", bare(r, row));
        if (row->use == CALLER && r->reader == FOR_LIBRARY)
            return complain(r, "'%s' is an option of the command line only", bare(r, row));
        int needs_value = row->kind != FLAG && row->kind != OPTIONAL;
        if (needs_value && !value && row->kind != JOINED && *r->next)
            value = *r->next++;
        if (needs_value && (!value || (!*value && row->id != OPTION_PASSES)))
            return complain(r, "%s needs a value: %s", bare(r, row), row->argument);
        if (!apply(r, row, value))
            return 0;
        if (row->use == TEXT)
            remember(r, row, value);
        return 1;
    }
    return unknown(r, word);
}

/* "out/digits.c" gives "digits". */
static const char *stem(Reader *r, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return arena_copy(r->arena, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

static int is_identifier(const char *name)
{
    if (!isalpha((unsigned char)*name))
        return 0;
    while (isalnum((unsigned char)*name) || *name == '_')
        name++;
    return *name == '\0';
}

static int has_ending(const char *path, const char *ending)
{
    size_t n = strlen(path), m = strlen(ending);
    return n >= m && strcmp(path + n - m, ending) == 0;
}

/* What follows from several options together. */
static int complete(Reader *r)
{
    Options *o = r->o;
    int to_file = o->output && strcmp(o->output, "-") != 0;
    if (to_file && has_ending(o->output, ".cu"))
        return complain(r, "not supported yet: --target=cuda, which the name '%s' asks for",
                        o->output);
    if (o->depfile && !r->depfile)
        return complain(r, "-MF needs -MD");
    if (r->depfile && !o->depfile) {
        if (!to_file)
            return complain(r, "-MD needs -o FILE or -MF FILE");
        const char *slash = strrchr(o->output, '/');
        int folder = slash ? (int)(slash - o->output) + 1 : 0;
        o->depfile = arena_printf(r->arena, "%.*s%s.d", folder, o->output, stem(r, o->output));
    }
    if (o->emit == EMIT_LIB && r->reader == FOR_COMMAND_LINE && !to_file && o->question < 0)
        return complain(r, "--emit=lib needs -o FILE: beside FILE it writes its header");
    if (o->passes && o->last_pass)
        return complain(r, "--passes and --emit=ir:%s say different things", o->last_pass);
    if (o->passes && o->emit != EMIT_IR && o->emit != EMIT_NOTHING)
        return complain(r, "--passes needs --emit=ir");
    if (!check_passes(r, o->last_pass))
        return 0;
    int names = o->emit == EMIT_LIB || o->emit == EMIT_HEADER;
    if (names && !o->prefix && (to_file || o->input))
        o->prefix = stem(r, to_file ? o->output : o->input);
    if (names && !o->prefix && r->reader == FOR_COMMAND_LINE)
        return 1; /* there is no input either, which says main */
    if (names && !o->prefix)
        return complain(r, "--emit=lib and --emit=header need --prefix=NAME here");
    if (names && (!is_identifier(o->prefix) || is_reserved_name(o->prefix)))
        return complain(r, "'%s' cannot begin the names of a library; use --prefix=NAME",
                        o->prefix);
    return 1;
}

int options_read(Options *o, Arena *arena, const char *const *words, int reader)
{
    *o = (Options){.max_errors = 20, .question = -1};
    o->settings = (Settings){.level = -1,
                             .half = DT_NONE,
                             .keep_norm_f32 = UNSET,
                             .master_weights = UNSET,
                             .cast_model_type = DT_NONE};
    Reader r = {.o = o, .arena = arena, .next = words, .reader = reader};
    out_init(&r.command, arena);
    while (*r.next) {
        const char *word = *r.next;
        if (word[0] == '-' && word[1]) {
            if (!read_option(&r))
                return 0;
            continue;
        }
        if (reader == FOR_LIBRARY)
            return complain(&r, "'%s' is no option", word);
        if (o->input)
            return complain(&r, "one file at a time: '%s' is one too many", word);
        o->input = word;
        r.next++;
    }
    o->settings.command = r.command.text;
    return complete(&r);
}

/* --- help --- */

static const char *spelled(const Row *row, Arena *arena)
{
    if (row->kind == FLAG)
        return row->spelling;
    if (row->kind == EITHER)
        return arena_printf(arena, "%s %s", row->spelling, row->argument);
    if (row->kind == OPTIONAL)
        return arena_printf(arena, "%s[=%s]", row->spelling, row->argument);
    return arena_printf(arena, "%s%s", row->spelling, row->argument);
}

enum { HELP_COLUMN = 30 };

void options_help(Out *out)
{
    out_line(out, "usage: ampc [options] FILE.amp          (-: standard input)");
    out_line(out, "Compiles a model and its training to one C file.");
    for (int i = 0; i < ROWS; i++) {
        const Row *row = &rows[i];
        if (row->title) {
            out_line(out, "\n%s:", row->title);
            continue;
        }
        if (row->use == LATER)
            continue;
        const char *left = spelled(row, out->arena);
        if (strlen(left) + 4 > HELP_COLUMN)
            out_line(out, "  %s\n%*s%s", left, HELP_COLUMN, "", row->help);
        else
            out_line(out, "  %-*s%s", HELP_COLUMN - 2, left, row->help);
    }
    out_line(out, "\nExit status: 0 done, 1 errors in the file, 2 wrong usage, 3 a file or memory "
                  "failed,\n4 internal error.");
}

/* Text of a manual page: nothing in it may be a request of roff. */
static void roff(Out *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '-')
            out_text(out, "\\-");
        else if (*text == '\\')
            out_text(out, "\\e");
        else
            out_printf(out, "%c", *text);
    }
}

void options_manual(Out *out)
{
    out_line(out, ".TH AMPC 1\n.SH NAME\nampc \\- compile neural-network training to C");
    out_line(out, ".SH SYNOPSIS\n.B ampc\n[options] FILE.amp\n.SH OPTIONS");
    for (int i = 0; i < ROWS; i++) {
        const Row *row = &rows[i];
        if (row->title) {
            out_line(out, ".SS %s", row->title);
            continue;
        }
        if (row->use == LATER)
            continue;
        out_text(out, ".TP\n.B ");
        roff(out, spelled(row, out->arena));
        out_text(out, "\n");
        roff(out, row->help);
        out_text(out, "\n");
    }
    out_line(out,
             ".SH EXIT STATUS\n0 done, 1 errors in the file, 2 wrong usage, 3 a file or memory "
             "failed, 4 internal error.");
}
