// Operators where widths, signs and limits matter.
#include <core.p4>
#include <v1model.p4>

header operands_t {
    bit<8> op;
    bit<8> a;
    bit<8> b;
    bit<16> result;
}

struct headers_t {
    operands_t operands;
}

struct metadata_t { }

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.operands);
        transition accept;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = 1;
        bit<8> a = hdr.operands.a;
        bit<8> b = hdr.operands.b;
        int<8> sa = (int<8>)a;
        int<8> sb = (int<8>)b;
        bit<16> result = 0;
        switch (hdr.operands.op) {
            1: { result = (bit<16>)(a + b); }
            2: { result = (bit<16>)(a |+| b); }
            3: { result = (bit<16>)(a |-| b); }
            4: { result = (bit<16>)(int<16>)(sa |+| sb); }
            5: { result = (bit<16>)(int<16>)(sa |-| sb); }
            6: { result = (bit<16>)(int<16>)(sa >> 1); }
            7: { result = (bit<16>)(a >> b); }
            8: { result = a ++ b; }
            9: { result = (bit<16>)(a[6:3] ++ b[1:0]); }
            10: { result[11:4] = a; }
            11: { if (sa < sb) { result = 1; } }
            12: { if (a < b) { result = 1; } }
            13: { result = (bit<16>)a * (bit<16>)b; }
            14: { result = (bit<16>)(~a & -b ^ (a | b)); }
            15: { result = (bit<16>)a << b; }
            16: { result = a > b ? (bit<16>)a : (bit<16>)b; }
        }
        hdr.operands.result = result;
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
