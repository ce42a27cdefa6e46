#include "passes/index.h"
#include <string.h>

int is_one(const Dim *d)
{
    int64_t value;
    return dim_is_int(d, &value) && value == 1;
}

static const Dim *zero(IndexMaker *m)
{
    return dim_int(m->types, 0);
}

Affine affine_int(IndexMaker *m, int64_t value)
{
    Affine a = {dim_int(m->types, value), new_array(m->arena, const Dim *, m->loops + 1)};
    for (int l = 0; l < m->loops; l++)
        a.stride[l] = zero(m);
    return a;
}

Affine affine_loop(IndexMaker *m, int loop)
{
    Affine a = affine_int(m, 0);
    a.stride[loop] = dim_int(m->types, 1);
    return a;
}

Affine affine_shift(IndexMaker *m, const Affine *a, const Dim *offset)
{
    Affine sum = {dim_add(m->types, a->offset, offset), a->stride};
    return sum;
}

Affine affine_sum(IndexMaker *m, const Affine *a, const Affine *b, const Dim *factor)
{
    Affine sum = affine_int(m, 0);
    sum.offset = dim_add(m->types, a->offset, dim_mul(m->types, b->offset, factor));
    for (int l = 0; l < m->loops; l++)
        sum.stride[l] = dim_add(m->types, a->stride[l], dim_mul(m->types, b->stride[l], factor));
    return sum;
}

int affine_equal(IndexMaker *m, const Affine *a, const Affine *b)
{
    return a->offset == b->offset &&
           (!m->loops || !memcmp(a->stride, b->stride, sizeof *a->stride * (size_t)m->loops));
}

Affine index_number(IndexMaker *m, const Type *type, const Index *at)
{
    if (at->linear)
        return at->at[0];
    Affine number = affine_int(m, 0);
    const Dim *stride = dim_int(m->types, 1);
    for (int i = type->rank - 1; i >= 0; i--) {
        number = affine_sum(m, &number, &at->at[i], stride);
        stride = dim_mul(m->types, stride, type->dim[i]);
    }
    return number;
}

void index_broadcast(IndexMaker *m, const Type *to, const Index *at, const Type *from, Index *out)
{
    Index copy = {.linear = 0};
    if (at->linear && same_shape(to, from)) {
        *out = *at;
        return;
    }
    int shift = to->rank - from->rank;
    for (int i = 0; i < from->rank; i++)
        copy.at[i] = from->dim[i] == to->dim[i + shift] ? at->at[i + shift] : affine_int(m, 0);
    *out = copy;
}

/* Splits dimensions: every dimension of `from` that is not 1 is the product of a run of dimensions
 * of `to`; run_end[i] is where the run of from's dimension i ends. */
static int find_runs(IndexMaker *m, const Type *from, const Type *to, int *run_end)
{
    int k = 0;
    for (int i = 0; i < from->rank; i++) {
        if (!is_one(from->dim[i])) {
            const Dim *product = dim_int(m->types, 1);
            while (k < to->rank && product && product != from->dim[i])
                product = dim_mul(m->types, product, to->dim[k++]);
            if (product != from->dim[i])
                return 0;
        }
        run_end[i] = k;
    }
    while (k < to->rank && is_one(to->dim[k]))
        k++;
    return k == to->rank;
}

int view_is_plain(IndexMaker *m, const Node *view)
{
    int run_end[MAX_RANK];
    return view->op != OP_RESHAPE || find_runs(m, view->in[0]->type, view->type, run_end);
}

static void through_reshape(IndexMaker *m, const Node *view, const Index *at, Index *out)
{
    const Type *from = view->in[0]->type, *to = view->type;
    int run_end[MAX_RANK];
    if (at->linear || !find_runs(m, from, to, run_end)) {
        Affine number = index_number(m, to, at);
        out->linear = 1;
        out->at[0] = number;
        return;
    }
    Index result = {.linear = 0};
    for (int i = 0, k = 0; i < from->rank; i++) {
        Affine sum = affine_int(m, 0);
        const Dim *stride = dim_int(m->types, 1);
        for (int d = run_end[i] - 1; d >= k; d--) {
            sum = affine_sum(m, &sum, &at->at[d], stride);
            stride = dim_mul(m->types, stride, to->dim[d]);
        }
        k = run_end[i];
        result.at[i] = sum;
    }
    *out = result;
}

int index_through(IndexMaker *m, const Node *view, const Index *at, Index *out)
{
    const Type *from = view->in[0]->type;
    Index result = {.linear = 0};
    switch (view->op) {
    case OP_RESHAPE:
        through_reshape(m, view, at, out);
        return 1;
    case OP_PERMUTE:
        if (at->linear)
            return 0;
        for (int i = 0; i < from->rank; i++)
            result.at[view->attrs->at[0].ints.at[i]] = at->at[i];
        break;
    case OP_SLICE: {
        if (at->linear)
            return 0;
        int axis = (int)view->attrs->at[0].i;
        result = *at;
        result.at[axis] = affine_shift(m, &at->at[axis], view->attrs->at[1].dims.at[0]);
        break;
    }
    case OP_EXPAND:
        if (at->linear && !same_shape(view->type, from))
            return 0;
        index_broadcast(m, view->type, at, from, &result);
        break;
    default: /* DETACH and the marks of calls change nothing */
        result = *at;
        break;
    }
    *out = result;
    return 1;
}
