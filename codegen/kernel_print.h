/* Prints kernels and their launches in a dialect.
 *
 * A kernel becomes a function: the user's source line as a comment, one parameter a line with its
 * shape, loops. Functions of FLAT, ROWS, COLUMNS and SCATTER take (int64_t lo, int64_t hi, buffers
 * in the order of the launch, run-time dimensions as int64_t, and uint64_t seed, uint32_t step,
 * uint32_t streams if they draw). An EPILOGUE is an RtEpilogue; its buffers and dimensions are in a
 * struct NAME_args printed before it.
 *
 * launch_print writes statements for a place where these names are visible: every buffer's name as
 * a pointer to its storage type, run-time dimensions by their symbols' names as int64_t, `uint64_t
 * seed`, `uint32_t step`, and `RtScratch scratch` for products. LAUNCH_UPDATE is not printed here.
 */
#ifndef AMPC_CODEGEN_KERNEL_PRINT_H
#define AMPC_CODEGEN_KERNEL_PRINT_H
#include "codegen/dialect.h"
#include "ir/kernel.h"
#include "passes/plan.h"

void kernel_print(Out *o, const Program *p, const Kernel *k, const Dialect *d);
void launch_print(Out *o, const Program *p, const Launch *l, const Dialect *d);
#endif
