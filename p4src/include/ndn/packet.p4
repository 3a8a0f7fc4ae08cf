// NDN packets (Packet Format v0.3) straight on Ethernet: headers, metadata, what can be wrong with them.
//
// Names have at most 8 components of at most 32 bytes. Every TLV has a type of one byte; lengths have one byte, or
// three where that is the shortest form, as the format demands.
#ifndef GRADBED_NDN_PACKET_P4
#define GRADBED_NDN_PACKET_P4

#include "../ipv4.p4"
#include "../lanes.p4"

const bit<16> ETHER_TYPE_NDN = 0x8624;

const bit<8> TYPE_INTEREST = 0x05;
const bit<8> TYPE_DATA = 0x06;
const bit<8> TYPE_NAME = 0x07;
const bit<8> TYPE_IMPLICIT_DIGEST = 0x01;   // of a component: SHA-256 of the Data
// NDNLPv2: what is around a packet on a link.
const bit<8> TYPE_LP_PACKET = 0x64;
const bit<8> TYPE_FRAGMENT = 0x50;
const bit<8> LENGTH_IN_TWO_BYTES = 253;     // the length follows
const bit<8> MOST_COMPONENT_BYTES = 32;

// "insert", "delete" and "distribute" as first components (type 8), with type and length.
const bit<64> COMPONENT_INSERT = 0x0806696e73657274;
const bit<64> COMPONENT_DELETE = 0x080664656c657465;
const bit<96> COMPONENT_DISTRIBUTE = 0x080a64697374726962757465;
const bit<80> DISTRIBUTE = 0x64697374726962757465;

// SignatureInfo with SignatureType 200 (null), and a SignatureValue of no bytes.
const bit<56> NULL_SIGNATURE = 0x16031b01c81700;
const bit<16> EMPTY_CONTENT = 0x1500;
const bit<16> EMPTY_BODY_BYTES = 9;         // EMPTY_CONTENT and NULL_SIGNATURE

// A gradient's Data after its name: Content of 16 bytes and the lanes, and NULL_SIGNATURE.
#define CONTENT_BYTES (16 + 4 * LANES)
#define BODY_BYTES (4 + CONTENT_BYTES + 7)
// The content is longer than 252 bytes, so that its length takes three.
#if LANES < 64
#error "LANES must be at least 64"
#endif
const bit<16> CONTENT_IN_TWO_BYTES = 0x15fd;

error {
    UnknownType,        // neither Interest nor Data
    LinkHeader,         // an LpPacket with more than a fragment
    NotShortest,        // a length of three bytes that one would do for, or of more
    Truncated,          // the frame ends before the packet does
    NoName,             // the first TLV is no name, or the name has no component
    NestedLength,       // a TLV is longer than the one that it is in
    ComponentTooLong,
    TooManyComponents,
    BadElement,         // of an Interest: critical and not known here, not in its place, or of a wrong length
    Ipv4Options
}

enum bit<2> Operation {
    NONE = 0,           // an ordinary name
    INSERTION = 1,      // /insert/PUBLISHER/TRAINING
    DISTRIBUTION = 2,   // /distribute/PUBLISHER/TRAINING[/VERSION/SEGMENT]
    DELETION = 3        // /delete/PUBLISHER/TRAINING
}

header tlv_t {
    bit<8> type;
    bit<8> length;
}

header wide_tlv_t {
    bit<8> type;
    bit<8> marker;
    bit<16> length;
}

// Nack with NackReason, the header of an LpPacket with the Interest that is refused.
header nack_t {
    bit<24> nack_type;
    bit<8> nack_length;
    bit<24> reason_type;
    bit<8> reason_length;
    bit<8> reason;
}

header component_t {
    bit<8> type;
    bit<8> length;
    varbit<256> value;
}

// The component that a router writes in place of "insert".
header distribute_t {
    bit<16> type_and_length;
    bit<80> value;
}

// Of an Interest, after those that routers look at.
header element_t {
    bit<8> type;
    bit<8> length;
    varbit<2016> value;
}

header nonce_t {
    bit<16> type_and_length;
    bit<32> value;
}

header lifetime_1_t {
    bit<16> type_and_length;
    bit<8> ms;
}
header lifetime_2_t {
    bit<16> type_and_length;
    bit<16> ms;
}
header lifetime_4_t {
    bit<16> type_and_length;
    bit<32> ms;
}
header lifetime_8_t {
    bit<16> type_and_length;
    bit<64> ms;
}

header hop_limit_t {
    bit<16> type_and_length;
    bit<8> hops;
}

header gradient_content_t {
    bit<16> type_and_marker;
    bit<16> length;
    bit<64> loss;               // IEEE 754 binary64
    bit<64> scales_and_flags;   // of the tensors; hosts alone look at them
}

header empty_content_t {
    bit<16> type_and_length;
}

header signature_t {
    bit<56> null_signature;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    tlv_t link;
    wide_tlv_t wide_link;
    nack_t nack;
    tlv_t fragment;
    wide_tlv_t wide_fragment;
    tlv_t packet;
    wide_tlv_t wide_packet;
    tlv_t name;
    wide_tlv_t wide_name;
    distribute_t distribute;
    component_t c1;
    component_t c2;
    component_t c3;
    component_t c4;
    component_t c5;
    component_t c6;
    component_t c7;
    component_t c8;
    tlv_t can_be_prefix;
    tlv_t must_be_fresh;
    nonce_t nonce;
    lifetime_1_t lifetime_1;
    lifetime_2_t lifetime_2;
    lifetime_4_t lifetime_4;
    lifetime_8_t lifetime_8;
    hop_limit_t hop_limit;
    element_t element_1;
    element_t element_2;
    empty_content_t empty_content;
    gradient_content_t content;
    lanes_t lanes;
    signature_t signature;
}

// A name's identity: CRC-32 in the upper half, a fingerprint by other functions in the lower (names.p4).
typedef bit<64> name_id_t;
// Bit p - 1 is port p.
typedef bit<16> port_set_t;

struct metadata_t {
    bit<8> packet_type;
    Operation operation;
    bit<16> left;           // bytes of the packet after what has been parsed
    bit<16> name_left;      // likewise of the name
    bit<4> components;
    bit<2> numbers;         // how many of a push's version and segment are numbers
    bit<32> version;
    bit<32> segment;
    name_id_t id_1;         // of the first component, of the first two, ...; names.p4 says in which order
    name_id_t id_2;
    name_id_t id_3;
    name_id_t id_4;
    name_id_t id_5;
    name_id_t id_6;
    name_id_t id_7;
    name_id_t id_8;
    name_id_t id;           // of the whole name
    name_id_t parent;       // of an ordinary name without its last component
    bit<8> last_type;       // of that component
    port_set_t in_port;     // the port by which the packet came
    port_t upstream;        // where the FIB sends Interests; 0: nowhere
    port_set_t ports;       // a set that there must be a multicast group for
    bit<1> copy;            // the packet goes to all of `ports`
    bit<1> nacked;          // the packet is an Interest that goes back
}

#endif
