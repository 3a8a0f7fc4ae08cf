/* What the files of the transport share. */
#ifndef GRADBED_PAIR_H
#define GRADBED_PAIR_H

#include "engine/internal.h"
#include "engine/transport/nic.h"
#include "engine/transport/collectives/collective.h"
#include "engine/transport/queue_pairs.h"

#pragma GCC visibility push(hidden)

enum {
    MOST_OUTSTANDING = 1 << 16,     /* packets of a pair; PSNs must tell twice as many apart */
    PSN_BITS = 24,
    BLOCK_PACKETS = 64,             /* that a selective acknowledgement reports on */
    TIMED = 4,                      /* packets of a pair at a time */
    ROUND_TRIPS = 8,                /* that a pair remembers */
};

/* The number with those lowest `bits` bits that is nearest to `near` (serial numbers, RFC 1982). */
static inline uint64_t widened(uint64_t near, uint32_t number, uint32_t bits) {
    return near + (uint64_t)((int64_t)(int32_t)((number - (uint32_t)near) << (32 - bits)) >> (32 - bits));
}

/* A message on its way out. Packets and bytes of a pair are counted through, over all its messages. */
struct message {
    struct message *next;
    uint64_t tag, size_bytes, first_psn, packets, first_byte;
    const uint8_t *data;            /* NULL: a length alone */
    struct collective *collective;  /* that sends it by itself; or NULL */
    uint32_t step;                  /* of that */
};

struct sender {
    struct message *first, *last;   /* not yet acknowledged as a whole */
    struct message *next_message;   /* that of packet `next`; NULL: there is none */
    uint64_t una, next, top, end;   /* packets: oldest unacknowledged, next to send, next that was never sent, end */
    uint64_t una_byte, next_byte, end_byte;
    uint64_t window_bytes;          /* 0: no limit */
    uint64_t rate_bps;              /* 0, or the link's: nothing to pace */
    uint64_t pace_ns, pace_remainder;   /* the next packet not before; and so much, divided by rate_bps, later */
    uint64_t deadline_ns;           /* by when there has to be news of what is unacknowledged */
    uint32_t timeouts;              /* in a row */
    /* Some packets under way, and when they were sent first; how long such ones took until they were acknowledged. */
    struct timed { uint64_t psn, sent_ns; bool repeated; } timed[TIMED];
    uint32_t timed_count, round_trips;
    uint64_t round_trips_ns[ROUND_TRIPS];   /* the last ones; 0: there were not as many */
    uint64_t ambiguous_ns[ROUND_TRIPS];     /* of packets that were sent again, since the last round trip */
    uint32_t ambiguous;
    struct timer pace, timeout;
    /* Selective repeat: what has come behind `una`, and what is to be sent again. */
    uint64_t *come;                 /* MOST_OUTSTANDING bits, by number; or NULL: nothing has */
    uint64_t come_end, again, again_end;
};

struct receiver {
    uint64_t expected;
    uint64_t tag, size_bytes, received_bytes;   /* of the message that is coming */
    uint8_t *data;
    uint32_t messages, unacknowledged;  /* packets */
    uint32_t marked_bytes;          /* of all so far, modulo 2^32 */
    uint64_t cnp_ns;                /* when the last one was caused */
    uint64_t low_block, high_block; /* selective repeat: to be reported; none if low is larger */
    struct packet **buffered;           /* selective repeat: came before `expected`, by number */
    uint32_t buffered_capacity, buffered_count;
    bool in_message, acknowledge, negative, negative_sent, cnp, had_cnp;
};

struct queue_pair {
    struct gb_queue_pair_options options;
    struct nic *nic;
    struct consumer *consumer;
    struct queue_pair *sibling;     /* the consumer's next */
    struct queue_pair *next_data, *next_control;    /* on the NIC's lists */
    bool on_data, on_control, failed;
    uint8_t header[54];             /* Ethernet, IPv4, UDP and BTH of its packets */
    uint32_t data_sum, control_sum; /* of the IPv4 header without its length */
    struct sender sender;
    struct receiver receiver;
    struct gb_queue_pair_statistics statistics;
    const struct congestion_control *congestion;
    uint64_t congestion_state[];    /* of that, congestion->state_bytes */
};

struct consumer {
    struct nic *nic;
    struct queue_pair *pairs;
    struct gb_completion *completions;  /* a ring */
    uint32_t first, count, capacity;
    uint32_t talking;               /* pairs that are not for collectives: any message may be reported */
    uint32_t nearly_failed;         /* pairs that the next timeout ends */
    uint64_t buffered_bytes;            /* packets that came before others of their pairs */
    uint64_t partial_bytes;         /* contents of messages that have not come as a whole */
    uint64_t least_timeout_ns;      /* of its pairs */
    struct gb_consumer_counts counts;
    struct collectives collectives;
};

/* ---- NIC (nic.c) ---- */

/* The pair has a control packet, or data, to send. */
void nic_wants_control(struct logical_process *, struct queue_pair *);
void nic_wants_data(struct logical_process *, struct queue_pair *);
void nic_forget(struct nic *, struct queue_pair *);
struct queue_pair *nic_pair(const struct nic *, uint32_t number);
/* -EEXIST or -ENOMEM. */
int nic_add(struct nic *, struct queue_pair *);
void nic_remove(struct nic *, struct queue_pair *);
void complete(struct logical_process *, struct queue_pair *, enum gb_completion_kind, uint64_t tag, uint64_t size_bytes,
              void *data);

/* ---- Consumers (consumers.c) ---- */

/* Of a queue pair or a stream with this number. */
void consumer_complete(struct logical_process *, struct consumer *, enum gb_completion_kind, uint32_t number, uint64_t tag,
                       uint64_t size_bytes, void *data);
/* NULL if there is none. */
struct consumer *consumer_of(struct gb_engine *, uint32_t number);

/* ---- Sender (sender.c) ---- */

struct acknowledgement;

void sender_open(struct queue_pair *);
void sender_close(struct logical_process *, struct queue_pair *);
/* Of the message: its tag, size, data and collective. */
int sender_add(struct logical_process *, struct queue_pair *, const struct message *);
/* Whether window and messages allow another packet. */
bool sender_may(const struct queue_pair *);
/* Send what may be sent, now or when it is due. */
void sender_go_on(struct logical_process *, struct queue_pair *);
/* The next packet; NULL when out of memory. sender_may() is true. */
struct packet *sender_next(struct logical_process *, struct queue_pair *);
void sender_acknowledged(struct logical_process *, struct queue_pair *, const struct acknowledgement *);
/* Of these bytes, of whole frames, the next one has to wait. */
void sender_set_rate(struct queue_pair *, uint64_t rate_bps);

/* ---- Receiver (receiver.c) ---- */

struct arrival;

/* Takes the packet. */
void receiver_take(struct logical_process *, struct queue_pair *, struct packet *, const struct arrival *);
/* An acknowledgement or a CNP; NULL when there is none, or when out of memory. */
struct packet *receiver_next(struct logical_process *, struct queue_pair *);
bool receiver_wants(const struct queue_pair *);
void receiver_open(struct queue_pair *);
void receiver_close(struct logical_process *, struct queue_pair *);

/* ---- Congestion control (congestion.c): the pair's own, as congestion.h says ---- */

/* NULL if there is none of that number. */
const struct congestion_control *congestion_control(uint32_t number);
void congestion_open(struct queue_pair *, uint64_t line_bps);
void congestion_catch_up(struct queue_pair *, uint64_t now_ns);
void congestion_acknowledged(struct queue_pair *, uint64_t acked_bytes, uint32_t marked_bytes);
void congestion_loss(struct queue_pair *);
void congestion_timeout(struct queue_pair *);
void congestion_notified(struct queue_pair *, uint64_t now_ns);
void congestion_sent(struct queue_pair *, uint64_t frame_bytes);

#pragma GCC visibility pop
#endif
