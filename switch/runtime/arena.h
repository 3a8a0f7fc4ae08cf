/* Memory that is given back all at once (arena.c). What is taken one after the other lies side by side, in whole lines of
 * the cache, and where there is much of it, in large pages. */
#ifndef GRADBED_ARENA_H
#define GRADBED_ARENA_H

#include <stddef.h>

#pragma GCC visibility push(hidden)

struct arena {
    struct arena_block *blocks;
    char *at, *end;                 /* what is left of the last one */
    size_t next_bytes;              /* of the next one, at least */
};

/* Zeroed, and aligned to a line of the cache; NULL when out of memory. */
void *arena_take(struct arena *, size_t bytes);
void arena_free(struct arena *);

#pragma GCC visibility pop
#endif
