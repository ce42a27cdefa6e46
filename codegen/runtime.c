/* Pastes runtime parts, piece by piece. In goes the text of a program, out come the pieces that it
 * reaches by name:
 *
 *     program: y[i] = rt_bf16_from_f32(x);     pasted: rt_bf16_from_f32 and, because that calls it,
 *                                              rt_bits_from_f32, each with its comment
 *
 * On the way conditions that only CUDA or C++ need are resolved, include guards go away, and the
 * headings of sections of which nothing is left disappear. Names are found by their place in the
 * text, not by parsing C: what a part may look like is told in tests/codegen/paste_test.c.
 */
#include "codegen/runtime.h"
#include "support/map.h"
#include "support/str.h"
#include "support/vec.h"
#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum NodeKind {
    PIECE,    /* definitions, kept when something names one of them */
    SETTING,  /* defines nothing (a pragma, an #error): kept with its part */
    HEADING,  /* a comment that stands alone: kept with what follows it */
    CONDITION /* #if, #elif, #else, #endif around pieces: kept with what is between them */
} NodeKind;

typedef struct Node {
    NodeKind kind;
    int part;
    int first, last; /* its lines, last excluded */
    int blank;       /* a blank line stands before it */
    int kept;
} Node;

typedef struct Definition {
    Str name;
    int node;
} Definition;

typedef struct Include {
    const char *line;
    int part;
} Include;

typedef Vec(const char *) Lines;
typedef Vec(Str) Strs;

typedef struct Paste {
    Arena *arena;
    Names names;
    Lines line;
    Vec(Node) node;
    Vec(Definition) definition;
    Strs reached; /* names to follow */
    Map seen;     /* the names among them */
    Vec(Include) include;
    int parts;
} Paste;

/* ---- text of a part ---- */

static int starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static const char *directive(const char *line)
{
    if (*line != '#')
        return NULL;
    line++;
    while (*line == ' ')
        line++;
    return line;
}

/* What an emitted C program never is. */
static const char *const never[] = {"__CUDACC_RTC__", "__CUDACC__", "__cplusplus", "__NVCC__"};
enum { NEVER = sizeof never / sizeof *never };

/* 1 or 0 for a condition over one such name, -1 for others. */
static int known(const char *condition)
{
    if (!strcmp(condition, "ifndef _GNU_SOURCE")) /* the first line of every program */
        return 0;
    for (int i = 0; i < NEVER; i++) {
        char text[4][64];
        snprintf(text[0], 64, "ifdef %s", never[i]);
        snprintf(text[1], 64, "if defined(%s)", never[i]);
        snprintf(text[2], 64, "ifndef %s", never[i]);
        snprintf(text[3], 64, "if !defined(%s)", never[i]);
        const char *plain = starts(condition, "elif") ? condition + 2 : condition;
        for (int k = 0; k < 4; k++)
            if (!strcmp(plain, text[k]))
                return k >= 2;
    }
    return -1;
}

/* Takes what is always true out of a condition: " && !defined(__NVCC__)", " || defined(…)". */
static const char *simpler(Arena *arena, const char *line)
{
    char *text = arena_copy(arena, line, strlen(line));
    for (int i = 0; i < 2 * NEVER; i++) {
        char term[64];
        snprintf(term, sizeof term, i % 2 ? " && !defined(%s)" : " || defined(%s)", never[i / 2]);
        for (char *at; (at = strstr(text, term));)
            memmove(at, at + strlen(term), strlen(at + strlen(term)) + 1);
    }
    return text;
}

/* How a conditional group that is being read stands. */
typedef enum Group { OPEN, TAKEN, NOT_YET, OVER } Group;
/* OPEN: the condition stays; TAKEN: this branch is all there is; NOT_YET: no branch so far; OVER:
 * the rest is dead. */

typedef struct Reader {
    Paste *p;
    int part;
    Group group[32];
    int stays[32]; /* some #if of the group was written, so its #endif is, too */
    int depth;
} Reader;

static int is_live(const Reader *r)
{
    for (int i = 0; i < r->depth; i++)
        if (r->group[i] == NOT_YET || r->group[i] == OVER)
            return 0;
    return 1;
}

/* Is no condition around this that the C compiler decides? */
static int is_plain(const Reader *r)
{
    for (int i = 0; i < r->depth; i++)
        if (r->group[i] == OPEN)
            return 0;
    return 1;
}

static void add_include(Reader *r, const char *line)
{
    Include include = {line, r->part};
    vec_push(r->p->arena, &r->p->include, include);
}

static void add_line(Reader *r, const char *line)
{
    vec_push(r->p->arena, &r->p->line, line);
}

static void begin_group(Reader *r, const char *line)
{
    int live = is_live(r), value = known(directive(line));
    Group group = !live ? OVER : value < 0 ? OPEN : value ? TAKEN : NOT_YET;
    assert(r->depth < 32);
    r->stays[r->depth] = group == OPEN;
    r->group[r->depth++] = group;
    if (group == OPEN)
        add_line(r, line);
}

/* An #elif or #else. */
static void next_branch(Reader *r, const char *line)
{
    int *stays = &r->stays[r->depth - 1];
    Group *group = &r->group[r->depth - 1], old = *group;
    if (old == TAKEN || old == OVER) {
        *group = OVER;
        return;
    }
    int is_else = starts(directive(line), "else"), value = is_else ? 1 : known(directive(line));
    *group = value == 0 ? NOT_YET : value > 0 && !*stays ? TAKEN : OPEN;
    if (*group != OPEN)
        return;
    if (value > 0)
        line = "#else";
    else if (!*stays)
        line = arena_printf(r->p->arena, "#%s", directive(line) + 2);
    *stays = 1;
    add_line(r, line);
}

static void end_group(Reader *r, const char *line)
{
    r->depth--;
    if (r->stays[r->depth] && is_live(r))
        add_line(r, line);
}

static void read_line(Reader *r, const char *line)
{
    const char *word = directive(line);
    if (word && starts(word, "if"))
        begin_group(r, line);
    else if (word && (starts(word, "elif") || starts(word, "else")))
        next_branch(r, line);
    else if (word && starts(word, "endif"))
        end_group(r, line);
    else if (word && starts(word, "include \""))
        return;
    else if (word && starts(word, "include") && is_plain(r) && is_live(r))
        add_include(r, line);
    else if (is_live(r))
        add_line(r, line);
}

/* A directive and the lines that continue it, as one. */
static const char *joined(Arena *arena, const char *const *line, int *count)
{
    const char *text = line[0];
    *count = 1;
    for (size_t n = strlen(text); n && text[n - 1] == '\\' && line[*count]; n = strlen(text)) {
        while (n && (text[n - 1] == '\\' || text[n - 1] == ' '))
            n--;
        const char *more = line[(*count)++];
        text = arena_printf(arena, "%.*s %s", (int)n, text, more + strspn(more, " "));
    }
    return text;
}

/* Appends the lines of a part to p->line, without its guard and licence line. */
static void read_part(Paste *p, int index)
{
    const RuntimePart *part = &runtime_part[index];
    Reader r = {.p = p, .part = index};
    int end = 0, at = 0;
    while (part->line[end])
        end++;
    while (end && !starts(part->line[end - 1], "#endif"))
        end--;
    for (end--; at < end;) {
        const char *line = part->line[at], *word = directive(line);
        int count = 1;
        if (word && (starts(word, "if") || starts(word, "elif")))
            line = simpler(p->arena, joined(p->arena, part->line + at, &count));
        at += count;
        if (!strstr(line, "SPDX-License-Identifier") && !starts(line, "#ifndef AMPC_RT_") &&
            !starts(line, "#define AMPC_RT_"))
            read_line(&r, line);
    }
    assert(r.depth == 0);
}

/* ---- pieces ---- */

/* Where in C text we are. */
typedef struct Scan {
    int braces, parens, in_comment;
} Scan;

/* Walks over a line and calls f for every identifier outside comments and strings. */
typedef void (*OnName)(Paste *p, const Scan *s, const char *name, size_t bytes, char before,
                       const char *after, void *data);

static void scan_line(Paste *p, Scan *s, const char *c, OnName f, void *data)
{
    char before = ';';
    while (*c) {
        if (s->in_comment) {
            const char *end = strstr(c, "*/");
            s->in_comment = !end;
            c = end ? end + 2 : c + strlen(c);
        } else if (c[0] == '/' && c[1] == '*') {
            s->in_comment = 1;
            c += 2;
        } else if (c[0] == '/' && c[1] == '/') {
            return;
        } else if (*c == '"' || *c == '\'') {
            char quote = *c++;
            while (*c && *c != quote)
                c += *c == '\\' && c[1] ? 2 : 1;
            c += *c != 0;
            before = quote;
        } else if (isalpha((unsigned char)*c) || *c == '_') {
            size_t n = 1;
            while (isalnum((unsigned char)c[n]) || c[n] == '_')
                n++;
            const char *after = c + n + strspn(c + n, " ");
            if (f)
                f(p, s, c, n, before, after, data);
            before = 'a';
            c += n;
        } else {
            s->braces += (*c == '{') - (*c == '}');
            s->parens += (*c == '(') - (*c == ')');
            if (*c != ' ')
                before = *c;
            c++;
        }
    }
}

static int is_blank(const char *line)
{
    return line[strspn(line, " \t")] == 0;
}

/* Is there nothing but comment in these lines? */
static int is_comment(const Paste *p, int first, int last)
{
    Scan s = {0};
    for (int i = first; i < last; i++) {
        const char *line = p->line.at[i];
        if (!s.in_comment && !starts(line, "/*") && !starts(line, "//"))
            return 0;
        scan_line(NULL, &s, line, NULL, NULL);
    }
    return 1;
}

static void add_node(Paste *p, NodeKind kind, int part, int first, int last, int *blank)
{
    if (first == last)
        return;
    Node n = {.kind = kind, .part = part, .first = first, .last = last, .blank = *blank};
    *blank = 0;
    vec_push(p->arena, &p->node, n);
}

/* Marks the directives of lines first…last that have no partner among these lines. */
static void find_lonely(const Paste *p, int first, int last, char *lonely)
{
    int open[32], depth = 0;
    for (int i = first; i < last; i++) {
        const char *word = directive(p->line.at[i]);
        if (!word)
            continue;
        if (starts(word, "if"))
            lonely[i] = 1, open[depth++] = i;
        else if (starts(word, "endif") && depth) {
            for (int k = open[--depth]; k < i; k++)
                lonely[k] = 0;
        } else if (starts(word, "endif") || ((starts(word, "el")) && !depth))
            lonely[i] = 1;
        else if (starts(word, "el"))
            lonely[i] = 1; /* until its #endif shows up */
        assert(depth < 32);
    }
}

/* Divides a paragraph at the directives whose groups reach beyond it. */
static void add_paragraph(Paste *p, int part, int first, int last)
{
    int blank = 1, from = first;
    char *lonely = new_array(p->arena, char, last + 1);
    find_lonely(p, first, last, lonely);
    for (int i = first; i <= last; i++) {
        if (i < last && !lonely[i])
            continue;
        add_node(p, is_comment(p, from, i) ? HEADING : PIECE, part, from, i, &blank);
        if (i < last)
            add_node(p, CONDITION, part, i, i + 1, &blank);
        from = i + 1;
    }
}

static void split(Paste *p, int part, int first)
{
    Scan s = {0};
    int from = first, continued = 0;
    for (int i = first; i < p->line.n; i++) {
        const char *line = p->line.at[i];
        if (is_blank(line) && !s.braces && !s.parens && !s.in_comment && !continued) {
            if (i > from)
                add_paragraph(p, part, from, i);
            from = i + 1;
            continue;
        }
        int macro = directive(line) || continued; /* need not balance */
        Scan before = s;
        scan_line(NULL, &s, line, NULL, NULL);
        if (macro)
            s.braces = before.braces, s.parens = before.parens;
        continued = macro && *line && line[strlen(line) - 1] == '\\';
    }
    if (p->line.n > from)
        add_paragraph(p, part, from, p->line.n);
}

/* ---- names ---- */

typedef struct Definer {
    int node, in_enum, made_by_macro;
} Definer;

static int is_word(const char *name, size_t bytes, const char *word)
{
    return bytes == strlen(word) && !memcmp(name, word, bytes);
}

/* Words that stand where a defined name may stand. */
static int is_keyword(const char *name, size_t bytes)
{
    static const char *const words[] = {"enum", "struct", "union", "__attribute__", "_Pragma"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (is_word(name, bytes, words[i]))
            return 1;
    return 0;
}

/* Is this line RT_KERNEL(rt_name, …), which defines rt_name? */
static int is_macro_call(const char *line)
{
    size_t n = strspn(line, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    return n > 3 && line[n] == '(';
}

/* A name at file scope that is followed by ( = [ ; or {, or a constant of an enum, is defined
 * here. */
static void define(Paste *p, const Scan *s, const char *name, size_t bytes, char before,
                   const char *after, void *data)
{
    Definer *d = data;
    if (s->braces == 0 && s->parens == 0 && is_word(name, bytes, "enum"))
        d->in_enum = 1;
    int at_top = s->braces == 0 && s->parens == 0 && *after && strchr("(=[;{", *after) &&
                 !is_keyword(name, bytes);
    int constant =
        d->in_enum && s->braces == 1 && (before == '{' || before == ',' || before == ';');
    int argument = d->made_by_macro && s->parens == 1 && before == '(';
    if (d->made_by_macro ? !argument : !at_top && !constant)
        return;
    Definition definition = {intern_n(&p->names, name, bytes), d->node};
    vec_push(p->arena, &p->definition, definition);
}

static void find_definitions(Paste *p, int node)
{
    Node *n = &p->node.at[node];
    Scan s = {0};
    Definer d = {.node = node};
    int before = p->definition.n, in_macro = 0, includes = 0;
    for (int i = n->first; i < n->last; i++) {
        const char *line = p->line.at[i], *word = directive(line);
        if (word && starts(word, "define ")) {
            const char *name = word + 7;
            size_t bytes = strcspn(name, " (");
            Definition definition = {intern_n(&p->names, name, bytes), node};
            vec_push(p->arena, &p->definition, definition);
        } else if (!word && !in_macro) {
            d.made_by_macro = is_macro_call(line);
            scan_line(p, &s, line, define, &d);
        }
        includes |= word && starts(word, "include");
        size_t length = strlen(line);
        in_macro = (word || in_macro) && length && line[length - 1] == '\\';
    }
    if (includes)
        p->definition.n = before;
    if (p->definition.n == before)
        n->kind = SETTING;
}

static void reach(Paste *p, const Scan *s, const char *name, size_t bytes, char before,
                  const char *after, void *data)
{
    (void)s, (void)before, (void)after, (void)data;
    Str interned = intern_n(&p->names, name, bytes);
    if (map_get(&p->seen, interned))
        return;
    map_put(p->arena, &p->seen, interned, p);
    vec_push(p->arena, &p->reached, interned);
}

static void reach_lines(Paste *p, int first, int last)
{
    Scan s = {0};
    for (int i = first; i < last; i++)
        scan_line(p, &s, p->line.at[i], reach, NULL);
}

static int by_name(const void *a, const void *b)
{
    const Definition *x = a, *y = b;
    return x->name != y->name ? ((uintptr_t)x->name < (uintptr_t)y->name ? -1 : 1)
                              : x->node - y->node;
}

static int first_definition(const Paste *p, Str name)
{
    int low = 0, high = p->definition.n;
    while (low < high) {
        int middle = (low + high) / 2;
        if ((uintptr_t)p->definition.at[middle].name < (uintptr_t)name)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void keep(Paste *p, int node);

/* Keeps the conditions around a node and the settings of its part. */
static void keep_surroundings(Paste *p, int node)
{
    int part = p->node.at[node].part, depth = 0;
    for (int i = node - 1; i >= 0 && p->node.at[i].part == part; i--) {
        if (p->node.at[i].kind != CONDITION)
            continue;
        const char *word = directive(p->line.at[p->node.at[i].first]);
        depth += starts(word, "endif") ? 1 : starts(word, "if") ? -1 : 0;
        if (depth < 0 && starts(word, "if")) {
            keep(p, i);
            depth = 0;
        }
    }
    for (int i = 0; i < p->node.n; i++)
        if (p->node.at[i].part == part && p->node.at[i].kind == SETTING)
            keep(p, i);
}

/* Keeps the other directives of the group that begins at node. */
static void keep_group(Paste *p, int node)
{
    int depth = 0;
    for (int i = node; i < p->node.n; i++) {
        Node *n = &p->node.at[i];
        if (n->kind != CONDITION)
            continue;
        const char *word = directive(p->line.at[n->first]);
        depth += starts(word, "if") ? 1 : starts(word, "endif") ? -1 : 0;
        if (depth == 1 || (depth == 0 && starts(word, "endif")))
            if (!starts(word, "if") || i == node)
                n->kept = 1, reach_lines(p, n->first, n->last);
        if (depth == 0)
            return;
    }
}

static void keep(Paste *p, int node)
{
    Node *n = &p->node.at[node];
    if (n->kept)
        return;
    n->kept = 1;
    reach_lines(p, n->first, n->last);
    if (n->kind == CONDITION)
        keep_group(p, node);
    keep_surroundings(p, node);
}

static void follow_names(Paste *p)
{
    for (int i = 0; i < p->reached.n; i++) {
        Str name = p->reached.at[i];
        for (int k = first_definition(p, name);
             k < p->definition.n && p->definition.at[k].name == name; k++)
            keep(p, p->definition.at[k].node);
    }
}

/* A heading stays when something is left between it and the next one. The first of a part belongs
 * to all of it. */
static void keep_headings(Paste *p)
{
    int head = 1;
    for (int i = 0; i < p->node.n; i++) {
        int part = p->node.at[i].part;
        head = i == 0 || p->node.at[i - 1].part != part;
        if (p->node.at[i].kind != HEADING)
            continue;
        for (int k = i + 1; k < p->node.n && p->node.at[k].part == part; k++) {
            if (p->node.at[k].kind == HEADING && !head)
                break;
            if (p->node.at[k].kind != HEADING && p->node.at[k].kept)
                p->node.at[i].kept = 1;
        }
    }
}

/* ---- order ---- */

static int find_part(const char *file)
{
    for (int i = 0; runtime_part[i].file; i++)
        if (!strcmp(runtime_part[i].file, file))
            return i;
    return -1;
}

/* Reads a part after those that it includes. */
static void visit(Paste *p, int part, char *visited)
{
    if (part < 0 || visited[part])
        return;
    visited[part] = 1;
    for (int i = 0; runtime_part[part].line[i]; i++) {
        const char *line = runtime_part[part].line[i];
        char file[64];
        if (sscanf(line, "#include \"%63[^\"]\"", file) == 1)
            visit(p, find_part(file), visited);
    }
    int first = p->line.n;
    read_part(p, part);
    split(p, part, first);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const Include *)a)->line, ((const Include *)b)->line);
}

static int is_pasted(const Paste *p, int part)
{
    for (int i = 0; i < p->node.n; i++)
        if (p->node.at[i].part == part && p->node.at[i].kept)
            return 1;
    return 0;
}

static void print_includes(Paste *p, Out *o)
{
    const char *last = "";
    qsort(p->include.at, (size_t)p->include.n, sizeof *p->include.at, by_text);
    for (int i = 0; i < p->include.n; i++) {
        const Include *include = &p->include.at[i];
        if (strcmp(last, include->line) && is_pasted(p, include->part))
            out_line(o, "%s", last = include->line);
    }
}

static void print_pieces(Paste *p, Out *o)
{
    int part = -1, blank = 0;
    for (int i = 0; i < p->node.n; i++) {
        const Node *n = &p->node.at[i];
        blank |= n->blank;
        if (!n->kept)
            continue;
        if (n->part != part) {
            part = n->part;
            out_line(o, "\n/* ---- %s ---- */", runtime_part[part].file);
            blank = 1;
        }
        if (blank)
            out_text(o, "\n");
        blank = 0;
        for (int k = n->first; k < n->last; k++)
            out_line(o, "%s", p->line.at[k]);
    }
}

void runtime_paste(Arena *arena, const char *program, Out *includes, Out *o)
{
    Paste p = {.arena = arena};
    Scan s = {0};
    names_init(&p.names, arena);
    while (runtime_part[p.parts].file)
        p.parts++;
    char *visited = new_array(arena, char, p.parts + 1);
    for (int i = 0; i < p.parts; i++)
        visit(&p, i, visited);
    for (int i = 0; i < p.node.n; i++)
        if (p.node.at[i].kind == PIECE)
            find_definitions(&p, i);
    qsort(p.definition.at, (size_t)p.definition.n, sizeof *p.definition.at, by_name);
    for (const char *line = program; *line;) {
        size_t n = strcspn(line, "\n");
        scan_line(&p, &s, arena_copy(arena, line, n), reach, NULL);
        line += n + (line[n] == '\n');
    }
    follow_names(&p);
    keep_headings(&p);
    print_includes(&p, includes);
    print_pieces(&p, o);
}
