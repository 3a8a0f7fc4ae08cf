/* Queue pairs of the hosts' NICs: reliable messages over RoCEv2 (InfiniBand Architecture Specification, volume 1,
 * annex A17), at ports that end in memory.
 *
 * Who uses them is a consumer, as that specification says: it has queue pairs on one port, and completions. Numbers of
 * pairs are unique on a port. A message is an RDMA WRITE with immediate data. Functions give 0 or a negative errno.
 */
#ifndef GRADBED_QUEUE_PAIRS_H
#define GRADBED_QUEUE_PAIRS_H

#include "engine/engine.h"

#define GB_MOST_PAIR_NUMBER 0xffffffu
#define GB_MOST_MESSAGE_BYTES (UINT64_C(1) << 31)
#define GB_MOST_MTU_BYTES 64000

enum gb_recovery { GB_GO_BACK_N, GB_SELECTIVE_REPEAT };

struct gb_queue_pair_options {
    /* Of control "callback" (congestion/callback.c), else NULL: how many packets the window has then. number: of a packet,
     * of those that were sent first; next_number: of the next one. limiting: packets wait for the window to open. */
    uint64_t (*window_acknowledged)(uint64_t number, uint64_t next_number, uint32_t marked, uint32_t limiting);
    uint64_t (*window_lost)(uint64_t number, uint64_t next_number);
    uint64_t window_packets;        /* and at first */
    uint64_t window_bytes;          /* 0: no limit */
    uint64_t rate_bps;              /* of whole frames; 0: the link's */
    uint64_t timeout_ns;            /* longer while round trips are */
    uint32_t number, peer_number;
    uint32_t mtu_bytes, give_up_after, acknowledge_every, priority;
    uint32_t reordering_packets;    /* selective repeat: so many later ones may have come before one counts as lost */
    uint32_t congestion_control;    /* gb_engine_congestion_control */
    uint32_t recovery;
    uint32_t first_psn;             /* of both directions */
    uint32_t src_ip, dst_ip;
    uint32_t for_collectives;       /* 1: what comes is for the consumer's collectives */
    uint8_t src_mac[6], dst_mac[6];
};

/* COLLECTIVE: it has its result; _FAILED: a message came that is none of it; _ENDED: its arrays may go, which ends
 * nobody's wait. tag: its own, or that of the message. */
enum gb_completion_kind {
    GB_COMPLETION_SENT,
    GB_COMPLETION_RECEIVED,
    GB_COMPLETION_FAILED,
    GB_COMPLETION_STREAMED,
    GB_COMPLETION_STREAM_FAILED,
    GB_COMPLETION_COLLECTIVE,
    GB_COMPLETION_COLLECTIVE_FAILED,
    GB_COMPLETION_COLLECTIVE_ENDED,
};

/* data: of a message that has come with contents, the caller's for gb_engine_take_contents; else NULL. */
struct gb_completion {
    uint64_t tag, size_bytes, time_ns;
    void *data;
    uint32_t kind, pair;            /* pair: of a stream (fragment_streams.h) its number */
};

/* Bytes are those of messages, without headers. marked: arrived with congestion experienced. */
struct gb_queue_pair_statistics {
    uint64_t sent_packets, sent_bytes, retransmissions, timeouts;
    uint64_t received_packets, received_bytes, duplicates, out_of_order, marked;
    uint64_t acknowledgements_sent, negatives_sent, cnps_sent, cnps_received;
    uint64_t unacknowledged_bytes;
    uint64_t window_bytes, rate_bps;    /* of the moment; 0: no limit */
};

/* Whole frames; by class as the engine counts (gb_engine_count_classes). unknown: came to the port's NIC for no pair
 * of anybody, or broken, and were dropped. */
struct gb_consumer_counts {
    uint64_t sent_frames, sent_bytes, received_frames, received_bytes, unknown;
    uint64_t sent_classes[GB_CLASSES], received_classes[GB_CLASSES];
};

/* The consumer's number. -ENXIO if the port does not end in memory. */
int gb_engine_open_consumer(struct gb_engine *, uint64_t device_id, uint32_t port);
/* With all its pairs, wherever their messages are. May be repeated. */
int gb_engine_close_consumer(struct gb_engine *, uint32_t consumer);
/* The number of a congestion control. -ENOENT: none has that name. */
int gb_engine_congestion_control(struct gb_engine *, const char *name);
/* -EEXIST: the number is taken. -ENODATA: a control that needs a rate has neither one nor a link with one. */
int gb_engine_connect_pair(struct gb_engine *, uint32_t consumer, const struct gb_queue_pair_options *);
/* data: stays the caller's, and as it is until the message is complete; NULL: a length alone. -ENOENT: no such pair. */
int gb_engine_send_message(struct gb_engine *, uint32_t consumer, uint32_t pair, uint64_t tag, uint64_t size_bytes,
                           const void *data);
/* An eventfd that becomes readable when a consumer at the port has a completion, where a thread is the data plane; the
 * engine's. -ENXIO with a manual clock, and if the port does not end in memory. */
int gb_engine_notify_descriptor(struct gb_engine *, uint64_t device_id, uint32_t port);
/* The oldest completions; how many. */
int gb_engine_completions(struct gb_engine *, uint32_t consumer, struct gb_completion *, uint32_t capacity);
/* Copy the contents of a message to `to`, and give them back; to NULL: give them back alone. */
void gb_engine_take_contents(struct gb_engine *, void *data, uint64_t size_bytes, void *to);
int gb_engine_pair_statistics(struct gb_engine *, uint32_t consumer, uint32_t pair,
                              struct gb_queue_pair_statistics *);
int gb_engine_consumer_counts(struct gb_engine *, uint32_t consumer, struct gb_consumer_counts *);

#endif
