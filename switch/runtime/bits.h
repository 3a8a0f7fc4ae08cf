/* Bits of frames and fields: big-endian loads and stores, sign extension, masks. */
#ifndef GRADBED_BITS_H
#define GRADBED_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The low `bits` bits set; bits in 0..64. */
static inline uint64_t gb_mask(unsigned bits) {
    return bits >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
}

/* Set `count` words to 0. For a few of them compilers make of memset an instruction that takes dozens of cycles to begin. */
static inline void gb_clear(uint64_t *words, size_t count) {
    typedef uint64_t pair __attribute__((vector_size(16), aligned(8)));
    enum { FEW = 128 };
    if (count > FEW) {
        memset(words, 0, count * sizeof *words);
        return;
    }
    for (; count >= 8; count -= 8, words += 8) {
        __asm__("" : "+r"(words));      /* or they make memset of this, too */
        pair *at = (pair *)words;
        at[0] = at[1] = at[2] = at[3] = (pair){0, 0};
    }
    for (size_t i = 0; i < count; i++)
        words[i] = 0;
}

/* The two's complement value of the low `bits` bits, as 64 bits; bits in 1..64. */
static inline uint64_t gb_sign_extend(uint64_t value, unsigned bits) {
    uint64_t sign = UINT64_C(1) << (bits - 1);
    return ((value & gb_mask(bits)) ^ sign) - sign;
}

static inline uint64_t gb_load8(const uint8_t *at) { return at[0]; }

static inline uint64_t gb_load16(const uint8_t *at) {
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return __builtin_bswap16(value);
}

static inline uint64_t gb_load32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return __builtin_bswap32(value);
}

static inline uint64_t gb_load64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return __builtin_bswap64(value);
}

static inline uint64_t gb_load24(const uint8_t *at) { return gb_load16(at) << 8 | at[2]; }
static inline uint64_t gb_load40(const uint8_t *at) { return gb_load32(at) << 8 | at[4]; }
static inline uint64_t gb_load48(const uint8_t *at) { return gb_load32(at) << 16 | gb_load16(at + 4); }
static inline uint64_t gb_load56(const uint8_t *at) { return gb_load32(at) << 24 | gb_load24(at + 4); }

static inline void gb_store8(uint8_t *at, uint64_t value) { at[0] = (uint8_t)value; }

static inline void gb_store16(uint8_t *at, uint64_t value) {
    uint16_t swapped = __builtin_bswap16((uint16_t)value);
    memcpy(at, &swapped, sizeof swapped);
}

static inline void gb_store32(uint8_t *at, uint64_t value) {
    uint32_t swapped = __builtin_bswap32((uint32_t)value);
    memcpy(at, &swapped, sizeof swapped);
}

static inline void gb_store64(uint8_t *at, uint64_t value) {
    uint64_t swapped = __builtin_bswap64(value);
    memcpy(at, &swapped, sizeof swapped);
}

static inline void gb_store24(uint8_t *at, uint64_t value) {
    gb_store16(at, value >> 8);
    at[2] = (uint8_t)value;
}

static inline void gb_store40(uint8_t *at, uint64_t value) {
    gb_store32(at, value >> 8);
    at[4] = (uint8_t)value;
}

static inline void gb_store48(uint8_t *at, uint64_t value) {
    gb_store32(at, value >> 16);
    gb_store16(at + 4, value);
}

static inline void gb_store56(uint8_t *at, uint64_t value) {
    gb_store32(at, value >> 24);
    gb_store24(at + 4, value);
}

/* Copy `count` bits between bit offsets (bit 0 is the most significant of byte 0); other bits of `to` stay. */
void gb_copy_bits(uint8_t *to, uint32_t to_bit, const uint8_t *from, uint32_t from_bit, uint32_t count);

/* A field of any width at any bit offset, as words with the least significant first. */
void gb_load_field(uint64_t *words, const uint8_t *at, uint32_t bit, uint32_t width);
void gb_store_field(uint8_t *at, uint32_t bit, uint32_t width, const uint64_t *words);

/* A field of up to 64 bits at any bit offset. */
static inline uint64_t gb_load_bits(const uint8_t *at, uint32_t bit, uint32_t width) {
    uint64_t value;
    gb_load_field(&value, at, bit, width);
    return value;
}

#endif
