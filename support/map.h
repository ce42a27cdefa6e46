/* A table from interned names to pointers. Zeroed is empty.
 *
 *     Map map = {0};   map_put(arena, &map, name, node);   Node *n = map_get(&map, name);
 */
#ifndef AMPC_SUPPORT_MAP_H
#define AMPC_SUPPORT_MAP_H
#include "support/str.h"

typedef struct Map {
    Str *key; /* open addressing; room is a power of two, at most half full */
    void **value;
    size_t room, count;
} Map;

static inline size_t map_slot(const Map *m, Str key)
{
    uint64_t hash = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    size_t i = (size_t)(hash >> 32) & (m->room - 1);
    while (m->key[i] && m->key[i] != key)
        i = (i + 1) & (m->room - 1);
    return i;
}

/* NULL if the name is not there. */
static inline void *map_get(const Map *m, Str key)
{
    return m->room ? m->value[map_slot(m, key)] : NULL;
}

static inline void map_put(Arena *arena, Map *m, Str key, void *value)
{
    if (2 * m->count >= m->room) {
        Map larger = {.room = m->room ? 2 * m->room : 16, .count = m->count};
        larger.key = new_array(arena, Str, larger.room);
        larger.value = new_array(arena, void *, larger.room);
        for (size_t i = 0; i < m->room; i++)
            if (m->key[i]) {
                size_t to = map_slot(&larger, m->key[i]);
                larger.key[to] = m->key[i];
                larger.value[to] = m->value[i];
            }
        *m = larger;
    }
    size_t i = map_slot(m, key);
    m->count += !m->key[i];
    m->key[i] = key;
    m->value[i] = value;
}
#endif
