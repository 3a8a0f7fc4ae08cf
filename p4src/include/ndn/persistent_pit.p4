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

control PersistentPit(in headers_t hdr, in metadata_t meta, in bit<48> now_us, out Subscription verdict,
        out port_set_t ports) {
    register<bit<64>>(SUBSCRIPTIONS) subscription_name;
    register<bit<64>>(SUBSCRIPTIONS) subscription_state;
    // Version (32 bits) and segment of the last push, plus one; 0: there was none.
    register<bit<64>>(SUBSCRIPTIONS) subscription_last;
    counter(1, CounterType.packets) subscriptions_made;
    counter(1, CounterType.packets) subscriptions_ended;
    counter(1, CounterType.packets) subscription_collisions;

    bit<64> first_name = 0;
    bit<64> second_name = 0;
    bit<64> state = 0;
    bit<64> second_state = 0;
    bit<32> row = 0;

    // The ports that are left of a state by now: of this epoch, and of the one before.
    bit<16> current = 0;
    bit<16> previous = 0;
    bit<1> acknowledged = 0;
    bit<1> asked = 0;
    bit<16> epoch = 0;
    bool same_epoch = false;

    action read() {
        row = ((bit<32>)(meta.id_2 >> 32) & (SUBSCRIPTIONS / 2 - 1)) << 1;
        subscription_name.read(first_name, row);
        subscription_name.read(second_name, row + 1);
        subscription_state.read(state, row);
        subscription_state.read(second_state, row + 1);
    }
    action age() {
        bit<16> epochs = epoch - state[63:48];
        same_epoch = epochs == 0;
        current = epochs == 0 ? state[47:32] : 16w0;
        previous = epochs == 0 ? state[31:16] : (epochs == 1 ? state[47:32] : 16w0);
        acknowledged = epochs == 0 ? state[15:15] : 1w0;
        asked = epochs == 0 ? state[14:14] : 1w0;
    }
    action write() {
        subscription_name.write(row, meta.id_2);
        subscription_state.write(row, epoch ++ current ++ previous ++ acknowledged ++ asked ++ 14w0);
    }

    apply {
        epoch = (bit<16>)(now_us >> EPOCH_SHIFT);
        read();
        bool found = true;
        if (first_name != meta.id_2) {
            if (second_name == meta.id_2) {
                row = row + 1;
                state = second_state;
            } else {
                found = false;
            }
        }
        bool known = found;
        if (found) {
            age();
        } else if (meta.operation == Operation.INSERTION && meta.packet_type == TYPE_INTEREST) {
            // A row is free when its set is empty, and when it has aged.
            age();
            found = (current | previous) == 0;
            if (!found) {
                row = row + 1;
                state = second_state;
                age();
                found = (current | previous) == 0;
            }
            if (!found) {
                subscription_collisions.count(0);
            }
        }
        ports = current | previous;
        if (!found || (ports == 0 && meta.operation != Operation.INSERTION)) {
            verdict = Subscription.NONE;
            ports = 0;
        } else if (meta.packet_type == TYPE_DATA) {
            // An acknowledgement has two components after the operation. It is for those whose insertion has come in
            // this epoch: who hears one need not repeat, so that a port of the epoch before must not.
            verdict = Subscription.FOUND;
            if (meta.components == 3) {
                ports = 0;
                if (asked == 1) {
                    ports = current;
                    acknowledged = 1;
                    asked = 0;
                    write();
                }
            } else {
                bit<64> last;
                bit<64> this_one = (meta.version ++ meta.segment) + 1;
                subscription_last.read(last, row);
                if (this_one > last) {
                    subscription_last.write(row, this_one);
                } else {
                    verdict = Subscription.OVERTAKEN;
                }
            }
        } else if (meta.operation == Operation.INSERTION) {
            // A second one by the same port in an epoch is a repetition: the first, or its answer, was lost.
            bool repeated = (current & meta.in_port) != 0;
            if (ports == 0) {
                subscriptions_made.count(0);
                acknowledged = 0;
                verdict = Subscription.FORWARD;
            } else if (!same_epoch || hdr.must_be_fresh.isValid()) {
                verdict = Subscription.FORWARD;
            } else if (acknowledged == 1) {
                verdict = Subscription.ANSWER;
            } else if (repeated) {
                verdict = Subscription.FORWARD;
            } else {
                verdict = Subscription.WAIT;
            }
            if (verdict == Subscription.FORWARD) {
                asked = 1;
            }
            if (!known) {
                subscription_last.write(row, 0);
            }
            current = current | meta.in_port;
            ports = ports | meta.in_port;
            write();
        } else if (meta.operation == Operation.DELETION) {
            bool member = (ports & meta.in_port) != 0;
            current = current & ~meta.in_port;
            previous = previous & ~meta.in_port;
            ports = current | previous;
            if (member) {
                write();
            }
            if (ports == 0) {
                subscriptions_ended.count(0);
                verdict = Subscription.LAST;
            } else {
                verdict = Subscription.ANSWER;
            }
        } else {
            verdict = Subscription.NONE;
        }
    }
}

#endif
