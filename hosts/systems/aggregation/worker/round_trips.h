/* What a worker measures of the time to a global sum, apart from how late the other workers are.
 *
 * From sending a fragment to receiving its global sum there is also the wait for the slowest worker, which may be slow in
 * two ways. It repairs a loss: the server marks the sums that a repeated packet made complete or asked for, or one that a
 * timer held up (else timers would lengthen the waits, and waits the timers), and these are no samples. All others are,
 * even of a fragment that this worker did send again, since its first transmission was the one that counted (so the mark
 * resolves the ambiguity that Karn and Partridge 1987 avoid). Or the slowest worker began its round later: that lateness is
 * the same for all fragments sent before the round's first ACK, which measures it; it is taken off their samples, and
 * timers start at the first ACK at the earliest. Times are microseconds of the caller's clock.
 */
#ifndef GRADBED_ROUND_TRIPS_H
#define GRADBED_ROUND_TRIPS_H

#include "retransmission_timeout.h"

enum {
    /* Before the first sample the timeout is this many minimum timeouts; RFC 6298's second is for the Internet. */
    GB_INITIAL_FACTOR = 10,
    /* For how many rounds the least round trip (a windowed minimum, as in RFC 8985, section 6.2) and losses are known. */
    GB_KEPT_ROUNDS = 16,
    /* How many minimum timeouts an ACK may be late while nothing gets lost, so that only a busy machine delays it. */
    GB_LOSSLESS_PATIENCE = 4,
    /* Before the first ACK a timer is as many times longer as fragments are out, at most this: the more are out, the less
     * likely are losses to have stopped all of them, and the more likely is a late worker. That holds while nothing gets
     * lost. Eight workers with six links of 5 % loss each complete one fragment of twelve at first. */
    GB_PROBE_PATIENCE = 8,
    /* The timeout itself is no longer while packets get lost (RFC 6298, 2.5): waits for each other's repairs are taken for
     * round trips now and then, and one of 3 s would leave 10 tries until the server is given up. */
    GB_MAX_TIMEOUT_US = 1000000,
    /* Few enough fragments unacknowledged to know that queues are short: they are the last of the round for all workers,
     * except for those that lost an ACK. */
    GB_THIN_STREAM = 3,
};

struct gb_round_trips {
    struct gb_retransmission_timeout timeout;
    int64_t min_timeout_us;
    int64_t start_us, first_ack_us, lateness_us;
    int64_t least_us;           /* of this round; -1: no ACK yet */
    int64_t least_of_all_us;    /* of this round and those before; -1: none */
    int64_t least_of_rounds_us[GB_KEPT_ROUNDS];
    int64_t rounds;             /* whose least is kept, or was */
    int64_t lossless_rounds;
    bool all_have_begun;        /* the round has had an ACK; so every worker has begun it */
};

static inline void trips_forget_samples(struct gb_round_trips *trips) {
    trips->timeout = (struct gb_retransmission_timeout){.initial_us = GB_INITIAL_FACTOR * trips->min_timeout_us};
}

static inline void trips_open(struct gb_round_trips *trips, int64_t min_timeout_us) {
    *trips = (struct gb_round_trips){
        .min_timeout_us = min_timeout_us, .least_us = -1, .least_of_all_us = -1, .lossless_rounds = GB_KEPT_ROUNDS,
    };
    trips_forget_samples(trips);
}

/* A round begins. */
static inline void trips_begin(struct gb_round_trips *trips, int64_t now_us) {
    if (trips->least_us >= 0) {
        trips->least_of_rounds_us[trips->rounds++ % GB_KEPT_ROUNDS] = trips->least_us;
        int64_t kept = trips->rounds < GB_KEPT_ROUNDS ? trips->rounds : GB_KEPT_ROUNDS;
        trips->least_of_all_us = trips->least_of_rounds_us[0];
        for (int64_t i = 1; i < kept; i++)
            if (trips->least_of_rounds_us[i] < trips->least_of_all_us)
                trips->least_of_all_us = trips->least_of_rounds_us[i];
    }
    trips->start_us = now_us;
    trips->all_have_begun = false;
    trips->lateness_us = 0;
    trips->least_us = -1;
    trips->lossless_rounds++;
}

/* A global sum has come. first_sent_us: when its fragment was sent first. after_resend: it is marked. */
static inline void trips_acknowledged(struct gb_round_trips *trips, int64_t first_sent_us, int64_t now_us,
                                      bool after_resend) {
    int64_t least_us = trips->least_of_all_us;
    if (!trips->all_have_begun) {
        trips->all_have_begun = true;
        trips->first_ack_us = now_us;
        int64_t late_us = now_us - trips->start_us - least_us;
        if (least_us >= 0)
            trips->lateness_us = late_us > 0 ? late_us : 0;
    }
    int64_t round_trip_us = now_us - first_sent_us;
    if (least_us >= 0 && 2 * round_trip_us < least_us)
        trips_forget_samples(trips);    /* what was taken for round trips so far was mostly lateness */
    if (trips->least_us < 0 || round_trip_us < trips->least_us) {
        trips->least_us = round_trip_us;
        if (least_us < 0 || round_trip_us < least_us)
            trips->least_of_all_us = least_us = round_trip_us;
    }
    if (after_resend) {
        trips->lossless_rounds = 0;
        return;
    }
    if (first_sent_us <= trips->first_ack_us) {
        round_trip_us -= trips->lateness_us;
        if (round_trip_us < least_us)
            round_trip_us = least_us;
    }
    timeout_sample(&trips->timeout, round_trip_us);
}

/* When the timer of a fragment runs out: never sooner than that of one that was sent before, all else equal. sent_us,
 * resent: of its latest transmission. timeouts: how often its timer has run out before. unacknowledged: number of fragments
 * that have been sent and are not acknowledged. */
static inline int64_t trips_deadline_us(const struct gb_round_trips *trips, int64_t sent_us, int64_t timeouts, bool resent,
                                        int64_t unacknowledged) {
    bool lossless = trips->lossless_rounds >= GB_KEPT_ROUNDS;
    int64_t margin_us = trips->min_timeout_us * (lossless ? GB_LOSSLESS_PATIENCE : 1);
    int64_t base_us = timeout_base_us(&trips->timeout, margin_us);
    int64_t initial_us = GB_INITIAL_FACTOR * trips->min_timeout_us;
    int64_t most_us = initial_us > GB_MAX_TIMEOUT_US ? initial_us : GB_MAX_TIMEOUT_US;
    if (!lossless && base_us > most_us)
        base_us = most_us;
    if (!trips->all_have_begun) {
        int64_t times = unacknowledged < GB_PROBE_PATIENCE ? unacknowledged : GB_PROBE_PATIENCE;
        int64_t patient_us = lossless ? base_us * times : base_us;
        if (patient_us > GB_MAX_TIMEOUT_US)
            patient_us = GB_MAX_TIMEOUT_US;
        return sent_us + backed_off_us(base_us > patient_us ? base_us : patient_us, timeouts);
    }
    if (resent && unacknowledged <= GB_THIN_STREAM && trips->least_of_all_us >= 0
        && base_us > trips->least_of_all_us + margin_us)
        base_us = trips->least_of_all_us + margin_us;
    return (sent_us > trips->first_ack_us ? sent_us : trips->first_ack_us) + backed_off_us(base_us, timeouts);
}

#endif
