// Aggregation in slots. A fragment (job, packet number) that reaches its designated switch is added up in the slot
// that the job's policy selects; the packet that completes the sum carries it on towards the server, and the
// server's ACK frees the slot on its way back. What the slot cannot take goes on as it is: to the next designated
// switch, which does the same, or to the server.
//
// A slot's owner is 64 bits: held (1), congestion (1), when last used (14), job (16), packet number (32). Job and
// number are kept when the slot is freed: a late copy of a fragment that the slot has finished must not claim it
// again, since no ACK would free it. Packet numbers are compared modulo 2^32 (RFC 1982).
//
// No sum can leave int32: a slot adds the magnitudes of its packets, bounds of their lanes' absolute values, and
// takes none that would bring them above 2^31 - 1.
#ifndef GRADBED_SLOTS_P4
#define GRADBED_SLOTS_P4

#include "parser.p4"
#include "congestion.p4"
#include "designation.p4"
#include "events.p4"
#include "popcount.p4"
#include "slot_policy.p4"

#ifndef SLOTS
#define SLOTS 1024
#endif

// A slot that was not used for so many ticks of 2^17 us (131 ms) goes to whoever needs it: its job has ended, or
// its ACK went astray. Should the fragment be alive after all, it has lost a packet, which resends repair.
#ifndef RECLAIM_IDLE_TICKS
#define RECLAIM_IDLE_TICKS 64
#endif

const bit<32> ALL_BITS = 0xFFFFFFFF;
const bit<32> MAX_MAGNITUDE = 0x7FFFFFFF;

#define MERGE_LANE(n) \
    slot_sums.read(lane, first_lane + 0x##n); \
    lane = (lane & keep) + (hdr.lanes.lane_##n & add); \
    slot_sums.write(first_lane + 0x##n, lane); \
    hdr.lanes.lane_##n = lane;

control Slots(inout headers_t hdr, inout standard_metadata_t std, out bool consumed) {
    register<bit<64>>(SLOTS) slot_owner;
    register<bit<64>>(SLOTS) slot_workers;
    register<bit<32>>(SLOTS) slot_magnitude;
    register<bit<32>>(SLOTS * LANES) slot_sums;
    register<bit<32>>(SLOTS) slots_held;  // of a range, at the index of its first slot
    counter(EVENTS * EVENT_JOBS, CounterType.packets) events;
    SlotPolicy() policy;
    Popcount() popcount;
    PassOn() pass_on;

    bit<32> first_lane = 0;
    bit<32> keep = 0;
    bit<32> add = 0;

    // Slot and packet both end up with (slot & keep) + (packet & add): a claim keeps nothing, a contribution
    // keeps and adds, a resend or retry that is in the sum already adds nothing and takes the sum along.
    action merge() {
        bit<32> lane;
        FOR_EACH_LANE(MERGE_LANE)
    }

    apply {
        role_t role;
        bool present;
        bit<32> job_events = ((bit<32>)hdr.gradient.job & (EVENT_JOBS - 1)) * EVENTS;
        consumed = false;
        policy.apply(hdr.gradient, role, present);
        bool designated = hdr.gradient.acknowledgement == 0 && hdr.gradient.worker_bitmap != 0
            && hdr.gradient.switch_number == role.switch_number;
        if (present && (designated || hdr.gradient.acknowledgement == 1)) {
            bit<64> owner;
            bit<32> held_in_range;
            slot_owner.read(owner, role.slot);
            slots_held.read(held_in_range, role.first_slot);
            bool held = owner[63:63] == 1;
            bool same_job = owner[47:32] == hdr.gradient.job;
            bool own = held && same_job && owner[31:0] == hdr.gradient.packet_number;
            bit<64> released = 16w0 ++ hdr.gradient.job ++ hdr.gradient.packet_number;
            bool releases = false;
            bool claims = false;

            if (!designated) {
                if (own) {
                    releases = true;
                    events.count(job_events + EVENT_RELEASED);
                }
            } else {
                bit<14> now = (bit<14>)(std.ingress_global_timestamp >> 17);
                bit<32> newer_by = hdr.gradient.packet_number - owner[31:0];
                bit<64> workers = 0;
                bit<32> magnitude = 0;
                bit<1> congestion = hdr.gradient.congestion;
                bool usable = false;
                bool past_all_switches = false;
                if (hdr.ipv4.dscp_ecn[ECN_FIELD] == ECN_CE) {
                    congestion = 1;
                }
                keep = 0;
                add = ALL_BITS;

                if (own) {
                    slot_workers.read(workers, role.slot);
                    slot_magnitude.read(magnitude, role.slot);
                    congestion = congestion | owner[62:62];
                    keep = ALL_BITS;
                    bit<64> newcomers = hdr.gradient.worker_bitmap & ~workers;
                    // While a slot holds a complete sum, all its workers wait, and all retry: the retry of the
                    // lowest-numbered one makes the sum leave again, the others' would only repeat that.
                    bool speaks_for_all = (hdr.gradient.worker_bitmap & workers & (~workers + 1)) != 0;
                    if (newcomers == hdr.gradient.worker_bitmap) {
                        usable = true;
                    } else if (newcomers != 0) {
                        events.count(job_events + EVENT_OVERLAP);
                    } else if (hdr.gradient.resend == 1 || (hdr.gradient.retry == 1 && speaks_for_all)) {
                        add = 0;
                        usable = true;
                    } else {
                        consumed = true;
                        events.count(job_events + EVENT_DUPLICATE);
                    }
                } else if (hdr.gradient.resend == 1 || hdr.gradient.retry == 1) {
                    events.count(job_events + EVENT_RESEND_SINGLE);
                } else if (held) {
                    bool left_behind = same_job && newer_by >= role.reclaim_distance && newer_by < 0x80000000;
                    if (left_behind || now - owner[61:48] >= RECLAIM_IDLE_TICKS) {
                        usable = true;
                    } else {
                        if (same_job) {
                            events.count(job_events + EVENT_COLLISION);
                        } else {
                            events.count(job_events + EVENT_CONTENTION);
                        }
                        if (held_in_range >= role.slots) {
                            events.count(job_events + EVENT_EXHAUSTION);
                        }
                    }
                } else if (same_job && (newer_by == 0 || newer_by >= 0x80000000)) {
                    // What the slot gave up or completed is at the server; an older fragment that it could not
                    // take may be under way at the next switch.
                    past_all_switches = newer_by == 0;
                    events.count(job_events + EVENT_STALE);
                } else {
                    usable = true;
                    claims = true;
                }

                if (usable && (hdr.gradient.magnitude & add) > MAX_MAGNITUDE - magnitude) {
                    usable = false;
                    claims = false;
                    past_all_switches = true;
                    hdr.gradient.overflow = 1;
                    events.count(job_events + EVENT_OVERFLOW);
                }
                if (usable) {
                    bit<16> count;
                    first_lane = role.slot * LANES;
                    merge();
                    if (claims) {
                        events.count(job_events + EVENT_CLAIMED);
                    } else if (keep == 0) {
                        events.count(job_events + EVENT_RECLAIMED);
                    } else if (add != 0) {
                        events.count(job_events + EVENT_ADDED);
                    }
                    workers = workers | hdr.gradient.worker_bitmap;
                    magnitude = magnitude + (hdr.gradient.magnitude & add);
                    slot_workers.write(role.slot, workers);
                    slot_magnitude.write(role.slot, magnitude);
                    popcount.apply(workers, count);
                    if (hdr.gradient.resend == 1) {
                        releases = true;
                        events.count(job_events + EVENT_RESEND_SUMMED);
                    } else {
                        slot_owner.write(role.slot,
                            1w1 ++ congestion ++ now ++ hdr.gradient.job ++ hdr.gradient.packet_number);
                        if (count < hdr.gradient.fan_in) {
                            consumed = true;
                            if (add == 0) {
                                events.count(job_events + EVENT_DUPLICATE);
                            }
                        } else if (add == 0) {
                            events.count(job_events + EVENT_REPEATED);
                        } else {
                            events.count(job_events + EVENT_COMPLETED);
                        }
                    }
                    hdr.gradient.worker_bitmap = workers;
                    hdr.gradient.magnitude = magnitude;
                    hdr.gradient.congestion = congestion;
                    hdr.gradient.partial = 1;
                }
                if (!consumed) {
                    pass_on.apply(hdr, past_all_switches);
                }
            }

            if (claims) {
                slots_held.write(role.first_slot, held_in_range + 1);
            } else if (releases) {
                slot_owner.write(role.slot, released);
                slots_held.write(role.first_slot, held_in_range |-| 1);
            }
        }
        if (consumed) {
            mark_to_drop(std);
        }
    }
}

#endif
