// aggregate: a switch that adds up the gradients of its workers, in spite of losses and duplicates.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHER_TYPE_GRADIENT = 0x88b6;
const bit<8> GRADIENT = 1;
const bit<8> SUM = 2;

const bit<32> SLOTS = 64;
// Bit n is worker n's.
const bit<8> ALL_WORKERS = 7;
// The multicast group of all workers.
const bit<16> WORKERS = 1;

// What a packet is to its slot.
const bit<8> OLD = 0;       // of an earlier fragment than the slot's
const bit<8> FIRST = 1;     // the first of a new fragment: the slot begins anew
const bit<8> NEW = 2;       // from a worker that the slot's sum has not
const bit<8> AGAIN = 3;     // from one that it has

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

// kind: GRADIENT from a worker, SUM from the switch. worker: 0, 1 or 2. fragment: counts from 1; its slot is the rest
// of its division by SLOTS. Values are integers in two's complement.
header gradient_t {
    bit<8>  kind;
    bit<8>  worker;
    bit<32> fragment;
    bit<32> value_0;
    bit<32> value_1;
    bit<32> value_2;
    bit<32> value_3;
}

struct headers_t {
    ethernet_t ethernet;
    gradient_t gradient;
}

struct metadata_t { }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_GRADIENT: parse_gradient;
            default: accept;
        }
    }
    state parse_gradient {
        packet.extract(hdr.gradient);
        transition accept;
    }
}

control MyVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

// One of the four values: its sums, one for each slot. Afterwards `value` is the slot's sum.
control Lane(inout bit<32> value, in bit<32> slot, in bit<8> event) {
    register<bit<32>>(SLOTS) sums;

    apply {
        bit<32> sum;
        sums.read(sum, slot);
        // TODO: FIRST replaces the sum, NEW adds to it, others leave it; the packet takes along what it is then.
    }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    // Of each slot: the fragment that it is for, and the workers whose values are in it.
    register<bit<32>>(SLOTS) fragments;
    register<bit<8>>(SLOTS) workers;
    Lane() lane_0;
    Lane() lane_1;
    Lane() lane_2;
    Lane() lane_3;

    apply {
        if (!hdr.gradient.isValid() || hdr.gradient.kind != GRADIENT || hdr.gradient.worker > 2) {
            mark_to_drop(std);
        } else {
            bit<32> slot = hdr.gradient.fragment & (SLOTS - 1);
            bit<8> bitmap = 8w1 << hdr.gradient.worker;
            bit<32> fragment;
            bit<8> held;
            fragments.read(fragment, slot);
            workers.read(held, slot);

            bit<8> event = OLD;
            // TODO: which event is this? A later fragment than the slot's begins anew; then bring the registers up to date,
            //   so that `held` has the workers whose values are in the slot with this packet.

            lane_0.apply(hdr.gradient.value_0, slot, event);
            lane_1.apply(hdr.gradient.value_1, slot, event);
            lane_2.apply(hdr.gradient.value_2, slot, event);
            lane_3.apply(hdr.gradient.value_3, slot, event);

            hdr.gradient.kind = SUM;
            hdr.ethernet.dst_addr = hdr.ethernet.src_addr;
            // TODO: when a packet completes the sum, all workers get it; a worker that asks again for a complete one gets it
            //   alone; nothing else leaves.
            mark_to_drop(std);
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control MyComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.gradient);
    }
}

V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(), MyDeparser()) main;
