// A router answers an Interest itself: the Interest becomes Data, and goes back to where it came from.
#ifndef GRADBED_NDN_ANSWER_P4
#define GRADBED_NDN_ANSWER_P4

#include "packet.p4"

const bit<16> DISTRIBUTE_MINUS_INSERT_BYTES = 4;

// With the content that is in the packet by now, else with an empty one.
control AnswerInterest(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        bit<16> length;
        if (!hdr.content.isValid()) {
            hdr.empty_content.setValid();
            hdr.empty_content.type_and_length = EMPTY_CONTENT;
            hdr.signature.setValid();
            hdr.signature.null_signature = NULL_SIGNATURE;
            length = EMPTY_BODY_BYTES;
        } else {
            length = BODY_BYTES;
        }
        // An insertion is acknowledged under the name of what it asks for.
        if (meta.operation == Operation.INSERTION) {
            hdr.c1.setInvalid();
            hdr.distribute.setValid();
            hdr.distribute.type_and_length = COMPONENT_DISTRIBUTE[95:80];
            hdr.distribute.value = DISTRIBUTE;
            hdr.name.length = hdr.name.length + DISTRIBUTE_MINUS_INSERT_BYTES[7:0];
        }
        if (hdr.name.isValid()) {
            length = length + 2 + (bit<16>)hdr.name.length;
        } else {
            length = length + 4 + hdr.wide_name.length;
        }
        hdr.packet.setInvalid();
        hdr.wide_packet.setInvalid();
        if (length < (bit<16>)LENGTH_IN_TWO_BYTES) {
            hdr.packet.setValid();
            hdr.packet.type = TYPE_DATA;
            hdr.packet.length = (bit<8>)length;
        } else {
            hdr.wide_packet.setValid();
            hdr.wide_packet.type = TYPE_DATA;
            hdr.wide_packet.marker = LENGTH_IN_TWO_BYTES;
            hdr.wide_packet.length = length;
        }
        hdr.can_be_prefix.setInvalid();
        hdr.must_be_fresh.setInvalid();
        hdr.nonce.setInvalid();
        hdr.lifetime_1.setInvalid();
        hdr.lifetime_2.setInvalid();
        hdr.lifetime_4.setInvalid();
        hdr.lifetime_8.setInvalid();
        hdr.hop_limit.setInvalid();
        hdr.element_1.setInvalid();
        hdr.element_2.setInvalid();
        meta.packet_type = TYPE_DATA;
        std.egress_spec = std.ingress_port;
    }
}

#endif
