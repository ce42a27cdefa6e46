/* From text to tree: `.amp` source in, Ast and diagnostics out. Imports are not followed.
 *
 *     Ast *ast = parse(source, diags, names, arena);   if (diags->errors == 0) ...
 */
#ifndef AMPC_FRONTEND_PARSE_H
#define AMPC_FRONTEND_PARSE_H
#include "frontend/ast.h"
#include "support/diag.h"

Ast *parse(const Source *source, Diags *diags, Names *names, Arena *arena);
#endif
