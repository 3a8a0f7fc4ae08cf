/* How many fragments or packets a sender may have unacknowledged: TCP's slow start, additive increase, multiplicative
 * decrease.
 *
 * What TCP counts in segments is counted in fragments here (RFC 5681, section 3.1): in slow start each ACK opens the window
 * by one fragment, later a window's worth of ACKs does. An ACK that is marked (ECN, RFC 3168, section 6.1.2) or a loss
 * halves it, at most once per round trip: only transmissions that were made after the last decrease count. Time and packets
 * are the caller's; transmissions are numbered in the order in which they were made.
 */
#ifndef GRADBED_CONGESTION_WINDOW_H
#define GRADBED_CONGESTION_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

enum {
    GB_INITIAL_FRAGMENTS = 10,          /* RFC 6928, section 2 */
    /* A loss is found without a timer once three later fragments are acknowledged (RFC 5681): fewer would leave it to
     * timers, which take a hundred times as long as a round trip. */
    GB_LEAST_FRAGMENTS = 4,
    /* Losses alone close the window no further. Links that lose packets at random hit most fragments of many workers; small
     * windows then drive the workers apart, and timers grow with the wait for each other. */
    GB_LEAST_AFTER_LOSS_FRAGMENTS = 8,
};

struct gb_congestion_window {
    double size, threshold;
    int64_t maximum;
    int64_t counts_from;        /* the place of the first transmission after the last decrease */
    int64_t acks, total;        /* total: of what the window was when ACKs came */
    int64_t least, greatest, last, decreases, congestion_marks;
    bool adapts, heeds_losses;
    /* Of a control in Python (common/congestion_control.py), else NULL: the window after an event, in fragments. */
    uint64_t (*control_acknowledged)(uint64_t order, uint64_t next_order, uint32_t marked, uint32_t limiting);
    uint64_t (*control_lost)(uint64_t order, uint64_t next_order);
};

/* adapts: false: the window is always the maximum. heeds_losses: false: marks alone close it. */
static inline void window_open(struct gb_congestion_window *window, int64_t maximum, bool adapts, bool heeds_losses) {
    int64_t initial = adapts && maximum > GB_INITIAL_FRAGMENTS ? GB_INITIAL_FRAGMENTS : maximum;
    *window = (struct gb_congestion_window){
        .size = (double)initial, .threshold = (double)maximum, .maximum = maximum, .adapts = adapts,
        .heeds_losses = heeds_losses, .least = initial, .greatest = initial, .last = initial,
    };
}

static inline int64_t window_fragments(const struct gb_congestion_window *window) {
    return (int64_t)window->size;
}

static inline void window_set(struct gb_congestion_window *window, double size) {
    window->size = size < (double)window->maximum ? size : (double)window->maximum;
    int64_t fragments = window_fragments(window);
    window->least = fragments < window->least ? fragments : window->least;
    window->greatest = fragments > window->greatest ? fragments : window->greatest;
    window->last = fragments;
}

static inline void window_control(struct gb_congestion_window *window, uint64_t fragments) {
    window->decreases += (int64_t)fragments < window_fragments(window);
    window_set(window, (double)fragments);
}

static inline void window_decrease(struct gb_congestion_window *window, int64_t order, int64_t next_order, int least) {
    if (!window->adapts || order < window->counts_from || window->size <= least)
        return;
    window->counts_from = next_order;
    window_set(window, window->size / 2 > least ? window->size / 2 : least);
    window->threshold = window->size;
    window->decreases++;
}

/* An ACK to the transmission with place `order`. limiting: fragments wait for the window to open. If none do, ACKs do not
 * show that the network carries more (RFC 7661). */
static inline void window_acknowledged(struct gb_congestion_window *window, int64_t order, int64_t next_order,
                                       bool marked, bool limiting) {
    window->acks++;
    window->total += window_fragments(window);
    window->congestion_marks += marked;
    if (window->control_acknowledged) {
        window_control(window, window->control_acknowledged((uint64_t)order, (uint64_t)next_order, marked, limiting));
    } else if (marked) {
        window_decrease(window, order, next_order, GB_LEAST_FRAGMENTS);
    } else if (limiting && window->adapts && window->size < (double)window->maximum) {
        window_set(window, window->size + (window->size < window->threshold ? 1.0 : 1.0 / window->size));
    }
}

static inline void window_lost(struct gb_congestion_window *window, int64_t order, int64_t next_order) {
    if (window->control_lost)
        window_control(window, window->control_lost((uint64_t)order, (uint64_t)next_order));
    else if (window->heeds_losses)
        window_decrease(window, order, next_order, GB_LEAST_AFTER_LOSS_FRAGMENTS);
}

#endif
