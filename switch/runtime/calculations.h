/* Hashes and checksums over bytes, as v1model's HashAlgorithm and BMv2 name them. */
#ifndef GRADBED_CALCULATIONS_H
#define GRADBED_CALCULATIONS_H

#include "bits.h"

/* The bytes that go into a calculation: fields put together bit by bit, then perhaps the payload, which stays
 * where it is. */
struct gb_bytes {
    uint8_t *data;
    uint32_t bits;              /* of data; the last byte is filled with zeros */
    const uint8_t *payload;
    uint32_t payload_length;
};

/* Internet checksum (RFC 1071): complement of the one's complement sum of 16-bit words. */
uint64_t gb_csum16(const struct gb_bytes *);
/* CRC-16/ARC, CRC-32 (IEEE 802.3), CRC-16/CCITT-FALSE. */
uint64_t gb_crc16(const struct gb_bytes *);
uint64_t gb_crc32(const struct gb_bytes *);
uint64_t gb_crcCCITT(const struct gb_bytes *);
/* BMv2's custom CRCs with the parameters that they have until someone changes them. */
uint64_t gb_crc8_custom(const struct gb_bytes *);
uint64_t gb_crc64_custom(const struct gb_bytes *);
/* Exclusive or of big-endian words, the last one filled with zeros. */
uint64_t gb_xor16(const struct gb_bytes *);
uint64_t gb_xor32(const struct gb_bytes *);
/* The first eight bytes, or as many as there are, as a number. */
uint64_t gb_identity(const struct gb_bytes *);
uint64_t gb_xxh64(const struct gb_bytes *);
/* One more with each call in the process, whatever the bytes. */
uint64_t gb_round_robin(const struct gb_bytes *);

/* A modulus of 0 counts as 1. */
static inline uint64_t gb_hash_modulo(uint64_t hash, uint64_t modulus) { return modulus ? hash % modulus : 0; }

/* Put `width` bits in front of what is there. `words`: least significant first. */
void gb_bytes_append(struct gb_bytes *, const uint64_t *words, uint32_t width);
void gb_bytes_append_raw(struct gb_bytes *, const uint8_t *raw, uint32_t bits);

/* ---- Numbers and bytes one after the other, for what consists of whole bytes: nothing is put together first ---- */

struct gb_running {
    uint64_t value;
    uint64_t bytes;             /* that it covers by now */
};

/* Of a byte and as many zero bytes after it. */
extern uint32_t gb_crc16_slices[8][256], gb_crc32_slices[8][256];

uint64_t gb_crc_bytes(uint32_t slices[8][256], uint64_t rest, const uint8_t *at, uint64_t length);
/* The sum of big-endian words of 32 bits, the last one filled with zeros. */
uint64_t gb_sum_bytes(const uint8_t *at, uint64_t length);

/* `count` bytes that stand in the high end of `bytes`, the first one lowest: all at once. */
static inline uint64_t gb_crc_step(uint32_t slices[8][256], uint64_t rest, uint64_t bytes, unsigned count) {
    bytes ^= rest << (64 - 8 * count);
    rest = count < 8 ? rest >> 8 * count : 0;
#pragma GCC unroll 8
    for (unsigned i = 8 - count; i < 8; i++)
        rest ^= slices[7 - i][bytes >> 8 * i & 0xff];
    return rest;
}

/* The lowest `count` bytes of a number, 1 to 8, as they would stand in a packet; it has no others. */
static inline void gb_crc32_number(struct gb_running *crc, uint64_t number, unsigned count) {
    crc->value = gb_crc_step(gb_crc32_slices, crc->value, __builtin_bswap64(number), count);
}
static inline void gb_crc16_number(struct gb_running *crc, uint64_t number, unsigned count) {
    crc->value = gb_crc_step(gb_crc16_slices, crc->value, __builtin_bswap64(number), count);
}
static inline void gb_csum16_number(struct gb_running *sum, uint64_t number, unsigned count) {
    /* Sums of 32-bit words are congruent to sums of 16-bit words modulo 2^16 - 1, and a shift by 8 is a rotation. */
    uint64_t even = number << count % 2 * 8, words = (even >> 32) + (even & 0xffffffff);
    sum->value += sum->bytes % 2 ? words << 8 : words;
    sum->bytes += count;
}

static inline void gb_crc32_bytes(struct gb_running *crc, const uint8_t *at, uint64_t length) {
    crc->value = gb_crc_bytes(gb_crc32_slices, crc->value, at, length);
}
static inline void gb_crc16_bytes(struct gb_running *crc, const uint8_t *at, uint64_t length) {
    crc->value = gb_crc_bytes(gb_crc16_slices, crc->value, at, length);
}
static inline void gb_csum16_bytes(struct gb_running *sum, const uint8_t *at, uint64_t length) {
    uint64_t words = gb_sum_bytes(at, length);
    sum->value += sum->bytes % 2 ? words << 8 : words;
    sum->bytes += length;
}

static inline struct gb_running gb_crc32_begin(void) { return (struct gb_running){.value = 0xffffffff}; }
static inline struct gb_running gb_crc16_begin(void) { return (struct gb_running){0}; }
static inline struct gb_running gb_csum16_begin(void) { return (struct gb_running){0}; }

static inline uint64_t gb_crc32_end(struct gb_running crc) { return crc.value ^ 0xffffffff; }
static inline uint64_t gb_crc16_end(struct gb_running crc) { return crc.value; }
static inline uint64_t gb_csum16_end(struct gb_running sum) {
    while (sum.value >> 16)
        sum.value = (sum.value & 0xffff) + (sum.value >> 16);
    return ~sum.value & 0xffff;
}

#endif
