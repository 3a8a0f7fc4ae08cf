// What a gradient packet, or the ACK of a fragment, is to the slot that its job's policy selects: one event, which
// decides what becomes of both. Packet numbers are compared modulo 2^32 (RFC 1982).
#ifndef GRADBED_VERDICT_P4
#define GRADBED_VERDICT_P4

#include "events.p4"
#include "gradient.p4"
#include "popcount.p4"
#include "slot_policy.p4"

// A slot that was not used for so many ticks of 2^17 us (131 ms) goes to whoever needs it: its job has ended, or
// its ACK went astray. Should the fragment be alive after all, it has lost a packet, which resends repair.
#ifndef RECLAIM_IDLE_TICKS
#define RECLAIM_IDLE_TICKS 64
#endif

const bit<32> MAX_MAGNITUDE = 0x7FFFFFFF;
const bit<32> HALF_OF_ALL_NUMBERS = 0x80000000;

struct slot_t {
    bit<1> held;
    bit<1> congestion;      // a packet in the sum met a long queue
    bit<14> last_used;      // in ticks
    bit<16> job;            // of the fragment that it holds or, when free, held last: a late copy of that must not
    bit<32> packet_number;  //     claim the slot again, since no ACK would free it
    bit<64> workers;        // whose gradients are in the sum
    bit<32> magnitude;      // no lane's absolute value is larger
}

// complete: with this packet, all workers are in the sum.
control Judge(in gradient_t gradient, in role_t role, in slot_t slot, in bit<14> now, out Event verdict,
        out bool complete) {
    Popcount() popcount;

    apply {
        bool same_job = slot.job == gradient.job;
        bit<32> newer_by = gradient.packet_number - slot.packet_number;
        bool older = newer_by >= HALF_OF_ALL_NUMBERS;
        bit<64> workers = 0;
        bit<32> magnitude = 0;
        bit<16> count;
        bool own = slot.held == 1 && same_job && newer_by == 0;
        if (own) {
            workers = slot.workers;
            magnitude = slot.magnitude;
        }
        bit<64> summed = gradient.worker_bitmap & workers;
        popcount.apply(gradient.worker_bitmap | workers, count);
        complete = count >= gradient.fan_in;

        if (gradient.acknowledgement == 1) {
            if (own) {
                verdict = Event.RELEASED;
            } else {
                verdict = Event.NOTHING;
            }
        } else if (own) {
            // While a slot holds a complete sum, all its workers wait, and all retry: the retry of the
            // lowest-numbered one makes the sum leave again, the others' would only repeat that.
            bool speaks_for_all = (summed & (~workers + 1)) != 0;
            if (summed != 0 && summed != gradient.worker_bitmap) {
                verdict = Event.OVERLAP;
            } else if (gradient.resend == 1) {
                verdict = Event.RESEND_SUMMED;
            } else if (summed == 0) {
                verdict = Event.ADDED;
            } else if (gradient.retry == 1 && complete && speaks_for_all) {
                verdict = Event.REPEATED;
            } else {
                verdict = Event.DUPLICATE;
            }
        } else if (gradient.resend == 1 || gradient.retry == 1) {
            verdict = Event.RESEND_SINGLE;
        } else if (slot.held == 0) {
            if (same_job && (newer_by == 0 || older)) {
                verdict = Event.STALE;
            } else {
                verdict = Event.CLAIMED;
            }
        } else if (now - slot.last_used >= RECLAIM_IDLE_TICKS
                || (same_job && !older && newer_by >= role.reclaim_distance)) {
            verdict = Event.RECLAIMED;
        } else if (same_job) {
            verdict = Event.COLLISION;
        } else {
            verdict = Event.CONTENTION;
        }

        bool enters = verdict == Event.CLAIMED || verdict == Event.RECLAIMED || verdict == Event.ADDED
            || (verdict == Event.RESEND_SUMMED && summed == 0);
        if (enters && gradient.magnitude > MAX_MAGNITUDE - magnitude) {
            verdict = Event.OVERFLOW;
        }
    }
}

#endif
