// The persistent PIT: for each publisher and training the ports towards those who have subscribed. Interests for
// /insert/PUBLISHER/TRAINING put ports in, Interests for /delete/PUBLISHER/TRAINING take them out, and Data of
// /distribute/PUBLISHER/TRAINING go to all of them.
//
// A subscriber that dies deletes nothing. So time goes in epochs of 2^EPOCH_SHIFT us: subscribers repeat their
// insertions at least twice in each, and a port on whose behalf nobody did for a whole epoch is out. Who is behind a
// port is not known here, so the first repetition in an epoch goes on towards the publisher. Once its acknowledgement
// has passed, this router answers the others itself.
//
// A row's state: epoch (16 bits), ports of this epoch (16), ports of the one before (16), and of this epoch whether the
// publisher's acknowledgement has passed (1), and whether an insertion has gone on that has none yet (1).
//
// When a tree changes, rows may lead Data round in a circle for a while. So a push goes on only if its version and
// segment are beyond those of all before it: publishers push in order. An acknowledgement goes on once for each insertion
// that did.
#ifndef GRADBED_NDN_PERSISTENT_PIT_P4
#define GRADBED_NDN_PERSISTENT_PIT_P4

#include "packet.p4"
#include "rows.p4"

#ifndef SUBSCRIPTIONS
#define SUBSCRIPTIONS 4096
#endif
#ifndef EPOCH_SHIFT
#define EPOCH_SHIFT 20
#endif

enum bit<3> Subscription {
    NONE = 0,           // no row has the name
    FORWARD = 1,        // an Interest goes on to the publisher
    ANSWER = 2,         // this router answers it
    WAIT = 3,           // an equal one is on its way; its acknowledgement goes to all ports of the set
    LAST = 4,           // a deletion took the last port out, and goes on
    FOUND = 5,          // Data, for the ports of the set
    OVERTAKEN = 6       // a push that is not beyond the last one
}

// What is left of a row by now.
struct subscription_t {
    bit<16> epoch;
    bool known;             // the row has this name
    bool held;              // or is free for it
    bool same_epoch;
    port_set_t current;     // ports of this epoch
    port_set_t previous;    // and of the one before
    bit<1> acknowledged;
    bit<1> asked;
}

// Of the two rows that a name may have: its own, or for an insertion one that is free, since its set is empty or has
// aged.
control ChooseRow(in metadata_t meta, in bit<16> epoch, in bit<64> first_name, in bit<64> second_name,
        in bit<64> first_state, in bit<64> second_state, out subscription_t row, out bit<32> offset) {
    bit<64> state = 0;

    action age() {
        bit<16> epochs = epoch - state[63:48];
        row.same_epoch = epochs == 0;
        row.current = epochs == 0 ? state[47:32] : 16w0;
        row.previous = epochs == 0 ? state[31:16] : (epochs == 1 ? state[47:32] : 16w0);
        row.acknowledged = epochs == 0 ? state[15:15] : 1w0;
        row.asked = epochs == 0 ? state[14:14] : 1w0;
    }

    apply {
        bool first = first_name == meta.id_2;
        bool second = !first && second_name == meta.id_2;
        row.epoch = epoch;
        row.known = first || second;
        offset = second ? 32w1 : 32w0;
        state = second ? second_state : first_state;
        age();
        row.held = row.known;
        if (!row.known && meta.operation == Operation.INSERTION && meta.packet_type == TYPE_INTEREST) {
            if ((row.current | row.previous) != 0) {
                offset = 1;
                state = second_state;
                age();
            }
            row.held = (row.current | row.previous) == 0;
        }
    }
}

// An Interest that puts its port in.
control Insert(in headers_t hdr, in metadata_t meta, inout subscription_t row, out Subscription verdict) {
    apply {
        // A second one by the same port in an epoch is a repetition: the first, or its answer, was lost.
        bool repeated = (row.current & meta.in_port) != 0;
        bool first = (row.current | row.previous) == 0;
        if (first) {
            row.acknowledged = 0;
        }
        verdict = Subscription.WAIT;
        if (first || !row.same_epoch || hdr.must_be_fresh.isValid()) {
            verdict = Subscription.FORWARD;
        } else if (row.acknowledged == 1) {
            verdict = Subscription.ANSWER;
        } else if (repeated) {
            verdict = Subscription.FORWARD;
        }
        if (verdict == Subscription.FORWARD) {
            row.asked = 1;
        }
        row.current = row.current | meta.in_port;
    }
}

control PersistentPit(in headers_t hdr, in metadata_t meta, in bit<48> now_us, out Subscription verdict,
        out port_set_t ports) {
    register<bit<64>>(SUBSCRIPTIONS) subscription_name;
    register<bit<64>>(SUBSCRIPTIONS) subscription_state;
    // Version (32 bits) and segment of the last push, plus one; 0: there was none.
    register<bit<64>>(SUBSCRIPTIONS) subscription_last;
    counter(1, CounterType.packets) subscriptions_made;
    counter(1, CounterType.packets) subscriptions_ended;
    counter(1, CounterType.packets) subscription_collisions;
    FirstRow() first_row;
    ChooseRow() choose_row;
    Insert() insert;

    bit<64> first_name = 0;
    bit<64> second_name = 0;
    bit<64> first_state = 0;
    bit<64> second_state = 0;
    bit<32> index = 0;
    subscription_t row;

    action read() {
        subscription_name.read(first_name, index);
        subscription_name.read(second_name, index + 1);
        subscription_state.read(first_state, index);
        subscription_state.read(second_state, index + 1);
    }
    action write() {
        subscription_name.write(index, meta.id_2);
        subscription_state.write(
            index, row.epoch ++ row.current ++ row.previous ++ row.acknowledged ++ row.asked ++ 14w0);
    }

    apply {
        bit<32> offset;
        bit<64> last;
        bool interest = meta.packet_type == TYPE_INTEREST;
        bit<16> epoch = (bit<16>)(now_us >> EPOCH_SHIFT);
        first_row.apply(meta.id_2, SUBSCRIPTIONS, index);
        read();
        choose_row.apply(meta, epoch, first_name, second_name, first_state, second_state, row, offset);
        index = index + offset;

        verdict = Subscription.NONE;
        ports = row.current | row.previous;
        if (!row.held || (ports == 0 && meta.operation != Operation.INSERTION)) {
            ports = 0;
            if (interest && meta.operation == Operation.INSERTION) {
                subscription_collisions.count(0);
            }
        } else if (interest && meta.operation == Operation.INSERTION) {
            if (ports == 0) {
                subscriptions_made.count(0);
            }
            if (!row.known) {
                subscription_last.write(index, 0);
            }
            insert.apply(hdr, meta, row, verdict);
            ports = ports | meta.in_port;
            write();
        } else if (!interest && meta.components == 3) {
            // An acknowledgement has two components after the operation. It is for those whose insertion has come in
            // this epoch: who hears one need not repeat, so that a port of the epoch before must not.
            verdict = Subscription.FOUND;
            ports = 0;
            if (row.asked == 1) {
                ports = row.current;
                row.acknowledged = 1;
                row.asked = 0;
                write();
            }
        } else if (!interest) {
            verdict = Subscription.FOUND;
            bit<64> this_one = (meta.version ++ meta.segment) + 1;
            subscription_last.read(last, index);
            if (this_one > last) {
                subscription_last.write(index, this_one);
            } else {
                verdict = Subscription.OVERTAKEN;
            }
        } else if (meta.operation == Operation.DELETION) {
            bool member = (ports & meta.in_port) != 0;
            row.current = row.current & ~meta.in_port;
            row.previous = row.previous & ~meta.in_port;
            ports = row.current | row.previous;
            if (member) {
                write();
            }
            verdict = Subscription.ANSWER;
            if (ports == 0) {
                subscriptions_ended.count(0);
                verdict = Subscription.LAST;
            }
        }
    }
}

#endif
