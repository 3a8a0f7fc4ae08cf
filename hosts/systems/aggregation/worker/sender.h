/* A worker's side of a round: which fragment goes out when, until every global sum is there. No sockets.
 *
 * The caller passes in the time and moves the packets. Fragments are sent in order, as many of them on their way as the
 * congestion window allows. One that is unacknowledged is sent again when its timer runs out, or sooner: when several that
 * were sent after it on the same path have been acknowledged (RFC 5681, RFC 6675), or all have been (RFC 5827). That holds
 * for repeated transmissions, too. Fragments whose timers have backed off share one and take turns; a sum that is news
 * brings their own ones back, as a fresh sample does in RFC 6298. Paths are told apart since packets keep their order only
 * among those that meet at the same designated switches (paths.py).
 *
 * What is sent again goes to the designated switch as a RETRY at first: if this worker's gradient is what the slot waits
 * for, it completes the sum there, and if it is not, the switch drops it, so a loss costs the server's link nothing. Only
 * when that has not helped several times does a RESEND make the switch give up its sum to the server. When the server asks
 * for a fragment it gets a direct copy, past all switches.
 *
 * Until a round's first ACK nobody knows whether the other workers have begun. So long only the oldest fragment has a
 * timer, as TCP has one for all its segments; then each has its own.
 */
#ifndef GRADBED_AGGREGATION_SENDER_H
#define GRADBED_AGGREGATION_SENDER_H

#include "congestion_window.h"
#include "outstanding.h"
#include "round_trips.h"

/* How a fragment is sent; sender.py says what each is. */
enum gb_attempt { GB_FIRST, GB_LATE, GB_RETRY, GB_RESEND, GB_DIRECT };

struct gb_fragment {
    struct gb_outstanding_packet packet;
    int32_t path;
    uint32_t timeouts;
    uint32_t repeats;                   /* transmissions after the first that the server did not ask for */
    bool acknowledged;
    bool requested;                     /* the server asked for it */
    bool requested_ahead;               /* before it was sent */
};

struct gb_transmission {
    int32_t fragment;                   /* index within the round */
    int32_t attempt;
};

struct gb_sender_statistics {
    int64_t timeout_resends, early_resends, direct_copies, given_up, duplicate_acks, stale_acks, stale_requests;
};

struct gb_sender {
    /* What Python looks at (library.py). */
    int64_t count, next;                /* fragments of the round, and the first that has not been sent */
    struct gb_outstanding outstanding;  /* fragments that wait for their global sums */
    struct gb_transmission *transmissions;  /* of the last call of gb_sender_transmissions */
    int32_t *news, *positions;          /* fragments of the last batch of ACKs, and where they were in it */
    struct gb_sender_statistics statistics;
    struct gb_congestion_window window;

    struct gb_round_trips round_trips;
    int64_t maximum_fragments;
    int64_t span_fragments;             /* unacknowledged fragments are never so many or more apart; 0: no bound */
    int64_t retries;
    uint64_t seed;
    int32_t *paths;
    int64_t path_count;
    uint32_t first_number;
    struct gb_fragment *fragments;
    int64_t room;                       /* for so many */
    bool some_backed_off;               /* there may be some whose timer has backed off */
    int64_t probed_us;                  /* when a fragment was sent whose timer has backed off */
    int64_t late_below;                 /* fragments that others may have sent long ago, while a timer held up ours */
    int32_t *chosen;                    /* scratch: as many as the window's maximum */
    int64_t batch;                      /* ACKs for which news and positions have room */
};

/* paths: which packet numbers take in turn: number n goes paths[n % path_count]. retries: 0 makes all that is sent again a
 * RESEND. seed: of random delays of timers that have run out before; 0: none. NULL: out of memory. */
struct gb_sender *gb_sender_create(int64_t window_fragments, int64_t min_timeout_us, const int32_t *paths,
                                   int64_t path_count, int adapts, int heeds_losses, int64_t span_fragments,
                                   int64_t retries, uint64_t seed);
void gb_sender_free(struct gb_sender *);
/* A round of `count` fragments, the first with packet number first_number, once the one before it has ended. -ENOMEM. */
int gb_sender_begin(struct gb_sender *, uint32_t first_number, int64_t count, int64_t now_us);
/* What to send now, repeated ones first, in `transmissions`; counts as sent. How many. */
int64_t gb_sender_transmissions(struct gb_sender *, int64_t now_us);
/* When there is something to send at the latest, 0: now; -1: only an ACK can bring that about. */
int64_t gb_sender_deadline_us(struct gb_sender *);
/* A batch of global sums. after_resends: whether each was marked as made complete, or asked for, by a repeated packet of any
 * worker. congested: whether each, or a packet in its sum, met a long queue. How many are news (`news`, `positions`), or
 * -ENOMEM. Repeats, other rounds' numbers and fragments that were never sent change nothing but the statistics. */
int64_t gb_sender_acknowledge(struct gb_sender *, const uint32_t *numbers, const uint8_t *after_resends,
                              const uint8_t *congested, int64_t count, int64_t now_us);
/* The server asks for this fragment alone. One that has not been sent yet will go directly, too. */
void gb_sender_request(struct gb_sender *, uint32_t number);

#endif
