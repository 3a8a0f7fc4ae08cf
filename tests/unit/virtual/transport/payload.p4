// Does to payloads what it is told by the tag of an RDMA WRITE, which is where one of them would be in other packets:
// writes into them, copies, cuts and sums them. Frames go to the port that their IPv4 address ends with.
#include <core.p4>
#include <v1model.p4>

#include "../../../../p4src/include/ipv4.p4"

header pushed_t {
    bit<256> filling;
}

header rest_t {
    bit<96> bth;
    bit<64> tag;
    bit<32> r_key;
    bit<32> dma_length;
    bit<32> immediate;
    bit<256> deep;
}

struct headers_t {
    pushed_t pushed;
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    rest_t rest;
}

struct metadata_t { }

parser PayloadParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        transition select(std.instance_type) {
            4: parse_pushed;
            default: parse_ethernet;
        }
    }
    state parse_pushed {
        packet.extract(hdr.pushed);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.rest);
        transition accept;
    }
}

control PayloadVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control PayloadIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = hdr.ipv4.dst_addr[8:0];
        if (hdr.rest.isValid()) {
            if (hdr.rest.tag[0:0] == 1) {
                hdr.rest.deep = 0x0102030405060708090a0b0c0d0e0f1011121314151617181920212223242526 ^ hdr.rest.deep;
            }
            if (hdr.rest.tag[1:1] == 1) {
                clone(CloneType.I2E, 5);
            }
            if (hdr.rest.tag[2:2] == 1) {
                std.mcast_grp = 1;
            }
            if (hdr.rest.tag[3:3] == 1) {
                truncate(60 + (bit<32>)hdr.rest.tag[15:8]);
            }
        }
        hdr.pushed.setInvalid();
    }
}

control PayloadEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply {
        if (hdr.rest.isValid()) {
            // Of contents or a length alone: the same from here on.
            hdr.rest.r_key = 1;
        }
        if (hdr.rest.isValid() && std.instance_type == 0) {
            if (hdr.rest.tag[5:5] == 1) {
                clone(CloneType.E2E, 6);
            }
            if (hdr.rest.tag[4:4] == 1) {
                hdr.pushed.setValid();
                hdr.pushed.filling = 0xff00ff00ff00ff;
                hdr.rest.tag[4:4] = 0;
                recirculate_preserving_field_list(0);
            }
        }
    }
}

control PayloadCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum_with_payload(hdr.rest.isValid() && hdr.rest.tag[6:6] == 1,
            { hdr.rest.bth, hdr.rest.tag, hdr.rest.deep }, hdr.udp.checksum, HashAlgorithm.csum16);
    }
}

control PayloadDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.pushed);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.rest);
    }
}

V1Switch(PayloadParser(), PayloadVerify(), PayloadIngress(), PayloadEgress(), PayloadCompute(), PayloadDeparser()) main;
