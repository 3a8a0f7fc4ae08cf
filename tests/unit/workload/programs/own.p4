// Routes IPv4 and counts in a register and a counter; drops what has 13 hops left. What
// ENDLESS is (1: recirculate, 2: resubmit, 3: clone), packets do for ever: resubmitted ones
// once RESUBMITS_AFTER came before them. With TAGGED they leave with a VLAN tag.
#include <core.p4>
#include <v1model.p4>

#ifndef RESUBMITS_AFTER
#define RESUBMITS_AFTER 0
#endif

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header tag_t {
    bit<16> number;
    bit<16> ether_type;
}

header ipv4_t {
    bit<64> version_to_fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> header_checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

struct headers_t {
    ethernet_t ethernet;
    tag_t tag;
    ipv4_t ipv4;
}

struct metadata_t { }

parser OwnParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control OwnIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<32>>(4) seen;
    counter(4, CounterType.packets) arrived;

    action drop() {
        mark_to_drop(std);
    }
    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    action deliver(bit<9> port, bit<48> dst_mac) {
        hdr.ethernet.dst_addr = dst_mac;
        std.egress_spec = port;
    }
    action wander() { }
    table routes {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { forward; deliver; drop; wander; }
        default_action = drop();
        size = 64;
    }

    apply {
        bit<32> number;
        seen.read(number, 1);
        seen.write(1, number + 1);
        arrived.count(2);
#if ENDLESS == 2
        if (number >= RESUBMITS_AFTER) {
            resubmit_preserving_field_list(0);
        }
#endif
        if (hdr.ipv4.ttl == 13) {
            drop();
        } else {
            routes.apply();
        }
    }
}

control OwnEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
#ifdef TAGGED
        hdr.tag.setValid();
        hdr.tag.ether_type = hdr.ethernet.ether_type;
        hdr.ethernet.ether_type = 0x8100;
#endif
#if ENDLESS == 1
        recirculate_preserving_field_list(0);
#elif ENDLESS == 3
        clone(CloneType.E2E, 5);
#endif
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control OwnDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tag);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(OwnParser(), NoChecksum(), OwnIngress(), OwnEgress(), NoChecksum(), OwnDeparser()) main;
