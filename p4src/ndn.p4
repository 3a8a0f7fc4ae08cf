// Named data networking for gradients. Receivers subscribe to publishers once, publishers push each gradient along the
// trees that the subscriptions made, and what was lost on the way is asked for by name: the routers keep contents.
//
// Compile-time macros: LANES (int32 lanes of a gradient's Data), CONTENTS (Data that a router keeps), SUBSCRIPTIONS
// and PENDING (rows of the persistent and the ordinary PIT), PREFIXES (of Interests that longer names answer), EPOCH_SHIFT (how long a subscription lasts), REPEAT_TICKS.
// Numbers of rows are powers of two. Ports are numbered from 1 to 16.
#include <core.p4>
#include <v1model.p4>

#include "include/ndn/packet.p4"
#include "include/ndn/parser.p4"
#include "include/ndn/names.p4"
#include "include/ndn/drops.p4"
#include "include/ndn/hop.p4"
#include "include/ndn/forwarding.p4"
#include "include/ndn/persistent_pit.p4"
#include "include/ndn/content_store.p4"
#include "include/ndn/pending_interests.p4"
#include "include/ndn/pending_prefixes.p4"
#include "include/ndn/nack.p4"
#include "include/ndn/answer.p4"
#include "include/ndn/packet_counters.p4"

const port_t PORTS_IN_A_SET = 16;

// What becomes of a packet that nothing is wrong with.
enum bit<2> Next {
    DROP = 0,
    ANSWER = 1,     // an Interest that this router has the answer to
    FORWARD = 2,    // an Interest that goes on, whether or not an equal one has
    PIT = 3         // an Interest that waits for its Data, or the Data
}

// An Interest's way: from the content store, from the persistent PIT, or on. reason: why it has none.
control InterestNext(in headers_t hdr, in metadata_t meta, in port_t in_port, in bool hit,
        in Subscription subscription, out Next next, inout Reason reason) {
    apply {
        next = Next.DROP;
        if (hit || subscription == Subscription.ANSWER) {
            next = Next.ANSWER;
        } else if (subscription == Subscription.WAIT) {
            reason = Reason.AGGREGATED;
        } else if (hdr.hop_limit.isValid() && hdr.hop_limit.hops == 0) {
            reason = Reason.HOP_LIMIT;
        } else if (meta.upstream == 0 || meta.upstream == in_port || meta.operation == Operation.DISTRIBUTION) {
            reason = Reason.NO_ROUTE;
        } else if (subscription == Subscription.FORWARD) {
            next = Next.FORWARD;
        } else {
            next = Next.PIT;
        }
    }
}

control NdnIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    CountArrivals() arrivals;
    Check() check;
    Names() names;
    Fib() fib;
    TakeHop() take_hop;
    PersistentPit() persistent_pit;
    ContentStore() content_store;
    PendingInterests() pending_interests;
    PendingPrefixes() pending_prefixes;
    LeaveLink() leave_link;
    Nack() nack;
    InterestNext() interest_next;
    AnswerInterest() answer;
    Copies() copies;
    Ipv4Forwarding() ipv4_forwarding;
    Drops() drops;

    apply {
        Reason reason = Reason.NONE;
        Subscription subscription = Subscription.NONE;
        port_set_t subscribers = 0;
        port_set_t waiting = 0;
        port_set_t waiting_for_prefix = 0;
        Pending pending = Pending.FORWARD;
        Next next = Next.DROP;
        bool hit = false;
        bool known = true;
        bool interest = meta.packet_type == TYPE_INTEREST;
        bool ndn = hdr.ethernet.isValid() && hdr.ethernet.ether_type == ETHER_TYPE_NDN;
        meta.ports = 0;
        meta.nacked = 0;

        if (ndn) {
            leave_link.apply(hdr);
            meta.in_port = 0;
            if (std.ingress_port >= 1 && std.ingress_port <= PORTS_IN_A_SET) {
                meta.in_port = 16w1 << (bit<8>)(std.ingress_port - 1);
            }
            check.apply(hdr, meta, std, reason);
        } else {
            ipv4_forwarding.apply(hdr, std, reason);
        }
        if (ndn && reason == Reason.NONE) {
            arrivals.apply(meta, std.ingress_port);
            names.apply(hdr, meta);
            meta.upstream = 0;
            if (interest || meta.operation == Operation.DISTRIBUTION) {
                fib.apply(meta, std.ingress_port, reason);
            }
            if (interest) {
                take_hop.apply(hdr, meta, reason);
            }
        }
        bool by_digest = interest && meta.operation == Operation.NONE && meta.components > 1
            && meta.last_type == TYPE_IMPLICIT_DIGEST;
        if (ndn && reason == Reason.NONE) {
            // Subscriptions: Interests change them, distributed Data follow them.
            if (meta.operation != Operation.NONE && (interest ? meta.operation != Operation.DISTRIBUTION
                                                              : meta.operation != Operation.DELETION)) {
                persistent_pit.apply(hdr, meta, std.ingress_global_timestamp, subscription, subscribers);
            }
            if (interest) {
                if (!hdr.must_be_fresh.isValid() && !by_digest && meta.left == 0
                        && (meta.operation == Operation.NONE || meta.operation == Operation.DISTRIBUTION)) {
                    content_store.apply(hdr, meta, hit);
                }
                interest_next.apply(hdr, meta, std.ingress_port, hit, subscription, next, reason);
                meta.ports = subscription == Subscription.NONE ? 16w0 : subscribers;
            } else if (subscription == Subscription.OVERTAKEN) {
                reason = Reason.OVERTAKEN;
            } else {
                next = Next.PIT;
            }
        }

        if (next == Next.ANSWER) {
            answer.apply(hdr, meta, std);
        } else if (next == Next.FORWARD) {
            std.egress_spec = meta.upstream;
        } else if (next == Next.PIT) {
            bool by_prefix = meta.operation == Operation.NONE
                && (!interest || by_digest || hdr.can_be_prefix.isValid());
            if (!interest || !by_prefix) {
                pending_interests.apply(hdr, meta, std.ingress_global_timestamp, subscribers, pending, waiting);
            }
            if (by_prefix) {
                Pending of_prefix;
                pending_prefixes.apply(
                    hdr, meta, std.ingress_global_timestamp, by_digest, of_prefix, waiting_for_prefix);
                if (interest) {
                    pending = of_prefix;
                }
            }
            if (!interest) {
                meta.ports = (subscribers | waiting | waiting_for_prefix) & ~meta.in_port;
                meta.copy = 1;
                if (meta.ports == 0) {
                    reason = Reason.UNSOLICITED;
                } else {
                    content_store.apply(hdr, meta, hit);
                }
            } else if (pending == Pending.FORWARD) {
                std.egress_spec = meta.upstream;
            } else if (pending == Pending.AGGREGATED) {
                reason = Reason.AGGREGATED;
            } else {
                reason = Reason.DUPLICATE;
            }
        }
        if (meta.ports != 0) {
            copies.apply(meta, std, known);
            if (!known && meta.copy == 1) {
                reason = Reason.NO_GROUP;
            }
        }
        drops.apply(reason, std);
        if (ndn && interest && meta.operation == Operation.NONE
                && (reason == Reason.NO_ROUTE || reason == Reason.DUPLICATE)) {
            nack.apply(reason, hdr, meta, std);
        }
    }
}

control NdnEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    CountDepartures() departures;

    apply {
        if (hdr.ethernet.ether_type == ETHER_TYPE_NDN) {
            departures.apply(meta, std.egress_port);
        }
    }
}

V1Switch(NdnParser(), NdnVerify(), NdnIngress(), NdnEgress(), NdnCompute(), NdnDeparser()) main;
