/* When a sender gives a packet up for lost, as retransmission_timeout.py says it; tests hold the two against each other. */
#ifndef GRADBED_RETRANSMISSION_TIMEOUT_H
#define GRADBED_RETRANSMISSION_TIMEOUT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

enum { GB_CONSTANT_TIMEOUTS = 4, GB_MAX_BACKED_OFF_US = 250000, GB_MOST_DOUBLINGS = 32 };

struct gb_retransmission_timeout {
    int64_t initial_us;         /* before the first sample */
    double smoothed_us, variation_us;
    bool sampled;
};

static inline void timeout_sample(struct gb_retransmission_timeout *timeout, int64_t round_trip_us) {
    double sample_us = (double)round_trip_us;
    if (!timeout->sampled) {
        timeout->sampled = true;
        timeout->smoothed_us = sample_us;
        timeout->variation_us = sample_us / 2;
        return;
    }
    timeout->variation_us += (fabs(timeout->smoothed_us - sample_us) - timeout->variation_us) / 4;
    timeout->smoothed_us += (sample_us - timeout->smoothed_us) / 8;
}

static inline int64_t timeout_base_us(const struct gb_retransmission_timeout *timeout, int64_t margin_us) {
    if (!timeout->sampled)
        return timeout->initial_us;
    return (int64_t)rint(timeout->smoothed_us + fmax((double)margin_us, 4 * timeout->variation_us));
}

static inline int64_t backed_off_us(int64_t base_us, int64_t timeouts) {
    if (base_us >= GB_MAX_BACKED_OFF_US || timeouts < GB_CONSTANT_TIMEOUTS)
        return base_us;
    int64_t doublings = timeouts - GB_CONSTANT_TIMEOUTS + 1;
    int64_t longer_us = base_us << (doublings < GB_MOST_DOUBLINGS ? doublings : GB_MOST_DOUBLINGS);
    return longer_us < GB_MAX_BACKED_OFF_US ? longer_us : GB_MAX_BACKED_OFF_US;
}

/* A timer that has run out before becomes up to half longer, so that senders leave step (RFC 5740, 5.2). Without jitter,
 * timers that were set in one nanosecond run out in one, and a queue shorter than their packets keeps the same of them each
 * time. seed: of the sender (sender_seed), 0: no delay. number: of the packet. timeouts: how often the timer has run out.
 * What mixes them is the output function of SplitMix64 (Steele, Lea and Flood 2014). */
static inline int64_t randomised_us(int64_t length_us, uint64_t seed, uint64_t number, uint64_t timeouts) {
    if (!seed || !timeouts)
        return length_us;
    uint64_t mixed = seed + number * 0x9e3779b97f4a7c15u + timeouts * 0xd1b54a32d192ed03u;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    mixed ^= mixed >> 31;
    return length_us + length_us * (int64_t)(mixed >> 54) / 2048;
}

#endif
