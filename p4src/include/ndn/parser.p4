// The parser: one state for each component, so that it ends after the eighth.
#ifndef GRADBED_NDN_PARSER_P4
#define GRADBED_NDN_PARSER_P4

#include "packet.p4"

// Types of components (naming conventions, revision 3), as they stand before a length.
const bit<16> SEGMENT = 0x3200;
const bit<16> VERSION = 0x3600;

// Component n, whose type and length are `head`, lies within the name.
#define CHECK_COMPONENT \
        head = packet.lookahead<bit<16>>(); \
        verify(head[7:0] <= MOST_COMPONENT_BYTES, error.ComponentTooLong); \
        verify(meta.name_left >= 2 + (bit<16>)head[7:0], error.NestedLength); \
        meta.name_left = meta.name_left - 2 - (bit<16>)head[7:0];

#define COMPONENT_STATES(n, next) \
    state component_##n { \
        transition select(meta.name_left) { \
            0: after_name; \
            default: check_##n; \
        } \
    } \
    state check_##n { \
        CHECK_COMPONENT \
        meta.components = n; \
        packet.extract(hdr.c##n, (bit<32>)head[7:0] << 3); \
        transition next; \
    }

// Component n of a push is a number: a type and the number of 1, 2 or 4 bytes.
#define NUMBER_STATES(n, kind, number, next) \
    state component_##n { \
        transition select(meta.name_left) { \
            0: after_name; \
            default: check_##n; \
        } \
    } \
    state check_##n { \
        CHECK_COMPONENT \
        meta.components = n; \
        transition select(meta.operation, head) { \
            (Operation.DISTRIBUTION, kind + 1): number_##n##_1; \
            (Operation.DISTRIBUTION, kind + 2): number_##n##_2; \
            (Operation.DISTRIBUTION, kind + 4): number_##n##_4; \
            default: take_##n; \
        } \
    } \
    NUMBER_STATE(n, 1, 24, number) \
    NUMBER_STATE(n, 2, 32, number) \
    NUMBER_STATE(n, 4, 48, number) \
    state take_##n { \
        packet.extract(hdr.c##n, (bit<32>)head[7:0] << 3); \
        transition next; \
    }
#define NUMBER_STATE(n, bytes, bits, number) \
    state number_##n##_##bytes { \
        meta.number = (bit<32>)packet.lookahead<bit<bits>>()[8 * bytes - 1:0]; \
        meta.numbers = meta.numbers + 1; \
        transition take_##n; \
    }

// The element ahead is one that may be ignored, and its length is within the Interest.
#define CHECK_OTHER \
        head = packet.lookahead<bit<16>>(); \
        verify(meta.left >= 2, error.NestedLength); \
        verify(head[15:8] >= 32 && head[8:8] == 0 && head[15:8] < LENGTH_IN_TWO_BYTES, error.BadElement);

#define OTHER_STATES(n, next) \
    state other_##n { \
        CHECK_OTHER \
        transition select(head[7:0]) { \
            253: last_wide; \
            254 &&& 254: too_wide; \
            default: narrow_##n; \
        } \
    } \
    state narrow_##n { \
        TAKE(2 + (bit<16>)head[7:0]) \
        packet.extract(hdr.element_##n, (bit<32>)head[7:0] << 3); \
        transition select(meta.left) { \
            0: accept; \
            default: next; \
        } \
    }

// The type of a packet is known, and so is how long its length is.
#define PACKET_CASES(narrow, wide, other) \
            0x05fd: wide; \
            0x06fd: wide; \
            0x05fe &&& 0xfffe: too_wide; \
            0x06fe &&& 0xfffe: too_wide; \
            0x0500 &&& 0xff00: narrow; \
            0x0600 &&& 0xff00: narrow; \
            default: other;

#define TAKE(bytes) \
        verify(meta.left >= (bytes), error.NestedLength); \
        meta.left = meta.left - (bytes);

parser NdnParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    bit<16> head = 0;
    bit<16> wide = 0;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_NDN: parse_packet;
            ETHER_TYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.ihl == 5, error.Ipv4Options);
        transition accept;
    }

    // ---- The packet's type and length ----

    state parse_packet {
        head = packet.lookahead<bit<16>>();
        meta.packet_type = head[15:8];
        transition select(head) {
            PACKET_CASES(narrow_packet, wide_packet, perhaps_link)
        }
    }
    state narrow_packet {
        packet.extract(hdr.packet);
        meta.left = (bit<16>)hdr.packet.length;
        verify(std.packet_length >= 16 + (bit<32>)meta.left, error.Truncated);
        transition parse_name;
    }
    state wide_packet {
        packet.extract(hdr.wide_packet);
        meta.left = hdr.wide_packet.length;
        verify(meta.left >= (bit<16>)LENGTH_IN_TWO_BYTES, error.NotShortest);
        verify(std.packet_length >= 18 + (bit<32>)meta.left, error.Truncated);
        transition parse_name;
    }
    // ---- A packet in an LpPacket, which has nothing else: what is around it goes ----

    state perhaps_link {
        transition select(head) {
            0x64fd: wide_link;
            0x64fe &&& 0xfffe: too_wide;
            0x6400 &&& 0xff00: narrow_link;
            default: unknown_type;
        }
    }
    state unknown_type {
        verify(false, error.UnknownType);
        transition reject;
    }
    state narrow_link {
        packet.extract(hdr.link);
        meta.left = (bit<16>)hdr.link.length;
        verify(std.packet_length >= 16 + (bit<32>)meta.left, error.Truncated);
        transition fragment;
    }
    state wide_link {
        packet.extract(hdr.wide_link);
        meta.left = hdr.wide_link.length;
        verify(meta.left >= (bit<16>)LENGTH_IN_TWO_BYTES, error.NotShortest);
        verify(std.packet_length >= 18 + (bit<32>)meta.left, error.Truncated);
        transition fragment;
    }
    state fragment {
        verify(meta.left >= 2, error.LinkHeader);
        head = packet.lookahead<bit<16>>();
        transition select(head) {
            0x50fd: wide_fragment;
            0x50fe &&& 0xfffe: too_wide;
            0x5000 &&& 0xff00: narrow_fragment;
            default: link_header;
        }
    }
    state link_header {
        verify(false, error.LinkHeader);
        transition reject;
    }
    state narrow_fragment {
        TAKE(2)
        packet.extract(hdr.fragment);
        verify(meta.left == (bit<16>)hdr.fragment.length, error.NestedLength);
        transition inner_packet;
    }
    state wide_fragment {
        TAKE(4)
        packet.extract(hdr.wide_fragment);
        verify(hdr.wide_fragment.length >= (bit<16>)LENGTH_IN_TWO_BYTES, error.NotShortest);
        verify(meta.left == hdr.wide_fragment.length, error.NestedLength);
        transition inner_packet;
    }
    state inner_packet {
        verify(meta.left >= 2, error.NestedLength);
        head = packet.lookahead<bit<16>>();
        meta.packet_type = head[15:8];
        transition select(head) {
            PACKET_CASES(narrow_inner, wide_inner, unknown_type)
        }
    }
    state narrow_inner {
        TAKE(2)
        packet.extract(hdr.packet);
        verify(meta.left == (bit<16>)hdr.packet.length, error.NestedLength);
        transition parse_name;
    }
    state wide_inner {
        TAKE(4)
        packet.extract(hdr.wide_packet);
        verify(hdr.wide_packet.length >= (bit<16>)LENGTH_IN_TWO_BYTES, error.NotShortest);
        verify(meta.left == hdr.wide_packet.length, error.NestedLength);
        transition parse_name;
    }

    state too_wide {
        verify(false, error.NotShortest);
        transition reject;
    }

    // ---- The name ----

    state parse_name {
        verify(meta.left >= 2, error.NoName);
        head = packet.lookahead<bit<16>>();
        verify(head[15:8] == TYPE_NAME, error.NoName);
        transition select(head[7:0]) {
            0: no_name;
            253: wide_name;
            254 &&& 254: too_wide;
            default: narrow_name;
        }
    }
    state no_name {
        verify(false, error.NoName);
        transition reject;
    }
    state narrow_name {
        packet.extract(hdr.name);
        meta.name_left = (bit<16>)hdr.name.length;
        TAKE(2)
        TAKE(meta.name_left)
        transition check_1;
    }
    state wide_name {
        TAKE(4)
        packet.extract(hdr.wide_name);
        meta.name_left = hdr.wide_name.length;
        verify(meta.name_left >= (bit<16>)LENGTH_IN_TWO_BYTES, error.NotShortest);
        TAKE(meta.name_left)
        transition check_1;
    }

    // The first component may say what to do with the others.
    state check_1 {
        CHECK_COMPONENT
        meta.components = 1;
        transition select(head) {
            COMPONENT_INSERT[63:48]: operation_of_six;
            COMPONENT_DISTRIBUTE[95:80]: operation_of_ten;
            default: take_1;
        }
    }
    state operation_of_six {
        transition select(packet.lookahead<bit<64>>()) {
            COMPONENT_INSERT: insertion;
            COMPONENT_DELETE: deletion;
            default: take_1;
        }
    }
    state operation_of_ten {
        transition select(packet.lookahead<bit<96>>()) {
            COMPONENT_DISTRIBUTE: distribution;
            default: take_1;
        }
    }
    state insertion {
        meta.operation = Operation.INSERTION;
        transition take_1;
    }
    state deletion {
        meta.operation = Operation.DELETION;
        transition take_1;
    }
    state distribution {
        meta.operation = Operation.DISTRIBUTION;
        transition take_1;
    }
    state take_1 {
        packet.extract(hdr.c1, (bit<32>)head[7:0] << 3);
        transition component_2;
    }
    COMPONENT_STATES(2, component_3)
    COMPONENT_STATES(3, component_4)
    NUMBER_STATES(4, VERSION, version, component_5)
    NUMBER_STATES(5, SEGMENT, segment, component_6)
    COMPONENT_STATES(6, component_7)
    COMPONENT_STATES(7, component_8)
    COMPONENT_STATES(8, component_9)
    state component_9 {
        verify(meta.name_left == 0, error.TooManyComponents);
        transition after_name;
    }

    state after_name {
        transition select(meta.packet_type, meta.left) {
            (TYPE_INTEREST, 0): accept;
            (TYPE_INTEREST, _): interest;
            (TYPE_DATA, BODY_BYTES): gradient_body;
            default: accept;
        }
    }

    // ---- The rest of an Interest, in its order: each part may be missing. What is not known here may follow, if it is
    // ---- not critical (an even type from 32 on), and stays as it is ----

    state interest {
        transition select(packet.lookahead<bit<16>>()) {
            0x2100: can_be_prefix;
            0x1200: must_be_fresh;
            0x0a04: nonce;
            default: guiders;
        }
    }
    state can_be_prefix {
        TAKE(2)
        packet.extract(hdr.can_be_prefix);
        transition select(meta.left) {
            0: accept;
            default: after_can_be_prefix;
        }
    }
    state after_can_be_prefix {
        transition select(packet.lookahead<bit<16>>()) {
            0x1200: must_be_fresh;
            0x0a04: nonce;
            default: guiders;
        }
    }
    state must_be_fresh {
        TAKE(2)
        packet.extract(hdr.must_be_fresh);
        transition select(meta.left) {
            0: accept;
            default: after_must_be_fresh;
        }
    }
    state after_must_be_fresh {
        transition select(packet.lookahead<bit<16>>()) {
            0x0a04: nonce;
            default: guiders;
        }
    }
    state nonce {
        TAKE(6)
        packet.extract(hdr.nonce);
        transition select(meta.left) {
            0: accept;
            default: guiders;
        }
    }
    state guiders {
        transition select(packet.lookahead<bit<16>>()) {
            0x0c01: lifetime_1;
            0x0c02: lifetime_2;
            0x0c04: lifetime_4;
            0x0c08: lifetime_8;
            0x2201: hop_limit;
            0x2200 &&& 0xff00: bad_element;
            default: other_1;
        }
    }
    state lifetime_1 {
        TAKE(3)
        packet.extract(hdr.lifetime_1);
        transition after_lifetime;
    }
    state lifetime_2 {
        TAKE(4)
        packet.extract(hdr.lifetime_2);
        transition after_lifetime;
    }
    state lifetime_4 {
        TAKE(6)
        packet.extract(hdr.lifetime_4);
        transition after_lifetime;
    }
    state lifetime_8 {
        TAKE(10)
        packet.extract(hdr.lifetime_8);
        transition after_lifetime;
    }
    state after_lifetime {
        transition select(meta.left) {
            0: accept;
            default: perhaps_hop_limit;
        }
    }
    state perhaps_hop_limit {
        transition select(packet.lookahead<bit<16>>()) {
            0x2201: hop_limit;
            0x2200 &&& 0xff00: bad_element;
            default: other_1;
        }
    }
    state hop_limit {
        TAKE(3)
        packet.extract(hdr.hop_limit);
        transition select(meta.left) {
            0: accept;
            default: other_1;
        }
    }

    // ---- Up to three others (ApplicationParameters, and a signature's two); the last stays in the payload ----

    OTHER_STATES(1, other_2)
    OTHER_STATES(2, last_other)
    state last_other {
        CHECK_OTHER
        transition select(head[7:0]) {
            253: last_wide;
            254 &&& 254: too_wide;
            default: last_narrow;
        }
    }
    state last_narrow {
        verify(meta.left >= 2 + (bit<16>)head[7:0], error.NestedLength);
        verify(meta.left == 2 + (bit<16>)head[7:0], error.BadElement);
        transition accept;
    }
    state last_wide {
        wide = packet.lookahead<bit<32>>()[15:0];
        verify(wide >= (bit<16>)LENGTH_IN_TWO_BYTES, error.NotShortest);
        verify(meta.left >= 4 && meta.left - 4 >= wide, error.NestedLength);
        verify(meta.left - 4 == wide, error.BadElement);
        transition accept;
    }
    state bad_element {
        verify(false, error.BadElement);
        transition reject;
    }

    // ---- Data of a gradient's form, which the content store can hold ----

    state gradient_body {
        transition select(packet.lookahead<bit<32>>()) {
            (bit<32>)CONTENT_IN_TWO_BYTES << 16 | CONTENT_BYTES: gradient;
            default: accept;
        }
    }
    state gradient {
        packet.extract(hdr.content);
        packet.extract(hdr.lanes);
        packet.extract(hdr.signature);
        transition accept;
    }
}

control NdnDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.link);
        packet.emit(hdr.wide_link);
        packet.emit(hdr.nack);
        packet.emit(hdr.fragment);
        packet.emit(hdr.wide_fragment);
        packet.emit(hdr.packet);
        packet.emit(hdr.wide_packet);
        packet.emit(hdr.name);
        packet.emit(hdr.wide_name);
        packet.emit(hdr.distribute);
        packet.emit(hdr.c1);
        packet.emit(hdr.c2);
        packet.emit(hdr.c3);
        packet.emit(hdr.c4);
        packet.emit(hdr.c5);
        packet.emit(hdr.c6);
        packet.emit(hdr.c7);
        packet.emit(hdr.c8);
        packet.emit(hdr.can_be_prefix);
        packet.emit(hdr.must_be_fresh);
        packet.emit(hdr.nonce);
        packet.emit(hdr.lifetime_1);
        packet.emit(hdr.lifetime_2);
        packet.emit(hdr.lifetime_4);
        packet.emit(hdr.lifetime_8);
        packet.emit(hdr.hop_limit);
        packet.emit(hdr.element_1);
        packet.emit(hdr.element_2);
        packet.emit(hdr.empty_content);
        packet.emit(hdr.content);
        packet.emit(hdr.lanes);
        packet.emit(hdr.signature);
    }
}

control NdnVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

control NdnCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(), IPV4_CHECKSUM_INPUT, hdr.ipv4.header_checksum, HashAlgorithm.csum16);
    }
}

#endif
