/* A congestion control of queue pairs: a value of this type in a file of congestion/, and its line in congestion.c.
 *
 * A control sets sender.window_bytes or, by sender_set_rate, sender.rate_bps. All arithmetic is in integers, so that a run
 * is the same on every machine.
 */
#ifndef GRADBED_CONGESTION_H
#define GRADBED_CONGESTION_H

#include "engine/transport/pair.h"

/* As Linux's struct tcp_congestion_ops. A function that is NULL does nothing. */
struct congestion_control {
    const char *name;
    size_t state_bytes;             /* of pair->congestion_state, which is zeroed before open */
    bool ecn_capable;               /* data packets are ECT(0), so that switches mark them (RFC 3168) */
    bool echoes_marks;              /* the receiver's acknowledgements have the bytes that came marked */
    bool sends_cnps;                /* the receiver answers marks by congestion notification packets */
    bool needs_window, needs_rate;  /* options.window_bytes; options.rate_bps, or a link with a rate */
    void (*open)(struct queue_pair *, uint64_t line_bps);
    /* acked_bytes: newly; marked_bytes: of all that came at the receiver, modulo 2^32. Where marks are echoed. */
    void (*acknowledged)(struct queue_pair *, uint64_t acked_bytes, uint32_t marked_bytes);
    void (*loss)(struct queue_pair *);
    void (*timeout)(struct queue_pair *);
    void (*notified)(struct queue_pair *, uint64_t now_ns);
    void (*sent)(struct queue_pair *, uint64_t frame_bytes);
    /* Bring window and rate to that time, before they are used. */
    void (*catch_up)(struct queue_pair *, uint64_t now_ns);
};

#pragma GCC visibility push(hidden)

extern const struct congestion_control congestion_callback;

#pragma GCC visibility pop
#endif
