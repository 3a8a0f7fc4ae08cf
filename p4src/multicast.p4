// Multicast of coded packets by bit string, without state for each packet: a packet carries the set of its receivers
// and the number of a tree, and every switch sends a copy to those of the tree's next hops behind which receivers are.
// As in BIER (RFC 8279), with a Bit Index Forwarding Table (BIFT) for each tree. IPv4 unicast, and multicast by groups
// where there are more receivers than bits.
//
// Compile-time macros: BITS (BitStringLength, in bits), PORTS.
#include <core.p4>
#include <v1model.p4>

#include "include/shuffle/coded_parser.p4"
#include "include/shuffle/coded_counters.p4"
#include "include/shuffle/bit_index_forwarding.p4"
#include "include/shuffle/ip_forwarding.p4"

control MulticastIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    CountArrivals() arrivals;
    CountDrops() drops;
    ReplicateOnTree() replicate_on_tree;
    IpForwarding() ip_forwarding;

    apply {
        drop_cause_t cause = DROP_NOT;
        if (std.parser_error != error.NoError || std.checksum_error == 1 || !hdr.ipv4.isValid()) {
            cause = DROP_MALFORMED;
        } else {
            if (hdr.coded.isValid()) {
                arrivals.apply(hdr.coded, std.ingress_port);
            }
            if (hdr.ipv4.ttl <= 1) {
                cause = DROP_EXPIRED;
            } else {
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                if (hdr.coded.isValid() && hdr.coded.by_bit_string == 1) {
                    replicate_on_tree.apply(hdr.coded, std, cause);
                } else {
                    ip_forwarding.apply(hdr, std, cause);
                }
            }
        }
        if (cause != DROP_NOT) {
            drops.apply(cause);
            mark_to_drop(std);
        }
    }
}

control MulticastEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    KeepReceiversBehindPort() keep_receivers;
    CountDepartures() departures;

    apply {
        bool leaves = true;
        if (hdr.coded.isValid() && hdr.coded.by_bit_string == 1) {
            keep_receivers.apply(hdr.coded, std, leaves);
        }
        if (hdr.coded.isValid() && leaves) {
            departures.apply(hdr.coded, std.egress_port);
        }
    }
}

V1Switch(
    CodedParser(),
    CodedVerify(),
    MulticastIngress(),
    MulticastEgress(),
    CodedCompute(),
    CodedDeparser()
) main;
