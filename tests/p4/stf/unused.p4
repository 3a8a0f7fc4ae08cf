// The controls that a small program has no use for. Included after headers_t and metadata_t.

control NoVerification(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control NoUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control EmitAll(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}
