// Nacks of NDNLPv2: an Interest that has no way, or whose nonce has been here, goes back in an LpPacket that says so. They
// end at who sent the Interest: routers do not pass them on.
#ifndef GRADBED_NDN_NACK_P4
#define GRADBED_NDN_NACK_P4

#include "drops.p4"
#include "packet.p4"

const bit<24> NACK_TYPE = 0xfd0320;
const bit<24> NACK_REASON_TYPE = 0xfd0321;
const bit<8> NACK_DUPLICATE = 100;
const bit<8> NACK_NO_ROUTE = 150;
const bit<16> NACK_BYTES = 9;

control Nack(in Reason reason, inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        bit<16> length;
        if (hdr.packet.isValid()) {
            length = 2 + (bit<16>)hdr.packet.length;
        } else {
            length = 4 + hdr.wide_packet.length;
        }
        // As it came: this router has taken a hop.
        if (hdr.hop_limit.isValid()) {
            hdr.hop_limit.hops = hdr.hop_limit.hops + 1;
        }
        hdr.nack.setValid();
        hdr.nack.nack_type = NACK_TYPE;
        hdr.nack.nack_length = 5;
        hdr.nack.reason_type = NACK_REASON_TYPE;
        hdr.nack.reason_length = 1;
        hdr.nack.reason = reason == Reason.DUPLICATE ? NACK_DUPLICATE : NACK_NO_ROUTE;
        if (length < (bit<16>)LENGTH_IN_TWO_BYTES) {
            hdr.fragment.setValid();
            hdr.fragment.type = TYPE_FRAGMENT;
            hdr.fragment.length = (bit<8>)length;
            length = length + 2 + NACK_BYTES;
        } else {
            hdr.wide_fragment.setValid();
            hdr.wide_fragment.type = TYPE_FRAGMENT;
            hdr.wide_fragment.marker = LENGTH_IN_TWO_BYTES;
            hdr.wide_fragment.length = length;
            length = length + 4 + NACK_BYTES;
        }
        if (length < (bit<16>)LENGTH_IN_TWO_BYTES) {
            hdr.link.setValid();
            hdr.link.type = TYPE_LP_PACKET;
            hdr.link.length = (bit<8>)length;
        } else {
            hdr.wide_link.setValid();
            hdr.wide_link.type = TYPE_LP_PACKET;
            hdr.wide_link.marker = LENGTH_IN_TWO_BYTES;
            hdr.wide_link.length = length;
        }
        meta.nacked = 1;
        std.egress_spec = std.ingress_port;
    }
}

// What was around a packet on the link that it came by.
control LeaveLink(inout headers_t hdr) {
    apply {
        hdr.link.setInvalid();
        hdr.wide_link.setInvalid();
        hdr.fragment.setInvalid();
        hdr.wide_fragment.setInvalid();
    }
}

#endif
