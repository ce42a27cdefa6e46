/* The syntax tree alone, while ast.h and ir/ share names. */
#if __has_include("frontend/elab.h")
typedef int unused;
#else
#include "frontend/parse.h"

void parse_alone(const Source *source, Diags *diags, Names *names, Arena *arena, Out *print);
void parse_alone(const Source *source, Diags *diags, Names *names, Arena *arena, Out *print)
{
    Ast *ast = parse(source, diags, names, arena);
    if (print && !diags->errors)
        ast_print(ast, print);
}
#endif
