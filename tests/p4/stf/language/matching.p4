// Every kind of match, one table each.
#include <core.p4>
#include <v1model.p4>

header key_t {
    bit<8>  kind; // 1 exact, 2 lpm, 3 ternary, 4 range, 5 optional, 6 validity
    bit<16> a;
    bit<16> b;
    bit<8>  result;
}

header extra_t {
    bit<8> value;
}

struct headers_t {
    key_t   key;
    extra_t extra;
}

struct metadata_t { }

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.key);
        transition select(hdr.key.kind, hdr.key.a) {
            (6, 1): with_extra;
            default: accept;
        }
    }
    state with_extra {
        packet.extract(hdr.extra);
        transition accept;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action found(bit<8> result) {
        hdr.key.result = result;
    }

    table exact_both {
        key = { hdr.key.a: exact; hdr.key.b: exact; }
        actions = { found; @defaultonly NoAction; }
        default_action = NoAction();
    }
    table longest_prefix {
        key = { hdr.key.a: lpm; }
        actions = { found; @defaultonly NoAction; }
        default_action = NoAction();
    }
    table ternary_both {
        key = { hdr.key.a: ternary; hdr.key.b: ternary; }
        actions = { found; @defaultonly NoAction; }
        default_action = NoAction();
    }
    table ranges {
        key = { hdr.key.a: range; hdr.key.b: exact; }
        actions = { found; @defaultonly NoAction; }
        default_action = NoAction();
    }
    table optional_both {
        key = { hdr.key.a: optional; hdr.key.b: optional; }
        actions = { found; @defaultonly NoAction; }
        default_action = NoAction();
    }
    table validity {
        key = { hdr.extra.isValid(): exact; hdr.key.b: ternary @name("b"); }
        actions = { found; }
        const default_action = found(0xee);
        const entries = {
            (true, 0x1234): found(1);
            (true, 0x1200 &&& 0xff00): found(2);
            (false, _): found(3);
        }
    }

    apply {
        standard.egress_spec = 1;
        switch (hdr.key.kind) {
            1: { exact_both.apply(); }
            2: { longest_prefix.apply(); }
            3: { ternary_both.apply(); }
            4: { ranges.apply(); }
            5: { optional_both.apply(); }
            6: { validity.apply(); }
            default: { mark_to_drop(standard); }
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
