// The content store: gradients' Data in registers, by the identity of their names, versions and segments included.
// A name has two rows to choose from, and a new content takes the row that was written longer ago. What is not of a
// gradient's form goes through and is not kept.
#ifndef GRADBED_NDN_CONTENT_STORE_P4
#define GRADBED_NDN_CONTENT_STORE_P4

#include "packet.p4"
#include "rows.p4"

// A power of two; 0: no store.
#ifndef CONTENTS
#define CONTENTS 4096
#endif

#if CONTENTS == 0
control ContentStore(inout headers_t hdr, in metadata_t meta, out bool hit) {
    apply {
        hit = false;
    }
}
#else

#define KEEP_LANE(n) content_lanes.write(first_lane + 0x##n, hdr.lanes.lane_##n);
#define GIVE_LANE(n) content_lanes.read(hdr.lanes.lane_##n, first_lane + 0x##n);

// An Interest: hit tells that the packet has the content now. Data: the content is kept.
control ContentStore(inout headers_t hdr, in metadata_t meta, out bool hit) {
    register<bit<64>>(CONTENTS) content_name;
    register<bit<64>>(CONTENTS) content_loss;
    register<bit<64>>(CONTENTS) content_scales;
    register<bit<32>>(CONTENTS * LANES) content_lanes;
    register<bit<1>>(CONTENTS / 2) second_is_newer;
    counter(64, CounterType.packets) content_hits;      // by the Interest's hop limit; 63: it has none, or a higher
    counter(1, CounterType.packets) content_misses;
    counter(1, CounterType.packets) content_kept;
    counter(1, CounterType.packets) content_evicted;
    counter(1, CounterType.packets) content_collisions;     // another name with the same CRC-32 is there
    FirstRow() first_row;

    bit<64> first_name = 0;
    bit<64> second_name = 0;
    bit<32> row = 0;
    bit<32> first_lane = 0;

    action read_names() {
        content_name.read(first_name, row);
        content_name.read(second_name, row + 1);
    }
    action give() {
        hdr.content.setValid();
        hdr.lanes.setValid();
        hdr.signature.setValid();
        hdr.content.type_and_marker = CONTENT_IN_TWO_BYTES;
        hdr.content.length = CONTENT_BYTES;
        hdr.signature.null_signature = NULL_SIGNATURE;
        first_lane = row * LANES;
        content_loss.read(hdr.content.loss, row);
        content_scales.read(hdr.content.scales_and_flags, row);
        FOR_EACH_LANE(GIVE_LANE)
    }
    action keep() {
        first_lane = row * LANES;
        content_name.write(row, meta.id);
        content_loss.write(row, hdr.content.loss);
        content_scales.write(row, hdr.content.scales_and_flags);
        FOR_EACH_LANE(KEEP_LANE)
    }

    apply {
        hit = false;
        first_row.apply(meta.id, CONTENTS, row);
        bit<32> pair = row >> 1;
        read_names();
        bool first = first_name == meta.id;
        bool second = second_name == meta.id;
        if ((!first && first_name[63:32] == meta.id[63:32] && first_name != 0)
                || (!second && second_name[63:32] == meta.id[63:32] && second_name != 0)) {
            content_collisions.count(0);
        }
        if (meta.packet_type == TYPE_INTEREST) {
            if (first || second) {
                hit = true;
                if (second) {
                    row = row + 1;
                }
                give();
                bit<32> hops = 63;
                if (hdr.hop_limit.isValid() && hdr.hop_limit.hops < 63) {
                    hops = (bit<32>)hdr.hop_limit.hops;
                }
                content_hits.count(hops);
            } else {
                content_misses.count(0);
            }
        } else if (!first && !second && hdr.signature.isValid()
                && hdr.signature.null_signature == NULL_SIGNATURE) {
            bit<1> newer;
            second_is_newer.read(newer, pair);
            if (first_name != 0 && (second_name == 0 || newer == 0)) {
                row = row + 1;
                newer = 1;
            } else {
                newer = 0;
            }
            if (first_name != 0 && second_name != 0) {
                content_evicted.count(0);
            }
            second_is_newer.write(pair, newer);
            keep();
            content_kept.count(0);
        }
    }
}
#endif

#endif
