// Flowlets (Kandula, Katabi, Sinha and Berger, "Dynamic Load Balancing Without Packet Reordering", CCR 37(2), 2007): a
// flow keeps its way until it has paused. Flows share a cell by hash. Choice 0: none yet, or the flow has paused.
#ifndef GRADBED_FLOWLETS_P4
#define GRADBED_FLOWLETS_P4

#define FLOWLET_CELLS 4096

register<bit<48>>(FLOWLET_CELLS) flowlet_seen_us;
register<bit<8>>(FLOWLET_CELLS) flowlet_choice;

control RecallFlowlet(in bit<32> flow_hash, in bit<48> pause_us, in standard_metadata_t std, out bit<8> last) {
    apply {
        bit<32> cell = flow_hash & (FLOWLET_CELLS - 1);
        bit<48> seen_us;
        bit<8> choice;
        flowlet_seen_us.read(seen_us, cell);
        flowlet_choice.read(choice, cell);
        last = 0;
        if (std.ingress_global_timestamp - seen_us < pause_us) {
            last = choice;
        }
    }
}

control KeepFlowlet(in bit<32> flow_hash, in standard_metadata_t std, in bit<8> choice) {
    apply {
        bit<32> cell = flow_hash & (FLOWLET_CELLS - 1);
        flowlet_seen_us.write(cell, std.ingress_global_timestamp);
        flowlet_choice.write(cell, choice);
    }
}

#endif
