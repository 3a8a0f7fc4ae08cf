/* Hashes and checksums. */
#include "calculations.h"

#include <stdbool.h>
#include <string.h>

/* ---- The input as a sequence of bytes: data, then payload ---- */

static uint32_t data_bytes(const struct gb_bytes *bytes) { return (bytes->bits + 7) / 8; }

void gb_bytes_append_raw(struct gb_bytes *bytes, const uint8_t *raw, uint32_t bits) {
    uint32_t last = (bytes->bits + bits + 7) / 8;
    for (uint32_t i = data_bytes(bytes); i < last; i++)
        bytes->data[i] = 0;
    gb_copy_bits(bytes->data, bytes->bits, raw, 0, bits);
    bytes->bits += bits;
}

static void append_whole_bytes(struct gb_bytes *bytes, const uint64_t *words, uint32_t count) {
    uint8_t *begin = bytes->data + bytes->bits / 8, *at = begin + count;
    bytes->bits += 8 * count;
    for (; count >= 8; count -= 8)
        gb_store64(at -= 8, *words++);
    for (uint64_t rest = count ? *words : 0; at > begin; rest >>= 8)
        *--at = (uint8_t)rest;
}

void gb_bytes_append(struct gb_bytes *bytes, const uint64_t *words, uint32_t width) {
    if (bytes->bits % 8 == 0 && width % 8 == 0) {
        append_whole_bytes(bytes, words, width / 8);
        return;
    }
    uint32_t last = (bytes->bits + width + 7) / 8;
    for (uint32_t i = data_bytes(bytes); i < last; i++)
        bytes->data[i] = 0;
    gb_store_field(bytes->data, bytes->bits, width, words);
    bytes->bits += width;
}

/* ---- Checksums ---- */

uint64_t gb_sum_bytes(const uint8_t *at, uint64_t length) {
    uint64_t sum = 0;
    for (; length >= 4; at += 4, length -= 4)
        sum += gb_load32(at);
    if (length >= 2) {
        sum += gb_load16(at) << 16;
        at += 2;
        length -= 2;
    }
    return length ? sum + ((uint64_t)at[0] << 24) : sum;
}

uint64_t gb_csum16(const struct gb_bytes *bytes) {
    struct gb_running sum = gb_csum16_begin();
    gb_csum16_bytes(&sum, bytes->data, data_bytes(bytes));
    gb_csum16_bytes(&sum, bytes->payload, bytes->payload_length);
    return gb_csum16_end(sum);
}

/* ---- Cyclic redundancy checks ---- */

struct crc {
    unsigned width;
    uint64_t polynomial, initial;
    bool reflected;
    uint64_t table[256];
};

static struct crc crcs[] = {
    {16, 0x8005, 0, true, {0}},
    {32, 0x04c11db7, 0xffffffff, true, {0}},
    {16, 0x1021, 0xffff, false, {0}},
    {8, 0x07, 0, false, {0}},
    {64, 0x1b, 0, true, {0}},
};
enum { CRC16, CRC32, CRC_CCITT, CRC8, CRC64 };

uint32_t gb_crc16_slices[8][256], gb_crc32_slices[8][256];

static uint64_t reflect(uint64_t value, unsigned width) {
    uint64_t result = 0;
    for (unsigned i = 0; i < width; i++)
        if (value >> i & 1)
            result |= UINT64_C(1) << (width - 1 - i);
    return result;
}

/* Reflected checks work on the mirrored polynomial from the low end, so that no byte needs mirroring. */
static void fill_table(struct crc *crc) {
    uint64_t mirrored = reflect(crc->polynomial, crc->width), top = UINT64_C(1) << (crc->width - 1);
    for (unsigned byte = 0; byte < 256; byte++) {
        uint64_t rest = crc->reflected ? byte : (uint64_t)byte << (crc->width - 8);
        for (int bit = 0; bit < 8; bit++) {
            if (crc->reflected)
                rest = rest & 1 ? rest >> 1 ^ mirrored : rest >> 1;
            else
                rest = (rest & top ? rest << 1 ^ crc->polynomial : rest << 1) & gb_mask(crc->width);
        }
        crc->table[byte] = rest;
    }
}

static void fill_slices(uint32_t slices[8][256], const struct crc *crc) {
    for (unsigned byte = 0; byte < 256; byte++) {
        uint64_t rest = byte;
        for (unsigned i = 0; i < 8; i++) {
            rest = crc->table[rest & 0xff] ^ rest >> 8;
            slices[i][byte] = (uint32_t)rest;
        }
    }
}

__attribute__((constructor)) static void fill_tables(void) {
    for (size_t i = 0; i < sizeof crcs / sizeof *crcs; i++)
        fill_table(&crcs[i]);
    fill_slices(gb_crc16_slices, &crcs[CRC16]);
    fill_slices(gb_crc32_slices, &crcs[CRC32]);
}

/* 1 to 8 bytes in the high end of a word, the first one lowest: without a loop, and without touching others. */
static uint64_t high_bytes(const uint8_t *at, uint64_t count) {
    uint32_t low, high;
    if (count < 4)
        return ((uint64_t)at[0] << (8 - count) * 8) | (uint64_t)at[count / 2] << (8 - count + count / 2) * 8 |
               (uint64_t)at[count - 1] << 56;
    memcpy(&low, at, sizeof low);
    memcpy(&high, at + count - 4, sizeof high);
    return (uint64_t)low << (8 - count) * 8 | (uint64_t)high << 32;
}

/* The odd bytes come first, as those of a shorter number would. */
uint64_t gb_crc_bytes(uint32_t slices[8][256], uint64_t rest, const uint8_t *at, uint64_t length) {
    uint64_t odd = length % 8;
    if (odd) {
        uint64_t bytes = high_bytes(at, odd) ^ rest << (64 - 8 * odd);
        rest = gb_crc_step(slices, 0, bytes, 8) ^ rest >> 8 * odd;
        at += odd;
    }
    for (; length >= 8; at += 8, length -= 8)
        rest = gb_crc_step(slices, rest, high_bytes(at, 8), 8);
    return rest;
}

static uint64_t crc_run(const struct crc *crc, uint64_t rest, const uint8_t *at, uint32_t length) {
    if (crc->reflected)
        for (uint32_t i = 0; i < length; i++)
            rest = crc->table[(rest ^ at[i]) & 0xff] ^ rest >> 8;
    else
        for (uint32_t i = 0; i < length; i++)
            rest = (crc->table[(rest >> (crc->width - 8) ^ at[i]) & 0xff] ^ rest << 8) & gb_mask(crc->width);
    return rest;
}

static uint64_t crc_compute(int which, const struct gb_bytes *bytes) {
    const struct crc *crc = &crcs[which];
    uint64_t rest = crc_run(crc, crc->initial, bytes->data, data_bytes(bytes));
    return crc_run(crc, rest, bytes->payload, bytes->payload_length);
}

uint64_t gb_crc16(const struct gb_bytes *bytes) {
    struct gb_running crc = gb_crc16_begin();
    gb_crc16_bytes(&crc, bytes->data, data_bytes(bytes));
    gb_crc16_bytes(&crc, bytes->payload, bytes->payload_length);
    return gb_crc16_end(crc);
}

uint64_t gb_crc32(const struct gb_bytes *bytes) {
    struct gb_running crc = gb_crc32_begin();
    gb_crc32_bytes(&crc, bytes->data, data_bytes(bytes));
    gb_crc32_bytes(&crc, bytes->payload, bytes->payload_length);
    return gb_crc32_end(crc);
}

uint64_t gb_crcCCITT(const struct gb_bytes *bytes) { return crc_compute(CRC_CCITT, bytes); }
uint64_t gb_crc8_custom(const struct gb_bytes *bytes) { return crc_compute(CRC8, bytes); }
uint64_t gb_crc64_custom(const struct gb_bytes *bytes) { return crc_compute(CRC64, bytes); }

/* ---- Others ---- */

static uint8_t byte_at(const struct gb_bytes *bytes, uint32_t index) {
    uint32_t length = data_bytes(bytes);
    return index < length ? bytes->data[index] : bytes->payload[index - length];
}

static uint64_t exclusive_or(const struct gb_bytes *bytes, unsigned size) {
    uint32_t length = data_bytes(bytes) + bytes->payload_length;
    uint64_t result = 0;
    for (uint32_t i = 0; i < length; i++)
        result ^= (uint64_t)byte_at(bytes, i) << 8 * (size - 1 - i % size);
    return result;
}

uint64_t gb_xor16(const struct gb_bytes *bytes) { return exclusive_or(bytes, 2); }
uint64_t gb_xor32(const struct gb_bytes *bytes) { return exclusive_or(bytes, 4); }

uint64_t gb_identity(const struct gb_bytes *bytes) {
    uint32_t length = data_bytes(bytes) + bytes->payload_length;
    uint64_t result = 0;
    for (uint32_t i = 0; i < length && i < 8; i++)
        result = result << 8 | byte_at(bytes, i);
    return result;
}

uint64_t gb_round_robin(const struct gb_bytes *bytes) {
    static uint64_t next;
    (void)bytes;
    return __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
}

/* ---- xxHash, 64 bits, seed 0 (specification: github.com/Cyan4973/xxHash, doc/xxhash_spec.md) ---- */

#define XXH_PRIME_1 UINT64_C(0x9e3779b185ebca87)
#define XXH_PRIME_2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define XXH_PRIME_3 UINT64_C(0x165667b19e3779f9)
#define XXH_PRIME_4 UINT64_C(0x85ebca77c2b2ae63)
#define XXH_PRIME_5 UINT64_C(0x27d4eb2f165667c5)

static uint64_t rotate(uint64_t value, unsigned by) { return value << by | value >> (64 - by); }

static uint64_t little_endian(const struct gb_bytes *bytes, uint32_t at, unsigned size) {
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
        value |= (uint64_t)byte_at(bytes, at + i) << 8 * i;
    return value;
}

static uint64_t xxh_round(uint64_t accumulator, uint64_t lane) {
    return rotate(accumulator + lane * XXH_PRIME_2, 31) * XXH_PRIME_1;
}

uint64_t gb_xxh64(const struct gb_bytes *bytes) {
    uint32_t length = data_bytes(bytes) + bytes->payload_length, at = 0;
    uint64_t hash = XXH_PRIME_5;
    if (length >= 32) {
        uint64_t lanes[4] = {XXH_PRIME_1 + XXH_PRIME_2, XXH_PRIME_2, 0, -XXH_PRIME_1};
        for (; length - at >= 32; at += 32)
            for (unsigned i = 0; i < 4; i++)
                lanes[i] = xxh_round(lanes[i], little_endian(bytes, at + 8 * i, 8));
        hash = rotate(lanes[0], 1) + rotate(lanes[1], 7) + rotate(lanes[2], 12) + rotate(lanes[3], 18);
        for (unsigned i = 0; i < 4; i++)
            hash = (hash ^ xxh_round(0, lanes[i])) * XXH_PRIME_1 + XXH_PRIME_4;
    }
    hash += length;
    for (; length - at >= 8; at += 8)
        hash = rotate(hash ^ xxh_round(0, little_endian(bytes, at, 8)), 27) * XXH_PRIME_1 + XXH_PRIME_4;
    for (; length - at >= 4; at += 4)
        hash = rotate(hash ^ little_endian(bytes, at, 4) * XXH_PRIME_1, 23) * XXH_PRIME_2 + XXH_PRIME_3;
    for (; at < length; at++)
        hash = rotate(hash ^ byte_at(bytes, at) * XXH_PRIME_5, 11) * XXH_PRIME_1;
    hash = (hash ^ hash >> 33) * XXH_PRIME_2;
    hash = (hash ^ hash >> 29) * XXH_PRIME_3;
    return hash ^ hash >> 32;
}
