/* The IR's own text: declarations and nodes one a line, every type explicit. What program_print
 * writes, program_read reads back into an equal program; so any pass can be tested from text, and a
 * dump can be compiled on. `//` begins a comment; the rest of the grammar is in docs/ir.md.
 *
 *     ampc-ir 1 stage=typed level=O2 half=f16
 *     optimizer opt: sgd(lr=0.1) over=[net]
 *     param net.fc1.weight: float[128, 64] init=uniform(-0.125, 0.125) optimizer=opt group=0 @0:655..680
 *     entry train fit batch=64
 *         dim N in 1..64 batch
 *         segment times=1
 *             x: float[N, 64] = input(name=x) @0:890..891
 *             w: float[128, 64] = read(net.fc1.weight#0) inside
 *             h: float[N, 128] = matmul(x, w, ta=false, tb=true) inside @0:702..710
 *             %3: float = sum(h, axes=[0, 1], keep=false)
 *             report(%3, name=loss)
 */
#ifndef AMPC_IR_TEXT_H
#define AMPC_IR_TEXT_H
#include "ir/program.h"

typedef enum PrintMode {
    PRINT_PLAIN, /* no places in the source */
    PRINT_SPANS, /* with @file:begin..end, and the source files at the end */
    PRINT_GRAPH  /* plain, and without the header: what does not depend on the level */
} PrintMode;

/* Stages after `expanded` print as `expanded`: fuse and memplan leave the graph as it is. */
void program_print(Out *o, Program *p, PrintMode mode);
void node_print(Out *o, Program *p,
                const Node *n); /* one line, for messages about our own faults */

/* Does the text begin with the header, comments aside? */
int is_ir_text(const Source *source);
/* Reads what program_print writes. props.resolved says whether the header names the level. Wrong
 * text is one error in `diags`, and the program is not complete. */
Program *program_read(const Source *source, Diags *diags, Names *names, Arena *arena);

const char *region_name(Region region);
#endif
