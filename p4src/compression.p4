// Carries compressed gradients to their server, and sums back to all workers by multicast: IPv4 forwarding with
// congestion marks, and what queues, counters and marks tell of it. The bottleneck is the server's link.
//
// Compile-time macro: PORTS.
#include <core.p4>
#include <v1model.p4>

#include "include/compression/part_parser.p4"
#include "include/compression/part_counters.p4"
#include "include/compression/part_forwarding.p4"
#include "include/congestion.p4"
#include "include/queue_watch.p4"

control CompressionIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    CountArrivals() arrivals;
    PartForwarding() forwarding;
    CountPartDrops() drops;

    apply {
        PartDrop cause = PartDrop.NOT;
        if (std.parser_error != error.NoError || std.checksum_error == 1 || !hdr.ipv4.isValid()) {
            cause = PartDrop.MALFORMED;
        } else {
            if (hdr.part.isValid()) {
                arrivals.apply(hdr.part, std.ingress_port);
            }
            forwarding.apply(hdr, std, cause);
        }
        if (cause != PartDrop.NOT) {
            drops.apply(cause);
            mark_to_drop(std);
        }
    }
}

control CompressionEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    MarkCongestion() congestion;
    WatchQueue() queue;
    CountDepartures() departures;

    apply {
        congestion.apply(hdr.ipv4, std);
        queue.apply(hdr.ipv4, std);
        if (hdr.part.isValid()) {
            departures.apply(hdr.part, std.egress_port);
        }
    }
}

V1Switch(
    PartParser(),
    PartVerify(),
    CompressionIngress(),
    CompressionEgress(),
    PartCompute(),
    PartDeparser()
) main;
