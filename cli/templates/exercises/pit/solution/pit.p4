// pit: a router of named data. Interests leave a trace, and data go back along it.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHER_TYPE_NAMED = 0x8624;
const bit<8> INTEREST = 1;
const bit<8> DATA = 2;

// Names are numbers below this; a name's entry is the cell of its number.
const bit<32> NAMES = 1024;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header named_t {
    bit<8>  kind;
    bit<32> name;
}

struct headers_t {
    ethernet_t ethernet;
    named_t    named;
}

struct metadata_t { }

parser MyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_NAMED: parse_named;
            default: accept;
        }
    }
    state parse_named {
        packet.extract(hdr.named);
        transition accept;
    }
}

control MyVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    // The pending Interest table: of each name the faces (ports) that wait for it, bit n - 1 for face n.
    register<bit<8>>(NAMES) pending;

    action drop() {
        mark_to_drop(std);
    }
    action ask(bit<9> face) {
        std.egress_spec = face;
    }
    // Where a name's data are to be had.
    table fib {
        key = { hdr.named.name: lpm; }
        actions = { ask; drop; }
        default_action = drop();
        size = 1024;
    }

    apply {
        if (!hdr.named.isValid() || hdr.named.name >= NAMES || std.ingress_port > 8) {
            drop();
        } else {
            bit<8> face = 8w1 << (bit<8>) (std.ingress_port - 1);
            bit<8> waiting;
            pending.read(waiting, hdr.named.name);
            if (hdr.named.kind == INTEREST) {
                pending.write(hdr.named.name, waiting | face);
                if (waiting == 0 || waiting & face != 0) {
                    fib.apply();
                } else {
                    drop();
                }
            } else if (hdr.named.kind == DATA) {
                pending.write(hdr.named.name, 0);
                if (waiting == 0) {
                    drop();
                } else {
                    std.mcast_grp = (bit<16>) waiting;
                }
            } else {
                drop();
            }
        }
    }
}

control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control MyComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control MyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.named);
    }
}

V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(), MyDeparser()) main;
