// Every field of standard metadata as egress sees it, each between bits that it must leave alone.
#include <core.p4>
#include <v1model.p4>

header order_t {
    bit<9>  port;
    bit<7>  group;
}

// A value that is wider than its field would show in the bits before it.
header bits1_t { bit<4> before; bit<1> value; bit<11> behind; }
header bits3_t { bit<4> before; bit<3> value; bit<9> behind; }
header bits9_t { bit<4> before; bit<9> value; bit<11> behind; }
header bits16_t { bit<4> before; bit<16> value; bit<4> behind; }
header bits19_t { bit<4> before; bit<19> value; bit<9> behind; }
header bits32_t { bit<4> before; bit<32> value; bit<4> behind; }
header bits48_t { bit<4> before; bit<48> value; bit<4> behind; }

struct headers {
    bits9_t  ingress_port;
    bits9_t  egress_spec;
    bits9_t  egress_port;
    bits32_t instance_type;
    bits32_t packet_length;
    bits32_t enq_timestamp;
    bits19_t enq_qdepth;
    bits32_t deq_timedelta;
    bits19_t deq_qdepth;
    bits48_t ingress_global_timestamp;
    bits48_t egress_global_timestamp;
    bits16_t mcast_grp;
    bits16_t egress_rid;
    bits1_t  checksum_error;
    bits1_t  parser_error;
    bits3_t  priority;
    order_t  order;
}

struct metadata { }

parser ParseOrder(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.order);
        transition accept;
    }
}

control NoVerification(inout headers hdr, inout metadata meta) {
    apply { }
}

control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = hdr.order.port;
        standard.mcast_grp = (bit<16>) hdr.order.group;
        standard.priority = 5;
    }
}

control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply {
        hdr.ingress_port = { 0, standard.ingress_port, 5 };
        hdr.egress_spec = { 0, standard.egress_spec, 5 };
        hdr.egress_port = { 0, standard.egress_port, 5 };
        hdr.instance_type = { 0, standard.instance_type, 5 };
        hdr.packet_length = { 0, standard.packet_length, 5 };
        hdr.enq_timestamp = { 0, standard.enq_timestamp, 5 };
        hdr.enq_qdepth = { 0, standard.enq_qdepth, 5 };
        hdr.deq_timedelta = { 0, standard.deq_timedelta, 5 };
        hdr.deq_qdepth = { 0, standard.deq_qdepth, 5 };
        hdr.ingress_global_timestamp = { 0, standard.ingress_global_timestamp, 5 };
        hdr.egress_global_timestamp = { 0, standard.egress_global_timestamp, 5 };
        hdr.mcast_grp = { 0, standard.mcast_grp, 5 };
        hdr.egress_rid = { 0, standard.egress_rid, 5 };
        hdr.checksum_error = { 0, standard.checksum_error, 5 };
        hdr.parser_error = { 0, (standard.parser_error == error.NoError ? 1w0 : 1w1), 5 };
        hdr.priority = { 0, standard.priority, 5 };
    }
}

control NoChecksum(inout headers hdr, inout metadata meta) {
    apply { }
}

control Emit(packet_out packet, in headers hdr) {
    apply {
        packet.emit(hdr.ingress_port);
        packet.emit(hdr.egress_spec);
        packet.emit(hdr.egress_port);
        packet.emit(hdr.instance_type);
        packet.emit(hdr.packet_length);
        packet.emit(hdr.enq_timestamp);
        packet.emit(hdr.enq_qdepth);
        packet.emit(hdr.deq_timedelta);
        packet.emit(hdr.deq_qdepth);
        packet.emit(hdr.ingress_global_timestamp);
        packet.emit(hdr.egress_global_timestamp);
        packet.emit(hdr.mcast_grp);
        packet.emit(hdr.egress_rid);
        packet.emit(hdr.checksum_error);
        packet.emit(hdr.parser_error);
        packet.emit(hdr.priority);
    }
}

V1Switch(ParseOrder(), NoVerification(), MyIngress(), MyEgress(), NoChecksum(), Emit()) main;
