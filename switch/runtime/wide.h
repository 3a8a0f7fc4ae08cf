/* Integers of any width for generated expressions.
 *
 * A value is one word, two words (gb_u128) or a run of words with the least significant first, always in two's
 * complement; whether the sign matters is the caller's knowledge. All results are modulo 2^(64 * words).
 */
#ifndef GRADBED_WIDE_H
#define GRADBED_WIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bits.h"

typedef unsigned __int128 gb_u128;
typedef __int128 gb_i128;

#define GB_U128(high, low) ((gb_u128)(high) << 64 | (low))

static inline uint64_t gb_min(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- One word ---- */

static inline uint64_t gb_shl64(uint64_t value, uint64_t by) { return by < 64 ? value << by : 0; }
static inline uint64_t gb_shr64(uint64_t value, uint64_t by) { return by < 64 ? value >> by : 0; }
static inline uint64_t gb_sar64(uint64_t value, uint64_t by) {
    return (uint64_t)((int64_t)value >> (by < 63 ? by : 63));
}

/* Division by zero gives 0; signed division truncates towards zero. */
static inline uint64_t gb_div64(uint64_t a, uint64_t b) { return b ? a / b : 0; }
static inline uint64_t gb_mod64(uint64_t a, uint64_t b) { return b ? a % b : 0; }
static inline uint64_t gb_sdiv64(uint64_t a, uint64_t b) { return b ? (uint64_t)((gb_i128)(int64_t)a / (int64_t)b) : 0; }
static inline uint64_t gb_smod64(uint64_t a, uint64_t b) { return b ? (uint64_t)((gb_i128)(int64_t)a % (int64_t)b) : 0; }

/* Clamp a signed value into [low, high]. */
static inline uint64_t gb_clamp64(uint64_t value, int64_t low, int64_t high) {
    int64_t number = (int64_t)value;
    return (uint64_t)(number < low ? low : number > high ? high : number);
}

/* ---- Two words ---- */

static inline gb_u128 gb_load128(const uint64_t *words) { return GB_U128(words[1], words[0]); }

static inline void gb_store128(uint64_t *words, gb_u128 value) {
    words[0] = (uint64_t)value;
    words[1] = (uint64_t)(value >> 64);
}

static inline gb_u128 gb_from64(uint64_t value) { return value; }
static inline gb_u128 gb_from64s(uint64_t value) { return (gb_u128)(gb_i128)(int64_t)value; }

static inline gb_u128 gb_sign_extend128(gb_u128 value, unsigned bits) {
    unsigned shift = 128 - bits;
    return (gb_u128)((gb_i128)(value << shift) >> shift);
}

static inline gb_u128 gb_shl128(gb_u128 value, uint64_t by) { return by < 128 ? value << by : 0; }
static inline gb_u128 gb_shr128(gb_u128 value, uint64_t by) { return by < 128 ? value >> by : 0; }
static inline gb_u128 gb_sar128(gb_u128 value, uint64_t by) {
    return (gb_u128)((gb_i128)value >> (by < 127 ? by : 127));
}

static inline gb_u128 gb_div128(gb_u128 a, gb_u128 b) { return b ? a / b : 0; }
static inline gb_u128 gb_mod128(gb_u128 a, gb_u128 b) { return b ? a % b : 0; }
static inline gb_u128 gb_sdiv128(gb_u128 a, gb_u128 b) {
    if ((gb_i128)b == -1)
        return -a;
    return b ? (gb_u128)((gb_i128)a / (gb_i128)b) : 0;
}
static inline gb_u128 gb_smod128(gb_u128 a, gb_u128 b) {
    if (b == 0 || (gb_i128)b == -1)
        return 0;
    return (gb_u128)((gb_i128)a % (gb_i128)b);
}

static inline gb_u128 gb_min128(gb_u128 a, gb_u128 b) { return a < b ? a : b; }
static inline gb_u128 gb_clamp128(gb_u128 value, gb_u128 low, gb_u128 high) {
    gb_i128 number = (gb_i128)value;
    return number < (gb_i128)low ? low : number > (gb_i128)high ? high : value;
}

/* An index or amount that does not fit a word is as good as the largest word. */
static inline uint64_t gb_narrow128(gb_u128 value) { return value >> 64 ? UINT64_MAX : (uint64_t)value; }

/* ---- Runs of words (state/wide.c); results may be the same run as an operand ---- */

uint64_t gb_wide_narrow(const uint64_t *a, uint32_t words);
void gb_wide_from64(uint64_t *to, uint32_t words, uint64_t value, bool is_signed);
void gb_wide_from128(uint64_t *to, uint32_t words, gb_u128 value, bool is_signed);
void gb_wide_extend(uint64_t *to, uint32_t words, const uint64_t *from, uint32_t from_words, bool is_signed);
/* Keep `bits` bits, filling above with zeros or the sign. */
void gb_wide_truncate(uint64_t *to, const uint64_t *from, uint32_t words, uint32_t bits);
void gb_wide_sign_extend(uint64_t *to, const uint64_t *from, uint32_t words, uint32_t bits);
void gb_wide_add(uint64_t *to, const uint64_t *a, const uint64_t *b, uint32_t words);
void gb_wide_sub(uint64_t *to, const uint64_t *a, const uint64_t *b, uint32_t words);
void gb_wide_mul(uint64_t *restrict to, const uint64_t *a, const uint64_t *b, uint32_t words);
void gb_wide_and(uint64_t *to, const uint64_t *a, const uint64_t *b, uint32_t words);
void gb_wide_or(uint64_t *to, const uint64_t *a, const uint64_t *b, uint32_t words);
void gb_wide_xor(uint64_t *to, const uint64_t *a, const uint64_t *b, uint32_t words);
void gb_wide_not(uint64_t *to, const uint64_t *a, uint32_t words);
void gb_wide_shl(uint64_t *to, const uint64_t *a, uint32_t words, uint64_t by);
void gb_wide_shr(uint64_t *to, const uint64_t *a, uint32_t words, uint64_t by, bool is_signed);
/* Quotient into `to`, or the remainder. Operands must not overlap the result. */
void gb_wide_divide(uint64_t *restrict to, const uint64_t *a, const uint64_t *b, uint32_t words, bool is_signed,
                    bool remainder);
/* Clamp into [low, high], as numbers with or without sign. */
void gb_wide_clamp(uint64_t *to, const uint64_t *a, const uint64_t *low, const uint64_t *high, uint32_t words,
                   bool is_signed);
int gb_wide_compare(const uint64_t *a, const uint64_t *b, uint32_t words, bool is_signed);
bool gb_wide_nonzero(const uint64_t *a, uint32_t words);
/* Decimal digits with a minus sign if negative; returns the length written, without the final zero. */
uint32_t gb_wide_decimal(char *text, uint32_t size, const uint64_t *a, uint32_t words, bool is_signed);

#endif
