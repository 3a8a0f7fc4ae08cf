/* Fields at any bit offset and of any width: the general form of what bits.h does inline for whole bytes. */
#include "bits.h"

void gb_copy_bits(uint8_t *to, uint32_t to_bit, const uint8_t *from, uint32_t from_bit, uint32_t count) {
    to += to_bit / 8;
    from += from_bit / 8;
    to_bit %= 8;
    from_bit %= 8;
    if (to_bit == 0 && from_bit == 0) {
        memcpy(to, from, count / 8);
        to += count / 8;
        from += count / 8;
        count %= 8;
    }
    while (count > 0) {
        /* As many bits as both bytes have left. */
        uint32_t step = 8 - (to_bit > from_bit ? to_bit : from_bit);
        if (step > count)
            step = count;
        unsigned mask = (1u << step) - 1;
        unsigned bits = (unsigned)*from >> (8 - from_bit - step) & mask;
        unsigned shift = 8 - to_bit - step;
        *to = (uint8_t)((*to & ~(mask << shift)) | bits << shift);
        to_bit += step;
        from_bit += step;
        count -= step;
        to += to_bit / 8;
        from += from_bit / 8;
        to_bit %= 8;
        from_bit %= 8;
    }
}

void gb_load_field(uint64_t *words, const uint8_t *at, uint32_t bit, uint32_t width) {
    for (uint32_t low = 0; low < width; low += 64) {
        uint32_t bits = width - low < 64 ? width - low : 64;
        uint8_t bytes[8] = {0};
        gb_copy_bits(bytes, 64 - bits, at, bit + width - low - bits, bits);
        words[low / 64] = gb_load64(bytes);
    }
}

void gb_store_field(uint8_t *at, uint32_t bit, uint32_t width, const uint64_t *words) {
    for (uint32_t low = 0; low < width; low += 64) {
        uint32_t bits = width - low < 64 ? width - low : 64;
        uint8_t bytes[8];
        gb_store64(bytes, words[low / 64]);
        gb_copy_bits(at, bit + width - low - bits, bytes, 64 - bits, bits);
    }
}
