"""Parser and deparser against an independent bit codec: any field widths, any offsets, stacks, varbit, unions."""

from __future__ import annotations

import random

import pytest

from gradbed.switch.codegen import build_program
from gradbed.switch.device import ActionCall, KeyMatch
from tests.unit.codegen import program_maker as make
from tests.unit.codegen.bare_switch import BareSwitch, field_bits

NO_ERROR, PACKET_TOO_SHORT, _, STACK_OUT_OF_BOUNDS, HEADER_TOO_SHORT, PARSER_TIMEOUT = range(6)
PARSER_INVALID_ARGUMENT = 6


def random_header(rng: random.Random) -> list[int]:
    """Field widths that add up to whole bytes."""
    widths = [
        rng.choice([1, 2, 3, 4, 7, 8, 9, 12, 13, 16, 20, 24, 31, 32, 40, 48, 56, 63, 64, 65, 128, 200])
        for _ in range(8)
    ]
    return [*widths, 8 - sum(widths) % 8]


@pytest.mark.parametrize("seed", range(2))
def test_any_fields_survive_the_way_through(seed: int) -> None:
    rng = random.Random(seed)
    headers = [random_header(rng) for _ in range(12)]
    maker = make.ProgramMaker()
    for i, widths in enumerate(headers):
        maker.add_header(f"h{i}", [[f"f{k}", w, bool(w > 1 and k % 2)] for k, w in enumerate(widths)])
        maker.add_header(f"c{i}", [], type_name=f"h{i}_t")
    maker.states = [make.state("start", [make.extract(f"h{i}") for i in range(len(headers))])]
    # Copied field by field into other headers, which are sent in reverse order.
    copies = [
        make.call("assign", make.field(f"c{i}", f"f{k}"), make.field(f"h{i}", f"f{k}"))
        for i, widths in enumerate(headers)
        for k in range(len(widths))
    ]
    maker.run([make.call("add_header", make.header(f"c{i}")) for i in range(len(headers))] + copies)
    maker.order = [f"c{i}" for i in reversed(range(len(headers)))] + [f"h{i}" for i in range(len(headers))]
    switch = BareSwitch(build_program(maker.json(), optimise="-O1"))
    for _ in range(20):
        encoded = [field_bits([(rng.getrandbits(w), w) for w in widths]) for widths in headers]
        frame = b"".join(encoded)
        packet = switch.through(frame + b"payload")
        assert packet.frame == b"".join(reversed(encoded)) + frame + b"payload"
        assert packet.std.parser_error == NO_ERROR
        assert packet.std.packet_length == len(packet.frame)


def test_a_short_frame_keeps_what_was_parsed() -> None:
    maker = make.ProgramMaker()
    maker.add_header("first", [["a", 16, False]])
    maker.add_header("second", [["b", 32, False]])
    maker.states = [make.state("start", [make.extract("first"), make.extract("second")])]
    maker.order = ["second", "first"]
    switch = BareSwitch(build_program(maker.json()))
    for length in range(10):
        frame = bytes(range(1, 1 + length))
        packet = switch.through(frame)
        assert packet.std.parser_error == (NO_ERROR if length >= 6 else PACKET_TOO_SHORT)
        assert packet.frame == (frame[2:6] + frame[:2] + frame[6:] if length >= 6 else frame)


def label_program(elements: int = 3) -> make.ProgramMaker:
    maker = make.ProgramMaker()
    ids = [
        maker.add_header(f"labels[{i}]", [["value", 15, False], ["last", 1, False]], type_name="label_t")
        for i in range(elements)
    ]
    maker.add("header_stacks", name="labels", header_type="label_t", header_ids=ids)
    last = {"type": "stack_field", "value": ["labels", "last"]}
    again = {"type": "hexstr", "value": "0x00", "mask": None, "next_state": "start"}
    maker.states = [make.state("start", [make.extract("labels", "stack")], [last], [again, make.default()])]
    maker.order = [f"labels[{i}]" for i in range(elements)]
    return maker


def labels(*values: int) -> bytes:
    return b"".join((v << 1 | (i == len(values) - 1)).to_bytes(2, "big") for i, v in enumerate(values))


def test_a_stack_fills_and_overflows() -> None:
    switch = BareSwitch(build_program(label_program().json()))
    for count in (1, 2, 3):
        packet = switch.through(labels(*range(count)) + b"xy")
        assert packet.frame == labels(*range(count)) + b"xy"
        assert packet.std.parser_error == NO_ERROR
    packet = switch.through(labels(1, 2, 3, 4) + b"xy")
    assert packet.std.parser_error == STACK_OUT_OF_BOUNDS
    assert packet.frame == labels(1, 2, 3, 4) + b"xy"


@pytest.mark.parametrize("op", ["push", "pop"])
@pytest.mark.parametrize("amount", [1, 2, 3, 5])
def test_push_and_pop(op: str, amount: int) -> None:
    maker = label_program()
    stack = make.named("header_stack", "labels")
    maker.run([make.call(op, stack, make.constant(amount)), make.call("add_header", make.header("labels[0]"))])
    switch = BareSwitch(build_program(maker.json()))
    packet = switch.through(labels(7, 8, 9))
    raw = [labels(7, 8, 9)[i : i + 2] for i in (0, 2, 4)]
    # The elements that come in are invalid; the first element is then made valid, and zero if it was invalid.
    expected = {"pop": raw[amount:] or [b"\0\0"], "push": [b"\0\0", *raw[: max(0, 3 - amount)]]}
    assert packet.frame == b"".join(expected[op])


def test_an_element_chosen_by_the_packet() -> None:
    maker = label_program()
    index = make.operation("&", make.field("standard_metadata", "ingress_port"), make.constant(0xFF))
    element = make.operation("dereference_header_stack", make.named("header_stack", "labels"), index)
    target = make.operation("access_field", element, 0)
    count = make.operation("last_stack_index", None, make.named("header_stack", "labels"))
    maker.run(
        [
            make.call("assign", make.expression(target), make.constant(0x55)),
            make.call("assign", make.field("standard_metadata", "egress_spec"), make.expression(count)),
        ]
    )
    switch = BareSwitch(build_program(maker.json()))
    for port in range(3):
        values = [1, 2, 3]
        values[port] = 0x55
        assert switch.through(labels(1, 2, 3), port).frame == labels(*values)
    packet = switch.through(labels(1, 2, 3), 200)
    assert packet.frame == labels(1, 2, 3)
    assert packet.std.egress_spec == 2


def test_p4c_spellings_of_stack_elements() -> None:
    """A key that is an element chosen by the packet, its validity by [operation, $valid$], and stack.last whole."""
    maker = label_program()
    maker.add_header("copy", [], type_name="label_t")
    labels_stack = make.named("header_stack", "labels")
    port = make.field("standard_metadata", "ingress_port")
    element = make.operation("dereference_header_stack", labels_stack, port)
    whole_last = make.expression({"type": "stack_field", "value": ["labels", "last"]})
    for item in maker.parts["header_types"]:
        if item["name"] == "label_t":
            item["fields"][1][0] = "bottom"
    maker.states[0]["transition_key"][0]["value"][1] = "bottom"
    spec = make.field("standard_metadata", "egress_spec")
    valid = {"type": "field", "value": [element["value"], "$valid$"]}
    group = make.field("standard_metadata", "mcast_grp")
    hit = maker.add_action("hit", [make.call("assign", spec, {"type": "runtime_data", "value": 0})], [("port", 9)])
    copy = maker.add_action(
        "copy",
        [
            make.call("assign_header", make.header("copy"), whole_last),
            make.call("assign", group, make.expression(valid)),
        ],
    )
    maker.add_table("first", actions=[copy], default_action=copy, next_node="t")
    maker.add_table("t", [("exact", make.operation("access_field", element, 0))], [hit])
    maker.order = ["copy"]
    switch = BareSwitch(build_program(maker.json()))
    switch.state.tables.insert("t", [KeyMatch(8)], ActionCall("hit", (44,)))
    for index, spec_wanted, valid_wanted in ((0, 0, 1), (1, 44, 1), (2, 0, 0), (200, 0, 0)):
        packet = switch.through(labels(7, 8), index)
        assert (packet.std.egress_spec, packet.std.mcast_grp) == (spec_wanted, valid_wanted)
        assert packet.frame == labels(7, 8)[2:]


def test_variable_length_fields_compare_by_length_and_contents() -> None:
    maker = make.ProgramMaker()
    fields = [["words", 8, False], ["body", "*"]]
    first = {"type": "lookahead", "value": [0, 8]}
    maker.add_header("a", fields, max_length=9)
    maker.add_header("b", [], type_name="a_t")
    maker.add_header("meta", [["bits", 32, False]], metadata=True)
    bits = make.field("meta", "bits")
    eightfold = make.operation("*", bits, make.constant(8))
    operations = []
    for name in ("a", "b"):
        operations += [
            {"op": "set", "parameters": [bits, first]},
            {"op": "set", "parameters": [bits, make.expression(eightfold)]},
            {"op": "extract_VL", "parameters": [{"type": "regular", "value": name}, make.expression(bits)]},
        ]
    maker.states = [make.state("start", operations)]
    same = make.operation("==", make.field("a", "body"), make.field("b", "body"))
    equal = make.operation("==", make.header("a"), make.header("b"))
    spec, group = (make.field("standard_metadata", n) for n in ("egress_spec", "mcast_grp"))
    maker.run(
        [
            make.call("assign", spec, make.expression(make.operation("b2d", None, same))),
            make.call("assign", group, make.expression(make.operation("b2d", None, equal))),
        ]
    )
    switch = BareSwitch(build_program(maker.json()))
    for data, wanted in ((b"\2ab\2ab", 1), (b"\2ab\2ac", 0), (b"\1a\2a\0", 0), (b"\0\0", 1), (b"\1\0\2\0\0", 0)):
        packet = switch.ingress(switch.parse(switch.new(data)))
        assert (packet.std.egress_spec, packet.std.mcast_grp) == (wanted, wanted), data


def option_program(after: bool) -> make.ProgramMaker:
    """kind, words, varbit of 4 * words bytes, and perhaps a field behind it that begins in the middle of a byte."""
    maker = make.ProgramMaker()
    fields = [["kind", 4, False], ["words", 12, False], ["body", "*"]]
    if after:
        fields = [["kind", 4, False], ["words", 8, False], ["body", "*"], ["rest", 4, False]]
    maker.add_header("option", fields, max_length=2 + 40)
    maker.add_header("copy", [], type_name="option_t")
    maker.add_header("meta", [["words", 8, False], ["bits", 32, False]], metadata=True)
    words = {"type": "lookahead", "value": [4, 12] if not after else [4, 8]}
    bits = make.operation(
        "<<", make.operation("&", make.field("meta", "words"), make.constant(0xFF)), make.constant(5)
    )
    maker.states = [
        make.state(
            "start",
            [
                {"op": "set", "parameters": [make.field("meta", "words"), words]},
                {"op": "set", "parameters": [make.field("meta", "bits"), make.expression(bits)]},
                {
                    "op": "extract_VL",
                    "parameters": [
                        {"type": "regular", "value": "option"},
                        make.expression(make.field("meta", "bits")),
                    ],
                },
            ],
        )
    ]
    maker.run([make.call("assign_header", make.header("copy"), make.header("option"))])
    maker.order = ["option", "copy"]
    return maker


@pytest.mark.parametrize("after", [False, True])
def test_variable_length_fields(after: bool) -> None:
    switch = BareSwitch(build_program(option_program(after).json()))
    rng = random.Random(3)
    for words in range(11):
        body = rng.randbytes(4 * words)
        if after:
            header = field_bits([(5, 4), (words, 8), (int.from_bytes(body, "big"), 32 * words), (9, 4)])
        else:
            header = field_bits([(5, 4), (words, 12)]) + body
        packet = switch.through(header + b"tail")
        assert packet.std.parser_error == NO_ERROR
        assert packet.frame == header + header + b"tail"
        short = switch.through(header[:-1])
        assert short.std.parser_error == PACKET_TOO_SHORT
    too_long = field_bits([(5, 4), (11, 8), (0, 32 * 11), (9, 4)] if after else [(5, 4), (11, 12), (0, 32 * 11)])
    assert switch.through(too_long).std.parser_error == HEADER_TOO_SHORT


def test_advance_lookahead_and_verify() -> None:
    maker = make.ProgramMaker()
    maker.add_header("h", [["a", 8, False]])
    maker.add_header("meta", [["skip", 16, False]], metadata=True)
    positive = make.operation(">", make.field("h", "a"), make.constant(3))
    maker.states = [
        make.state(
            "start",
            [
                {"op": "set", "parameters": [make.field("meta", "skip"), {"type": "lookahead", "value": [0, 16]}]},
                {"op": "advance", "parameters": [make.field("meta", "skip")]},
                {"op": "shift", "parameters": [1]},
                make.extract("h"),
                {"op": "verify", "parameters": [make.expression(positive), make.constant(HEADER_TOO_SHORT)]},
            ],
        )
    ]
    maker.order = ["h"]
    switch = BareSwitch(build_program(maker.json()))
    assert switch.through(bytes([0, 16, 9, 4, 77])).frame == bytes([4, 77])
    assert switch.through(bytes([0, 16, 9, 3, 77])).std.parser_error == HEADER_TOO_SHORT
    assert switch.through(bytes([0, 17, 9, 4])).std.parser_error == PARSER_INVALID_ARGUMENT
    assert switch.through(bytes([0])).std.parser_error == PACKET_TOO_SHORT
    assert switch.through(bytes([255, 248, 1, 1])).std.parser_error == PACKET_TOO_SHORT


def test_a_parser_that_goes_in_circles_is_stopped() -> None:
    maker = make.ProgramMaker()
    maker.states = [make.state("start", [], [], [make.default("start")])]
    packet = BareSwitch(build_program(maker.json())).through(b"frame")
    assert packet.std.parser_error == PARSER_TIMEOUT
    assert packet.frame == b"frame"


def test_masked_transitions_and_value_sets() -> None:
    maker = make.ProgramMaker()
    maker.add_header("h", [["a", 4, False], ["b", 12, False]])
    for name in ("x", "y", "z"):
        maker.add_header(name, [["byte", 8, False]])
    maker.add("parse_vsets", name="ports", compressed_bitwidth=16)
    # Keys are padded to bytes, field by field.
    maker.states = [
        make.state(
            "start",
            [make.extract("h")],
            [make.field("h", "a"), make.field("h", "b")],
            [
                {"type": "parse_vset", "value": "ports", "mask": None, "next_state": "z"},
                {"type": "hexstr", "value": "0x050abc", "mask": None, "next_state": "x"},
                {"type": "hexstr", "value": "0x010000", "mask": "0x010000", "next_state": "y"},
                {"type": "hexstr", "value": "0xf50abc", "mask": None, "next_state": "x"},
                make.default(),
            ],
        ),
        *(make.state(name, [make.extract(name)]) for name in ("x", "y", "z")),
    ]
    maker.order = ["z", "y", "x", "h"]
    switch = BareSwitch(build_program(maker.json()))

    def taken(value: int) -> str:
        packet = switch.through(value.to_bytes(2, "big") + b"\x99\0")
        front = packet.frame.index(b"\x99")
        if front != 0:
            return "h"
        record = switch.parse(switch.new(value.to_bytes(2, "big") + b"\x99\0"))
        # Validity words follow the bookkeeping: h, x, y, z.
        return "hxyz"[max(i for i in range(4) if record.phv[3 + i])]

    assert taken(0x5ABC) == "x"
    assert taken(0x5ABD) == "y"
    assert taken(0x4ABC) == "h"
    switch.state.value_sets.write("ports", [(0x5ABC, 0xFFFF), (0x4000, 0xFF00)])
    assert taken(0x5ABC) == "z"
    assert taken(0x4012) == "z"
    assert taken(0x4112) == "h"
    switch.state.value_sets.write("ports", [])
    assert taken(0x5ABC) == "x"


def union_program() -> make.ProgramMaker:
    maker = make.ProgramMaker()
    maker.add_header("kind", [["which", 8, False]])
    one = maker.add_header("u.one", [["a", 8, False]])
    two = maker.add_header("u.two", [["b", 16, False]])
    maker.add("header_union_types", name="u_t", headers=[["one", "u.one_t"], ["two", "u.two_t"]])
    maker.add("header_unions", name="u", union_type="u_t", header_ids=[one, two])
    which = make.field("kind", "which")
    maker.states = [
        make.state(
            "start",
            [make.extract("kind")],
            [which],
            [
                {"type": "hexstr", "value": "0x01", "mask": None, "next_state": "one"},
                {"type": "hexstr", "value": "0x02", "mask": None, "next_state": "two"},
                make.default(),
            ],
        ),
        make.state("one", [make.extract("u.one")]),
        make.state("two", [make.extract("u.two")]),
    ]
    maker.order = ["u.one", "u.two", "kind"]
    return maker


def test_at_most_one_header_of_a_union_is_valid() -> None:
    maker = union_program()
    maker.run(
        [
            make.call("add_header", make.header("u.two")),
            make.call("assign", make.field("u.two", "b"), make.constant(0x1234)),
        ]
    )
    switch = BareSwitch(build_program(maker.json()))
    assert switch.through(b"\x01\x77rest").frame == b"\x12\x34\x01rest"
    assert switch.through(b"\x02\x77\x88rest").frame == b"\x12\x34\x02rest"


def test_union_validity_is_that_of_its_members() -> None:
    maker = union_program()
    valid = make.operation("valid_union", None, make.named("header_union", "u"))
    maker.run(
        [
            make.call(
                "assign",
                make.field("standard_metadata", "egress_spec"),
                make.expression(make.operation("b2d", None, valid)),
            )
        ]
    )
    switch = BareSwitch(build_program(maker.json()))
    assert [switch.through(bytes([k, 5, 6])).std.egress_spec for k in (0, 1, 2)] == [0, 1, 1]


def test_headers_that_do_not_fit_the_headroom_drop_the_frame() -> None:
    maker = make.ProgramMaker()
    maker.add_header("big", [["a", 512, False]])
    maker.order = ["big"]
    maker.run([make.call("add_header", make.header("big"))])
    switch = BareSwitch(build_program(maker.json()))
    assert switch.program.max_header_bytes == 64
    for headroom, length in ((64, 64 + 5), (63, 0)):
        packet = switch.ingress(switch.parse(switch.new(b"frame", headroom=headroom)))
        assert switch.deparse(packet).packet.length == length


def test_metadata_is_kept_only_on_request() -> None:
    maker = make.ProgramMaker()
    maker.add_header("meta", [["turns", 8, False], ["other", 8, False]], metadata=True)
    maker.add("field_lists", name="kept", elements=[make.field("meta", "turns")])
    maker.parts["field_lists"][0]["id"] = 4
    turns = make.operation("+", make.field("meta", "turns"), make.constant(1))
    maker.run(
        [
            make.call("assign", make.field("meta", "turns"), make.expression(turns)),
            make.call("assign", make.field("standard_metadata", "egress_spec"), make.field("meta", "turns")),
        ]
    )
    switch = BareSwitch(build_program(maker.json()))
    first = switch.ingress(switch.parse(switch.new(b"x")))
    assert first.std.egress_spec == 1
    again = switch.new(b"x")
    switch.reset_metadata(again)
    switch.copy_field_list(4, again, first)
    again.packet.keep_metadata = 1
    assert switch.ingress(switch.parse(again)).std.egress_spec == 2
    again.packet.keep_metadata = 0
    assert switch.ingress(switch.parse(again)).std.egress_spec == 1
