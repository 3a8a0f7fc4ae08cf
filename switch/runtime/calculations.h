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

/* In any place, of any width: the general form of what comes below. */
void gb_bytes_append_any(struct gb_bytes *, const uint64_t *words, uint32_t width);
void gb_bytes_append_raw_any(struct gb_bytes *, const uint8_t *raw, uint32_t bits);

/* A modulus of 0 counts as 1. */
static inline uint64_t gb_hash_modulo(uint64_t hash, uint64_t modulus) { return modulus ? hash % modulus : 0; }

/* Put `width` bits behind what is there. `words`: least significant first. */
static inline void gb_bytes_append(struct gb_bytes *bytes, const uint64_t *words, uint32_t width) {
    if (bytes->bits % 8 || width % 8) {
        gb_bytes_append_any(bytes, words, width);
        return;
    }
    uint8_t *at = bytes->data + (bytes->bits + width) / 8;
    bytes->bits += width;
    for (; width >= 64; width -= 64)
        gb_store64(at -= 8, *words++);
    if (width)
        gb_store_whole(at - width / 8, width, *words);
}

static inline void gb_bytes_append_raw(struct gb_bytes *bytes, const uint8_t *raw, uint32_t bits) {
    if (bytes->bits % 8 || bits % 8) {
        gb_bytes_append_raw_any(bytes, raw, bits);
        return;
    }
    memcpy(bytes->data + bytes->bits / 8, raw, bits / 8);
    bytes->bits += bits;
}

#endif
