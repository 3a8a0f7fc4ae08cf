// How many bits of a 64-bit bitmap are set: sums of neighbouring fields of 1, 2, 4, ... bits.
#ifndef GRADBED_POPCOUNT_P4
#define GRADBED_POPCOUNT_P4

control Popcount(in bit<64> bitmap, out bit<16> ones) {
    apply {
        bit<64> x = bitmap;
        x = x - ((x >> 1) & 0x5555555555555555);
        x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333);
        x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F;
        x = x + (x >> 8);
        x = x + (x >> 16);
        x = x + (x >> 32);
        ones = x[15:0] & 0x7F;
    }
}

#endif
