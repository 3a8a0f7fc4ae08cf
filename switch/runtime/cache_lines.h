/* Lines of the processor's caches.
 *
 * Looking at one is reading it before it is needed, so that it is in the cache by then. It is a load, and not an instruction to
 * prefetch: processors ignore these where they do not know the page's place, and of a large network's pages they know few.
 */
#ifndef GRADBED_CACHE_LINES_H
#define GRADBED_CACHE_LINES_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define GB_LINE_BYTES ((size_t)64)

static inline size_t gb_lines_of(size_t bytes) {
    return (bytes + GB_LINE_BYTES - 1) / GB_LINE_BYTES;
}

/* Memory of whole lines, all 0, for free(); NULL when there is none. */
static inline void *gb_lines_alloc(size_t bytes) {
    void *lines = aligned_alloc(GB_LINE_BYTES, gb_lines_of(bytes) * GB_LINE_BYTES);
    return lines ? memset(lines, 0, bytes) : NULL;
}

static inline void gb_prefetch_line(const void *address) {
    (void)*(const volatile char *)address;
}

static inline void gb_prefetch_lines(const void *address, size_t count) {
    for (size_t i = 0; i < count; i++)
        gb_prefetch_line((const char *)address + i * GB_LINE_BYTES);
}

#endif
