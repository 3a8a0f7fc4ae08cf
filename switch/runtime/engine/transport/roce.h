/* RoCEv2's packets: Ethernet, IPv4, UDP to port 4791, base transport header (BTH), what the opcode adds, payload, and an
 * invariant CRC of 0, which is not computed here.
 *
 * A message is an RDMA WRITE with immediate data: the first packet has its length and, as virtual address, its tag; its
 * R_Key is 1 if it has contents, and 0 if it is a length alone. The immediate data are the lower half of the tag.
 */
#ifndef GRADBED_ROCE_H
#define GRADBED_ROCE_H

#include "engine/transport/pair.h"

#pragma GCC visibility push(hidden)

enum {
    ROCE_PORT = 4791,
    BTH_OFFSET = 42,
    BTH_BYTES = 12,
    PLAIN_BYTES = BTH_OFFSET + BTH_BYTES,
    RETH_BYTES = 16,
    IMMEDIATE_BYTES = 4,
    AETH_BYTES = 4,
    SELECTIVE_BYTES = 16,           /* ours: behind the AETH */
    CNP_BYTES = 16,
    ICRC_BYTES = 4,
};

enum opcode {
    WRITE_FIRST = 0x06,
    WRITE_MIDDLE = 0x07,
    WRITE_LAST_IMMEDIATE = 0x09,
    WRITE_ONLY_IMMEDIATE = 0x0b,
    ACKNOWLEDGE = 0x11,
    CNP = 0x81,
};

/* A packet that has come. */
struct arrival {
    uint8_t opcode;
    bool wants_acknowledgement, marked;
    uint32_t psn;
    bool begins, ends;              /* a message */
    uint64_t tag;
    uint32_t size_bytes;            /* of the message that begins */
    bool has_contents;
    const uint8_t *payload;
    uint32_t payload_bytes;
};

struct acknowledgement {
    bool negative, selective;
    uint32_t psn;                   /* all before it have come */
    uint32_t marked_bytes, block_psn;
    uint64_t come;                  /* bit k: packet block_psn + k has come */
};

void roce_header(struct queue_pair *);
/* The number of the pair that it is for; false if it is not RoCEv2 at all. */
bool roce_is(const struct packet *);
uint32_t roce_pair(const struct packet *);
/* Whether it is whole and comes from the pair's peer. */
bool roce_belongs(const struct queue_pair *, const struct packet *);
uint8_t roce_opcode(const struct packet *);
bool roce_read_data(const struct packet *, struct arrival *);
bool roce_read_acknowledgement(const struct packet *, struct acknowledgement *);

/* Part of a message, `bytes` from `offset` on. */
struct packet *roce_data(struct logical_process *, const struct queue_pair *, const struct message *, uint64_t psn,
                         uint64_t offset, uint32_t bytes, bool wants_acknowledgement);
struct packet *roce_acknowledgement(struct logical_process *, const struct queue_pair *, const struct acknowledgement *,
                                    uint32_t messages);
struct packet *roce_cnp(struct logical_process *, const struct queue_pair *);

#pragma GCC visibility pop
#endif
