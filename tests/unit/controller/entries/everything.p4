// Every kind of match and of state that entries can be written for.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<72> version_to_ttl;
    bit<8> protocol;
    bit<16> header_checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t {
    bit<2> colour;
}

parser TheParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
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

control TheIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<16>>(8) threshold;
    meter(4, MeterType.packets) police;
    direct_meter<bit<2>>(MeterType.bytes) entry_meter;
    action_selector(HashAlgorithm.crc16, 16, 16) paths;

    action drop() {
        mark_to_drop(std);
    }
    action forward(bit<9> port, bit<48> dst_mac) {
        std.egress_spec = port;
        hdr.ethernet.dst_addr = dst_mac;
    }
    action copy(bit<16> group) {
        std.mcast_grp = group;
    }
    action clone_too(bit<9> port) {
        std.egress_spec = port;
        clone(CloneType.I2E, 5);
    }
    action measured(bit<9> port) {
        entry_meter.read(meta.colour);
        std.egress_spec = port;
    }
    table routes {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { forward; copy; clone_too; drop; }
        default_action = drop();
        size = 16;
    }
    table rules {
        key = {
            hdr.ipv4.src_addr: ternary;
            hdr.ipv4.header_checksum: range;
            hdr.ipv4.protocol: optional;
        }
        actions = { drop; NoAction; }
        default_action = NoAction();
    }
    table stations {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { measured; NoAction; }
        default_action = NoAction();
        meters = entry_meter;
    }
    table chosen {
        key = {
            hdr.ethernet.src_addr: exact;
            hdr.ipv4.src_addr: selector;
        }
        actions = { forward; NoAction; }
        default_action = NoAction();
        implementation = paths;
    }
    table fixed {
        key = { hdr.ethernet.ether_type: exact; }
        actions = { drop; NoAction; }
        const default_action = NoAction();
        const entries = { 0x88cc: drop(); }
    }

    apply {
        bit<16> least;
        threshold.read(least, 0);
        police.execute_meter<bit<2>>(0, meta.colour);
        fixed.apply();
        stations.apply();
        if (hdr.ipv4.isValid() && hdr.ipv4.header_checksum >= least) {
            routes.apply();
            chosen.apply();
            rules.apply();
        }
    }
}

control TheEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        hdr.ethernet.src_addr = (bit<48>) std.egress_rid;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TheDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(TheParser(), NoChecksum(), TheIngress(), TheEgress(), NoChecksum(), TheDeparser()) main;
