"""What a control plane asks of a switch's state beyond tables and registers, as packets see it."""

from __future__ import annotations

import random

import pytest

from gradbed.switch.codegen import build_program
from gradbed.switch.device import (
    ActionCall,
    EntryExists,
    GroupReference,
    KeyMatch,
    MeterCounts,
    MeterRates,
    StillReferenced,
)
from gradbed.switch.state.device import SwitchState
from tests.unit.codegen import program_maker as make
from tests.unit.codegen.bare_switch import BareSwitch
from tests.unit.codegen.tables.test_state import counting_program, direct_program


def metered_switch() -> tuple[BareSwitch, object]:
    switch = BareSwitch(build_program(counting_program().json()))

    def colour(length: int, time_us: int) -> int:
        packet = switch.new(bytes(length), 1)
        packet.std.ingress_global_timestamp = time_us
        return switch.ingress(switch.parse(packet)).std.egress_spec

    return switch, colour


def test_single_rate_meters() -> None:
    """RFC 2697: what overflows the committed bucket fills the excess bucket."""
    switch, colour = metered_switch()
    switch.state.meters.write("rate", 1, MeterRates(1000, 300, 1000, 300, excess_burst=200))
    # Both buckets are full: green takes from the committed one, yellow from the excess one.
    assert [colour(100, 0) for _ in range(6)] == [0, 0, 0, 1, 1, 2]
    # 400 ms bring 400 bytes: 300 committed, the rest excess.
    assert [colour(100, 400_000) for _ in range(5)] == [0, 0, 0, 1, 2]
    # 150 ms are not enough for the committed bucket to overflow.
    assert [colour(100, 550_000) for _ in range(2)] == [0, 2]
    with pytest.raises(ValueError, match="not negative"):
        switch.state.meters.write("rate", 1, MeterRates(1, 1, 1, 1, excess_burst=-1))


def test_single_rate_meters_without_excess_have_two_colours() -> None:
    switch, colour = metered_switch()
    for rates in (MeterRates(1000, 200, 1000, 200), MeterRates(1000, 200, 1000, 200, excess_burst=0)):
        switch.state.meters.write("rate", 1, rates)
        assert [colour(100, 0) for _ in range(4)] == [0, 0, 2, 2]


def test_meters_count_by_colour() -> None:
    switch, colour = metered_switch()
    colour(10, 0)
    assert switch.state.meters.counts("rate", 1) == MeterCounts((1, 10), (0, 0), (0, 0))
    switch.state.meters.write("rate", 1, MeterRates(0, 100, 0, 200))
    assert [colour(100, 0) for _ in range(4)] == [0, 1, 2, 2]
    marked = MeterCounts((2, 110), (1, 100), (2, 200))
    assert switch.state.meters.counts("rate", 1) == marked
    # Another configuration leaves the counts alone.
    switch.state.meters.write("rate", 1, None)
    assert switch.state.meters.counts("rate", 1) == marked
    switch.state.meters.clear_counts("rate", 1)
    assert switch.state.meters.counts("rate", 1) == MeterCounts((0, 0), (0, 0), (0, 0))
    for call in (switch.state.meters.counts, switch.state.meters.clear_counts):
        with pytest.raises(IndexError):
            call("rate", 99)


def test_direct_meters_count_by_colour() -> None:
    switch = BareSwitch(build_program(direct_program().json()))
    state = switch.state
    other = state.tables.insert("t", [KeyMatch(3)], ActionCall("go", (5,)))
    handle = state.tables.insert("t", [KeyMatch(1)], ActionCall("go", (5,)))
    state.tables.write_meter("t", handle, MeterRates(0, 1, 0, 2))
    for key in (1, 1, 1, 1, 2, 3):
        switch.through(bytes([key, 0]) + bytes(8))
    assert state.tables.meter_counts("t", handle) == MeterCounts((1, 10), (1, 10), (2, 20))
    assert state.tables.meter_counts("t", other) == MeterCounts((1, 10), (0, 0), (0, 0))
    state.tables.clear_meter_counts("t", handle)
    assert state.tables.meter_counts("t", handle) == MeterCounts((0, 0), (0, 0), (0, 0))
    with pytest.raises(IndexError):
        state.tables.meter_counts("t", handle + 1)


def test_counters_of_the_default_entry_can_be_set() -> None:
    state = SwitchState(build_program(direct_program().json()))
    state.tables.write_count("t", None, 3, 4)
    assert state.tables.count("t", None) == (3, 4)


def test_many_members_and_groups() -> None:
    """Against a dictionary, in any order of numbers."""
    maker = direct_program()
    maker.pipelines["ingress"]["action_profiles"][0]["max_size"] = 1000
    switch = BareSwitch(build_program(maker.json()))
    state, rng = switch.state, random.Random(1)
    members: dict[int, int] = {}
    groups: dict[int, list[int]] = {}
    for _ in range(3000):
        number = rng.randrange(200) * 21_474_836
        action = rng.random()
        if action < 0.5:
            members[number] = rng.randrange(500)
            state.profiles.write_member("ecmp", number, ActionCall("go", (members[number],)))
        elif action < 0.7:
            chosen = rng.choices(list(members), k=3) if members else []
            groups[number] = chosen
            state.profiles.write_group("ecmp", number, chosen)
        elif action < 0.9 and number in members:
            if any(number in chosen for chosen in groups.values()):
                with pytest.raises(StillReferenced):
                    state.profiles.delete_member("ecmp", number)
            else:
                state.profiles.delete_member("ecmp", number)
                del members[number]
        elif number in groups:
            state.profiles.delete_group("ecmp", number)
            del groups[number]
    assert len(members) > 50 and len(groups) > 20
    handle = state.tables.insert("t", [KeyMatch(1)], ActionCall("go", (0,)))
    for number, chosen in groups.items():
        state.tables.modify("t", handle, GroupReference(number))
        ports = [switch.through(bytes([1, flow])).std.egress_spec for flow in range(3)]
        assert ports == ([members[m] for m in chosen] or [0] * 3)


def aging_program() -> make.ProgramMaker:
    maker = make.ProgramMaker()
    maker.add_header("h", [["key", 8, False]])
    maker.states = [make.state("start", [make.extract("h")])]
    nothing = maker.add_action("nothing", [])
    maker.add_table("t", [("exact", ["h", "key"])], [nothing], nothing, support_timeout=True, next_node="u")
    maker.add_table("u", [("exact", ["h", "key"])], [nothing], nothing)
    return maker


def test_last_hits() -> None:
    clock_us = 1000
    switch = BareSwitch(build_program(aging_program().json()))
    state = SwitchState(switch.built, clock_us=lambda: clock_us)
    handle = state.tables.insert("t", [KeyMatch(1)], ActionCall("nothing"))
    assert state.tables.last_hit_ns("t", handle) == 1_000_000

    handle = switch.state.tables.insert("t", [KeyMatch(1)], ActionCall("nothing"))
    for key, time_us in ((1, 5000), (2, 6000)):
        packet = switch.new(bytes([key]))
        packet.std.ingress_global_timestamp = time_us
        switch.ingress(switch.parse(packet))
    assert switch.state.tables.last_hit_ns("t", handle) == 5_000_000
    with pytest.raises(IndexError):
        switch.state.tables.last_hit_ns("t", handle + 1)
    with pytest.raises(ValueError, match="no idle timeouts"):
        switch.state.tables.last_hit_ns("u", 0)


def initial_program(*ranks: int | None) -> make.ProgramMaker:
    """A ternary table with entries for any key, which send to port 1, 2 ... in the order of the JSON."""
    maker = make.ProgramMaker()
    maker.add_header("h", [["key", 8, False]])
    maker.states = [make.state("start", [make.extract("h")])]
    spec = make.field("standard_metadata", "egress_spec")
    go = maker.add_action("go", [make.call("assign", spec, {"type": "runtime_data", "value": 0})], [("port", 9)])
    entries = [
        {
            "match_key": [{"match_type": "ternary", "key": "0x00", "mask": hex(1 << port)}],
            "action_entry": {"action_id": go, "action_data": [hex(port)]},
            **({} if rank is None else {"priority": rank}),
        }
        for port, rank in enumerate(ranks, 1)
    ]
    maker.add_table("t", [("ternary", ["h", "key"])], [go], match="ternary", entries=entries)
    return maker


@pytest.mark.parametrize(("ranks", "winner"), [((1, 2, 3), 1), ((3, 1, 2), 2), ((None, None, None), 1)])
def test_initial_entries_are_like_others(ranks: tuple[int | None, ...], winner: int) -> None:
    switch = BareSwitch(build_program(initial_program(*ranks).json()))
    state = switch.state

    def port() -> int:
        return switch.through(bytes([0])).std.egress_spec

    assert port() == winner
    # Three entries have the priorities 3, 2 and 1: another one goes between them.
    everything = [KeyMatch(0, mask=0)]
    handle = state.tables.insert("t", everything, ActionCall("go", (9,)), 2)
    assert port() == winner
    handles = state.tables.initial_handles("t")
    state.tables.delete("t", handles[winner - 1])
    assert port() != winner
    state.tables.delete("t", handle)
    state.tables.insert("t", everything, ActionCall("go", (9,)), 4)
    assert port() == 9
    with pytest.raises(EntryExists):
        state.tables.insert("t", everything, ActionCall("go", (8,)), 4)
