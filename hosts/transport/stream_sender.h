/* One end of a reliable stream of packets, as stream_sender.py says it.
 *
 * The other end (stream_receiver.py) acknowledges packets cumulatively, and selectively those beyond the first gap
 * (RFC 2018). A packet is lost when three that were sent after it have been acknowledged, or all have and nothing new may
 * be sent (RFC 6675, RFC 5827), or one that was sent a whole timeout later (RFC 8985). There is one timer (RFC 6298):
 * where it runs out, the oldest packet is sent again, and what comes of that tells whether the others are lost or a worker
 * was only kept waiting. What a repeated packet's acknowledgement says of time and order counts only if it cannot be due
 * to an earlier transmission (Karn and Partridge 1987; RFC 8985, section 6.2, for the least round trip).
 */
#ifndef GRADBED_STREAM_SENDER_H
#define GRADBED_STREAM_SENDER_H

#include "congestion_window.h"
#include "outstanding.h"
#include "retransmission_timeout.h"

enum {
    /* How many packets beyond the first missing one an acknowledgement tells of. */
    GB_SELECTIVE_BITS = 64,
    /* Unacknowledged numbers are never further apart than that; their packets lie at their numbers modulo this. */
    GB_STREAM_PACKETS = 128,
    /* Before the first sample the timeout is this many minimum timeouts. */
    GB_STREAM_INITIAL_FACTOR = 10,
};

struct gb_stream_sender {
    /* What Python looks at. */
    int64_t queued;                     /* packets that have never been sent */
    struct gb_outstanding outstanding;
    struct gb_congestion_window window;
    int64_t timeout_resends, early_resends, stale_acknowledgements;
    uint32_t numbers[GB_STREAM_PACKETS];    /* that the last call told of: to send, or acknowledged */

    struct gb_retransmission_timeout timeout;
    int64_t min_timeout_us;
    int64_t timeouts;                   /* how often the timer has run out since the last news */
    int64_t news_us;
    int64_t least_us;                   /* round trip; -1: none */
    uint64_t seed;
    uint32_t una, next;                 /* the oldest unacknowledged one, and the next that is sent first */
    struct gb_outstanding_packet packets[GB_STREAM_PACKETS];
};

/* seed: of random delays of timers that have run out before; 0: none. NULL: out of memory. */
struct gb_stream_sender *gb_stream_sender_create(int64_t window_packets, int64_t min_timeout_us, int adapts,
                                                 int heeds_losses, uint32_t first_sequence, uint64_t seed);
void gb_stream_sender_free(struct gb_stream_sender *);
/* What to send now, repeated ones first, `most` at most; counts as sent. How many, in `numbers`. */
int64_t gb_stream_sender_transmissions(struct gb_stream_sender *, int64_t now_us, int64_t most);
/* When there is something to send at the latest, 0: now; -1: after an acknowledgement alone. */
int64_t gb_stream_sender_deadline_us(const struct gb_stream_sender *);
/* All before `sequence` have come, and sequence + 1 + k for every set bit k. How many of them are news, in `numbers`. */
int64_t gb_stream_sender_acknowledge(struct gb_stream_sender *, uint32_t sequence, uint64_t selective, int congested,
                                     int64_t now_us);

#endif
