// The header of the coded shuffle, behind UDP. formats/shuffle.py has the same fields and numbers.
#ifndef GRADBED_CODED_P4
#define GRADBED_CODED_P4

#ifndef BITS
#define BITS 128
#endif

const bit<16> CODED_PORT = 0x4743;
const bit<8> CODED_VERSION = 1;

typedef bit<BITS> bit_string_t;

header coded_t {
    bit<8> version;
    bit<4> reserved;
    bit<1> by_bit_string;       // follow tree bift_id to the receivers in bit_string; else the IPv4 destination
    bit<1> loan;                // a sample that is only lent
    bit<1> request;             // for fragments that were lost
    bit<1> repair;              // sent because of a request
    bit<16> job;
    bit<16> bift_id;            // number of the tree
    bit<16> bfir_id;            // sender: its worker's index and 1
    bit<32> transmission;
    bit<16> fragment;           // of the transmission; of a request the first one that it tells of
    bit<16> fragments;          // that the transmission has
    bit_string_t bit_string;    // bit i (from the right, RFC 8279): the worker with index i
}

#endif
