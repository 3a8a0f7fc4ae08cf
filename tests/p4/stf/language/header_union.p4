// One of two headers, chosen by the packet; making one valid makes the other invalid.
#include <core.p4>
#include <v1model.p4>

header type_t {
    bit<8> type; // 1 short, 2 long
    bit<8> change;
    bit<8> valid;
}

header short_t {
    bit<8> value;
}

header long_t {
    bit<32> value;
}

header_union either_t {
    short_t narrow;
    long_t  wide;
}

struct headers_t {
    type_t   type;
    either_t either;
}

struct metadata_t { }

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.type);
        transition select(hdr.type.type) {
            1: narrow;
            2: wide;
            default: accept;
        }
    }
    state narrow {
        packet.extract(hdr.either.narrow);
        transition accept;
    }
    state wide {
        packet.extract(hdr.either.wide);
        transition accept;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        if (hdr.type.change == 1) {
            hdr.either.wide.setValid();
            hdr.either.wide.value = 0xa0b0c0d0;
        } else if (hdr.type.change == 3) {
            // What is assigned is read while the other member is still valid.
            hdr.either.wide = { hdr.either.narrow.isValid() ? (bit<32>)hdr.either.narrow.value : 0xffffffff };
        } else if (hdr.type.change == 2) {
            hdr.either.narrow.setInvalid();
            hdr.either.wide.setInvalid();
        }
        if (hdr.either.narrow.isValid()) {
            hdr.type.valid = 1;
        }
        if (hdr.either.wide.isValid()) {
            hdr.type.valid = hdr.type.valid + 2;
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
