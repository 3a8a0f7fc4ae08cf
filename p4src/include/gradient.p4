// The gradient packet: a fragment of one worker's gradient on its way to the parameter server, a sum that a
// switch made of several, or the server's answer (ACK) with the global sum. The same format as Scapy layers is
// in hosts/protocols/gradient.py.
#ifndef GRADBED_GRADIENT_P4
#define GRADBED_GRADIENT_P4

#include "lanes.p4"

const bit<16> GRADIENT_PORT = 0x4742;
const bit<8> GRADIENT_VERSION = 1;
const bit<16> GRADIENT_UDP_LENGTH = 8 + 20 + 4 * LANES;

header gradient_t {
    bit<8> version;
    bit<5> reserved;
    bit<1> partial;             // the lanes are a sum that a switch made
    bit<1> resend;              // the worker waited in vain for the ACK; in an ACK: a resend completed the sum
    bit<1> acknowledgement;     // from the server: the lanes are the global sum
    bit<16> job;
    bit<32> packet_number;      // counts over all rounds of the job
    bit<16> switch_number;      // the designated switch; 0: none, or already passed
    bit<16> fan_in;             // workers that the designated switch waits for
    bit<64> worker_bitmap;      // whose gradients are in the lanes
}

#endif
