// Explicit congestion notification (RFC 3168): a packet that finds many others in its queue leaves with CE, if its sender
// takes part (ECT). From a threshold on always (DCTCP), or by chance between two thresholds (DCQCN: Zhu et al.,
// "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1). Ports without an entry never mark.
#ifndef GRADBED_CONGESTION_P4
#define GRADBED_CONGESTION_P4

#include "ipv4.p4"

#define ECN_FIELD 1:0
const bit<2> ECN_NOT_ECT = 0;
const bit<2> ECN_CE = 3;

control MarkCongestion(inout ipv4_t ipv4, in standard_metadata_t std) {
    action mark_above(bit<19> threshold) {
        ipv4.dscp_ecn = std.enq_qdepth >= threshold ? ipv4.dscp_ecn | 0x03 : ipv4.dscp_ecn;
    }
    // k_max and more: always. In between k_min does not, and each packet more does so by slope / 2^32 more often.
    action mark_between(bit<19> k_min, bit<19> k_max, bit<32> slope) {
        bit<32> drawn;
        random(drawn, 32w0, 32w0xFFFFFFFF);
        bit<19> above = std.enq_qdepth |-| k_min;
        bool marks = std.enq_qdepth >= k_max || drawn < (bit<32>)above * slope;
        ipv4.dscp_ecn = marks ? ipv4.dscp_ecn | 0x03 : ipv4.dscp_ecn;
    }
    table congestion_thresholds {
        key = { std.egress_port: exact @name("egress_port"); }
        actions = { mark_above; mark_between; NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    apply {
        if (ipv4.isValid() && ipv4.dscp_ecn[ECN_FIELD] != ECN_NOT_ECT) {
            congestion_thresholds.apply();
        }
    }
}

#endif
