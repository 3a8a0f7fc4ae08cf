// A switch that tells its controller of every source address, and hands it packets for addresses that nobody has.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> pad;
}

struct headers_t {
    packet_in_t packet_in;
    ethernet_t ethernet;
}

struct metadata_t { }

struct learn_t {
    bit<48> address;
    bit<9> port;
    bool local;
}

parser LearningParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control LearningIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<48>>(8) last_source;

    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    action punt() {
        std.egress_spec = CPU_PORT;
    }
    table known {
        key = { hdr.ethernet.src_addr: exact; }
        actions = { NoAction; }
    }
    table hosts {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { forward; punt; }
        default_action = punt();
    }

    apply {
        last_source.write((bit<32>)std.ingress_port, hdr.ethernet.src_addr);
        if (!known.apply().hit) {
            digest<learn_t>(1, { hdr.ethernet.src_addr, std.ingress_port, hdr.ethernet.src_addr[41:41] == 1 });
        }
        hosts.apply();
    }
}

control LearningEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = std.ingress_port;
        }
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control LearningDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(LearningParser(), NoChecksum(), LearningIngress(), LearningEgress(), NoChecksum(), LearningDeparser()) main;
