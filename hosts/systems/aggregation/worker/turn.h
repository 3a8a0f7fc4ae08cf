/* What a worker does when ACKs have come or a timer has run out, as long as nothing unusual is among it. */
#ifndef GRADBED_AGGREGATION_TURN_H
#define GRADBED_AGGREGATION_TURN_H

#include "frames.h"
#include "packing.h"

enum {
    GB_NOTHING_DUE = -1,    /* only an ACK can bring that about */
    GB_ALL_THERE = -2,      /* the round is finished */
    GB_UNUSUAL = -3,        /* what waits is for the agent to receive */
    GB_UNUSUAL_CAME = -4,   /* and the same of what lies in the interface's rows, came[] of it */
    GB_NO_MEMORY = -5,
};

struct gb_worker {
    struct gb_sender *sender;
    struct gb_interface *interface;
    struct gb_gradient_layout layout;
    /* What leaves, as gb_sender_pack takes it. */
    const uint8_t *headers;
    int64_t header_count;
    const int32_t *gradient;
    int64_t values;
    /* And what comes, as gb_sender_take does. */
    int32_t *sums;
    int64_t *shifts;
    /* First bytes of frames that this worker takes in, known_count rows. */
    const uint8_t *known;
    int64_t known_count, known_bytes;
    int64_t came, sent;                 /* frames in this turn */
};

/* ACKs first, then what is due; when something is due next, or one of the above. */
int64_t gb_worker_turn(struct gb_worker *, int64_t now_us);

#endif
