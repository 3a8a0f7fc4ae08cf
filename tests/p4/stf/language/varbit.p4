// Options of variable length, as in IPv4: extracted, copied, removed.
#include <core.p4>
#include <v1model.p4>

header head_t {
    bit<8> words; // length of the options in units of four bytes
    bit<8> command; // 1 remove the options, 2 double them
    bit<8> failed;
}

header options_t {
    varbit<96> data;
}

struct headers_t {
    head_t    head;
    options_t options;
    options_t copy;
}

struct metadata_t { }

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.head);
        transition select(hdr.head.words) {
            0: accept;
            default: options;
        }
    }
    state options {
        verify(hdr.head.words <= 3, error.HeaderTooShort);
        packet.extract(hdr.options, (bit<32>)hdr.head.words << 5);
        transition accept;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (standard.parser_error == error.HeaderTooShort) {
            hdr.head.failed = 1;
        } else if (standard.parser_error != error.NoError) {
            hdr.head.failed = 2;
        }
        if (hdr.head.command == 1) {
            hdr.options.setInvalid();
        } else if (hdr.head.command == 2) {
            hdr.copy = hdr.options;
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
