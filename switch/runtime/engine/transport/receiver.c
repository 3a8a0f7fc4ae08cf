/* The receiving half of a queue pair: packets become messages again, in order, and are acknowledged.
 *
 * With go-back-N what comes out of order is dropped, and the first such packet answered by a negative acknowledgement.
 * With selective repeat it is held until what is missing has come, and reported.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/transport/congestion.h"
#include "engine/transport/roce.h"

enum { FIRST_BUFFERED = 64 };

/* At most one CNP per pair in that time (Zhu et al., SIGCOMM 2015, section 3.1). */
static const uint64_t CNP_PAUSE_NS = 50000;

static bool selective(const struct queue_pair *pair) {
    return pair->options.recovery == GB_SELECTIVE_REPEAT;
}

/* ---- Messages ---- */

static bool begin_message(struct receiver *receiver, const struct arrival *arrival) {
    uint8_t *data = NULL;
    if (arrival->has_contents && !(data = malloc(arrival->size_bytes ? arrival->size_bytes : 1)))
        return false;
    receiver->tag = arrival->tag;
    receiver->size_bytes = arrival->size_bytes;
    receiver->received_bytes = 0;
    receiver->data = data;
    receiver->in_message = true;
    return true;
}

/* Whether the packet is one that may come next. */
static bool continues(const struct receiver *receiver, const struct arrival *arrival) {
    if (receiver->in_message == arrival->begins)
        return false;
    uint64_t size_bytes = arrival->begins ? arrival->size_bytes : receiver->size_bytes;
    uint64_t received_bytes = (arrival->begins ? 0 : receiver->received_bytes) + arrival->payload_bytes;
    return arrival->ends ? received_bytes == size_bytes : received_bytes < size_bytes;
}

static void received(struct logical_process *lp, struct queue_pair *pair) {
    const struct receiver *receiver = &pair->receiver;
    struct arrived arrived = {receiver->tag, receiver->size_bytes, receiver->data, pair->options.number};
    if (pair->options.for_collectives)
        collective_received(lp, pair->consumer, &arrived);
    else
        complete(lp, pair, GB_COMPLETION_RECEIVED, arrived.tag, arrived.size_bytes, arrived.data);
}

/* The packet that is expected; false if it is broken, or out of memory. */
static bool accept(struct logical_process *lp, struct queue_pair *pair, const struct arrival *arrival) {
    struct receiver *receiver = &pair->receiver;
    if (!continues(receiver, arrival) || (arrival->begins && !begin_message(receiver, arrival)))
        return false;
    if (receiver->data)
        memcpy(receiver->data + receiver->received_bytes, arrival->payload, arrival->payload_bytes);
    receiver->received_bytes += arrival->payload_bytes;
    pair->consumer->partial_bytes += arrival->payload_bytes;
    pair->statistics.received_bytes += arrival->payload_bytes;
    receiver->expected++;
    receiver->negative_sent = false;
    if (++receiver->unacknowledged >= pair->options.acknowledge_every || arrival->wants_acknowledgement ||
        arrival->ends)
        receiver->acknowledge = true;
    if (arrival->ends) {
        pair->consumer->partial_bytes -= receiver->received_bytes;
        received(lp, pair);
        receiver->data = NULL;
        receiver->in_message = false;
        receiver->messages++;
    }
    return true;
}

/* ---- Selective repeat ---- */

static struct packet **place_of(const struct receiver *receiver, uint64_t psn) {
    return &receiver->buffered[psn & (receiver->buffered_capacity - 1)];
}

/* Room for packets up to that one. */
static bool make_room(struct receiver *receiver, uint64_t psn) {
    uint32_t capacity = receiver->buffered_capacity ? receiver->buffered_capacity : FIRST_BUFFERED;
    while (psn - receiver->expected >= capacity)
        capacity *= 2;
    if (capacity == receiver->buffered_capacity)
        return true;
    struct packet **buffered = calloc(capacity, sizeof *buffered);
    if (!buffered)
        return false;
    for (uint64_t i = 0; i < receiver->buffered_capacity; i++) {
        uint64_t each = receiver->expected + i;
        buffered[each & (capacity - 1)] = *place_of(receiver, each);
    }
    free(receiver->buffered);
    receiver->buffered = buffered;
    receiver->buffered_capacity = capacity;
    return true;
}

/* Keep the packet; false if that is of no use. */
static bool hold(struct logical_process *lp, struct queue_pair *pair, struct packet *packet, uint64_t psn) {
    struct receiver *receiver = &pair->receiver;
    if (psn - receiver->expected >= MOST_OUTSTANDING || !make_room(receiver, psn))
        return false;
    struct packet **place = place_of(receiver, psn);
    uint64_t block = psn / BLOCK_PACKETS;
    if (receiver->low_block > receiver->high_block)
        receiver->low_block = receiver->high_block = block;
    else if (block < receiver->low_block)
        receiver->low_block = block;
    else if (block > receiver->high_block)
        receiver->high_block = block;
    if (*place) {
        pair->statistics.duplicates++;
        return false;
    }
    pair->statistics.out_of_order++;
    *place = packet;
    receiver->buffered_count++;
    pair->consumer->buffered_bytes += packet->view.length;
    lp->arrived_packets++;
    return true;
}

static struct packet *release(struct logical_process *lp, struct queue_pair *pair, uint64_t psn) {
    struct receiver *receiver = &pair->receiver;
    struct packet **place = place_of(receiver, psn), *packet = *place;
    if (packet) {
        *place = NULL;
        receiver->buffered_count--;
        pair->consumer->buffered_bytes -= packet->view.length;
        lp->arrived_packets--;
    }
    return packet;
}

static void accept_buffered(struct logical_process *lp, struct queue_pair *pair) {
    struct receiver *receiver = &pair->receiver;
    struct packet *packet;
    bool accepted = true;
    while (accepted && receiver->buffered_count && (packet = release(lp, pair, receiver->expected))) {
        struct arrival arrival;
        accepted = roce_read_data(packet, &arrival) && accept(lp, pair, &arrival);
        packet_free(&lp->pool, packet);
    }
    if (receiver->buffered_count)
        receiver->acknowledge = true;
}

/* ---- Arrivals ---- */

static void note_mark(struct logical_process *lp, struct queue_pair *pair, const struct arrival *arrival) {
    struct receiver *receiver = &pair->receiver;
    pair->statistics.marked++;
    receiver->marked_bytes += arrival->payload_bytes;
    if (!pair->congestion->sends_cnps ||
        (receiver->had_cnp && lp->now_ns - receiver->cnp_ns < CNP_PAUSE_NS))
        return;
    receiver->cnp = receiver->had_cnp = true;
    receiver->cnp_ns = lp->now_ns;
}

/* Whether the packet is kept. */
static bool take(struct logical_process *lp, struct queue_pair *pair, struct packet *packet,
                 const struct arrival *arrival) {
    struct receiver *receiver = &pair->receiver;
    uint64_t psn = widened(receiver->expected, arrival->psn, PSN_BITS);
    if (psn == receiver->expected) {
        if (accept(lp, pair, arrival))
            accept_buffered(lp, pair);
        return false;
    }
    if ((int64_t)(psn - receiver->expected) < 0) {
        pair->statistics.duplicates++;
        receiver->acknowledge = true;
        return false;
    }
    if (selective(pair)) {
        receiver->acknowledge = true;
        return hold(lp, pair, packet, psn);
    }
    pair->statistics.out_of_order++;
    if (!receiver->negative_sent)
        receiver->negative = receiver->negative_sent = true;
    return false;
}

void receiver_take(struct logical_process *lp, struct queue_pair *pair, struct packet *packet,
                   const struct arrival *arrival) {
    pair->statistics.received_packets++;
    if (arrival->marked)
        note_mark(lp, pair, arrival);
    if (!take(lp, pair, packet, arrival))
        packet_free(&lp->pool, packet);
    if (receiver_wants(pair))
        nic_wants_control(lp, pair);
}

/* ---- Answers ---- */

bool receiver_wants(const struct queue_pair *pair) {
    return pair->receiver.cnp || pair->receiver.acknowledge || pair->receiver.negative;
}

/* Which packets of the block have come. */
static uint64_t come_of(const struct receiver *receiver, uint64_t block) {
    uint64_t come = 0;
    for (uint64_t i = 0; i < BLOCK_PACKETS; i++) {
        uint64_t psn = block * BLOCK_PACKETS + i;
        bool here = psn < receiver->expected ||
                    (psn - receiver->expected < receiver->buffered_capacity && *place_of(receiver, psn));
        come |= (uint64_t)here << i;
    }
    return come;
}

static struct packet *acknowledgement(struct logical_process *lp, struct queue_pair *pair) {
    struct receiver *receiver = &pair->receiver;
    struct acknowledgement ack = {
        .negative = receiver->negative,
        .selective = selective(pair) || pair->congestion->echoes_marks,
        .psn = (uint32_t)receiver->expected,
        .marked_bytes = receiver->marked_bytes,
        .block_psn = (uint32_t)receiver->expected,
    };
    if (receiver->low_block < receiver->expected / BLOCK_PACKETS)
        receiver->low_block = receiver->expected / BLOCK_PACKETS;
    if (receiver->low_block <= receiver->high_block) {
        ack.negative = receiver->buffered_count > 0;
        ack.block_psn = (uint32_t)(receiver->low_block * BLOCK_PACKETS);
        ack.come = come_of(receiver, receiver->low_block);
    }
    struct packet *packet = roce_acknowledgement(lp, pair, &ack, receiver->messages);
    if (!packet)
        return NULL;
    *(ack.negative ? &pair->statistics.negatives_sent : &pair->statistics.acknowledgements_sent) += 1;
    if (receiver->low_block <= receiver->high_block)
        receiver->low_block++;
    receiver->acknowledge = receiver->low_block <= receiver->high_block;
    receiver->negative = false;
    receiver->unacknowledged = 0;
    return packet;
}

struct packet *receiver_next(struct logical_process *lp, struct queue_pair *pair) {
    struct receiver *receiver = &pair->receiver;
    if (!receiver->cnp)
        return receiver_wants(pair) ? acknowledgement(lp, pair) : NULL;
    struct packet *packet = roce_cnp(lp, pair);
    if (packet) {
        receiver->cnp = false;
        pair->statistics.cnps_sent++;
    }
    return packet;
}

void receiver_open(struct queue_pair *pair) {
    pair->receiver.expected = pair->options.first_psn;
    pair->receiver.low_block = 1;   /* of no blocks */
}

void receiver_close(struct logical_process *lp, struct queue_pair *pair) {
    struct receiver *receiver = &pair->receiver;
    for (uint32_t i = 0; i < receiver->buffered_capacity; i++)
        if (receiver->buffered[i]) {
            pair->consumer->buffered_bytes -= receiver->buffered[i]->view.length;
            packet_free(&lp->pool, receiver->buffered[i]);
            lp->arrived_packets--;
        }
    free(receiver->buffered);
    free(receiver->data);
    receiver->buffered = NULL;
    receiver->data = NULL;
    pair->consumer->partial_bytes -= receiver->in_message ? receiver->received_bytes : 0;
    receiver->buffered_capacity = receiver->buffered_count = 0;
    receiver->in_message = receiver->cnp = receiver->acknowledge = receiver->negative = false;
}
