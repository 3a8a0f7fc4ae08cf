// Names as numbers. A name's identity follows from that of the name without its last component, and that component:
// a CRC-32 that finds rows (rows.p4), and CRC-16 and the Internet checksum as the fingerprint, which tell two names apart
// whose CRC-32 is the same.
//
// /distribute/PUBLISHER/TRAINING/VERSION/SEGMENT is what a push calls what a probe calls
// /TRAINING/PUBLISHER/VERSION/SEGMENT. Both have the identity of the latter; the first component, which is an
// operation, has no part in it.
#ifndef GRADBED_NDN_NAMES_P4
#define GRADBED_NDN_NAMES_P4

#include "packet.p4"

#define EXTEND(identity, component) \
    hash(number, HashAlgorithm.crc32, 32w0, \
        { identity, component.type, component.length, component.value }, 64w0x100000000); \
    hash(high, HashAlgorithm.crc16, 16w0, \
        { identity, component.type, component.length, component.value }, 32w0x10000); \
    hash(low, HashAlgorithm.csum16, 16w0, \
        { identity, component.type, component.length, component.value }, 32w0x10000); \
    meta.id = number ++ high ++ low;

#define EXTEND_IF_VALID(component, prefix) \
    if (component.isValid()) { \
        meta.parent = meta.id; \
        meta.last_type = component.type; \
        EXTEND(meta.id, component) \
        prefix = meta.id; \
    }

control Names(in headers_t hdr, inout metadata_t meta) {
    bit<32> number = 0;
    bit<16> high = 0;
    bit<16> low = 0;

    apply {
        meta.id = 0;
        if (meta.operation == Operation.NONE) {
            meta.parent = 0;
            meta.last_type = 0;
            EXTEND(meta.id, hdr.c1)
            meta.id_1 = meta.id;
            EXTEND_IF_VALID(hdr.c2, meta.id_2)
            EXTEND_IF_VALID(hdr.c3, meta.id_3)
        } else if (hdr.c3.isValid()) {
            EXTEND(meta.id, hdr.c3)
            meta.id_1 = meta.id;
            EXTEND(meta.id, hdr.c2)
            meta.id_2 = meta.id;
        }
        if (meta.operation == Operation.NONE) {
            EXTEND_IF_VALID(hdr.c4, meta.id_4)
            EXTEND_IF_VALID(hdr.c5, meta.id_5)
            EXTEND_IF_VALID(hdr.c6, meta.id_6)
            EXTEND_IF_VALID(hdr.c7, meta.id_7)
            EXTEND_IF_VALID(hdr.c8, meta.id_8)
        } else {
            EXTEND_IF_VALID(hdr.c4, meta.id_3)
            EXTEND_IF_VALID(hdr.c5, meta.id_4)
        }
    }
}

#endif
