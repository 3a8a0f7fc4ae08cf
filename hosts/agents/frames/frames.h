/* What agents' interfaces look at in every frame. */
#ifndef GRADBED_HOSTS_FRAMES_H
#define GRADBED_HOSTS_FRAMES_H

#include <stdint.h>

/* A 16-bit word, big-endian: a frame fits if, masked, it is value. Of a class's words the last one ends it. */
struct gb_word {
    uint32_t offset;
    uint16_t mask, value;
    uint32_t last;
};

/* Adds frames to counts[class]. lengths: of each; NULL: whole rows of stride bytes. Returns how many bytes they have. */
uint64_t gb_count_classes(const struct gb_word *words, uint64_t word_count, uint64_t *counts, const uint8_t *frames,
                          uint64_t stride, const uint32_t *lengths, uint64_t count);

/* Which frames are Ethernet frames with an unfragmented IPv4 datagram to a UDP port; how many. */
uint64_t gb_datagrams_to(uint32_t port, uint8_t *wanted, const uint8_t *frames, uint64_t stride, const uint32_t *lengths,
                         uint64_t count);

#endif
