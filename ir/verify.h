/* What must hold for a program at its stage. A breach is our own fault: it becomes an error of code INTERNAL
 * that names the pass and prints the node. */
#ifndef AMPC_IR_VERIFY_H
#define AMPC_IR_VERIFY_H
#include "ir/program.h"

void verify_program(Program *p, const char *pass);
#endif
