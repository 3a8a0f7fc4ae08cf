// Frames name a key and an amount, and come back with the key's estimate.
#include <core.p4>
#include <v1model.p4>
#include <gradbed.p4>

#ifndef ROWS
#define ROWS 2
#define COLUMNS 4096
#endif

header request_t {
    bit<8> op;  // 1: count; 2: ask; 3: count a header that is not valid; 4: count, and do without the estimate
    bit<16> key_high;
    bit<32> key_low;
    bit<32> amount;
    bit<32> estimate;
}

header other_t {
    bit<48> field;
}

struct headers_t {
    request_t request;
    other_t other;
}

struct metadata_t {}

struct key_t {
    bit<16> high;
    bit<32> low;
}

parser RequestParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Counting(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    CountMinSketch(ROWS, COLUMNS) counted;
    CountMinSketch(1, 1) all;

    apply {
        key_t key = { hdr.request.key_high, hdr.request.key_low };
        bit<32> total;
        if (hdr.request.op == 1) {
            counted.update(key, hdr.request.amount, hdr.request.estimate);
        } else if (hdr.request.op == 2) {
            counted.estimate(key, hdr.request.estimate);
        } else if (hdr.request.op == 3) {
            counted.update(hdr.other, hdr.request.amount, hdr.request.estimate);
        } else {
            counted.update(hdr.request.key_low, hdr.request.amount, _);
        }
        all.update(hdr.request.op, 1, total);
        hdr.request.amount[7:0] = total[7:0];
        standard_metadata.egress_spec = standard_metadata.ingress_port;
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control NoCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control RequestDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
    }
}

V1Switch(RequestParser(), NoVerify(), Counting(), NoEgress(), NoCompute(), RequestDeparser()) main;
