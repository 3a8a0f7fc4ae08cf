// Why packets are dropped: a counter for each reason, which a controller reads by its name.
#ifndef GRADBED_NDN_DROPS_P4
#define GRADBED_NDN_DROPS_P4

#include "packet.p4"

enum bit<8> Reason {
    NONE = 0,
    UNKNOWN_TYPE = 1,
    NOT_SHORTEST = 2,
    TRUNCATED = 3,
    NO_NAME = 4,
    NESTED_LENGTH = 5,
    COMPONENT_TOO_LONG = 6,
    TOO_MANY_COMPONENTS = 7,
    OPERATION_NAME = 8,     // an operation's name that has not the components it should
    BAD_ELEMENT = 9,        // an element of an Interest that must be known and is not, or is not in its place
    PORT_BEYOND_16 = 10,
    HOP_LIMIT = 11,         // an Interest that came with 0, or would have to go on with 0
    NO_ROUTE = 12,          // no prefix in the FIB, or none but back to where the Interest came from
    DUPLICATE = 13,         // an Interest whose nonce the pending one has
    AGGREGATED = 14,        // waits for the answer to an equal Interest
    UNSOLICITED = 15,       // Data that nobody has asked for
    NO_GROUP = 16,          // copies to ports for which there is no multicast group yet
    NOT_OURS = 17,          // neither NDN nor IPv4 that can be routed
    NOT_UPSTREAM = 18,      // a distribution's Data, not from where their publisher is
    OVERTAKEN = 19,         // a push that has been here before, or a later one has
    LINK_HEADER = 20        // an LpPacket with more than a fragment, such as another router's Nack
}

#define DROP_COUNTER(name) counter(1, CounterType.packets_and_bytes) name;
#define COUNT_IF(this, name) \
    if (reason == Reason.this) { \
        name.count(0); \
    } else

control Drops(in Reason reason, inout standard_metadata_t std) {
    DROP_COUNTER(dropped_unknown_type)
    DROP_COUNTER(dropped_not_shortest)
    DROP_COUNTER(dropped_truncated)
    DROP_COUNTER(dropped_no_name)
    DROP_COUNTER(dropped_nested_length)
    DROP_COUNTER(dropped_component_too_long)
    DROP_COUNTER(dropped_too_many_components)
    DROP_COUNTER(dropped_operation_name)
    DROP_COUNTER(dropped_bad_element)
    DROP_COUNTER(dropped_port_beyond_16)
    DROP_COUNTER(dropped_hop_limit)
    DROP_COUNTER(dropped_no_route)
    DROP_COUNTER(dropped_duplicate)
    DROP_COUNTER(dropped_aggregated)
    DROP_COUNTER(dropped_unsolicited)
    DROP_COUNTER(dropped_no_group)
    DROP_COUNTER(dropped_not_upstream)
    DROP_COUNTER(dropped_overtaken)
    DROP_COUNTER(dropped_link_header)
    DROP_COUNTER(dropped_not_ours)

    apply {
        if (reason != Reason.NONE) {
            mark_to_drop(std);
            COUNT_IF(UNKNOWN_TYPE, dropped_unknown_type)
            COUNT_IF(NOT_SHORTEST, dropped_not_shortest)
            COUNT_IF(TRUNCATED, dropped_truncated)
            COUNT_IF(NO_NAME, dropped_no_name)
            COUNT_IF(NESTED_LENGTH, dropped_nested_length)
            COUNT_IF(COMPONENT_TOO_LONG, dropped_component_too_long)
            COUNT_IF(TOO_MANY_COMPONENTS, dropped_too_many_components)
            COUNT_IF(OPERATION_NAME, dropped_operation_name)
            COUNT_IF(BAD_ELEMENT, dropped_bad_element)
            COUNT_IF(PORT_BEYOND_16, dropped_port_beyond_16)
            COUNT_IF(HOP_LIMIT, dropped_hop_limit)
            COUNT_IF(NO_ROUTE, dropped_no_route)
            COUNT_IF(DUPLICATE, dropped_duplicate)
            COUNT_IF(AGGREGATED, dropped_aggregated)
            COUNT_IF(UNSOLICITED, dropped_unsolicited)
            COUNT_IF(NO_GROUP, dropped_no_group)
            COUNT_IF(NOT_UPSTREAM, dropped_not_upstream)
            COUNT_IF(OVERTAKEN, dropped_overtaken)
            COUNT_IF(LINK_HEADER, dropped_link_header)
            {
                dropped_not_ours.count(0);
            }
        }
    }
}

// What the parser found, and what it cannot say.
control Check(in headers_t hdr, in metadata_t meta, in standard_metadata_t std, inout Reason reason) {
    apply {
        if (std.parser_error == error.UnknownType) {
            reason = Reason.UNKNOWN_TYPE;
        } else if (std.parser_error == error.LinkHeader) {
            reason = Reason.LINK_HEADER;
        } else if (std.parser_error == error.NotShortest) {
            reason = Reason.NOT_SHORTEST;
        } else if (std.parser_error == error.NoName) {
            reason = Reason.NO_NAME;
        } else if (std.parser_error == error.NestedLength) {
            reason = Reason.NESTED_LENGTH;
        } else if (std.parser_error == error.ComponentTooLong) {
            reason = Reason.COMPONENT_TOO_LONG;
        } else if (std.parser_error == error.TooManyComponents) {
            reason = Reason.TOO_MANY_COMPONENTS;
        } else if (std.parser_error == error.BadElement) {
            reason = Reason.BAD_ELEMENT;
        } else if (std.parser_error != error.NoError) {
            reason = Reason.TRUNCATED;
        } else if (meta.in_port == 0) {
            reason = Reason.PORT_BEYOND_16;
        } else if (meta.operation != Operation.NONE && meta.components != 3
                && (meta.components != 5 || meta.numbers != 2)) {
            reason = Reason.OPERATION_NAME;
        } else if (hdr.hop_limit.isValid() && hdr.hop_limit.hops == 0) {
            reason = Reason.HOP_LIMIT;
        }
    }
}

#endif
