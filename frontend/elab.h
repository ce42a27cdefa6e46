/* From syntax tree to Program: names are resolved, imports followed, models and defs inlined where
 * they are called, sizes worked out, and each train, eval and infer becomes a graph.
 *
 *     Ast *ast = parse(source, diags, names, arena);
 *     if (!diags->errors) program = elaborate(ast, &options, diags, names, arena);
 *
 * The program is complete only if diags->errors is still 0.
 */
#ifndef AMPC_FRONTEND_ELAB_H
#define AMPC_FRONTEND_ELAB_H
#include "frontend/ast.h"
#include "ir/program.h"

typedef struct ElabOptions {
    const char *const *defines; /* "HIDDEN=64": the text after -D */
    int define_count;
    const char *const *include; /* folders after -I, for imports */
    int include_count;
} ElabOptions;

Program *elaborate(Ast *ast, const ElabOptions *options, Diags *diags, Names *names, Arena *arena);
#endif
