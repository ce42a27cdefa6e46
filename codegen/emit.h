/* Writes the program that a plan describes, as one C file.
 *
 * In this order: a banner with a list of contents, the pieces of the runtime that it needs, state,
 * parameters, kernels, optimizers, steps, and then either data and main, or the functions of a
 * library.
 */
#ifndef AMPC_CODEGEN_EMIT_H
#define AMPC_CODEGEN_EMIT_H
#include "passes/plan.h"

void emit_program(Unit *u, Out *o);
/* Only names that begin with prefix_ are external. */
void emit_lib(Unit *u, const char *prefix, Out *c, Out *h);
#endif
