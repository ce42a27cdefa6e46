/* The IR's own text: one node a line, every type explicit. What print writes, parse reads back; print →
 * parse → print is a fixpoint, so any pass can be tested from text.
 *
 *     entry train fit batch=64
 *       dim N in 1..64
 *       segment times=1
 *         x: f32[N, 64] = input(name="x") @0:890
 *         w: bf16[128, 64] = read(net.fc1.weight#0) @0:655
 *         h: bf16[N, 128] = matmul(x_1, w, ta=false, tb=true) @0:702
 */
#ifndef AMPC_IR_TEXT_H
#define AMPC_IR_TEXT_H
#include "ir/program.h"

void program_print(Out *o, Program *p, int spans); /* spans: with @file:offset */
void node_print(Out *o, Program *p,
                const Node *n); /* one line, for messages about our own faults */
const char *stage_name(Stage stage);
const char *init_name(InitKind kind);
const char *region_name(Region region);
#endif
