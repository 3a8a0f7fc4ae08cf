"""Registers, counters, meters, action profiles, random numbers, digests, logs: as packets and controllers see it."""

from __future__ import annotations

import functools

import pytest

from gradbed.switch.codegen import build_program
from gradbed.switch.device import ActionCall, GroupReference, KeyMatch, MemberReference, MeterRates
from tests.unit.codegen import program_maker as make
from tests.unit.codegen.bare_switch import BareSwitch, field_bits

WIDTHS = [1, 8, 9, 16, 31, 32, 48, 64, 65, 128, 130, 256]


@functools.cache
def register_program() -> object:
    """Writes a value to every register at an index, and reads it back into another header."""
    maker = make.ProgramMaker()
    maker.add_header("at", [["index", 32, False]])
    total = sum(WIDTHS)
    fields = [*([f"f{w}", w, False] for w in WIDTHS), ["pad", -total % 8, False]]
    maker.add_header("h", fields)
    maker.add_header("back", [], type_name="h_t")
    maker.states = [make.state("start", [make.extract("at"), make.extract("h")])]
    index = make.field("at", "index")
    primitives = [make.call("add_header", make.header("back"))]
    for w in WIDTHS:
        register = make.named("register_array", f"r{w}")
        maker.add("register_arrays", name=f"r{w}", size=5, bitwidth=w)
        # One more than the value, so that the register has to truncate.
        more = make.operation("+", make.field("h", f"f{w}"), make.constant(1))
        primitives.append(make.call("register_write", register, index, make.expression(more)))
        primitives.append(make.call("register_read", make.field("back", f"f{w}"), register, index))
    maker.run(primitives)
    maker.order = ["back"]
    return build_program(maker.json())


def register_frame(index: int, values: list[int]) -> bytes:
    return field_bits([(index, 32), *zip(values, WIDTHS, strict=True), (0, -sum(WIDTHS) % 8)])


def test_registers_of_all_widths() -> None:
    switch = BareSwitch(build_program(register_program().json))
    for index, fill in ((0, 0), (4, 1), (2, -1)):
        values = [fill % 2**w for w in WIDTHS]
        wanted = [(v + 1) % 2**w for v, w in zip(values, WIDTHS, strict=True)]
        out = switch.through(register_frame(index, values)).frame
        assert out == register_frame(0, wanted)[4:]
        for w, value in zip(WIDTHS, wanted, strict=True):
            assert switch.state.registers.read(f"r{w}", index) == value
    assert switch.state.registers.read_all("r130") == [1, 0, 0, 0, 2]
    assert switch.state.registers.read_all("r1") == [1, 0, 0, 0, 0]


@pytest.mark.parametrize("index", [5, 6, 2**32 - 1])
def test_registers_out_of_range(index: int) -> None:
    switch = BareSwitch(build_program(register_program().json))
    out = switch.through(register_frame(index, [2**w - 2 for w in WIDTHS])).frame
    assert not any(out)
    assert all(not any(switch.state.registers.read_all(f"r{w}")) for w in WIDTHS)
    with pytest.raises(IndexError):
        switch.state.registers.read("r8", index)
    with pytest.raises(IndexError):
        switch.state.registers.write("r256", index, 1)


def test_registers_from_the_controller() -> None:
    switch = BareSwitch(build_program(register_program().json))
    switch.state.registers.write("r256", 3, 2**256 - 5)
    assert switch.state.registers.read_all("r256") == [0, 0, 0, 2**256 - 5, 0]
    with pytest.raises(ValueError, match="does not fit 9 bits"):
        switch.state.registers.write("r9", 0, 512)
    with pytest.raises(KeyError, match="no register named r7"):
        switch.state.registers.read("r7", 0)


def counting_program() -> make.ProgramMaker:
    """Counts and meters by ingress port; adds 10 bytes to the frame on the way."""
    maker = make.ProgramMaker()
    maker.add_header("meta", [["colour", 2, False]], metadata=True)
    maker.add_header("extra", [["a", 80, False]])
    maker.add("counter_arrays", name="seen", size=3, is_direct=False)
    maker.add("meter_arrays", name="rate", size=3, is_direct=False, rate_count=2, type="bytes")
    port = make.field("standard_metadata", "ingress_port")
    maker.run(
        [
            make.call("add_header", make.header("extra")),
            make.call("count", make.named("counter_array", "seen"), port),
            make.call("execute_meter", make.named("meter_array", "rate"), port, make.field("meta", "colour")),
            make.call("assign", make.field("standard_metadata", "egress_spec"), make.field("meta", "colour")),
        ]
    )
    maker.order = ["extra"]
    return maker


def test_counters_count_the_frame_as_received() -> None:
    switch = BareSwitch(build_program(counting_program().json()))
    for port, length in ((1, 60), (1, 100), (2, 7), (3, 9), (511, 9)):
        switch.through(bytes(length), port)
    assert switch.state.counters.read_all("seen") == [(0, 0), (2, 160), (1, 7)]
    switch.state.counters.write("seen", 1, 5, 2**63)
    assert switch.state.counters.read("seen", 1) == (5, 2**63)
    with pytest.raises(IndexError):
        switch.state.counters.read("seen", 3)


def test_packet_length_in_egress_counts_added_headers() -> None:
    switch = BareSwitch(build_program(counting_program().json()))
    assert switch.through(bytes(50)).std.packet_length == 60


def test_meters_mark_by_two_rates() -> None:
    switch = BareSwitch(build_program(counting_program().json()))
    switch.state.meters.write("rate", 1, MeterRates(1000, 300, 2000, 500))

    def colour(length: int, time_us: int, port: int = 1) -> int:
        packet = switch.new(bytes(length), port)
        packet.std.ingress_global_timestamp = time_us
        return switch.ingress(switch.parse(packet)).std.egress_spec

    # Both buckets are full: 300 committed, 500 peak. Yellow takes from the peak bucket alone.
    assert [colour(100, 0) for _ in range(6)] == [0, 0, 0, 1, 1, 2]
    # 100 ms bring 100 bytes of committed and 200 of peak.
    assert [colour(100, 100_000) for _ in range(3)] == [0, 1, 2]
    # Buckets hold no more than their burst.
    assert [colour(100, 60_000_000) for _ in range(6)] == [0, 0, 0, 1, 1, 2]
    assert colour(10_000, 60_000_000, port=2) == 0
    switch.state.meters.write("rate", 1, None)
    assert colour(10_000, 60_000_000) == 0


def direct_program() -> make.ProgramMaker:
    """A table with a direct counter and a direct packet meter, through an action selector."""
    maker = make.ProgramMaker()
    maker.add_header("h", [["key", 8, False], ["flow", 8, False]])
    maker.add_header("meta", [["colour", 2, False]], metadata=True)
    maker.states = [make.state("start", [make.extract("h")])]
    maker.add("counter_arrays", name="hits", is_direct=True, binding="t")
    maker.add(
        "meter_arrays",
        name="marker",
        is_direct=True,
        rate_count=2,
        type="packets",
        size=8,
        binding="t",
        result_target=["meta", "colour"],
    )
    spec = make.field("standard_metadata", "egress_spec")
    go = maker.add_action("go", [make.call("assign", spec, {"type": "runtime_data", "value": 0})], [("port", 9)])
    maker.pipelines["ingress"]["action_profiles"].append(
        {
            "name": "ecmp",
            "id": 0,
            "max_size": 3,
            "selector": {"algo": "identity", "input": [make.field("h", "flow")]},
        }
    )
    maker.add_table(
        "t",
        [("exact", ["h", "key"])],
        [go],
        type="indirect_ws",
        action_profile="ecmp",
        with_counters=True,
        direct_meters="marker",
    )
    return maker


def test_selectors_spread_flows_over_members() -> None:
    switch = BareSwitch(build_program(direct_program().json()))
    state = switch.state
    for member in range(3):
        state.profiles.write_member("ecmp", member, ActionCall("go", (10 + member,)))
    with pytest.raises(ValueError, match="full"):
        state.profiles.write_member("ecmp", 9, ActionCall("go", (1,)))
    state.profiles.write_group("ecmp", 1, [0, 1, 1])
    group = state.tables.insert("t", [KeyMatch(1)], GroupReference(1))
    state.tables.insert("t", [KeyMatch(2)], MemberReference(2))

    def port(key: int, flow: int) -> int:
        return switch.through(bytes([key, flow])).std.egress_spec

    assert [port(1, flow) for flow in range(6)] == [10, 11, 11, 10, 11, 11]
    assert port(2, 0) == 12
    assert port(3, 0) == 0
    state.profiles.write_member("ecmp", 2, ActionCall("go", (30,)))
    assert port(2, 0) == 30
    for call in (lambda: state.profiles.delete_member("ecmp", 1), lambda: state.profiles.delete_group("ecmp", 1)):
        with pytest.raises(ValueError, match="referred to"):
            call()
    state.profiles.write_group("ecmp", 1, [])
    assert port(1, 0) == 0
    state.tables.delete("t", group)
    state.profiles.delete_group("ecmp", 1)
    state.profiles.delete_member("ecmp", 1)
    with pytest.raises(ValueError, match="no member 1"):
        state.tables.insert("t", [KeyMatch(4)], MemberReference(1))
    assert port(4, 0) == 0


def test_direct_counters_and_meters_belong_to_entries() -> None:
    switch = BareSwitch(build_program(direct_program().json()))
    state = switch.state
    handle = state.tables.insert("t", [KeyMatch(1)], ActionCall("go", (5,)))
    state.tables.write_meter("t", handle, MeterRates(0, 1, 0, 2))
    other = state.tables.insert("t", [KeyMatch(2)], ActionCall("go", (5,)))
    for key in (1, 1, 1, 2, 7):
        switch.through(bytes([key, 0]) + bytes(8))
    assert state.tables.count("t", handle) == (3, 30)
    assert state.tables.count("t", other) == (1, 10)
    assert state.tables.count("t", None) == (1, 10)
    state.tables.write_count("t", other, 0, 0)
    assert state.tables.count("t", other) == (0, 0)


def test_digests_carry_the_values_at_the_end_of_ingress() -> None:
    maker = make.ProgramMaker()
    maker.add_header("h", [["a", 8, False], ["b", 96, False], ["s", 8, True]])
    maker.states = [make.state("start", [make.extract("h")])]
    elements = [make.field("h", "a"), make.field("h", "b"), make.field("h", "s")]
    maker.add("learn_lists", name="none", elements=[])
    maker.add("learn_lists", name="learned", elements=elements)
    maker.run(
        [
            make.call("generate_digest", make.constant(1), make.constant(1)),
            make.call("assign", make.field("h", "a"), make.constant(9)),
        ]
    )
    switch = BareSwitch(build_program(maker.json()))
    switch.through(field_bits([(1, 8), (2**96 - 3, 96), (0xFE, 8)]))
    assert switch.digests == [(1, [9, 2**64 - 3, 2**32 - 1, 0xFE])]


def test_random_numbers_stay_within_bounds_and_repeat_with_the_seed() -> None:
    maker = make.ProgramMaker()
    maker.add_header("h", [["low", 64, False], ["high", 64, False], ["drawn", 64, False]])
    maker.states = [make.state("start", [make.extract("h")])]
    fields = [make.field("h", n) for n in ("drawn", "low", "high")]
    maker.run([make.call("modify_field_rng_uniform", *fields)])
    maker.order = ["h"]
    built = build_program(maker.json())

    def drawn(switch: BareSwitch, low: int, high: int) -> int:
        return int.from_bytes(switch.through(field_bits([(low, 64), (high, 64), (0xABC, 64)])).frame[16:], "big")

    first, second = BareSwitch(built), BareSwitch(built)
    numbers = [drawn(first, 5, 8) for _ in range(200)]
    assert set(numbers) == {5, 6, 7, 8}
    assert numbers == [drawn(second, 5, 8) for _ in range(200)]
    assert drawn(first, 8, 5) == 0xABC
    assert drawn(first, 0, 2**64 - 1) != drawn(first, 0, 2**64 - 1)


def test_log_lines() -> None:
    maker = make.ProgramMaker()
    maker.add_header("h", [["a", 8, True], ["b", 200, False]])
    maker.states = [make.state("start", [make.extract("h")])]
    vector = {
        "type": "parameters_vector",
        "value": [make.field("h", "a"), make.field("h", "b"), make.constant(10**30)],
    }
    never = make.operation("b2d", None, make.operation("==", make.field("h", "a"), make.constant(77)))
    maker.run(
        [
            make.call("log_msg", {"type": "string", "value": 'a={} "b"={} c={}\n\\{\\} {}'}, vector),
            make.call("assert", make.expression(never)),
        ]
    )
    switch = BareSwitch(build_program(maker.json()))
    switch.through(field_bits([(-3, 8), (2**199 + 1, 200)]))
    assert switch.logs == [f'a=-3 "b"={2**199 + 1} c={10**30}\n{{}} {{}}', "assert failed"]


def test_exit_skips_the_rest_of_the_pipeline() -> None:
    maker = make.ProgramMaker()
    spec = make.field("standard_metadata", "egress_spec")
    leave = maker.add_action("leave", [make.call("assign", spec, make.constant(1)), make.call("exit")])
    later = maker.add_action("later", [make.call("assign", spec, make.constant(2))])
    maker.add_table("first", actions=[leave], default_action=leave, next_node="second")
    maker.add_table("second", actions=[later], default_action=later)
    switch = BareSwitch(build_program(maker.json()))
    assert switch.through(b"x").std.egress_spec == 1
    switch.state.tables.set_default("second", None)
    assert switch.through(b"x").std.egress_spec == 1


def test_jumps_inside_an_action() -> None:
    maker = make.ProgramMaker()
    spec, port = make.field("standard_metadata", "egress_spec"), make.field("standard_metadata", "ingress_port")
    maker.run(
        [
            make.call("_jump_if_zero", port, make.constant(3)),
            make.call("assign", spec, make.constant(5)),
            make.call("_jump", make.constant(4)),
            make.call("assign", spec, make.constant(6)),
        ]
    )
    switch = BareSwitch(build_program(maker.json()))
    assert [switch.through(b"x", p).std.egress_spec for p in (0, 1)] == [6, 5]
