// Compressed gradients on their way, and their acknowledgements: the first fields, which both have. What follows is
// the hosts' alone (formats/compression.py).
#ifndef GRADBED_PART_P4
#define GRADBED_PART_P4

#include "../ipv4.p4"

const bit<16> PART_PORT = 0x4743;
const bit<8> PART_VERSION = 1;

header part_t {
    bit<8> version;
    bit<5> unused;
    bit<1> end;
    bit<1> congestion;
    bit<1> acknowledgement;
    bit<16> job;
    bit<32> sequence;
}

#endif
