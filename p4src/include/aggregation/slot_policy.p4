// Whether this switch sums a job's gradients, and in which of its slots.
//
// A job has a range of the slots, alone or together with others. Jobs that share a range select slots by a hash of
// job and packet number and meet each other there (ATP, section 4: dynamic). CRC-32 alone is linear and would give
// packet numbers in a row few of the slots, or no slot twice, so it is mixed. A job alone in its range can have its
// packet numbers take the slots in turn, so that with a window no larger than the range no two meet (static). SwitchML
// numbers its slots like this (section 3.4) but frees them otherwise: its switch answers workers itself, so a slot is
// held for their round trip to the switch, and here until the server's ACK. The switch's number is an entry's parameter
// and not part of the key, because the server's ACKs must find the slot as well, and one ACK serves all switches that
// were designated for a fragment.
#ifndef GRADBED_SLOT_POLICY_P4
#define GRADBED_SLOT_POLICY_P4

#include "../mix_hash.p4"
#include "gradient.p4"

struct role_t {
    bit<16> switch_number;      // ours; gradients with another one are not for us
    bit<32> first_slot;
    bit<32> slots;              // in the range that begins there
    bit<32> reclaim_distance;   // a fragment so much older than another of the job has been answered
    bit<32> slot;               // the packet's
}

control SlotPolicy(in gradient_t gradient, out role_t role, out bool present) {
    bit<16> number = 0;
    bit<32> first = 0;
    bit<32> count = 0;
    bit<32> distance = 0;
    bool hashed = false;
    bit<32> selector = 0;
    bit<32> selected = 0;
    MixHash() mix_hash;

    action aggregate_hashed(bit<16> switch_number, bit<32> first_slot, bit<32> slots, bit<32> reclaim_distance) {
        number = switch_number;
        first = first_slot;
        count = slots;
        distance = reclaim_distance;
        hash(selector, HashAlgorithm.crc32, 32w0, { gradient.job, gradient.packet_number }, 64w0x100000000);
        hashed = true;
    }
    action aggregate_indexed(bit<16> switch_number, bit<32> first_slot, bit<32> slots, bit<32> reclaim_distance) {
        number = switch_number;
        first = first_slot;
        count = slots;
        distance = reclaim_distance;
        selector = gradient.packet_number;
    }
    table roles {
        key = { gradient.job: exact @name("hdr.gradient.job"); }
        actions = { aggregate_hashed; aggregate_indexed; NoAction; }
        const default_action = NoAction();
        size = 1024;
    }

    apply {
        present = roles.apply().hit;
        if (hashed) {
            mix_hash.apply(0, selector);
        }
        if (count != 0) {
            // The only remainder of two run-time numbers in v1model.
            hash(selected, HashAlgorithm.identity, first, { selector }, count);
        }
        role.switch_number = number;
        role.first_slot = first;
        role.slots = count;
        role.reclaim_distance = distance;
        role.slot = selected;
    }
}

#endif
