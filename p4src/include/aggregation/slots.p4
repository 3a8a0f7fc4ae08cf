// Aggregation in slots. A fragment (job, packet number) that reaches its designated switch is added up in the slot
// that the job's policy selects; the packet that completes the sum carries it on towards the server, and the
// server's ACK frees the slot on its way back. What the slot cannot take goes on as it is: to the next designated
// switch, which does the same, or to the server.
//
// No sum can leave int32: a slot adds the magnitudes of its packets, bounds of their lanes' absolute values, and
// takes none that would bring them above 2^31 - 1.
#ifndef GRADBED_SLOTS_P4
#define GRADBED_SLOTS_P4

#ifndef SLOTS
#define SLOTS 4096
#endif
#if SLOTS > 262144
#error "SLOTS must be at most 262144"
#endif

#include "parser.p4"
#include "../congestion.p4"
#include "designation.p4"
#include "events.p4"
#include "held_slots.p4"
#include "slot_policy.p4"
#include "verdict.p4"

const bit<32> ALL_BITS = 0xFFFFFFFF;

// A sum is a new packet. With the TTL of the gradient that came last, one that came far would end everybody's.
const bit<8> SUM_TTL = 64;

#define MERGE_LANE(n) \
    slot_sums.read(lane, first_lane + 0x##n); \
    lane = (lane & keep) + (hdr.lanes.lane_##n & add); \
    slot_sums.write(first_lane + 0x##n, lane); \
    hdr.lanes.lane_##n = lane;

control Slots(inout headers_t hdr, inout standard_metadata_t std, out bool consumed) {
    register<bit<64>>(SLOTS) slot_owner;  // held (1), congestion (1), last used (14), job (16), packet number (32)
    register<bit<64>>(SLOTS) slot_workers;
    register<bit<32>>(SLOTS) slot_magnitude;
    register<bit<32>>(SLOTS * LANES) slot_sums;
    counter(EVENTS * EVENT_JOBS, CounterType.packets) events;
    SlotPolicy() policy;
    Judge() judge;
    HeldSlots() held_slots;
    PassOn() pass_on;

    bit<32> first_lane = 0;
    bit<32> keep = 0;
    bit<32> add = 0;

    // Slot and packet both end up with (slot & keep) + (packet & add).
    action merge() {
        bit<32> lane;
        FOR_EACH_LANE(MERGE_LANE)
    }

    apply {
        role_t role;
        bool present;
        consumed = false;
        policy.apply(hdr.gradient, role, present);
        bit<32> job_events = ((bit<32>)hdr.gradient.job & (EVENT_JOBS - 1)) * EVENTS;
        bool acknowledged = hdr.gradient.acknowledgement == 1;
        bool designated = hdr.gradient.switch_number == role.switch_number && hdr.gradient.worker_bitmap != 0;
        if (present && (acknowledged || designated)) {
            bit<64> owner;
            slot_t slot;
            slot_owner.read(owner, role.slot);
            slot_workers.read(slot.workers, role.slot);
            slot_magnitude.read(slot.magnitude, role.slot);
            slot.held = owner[63:63];
            slot.congestion = owner[62:62];
            slot.last_used = owner[61:48];
            slot.job = owner[47:32];
            slot.packet_number = owner[31:0];

            bit<14> now = (bit<14>)(std.ingress_global_timestamp >> 17);
            Event verdict;
            bool complete;
            judge.apply(hdr.gradient, role, slot, now, verdict, complete);

            // What the verdict means for slot and lanes.
            keep = 0;
            add = 0;
            if (verdict == Event.CLAIMED || verdict == Event.RECLAIMED) {
                slot.held = 1;
                slot.congestion = 0;
                slot.job = hdr.gradient.job;
                slot.packet_number = hdr.gradient.packet_number;
                slot.workers = 0;
                slot.magnitude = 0;
                add = ALL_BITS;
            } else if (verdict == Event.ADDED) {
                keep = ALL_BITS;
                add = ALL_BITS;
            } else if (verdict == Event.REPEATED) {
                keep = ALL_BITS;
            } else if (verdict == Event.RESEND_SUMMED) {
                slot.held = 0;
                keep = ALL_BITS;
                if ((slot.workers & hdr.gradient.worker_bitmap) == 0) {
                    add = ALL_BITS;
                    events.count(job_events + (bit<32>)Event.ADDED);
                }
            } else if (verdict == Event.RELEASED) {
                slot.held = 0;
            } else if (verdict == Event.DUPLICATE) {
                slot.last_used = now;
                consumed = true;
            } else if (verdict == Event.OVERFLOW) {
                hdr.gradient.overflow = 1;
            }

            // The packet becomes the sum. It stays until all workers are in it, or a resend takes it along.
            if (keep != 0 || add != 0) {
                first_lane = role.slot * LANES;
                merge();
                slot.last_used = now;
                slot.congestion = slot.congestion | hdr.gradient.congestion;
                if (hdr.ipv4.dscp_ecn[ECN_FIELD] == ECN_CE) {
                    slot.congestion = 1;
                }
                slot.workers = slot.workers | hdr.gradient.worker_bitmap;
                slot.magnitude = slot.magnitude + (hdr.gradient.magnitude & add);
                slot_workers.write(role.slot, slot.workers);
                slot_magnitude.write(role.slot, slot.magnitude);
                hdr.gradient.congestion = slot.congestion;
                hdr.gradient.worker_bitmap = slot.workers;
                hdr.gradient.magnitude = slot.magnitude;
                hdr.gradient.partial = 1;
                hdr.ipv4.ttl = SUM_TTL;
                consumed = slot.held == 1 && !complete;
                if (slot.held == 1 && complete && add != 0) {
                    events.count(job_events + (bit<32>)Event.COMPLETED);
                }
            }

            // Sum or not, what is left goes on. What the slot has finished is at the server; an older fragment that it
            // could not take may be under way at the next switch.
            if (!acknowledged && !consumed) {
                bool finished = verdict == Event.STALE && slot.packet_number == hdr.gradient.packet_number;
                pass_on.apply(hdr, finished || verdict == Event.OVERFLOW);
            }

            slot_owner.write(role.slot,
                slot.held ++ slot.congestion ++ slot.last_used ++ slot.job ++ slot.packet_number);
            bool exhausted;
            held_slots.apply(role, verdict, exhausted);
            if (verdict != Event.NOTHING) {
                events.count(job_events + (bit<32>)verdict);
            }
            if (exhausted) {
                events.count(job_events + (bit<32>)Event.EXHAUSTION);
            }
        }
        if (consumed) {
            mark_to_drop(std);
        }
    }
}

#endif
