// A header of many fields, and a macro that writes them all: what a trace cuts short.
#include <core.p4>
#include <v1model.p4>

header many_t {
    bit<8> f0;
    bit<8> f1;
    bit<8> f2;
    bit<8> f3;
    bit<8> f4;
    bit<8> f5;
    bit<8> f6;
    bit<8> f7;
    bit<8> f8;
    bit<8> f9;
    bit<8> f10;
    bit<8> f11;
    bit<8> f12;
    bit<8> f13;
    bit<8> f14;
    bit<8> f15;
    bit<8> f16;
    bit<8> f17;
    bit<8> f18;
    bit<8> f19;
    bit<8> f20;
    bit<8> f21;
    bit<8> f22;
    bit<8> f23;
    bit<8> f24;
    bit<8> f25;
    bit<8> f26;
    bit<8> f27;
    bit<8> f28;
    bit<8> f29;
    bit<8> f30;
    bit<8> f31;
}
struct headers_t {
    many_t h;
}
struct meta_t { }

#define WRITE_ALL hdr.h.f0 = 8w100; hdr.h.f1 = 8w101; hdr.h.f2 = 8w102; hdr.h.f3 = 8w103; hdr.h.f4 = 8w104; hdr.h.f5 = 8w105; hdr.h.f6 = 8w106; hdr.h.f7 = 8w107; hdr.h.f8 = 8w108; hdr.h.f9 = 8w109; hdr.h.f10 = 8w110; hdr.h.f11 = 8w111; hdr.h.f12 = 8w112; hdr.h.f13 = 8w113; hdr.h.f14 = 8w114; hdr.h.f15 = 8w115; hdr.h.f16 = 8w116; hdr.h.f17 = 8w117; hdr.h.f18 = 8w118; hdr.h.f19 = 8w119; hdr.h.f20 = 8w120; hdr.h.f21 = 8w121; hdr.h.f22 = 8w122; hdr.h.f23 = 8w123; hdr.h.f24 = 8w124; hdr.h.f25 = 8w125; hdr.h.f26 = 8w126; hdr.h.f27 = 8w127; hdr.h.f28 = 8w128; hdr.h.f29 = 8w129; hdr.h.f30 = 8w130; hdr.h.f31 = 8w131;

parser ManyParser(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        packet.extract(hdr.h);
        transition accept;
    }
}
control NoChecksum(inout headers_t hdr, inout meta_t meta) {
    apply { }
}
control ManyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        WRITE_ALL
    }
}
control ManyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply { }
}
control ManyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.h);
    }
}
V1Switch(ManyParser(), NoChecksum(), ManyIngress(), ManyEgress(), NoChecksum(), ManyDeparser()) main;
