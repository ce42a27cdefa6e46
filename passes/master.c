/* Decides what is kept of each parameter: the weights that the optimizer steps on (`master`), and
 * beside f32 masters the low-precision copy that the graph reads (`copy`).
 *
 *     O2, f16:  net.fc1.weight: master f32, copy f16     bn.weight: f32     O3: f16 alone
 */
#include "passes/pass.h"

void pass_master(Unit *u)
{
    Program *p = u->program;
    for (int i = 0; i < p->params.n; i++) {
        Param *x = p->params.at[i];
        DType read = param_read_type(&p->props, x);
        int masters = is_half(read) && p->props.master_weights == ON && !x->is_buffer;
        x->master = masters ? DT_F32 : read;
        x->copy = masters ? read : DT_NONE;
    }
}
