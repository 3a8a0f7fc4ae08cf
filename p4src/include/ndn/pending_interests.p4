// The PIT: Interests that have gone on, and the ports that their Data go back to. Equal Interests from other ports
// wait with the first; one from a port that waits already is a consumer's repetition, and goes on again unless
// another has a moment ago.
//
// Insertions and deletions are pending under identities of their own, which MARK_... makes of the name's.
#ifndef GRADBED_NDN_PENDING_INTERESTS_P4
#define GRADBED_NDN_PENDING_INTERESTS_P4

#include "packet.p4"
#include "rows.p4"

#ifndef PENDING
#define PENDING 16384
#endif
// Ticks of 1,024 us.
#ifndef REPEAT_TICKS
#define REPEAT_TICKS 8
#endif
const bit<32> DEFAULT_LIFETIME_MS = 4000;
const bit<32> MOST_LIFETIME_MS = 0x00FFFFFF;

const bit<64> MARK_INSERTION = 0x0000000000000001;
const bit<64> MARK_DELETION = 0x0000000000000002;

enum bit<2> Pending {
    FORWARD = 0,
    AGGREGATED = 1,
    DUPLICATE = 2
}

// How long an Interest is pending.
control Lifetime(in headers_t hdr, out bit<32> lifetime_ms) {
    apply {
        lifetime_ms = DEFAULT_LIFETIME_MS;
        if (hdr.lifetime_1.isValid()) {
            lifetime_ms = (bit<32>)hdr.lifetime_1.ms;
        } else if (hdr.lifetime_2.isValid()) {
            lifetime_ms = (bit<32>)hdr.lifetime_2.ms;
        } else if (hdr.lifetime_4.isValid()) {
            lifetime_ms = hdr.lifetime_4.ms;
        } else if (hdr.lifetime_8.isValid()) {
            lifetime_ms = hdr.lifetime_8.ms[63:32] == 0 ? hdr.lifetime_8.ms[31:0] : MOST_LIFETIME_MS;
        }
        if (lifetime_ms > MOST_LIFETIME_MS) {
            lifetime_ms = MOST_LIFETIME_MS;
        }
    }
}

// satisfied: ports that Data go to in any case; what else waits for them is added to `ports`, and forgotten.
control PendingInterests(in headers_t hdr, in metadata_t meta, in bit<48> now_us, in port_set_t satisfied,
        out Pending verdict, out port_set_t ports) {
    register<bit<64>>(PENDING) pending_name;
    register<bit<64>>(PENDING) pending_state;   // end in ticks (32 bits), ports (16), the last time it went on (16)
    register<bit<32>>(PENDING) pending_nonce;
    counter(1, CounterType.packets) pending_made;
    counter(1, CounterType.packets) pending_repeated;
    counter(1, CounterType.packets) pending_satisfied;
    counter(1, CounterType.packets) pending_evicted;
    FirstRow() first_row;
    Lifetime() lifetime;

    bit<64> name = 0;
    bit<64> first_name = 0;
    bit<64> second_name = 0;
    bit<64> state = 0;
    bit<64> second_state = 0;
    bit<32> row = 0;
    bit<32> tick = 0;

    action read() {
        pending_name.read(first_name, row);
        pending_name.read(second_name, row + 1);
        pending_state.read(state, row);
        pending_state.read(second_state, row + 1);
    }

    apply {
        bit<32> nonce;
        verdict = Pending.FORWARD;
        ports = 0;
        name = meta.id;
        if (meta.operation == Operation.DELETION) {
            name = name ^ MARK_DELETION;
        } else if (meta.components == 3 && meta.operation != Operation.NONE) {
            name = name ^ MARK_INSERTION;
        }
        tick = (bit<32>)(now_us >> 10);
        first_row.apply(name, PENDING, row);
        read();
        // Ticks are compared as numbers that go round.
        bool first_lives = first_name != 0 && state[63:32] - tick < 0x80000000;
        bool second_lives = second_name != 0 && second_state[63:32] - tick < 0x80000000;
        bool found = first_lives && first_name == name;
        if (!found && second_lives && second_name == name) {
            found = true;
            row = row + 1;
            state = second_state;
        }
        if (meta.packet_type == TYPE_DATA) {
            if (found) {
                // Who has the content from `satisfied` need not get it twice.
                ports = state[31:16] & ~satisfied;
                pending_name.write(row, 0);
                pending_satisfied.count(0);
            }
        } else {
            bit<32> lifetime_ms;
            lifetime.apply(hdr, lifetime_ms);
            bit<32> end = tick + lifetime_ms;
            bit<16> went_on = tick[15:0];
            port_set_t waiting = meta.in_port;
            if (found) {
                pending_nonce.read(nonce, row);
                bool member = (state[31:16] & meta.in_port) != 0;
                if (nonce == hdr.nonce.value) {
                    verdict = Pending.DUPLICATE;
                } else if (member && tick[15:0] - state[15:0] >= REPEAT_TICKS) {
                    pending_repeated.count(0);
                } else {
                    verdict = Pending.AGGREGATED;
                    went_on = state[15:0];
                }
                waiting = waiting | state[31:16];
                // The entry lasts as long as its longest Interest.
                if (state[63:32] - end < 0x80000000) {
                    end = state[63:32];
                }
            } else {
                pending_made.count(0);
                if (first_lives) {
                    if (!second_lives || second_state[63:32] - state[63:32] >= 0x80000000) {
                        row = row + 1;
                    }
                    if (second_lives) {
                        pending_evicted.count(0);
                    }
                }
            }
            if (verdict != Pending.DUPLICATE) {
                pending_name.write(row, name);
                pending_state.write(row, end ++ waiting ++ went_on);
                if (verdict == Pending.FORWARD) {
                    pending_nonce.write(row, hdr.nonce.value);
                }
            }
        }
    }
}

#endif
