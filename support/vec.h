/* A growable array in an arena.
 *
 *     Vec(Node *) v = {0};   vec_push(arena, &v, n);   for (int i = 0; i < v.n; i++) use(v.at[i]);
 */
#ifndef AMPC_SUPPORT_VEC_H
#define AMPC_SUPPORT_VEC_H
#include "support/arena.h"
#include <string.h>

#define Vec(T)                                                                                     \
    struct {                                                                                       \
        T *at;                                                                                     \
        int n, room;                                                                               \
    }

#define vec_push(arena, v, item)                                                                   \
    ((v)->n == (v)->room                                                                           \
         ? (void)((v)->at = vec_grow((arena), (v)->at, (v)->n, &(v)->room, sizeof *(v)->at))       \
         : (void)0,                                                                                \
     (v)->at[(v)->n++] = (item))

static inline void *vec_grow(Arena *arena, void *old, int n, int *room, size_t item_size)
{
    *room = *room ? 2 * *room : 8;
    void *fresh = arena_alloc(arena, item_size * (size_t)*room);
    if (n)
        memcpy(fresh, old, item_size * (size_t)n);
    return fresh;
}
#endif
