/* Packets of a sender that have been sent and are not acknowledged, in the order in which they were sent last.
 *
 * Both reliable senders keep theirs here: that of streams (stream_sender.h) and that of aggregation's workers. What is in
 * common: transmissions are numbered through, repeated ones, too; an acknowledgement of one counts for all that were sent
 * before it, and what several have overtaken is lost (RFC 5681; RFC 6675 for repeated transmissions as for first ones).
 */
#ifndef GRADBED_OUTSTANDING_H
#define GRADBED_OUTSTANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Later transmissions acknowledged before a packet counts as lost (RFC 5681's DupThresh). */
    GB_LOST_AFTER = 3,
};

enum gb_packet_state { GB_NOT_OUTSTANDING, GB_SENT_ONCE, GB_SENT_AGAIN };

struct gb_outstanding_packet {
    int64_t first_order, order;         /* the places of its first and its latest transmission among all */
    int64_t first_sent_us, sent_us;
    struct gb_outstanding_packet *before, *after;   /* in its list */
    uint16_t later_acks;                /* of transmissions after its latest; not counted beyond GB_LOST_AFTER */
    uint8_t state;
    bool resend;                        /* to be sent again at once, such as since it is lost */
};

struct gb_packet_list {
    struct gb_outstanding_packet *first, *last;
    int64_t count;
};

struct gb_outstanding {
    struct gb_packet_list once, again;  /* each in the order of the latest transmissions */
    int64_t count;                      /* in both */
    int64_t resends;                    /* that are to be sent again at once */
    int64_t next_order;
};

static inline struct gb_packet_list *outstanding_list(struct gb_outstanding *outstanding,
                                                      const struct gb_outstanding_packet *packet) {
    return packet->state == GB_SENT_ONCE ? &outstanding->once : &outstanding->again;
}

static inline void outstanding_append(struct gb_outstanding *outstanding, struct gb_outstanding_packet *packet,
                                      enum gb_packet_state state, int64_t now_us) {
    packet->state = (uint8_t)state;
    struct gb_packet_list *list = outstanding_list(outstanding, packet);
    packet->before = list->last;
    packet->after = NULL;
    *(list->last ? &list->last->after : &list->first) = packet;
    list->last = packet;
    list->count++;
    outstanding->count++;
    packet->order = outstanding->next_order++;
    packet->sent_us = now_us;
    packet->later_acks = 0;
}

/* It is acknowledged, or about to be sent again. */
static inline void outstanding_remove(struct gb_outstanding *outstanding, struct gb_outstanding_packet *packet) {
    if (packet->state == GB_NOT_OUTSTANDING)
        return;
    struct gb_packet_list *list = outstanding_list(outstanding, packet);
    *(packet->before ? &packet->before->after : &list->first) = packet->after;
    *(packet->after ? &packet->after->before : &list->last) = packet->before;
    list->count--;
    outstanding->count--;
    outstanding->resends -= packet->resend;
    packet->resend = false;
    packet->state = GB_NOT_OUTSTANDING;
}

static inline void outstanding_sent(struct gb_outstanding *outstanding, struct gb_outstanding_packet *packet,
                                    int64_t now_us) {
    outstanding_append(outstanding, packet, GB_SENT_ONCE, now_us);
    packet->first_order = packet->order;
    packet->first_sent_us = now_us;
}

static inline void outstanding_sent_again(struct gb_outstanding *outstanding, struct gb_outstanding_packet *packet,
                                          int64_t now_us) {
    outstanding_remove(outstanding, packet);
    outstanding_append(outstanding, packet, GB_SENT_AGAIN, now_us);
}

static inline void outstanding_resend(struct gb_outstanding *outstanding, struct gb_outstanding_packet *packet) {
    outstanding->resends += !packet->resend;
    packet->resend = true;
}

/* A later transmission has got through. */
static inline void outstanding_overtaken(struct gb_outstanding *outstanding, struct gb_outstanding_packet *packet) {
    packet->later_acks += packet->later_acks < GB_LOST_AFTER;
    if (packet->later_acks >= GB_LOST_AFTER)
        outstanding_resend(outstanding, packet);
}

/* The one whose latest transmission was made first; NULL: none is outstanding. */
static inline struct gb_outstanding_packet *outstanding_oldest(const struct gb_outstanding *outstanding) {
    struct gb_outstanding_packet *once = outstanding->once.first, *again = outstanding->again.first;
    return !again || (once && once->order < again->order) ? once : again;
}

#endif
