/* SPDX-License-Identifier: 0BSD */
/* One block of memory for all buffers of a program, and how many threads it uses.
 *
 *     layout(s);                            s->weight = (float *)rt_cut(&s->block, 1024, 4); ...
 *     status = rt_block_take(&s->block);
 *     layout(s);                            now the pieces have places
 */
#ifndef AMPC_RT_BLOCK_H
#define AMPC_RT_BLOCK_H
#include "rt_base.h"

/* One block of memory that is cut into pieces, each at a multiple of 64 bytes. Cutting without
 * memory counts; so a layout is cut twice, with rt_block_take() in between. */
typedef struct RtBlock {
    char *memory;
    size_t used, bytes;
} RtBlock;

RT_FN void *rt_cut(RtBlock *b, int64_t count, size_t size)
{
    char *piece = b->memory ? b->memory + b->used : NULL;
    b->used += ((size_t)count * size + 63) / 64 * 64;
    return piece;
}

RT_FN int rt_block_take(RtBlock *b)
{
    b->bytes = b->used;
    b->used = 0;
    b->memory = (char *)rt_alloc_pages(b->bytes);
    return b->memory ? RT_OK : RT_SYSTEM;
}

RT_FN void rt_block_free(RtBlock *b)
{
    rt_free_pages(b->memory, b->bytes);
    memset(b, 0, sizeof *b);
}

/* ---- threads ---- */

RT_FN int rt_threads(void)
{
#ifdef _OPENMP
    return omp_get_max_threads();
#else
    return 1;
#endif
}

/* Sets how many threads are used from now on; gives the number before. */
RT_FN int rt_use_threads(int threads)
{
    int before = rt_threads();
#ifdef _OPENMP
    if (threads != before)
        omp_set_num_threads(threads);
#else
    (void)threads;
#endif
    return before;
}
#endif
