/* The packet replication engine's tables: multicast groups and clone sessions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/internal.h"

enum { PAGE_SETS = 256 };

const struct replica_set *replica_map_find(const struct replica_map *map, uint64_t number) {
    if (number > UINT16_MAX)
        return NULL;
    struct replica_set **page = map->pages[number >> 8];
    return page ? page[number & 0xff] : NULL;
}

/* Where the set of that number hangs; NULL when out of memory. */
static struct replica_set **slot(struct replica_map *map, uint32_t number) {
    struct replica_set ***page = &map->pages[number >> 8];
    if (!*page)
        *page = calloc(PAGE_SETS, sizeof **page);
    return *page ? &(*page)[number & 0xff] : NULL;
}

int replica_map_set(struct replica_map *map, uint32_t number, const struct gb_replica *replicas, uint32_t count,
                    uint32_t truncate_bytes, uint32_t class_of_service) {
    if (number > UINT16_MAX)
        return -EINVAL;
    for (uint32_t i = 0; i < count; i++)
        if (replicas[i].egress_port >= GB_MAX_PORTS || replicas[i].instance > UINT16_MAX)
            return -EINVAL;
    struct replica_set **at = slot(map, number);
    struct replica_set *set = at ? malloc(sizeof *set + count * sizeof *replicas) : NULL;
    if (!set)
        return -ENOMEM;
    set->count = count;
    set->truncate_bytes = truncate_bytes ? truncate_bytes : UINT32_MAX;
    set->class_of_service = class_of_service;
    if (count)
        memcpy(set->replicas, replicas, count * sizeof *replicas);
    free(*at);
    *at = set;
    return 0;
}

static bool is_empty(struct replica_set *const *page) {
    for (uint32_t low = 0; low < PAGE_SETS; low++)
        if (page[low])
            return false;
    return true;
}

static void drop_page(struct replica_map *map, uint32_t high) {
    free(map->pages[high]);
    map->pages[high] = NULL;
}

int replica_map_delete(struct replica_map *map, uint32_t number) {
    struct replica_set **at = replica_map_find(map, number) ? slot(map, number) : NULL;
    if (!at)
        return -ENOENT;
    free(*at);
    *at = NULL;
    /* A controller that never uses a number twice would come to hold all pages. */
    if (is_empty(map->pages[number >> 8]))
        drop_page(map, number >> 8);
    return 0;
}

void replica_map_clear(struct replica_map *map) {
    for (uint32_t high = 0; high < 256; high++) {
        if (!map->pages[high])
            continue;
        for (uint32_t low = 0; low < PAGE_SETS; low++)
            free(map->pages[high][low]);
        drop_page(map, high);
    }
}
