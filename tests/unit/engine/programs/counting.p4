// A table, a counter and a register, for test_state.py: read and written while packets pass.
#include <core.p4>
#include <v1model.p4>

header tag_t {
    bit<16> value;
}

struct headers {
    tag_t tag;
}

struct metadata {
}

parser ParseTag(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.tag);
        transition accept;
    }
}

control NoVerification(inout headers hdr, inout metadata meta) {
    apply { }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    counter(4, CounterType.packets_and_bytes) by_port;
    register<bit<32>>(8) sums;

    action forward(bit<9> port) {
        standard.egress_spec = port;
    }
    action drop() {
        mark_to_drop(standard);
    }
    table routes {
        key = { hdr.tag.value : exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 4096;
    }

    apply {
        bit<32> sum;
        sums.read(sum, 3);
        sums.write(3, sum + (bit<32>) hdr.tag.value);
        by_port.count((bit<32>) standard.ingress_port);
        routes.apply();
    }
}

control NoEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply { }
}

control NoComputation(inout headers hdr, inout metadata meta) {
    apply { }
}

control Deparse(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.tag);
    }
}

V1Switch(ParseTag(), NoVerification(), MyIngress(), NoEgress(), NoComputation(), Deparse()) main;
