/* Stand-ins for parts that are on their way; this file goes when the last one is there. */
#ifndef AMPC_API_PENDING_H
#define AMPC_API_PENDING_H
#include "passes/plan.h"

#if __has_include("codegen/emit.h")
#include "codegen/emit.h"
#else
void emit_program(Unit *u, Out *o);
void emit_lib(Unit *u, const char *prefix, Out *c, Out *h);
#endif

#if __has_include("passes/memplan.h")
#include "passes/memplan.h"
#else
void mem_report(Unit *u, Out *o);
#endif
#endif
