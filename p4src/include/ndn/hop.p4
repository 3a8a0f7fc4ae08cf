// What an Interest pays at every router: a hop of its limit; and one without a nonce gets one, as it must have on a link
// (Packet Format, "Nonce").
#ifndef GRADBED_NDN_HOP_P4
#define GRADBED_NDN_HOP_P4

#include "drops.p4"
#include "packet.p4"

const bit<16> NONCE_TYPE_AND_LENGTH = 0x0a04;
const bit<8> NONCE_BYTES = 6;

control AddNonce(inout headers_t hdr) {
    apply {
        hdr.nonce.setValid();
        hdr.nonce.type_and_length = NONCE_TYPE_AND_LENGTH;
        random(hdr.nonce.value, 0, 0xFFFFFFFF);
        if (hdr.wide_packet.isValid()) {
            hdr.wide_packet.length = hdr.wide_packet.length + (bit<16>)NONCE_BYTES;
        } else if (hdr.packet.length < LENGTH_IN_TWO_BYTES - NONCE_BYTES) {
            hdr.packet.length = hdr.packet.length + NONCE_BYTES;
        } else {
            hdr.wide_packet.setValid();
            hdr.wide_packet.type = TYPE_INTEREST;
            hdr.wide_packet.marker = LENGTH_IN_TWO_BYTES;
            hdr.wide_packet.length = (bit<16>)hdr.packet.length + (bit<16>)NONCE_BYTES;
            hdr.packet.setInvalid();
        }
    }
}

control TakeHop(inout headers_t hdr, in metadata_t meta, inout Reason reason) {
    AddNonce() add_nonce;

    apply {
        if (hdr.hop_limit.isValid()) {
            hdr.hop_limit.hops = hdr.hop_limit.hops - 1;
            if (hdr.hop_limit.hops == 0 && meta.operation != Operation.NONE) {
                reason = Reason.HOP_LIMIT;
            }
        }
        if (!hdr.nonce.isValid()) {
            add_nonce.apply(hdr);
        }
    }
}

#endif
