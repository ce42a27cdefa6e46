/* Removes casts that cannot change a value, and nodes that nobody reads. f16 -> f32 -> f16 goes,
 * because f32 holds every f16; f32 -> f16 -> f32 stays, because it rounds.
 *
 *     x: f16 ; y = cast(cast(x, f32), f16)   becomes   y = x
 */
#include "passes/each.h"

static Node *clean(Rewrite *w, Node *old, Node **in)
{
    (void)w;
    if (old->op != OP_CAST || in[0]->op != OP_CAST)
        return NULL;
    Node *x = in[0]->in[0];
    if (!dtype_holds(in[0]->type->dtype, x->type->dtype))
        return NULL;
    return build(OP_CAST, &x, 1, old->attrs);
}

void pass_clean(Unit *u)
{
    rewrite_program(u->program, clean, NULL);
}
