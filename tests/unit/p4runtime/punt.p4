// A small switch with everything that P4Runtime carries: packet-in and packet-out, tables of several kinds, const
// entries, direct and indirect counters, registers, multicast, clones.
#include <core.p4>
#include <v1model.p4>

const bit<9> CPU_PORT = 510;
const bit<32> MIRROR = 5;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> pad;
}

struct headers_t {
    packet_in_t packet_in;
    packet_out_t packet_out;
    ethernet_t ethernet;
}

struct metadata_t {
    bit<7> reason;
}

parser PuntParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        transition select(std.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control PuntVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control PuntIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) host_counter;
    register<bit<48>>(16) last_source;

    action drop() {
        mark_to_drop(std);
    }
    action forward(bit<9> port) {
        std.egress_spec = port;
        host_counter.count();
    }
    action flood(bit<16> group) {
        std.mcast_grp = group;
        host_counter.count();
    }
    action punt(bit<7> reason) {
        std.egress_spec = CPU_PORT;
        meta.reason = reason;
        host_counter.count();
    }
    action mirror() {
        clone(CloneType.I2E, MIRROR);
    }

    table hosts {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { forward; flood; punt; drop; }
        default_action = drop();
        counters = host_counter;
        size = 8;
    }
    table rules {
        key = {
            hdr.ethernet.src_addr: ternary;
            hdr.ethernet.ether_type: range;
            std.ingress_port: optional;
        }
        actions = { drop; mirror; NoAction; }
        size = 16;
    }
    table kinds {
        key = { hdr.ethernet.ether_type: exact; }
        actions = { drop; NoAction; }
        const entries = {
            0x88cc: drop();
            0x8100: drop();
        }
    }

    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            last_source.write((bit<32>)std.ingress_port, hdr.ethernet.src_addr);
            hosts.apply();
            rules.apply();
            kinds.apply();
        }
    }
}

control PuntEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(512, CounterType.packets_and_bytes) port_counter;

    apply {
        port_counter.count((bit<32>)std.egress_port);
        if (std.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = std.ingress_port;
            hdr.packet_in.reason = meta.reason;
        }
    }
}

control PuntComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control PuntDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(PuntParser(), PuntVerifyChecksum(), PuntIngress(), PuntEgress(), PuntComputeChecksum(), PuntDeparser()) main;
