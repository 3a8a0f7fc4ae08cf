// Named data in registers: an Interest is answered from the content store, or noted in the pending Interest table and
// sent towards the producer; Data follow the pending Interest back and are remembered. Names are 64-bit hashes, and
// the rows of both tables are found by hashing them once more: a newer name takes over the row of an older one.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHER_TYPE_NDN = 0x8624;
const bit<8> INTEREST = 5;
const bit<8> DATA = 6;
const bit<32> ROWS = 16384;

// Indices of the counter `events`.
const bit<32> EVENT_CACHED = 0;         // answered from the content store
const bit<32> EVENT_FORWARDED = 1;      // an Interest for a name that was not pending
const bit<32> EVENT_REPEATED = 2;       // another Interest for a pending name
const bit<32> EVENT_LOOPED = 3;         // an Interest seen before
const bit<32> EVENT_SATISFIED = 4;      // Data for a pending Interest
const bit<32> EVENT_UNSOLICITED = 5;    // Data that nobody waits for
const bit<32> EVENTS = 8;

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ndn_t {
    bit<8> kind;
    bit<8> hop_limit;
    bit<64> name;
    bit<32> nonce;
    bit<64> content;
}

struct headers_t {
    ethernet_t ethernet;
    ndn_t ndn;
}

struct metadata_t { }

parser NdnParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_NDN: parse_ndn;
            default: accept;
        }
    }
    state parse_ndn {
        packet.extract(hdr.ndn);
        transition accept;
    }
}

control NdnVerifyChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control NdnIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    register<bit<64>>(ROWS) pending_name;
    register<bit<32>>(ROWS) pending_nonce;
    register<bit<16>>(ROWS) pending_port;
    register<bit<64>>(ROWS) stored_name;
    register<bit<64>>(ROWS) stored_content;
    counter(EVENTS, CounterType.packets_and_bytes) events;

    bit<32> row = 0;
    bit<64> name = 0;

    action drop() {
        mark_to_drop(std);
    }
    action towards_producer(bit<9> port) {
        std.egress_spec = port;
    }
    table forwarding {
        key = { hdr.ndn.name: exact; }
        actions = { towards_producer; drop; }
        const default_action = drop();
        size = 65536;
    }

    action remember_interest() {
        pending_name.write(row, hdr.ndn.name);
        pending_nonce.write(row, hdr.ndn.nonce);
        pending_port.write(row, (bit<16>)std.ingress_port);
    }
    action answer() {
        stored_content.read(hdr.ndn.content, row);
        hdr.ndn.kind = DATA;
        std.egress_spec = std.ingress_port;
    }
    action satisfy() {
        bit<16> port;
        pending_port.read(port, row);
        pending_name.write(row, 0);
        stored_name.write(row, hdr.ndn.name);
        stored_content.write(row, hdr.ndn.content);
        std.egress_spec = (bit<9>)port;
    }

    apply {
        if (!hdr.ndn.isValid() || hdr.ndn.hop_limit == 0) {
            drop();
        } else {
            hdr.ndn.hop_limit = hdr.ndn.hop_limit - 1;
            hash(row, HashAlgorithm.crc32, 32w0, { hdr.ndn.name }, ROWS);
            if (hdr.ndn.kind == INTEREST) {
                stored_name.read(name, row);
                if (name == hdr.ndn.name) {
                    answer();
                    events.count(EVENT_CACHED);
                } else {
                    bit<32> nonce;
                    pending_name.read(name, row);
                    pending_nonce.read(nonce, row);
                    if (name == hdr.ndn.name && nonce == hdr.ndn.nonce) {
                        drop();
                        events.count(EVENT_LOOPED);
                    } else {
                        if (name == hdr.ndn.name) {
                            events.count(EVENT_REPEATED);
                        } else {
                            events.count(EVENT_FORWARDED);
                        }
                        remember_interest();
                        forwarding.apply();
                    }
                }
            } else if (hdr.ndn.kind == DATA) {
                pending_name.read(name, row);
                if (name == hdr.ndn.name) {
                    satisfy();
                    events.count(EVENT_SATISFIED);
                } else {
                    drop();
                    events.count(EVENT_UNSOLICITED);
                }
            } else {
                drop();
            }
        }
    }
}

control NdnEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control NdnComputeChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control NdnDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ndn);
    }
}

V1Switch(NdnParser(), NdnVerifyChecksum(), NdnIngress(), NdnEgress(), NdnComputeChecksum(), NdnDeparser()) main;
