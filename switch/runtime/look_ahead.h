/* Looking ahead: reading what will be needed soon, so that it is in the processor's caches by then.
 *
 * By loads, not by instructions to prefetch: processors may ignore these where they do not know the page's place, and of a
 * large network's pages they know few.
 */
#ifndef GRADBED_LOOK_AHEAD_H
#define GRADBED_LOOK_AHEAD_H

#include <stdint.h>

enum { LINE_BYTES = 64 };           /* of the caches */

static inline void look_at_line(const void *address) {
    (void)*(const volatile char *)address;
}

static inline void look_at_lines(const void *address, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        look_at_line((const char *)address + i * LINE_BYTES);
}

#endif
