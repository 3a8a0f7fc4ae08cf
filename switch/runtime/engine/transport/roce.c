/* RoCEv2's packets, written and read. */
#include "engine/transport/roce.h"

#include <string.h>

#include "engine/transport/congestion.h"

enum {
    IP_OFFSET = 14,
    UDP_OFFSET = 34,
    AFTER_BTH = PLAIN_BYTES,
    ECT_0 = 2,
    ECN_MASK = 3,
    FLOW_PORTS = 0xc000,            /* source ports of flows, which hashes tell apart: 0xc000 to 0xffff */
    ACKNOWLEDGE_REQUEST = 0x80,
    NEGATIVE_SEQUENCE = 0x60,       /* syndrome: NAK, PSN sequence error */
    BECN = 0x40,
};

static void put_16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static void put_24(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 16);
    put_16(at + 1, value);
}

static void put_32(uint8_t *at, uint32_t value) {
    value = __builtin_bswap32(value);
    memcpy(at, &value, sizeof value);
}

static void put_64(uint8_t *at, uint64_t value) {
    put_32(at, (uint32_t)(value >> 32));
    put_32(at + 4, (uint32_t)value);
}

static uint32_t get_16(const uint8_t *at) {
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t get_24(const uint8_t *at) {
    return (uint32_t)at[0] << 16 | get_16(at + 1);
}

static uint32_t get_32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return __builtin_bswap32(value);
}

static uint64_t get_64(const uint8_t *at) {
    return (uint64_t)get_32(at) << 32 | get_32(at + 4);
}

/* ---- Headers ---- */

/* Of the IPv4 header, without length and checksum. */
static uint32_t sum_of(const uint8_t *ip, uint8_t tos) {
    uint32_t sum = 0x4500u | tos;
    for (uint32_t i = 4; i < 20; i += 2)
        sum += get_16(ip + i);
    return sum;
}

/* Flows of different pairs have different source ports, as far as there are some: Fibonacci hashing. */
static uint32_t source_port(uint32_t number, uint32_t peer_number) {
    uint64_t hash = ((uint64_t)number << 24 | peer_number) * UINT64_C(0x9e3779b97f4a7c15);
    return FLOW_PORTS | (uint32_t)(hash >> 50);
}

static uint8_t tos_of(const struct queue_pair *pair, bool data) {
    uint8_t ecn = data && pair->congestion->ecn_capable ? ECT_0 : 0;
    return (uint8_t)(pair->options.priority << 5 | ecn);
}

void roce_header(struct queue_pair *pair) {
    const struct gb_queue_pair_options *options = &pair->options;
    uint8_t *at = pair->header, *ip = at + IP_OFFSET, *bth = at + BTH_OFFSET;
    memset(at, 0, sizeof pair->header);
    memcpy(at, options->dst_mac, 6);
    memcpy(at + 6, options->src_mac, 6);
    put_16(at + 12, 0x0800);
    put_16(ip + 6, 0x4000);         /* don't fragment */
    ip[8] = 64;
    ip[9] = 17;
    put_32(ip + 12, options->src_ip);
    put_32(ip + 16, options->dst_ip);
    ip[0] = 0x45;
    pair->data_sum = sum_of(ip, tos_of(pair, true));
    pair->control_sum = sum_of(ip, tos_of(pair, false));
    put_16(at + UDP_OFFSET, source_port(options->number, options->peer_number));
    put_16(at + UDP_OFFSET + 2, ROCE_PORT);
    put_16(bth + 2, 0xffff);        /* the default partition */
    put_24(bth + 5, options->peer_number);
}

/* The headers up to the BTH, for a frame of that length. */
static void write_header(const struct queue_pair *pair, struct packet *packet, enum opcode opcode, uint32_t psn,
                         uint32_t pad_bytes, bool data) {
    uint8_t *at = packet->view.data, *bth = at + BTH_OFFSET;
    uint32_t ip_bytes = packet->view.length - IP_OFFSET;
    uint32_t sum = (data ? pair->data_sum : pair->control_sum) + ip_bytes;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    memcpy(at, pair->header, sizeof pair->header);
    at[IP_OFFSET + 1] = tos_of(pair, data);
    put_16(at + IP_OFFSET + 2, ip_bytes);
    put_16(at + IP_OFFSET + 10, ~sum & 0xffff);
    put_16(at + UDP_OFFSET + 4, ip_bytes - 20);
    bth[0] = (uint8_t)opcode;
    bth[1] = (uint8_t)(pad_bytes << 4);
    put_24(bth + 9, psn);
    packet->priority = (uint8_t)pair->options.priority;
}

static enum opcode opcode_of(bool begins, bool ends) {
    return begins ? (ends ? WRITE_ONLY_IMMEDIATE : WRITE_FIRST) : (ends ? WRITE_LAST_IMMEDIATE : WRITE_MIDDLE);
}

struct packet *roce_data(struct logical_process *lp, const struct queue_pair *pair, const struct message *message,
                         uint64_t psn, uint64_t offset, uint32_t bytes, bool wants_acknowledgement) {
    bool begins = offset == 0, ends = offset + bytes == message->size_bytes;
    uint32_t real = PLAIN_BYTES + (begins ? RETH_BYTES : 0) + (ends ? IMMEDIATE_BYTES : 0);
    uint32_t pad_bytes = -bytes & 3, length = real + bytes + pad_bytes + ICRC_BYTES;
    uint32_t headroom = lp->pool.headroom_bytes;
    struct packet *packet = message->data ? packet_take(&lp->pool, headroom, length)
                                          : packet_take_hollow(&lp->pool, headroom, real, length);
    if (!packet)
        return NULL;
    packet->view.length = length;
    write_header(pair, packet, opcode_of(begins, ends), (uint32_t)psn, pad_bytes, true);
    uint8_t *at = packet->view.data + AFTER_BTH;
    if (wants_acknowledgement)
        at[8 - BTH_BYTES] |= ACKNOWLEDGE_REQUEST;
    if (begins) {
        put_64(at, message->tag);
        put_32(at + 8, message->data != NULL);
        put_32(at + 12, (uint32_t)message->size_bytes);
        at += RETH_BYTES;
    }
    if (ends) {
        put_32(at, (uint32_t)message->tag);
        at += IMMEDIATE_BYTES;
    }
    if (message->data) {
        memcpy(at, message->data + offset, bytes);
        memset(at + bytes, 0, pad_bytes + ICRC_BYTES);
    }
    return packet;
}

static struct packet *control_packet(struct logical_process *lp, const struct queue_pair *pair, enum opcode opcode,
                                     uint32_t psn, uint32_t more_bytes) {
    uint32_t length = PLAIN_BYTES + more_bytes + ICRC_BYTES;
    struct packet *packet = packet_take(&lp->pool, lp->pool.headroom_bytes, length);
    if (packet) {
        packet->view.length = length;
        write_header(pair, packet, opcode, psn, 0, false);
        memset(packet->view.data + AFTER_BTH, 0, more_bytes + ICRC_BYTES);
    }
    return packet;
}

/* The PSN of an acknowledgement is the last that has come, of a negative one that which is missing. */
struct packet *roce_acknowledgement(struct logical_process *lp, const struct queue_pair *pair,
                                    const struct acknowledgement *ack, uint32_t messages) {
    uint32_t psn = ack->negative ? ack->psn : ack->psn - 1;
    struct packet *packet =
        control_packet(lp, pair, ACKNOWLEDGE, psn, AETH_BYTES + (ack->selective ? SELECTIVE_BYTES : 0));
    if (!packet)
        return NULL;
    uint8_t *at = packet->view.data + AFTER_BTH;
    at[0] = ack->negative ? NEGATIVE_SEQUENCE : 0;
    put_24(at + 1, messages);
    if (ack->selective) {
        put_32(at + AETH_BYTES, ack->marked_bytes);
        put_32(at + AETH_BYTES + 4, ack->block_psn & ((1u << PSN_BITS) - 1));
        put_64(at + AETH_BYTES + 8, ack->come);
    }
    return packet;
}

struct packet *roce_cnp(struct logical_process *lp, const struct queue_pair *pair) {
    struct packet *packet = control_packet(lp, pair, CNP, 0, CNP_BYTES);
    if (packet)
        packet->view.data[BTH_OFFSET + 4] = BECN;
    return packet;
}

/* ---- Reading ---- */

bool roce_is(const struct packet *packet) {
    const uint8_t *at = packet->view.data;
    return packet->view.length >= PLAIN_BYTES + ICRC_BYTES && get_16(at + 12) == 0x0800 && at[IP_OFFSET] == 0x45 &&
           at[IP_OFFSET + 9] == 17 && get_16(at + UDP_OFFSET + 2) == ROCE_PORT;
}

uint32_t roce_pair(const struct packet *packet) {
    return get_24(packet->view.data + BTH_OFFSET + 5);
}

bool roce_belongs(const struct queue_pair *pair, const struct packet *packet) {
    const uint8_t *at = packet->view.data;
    uint32_t ip_bytes = packet->view.length - IP_OFFSET;
    return get_32(at + IP_OFFSET + 12) == pair->options.dst_ip && get_32(at + IP_OFFSET + 16) == pair->options.src_ip &&
           get_16(at + IP_OFFSET + 2) == ip_bytes && get_16(at + UDP_OFFSET + 4) == ip_bytes - 20;
}

uint8_t roce_opcode(const struct packet *packet) {
    return packet->view.data[BTH_OFFSET];
}

bool roce_read_data(const struct packet *packet, struct arrival *found) {
    const uint8_t *bth = packet->view.data + BTH_OFFSET, *at = bth + BTH_BYTES;
    uint8_t opcode = bth[0];
    if (opcode != WRITE_FIRST && opcode != WRITE_MIDDLE && opcode != WRITE_LAST_IMMEDIATE &&
        opcode != WRITE_ONLY_IMMEDIATE)
        return false;
    found->opcode = opcode;
    found->marked = (packet->view.data[IP_OFFSET + 1] & ECN_MASK) == ECN_MASK;
    found->wants_acknowledgement = bth[8] & ACKNOWLEDGE_REQUEST;
    found->psn = get_24(bth + 9);
    found->begins = opcode == WRITE_FIRST || opcode == WRITE_ONLY_IMMEDIATE;
    found->ends = opcode == WRITE_LAST_IMMEDIATE || opcode == WRITE_ONLY_IMMEDIATE;
    uint32_t around = PLAIN_BYTES + (found->begins ? RETH_BYTES : 0) + (found->ends ? IMMEDIATE_BYTES : 0) +
                      (bth[1] >> 4 & 3) + ICRC_BYTES;
    if (packet->view.length < around)
        return false;
    if (found->begins) {
        found->tag = get_64(at);
        found->has_contents = get_32(at + 8);
        found->size_bytes = get_32(at + 12);
        at += RETH_BYTES;
    }
    found->payload = at + (found->ends ? IMMEDIATE_BYTES : 0);
    found->payload_bytes = packet->view.length - around;
    return true;
}

bool roce_read_acknowledgement(const struct packet *packet, struct acknowledgement *found) {
    const uint8_t *bth = packet->view.data + BTH_OFFSET, *at = bth + BTH_BYTES;
    uint32_t more_bytes = packet->view.length - PLAIN_BYTES - ICRC_BYTES;
    if (bth[0] != ACKNOWLEDGE || more_bytes < AETH_BYTES)
        return false;
    found->negative = at[0] == NEGATIVE_SEQUENCE;
    if (at[0] >> 5 != 0 && !found->negative)
        return false;
    found->psn = get_24(bth + 9) + !found->negative;
    found->selective = more_bytes >= AETH_BYTES + SELECTIVE_BYTES;
    if (found->selective) {
        found->marked_bytes = get_32(at + AETH_BYTES);
        found->block_psn = get_32(at + AETH_BYTES + 4);
        found->come = get_64(at + AETH_BYTES + 8);
    }
    return true;
}
