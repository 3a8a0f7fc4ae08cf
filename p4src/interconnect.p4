// A hybrid switch M(x,y) of the optical and electrical interconnect (topo/optical_electrical.py, docs/interconnect.md).
// Packets to its own hosts are handed to them; those to its unit go over the mesh; those to other units go by light over
// the less loaded of its two optical switches, and, if the destination's sub-unit is another one, over the mesh before
// that or after it, whichever is less loaded here. No packet takes a second mesh link, so none goes in circles.
//
// Compile-time macro: PORTS.
#include <core.p4>
#include <v1model.p4>

#include "include/load.p4"
#include "include/interconnect/hybrid_parser.p4"
#include "include/interconnect/choose_path.p4"

// Why a packet was dropped: index of the counter `dropped`.
enum bit<32> Cause {
    MALFORMED = 0,          // no IPv4, a wrong checksum, options
    STRAY = 1,              // not meant for this switch: light of a wrong wavelength
    TTL = 2,
    NO_ROUTE = 3,
    NO_WAY = 4              // all links that it could take are down
}
#define CAUSES 5

control InterconnectIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    counter(CAUSES, CounterType.packets_and_bytes) dropped;
    // What was sent by each channel: port * CHANNELS_OF_A_PORT + wavelength, if those are channels, else + 0.
    counter(PORTS * CHANNELS_OF_A_PORT, CounterType.packets_and_bytes) sent;
    ChoosePath() choose_path;
    CountArrival() arrival;
    MixHash() mix_hash;

    here_t here = { 0, 0, 0, Rule.LEAST_LOADED, Rule.LEAST_LOADED, 0, 0, 0 };
    place_t place = { 0, 0, 0 };
    way_t way = { 0, 0, 0, 0 };
    bit<16> wavelength = 0;

    action drop(Cause cause) {
        dropped.count((bit<32>)cause);
        mark_to_drop(std);
    }
    action send(bit<1> by_wavelength) {
        std.egress_spec = way.port;
        std.priority = by_wavelength == 1 ? (bit<3>)wavelength : 0;
        meta.channel = (bit<32>)way.port * CHANNELS_OF_A_PORT + (by_wavelength == 1 ? (bit<32>)wavelength : 0);
        hdr.ethernet.src_addr = hdr.ethernet.dst_addr;
        hdr.ethernet.dst_addr = way.next;
    }
    action shine() {
        hdr.wavelength.setValid();
        hdr.wavelength.priority = 0;
        hdr.wavelength.drop_eligible = 0;
        hdr.wavelength.identifier = (bit<12>)wavelength;
        hdr.wavelength.ether_type = hdr.ethernet.ether_type;
        hdr.ethernet.ether_type = ETHER_TYPE_VLAN;
    }

    action i_am(bit<16> units, bit<16> unit, bit<16> sub_unit, bit<3> plane_rule, bit<3> order_rule,
            bit<1> per_wavelength, bit<48> flowlet_us, bit<32> hash_seed) {
        here.units = units;
        here.unit = unit;
        here.sub_unit = sub_unit;
        here.plane_rule = (Rule)plane_rule;
        here.order_rule = (Rule)order_rule;
        here.per_wavelength = per_wavelength;
        here.flowlet_us = flowlet_us;
        here.hash_seed = hash_seed;
    }
    // Frames for this switch bear its MAC address.
    table self {
        key = { hdr.ethernet.dst_addr: exact; }
        actions = { i_am; NoAction; }
        const default_action = NoAction();
        size = 1;
    }

    action at(bit<16> unit, bit<16> sub_unit, bit<3> usable) {
        place.unit = unit;
        place.sub_unit = sub_unit;
        place.usable = usable;
    }
    // To a host of this switch; or round links that are down, by light if there is a wavelength.
    action straight(port_t port, mac_addr_t next, bit<16> by_wavelength) {
        way.port = port;
        way.next = next;
        wavelength = by_wavelength;
    }
    table destinations {
        key = { hdr.ipv4.dst_addr: lpm; }
        actions = { at; straight; NoAction; }
        const default_action = NoAction();
        size = 65536;
    }

    apply {
        // Light becomes a packet.
        if (hdr.wavelength.isValid()) {
            hdr.ethernet.ether_type = hdr.wavelength.ether_type;
            hdr.wavelength.setInvalid();
        }
        if (std.parser_error != error.NoError || std.checksum_error == 1 || !hdr.ipv4.isValid()) {
            drop(Cause.MALFORMED);
        } else if (!self.apply().hit) {
            drop(Cause.STRAY);
        } else if (hdr.ipv4.ttl <= 1) {
            drop(Cause.TTL);
        } else if (!destinations.apply().hit) {
            drop(Cause.NO_ROUTE);
        } else {
            hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
            if (way.port == 0) {
                bit<32> udp_ports = 0;
                if (hdr.udp.isValid()) {
                    udp_ports = hdr.udp.src_port ++ hdr.udp.dst_port;
                }
                hash(meta.flow_hash, HashAlgorithm.crc32, 32w0,
                    { hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.ipv4.protocol, udp_ports }, 32w0xFFFFFFFF);
                mix_hash.apply(here.hash_seed, meta.flow_hash);
                choose_path.apply(here, place, std, meta, way, wavelength);
            }
            if (way.port == 0) {
                drop(Cause.NO_WAY);
            } else {
                send(here.per_wavelength);
                if (wavelength != 0) {
                    shine();
                }
                sent.count(meta.channel);
                arrival.apply(meta.channel);
            }
        }
    }
}

control InterconnectEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    NoteDeparture() departure;

    apply {
        departure.apply(meta.channel, std);
    }
}

V1Switch(
    HybridParser(),
    HybridVerify(),
    InterconnectIngress(),
    InterconnectEgress(),
    HybridCompute(),
    HybridDeparser()
) main;
