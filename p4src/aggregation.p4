// In-network aggregation: gradients of the workers of a job are summed in the switches on their way to the
// parameter server.
//
// Compile-time macros: LANES (int32 lanes a packet), SLOTS (fragments a switch can hold), PORTS.
#include <core.p4>
#include <v1model.p4>

#include "include/aggregation/parser.p4"
#include "include/aggregation/gradient_counters.p4"
#include "include/aggregation/slots.p4"
#include "include/congestion.p4"
#include "include/aggregation/forwarding.p4"

control AggregationIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    CountArrivals() arrivals;
    Slots() aggregation;
    Forwarding() forwarding;

    apply {
        bool consumed = false;
        if (std.parser_error != error.NoError || std.checksum_error == 1 || !hdr.ipv4.isValid()) {
            mark_to_drop(std);
        } else {
            if (hdr.gradient.isValid()) {
                arrivals.apply(hdr.gradient, std.ingress_port);
                if (hdr.lanes.isValid()) {
                    aggregation.apply(hdr, std, consumed);
                }
            }
            if (!consumed) {
                forwarding.apply(hdr, std);
            }
        }
    }
}

control AggregationEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    CountDepartures() departures;
    MarkCongestion() congestion;

    apply {
        congestion.apply(hdr.ipv4, std);
        if (hdr.gradient.isValid()) {
            departures.apply(hdr.gradient, std.egress_port);
        }
    }
}

V1Switch(
    GradientParser(),
    Ipv4Verify(),
    AggregationIngress(),
    AggregationEgress(),
    Ipv4Compute(),
    GradientDeparser()
) main;
