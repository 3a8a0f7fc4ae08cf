// Hashes of flows, by which they are spread over paths.
#ifndef GRADBED_FLOW_HASH_P4
#define GRADBED_FLOW_HASH_P4

// CRCs are linear: with a seed alone all switches would split flows alike, or all the other way round. This is the end
// of MurmurHash3 (A. Appleby), which is not linear.
control MixFlowHash(in bit<32> seed, inout bit<32> flow_hash) {
    apply {
        flow_hash = flow_hash ^ seed;
        flow_hash = (flow_hash ^ (flow_hash >> 16)) * 0x85EBCA6B;
        flow_hash = (flow_hash ^ (flow_hash >> 13)) * 0xC2B2AE35;
        flow_hash = flow_hash ^ (flow_hash >> 16);
    }
}

#endif
