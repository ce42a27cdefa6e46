/* What must hold for a program at its stage. A breach is our own fault: it becomes an error of code
 * INTERNAL that names the pass and prints the node; of a program read from text (`pass` NULL) it is
 * an error of code RULE. docs/ir.md lists the rules. */
#ifndef AMPC_IR_VERIFY_H
#define AMPC_IR_VERIFY_H
#include "ir/program.h"

void verify_program(Program *p, const char *pass);
#endif
