/* Tables about a program for people: --emit=summary and --emit=types. */
#ifndef AMPC_API_SUMMARY_H
#define AMPC_API_SUMMARY_H
#include "ir/program.h"

void print_summary(Out *o, Program *p);
void print_types(Out *o, Program *p);
#endif
