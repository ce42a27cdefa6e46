/* What print.c and print_node.c share. */
#ifndef AMPC_IR_PRINT_NODE_H
#define AMPC_IR_PRINT_NODE_H
#include "ir/text.h"

typedef struct Printer {
    Out *o;
    Program *program;
    int spans;
    int *file; /* spans: number of each source, -1 for IR text */
} Printer;

void print_string(Out *o, const char *s);
/* A name: bare where the lexer takes it for one word, else as a string. */
void print_word(Out *o, const char *s);
void print_span(Printer *w, Span span); /* " @file:begin..end", or nothing */
void print_nodes(Printer *w, Graph *g);
#endif
