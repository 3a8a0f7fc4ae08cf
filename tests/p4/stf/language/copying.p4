// When values are copied: table keys, select expressions, sub-parsers, direction out, ranges of loops.
#include <core.p4>
#include <v1model.p4>

header bytes_t { bit<8> x; bit<8> y; bit<8> z; }
struct headers_t { bytes_t one; bytes_t two; }
struct metadata_t { bit<8> way; }

bit<8> inc(inout bit<8> x, in bit<8> y) { x = x * 3 + y; return x ^ y; }

parser Inner(packet_in packet, inout bit<8> a, in bit<8> b, out bit<8> c) {
    state start {
        a = a + 1;
        c = a + b;
        transition accept;
    }
}

parser P(packet_in packet, out headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    Inner() inner;
    state start {
        packet.extract(h.one);
        packet.extract(h.two);
        // x as it is before inc: 5 * 3 + 7 = 22, 22 ^ 7 = 17.
        transition select(h.one.x, inc(h.one.x, h.one.y)) {
            (5, 17): known;
            default: accept;
        }
    }
    state known {
        meta.way = 1;
        // a = 9 before the second argument makes it 30; a + 1 comes back.
        inner.apply(packet, h.two.x, inc(h.two.x, 3), h.two.z);
        transition accept;
    }
}

control C(inout headers_t h, inout metadata_t meta) { apply { } }

control I(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) {
    action right() { meta.way = meta.way + 0x10; }
    // Two keys: y as it is before inc changes it (4 * 3 + 2 = 14, 14 ^ 2 = 12).
    table keys {
        key = { h.two.y: exact; inc(h.two.y, 2): exact @name("changed"); }
        actions = { right; NoAction; }
        const entries = { (4, 12): right(); }
    }
    apply {
        std.egress_spec = 1;
        keys.apply();
        h.one.z = meta.way;
    }
}

control E(inout headers_t h, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control D(packet_out packet, in headers_t h) { apply { packet.emit(h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
