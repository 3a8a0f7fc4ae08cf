// Which of its ways a packet takes: the less loaded one, or what a rule says in its place, for comparison.
#ifndef GRADBED_CHOOSE_WAY_P4
#define GRADBED_CHOOSE_WAY_P4

#include "../mix_hash.p4"
#include "../flowlets.p4"
#include "ways.p4"

// What a flowlet took last.
enum bit<8> Choice { NONE = 0, FIRST_LIGHT = 1, SECOND_LIGHT = 2, MESH = 3 }

// Of two ways that are there; if one is left, it is taken.
enum bit<3> Rule {
    LEAST_LOADED = 0,       // ties by a coin
    FIRST = 1,              // always the first of the two
    RANDOM = 2,
    FLOW_HASH = 3           // a flow keeps its way
}

// Packets. Light first leads to the mesh link at the far end, whose queue is not seen from here, and it may be the busier
// one; after the mesh there are two planes left to choose from. So light first has to be the shorter queue by more.
const bit<32> UNSEEN = 1;

// What this switch is, and how it chooses.
struct here_t {
    bit<16> units;          // N
    bit<16> unit;           // x
    bit<16> sub_unit;       // y
    Rule plane_rule;        // between the two optical switches
    Rule order_rule;        // between the mesh first (FIRST) and light first
    bit<1> per_wavelength;  // whether each wavelength is a channel of its own
    bit<48> flowlet_us;     // after a pause as long a flow chooses anew; 0: every packet does
    bit<32> hash_seed;      // of flows' hashes; each switch has another one
}

// usable: see ways.p4.
struct place_t {
    bit<16> unit;
    bit<16> sub_unit;
    bit<3> usable;
}

// Is it the second one?
control Prefer(in Rule rule, in bit<32> first_load, in bit<32> second_load, in bit<1> coin, in bit<1> hashed,
        out bool second) {
    apply {
        if (rule == Rule.LEAST_LOADED) {
            second = second_load < first_load || (second_load == first_load && coin == 1);
        } else if (rule == Rule.FIRST) {
            second = false;
        } else if (rule == Rule.RANDOM) {
            second = coin == 1;
        } else {
            second = hashed == 1;
        }
    }
}

// way.port 0: none is there. wavelength: 0 over the mesh.
control ChoosePath(in here_t here, in place_t place, in standard_metadata_t std, inout metadata_t meta, out way_t way,
        out bit<16> wavelength) {
    MeshWay() mesh_way;
    LightWays() light_ways;
    Prefer() prefer_plane;
    Prefer() prefer_order;
    RecallFlowlet() recall_flowlet;
    KeepFlowlet() keep_flowlet;

    way_t mesh = { 0, 0, 0, 0 };
    way_t first = { 0, 0, 0, 0 };
    way_t second = { 0, 0, 0, 0 };
    Choice last = Choice.NONE;

    apply {
        bool other_unit = place.unit != here.unit;
        bit<2> flow_bits = meta.flow_hash[17:16];
        bit<1> coin;
        random(coin, 0, 1);
        wavelength = 0;
        if (place.sub_unit != here.sub_unit && (!other_unit || place.usable & MESH_FIRST != 0)) {
            mesh_way.apply(place.sub_unit, meta, mesh);
        }
        way = mesh;
        if (other_unit) {
            // W = (x2 - x1) mod N.
            wavelength = place.unit - here.unit;
            if (place.unit < here.unit) {
                wavelength = wavelength + here.units;
            }
            light_ways.apply(wavelength, place.usable, here.per_wavelength, meta, first, second);
            if (here.flowlet_us != 0) {
                bit<8> recalled;
                recall_flowlet.apply(meta.flow_hash, here.flowlet_us, std, recalled);
                last = (Choice)recalled;
            }

            bool by_second = first.port == 0;
            if (first.port != 0 && second.port != 0) {
                if (last == Choice.FIRST_LIGHT || last == Choice.SECOND_LIGHT) {
                    by_second = last == Choice.SECOND_LIGHT;
                } else {
                    prefer_plane.apply(here.plane_rule, first.load, second.load, coin, flow_bits[0:0], by_second);
                }
            }
            way_t light = first;
            if (by_second) {
                light = second;
            }

            bool light_first = mesh.port == 0;
            if (mesh.port != 0 && light.port != 0) {
                if (last != Choice.NONE) {
                    light_first = last != Choice.MESH;
                } else {
                    // A tie goes to the mesh.
                    prefer_order.apply(here.order_rule, mesh.load, light.load + UNSEEN, 0, flow_bits[1:1],
                        light_first);
                }
            }
            if (light_first) {
                way = light;
                last = by_second ? Choice.SECOND_LIGHT : Choice.FIRST_LIGHT;
            } else {
                wavelength = 0;
                last = Choice.MESH;
            }
            if (here.flowlet_us != 0) {
                keep_flowlet.apply(meta.flow_hash, std, (bit<8>)last);
            }
        }
    }
}

#endif
