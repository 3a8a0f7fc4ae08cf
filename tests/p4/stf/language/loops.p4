// Loops in a control: with tables inside, break, continue, nested, over a range. (p4c drops loops in a control.)
#include <core.p4>
#include <v1model.p4>

header loop_t {
    bit<8>  command; // 1 look up each number, 2 break and continue, 3 nested, 4 a range
    bit<8>  rounds;
    bit<16> result;
}

struct headers_t {
    loop_t loop;
}

struct metadata_t {
    bit<8> i;
}

#include "../unused.p4"

parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.loop);
        transition accept;
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action worth(bit<16> value) {
        hdr.loop.result = hdr.loop.result + value;
    }

    table values {
        key = { meta.i: exact; }
        actions = { worth; NoAction; }
        default_action = NoAction();
        const entries = {
            1: worth(10);
            3: worth(1000);
        }
    }

    apply {
        standard.egress_spec = 1;
        switch (hdr.loop.command) {
            1: {
                for (meta.i = 0; meta.i < hdr.loop.rounds; meta.i = meta.i + 1) {
                    values.apply();
                }
            }
            2: {
                for (bit<8> i = 0; i < hdr.loop.rounds; i = i + 1) {
                    if (i == 1) {
                        continue;
                    }
                    if (i == 4) {
                        break;
                    }
                    hdr.loop.result = hdr.loop.result + (bit<16>)i;
                }
            }
            3: {
                for (bit<8> i = 0; i < hdr.loop.rounds; i = i + 1) {
                    for (bit<8> j = 0; j < i; j = j + 1) {
                        if (j == 2) {
                            break;
                        }
                        hdr.loop.result = hdr.loop.result + 1;
                    }
                }
            }
            4: {
                for (bit<16> i in 16w2 .. 16w5) {
                    if (i != 3) {
                        hdr.loop.result = hdr.loop.result + i;
                    }
                }
            }
        }
    }
}

V1Switch(TestParser(), NoVerification(), TestIngress(), NoEgress(), NoUpdate(), EmitAll()) main;
