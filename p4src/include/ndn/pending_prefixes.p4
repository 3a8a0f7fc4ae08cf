// Pending Interests that longer names answer (CanBePrefix), or one Data alone by its digest, apart from the PIT, whose
// rows Data find by their whole name. Data look here once for each number of components that a pending Interest has, so
// for at most eight (names have no more), and not at all where none is pending.
//
// An implicit digest is SHA-256 of the Data, which a switch cannot compute: the Interest waits under the name before
// it, and consumers compare. Two that differ in their digests must not wait for each other, so none of them does.
#ifndef GRADBED_NDN_PENDING_PREFIXES_P4
#define GRADBED_NDN_PENDING_PREFIXES_P4

#include "packet.p4"
#include "pending_interests.p4"
#include "rows.p4"

#ifndef PREFIXES
#define PREFIXES 1024
#endif
#define LENGTHS 9                   // 0: any number of components; 1 to 8: that many

const bit<64> MARK_DIGEST = 0x0000000000000004;

// Data of names with n components and more, if an Interest for a prefix of n is pending.
#define SATISFY(n) \
    prefix_end.read(end, n); \
    if (meta.components >= n && end - tick < 0x80000000) { \
        name = meta.id_##n; \
        digest_name = meta.components == n ? meta.id_##n ^ MARK_DIGEST : meta.id_##n; \
        first_row.apply(name, PREFIXES, row); \
        take(); \
    }

// Interests: whether they go on. by_digest: the last component is one. Data: `ports` is who waits for them.
control PendingPrefixes(in headers_t hdr, in metadata_t meta, in bit<48> now_us, in bool by_digest,
        out Pending verdict, out port_set_t ports) {
    register<bit<64>>(PREFIXES) prefix_name;
    register<bit<64>>(PREFIXES) prefix_state;   // end in ticks (32 bits), ports (16), the last time it went on (16)
    register<bit<32>>(PREFIXES) prefix_nonce;
    register<bit<32>>(LENGTHS) prefix_end;      // until when an Interest is pending, in ticks
    counter(1, CounterType.packets) prefixes_made;
    counter(1, CounterType.packets) prefixes_satisfied;
    counter(1, CounterType.packets) prefixes_evicted;
    FirstRow() first_row;
    Lifetime() lifetime;

    bit<64> name = 0;
    bit<64> digest_name = 0;
    bit<64> first_name = 0;
    bit<64> second_name = 0;
    bit<64> first_state = 0;
    bit<64> second_state = 0;
    bit<32> row = 0;
    bit<32> tick = 0;
    port_set_t waiting = 0;

    action read() {
        prefix_name.read(first_name, row);
        prefix_name.read(second_name, row + 1);
        prefix_state.read(first_state, row);
        prefix_state.read(second_state, row + 1);
    }
    // Who waits in the two rows of `name` gets the Data, and is forgotten.
    action take() {
        read();
        bool first = first_state[63:32] - tick < 0x80000000 && first_name != 0
            && (first_name == name || first_name == digest_name);
        bool second = second_state[63:32] - tick < 0x80000000 && second_name != 0
            && (second_name == name || second_name == digest_name);
        waiting = waiting | (first ? first_state[31:16] : 16w0) | (second ? second_state[31:16] : 16w0);
        prefix_name.write(row, first ? 64w0 : first_name);
        prefix_name.write(row + 1, second ? 64w0 : second_name);
    }

    apply {
        bit<32> end;
        bit<32> nonce;
        verdict = Pending.FORWARD;
        ports = 0;
        waiting = 0;
        tick = (bit<32>)(now_us >> 10);
        if (meta.packet_type == TYPE_DATA) {
            prefix_end.read(end, 0);
            if (end - tick < 0x80000000) {
                SATISFY(1)
                SATISFY(2)
                SATISFY(3)
                SATISFY(4)
                SATISFY(5)
                SATISFY(6)
                SATISFY(7)
                SATISFY(8)
                if (waiting != 0) {
                    prefixes_satisfied.count(0);
                }
            }
            ports = waiting;
        } else {
            bit<32> length = (bit<32>)meta.components;
            name = meta.id;
            if (by_digest) {
                length = length - 1;
                name = meta.parent ^ MARK_DIGEST;
            }
            bit<32> lifetime_ms;
            lifetime.apply(hdr, lifetime_ms);
            bit<32> last = tick + lifetime_ms;
            bit<16> went_on = tick[15:0];
            waiting = meta.in_port;
            first_row.apply(name, PREFIXES, row);
            read();
            bool first_lives = first_name != 0 && first_state[63:32] - tick < 0x80000000;
            bool second_lives = second_name != 0 && second_state[63:32] - tick < 0x80000000;
            bit<64> state = first_state;
            bool found = first_lives && first_name == name;
            if (!found && second_lives && second_name == name) {
                found = true;
                row = row + 1;
                state = second_state;
            }
            if (found) {
                prefix_nonce.read(nonce, row);
                bool member = (state[31:16] & meta.in_port) != 0;
                if (nonce == hdr.nonce.value) {
                    verdict = Pending.DUPLICATE;
                } else if (!by_digest && (!member || tick[15:0] - state[15:0] < REPEAT_TICKS)) {
                    verdict = Pending.AGGREGATED;
                    went_on = state[15:0];
                }
                waiting = waiting | state[31:16];
                if (state[63:32] - last < 0x80000000) {
                    last = state[63:32];
                }
            } else {
                prefixes_made.count(0);
                if (first_lives) {
                    if (!second_lives || second_state[63:32] - first_state[63:32] >= 0x80000000) {
                        row = row + 1;
                    }
                    if (second_lives) {
                        prefixes_evicted.count(0);
                    }
                }
            }
            if (verdict != Pending.DUPLICATE) {
                prefix_name.write(row, name);
                prefix_state.write(row, last ++ waiting ++ went_on);
                if (verdict == Pending.FORWARD) {
                    prefix_nonce.write(row, hdr.nonce.value);
                }
                prefix_end.read(end, length);
                if (last - end < 0x80000000) {
                    prefix_end.write(length, last);
                }
                prefix_end.read(end, 0);
                if (last - end < 0x80000000) {
                    prefix_end.write(0, last);
                }
            }
        }
    }
}

#endif
