/* --verify-diagnostics: compares what was raised with what comments in the sources expect.
 *
 *     h = relu(y);   // expected-error {{'y' is not declared}}
 *     // expected-note@-9 {{declared here}}
 */
#include "support/diag.h"
#include "support/vec.h"
#include <stdlib.h>
#include <string.h>

typedef struct Expectation {
    Severity severity;
    const Source *source;
    int line; /* 0: anywhere */
    const char *text;
    size_t length;
    int met;
} Expectation;

typedef struct Verify {
    const Diags *diags;
    Out *o;
    Vec(Expectation) expected;
    int differences;
} Verify;

static const char *const names[] = {"error", "warning", "remark", "note", "fix"};

static void complain(Verify *v, const char *path, int line, const char *what, Severity severity,
                     const char *text, size_t length)
{
    if (path)
        out_printf(v->o, "%s:%d: ", path, line);
    out_printf(v->o, "%s %s: %.*s\n", what, names[severity], (int)length, text);
    v->differences++;
}

/* Reads what follows "expected-" on a line: `error@+1 {{text}}`. 0 if it is not an expectation. */
static int read_expectation(const char *p, const char *end, int line, Expectation *e)
{
    size_t n = 0;
    for (int i = ERROR; i <= FIX; i++) {
        n = strlen(names[i]);
        e->severity = (Severity)i;
        if ((size_t)(end - p) > n && memcmp(p, names[i], n) == 0)
            break;
        n = 0;
    }
    if (n == 0)
        return 0;
    p += n;
    e->line = line;
    if (*p == '@' && p[1] == '*') {
        e->line = 0;
        p += 2;
    } else if (*p == '@') {
        char *after;
        e->line = line + (int)strtol(p + 1, &after, 10);
        p = after;
    }
    while (p < end && *p == ' ')
        p++;
    if (end - p < 4 || p[0] != '{' || p[1] != '{')
        return 0;
    e->text = p + 2;
    const char *close = memmem(e->text, (size_t)(end - e->text), "}}", 2);
    e->length = close ? (size_t)(close - e->text) : 0;
    return close != NULL;
}

static void collect(Verify *v, const Source *source)
{
    static const char word[] = "expected-";
    const char *p = source->text, *source_end = source->text + source->size;
    for (int line = source->first_line; p < source_end; line++) {
        const char *newline = memchr(p, '\n', (size_t)(source_end - p));
        const char *end = newline ? newline : source_end;
        const char *comment = memmem(p, (size_t)(end - p), "//", 2);
        const char *found = comment;
        while (found && (found = memmem(found, (size_t)(end - found), word, sizeof word - 1))) {
            found += sizeof word - 1;
            Expectation e = {.source = source};
            if (read_expectation(found, end, line, &e))
                vec_push(v->diags->arena, &v->expected, e);
            else
                complain(v, source->path, line, "cannot read this expected", ERROR, found,
                         (size_t)(end - found));
        }
        p = newline ? newline + 1 : source_end;
    }
}

static int meets(const Verify *v, const Expectation *e, const Diag *d, const char *text)
{
    Place place = place_of(v->diags->sources, d->span.file, d->span.begin);
    return !e->met && e->severity == d->severity &&
           (e->line == 0 ||
            (e->line == place.line && e->source == source_of(v->diags->sources, d->span))) &&
           memmem(text, strlen(text), e->text, e->length);
}

static void compare(Verify *v, const Diag *d)
{
    if (d->severity == MARK)
        return;
    const char *text = diag_text(d);
    int met = d->severity == FIX;
    for (int i = 0; i < v->expected.n; i++)
        if (meets(v, &v->expected.at[i], d, text)) {
            v->expected.at[i].met = met = 1;
            break;
        }
    if (!met) {
        Place place = place_of(v->diags->sources, d->span.file, d->span.begin);
        complain(v, place.path, place.line, "unexpected", d->severity, text, strlen(text));
    }
    for (const Diag *child = d->child; child; child = child->next)
        compare(v, child);
}

int diags_verify(const Diags *d, Out *o)
{
    Verify v = {.diags = d, .o = o};
    for (int i = 0; i < d->sources->count; i++)
        collect(&v, d->sources->files[i]);
    for (const Diag *diag = d->first; diag; diag = diag->next)
        compare(&v, diag);
    for (int i = 0; i < v.expected.n; i++) {
        const Expectation *e = &v.expected.at[i];
        if (!e->met)
            complain(&v, e->source->path, e->line, "missing", e->severity, e->text, e->length);
    }
    return v.differences;
}
