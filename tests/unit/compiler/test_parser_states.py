"""What compiled parsers do to packets."""

from __future__ import annotations

from json import dumps

import pytest

from tests.unit.compiler.bmv2_model import Bmv2Model, Packet
from tests.unit.compiler.programs import BYTES, PARSER, compile_text, control, model, run

TYPES = """
header kind_t { bit<8> kind; }
header bytes_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
header vary_t { bit<8> length; varbit<64> body; }
struct headers_t { kind_t kind; bytes_t h; bytes_t g; vary_t v; }
struct meta_t { bit<8> x; bit<16> y; }
"""


def parser(states: str, before: str = "", locals_: str = "") -> Bmv2Model:
    text = (
        f"{before}\nparser P(packet_in packet, out headers_t hdr, inout meta_t meta,"
        " inout standard_metadata_t std) {\n"
        f"{locals_}\n{states}\n}}\n"
    )
    return model(control("", types=TYPES, parser=text))


def valid(switch: Bmv2Model, data: list[int]) -> tuple[set[str], int]:
    """Valid headers, parser error."""
    packet = switch.run(bytes(data))[1]
    return packet.valid - {"lookahead"}, packet.fields.get(("standard_metadata", "parser_error"), 0)


KINDS = """
state start {
    packet.extract(hdr.kind);
    transition select(hdr.kind.kind) { %s }
}
state one { packet.extract(hdr.h); transition accept; }
state two { packet.extract(hdr.g); transition accept; }
"""


def test_select_takes_the_first_label_that_matches() -> None:
    switch = parser(KINDS % "1: one; 0x10 &&& 0xF0: two; 5 .. 9: one; default: accept;")
    rest = [0, 0, 0, 0]
    assert valid(switch, [1, *rest])[0] == {"kind", "h"}
    assert valid(switch, [0x1F, *rest])[0] == {"kind", "g"}
    assert [valid(switch, [kind, *rest])[0] == {"kind", "h"} for kind in range(4, 11)] == [False] + [True] * 5 + [
        False
    ]


def test_no_match_is_an_error() -> None:
    switch = parser(KINDS % "1: one;")
    assert valid(switch, [2, 0, 0, 0, 0]) == ({"kind"}, 2)


def test_short_packets_are_an_error() -> None:
    switch = parser(KINDS % "default: one;")
    assert valid(switch, [2, 0, 0]) == ({"kind"}, 1)


def test_tuples_of_labels() -> None:
    switch = parser(
        "state start { packet.extract(hdr.h); transition select(hdr.h.a, hdr.h.b[3:0]) {"
        " (1, 2): two; (_, 3 &&& 7): two; (7, _): two; default: accept; } }"
        " state two { packet.extract(hdr.g); transition accept; }"
    )
    cases = {(1, 2): True, (1, 4): False, (9, 0xB): True, (9, 3): True, (7, 0): True, (8, 0): False}
    for (a, b), expected in cases.items():
        assert ("g" in valid(switch, [a, b, 0, 0, 0, 0, 0, 0])[0]) == expected, (a, b)


def test_lookahead_leaves_the_cursor() -> None:
    switch = parser(
        "state start { transition select(packet.lookahead<bit<16>>()[7:0]) { 9: one; default: accept; } }"
        " state one { packet.extract(hdr.h); transition accept; }"
    )
    assert valid(switch, [0, 9, 0, 0])[0] == {"h"}
    assert valid(switch, [9, 0, 0, 0])[0] == set()


def test_lookahead_of_a_header_is_one_look() -> None:
    """A packet that ends inside the header fails it as a whole."""
    text = "state start { hdr.g = packet.lookahead<bytes_t>(); packet.extract(hdr.h); transition accept; }"
    head = "parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std)"
    json = compile_text(control("", parser=f"{head} {{ {text} }}")).json
    operations = [each for state in json["parsers"][0]["parse_states"] for each in state["parser_ops"]]
    sources = [each["parameters"][1] for each in operations if each["op"] == "set"]
    looks = [source["value"] for source in sources if source["type"] == "lookahead"]
    assert looks == [[0, 32]]


def test_lookahead_of_a_header() -> None:
    switch = parser("state start { hdr.g = packet.lookahead<bytes_t>(); packet.extract(hdr.h); transition accept; }")
    packet = switch.run(bytes([1, 2, 3, 4]))[1]
    assert [packet.fields["g", name] for name in "abcd"] == [1, 2, 3, 4]


def test_advance_and_varbit() -> None:
    switch = parser(
        "state start { packet.advance(8); bit<8> n = packet.lookahead<bit<8>>();"
        " packet.extract(hdr.v, (bit<32>)n << 3); packet.extract(hdr.kind); transition accept; }"
    )
    packet = Packet()
    switch.parse(packet, bytes([99, 2, 0xAB, 0xCD, 7]))
    assert packet.fields["v", "body"] == 0xABCD
    assert packet.fields["kind", "kind"] == 7


def test_verify_stops_with_its_error() -> None:
    before = "error { Strange }"
    switch = parser(
        "state start { packet.extract(hdr.kind); verify(hdr.kind.kind == 1, error.Strange); transition one; }"
        " state one { packet.extract(hdr.h); transition accept; }",
        before,
    )
    assert valid(switch, [1, 0, 0, 0, 0]) == ({"kind", "h"}, 0)
    assert valid(switch, [2, 0, 0, 0, 0]) == ({"kind"}, 7)


def test_explicit_reject_stops() -> None:
    switch = parser(KINDS % "1: one; default: reject;")
    assert valid(switch, [2, 0, 0, 0, 0])[0] == {"kind"}


def test_branches_in_states() -> None:
    switch = parser(
        "state start { packet.extract(hdr.kind); meta.x = 1;"
        " if (hdr.kind.kind == 1) { packet.extract(hdr.h); } else { meta.x = 2; }"
        " transition select(meta.x) { 2: two; default: accept; } }"
        " state two { packet.extract(hdr.g); transition accept; }"
    )
    assert valid(switch, [1, 0, 0, 0, 0])[0] == {"kind", "h"}
    assert valid(switch, [0, 0, 0, 0, 0])[0] == {"kind", "g"}


def test_sub_parsers_are_inlined_where_they_are_applied() -> None:
    before = """
parser Sub(packet_in packet, out bytes_t target, inout bit<8> count) {
    bit<8> step = 3;
    state start { packet.extract(target); count = count + step; transition select(target.a) { 1: more; _: accept; } }
    state more { count = count + 100; transition accept; }
}
"""
    states = "state start { sub.apply(packet, hdr.h, meta.x); sub.apply(packet, hdr.g, meta.x); transition accept; }"
    switch = parser(states, before, "Sub() sub;")
    packet = switch.run(bytes([1, 0, 0, 0, 2, 0, 0, 0]))[1]
    assert packet.valid == {"h", "g"}
    assert packet.fields["scalars", "meta_t.x"] == 3 + 100 + 3


def test_value_sets_are_named_for_the_control_plane() -> None:
    text = control(
        "",
        types=BYTES,
        parser="parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {"
        " value_set<bit<8>>(4) known;"
        " state start { packet.extract(hdr.h); transition select(hdr.h.a) { known: two; _: accept; } }"
        " state two { packet.extract(hdr.g); transition accept; } }",
    )
    compiled = compile_text(text)
    (value_set,) = compiled.json["parse_vsets"]
    assert (value_set["name"], value_set["compressed_bitwidth"], value_set["max_size"]) == ("P.known", 8, 4)
    (info,) = compiled.p4info.value_sets
    assert (info.preamble.name, info.size, info.match[0].bitwidth) == ("P.known", 4, 8)


@pytest.mark.parametrize(
    ("loop", "a", "b"),
    [
        ("for (bit<8> i = 0; i < hdr.h.a; i = i + 1) { hdr.h.b = hdr.h.b + 2; }", 4, 8),
        ("for (bit<8> i = 0; i < hdr.h.a; i = i + 1) { hdr.h.b = hdr.h.b + 2; }", 0, 0),
        ("for (bit<8> i = 0; i < hdr.h.a; i = i + 1) { if (i == 3) { break; } hdr.h.b = hdr.h.b + 1; }", 9, 3),
        ("for (bit<8> i = 0; i < hdr.h.a; i = i + 1) { if (i == 1) { continue; } hdr.h.b = hdr.h.b + 1; }", 4, 3),
        ("for (bit<8> i in 0 .. 3) { hdr.h.b = hdr.h.b + i; }", 0, 6),
        ("for (bit<8> i in 0 .. 3) { if (i == hdr.h.a) { break; } hdr.h.b = hdr.h.b + 1; }", 2, 2),
        (
            "for (bit<8> i = 0; i < 3; i = i + 1) { for (bit<8> j = 0; j < hdr.h.a; j = j + 1)"
            " { if (j == 2) { break; } hdr.h.b = hdr.h.b + 1; } }",
            5,
            6,
        ),
    ],
)
def test_loops(loop: str, a: int, b: int) -> None:
    parser = PARSER.replace("transition accept;", f"{loop} transition accept;")
    assert run("", bytes((a, 0, 7, 7)), parser=parser) == bytes((a, b, 7, 7))


def test_the_length_of_the_packet() -> None:
    parser = PARSER.replace("transition accept;", "meta.y = (bit<16>) packet.length(); transition accept;")
    json = compile_text(control("hdr.h.a = (bit<8>) meta.y;", parser=parser)).json
    assert '["standard_metadata", "packet_length"]' in dumps(json["parsers"])
