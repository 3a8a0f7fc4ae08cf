// Explicit congestion notification (RFC 3168): a packet that finds at least so many others in its port's queue
// leaves with CE, if its sender takes part (ECT). Ports without an entry never mark.
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
    table congestion_thresholds {
        key = { std.egress_port: exact @name("egress_port"); }
        actions = { mark_above; NoAction; }
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
