// The gradient packet: a fragment of one worker's gradient on its way to the parameter server, a sum that a
// switch made of several, the server's answer (ACK) with the global sum, or its request (NACK, without lanes) for
// one worker's own. The same format for the hosts is in formats/aggregation.py.
#ifndef GRADBED_GRADIENT_P4
#define GRADBED_GRADIENT_P4

#include "../lanes.p4"

const bit<16> GRADIENT_PORT = 0x4742;
const bit<8> GRADIENT_VERSION = 2;
const bit<16> GRADIENT_UDP_LENGTH = 8 + 28 + 4 * LANES;
const bit<16> NEGATIVE_UDP_LENGTH = 8 + 28;

header gradient_t {
    bit<8> version;
    bit<1> late;                // sent for the first time, held up by repairs: no switch looks at it
    bit<1> retry;               // sent again in case it was lost; the sum in the slot stays there
    bit<1> overflow;            // a switch did not add it, since the sum might have left int32
    bit<1> congestion;          // a packet in the sum met a long queue
    bit<1> negative;            // with acknowledgement, no lanes: the server asks for this fragment alone
    bit<1> partial;             // the lanes are a sum that a switch made
    bit<1> resend;              // the worker waited in vain for the ACK; in an ACK: a resend completed the sum
    bit<1> acknowledgement;     // from the server: the lanes are the global sum
    bit<16> job;
    bit<32> packet_number;      // counts over all rounds of the job
    bit<16> switch_number;      // the designated switch; 0: none, or already passed
    bit<16> fan_in;             // workers that the designated switch waits for
    bit<16> next_switch;        // where the sum, or a packet that the designated switch cannot take, goes on to
    bit<16> next_fan_in;        // workers that the next switch waits for
    bit<64> worker_bitmap;      // whose gradients are in the lanes
    bit<32> magnitude;          // no lane's absolute value is larger; in an ACK: the sum is lane * 2^magnitude
}

#endif
