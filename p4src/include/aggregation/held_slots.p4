// Whether all slots of a range are held. A bit for each slot is set and cleared, not counted, so it stays right
// whoever takes a slot over and however ranges change. A word of 64 bits has a bit of its own on the level above, set
// while the word is full. So the first and the last word of a range tell, and those of the range between on the next
// level. Three levels do for 64^3 slots.
#ifndef GRADBED_HELD_SLOTS_P4
#define GRADBED_HELD_SLOTS_P4

#include "events.p4"
#include "slot_policy.p4"

// Where the words of a level begin.
#define LEVEL_1 (SLOTS / 64 + 1)
#define LEVEL_2 (LEVEL_1 + SLOTS / 4096 + 1)

const bit<64> FULL = 0xFFFFFFFFFFFFFFFF;

control HeldSlots(in role_t role, in Event verdict, out bool exhausted) {
    register<bit<64>>(LEVEL_2 + 1) held_bits;

    bit<32> first = 0;    // bit of a level
    bit<32> end = 0;      // after the last one
    bit<64> value = 0;    // what the bit becomes: all ones or none
    bit<64> missing = 0;

    // Goes on to the bit above.
    action write_bit(in bit<32> level) {
        bit<64> word;
        bit<64> mask = 64w1 << first[5:0];
        held_bits.read(word, level + (first >> 6));
        word = (word & ~mask) | (value & mask);
        held_bits.write(level + (first >> 6), word);
        value = word == FULL ? FULL : 64w0;
        first = first >> 6;
    }

    // Goes on to the words between the first and the last, each a bit above.
    action look_for_missing(in bit<32> level) {
        bit<64> head;
        bit<64> tail;
        bit<32> last = end - 1;
        held_bits.read(head, level + (first >> 6));
        held_bits.read(tail, level + (last >> 6));
        head = ~head & (FULL << first[5:0]);
        tail = ~tail & (FULL >> (6w63 - last[5:0]));
        missing = missing | ((first >> 6) == (last >> 6) ? head & tail : head | tail);
        first = (first >> 6) + 1;
        end = last >> 6;
    }

    apply {
        exhausted = false;
        if (verdict == Event.CLAIMED || verdict == Event.RELEASED || verdict == Event.RESEND_SUMMED) {
            first = role.slot;
            value = verdict == Event.CLAIMED ? FULL : 64w0;
            write_bit(0);
            write_bit(LEVEL_1);
            write_bit(LEVEL_2);
        } else if (verdict == Event.COLLISION || verdict == Event.CONTENTION) {
            first = role.first_slot;
            end = role.first_slot + role.slots;
            missing = 0;
            look_for_missing(0);
            if (first < end) {
                look_for_missing(LEVEL_1);
            }
            if (first < end) {
                look_for_missing(LEVEL_2);
            }
            exhausted = missing == 0;
        }
    }
}

#endif
