/* The rows of optim.def, read once. */
#ifndef AMPC_IR_OPTIM_H
#define AMPC_IR_OPTIM_H
#include "ir/program.h"

enum { MAX_STATES = 3 };
typedef struct OptimInfo {
    const char *id, *name, *prose;
    const char *body; /* the statements, braces included, on one line */
    int hypers;
    const char *hyper[MAX_HYPERS]; /* "lr", "beta1", "beta2" (betas = (…, …) gives two), "eps" … */
    double fallback[MAX_HYPERS]; /* NAN: must be given */
    int flag[MAX_HYPERS];        /* the hyper is a bool */
    int states;
    const char *state[MAX_STATES];
    const char *derived; /* "bc1,bc2", "first", "" */
} OptimInfo;

int optim_count(void);
const OptimInfo *optim_info(int kind);
int optim_find(const char *name); /* -1 if there is none */
void optim_list(Out *o);          /* --list-optimizers */
/* Does the derived scalar stand in the row's list? */
int optim_derives(const OptimInfo *info, const char *derived);
#endif
