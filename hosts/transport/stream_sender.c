/* Window, timer and repeated transmissions towards one receiver (stream_sender.h). */
#include "stream_sender.h"

#include <stdlib.h>

struct gb_stream_sender *gb_stream_sender_create(int64_t window_packets, int64_t min_timeout_us, int adapts,
                                                 int heeds_losses, uint32_t first_sequence, uint64_t seed) {
    struct gb_stream_sender *sender = calloc(1, sizeof *sender);
    if (!sender)
        return NULL;
    window_open(&sender->window, window_packets, adapts, heeds_losses);
    sender->timeout.initial_us = GB_STREAM_INITIAL_FACTOR * min_timeout_us;
    sender->min_timeout_us = min_timeout_us;
    sender->least_us = -1;
    sender->seed = seed;
    sender->una = sender->next = first_sequence;
    return sender;
}

void gb_stream_sender_free(struct gb_stream_sender *sender) {
    free(sender);
}

static struct gb_outstanding_packet *packet_of(struct gb_stream_sender *sender, uint32_t number) {
    return &sender->packets[number % GB_STREAM_PACKETS];
}

static uint32_t number_of(const struct gb_stream_sender *sender, const struct gb_outstanding_packet *packet) {
    return sender->una + ((uint32_t)(packet - sender->packets) - sender->una) % GB_STREAM_PACKETS;
}

/* ---- Sending ---- */

static bool may_send_new(const struct gb_stream_sender *sender) {
    if (!sender->queued || sender->outstanding.count >= window_fragments(&sender->window))
        return false;
    return sender->next - sender->una <= GB_SELECTIVE_BITS;
}

static int64_t base_us(const struct gb_stream_sender *sender) {
    return timeout_base_us(&sender->timeout, sender->min_timeout_us);
}

/* When the one timer runs out: of the oldest transmission, started anew by every news. */
static int64_t timer_us(const struct gb_stream_sender *sender) {
    const struct gb_outstanding_packet *oldest = outstanding_oldest(&sender->outstanding);
    int64_t since_us = oldest->sent_us > sender->news_us ? oldest->sent_us : sender->news_us;
    int64_t length_us = backed_off_us(base_us(sender), sender->timeouts);
    return since_us + randomised_us(length_us, sender->seed, number_of(sender, oldest), (uint64_t)sender->timeouts);
}

static uint32_t send_again(struct gb_stream_sender *sender, struct gb_outstanding_packet *packet, int64_t now_us) {
    window_lost(&sender->window, packet->order, sender->outstanding.next_order);
    outstanding_sent_again(&sender->outstanding, packet, now_us);
    return number_of(sender, packet);
}

int64_t gb_stream_sender_transmissions(struct gb_stream_sender *sender, int64_t now_us, int64_t most) {
    int64_t sent = 0;
    for (uint32_t number = sender->una; sender->outstanding.resends && number != sender->next && sent < most; number++) {
        struct gb_outstanding_packet *packet = packet_of(sender, number);
        if (!packet->resend)
            continue;
        sender->early_resends++;
        sender->numbers[sent++] = send_again(sender, packet, now_us);
    }
    if (!sent && sender->outstanding.count && timer_us(sender) <= now_us) {
        sender->timeout_resends++;
        sender->timeouts++;
        sender->numbers[sent++] = send_again(sender, outstanding_oldest(&sender->outstanding), now_us);
    }
    while (sent < most && may_send_new(sender)) {
        struct gb_outstanding_packet *packet = packet_of(sender, sender->next);
        *packet = (struct gb_outstanding_packet){0};
        outstanding_sent(&sender->outstanding, packet, now_us);
        sender->numbers[sent++] = sender->next++;
        sender->queued--;
    }
    return sent;
}

int64_t gb_stream_sender_deadline_us(const struct gb_stream_sender *sender) {
    if (sender->outstanding.resends || may_send_new(sender))
        return 0;
    return sender->outstanding.count ? timer_us(sender) : -1;
}

/* ---- Acknowledgements ---- */

/* Takes the round trip's length; false if it cannot be told which transmission it was of. after_repeat: a repeated packet is
 * acknowledged with it. It may have come long before, and the acknowledgement that told so may have been lost (Linux takes
 * no sample either: FLAG_RETRANS_DATA_ACKED). */
static bool learn(struct gb_stream_sender *sender, const struct gb_outstanding_packet *packet, bool repeated,
                  bool after_repeat, int64_t now_us) {
    int64_t round_trip_us = now_us - packet->sent_us;
    if (repeated)
        return sender->least_us >= 0 && round_trip_us >= sender->least_us;
    if (!after_repeat)
        timeout_sample(&sender->timeout, round_trip_us);
    if (sender->least_us < 0 || round_trip_us < sender->least_us)
        sender->least_us = round_trip_us;
    return true;
}

static int64_t count_overtaken(struct gb_stream_sender *sender, struct gb_packet_list *list, int64_t order) {
    int64_t count = 0;
    for (struct gb_outstanding_packet *each = list->first; each && each->order < order; each = each->after, count++)
        outstanding_overtaken(&sender->outstanding, each);
    return count;
}

static void lose_sent_before(struct gb_stream_sender *sender, struct gb_packet_list *list, int64_t order,
                             int64_t sent_us) {
    for (struct gb_outstanding_packet *each = list->first; each && each->order < order; each = each->after)
        if (each->sent_us <= sent_us)
            outstanding_resend(&sender->outstanding, each);
}

/* These transmissions have got through: counts that for earlier ones. */
static void note_overtaken(struct gb_stream_sender *sender, const struct gb_outstanding_packet *const *through,
                           int64_t count) {
    struct gb_outstanding *outstanding = &sender->outstanding;
    const struct gb_outstanding_packet *last = NULL;
    int64_t overtaken = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t earlier = count_overtaken(sender, &outstanding->once, through[i]->order) +
                          count_overtaken(sender, &outstanding->again, through[i]->order);
        if (last && through[i]->order < last->order)
            continue;
        last = through[i];
        overtaken = earlier;
    }
    if (!overtaken)
        return;
    /* Nothing will be sent whose acknowledgement could tell more. */
    bool all = overtaken == outstanding->count && overtaken <= GB_LOST_AFTER && !may_send_new(sender);
    int64_t lost_us = all ? INT64_MAX : last->sent_us - base_us(sender);
    lose_sent_before(sender, &outstanding->once, last->order, lost_us);
    lose_sent_before(sender, &outstanding->again, last->order, lost_us);
}

int64_t gb_stream_sender_acknowledge(struct gb_stream_sender *sender, uint32_t sequence, uint64_t selective,
                                     int congested, int64_t now_us) {
    int64_t news = 0;
    bool after_repeat = false;
    if (sender->next - sequence < UINT32_C(1) << 31) {
        for (uint32_t number = sender->una; number != sender->next; number++) {
            const struct gb_outstanding_packet *packet = packet_of(sender, number);
            uint32_t ahead = number - sequence;
            bool come = ahead >= UINT32_C(1) << 31 ||
                        (ahead && ahead <= GB_SELECTIVE_BITS && selective >> (ahead - 1) & 1);
            if (!come || packet->state == GB_NOT_OUTSTANDING)
                continue;
            after_repeat |= packet->state == GB_SENT_AGAIN;
            sender->numbers[news++] = number;
        }
    }
    if (!news) {
        sender->stale_acknowledgements++;
        return 0;
    }
    sender->news_us = now_us;
    sender->timeouts = 0;
    const struct gb_outstanding_packet *through[GB_STREAM_PACKETS];
    int64_t got_through = 0;
    for (int64_t i = 0; i < news; i++) {
        struct gb_outstanding_packet *packet = packet_of(sender, sender->numbers[i]);
        bool repeated = packet->state == GB_SENT_AGAIN;
        outstanding_remove(&sender->outstanding, packet);
        /* One mark, one reaction. */
        window_acknowledged(&sender->window, packet->order, sender->outstanding.next_order, congested && !i,
                            sender->queued > 0);
        if (learn(sender, packet, repeated, after_repeat, now_us))
            through[got_through++] = packet;
    }
    while (sender->una != sender->next && packet_of(sender, sender->una)->state == GB_NOT_OUTSTANDING)
        sender->una++;
    note_overtaken(sender, through, got_through);
    return news;
}
