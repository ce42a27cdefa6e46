/* The parser of IR text, shared by its parts: tokens (reader.c), types and nodes (read_node.c),
 * declarations (parse.c).
 *
 * The first mistake is reported and moves the reader to the end of the text, where every loop
 * stops; what the parsing functions give back after that is not used.
 */
#ifndef AMPC_IR_READER_H
#define AMPC_IR_READER_H
#include "ir/program.h"
#include "ir/text_fields.h"
#include "support/map.h"

typedef enum TokenKind {
    TOKEN_END,
    TOKEN_LINE, /* end of a line that held something */
    TOKEN_WORD,
    TOKEN_INT,
    TOKEN_REAL,
    TOKEN_STRING,
    TOKEN_VALUE, /* %7 */
    TOKEN_MARK   /* punctuation and operators */
} TokenKind;

typedef struct Reader {
    const Source *source;
    const char *at; /* behind the token */
    TokenKind kind;
    Span span;
    Str text; /* WORD, STRING, VALUE, MARK */
    int64_t integer;
    double real; /* INT too */
    int failed;
    Program *program;
    Names *names;
    Arena *arena;
    Vec(Source *) files;
    Vec(uint32_t) file_need; /* how large each file must be for its spans */
    Map params;
    Entry *entry;
    Map symbols; /* of the entry: index plus 1, as a pointer to Symbol would move */
    Map values;  /* of the segment */
    int depth;   /* of nested parentheses */
} Reader;

enum { MAX_DEPTH = 100 };

void reader_open(Reader *r, const Source *source, Diags *diags, Names *names, Arena *arena);
void next_token(Reader *r);
void fail_at(Reader *r, Span span, const char *format, ...) __attribute__((format(printf, 3, 4)));
void fail(Reader *r, const char *wanted); /* "expected WANTED, found …" at the token */

int is_mark(const Reader *r, const char *mark);
int take_mark(Reader *r, const char *mark); /* steps over it if it is there */
void need_mark(Reader *r, const char *mark);
int is_keyword(const Reader *r, const char *word);
int take_keyword(Reader *r, const char *word);
void need_line(Reader *r); /* the end of a declaration */
Str need_name(Reader *r);  /* word or string */
Str need_word(Reader *r);  /* word only */
int64_t need_int(Reader *r);
int64_t need_int_in(Reader *r, int64_t low, int64_t high);
double need_real(Reader *r); /* a number of either kind, INFINITY or NAN */
int need_choice(Reader *r, const char *choices);
/* Steps over the rest of the line and gives its start and size: a line of a source block. */
const char *raw_line(Reader *r, size_t *size);

/* read_node.c */
const Type *read_type(Reader *r);
DType read_dtype(Reader *r);
Span read_span(Reader *r,
               Span fallback); /* "@0:12..20", if it is there; fallback: in the text itself */
void read_nodes(Reader *r, Graph *g); /* until a line that begins no node */

#endif
