/* Errors and warnings as values: recorded where they are found, printed by whoever owns the list.
 *
 *     Diag *d = error_at(diags, CODE_SHAPE, n->span, "matmul needs equal inner dimensions, found %s and %s", a, b);
 *     note_at(d, w->span, "'%s' is declared as %s here", w->name, type);
 *     fix_at(d, span, "784");
 */
#ifndef AMPC_SUPPORT_DIAG_H
#define AMPC_SUPPORT_DIAG_H
#include "support/out.h"
#include "support/source.h"

typedef enum Code {
#define CODE(id, name, kind, explanation) CODE_##id,
#include "support/warning.def"
#undef CODE
    CODE_COUNT
} Code;

typedef enum Severity { ERROR, WARNING, REMARK, NOTE, FIX, MARK } Severity;

typedef struct Diags Diags;
typedef struct Diag {
    Diags *owner;
    Severity severity;
    Code code;
    Span span;
    const char *text;          /* for FIX: the replacement of span */
    struct Diag *child, *next; /* notes, fix-its and marks of this one; the next one of the list */
} Diag;

struct Diags {
    Arena *arena;
    Sources *sources;
    Diag *first, *last;
    int errors, warnings;
    int max_errors;                  /* later errors are counted, not kept; 0: no limit */
    int warnings_are_errors;         /* -Werror */
    int remarks;                     /* --remarks: keep remarks */
    signed char enabled[CODE_COUNT]; /* warnings that are on; set by diags_init from warning.def */
    signed char as_error[CODE_COUNT];
};

void diags_init(Diags *d, Arena *arena, Sources *sources);
/* Takes the text after -W: "shape", "no-shape", "error", "error=shape", "no-error=shape"; 0 if
 * unknown. */
int diags_option(Diags *d, const char *text);
Diag *error_at(Diags *d, Code code, Span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
Diag *warn_at(Diags *d, Code code, Span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
Diag *remark_at(Diags *d, Span span, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* d may be NULL (a warning that is off): then nothing happens. */
void note_at(Diag *d, Span span, const char *format, ...) __attribute__((format(printf, 3, 4)));
void fix_at(Diag *d, Span span, const char *replacement); /* empty span: insert; "": remove */
void mark_at(Diag *d, Span span); /* underlines a second place of the same line */
Diag *system_error(Diags *d, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *diag_text(const Diag *d); /* the message; of a fix-it "replace 'a' with 'b'" */

const char *code_name(Code code);
const char *code_explanation(Code code);
int code_find(const char *name); /* -1 if there is none */

int diags_full(const Diags *d); /* more errors than max_errors: time to stop */
void diags_print(const Diags *d, Out *o,
                 int colour); /* carets, notes, fix-its; in the order raised */
/* Compares with the comments of the sources and writes what is missing or unexpected; gives the
 * number of differences. A comment names a substring of the message on its own line, on the line N
 * away, or (with *) anywhere, a message without a place included:
 *
 *     // expected-error {{…}}   expected-warning@-2 {{…}}   expected-note@+1 {{…}}   expected-remark@* {{…}}
 *
 * Fix-its may be expected ("expected-fix {{…}}" with their whole text) but need not be.
 */
int diags_verify(const Diags *d, Out *o);
#endif
