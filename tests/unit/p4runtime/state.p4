// Everything that P4Runtime keeps besides plain tables. The EtherType chooses what a frame is for.
#include <core.p4>
#include <v1model.p4>

const bit<16> BALANCED = 0x1000;
const bit<16> INDIRECT = 0x1001;
const bit<16> POLICED = 0x1002;
const bit<16> METERED = 0x1003;
const bit<16> AGED = 0x1004;
const bit<16> LEARNT = 0x1005;
const bit<16> PRESET = 0x1006;
const bit<16> NAMED = 0x1007;
const bit<32> MIRROR = 5;

@p4runtime_translation("example.org/room", string)
type bit<12> room_t;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header tag_t {
    bit<8> kind;
    bit<16> value;
    bit<8> prefix;
}

struct headers_t {
    ethernet_t ethernet;
    tag_t tag;
}

struct metadata_t {
    bit<2> colour;
    bool special;
    room_t room;
}

struct learn_t {
    bit<48> src_addr;
    bit<9> port;
    bool broadcast;
}

struct special_t {
    bit<8> kind;
    @match(ternary) bit<16> value;
    @match(lpm) bit<8> prefix;
}

parser StateParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) tag_types;
    value_set<special_t>(4) specials;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            tag_types: parse_tag;
            default: accept;
        }
    }
    state parse_tag {
        packet.extract(hdr.tag);
        transition select(hdr.tag.kind, hdr.tag.value, hdr.tag.prefix) {
            specials: parse_special;
            default: accept;
        }
    }
    state parse_special {
        meta.special = true;
        transition accept;
    }
}

control StateVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control StateIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_selector(HashAlgorithm.crc16, 32w64, 32w14) balancer;
    action_profile(16) next_hops;
    direct_meter<bit<2>>(MeterType.packets) host_meter;
    meter(8, MeterType.bytes) port_meter;

    action drop() {
        mark_to_drop(std);
    }
    action forward(bit<9> port) {
        std.egress_spec = port;
    }
    action police(bit<9> port) {
        std.egress_spec = port;
        host_meter.read(meta.colour);
    }
    action enter(room_t room) {
        meta.room = room;
    }

    table balanced {
        key = {
            hdr.ethernet.dst_addr: exact;
            hdr.ethernet.src_addr: selector;
        }
        actions = { forward; drop; }
        implementation = balancer;
        size = 16;
    }
    table indirect {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { forward; drop; }
        implementation = next_hops;
        size = 16;
    }
    table policed {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { police; NoAction; }
        meters = host_meter;
        size = 16;
    }
    table aged {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { forward; drop; }
        default_action = drop();
        support_timeout = true;
        size = 16;
    }
    table preset {
        key = { hdr.ethernet.dst_addr: ternary; }
        actions = { forward; drop; }
        entries = {
            const 0x1 &&& 0xff: forward(1);
            0x2 &&& 0xf: forward(2);
            _: drop();
        }
        size = 8;
    }
    table rooms {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { enter; NoAction; }
        size = 16;
    }
    table room_ports {
        key = { meta.room: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 16;
    }

    apply {
        if (hdr.tag.isValid()) {
            forward(meta.special ? 9w3 : 9w2);
        } else if (hdr.ethernet.ether_type == BALANCED) {
            balanced.apply();
        } else if (hdr.ethernet.ether_type == INDIRECT) {
            indirect.apply();
        } else if (hdr.ethernet.ether_type == POLICED) {
            policed.apply();
            hdr.ethernet.src_addr = (bit<48>)meta.colour;
        } else if (hdr.ethernet.ether_type == METERED) {
            port_meter.execute_meter((bit<32>)std.ingress_port, meta.colour);
            hdr.ethernet.src_addr = (bit<48>)meta.colour;
            forward(2);
        } else if (hdr.ethernet.ether_type == AGED) {
            aged.apply();
        } else if (hdr.ethernet.ether_type == LEARNT) {
            digest<learn_t>(1, { hdr.ethernet.src_addr, std.ingress_port, hdr.ethernet.dst_addr == 0xffffffffffff });
            drop();
        } else if (hdr.ethernet.ether_type == PRESET) {
            preset.apply();
        } else if (hdr.ethernet.ether_type == NAMED) {
            rooms.apply();
            room_ports.apply();
        } else {
            clone(CloneType.I2E, MIRROR);
            forward(2);
        }
    }
}

control StateEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (std.instance_type == 1) {
            hdr.ethernet.src_addr = (bit<32>)std.priority ++ std.egress_rid;
        }
    }
}

control StateComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control StateDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.tag);
    }
}

V1Switch(
    StateParser(),
    StateVerifyChecksum(),
    StateIngress(),
    StateEgress(),
    StateComputeChecksum(),
    StateDeparser()
) main;
