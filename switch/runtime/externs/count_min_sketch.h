/* What the control plane does with a count-min sketch (count_min_sketch.c). */
#ifndef GRADBED_COUNT_MIN_SKETCH_H
#define GRADBED_COUNT_MIN_SKETCH_H

#include <stdint.h>

void gb_count_min_sketch_clear(void *sketch);
/* All counts, row by row, in network byte order. */
void gb_count_min_sketch_read(const void *sketch, uint8_t *counts);
void gb_count_min_sketch_write(void *sketch, const uint8_t *counts);

#endif
