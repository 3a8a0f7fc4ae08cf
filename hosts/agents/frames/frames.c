/* Frames of agents' interfaces (frames.h). */
#include "frames.h"

#include <stdbool.h>

static unsigned byte_at(const uint8_t *frame, uint64_t length, uint64_t offset) {
    return offset < length ? frame[offset] : 0;
}

static unsigned word_at(const uint8_t *frame, uint64_t length, uint64_t offset) {
    return byte_at(frame, length, offset) << 8 | byte_at(frame, length, offset + 1);
}

/* From 1; 0: of none. What is behind a frame's end counts as zeros. */
static uint64_t class_of(const struct gb_word *words, uint64_t count, const uint8_t *frame, uint64_t length) {
    uint64_t number = 1;
    bool fits = true;
    for (const struct gb_word *word = words; word < words + count; word++) {
        fits = fits && (word_at(frame, length, word->offset) & word->mask) == word->value;
        if (!word->last)
            continue;
        if (fits)
            return number;
        number++;
        fits = true;
    }
    return 0;
}

uint64_t gb_count_classes(const struct gb_word *words, uint64_t word_count, uint64_t *counts, const uint8_t *frames,
                          uint64_t stride, const uint32_t *lengths, uint64_t count) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t length = lengths ? lengths[i] : stride;
        bytes += length;
        counts[class_of(words, word_count, frames + i * stride, length)]++;
    }
    return bytes;
}

enum { ETHERNET_BYTES = 14, IPV4 = 0x0800, UDP = 17, FRAGMENT_MASK = 0x3FFF };

static bool is_datagram_to(const uint8_t *frame, uint64_t length, unsigned port) {
    if (length < ETHERNET_BYTES + 10 || word_at(frame, length, 12) != IPV4 || frame[23] != UDP
        || word_at(frame, length, 20) & FRAGMENT_MASK)
        return false;
    uint64_t udp = ETHERNET_BYTES + 4 * (frame[ETHERNET_BYTES] & 15);
    return length >= udp + 4 && word_at(frame, length, udp + 2) == port;
}

uint64_t gb_datagrams_to(uint32_t port, uint8_t *wanted, const uint8_t *frames, uint64_t stride, const uint32_t *lengths,
                         uint64_t count) {
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++)
        found += wanted[i] = is_datagram_to(frames + i * stride, lengths[i], port);
    return found;
}
