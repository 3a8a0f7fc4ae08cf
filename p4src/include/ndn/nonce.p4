// An Interest without a nonce gets one, as it must have on a link (Packet Format, "Nonce").
#ifndef GRADBED_NDN_NONCE_P4
#define GRADBED_NDN_NONCE_P4

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

#endif
