// A stack of labels as in MPLS: parsed in a loop, pushed, popped, indexed, and what happens when it is too long.
#include <core.p4>
#include <v1model.p4>

header command_t {
    bit<8> command; // 1 push two, 2 pop one, 3 swap the first two, 4 add up those that are valid
    bit<8> sum;
    bit<8> failed;
}

header label_t {
    bit<7> value;
    bit<1> last;
}

struct headers_t {
    command_t  command;
    label_t[4] labels;
}

struct metadata_t { }

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.command);
        transition label;
    }
    state label {
        packet.extract(hdr.labels.next);
        transition select(hdr.labels.last.last) {
            0: label;
            default: accept;
        }
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action add_up() {
        for (bit<8> i = 0; i < 4; i = i + 1) {
            if (hdr.labels[i].isValid()) {
                hdr.command.sum = hdr.command.sum + (bit<8>)hdr.labels[i].value;
            }
        }
    }

    apply {
        standard.egress_spec = 1;
        if (standard.parser_error == error.StackOutOfBounds) {
            hdr.command.failed = 1;
        } else if (standard.parser_error == error.PacketTooShort) {
            hdr.command.failed = 2;
        }
        if (hdr.command.command == 1) {
            hdr.labels.push_front(2);
            hdr.labels[0].setValid();
            hdr.labels[0].value = 0x11;
            hdr.labels[0].last = 0;
            hdr.labels[1].setValid();
            hdr.labels[1].value = 0x12;
            hdr.labels[1].last = 0;
        } else if (hdr.command.command == 2) {
            hdr.labels.pop_front(1);
        } else if (hdr.command.command == 3) {
            label_t first = hdr.labels[0];
            hdr.labels[0] = hdr.labels[1];
            hdr.labels[1] = first;
        } else if (hdr.command.command == 4) {
            add_up();
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
