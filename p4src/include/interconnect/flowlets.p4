// Flowlets (Kandula, Katabi, Sinha and Berger, "Dynamic Load Balancing Without Packet Reordering", CCR 37(2), 2007): a
// flow keeps its way until it has paused. Flows share a cell by hash.
#ifndef GRADBED_FLOWLETS_P4
#define GRADBED_FLOWLETS_P4

#include "hybrid_parser.p4"

#define FLOWLETS 4096

// What a flowlet took last.
enum bit<8> Choice { NONE = 0, FIRST_LIGHT = 1, SECOND_LIGHT = 2, MESH = 3 }

register<bit<48>>(FLOWLETS) flowlet_seen_us;
register<bit<8>>(FLOWLETS) flowlet_choice;

control RecallFlowlet(in bit<32> flow_hash, in bit<48> pause_us, in standard_metadata_t std, out Choice last) {
    apply {
        bit<32> cell = flow_hash & (FLOWLETS - 1);
        bit<48> seen_us;
        bit<8> choice;
        flowlet_seen_us.read(seen_us, cell);
        flowlet_choice.read(choice, cell);
        last = Choice.NONE;
        if (std.ingress_global_timestamp - seen_us < pause_us) {
            last = (Choice)choice;
        }
    }
}

control KeepFlowlet(in bit<32> flow_hash, in standard_metadata_t std, in Choice choice) {
    apply {
        bit<32> cell = flow_hash & (FLOWLETS - 1);
        flowlet_seen_us.write(cell, std.ingress_global_timestamp);
        flowlet_choice.write(cell, (bit<8>)choice);
    }
}

#endif
