// The part of a gradient packet that says where it is summed, and what a designated switch makes of it when it
// passes the packet on. The UDP source port repeats it for switches that match no deeper.
#ifndef GRADBED_DESIGNATION_P4
#define GRADBED_DESIGNATION_P4

#include "parser.p4"

control PassOn(inout headers_t hdr, in bool past_all_switches) {
    apply {
        if (past_all_switches) {
            hdr.gradient.switch_number = 0;
            hdr.gradient.fan_in = 0;
        } else {
            hdr.gradient.switch_number = hdr.gradient.next_switch;
            hdr.gradient.fan_in = hdr.gradient.next_fan_in;
        }
        hdr.gradient.next_switch = 0;
        hdr.gradient.next_fan_in = 0;
        if (hdr.gradient.switch_number == 0) {
            hdr.udp.src_port = GRADIENT_PORT;
        } else {
            hdr.udp.src_port = hdr.gradient.switch_number;
        }
        hdr.udp.checksum = 0;  // none (RFC 768): it would have to cover the lanes
    }
}

#endif
