// The ways out that are there. A way whose port is down is not: its entry is a member of an action selector that watches
// the port, which data planes leave out by themselves, without a controller.
#ifndef GRADBED_WAYS_P4
#define GRADBED_WAYS_P4

#include "hybrid_parser.p4"
#include "../load.p4"

// `usable`, of a destination.
const bit<3> FIRST_PLANE = 1;
const bit<3> SECOND_PLANE = 2;
const bit<3> MESH_FIRST = 4;

struct way_t {
    port_t port;            // 0: there is none
    mac_addr_t next;
    bit<32> channel;        // in `waiting`
    bit<32> load;
}

// The way to another hybrid switch of the unit.
control MeshWay(in bit<16> sub_unit, inout metadata_t meta, out way_t way) {
    action mesh(port_t port, mac_addr_t next) {
        way.port = port;
        way.next = next;
    }
    table mesh_ways {
        key = { sub_unit: exact @name("sub_unit"); meta.flow_hash: selector; }
        actions = { mesh; NoAction; }
        @name("mesh_ways_by_port")
        implementation = action_selector(HashAlgorithm.crc16, 256, 8);
        size = 256;
    }

    apply {
        way.port = 0;
        way.next = 0;
        way.load = 0;
        mesh_ways.apply();
        way.channel = (bit<32>)way.port * CHANNELS_OF_A_PORT;
        if (way.port != 0) {
            waiting.read(way.load, way.channel);
        }
    }
}

// The ways to a hybrid switch of another unit by one optical switch or the other.
control LightWays(in bit<16> wavelength, in bit<3> usable, in bit<1> per_wavelength, inout metadata_t meta,
        out way_t first, out way_t second) {
    action first_light(port_t port, mac_addr_t next) {
        first.port = port;
        first.next = next;
    }
    action second_light(port_t port, mac_addr_t next) {
        second.port = port;
        second.next = next;
    }
    table first_lights {
        key = { wavelength: exact @name("wavelength"); meta.flow_hash: selector; }
        actions = { first_light; NoAction; }
        @name("first_lights_by_port")
        implementation = action_selector(HashAlgorithm.crc16, 256, 8);
        size = 256;
    }
    table second_lights {
        key = { wavelength: exact @name("wavelength"); meta.flow_hash: selector; }
        actions = { second_light; NoAction; }
        @name("second_lights_by_port")
        implementation = action_selector(HashAlgorithm.crc16, 256, 8);
        size = 256;
    }

    apply {
        first.port = 0;
        first.next = 0;
        first.load = 0;
        second.port = 0;
        second.next = 0;
        second.load = 0;
        if (usable & FIRST_PLANE != 0) {
            first_lights.apply();
        }
        if (usable & SECOND_PLANE != 0) {
            second_lights.apply();
        }
        bit<32> place = per_wavelength == 1 ? (bit<32>)wavelength : 32w0;
        first.channel = (bit<32>)first.port * CHANNELS_OF_A_PORT + place;
        second.channel = (bit<32>)second.port * CHANNELS_OF_A_PORT + place;
        if (first.port != 0) {
            waiting.read(first.load, first.channel);
        }
        if (second.port != 0) {
            waiting.read(second.load, second.channel);
        }
    }
}

#endif
