/* The sending half of a queue pair: messages become packets, which are sent again until they are acknowledged.
 *
 * Go-back-N: after a negative acknowledgement or a timeout, everything from the packet that is missing on is sent again.
 * Selective repeat, as IRN does it (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018): only what is
 * missing while later packets have come, and once each; after a timeout, all that is not known to have come.
 *
 * Timeouts follow the round trips. Where queues grow, what stands in them would otherwise be sent again and again, and
 * make them longer. They do not grow with the number of timeouts: where links lose many packets, many in a row are usual.
 */
#include <errno.h>
#include <stdlib.h>

#include "engine/random.h"
#include "engine/transport/roce.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* ---- Messages ---- */

static uint32_t packet_bytes(const struct queue_pair *pair, const struct message *message, uint64_t psn) {
    uint64_t offset = (psn - message->first_psn) * pair->options.mtu_bytes;
    return (uint32_t)smaller(message->size_bytes - offset, pair->options.mtu_bytes);
}

static uint64_t byte_of(const struct queue_pair *pair, const struct message *message, uint64_t psn) {
    return message->first_byte + smaller((psn - message->first_psn) * pair->options.mtu_bytes, message->size_bytes);
}

static struct message *message_of(const struct sender *sender, uint64_t psn) {
    struct message *message = sender->first;
    while (message && psn >= message->first_psn + message->packets)
        message = message->next;
    return message;
}

int sender_add(struct logical_process *lp, struct queue_pair *pair, const struct message *request) {
    struct sender *sender = &pair->sender;
    uint64_t size_bytes = request->size_bytes, mtu_bytes = pair->options.mtu_bytes;
    if (pair->failed) {
        complete(lp, pair, GB_COMPLETION_FAILED, request->tag, size_bytes, NULL);
        return 0;
    }
    struct message *message = malloc(sizeof *message);
    if (!message)
        return -ENOMEM;
    *message = *request;
    message->next = NULL;
    message->first_psn = sender->end;
    message->packets = size_bytes ? (size_bytes + mtu_bytes - 1) / mtu_bytes : 1;
    message->first_byte = sender->end_byte;
    if (sender->last)
        sender->last->next = message;
    else
        sender->first = message;
    sender->last = message;
    if (!sender->next_message)
        sender->next_message = message;
    sender->end += message->packets;
    sender->end_byte += size_bytes;
    sender_go_on(lp, pair);
    return 0;
}

static void pop_message(struct sender *sender) {
    struct message *message = sender->first;
    sender->first = message->next;
    if (!sender->first)
        sender->last = NULL;
    free(message);
}

/* ---- What may be sent ---- */

static bool has_come(const struct sender *sender, uint64_t psn) {
    uint32_t place = psn % MOST_OUTSTANDING;
    return sender->come && sender->come[place / 64] >> place % 64 & 1;
}

/* The next packet that is to be sent again; again_end: none. */
static uint64_t next_again(const struct sender *sender) {
    uint64_t psn = sender->again > sender->una ? sender->again : sender->una;
    while (psn < sender->again_end && has_come(sender, psn))
        psn++;
    return psn < sender->again_end ? psn : sender->again_end;
}

static bool window_allows(const struct sender *sender, uint64_t bytes) {
    uint64_t outstanding = sender->next_byte - sender->una_byte;
    return sender->next - sender->una < MOST_OUTSTANDING &&
           (!sender->window_bytes || sender->next == sender->una || outstanding + bytes <= sender->window_bytes);
}

bool sender_may(const struct queue_pair *pair) {
    const struct sender *sender = &pair->sender;
    if (sender->again < sender->again_end && next_again(sender) < sender->again_end)
        return true;
    return sender->next_message &&
           window_allows(sender, packet_bytes(pair, sender->next_message, sender->next));
}

void sender_go_on(struct logical_process *lp, struct queue_pair *pair) {
    struct sender *sender = &pair->sender;
    if (pair->on_data || !sender_may(pair))
        return;
    if (sender->pace_ns <= lp->now_ns)
        nic_wants_data(lp, pair);
    else if (!timer_armed(&sender->pace))
        timer_arm(&lp->timers, &sender->pace, sender->pace_ns);
}

static void pace_due(struct logical_process *lp, void *owner) {
    sender_go_on(lp, owner);
}

void sender_set_rate(struct queue_pair *pair, uint64_t rate_bps) {
    pair->sender.rate_bps = rate_bps;
    pair->sender.pace_remainder = 0;
}

/* A frame has left: when the next one may. A NIC whose link is as slow needs no pace. */
static void take_pace(struct logical_process *lp, struct queue_pair *pair, uint64_t frame_bytes) {
    struct sender *sender = &pair->sender;
    uint64_t link_bps = pair->nic->link->model->rate_bps;
    if (!sender->rate_bps || (link_bps && link_bps <= sender->rate_bps))
        return;
    if (sender->pace_ns < lp->now_ns) {
        sender->pace_ns = lp->now_ns;
        sender->pace_remainder = 0;
    }
    uint64_t bit_ns = frame_bytes * UINT64_C(8000000000) + sender->pace_remainder;
    sender->pace_ns += bit_ns / sender->rate_bps;
    sender->pace_remainder = bit_ns % sender->rate_bps;
}

/* ---- Sending ---- */

/* Whether the receiver has to answer at once, as this sender will stand still, or knows too little. */
static bool wants_acknowledgement(const struct queue_pair *pair, const struct message *message, uint64_t psn) {
    const struct sender *sender = &pair->sender;
    uint64_t mtu_bytes = pair->options.mtu_bytes;
    if (psn + 1 == message->first_psn + message->packets || psn < sender->top)
        return true;
    if (sender->window_bytes && (sender->window_bytes < 2 * pair->options.acknowledge_every * mtu_bytes ||
                                 sender->next_byte + 2 * mtu_bytes > sender->una_byte + sender->window_bytes))
        return true;
    return sender->next + 1 - sender->una >= MOST_OUTSTANDING;
}

static struct packet *make(struct logical_process *lp, struct queue_pair *pair, const struct message *message,
                           uint64_t psn) {
    uint32_t bytes = packet_bytes(pair, message, psn);
    struct packet *packet =
        roce_data(lp, pair, message, psn, (psn - message->first_psn) * pair->options.mtu_bytes, bytes,
                  wants_acknowledgement(pair, message, psn));
    if (packet) {
        pair->statistics.sent_packets++;
        pair->statistics.sent_bytes += bytes;
        pair->statistics.retransmissions += psn < pair->sender.top;
    }
    return packet;
}

/* ---- Round trips ---- */

/* Of the packets of a window some: this one is sent for the first time. */
static void time_packet(const struct logical_process *lp, struct queue_pair *pair, uint64_t psn) {
    struct sender *sender = &pair->sender;
    uint64_t apart = sender->window_bytes / pair->options.mtu_bytes / TIMED;
    if (sender->timed_count < TIMED &&
        (!sender->timed_count || psn >= sender->timed[sender->timed_count - 1].psn + apart))
        sender->timed[sender->timed_count++] = (struct timed){.psn = psn, .sent_ns = lp->now_ns};
}

static void time_no_more(struct sender *sender, uint64_t psn) {
    for (uint32_t i = 0; i < sender->timed_count; i++)
        if (sender->timed[i].psn == psn)
            sender->timed[i].repeated = true;
}

static void take_round_trip(struct sender *sender, uint64_t round_trip_ns) {
    sender->round_trips_ns[sender->round_trips++ % ROUND_TRIPS] = round_trip_ns;
    sender->ambiguous = 0;
}

/* Of a packet that was sent again it is unknown which transmission is acknowledged (Karn and Partridge 1987): if its
 * first counted, every timeout that follows a loss would be taken for a round trip, and the next one be twice as long. */
static void take_round_trips(const struct logical_process *lp, struct sender *sender) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < sender->timed_count; i++) {
        const struct timed *timed = &sender->timed[i];
        uint64_t round_trip_ns = lp->now_ns - timed->sent_ns;
        if (sender->una <= timed->psn && !has_come(sender, timed->psn))
            sender->timed[left++] = *timed;
        else if (!timed->repeated)
            take_round_trip(sender, round_trip_ns);
        else
            sender->ambiguous_ns[sender->ambiguous++ % ROUND_TRIPS] = round_trip_ns;
    }
    sender->timed_count = left;
}

/* A copy has come of what had come before: what was sent again had not been lost, but was under way for so long. */
static void take_duplicate(struct sender *sender) {
    uint32_t count = (uint32_t)smaller(sender->ambiguous, ROUND_TRIPS);
    for (uint32_t i = 0; i < count; i++)
        take_round_trip(sender, sender->ambiguous_ns[i]);
}

/* Twice the shortest of the last round trips, if that is longer than what was asked for. The shortest: what a
 * duplicate shows may be the loss of an acknowledgement, too. */
static uint64_t timeout_ns(const struct queue_pair *pair) {
    uint64_t shortest_ns = pair->sender.round_trips_ns[0];
    for (uint32_t i = 1; i < ROUND_TRIPS; i++)
        shortest_ns = smaller(shortest_ns, pair->sender.round_trips_ns[i]);
    return 2 * shortest_ns > pair->options.timeout_ns ? 2 * shortest_ns : pair->options.timeout_ns;
}

static void expect_news(struct logical_process *lp, struct queue_pair *pair) {
    struct sender *sender = &pair->sender;
    sender->deadline_ns = lp->now_ns + timeout_ns(pair);
    if (timer_armed(&sender->timeout) && sender->timeout.due_ns > sender->deadline_ns) {
        timer_stop(&lp->timers, &sender->timeout);
        timer_arm(&lp->timers, &sender->timeout, sender->deadline_ns);
    }
}

static void watch(struct logical_process *lp, struct queue_pair *pair) {
    struct sender *sender = &pair->sender;
    if (sender->una == sender->top)
        expect_news(lp, pair);
    if (!timer_armed(&sender->timeout))
        timer_arm(&lp->timers, &sender->timeout, sender->deadline_ns);
}

struct packet *sender_next(struct logical_process *lp, struct queue_pair *pair) {
    struct sender *sender = &pair->sender;
    uint64_t again = sender->again < sender->again_end ? next_again(sender) : sender->again_end;
    struct packet *packet;
    watch(lp, pair);
    congestion_catch_up(pair, lp->now_ns);
    if (again < sender->again_end) {
        packet = make(lp, pair, message_of(sender, again), again);
        time_no_more(sender, again);
        sender->again = again + 1;
    } else {
        struct message *message = sender->next_message;
        packet = make(lp, pair, message, sender->next);
        if (packet) {
            if (sender->next == sender->top)
                time_packet(lp, pair, sender->next);
            else
                time_no_more(sender, sender->next);
            sender->next_byte += packet_bytes(pair, message, sender->next);
            if (++sender->next == message->first_psn + message->packets)
                sender->next_message = message->next;
            if (sender->top < sender->next)
                sender->top = sender->next;
        }
    }
    if (packet) {
        take_pace(lp, pair, packet->view.length);
        congestion_sent(pair, packet->view.length);
    }
    return packet;
}

/* ---- Acknowledgements ---- */

static void go_back(struct sender *sender) {
    sender->next = sender->una;
    sender->next_byte = sender->una_byte;
    sender->next_message = sender->first;
}

static void forget_come(struct sender *sender, uint64_t from, uint64_t to) {
    for (uint64_t psn = from; psn < to && psn < sender->come_end; psn++) {
        uint32_t place = psn % MOST_OUTSTANDING;
        sender->come[place / 64] &= ~(UINT64_C(1) << place % 64);
    }
}

/* Whether the next timeout ends it. */
static bool nearly_failed(const struct queue_pair *pair) {
    return pair->sender.timeouts + 1 >= pair->options.give_up_after;
}

static void set_timeouts(struct queue_pair *pair, uint32_t timeouts) {
    pair->consumer->nearly_failed -= nearly_failed(pair);
    pair->sender.timeouts = timeouts;
    pair->consumer->nearly_failed += nearly_failed(pair);
}

/* All before una have come; how many bytes are new. */
static uint64_t advance(struct logical_process *lp, struct queue_pair *pair, uint64_t una) {
    struct sender *sender = &pair->sender;
    uint64_t before = sender->una_byte;
    if (sender->come)
        forget_come(sender, sender->una, una);
    sender->una = una;
    while (sender->first && una >= sender->first->first_psn + sender->first->packets) {
        struct message *message = sender->first;
        if (sender->next_message == message)
            sender->next_message = message->next;
        if (message->collective)
            collective_sent(lp, message->collective, message->step);
        else
            complete(lp, pair, GB_COMPLETION_SENT, message->tag, message->size_bytes, NULL);
        pop_message(sender);
    }
    sender->una_byte = sender->first ? byte_of(pair, sender->first, una) : sender->end_byte;
    if (sender->next < una)
        go_back(sender);
    if (sender->timeouts)
        set_timeouts(pair, 0);
    expect_news(lp, pair);
    return sender->una_byte - before;
}

/* What has come behind una; whether that is news. */
static bool note_come(struct sender *sender, const struct acknowledgement *ack) {
    uint64_t first = widened(sender->una, ack->block_psn, PSN_BITS);
    bool news = false;
    if (ack->come && !sender->come && !(sender->come = calloc(MOST_OUTSTANDING / 64, sizeof *sender->come)))
        return false;
    for (uint64_t rest = ack->come; rest; rest &= rest - 1) {
        uint64_t psn = first + (uint64_t)__builtin_ctzll(rest);
        if (psn < sender->una || psn >= sender->top || has_come(sender, psn))
            continue;
        uint32_t place = psn % MOST_OUTSTANDING;
        sender->come[place / 64] |= UINT64_C(1) << place % 64;
        if (sender->come_end < psn + 1)
            sender->come_end = psn + 1;
        news = true;
    }
    return news;
}

/* Selective repeat: what is missing although enough later ones have come counts as lost. */
static void find_lost(struct queue_pair *pair) {
    struct sender *sender = &pair->sender;
    uint64_t tolerated = pair->options.reordering_packets;
    uint64_t end = sender->come_end > tolerated ? sender->come_end - tolerated : 0;
    if (end <= sender->again_end || end <= sender->una)
        return;
    sender->again_end = end;
    if (next_again(sender) < end)
        congestion_loss(pair);
}

void sender_acknowledged(struct logical_process *lp, struct queue_pair *pair, const struct acknowledgement *ack) {
    struct sender *sender = &pair->sender;
    uint64_t una = widened(sender->una, ack->psn, PSN_BITS), acked_bytes = 0;
    if (una > sender->top)
        return;
    bool duplicate = una == sender->una && !ack->negative;
    if (una > sender->una)
        acked_bytes = advance(lp, pair, una);
    take_round_trips(lp, sender);
    if (ack->selective)
        congestion_acknowledged(pair, acked_bytes, ack->marked_bytes);
    if (pair->options.recovery == GB_SELECTIVE_REPEAT) {
        if (ack->selective && note_come(sender, ack)) {
            take_round_trips(lp, sender);
            if (sender->timeouts)
                set_timeouts(pair, 0);
            expect_news(lp, pair);
            find_lost(pair);
        }
    } else if (ack->negative && una == sender->una && sender->next > una) {
        congestion_loss(pair);
        go_back(sender);
    }
    if (duplicate)
        take_duplicate(sender);
    sender_go_on(lp, pair);
}

/* ---- Timeouts ---- */

static void fail(struct logical_process *lp, struct queue_pair *pair) {
    struct sender *sender = &pair->sender;
    pair->failed = true;
    while (sender->first) {
        complete(lp, pair, GB_COMPLETION_FAILED, sender->first->tag, sender->first->size_bytes, NULL);
        pop_message(sender);
    }
    sender->next_message = NULL;
    sender->una = sender->next = sender->top = sender->again = sender->again_end = sender->end;
    sender->una_byte = sender->next_byte = sender->end_byte;
    timer_stop(&lp->timers, &sender->pace);
    receiver_close(lp, pair);
    nic_forget(pair->nic, pair);
}

/* How much longer a timer becomes that has run out: another part for each pair and each time. */
static uint64_t leave_step_ns(const struct queue_pair *pair) {
    const struct gb_queue_pair_options *options = &pair->options;
    uint64_t seed = ((uint64_t)options->src_ip << 32 | options->dst_ip) ^ (uint64_t)options->number << 24;
    return random_up_to_half(timeout_ns(pair), seed + (pair->statistics.timeouts << 56));
}

static void timeout_due(struct logical_process *lp, void *owner) {
    struct queue_pair *pair = owner;
    struct sender *sender = &pair->sender;
    if (sender->una == sender->top) {
        /* There may have been no memory for a packet. */
        sender_go_on(lp, pair);
        return;
    }
    if (lp->now_ns < sender->deadline_ns) {
        timer_arm(&lp->timers, &sender->timeout, sender->deadline_ns);
        return;
    }
    pair->statistics.timeouts++;
    set_timeouts(pair, sender->timeouts + 1);
    if (sender->timeouts >= pair->options.give_up_after) {
        fail(lp, pair);
        return;
    }
    congestion_timeout(pair);
    if (pair->options.recovery == GB_SELECTIVE_REPEAT) {
        sender->again = sender->una;
        sender->again_end = sender->top;
    } else {
        go_back(sender);
    }
    expect_news(lp, pair);
    sender->deadline_ns += leave_step_ns(pair);
    timer_arm(&lp->timers, &sender->timeout, sender->deadline_ns);
    sender_go_on(lp, pair);
}

/* ---- Life ---- */

void sender_open(struct queue_pair *pair) {
    struct sender *sender = &pair->sender;
    sender->window_bytes = pair->options.window_bytes;
    sender->rate_bps = pair->options.rate_bps;
    sender->una = sender->next = sender->top = sender->end = pair->options.first_psn;
    static const struct timer_kind pace = {.fire = pace_due}, timeout = {.fire = timeout_due};
    sender->pace = (struct timer){.kind = &pace, .owner = pair};
    sender->timeout = (struct timer){.kind = &timeout, .owner = pair};
}

void sender_close(struct logical_process *lp, struct queue_pair *pair) {
    struct sender *sender = &pair->sender;
    timer_stop(&lp->timers, &sender->pace);
    timer_stop(&lp->timers, &sender->timeout);
    while (sender->first)
        pop_message(sender);
    free(sender->come);
}
