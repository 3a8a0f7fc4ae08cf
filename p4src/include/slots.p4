// Aggregation in slots. A fragment (job, packet number) that reaches its designated switch is added up in the
// slot that a hash of both selects; the packet that completes the sum carries it on towards the server, and the
// server's ACK frees the slot on its way back.
//
// A slot's owner is 64 bits: held (1), unused (15), job (16), packet number (32). It is kept when the slot is
// freed: a late copy of a fragment that the slot has finished must not claim it again, since no ACK would free
// it. Packet numbers are compared modulo 2^32 (RFC 1982).
#ifndef GRADBED_SLOTS_P4
#define GRADBED_SLOTS_P4

#include "parser.p4"
#include "popcount.p4"

#ifndef SLOTS
#define SLOTS 1024
#endif

// A slot held by a fragment this much older than a newcomer of the same job is given to the newcomer. Workers
// keep fewer fragments than this in flight, so the older one is finished and only its ACK went astray; were it
// not, its workers would resend and the server would sum them.
#ifndef RECLAIM_DISTANCE
#define RECLAIM_DISTANCE 4096
#endif

// Indices of the counter `events`.
const bit<32> EVENT_CLAIMED = 0;        // a free slot took a fragment
const bit<32> EVENT_ADDED = 1;          // a further worker was added
const bit<32> EVENT_COMPLETED = 2;      // the last worker was added, the sum left
const bit<32> EVENT_DUPLICATE = 3;      // the worker was in the sum already
const bit<32> EVENT_COLLISION = 4;      // the slot belongs to another fragment
const bit<32> EVENT_STALE = 5;          // the slot has finished this fragment or a newer one
const bit<32> EVENT_OVERLAP = 6;        // some of the packet's workers were in the sum, some not
const bit<32> EVENT_RESEND_SUMMED = 7;  // a resend took the slot's sum along
const bit<32> EVENT_RESEND_SINGLE = 8;  // a resend found no slot of its own
const bit<32> EVENT_RELEASED = 9;       // an ACK freed the slot
const bit<32> EVENT_RECLAIMED = 10;     // a slot whose ACK went astray was taken over
#define EVENTS 16

#define MERGE_LANE(n) \
    slot_sums.read(lane, first_lane + 0x##n); \
    lane = (lane & keep) + (hdr.lanes.lane_##n & add); \
    slot_sums.write(first_lane + 0x##n, lane); \
    hdr.lanes.lane_##n = lane;

control Slots(inout headers_t hdr, inout standard_metadata_t std, out bool consumed) {
    register<bit<64>>(SLOTS) slot_owner;
    register<bit<64>>(SLOTS) slot_workers;
    register<bit<32>>(SLOTS * LANES) slot_sums;
    counter(EVENTS, CounterType.packets) events;
    direct_counter(CounterType.packets_and_bytes) role_counter;
    Popcount() popcount;

    bit<32> slot = 0;
    bit<32> first_lane = 0;
    bit<64> owner = 0;
    bit<64> workers = 0;
    bit<32> keep = 0;
    bit<32> add = 0;

    action aggregate() {
        role_counter.count();
    }
    table roles {
        key = {
            hdr.gradient.job: exact;
            hdr.gradient.switch_number: exact;
        }
        actions = { aggregate; NoAction; }
        const default_action = NoAction();
        counters = role_counter;
        size = 1024;
    }

    // Slot and packet both end up with (slot & keep) + (packet & add): a claim keeps nothing, a contribution
    // keeps and adds, a resend that is in the sum already adds nothing and takes the sum along.
    action merge() {
        bit<32> lane;
        FOR_EACH_LANE(MERGE_LANE)
    }

    apply {
        consumed = false;
        hash(slot, HashAlgorithm.crc32, 32w0, { hdr.gradient.job, hdr.gradient.packet_number }, (bit<32>)SLOTS);
        first_lane = slot * LANES;
        slot_owner.read(owner, slot);
        bit<64> holding = 1w1 ++ 15w0 ++ hdr.gradient.job ++ hdr.gradient.packet_number;
        bit<64> released = 16w0 ++ hdr.gradient.job ++ hdr.gradient.packet_number;

        if (hdr.gradient.acknowledgement == 1) {
            if (owner == holding) {
                slot_owner.write(slot, released);
                events.count(EVENT_RELEASED);
            }
        } else if (roles.apply().hit) {
            bool usable = false;
            bool held = owner[63:63] == 1;
            bool same_job = owner[47:32] == hdr.gradient.job;
            bit<32> newer_by = hdr.gradient.packet_number - owner[31:0];
            bit<64> newcomers;
            slot_workers.read(workers, slot);
            newcomers = hdr.gradient.worker_bitmap & ~workers;

            if (owner == holding) {
                keep = 0xFFFFFFFF;
                if (newcomers == hdr.gradient.worker_bitmap) {
                    add = 0xFFFFFFFF;
                    usable = true;
                    events.count(EVENT_ADDED);
                } else if (newcomers != 0) {
                    events.count(EVENT_OVERLAP);
                } else if (hdr.gradient.resend == 1) {
                    add = 0;
                    usable = true;
                } else {
                    consumed = true;
                    events.count(EVENT_DUPLICATE);
                }
            } else if (hdr.gradient.resend == 1) {
                events.count(EVENT_RESEND_SINGLE);
            } else {
                keep = 0;
                add = 0xFFFFFFFF;
                workers = 0;
                if (!held) {
                    if (same_job && (newer_by == 0 || newer_by >= 0x80000000)) {
                        events.count(EVENT_STALE);
                    } else {
                        usable = true;
                        events.count(EVENT_CLAIMED);
                    }
                } else if (same_job && newer_by >= RECLAIM_DISTANCE && newer_by < 0x80000000) {
                    usable = true;
                    events.count(EVENT_RECLAIMED);
                } else {
                    events.count(EVENT_COLLISION);
                }
            }

            if (usable) {
                bit<16> present;
                merge();
                workers = workers | hdr.gradient.worker_bitmap;
                slot_workers.write(slot, workers);
                popcount.apply(workers, present);
                if (hdr.gradient.resend == 1) {
                    slot_owner.write(slot, released);
                    events.count(EVENT_RESEND_SUMMED);
                } else {
                    slot_owner.write(slot, holding);
                    if (present >= hdr.gradient.fan_in) {
                        events.count(EVENT_COMPLETED);
                    } else {
                        consumed = true;
                    }
                }
                hdr.gradient.worker_bitmap = workers;
                hdr.gradient.partial = 1;
            }
            // From here on the packet is the server's.
            hdr.gradient.switch_number = 0;
        }
        if (consumed) {
            mark_to_drop(std);
        }
    }
}

#endif
