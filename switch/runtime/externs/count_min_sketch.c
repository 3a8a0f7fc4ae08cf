/* The count-min sketch of Cormode and Muthukrishnan, "An Improved Data Stream Summary: The Count-Min Sketch and its
 * Applications" (Journal of Algorithms 55, 2005): a key adds to one count of each row, and the least of these is its
 * estimate. Rows hash with functions that are pairwise independent: (a x + b) mod p mod columns, p = 2^61 - 1. */
#include "externs/count_min_sketch.h"
#include "state/state.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define PRIME ((UINT64_C(1) << 61) - 1)

struct sketch {
    uint64_t rows, columns;
    uint32_t counts[];          /* row by row */
};

/* The same numbers in every switch: sketches of equal size can be added. */
static uint64_t drawn(uint64_t number) {
    uint64_t mixed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return (mixed ^ mixed >> 31) % PRIME;
}

static uint32_t *count_of(struct sketch *sketch, uint64_t row, uint64_t key) {
    unsigned __int128 hashed = (unsigned __int128)(drawn(2 * row) | 1) * (key % PRIME) + drawn(2 * row + 1);
    return &sketch->counts[row * sketch->columns + (uint64_t)(hashed % PRIME) % sketch->columns];
}

static void *create(const uint64_t *attributes) {
    struct sketch *sketch = calloc(1, sizeof *sketch + attributes[0] * attributes[1] * sizeof sketch->counts[0]);
    if (sketch) {
        sketch->rows = attributes[0];
        sketch->columns = attributes[1];
    }
    return sketch;
}

const struct gb_extern_kind gb_count_min_sketch = {create, free};

uint64_t gb_count_min_sketch_estimate(void *object, uint64_t key) {
    struct sketch *sketch = object;
    uint32_t least = UINT32_MAX;
    for (uint64_t row = 0; row < sketch->rows; row++) {
        uint32_t count = *count_of(sketch, row, key);
        least = count < least ? count : least;
    }
    return least;
}

/* A count that is full stays so. */
uint64_t gb_count_min_sketch_update(void *object, uint64_t key, uint64_t amount) {
    struct sketch *sketch = object;
    for (uint64_t row = 0; row < sketch->rows; row++) {
        uint32_t *count = count_of(sketch, row, key);
        *count = amount > UINT32_MAX - *count ? UINT32_MAX : *count + (uint32_t)amount;
    }
    return gb_count_min_sketch_estimate(object, key);
}

/* ---- For the control plane: all counts, in network byte order ---- */

void gb_count_min_sketch_clear(void *object) {
    struct sketch *sketch = object;
    memset(sketch->counts, 0, sketch->rows * sketch->columns * sizeof sketch->counts[0]);
}

void gb_count_min_sketch_read(const void *object, uint8_t *counts) {
    const struct sketch *sketch = object;
    for (uint64_t i = 0; i < sketch->rows * sketch->columns; i++) {
        uint32_t count = htonl(sketch->counts[i]);
        memcpy(counts + i * sizeof count, &count, sizeof count);
    }
}

void gb_count_min_sketch_write(void *object, const uint8_t *counts) {
    struct sketch *sketch = object;
    for (uint64_t i = 0; i < sketch->rows * sketch->columns; i++) {
        uint32_t count;
        memcpy(&count, counts + i * sizeof count, sizeof count);
        sketch->counts[i] = ntohl(count);
    }
}
