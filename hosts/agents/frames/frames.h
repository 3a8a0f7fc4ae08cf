/* What agents' interfaces look at in every frame, and how an agent's own C gets at an interface. */
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

/* Calls of a simulated network's card, as switch/runtime/engine/engine.h has them. */
struct gb_card_calls {
    void *network;
    uint64_t card;
    int (*waiting)(void *network, uint32_t card, uint32_t *longest);
    int (*receive)(void *network, uint32_t card, uint8_t *frames, uint64_t stride, uint32_t *lengths, uint64_t *times_ns,
                   uint32_t capacity);
    int (*send)(void *network, uint32_t card, const uint8_t *frames, uint64_t stride, const uint32_t *lengths,
                const uint64_t *times_ns, uint32_t count);
};

/* An interface that one agent has for itself (native_interface.py). */
struct gb_interface {
    struct gb_card_calls card;
    const struct gb_word *words;        /* classes to count by */
    uint64_t word_count;
    uint64_t *received_classes, *sent_classes;
    uint64_t received_frames, received_bytes, sent_frames, sent_bytes;
    /* Room for frames that come or go, shared by all interfaces: nobody else acts meanwhile. */
    uint8_t *rows;
    uint32_t *lengths;
    uint64_t *times_ns;
    uint64_t stride, capacity;
};

/* All that waits, into rows; how many, or -1 if it has no room there. It does not count yet. */
int64_t gb_interface_receive(struct gb_interface *);
/* What came counts. */
void gb_interface_received(struct gb_interface *, int64_t frames);
/* Frames from rows, each frame_bytes long and as far apart; counts them. Negative: out of memory. */
int gb_interface_send(struct gb_interface *, uint64_t frame_bytes, int64_t frames);

#endif
