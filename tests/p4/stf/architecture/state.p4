// Registers, counters of both kinds, and a meter.
#include <core.p4>
#include <v1model.p4>

header op_t {
    bit<8>   op; // 1 add to the sum, 2 read it, 3 meter, 4 count by the table's entry
    bit<8>   index;
    bit<128> value;
}

struct headers_t {
    op_t op;
}

struct metadata_t { }

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.op);
        transition accept;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<64>>(4) sums;
    register<bit<128>>(2) wide;
    counter(4, CounterType.packets_and_bytes) operations;
    meter(2, MeterType.packets) rate;
    direct_counter(CounterType.packets_and_bytes) by_entry;

    action counted() {
        by_entry.count();
    }

    table entries_that_count {
        key = { hdr.op.index: exact; }
        actions = { counted; NoAction; }
        default_action = NoAction();
        counters = by_entry;
    }

    apply {
        standard.egress_spec = 1;
        operations.count((bit<32>)hdr.op.op & 3);
        switch (hdr.op.op) {
            1: {
                bit<64> sum;
                sums.read(sum, (bit<32>)hdr.op.index);
                sums.write((bit<32>)hdr.op.index, sum + hdr.op.value[63:0]);
                wide.write(0, hdr.op.value);
            }
            2: {
                bit<64> sum;
                sums.read(sum, (bit<32>)hdr.op.index);
                bit<128> last;
                wide.read(last, 0);
                hdr.op.value = last[127:64] ++ sum;
            }
            3: {
                bit<8> colour;
                rate.execute_meter((bit<32>)hdr.op.index, colour);
                hdr.op.value = (bit<128>)colour;
            }
            4: {
                entries_that_count.apply();
            }
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
