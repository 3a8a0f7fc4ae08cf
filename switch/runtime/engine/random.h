/* SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014). */
#ifndef GRADBED_ENGINE_RANDOM_H
#define GRADBED_ENGINE_RANDOM_H

#include <stdint.h>

static inline uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* From 0 to a half of `value`, by `seed`: what a timer that has run out before is longer by (RFC 5740, 5.2, "leave step").
 * Without jitter, senders whose timers were set in one nanosecond repeat in one, and of their packets a short queue takes
 * the same ones each time. (NICs with NVIDIA's adaptive retransmission draw the first timeout for this reason.) */
static inline uint64_t random_up_to_half(uint64_t value, uint64_t seed) {
    return (uint64_t)((unsigned __int128)value * random_next(&seed) >> 65);
}

#endif
