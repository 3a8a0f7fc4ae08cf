// v1model's ways through a switch, chosen by the first byte of the frame: what test_v1model.py sends.
#include <core.p4>
#include <v1model.p4>

header order_t {
    bit<8>  what;
    bit<8>  argument;
    bit<16> port;
}

// What egress saw.
header seen_t {
    bit<32> instance_type;
    bit<32> packet_length;
    bit<16> ingress_port;
    bit<16> egress_rid;
    bit<8>  kept;
    bit<8>  forgotten;
    bit<8>  kept_in_parser;
    bit<8>  padding;
}

struct headers {
    seen_t  seen;
    order_t order;
}

struct metadata {
    @field_list(1)
    bit<8> kept;
    bit<8> forgotten;
    bit<8> kept_in_parser;
}

parser ParseOrder(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    state start {
        meta.kept_in_parser = meta.kept;
        packet.extract(hdr.order);
        transition accept;
    }
}

control NoVerification(inout headers hdr, inout metadata meta) {
    apply { }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = (bit<9>) hdr.order.port;
        bool first = standard.instance_type == 0;
        if (standard.parser_error != error.NoError || hdr.order.what == 0) {
            mark_to_drop(standard);
        } else if (hdr.order.what == 1) {
            standard.mcast_grp = (bit<16>) hdr.order.argument;
        } else if (hdr.order.what == 2) {
            standard.mcast_grp = (bit<16>) hdr.order.argument;
            mark_to_drop(standard);
        } else if (hdr.order.what == 3) {
            meta.kept = 11;
            meta.forgotten = 12;
            hdr.order.argument = 99;
            clone_preserving_field_list(CloneType.I2E, 7, 1);
        } else if (hdr.order.what == 4 && first) {
            meta.kept = 21;
            meta.forgotten = 22;
            hdr.order.argument = 99;
            resubmit_preserving_field_list(1);
        } else if (hdr.order.what == 7) {
            truncate((bit<32>) hdr.order.argument);
        }
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply {
        if (hdr.order.what == 5 && hdr.order.argument > 0) {
            hdr.order.argument = hdr.order.argument - 1;
            meta.kept = meta.kept + 1;
            meta.forgotten = 32;
            recirculate_preserving_field_list(1);
        } else if (hdr.order.what == 6 && standard.instance_type == 0) {
            meta.kept = 41;
            meta.forgotten = 42;
            hdr.order.argument = 66;
            clone_preserving_field_list(CloneType.E2E, 7, 1);
            mark_to_drop(standard);
        } else if (hdr.order.what != 7) {
            hdr.seen.setValid();
            hdr.seen.instance_type = standard.instance_type;
            hdr.seen.packet_length = standard.packet_length;
            hdr.seen.ingress_port = (bit<16>) standard.ingress_port;
            hdr.seen.egress_rid = standard.egress_rid;
            hdr.seen.kept = meta.kept;
            hdr.seen.forgotten = meta.forgotten;
            hdr.seen.kept_in_parser = meta.kept_in_parser;
            hdr.seen.padding = 0;
        }
    }
}

control NoComputation(inout headers hdr, inout metadata meta) {
    apply { }
}

control Deparse(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.seen);
        packet.emit(hdr.order);
    }
}

V1Switch(ParseOrder(), NoVerification(), MyIngress(), MyEgress(), NoComputation(), Deparse()) main;
