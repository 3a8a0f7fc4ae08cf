"""A person's own study, whose files lie in folders beside each other."""

from __future__ import annotations

STUDY = "studies/own.yaml"
"""With MILLISECONDS in place of a time: ten trials, of which each sends so long."""

FILES = {
    STUDY: """
name: own
system: workload
topology: {kind: ../networks/pair.yaml}
program: {path: ../p4/own.p4, entries: [../p4/own-entries.yaml]}
traffic: {pattern: pairs, duration_ms: MILLISECONDS, frame_bytes: 100}
sweep: {product: {traffic.load: [0.1, 0.2, 0.3, 0.4, 0.5]}}
repetitions: 2
""",
    "networks/pair.yaml": """
link: {rate_mbps: 100, delay_us: 20}
switches: {s1: , s2: }
hosts: {h1: , h2: }
links:
  - [h1, s1]
  - [s1, s2]
  - [s2, h2]
""",
    "p4/own.p4": """
#include <core.p4>
#include <v1model.p4>
#include "../headers/own_headers.p4"

parser OwnParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}
control OwnVerify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control OwnIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action forward(bit<9> port) { standard.egress_spec = port; }
    action drop() { mark_to_drop(standard); }
    table routes {
        key = { hdr.ipv4.dst_addr: exact; }
        actions = { forward; drop; }
        default_action = drop();
    }
    apply { routes.apply(); }
}
control OwnEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
control OwnCompute(inout headers_t hdr, inout metadata_t meta) { apply {} }
control OwnDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); }
}
V1Switch(OwnParser(), OwnVerify(), OwnIngress(), OwnEgress(), OwnCompute(), OwnDeparser()) main;
""",
    "headers/own_headers.p4": """
header ethernet_t { bit<48> dst; bit<48> src; bit<16> ether_type; }
header ipv4_t { bit<64> first; bit<32> second; bit<32> src_addr; bit<32> dst_addr; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t {}
""",
    "p4/own-entries.yaml": """
tables:
  routes:
    - routes: shortest
      match: {dst_addr: $dst_ip}
      action: forward
      params: {port: $port}
""",
}
"""Texts by name."""
