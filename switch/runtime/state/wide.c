/* Arithmetic on runs of 64-bit words, for fields wider than 128 bits. Simple rather than fast. */
#include "wide.h"

#define MAX_WORDS 1024u  /* the code generator refuses more */

static inline uint64_t fill(const uint64_t *a, uint32_t words, bool is_signed) {
    return is_signed && a[words - 1] >> 63 ? ~UINT64_C(0) : 0;
}

uint64_t gb_wide_narrow(const uint64_t *a, uint32_t words) {
    for (uint32_t i = 1; i < words; i++)
        if (a[i])
            return UINT64_MAX;
    return a[0];
}

void gb_wide_from64(uint64_t *to, uint32_t words, uint64_t value, bool is_signed) {
    gb_wide_extend(to, words, &value, 1, is_signed);
}

void gb_wide_from128(uint64_t *to, uint32_t words, gb_u128 value, bool is_signed) {
    uint64_t both[2];
    gb_store128(both, value);
    gb_wide_extend(to, words, both, 2, is_signed);
}

void gb_wide_extend(uint64_t *to, uint32_t words, const uint64_t *from, uint32_t from_words, bool is_signed) {
    uint64_t above = fill(from, from_words, is_signed);
    for (uint32_t i = 0; i < words; i++)
        to[i] = i < from_words ? from[i] : above;
}

void gb_wide_truncate(uint64_t *to, const uint64_t *from, uint32_t words, uint32_t bits) {
    for (uint32_t i = 0; i < words; i++) {
        uint32_t below = 64 * i;
        to[i] = below >= bits ? 0 : from[i] & gb_mask(bits - below < 64 ? bits - below : 64);
    }
}

void gb_wide_sign_extend(uint64_t *to, const uint64_t *from, uint32_t words, uint32_t bits) {
    uint64_t sign = from[(bits - 1) / 64] >> (bits - 1) % 64 & 1;
    gb_wide_truncate(to, from, words, bits);
    if (sign)
        for (uint32_t i = (bits - 1) / 64; i < words; i++)
            to[i] |= i == (bits - 1) / 64 ? ~gb_mask((bits - 1) % 64 + 1) : ~UINT64_C(0);
}

void gb_wide_add(uint64_t *to, const uint64_t *a, const uint64_t *b, uint32_t words) {
    gb_u128 sum = 0;
    for (uint32_t i = 0; i < words; i++) {
        sum += (gb_u128)a[i] + b[i];
        to[i] = (uint64_t)sum;
        sum >>= 64;
    }
}

void gb_wide_sub(uint64_t *to, const uint64_t *a, const uint64_t *b, uint32_t words) {
    uint64_t borrow = 0;
    for (uint32_t i = 0; i < words; i++) {
        gb_u128 difference = (gb_u128)a[i] - b[i] - borrow;
        to[i] = (uint64_t)difference;
        borrow = (uint64_t)(difference >> 64) & 1;
    }
}

void gb_wide_mul(uint64_t *restrict to, const uint64_t *a, const uint64_t *b, uint32_t words) {
    memset(to, 0, words * sizeof *to);
    for (uint32_t i = 0; i < words; i++) {
        uint64_t carry = 0;
        for (uint32_t j = 0; i + j < words; j++) {
            gb_u128 sum = (gb_u128)a[i] * b[j] + to[i + j] + carry;
            to[i + j] = (uint64_t)sum;
            carry = (uint64_t)(sum >> 64);
        }
    }
}

void gb_wide_and(uint64_t *to, const uint64_t *a, const uint64_t *b, uint32_t words) {
    for (uint32_t i = 0; i < words; i++)
        to[i] = a[i] & b[i];
}

void gb_wide_or(uint64_t *to, const uint64_t *a, const uint64_t *b, uint32_t words) {
    for (uint32_t i = 0; i < words; i++)
        to[i] = a[i] | b[i];
}

void gb_wide_xor(uint64_t *to, const uint64_t *a, const uint64_t *b, uint32_t words) {
    for (uint32_t i = 0; i < words; i++)
        to[i] = a[i] ^ b[i];
}

void gb_wide_not(uint64_t *to, const uint64_t *a, uint32_t words) {
    for (uint32_t i = 0; i < words; i++)
        to[i] = ~a[i];
}

void gb_wide_shl(uint64_t *to, const uint64_t *a, uint32_t words, uint64_t by) {
    uint64_t skip = by / 64;
    unsigned bits = by % 64;
    for (uint32_t i = words; i-- > 0;) {
        uint64_t high = i >= skip ? a[i - skip] : 0, low = i >= skip + 1 ? a[i - skip - 1] : 0;
        to[i] = bits ? high << bits | low >> (64 - bits) : high;
    }
}

void gb_wide_shr(uint64_t *to, const uint64_t *a, uint32_t words, uint64_t by, bool is_signed) {
    uint64_t above = fill(a, words, is_signed), skip = by / 64;
    unsigned bits = by % 64;
    for (uint32_t i = 0; i < words; i++) {
        uint64_t low = skip < words - i ? a[i + skip] : above, high = skip + 1 < words - i ? a[i + skip + 1] : above;
        to[i] = bits ? low >> bits | high << (64 - bits) : low;
    }
}

int gb_wide_compare(const uint64_t *a, const uint64_t *b, uint32_t words, bool is_signed) {
    uint64_t flip = is_signed ? UINT64_C(1) << 63 : 0;
    for (uint32_t i = words; i-- > 0; flip = 0)
        if (a[i] != b[i])
            return (a[i] ^ flip) < (b[i] ^ flip) ? -1 : 1;
    return 0;
}

bool gb_wide_nonzero(const uint64_t *a, uint32_t words) {
    for (uint32_t i = 0; i < words; i++)
        if (a[i])
            return true;
    return false;
}

static void negate(uint64_t *to, const uint64_t *a, uint32_t words) {
    uint64_t carry = 1;
    for (uint32_t i = 0; i < words; i++) {
        to[i] = ~a[i] + carry;
        carry &= to[i] == 0;
    }
}

static void magnitude(uint64_t *to, const uint64_t *a, uint32_t words, bool is_signed) {
    if (fill(a, words, is_signed))
        negate(to, a, words);
    else
        memcpy(to, a, words * sizeof *to);
}

void gb_wide_divide(uint64_t *restrict to, const uint64_t *a, const uint64_t *b, uint32_t words, bool is_signed,
                    bool remainder) {
    uint64_t dividend[MAX_WORDS], divisor[MAX_WORDS], rest[MAX_WORDS];
    memset(to, 0, words * sizeof *to);
    if (!gb_wide_nonzero(b, words))
        return;
    magnitude(dividend, a, words, is_signed);
    magnitude(divisor, b, words, is_signed);
    memset(rest, 0, words * sizeof *rest);
    for (uint32_t bit = 64 * words; bit-- > 0;) {
        uint64_t carry = rest[words - 1] >> 63;
        gb_wide_shl(rest, rest, words, 1);
        rest[0] |= dividend[bit / 64] >> bit % 64 & 1;
        if (carry || gb_wide_compare(rest, divisor, words, false) >= 0) {
            gb_wide_sub(rest, rest, divisor, words);
            to[bit / 64] |= UINT64_C(1) << bit % 64;
        }
    }
    bool negative = (fill(a, words, is_signed) != 0) ^ (!remainder && fill(b, words, is_signed) != 0);
    if (remainder)
        memcpy(to, rest, words * sizeof *to);
    if (negative)
        negate(to, to, words);
}

void gb_wide_clamp(uint64_t *to, const uint64_t *a, const uint64_t *low, const uint64_t *high, uint32_t words,
                   bool is_signed) {
    if (gb_wide_compare(a, low, words, is_signed) < 0)
        a = low;
    else if (gb_wide_compare(a, high, words, is_signed) > 0)
        a = high;
    memmove(to, a, words * sizeof *to);
}

uint32_t gb_wide_decimal(char *text, uint32_t size, const uint64_t *a, uint32_t words, bool is_signed) {
    uint64_t rest[MAX_WORDS];
    char digits[MAX_WORDS * 20 + 2];
    uint32_t count = 0, length = 0;
    bool negative = fill(a, words, is_signed) != 0;
    magnitude(rest, a, words, is_signed);
    do {
        uint64_t digit = 0;
        for (uint32_t i = words; i-- > 0;) {
            gb_u128 part = GB_U128(digit, rest[i]);
            rest[i] = (uint64_t)(part / 10);
            digit = (uint64_t)(part % 10);
        }
        digits[count++] = (char)('0' + digit);
    } while (gb_wide_nonzero(rest, words));
    if (negative)
        digits[count++] = '-';
    while (count > 0 && length + 1 < size)
        text[length++] = digits[--count];
    if (size > 0)
        text[length] = 0;
    return length;
}
