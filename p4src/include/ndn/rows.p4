// Which rows of a table a name may have: one of its pairs of rows. CRC-32 alone is linear, and would give names that
// follow each other (segments of a version, numbered publishers) few of the pairs, or no pair twice; so it is mixed.
#ifndef GRADBED_NDN_ROWS_P4
#define GRADBED_NDN_ROWS_P4

#include "../mix_hash.p4"
#include "packet.p4"

// rows: of the table, a power of two.
control FirstRow(in name_id_t name, in bit<32> rows, out bit<32> row) {
    MixHash() mix_hash;
    apply {
        bit<32> number = (bit<32>)(name >> 32);
        mix_hash.apply(0, number);
        row = (number << 1) & (rows - 1);
    }
}

#endif
