"""A program made of a P4Info has that P4Info again, as far as v1model allows."""

from __future__ import annotations

from pathlib import Path

from finsy.proto import p4i
from google.protobuf import text_format

from gradbed.switch.compiler import compile_p4
from tools.conformance.suites.p4info_program import program_of

SOURCE = """
#include <v1model.p4>
@controller_header("packet_in") header packet_in_t { bit<16> port; }
@p4runtime_translation("", string) type bit<32> name_t;
struct seen_t { bit<48> mac; bit<12> vlan; }
struct headers_t { packet_in_t packet_in; }
struct metadata_t { bit<32> a; bit<12> b; name_t n; bit<32> color; seen_t seen; }
parser P(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { transition accept; }
}
control V(inout headers_t h, inout metadata_t m) { apply { } }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    action set(bit<9> port, bit<8> tag) { s.egress_spec = port; }
    action drop() { mark_to_drop(s); }
    @name("packets") counter(100, CounterType.packets_and_bytes) c;
    @name("rates") meter(50, MeterType.bytes) r;
    @max_group_size(5) @name("paths") action_selector(HashAlgorithm.crc16, 32w64, 32w16) paths;
    @name("hits") direct_counter(CounterType.packets) hits;
    table one { key = { m.a : lpm; m.n : exact; } actions = { set; @defaultonly drop; } counters = hits; size = 77;
                support_timeout = true; default_action = drop(); }
    table two { key = { m.a : ternary; m.b : range; } actions = { set; drop; @defaultonly NoAction; } size = 99; }
    table three { key = { m.b : optional; } actions = { drop; } const default_action = drop(); size = 9; }
    table four { key = { m.b : exact; m.a : selector; } actions = { set; drop; } implementation = paths; size = 33; }
    apply { one.apply(); two.apply(); three.apply(); four.apply(); c.count(1); r.execute_meter(1, m.color);
            digest<seen_t>(1, m.seen); }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout metadata_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


def p4info_of(source: str, folder: Path) -> p4i.P4Info:
    program = folder / "program.p4"
    program.write_text(source)
    return text_format.Parse(compile_p4(program).p4info_text, p4i.P4Info())


def described(p4info: p4i.P4Info) -> dict[str, object]:
    """Names and identifiers, what tables match, how large things are."""
    found: dict[str, object] = {}
    for kind in ("actions", "action_profiles", "counters", "direct_counters", "meters"):
        for each in getattr(p4info, kind):
            found[f"{kind} {each.preamble.name}"] = each.preamble.id, getattr(each, "size", None)
    for action in p4info.actions:
        found[f"parameters of {action.preamble.name}"] = [(p.name, p.bitwidth) for p in action.params]
    for table in p4info.tables:
        keys = [(m.id, m.name, m.bitwidth, m.match_type, m.type_name.name) for m in table.match_fields]
        actions = sorted((ref.id, ref.scope) for ref in table.action_refs)
        rest = (table.size, table.implementation_id, table.idle_timeout_behavior, table.const_default_action_id)
        found[table.preamble.name] = table.preamble.id, keys, actions, rest
    for header in p4info.controller_packet_metadata:
        found[header.preamble.name] = [(m.name, m.bitwidth) for m in header.metadata]
    return found


def test_the_same_p4info(tmp_path: Path) -> None:
    asked = p4info_of(SOURCE, tmp_path)
    made = program_of(asked)
    assert not made.left_out
    assert described(p4info_of(made.source, tmp_path)) == described(asked)


def test_what_v1model_does_not_have(tmp_path: Path) -> None:
    asked = p4info_of(SOURCE, tmp_path)
    table = next(table for table in asked.tables if table.preamble.name == "I.one")
    table.match_fields[1].match_type = p4i.MatchField.LPM
    del asked.direct_counters[:]
    made = program_of(asked)
    assert list(made.left_out) == [table.preamble.id] and "two lpm keys" in made.left_out[table.preamble.id]
    assert {t.preamble.name for t in p4info_of(made.source, tmp_path).tables} == {"I.two", "I.three", "I.four"}
