/* The plan of the memory, for people: -fmem-report. */
#ifndef AMPC_PASSES_MEMPLAN_H
#define AMPC_PASSES_MEMPLAN_H
#include "passes/plan.h"

void mem_report(Unit *u, Out *o);
#endif
