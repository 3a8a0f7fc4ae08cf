// An optical switch as a wavelength router: light of wavelength w that comes in by fibre i leaves by fibre
// (i + w) mod UNITS, and nothing else happens to it. It knows no addresses. A wavelength is a VLAN identifier
// (include/vlan.p4). No two fibres' light meets: for each wavelength and each way out there is one way in.
//
// Every wavelength is a channel of its fibre. CHANNELS 1: it keeps its channel (the priority). 0: a fibre is one channel.
//
// Compile-time macros: UNITS (fibres, at most 250), CHANNELS.
#include <core.p4>
#include <v1model.p4>

#include "include/ipv4.p4"
#include "include/vlan.p4"

#ifndef UNITS
#define UNITS 4
#endif
#ifndef CHANNELS
#define CHANNELS 0
#endif

struct headers_t {
    ethernet_t ethernet;
    vlan_t wavelength;
}

struct metadata_t { }

parser OpticalParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHER_TYPE_VLAN: parse_wavelength;
            default: accept;
        }
    }
    state parse_wavelength {
        packet.extract(hdr.wavelength);
        transition accept;
    }
}

control OpticalIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    // By the fibre out and the wavelength: fibre * UNITS + wavelength.
    counter((UNITS + 1) * UNITS, CounterType.packets_and_bytes) light;
    // By the fibre in: what is no light at all, and wavelengths that the switch does not have.
    counter(UNITS + 1, CounterType.packets_and_bytes) dark;
    counter(UNITS + 1, CounterType.packets_and_bytes) unknown_wavelength;

    apply {
        if (!hdr.wavelength.isValid()) {
            dark.count((bit<32>)std.ingress_port);
            mark_to_drop(std);
        } else if (hdr.wavelength.identifier >= UNITS) {
            unknown_wavelength.count((bit<32>)std.ingress_port);
            mark_to_drop(std);
        } else {
            // Fibres count from 1.
            bit<16> fibre = (bit<16>)std.ingress_port + (bit<16>)hdr.wavelength.identifier;
            if (fibre > UNITS) {
                fibre = fibre - UNITS;
            }
            light.count((bit<32>)fibre * UNITS + (bit<32>)hdr.wavelength.identifier);
            std.egress_spec = (port_t)fibre;
#if CHANNELS
            std.priority = (bit<3>)hdr.wavelength.identifier;
#endif
        }
    }
}

control OpticalEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    apply { }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control OpticalDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.wavelength);
    }
}

V1Switch(
    OpticalParser(),
    NoChecksum(),
    OpticalIngress(),
    OpticalEgress(),
    NoChecksum(),
    OpticalDeparser()
) main;
