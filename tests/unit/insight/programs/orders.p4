// One header that says what is to be done with the packet: every way through the switch, one at a time.
#include <core.p4>
#include <v1model.p4>

header order_t {
    bit<8> what;
    bit<8> value;
}
header note_t {
    bit<16> text;
}

struct headers_t {
    order_t order;
    note_t note;
}
struct meta_t {
    @field_list(1)
    bit<8> rounds;
}

parser OrderParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.order);
        verify(hdr.order.what != 255, error.ParserInvalidArgument);
        transition select(hdr.order.what) {
            16 .. 19: with_note;
            default: accept;
        }
    }
    state with_note {
        packet.extract(hdr.note);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout meta_t meta) {
    apply { }
}

control OrderIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<16>>(4) seen;
    bit<16> before;

    action drop() {
        mark_to_drop(std);
    }
    action send(bit<9> port) {
        std.egress_spec = port;
    }
    action spread(bit<16> group) {
        std.mcast_grp = group;
    }
    action mirror(bit<9> port) {
        std.egress_spec = port;
        clone_preserving_field_list(CloneType.I2E, 7, 1);
    }
    action again() {
        meta.rounds = meta.rounds + 1;
        resubmit_preserving_field_list(1);
    }
    action remember() {
        seen.read(before, (bit<32>)hdr.order.value);
        seen.write((bit<32>)hdr.order.value, before + 1);
        std.egress_spec = 2;
    }
    action annotate() {
        hdr.note.setValid();
        hdr.note.text = 0xbeef;
        std.egress_spec = 3;
    }

    table orders {
        key = { hdr.order.what: exact; }
        actions = { drop; send; spread; mirror; again; remember; annotate; }
        default_action = drop();
        size = 16;
    }
    table limits {
        key = { hdr.order.value: range; meta.rounds: ternary; }
        actions = { drop; NoAction; }
        default_action = NoAction();
        size = 4;
    }

    apply {
        if (std.parser_error != error.NoError) {
            drop();
            exit;
        }
        if (meta.rounds == 0) {
            orders.apply();
        } else {
            std.egress_spec = 5;
        }
        limits.apply();
    }
}

control OrderEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        if (std.egress_port == 6 && std.instance_type == 0 && meta.rounds == 0) {
            meta.rounds = 9;
            recirculate_preserving_field_list(1);
        } else if (std.egress_port == 7 && std.instance_type == 0) {
            clone(CloneType.E2E, 8);
            mark_to_drop(std);
        }
    }
}

control OrderDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.order);
        packet.emit(hdr.note);
    }
}

V1Switch(OrderParser(), NoChecksum(), OrderIngress(), OrderEgress(), NoChecksum(), OrderDeparser()) main;
