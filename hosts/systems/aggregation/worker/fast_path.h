/* What a worker does when ACKs have come or a timer has run out, as long as nothing unusual is among it. */
#ifndef GRADBED_AGGREGATION_FAST_PATH_H
#define GRADBED_AGGREGATION_FAST_PATH_H

#include "frames.h"
#include "packing.h"

enum {
    GB_NOTHING_DUE = -1,    /* only an ACK can bring that about */
    GB_ALL_THERE = -2,      /* the round is finished */
    GB_UNUSUAL = -3,        /* nothing was done: the frames are for the agent */
    GB_NO_MEMORY = -4,
};

struct gb_worker {
    struct gb_sender *sender;
    struct gb_gradient_layout layout;
    /* What leaves, as gb_sender_pack takes it. */
    const uint8_t *headers;
    int64_t header_count;
    const int32_t *gradient;
    int64_t values;
    uint8_t *out;                       /* room for a window of frames */
    /* And what comes, as gb_sender_take does. */
    int32_t *sums;
    int64_t *shifts;
    /* First bytes of frames that this worker takes in, known_count rows. */
    const uint8_t *known;
    int64_t known_count, known_bytes;
    /* Classes to count by, and where. */
    const struct gb_word *words;
    uint64_t word_count;
    uint64_t *received_classes, *sent_classes;
    int64_t sent;                       /* frames in `out` */
};

/* ACKs first, `count` rows of frames; then what is due, in `out`. When something is due next, or one of the above. */
int64_t gb_worker_fast_path(struct gb_worker *, const uint8_t *frames, uint64_t stride, const uint32_t *lengths,
                            int64_t count, int64_t now_us);

#endif
