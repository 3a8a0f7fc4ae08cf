// A hash that spreads numbers that follow each other.
#ifndef GRADBED_MIX_HASH_P4
#define GRADBED_MIX_HASH_P4

// CRCs are linear: numbers in a row share few of a CRC's low bits, and with a seed alone all switches would split flows
// alike, or all the other way round. This is the end of MurmurHash3 (A. Appleby), which is not linear.
control MixHash(in bit<32> seed, inout bit<32> value) {
    apply {
        value = value ^ seed;
        value = (value ^ (value >> 16)) * 0x85EBCA6B;
        value = (value ^ (value >> 13)) * 0xC2B2AE35;
        value = value ^ (value >> 16);
    }
}

#endif
