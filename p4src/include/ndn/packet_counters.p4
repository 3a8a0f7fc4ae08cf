// NDN packets that enter and leave by each port, by kind, in packets and bytes of whole frames.
#ifndef GRADBED_NDN_PACKET_COUNTERS_P4
#define GRADBED_NDN_PACKET_COUNTERS_P4

#include "packet.p4"

#define KINDS 8
#define COUNTED_PORTS 17            // ports 1 to 16

const bit<32> KIND_INTEREST = 0;
const bit<32> KIND_INSERTION = 1;
const bit<32> KIND_DELETION = 2;
const bit<32> KIND_DATA = 3;
const bit<32> KIND_PUSH = 4;
const bit<32> KIND_ACKNOWLEDGEMENT = 5;     // of an insertion or a deletion
const bit<32> KIND_NACK = 6;

control CellOf(in metadata_t meta, in port_t port, out bit<32> cell) {
    apply {
        cell = (bit<32>)port * KINDS;
        if (meta.nacked == 1) {
            cell = cell + KIND_NACK;
        } else if (meta.packet_type == TYPE_INTEREST) {
            if (meta.operation == Operation.INSERTION) {
                cell = cell + KIND_INSERTION;
            } else if (meta.operation == Operation.DELETION) {
                cell = cell + KIND_DELETION;
            }
        } else if (meta.operation == Operation.NONE) {
            cell = cell + KIND_DATA;
        } else if (meta.components == 3) {
            cell = cell + KIND_ACKNOWLEDGEMENT;
        } else {
            cell = cell + KIND_PUSH;
        }
    }
}

control CountArrivals(in metadata_t meta, in port_t port) {
    counter(COUNTED_PORTS * KINDS, CounterType.packets_and_bytes) ndn_in;
    CellOf() cell_of;
    apply {
        bit<32> cell;
        cell_of.apply(meta, port, cell);
        ndn_in.count(cell);
    }
}

control CountDepartures(in metadata_t meta, in port_t port) {
    counter(COUNTED_PORTS * KINDS, CounterType.packets_and_bytes) ndn_out;
    CellOf() cell_of;
    apply {
        bit<32> cell;
        cell_of.apply(meta, port, cell);
        ndn_out.count(cell);
    }
}

#endif
