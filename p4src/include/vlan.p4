// A VLAN tag (IEEE 802.1Q). On light it stands for the wavelength: its VLAN identifier is the number.
#ifndef GRADBED_VLAN_P4
#define GRADBED_VLAN_P4

const bit<16> ETHER_TYPE_VLAN = 0x8100;

header vlan_t {
    bit<3> priority;
    bit<1> drop_eligible;
    bit<12> identifier;
    bit<16> ether_type;
}

#endif
