from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gradbed.common.errors import UserError
from gradbed.controller.planning.diff import switch_diff
from gradbed.controller.planning.plan import (
    Lpm,
    Merger,
    MulticastGroup,
    Plan,
    Range,
    RegisterValue,
    SwitchPlan,
    TableEntry,
    Ternary,
)
from gradbed.controller.planning.text import plan_text
from gradbed.topo.generators import leaf_spine
from gradbed.topo.selectors import choose_hosts
from tests.unit.controller.networks import routes_alone, shared_path_job


def entry(value: int, action: str = "forward", priority: int = 0, **params: int) -> TableEntry:
    return TableEntry(table="t", match={"f": value}, action=action, params=params, priority=priority)


def whole_plan() -> Plan:
    topology = leaf_spine(3, 2, 2)
    workers, server = choose_hosts(topology, 3)
    job = shared_path_job(topology, 1, workers, server)
    return routes_alone(topology).merged(job.plan)


unsigned = st.integers(0, 1 << 64)
matches = st.one_of(
    unsigned,
    st.builds(Lpm, value=unsigned, prefix_bits=st.integers(0, 64)),
    st.builds(Ternary, value=unsigned, mask=unsigned),
    st.builds(Range, low=unsigned, high=unsigned),
)
entries = st.builds(
    TableEntry,
    table=st.sampled_from(["t", "u"]),
    match=st.dictionaries(st.sampled_from(["a", "b"]), matches, min_size=1),
    action=st.sampled_from(["x", "y"]),
    params=st.dictionaries(st.sampled_from(["p", "q"]), unsigned),
    priority=st.integers(0, 3),
)
groups = st.builds(
    MulticastGroup, id=st.integers(1, 5), ports=st.sets(st.integers(1, 9)).map(lambda s: tuple(sorted(s)))
)
cells = st.builds(
    RegisterValue, register_name=st.sampled_from("rs"), index=st.none() | st.integers(0, 3), value=st.integers(0, 9)
)
switch_plans = st.builds(
    lambda e, g, r: SwitchPlan.of("prog", e, g, r),
    st.lists(entries, unique_by=lambda e: e.key, max_size=8),
    st.lists(groups, unique_by=lambda g: g.id),
    st.lists(cells, unique_by=lambda r: (r.register_name, r.index)),
)


def registers(writes: Iterable[RegisterValue]) -> dict[tuple[str, int], int]:
    """What registers of four cells hold after these writes, one after the other: of cells that were written."""
    held: dict[tuple[str, int], int] = {}
    for write in writes:
        held.update(((write.register_name, i), write.value) for i in range(4) if write.index in (None, i))
    return held


@given(switch_plans)
@settings(deadline=None)
def test_json_keeps_every_value(switch: SwitchPlan) -> None:
    plan = Plan(switches={"s1": switch})
    assert Plan.from_json(plan.to_json()) == plan


def with_registers(*writes: RegisterValue) -> SwitchPlan:
    return SwitchPlan.of("prog", [], [], writes)


FILL = RegisterValue(register_name="r", index=None, value=1)
KEPT = RegisterValue(register_name="r", index=1, value=8)
DROPPED = RegisterValue(register_name="r", index=0, value=7)


@pytest.mark.thorough
@example(with_registers(FILL, DROPPED, KEPT), with_registers(FILL, KEPT))
@given(switch_plans, switch_plans)
@settings(deadline=None)
def test_applying_a_difference_leads_from_one_plan_to_the_other(old: SwitchPlan, new: SwitchPlan) -> None:
    diff = switch_diff(old, new)
    held = {e.key: e for e in old.entries}
    for e in diff.entries.delete:
        assert held.pop(e.key) == e
    for e in diff.entries.modify:
        assert held[e.key] != e
        held[e.key] = e
    for e in diff.entries.insert:
        assert e.key not in held
        held[e.key] = e
    assert held == {e.key: e for e in new.entries}
    ports = {g.id: g.ports for g in old.groups}
    for g in diff.groups.delete:
        del ports[g.id]
    ports.update({g.id: g.ports for g in (*diff.groups.modify, *diff.groups.insert)})
    assert ports == {g.id: g.ports for g in new.groups}
    wanted, after = registers(new.registers), registers((*old.registers, *diff.registers))
    assert all(after[cell] == value for cell, value in wanted.items())
    assert not switch_diff(new, new)


@given(st.lists(entries, unique_by=lambda e: e.key, max_size=8), st.randoms())
@settings(deadline=None)
def test_the_order_in_which_entries_are_given_does_not_matter(
    some: list[TableEntry], random: st.random_module
) -> None:
    shuffled = list(some)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert SwitchPlan.of("prog", some) == SwitchPlan.of("prog", shuffled)


def test_a_changed_action_is_a_modification_and_a_changed_match_is_not() -> None:
    old = SwitchPlan.of("prog", [entry(1, port=1), entry(2, port=1)])
    new = SwitchPlan.of("prog", [entry(1, port=2), entry(3, port=1)])
    diff = switch_diff(old, new)
    assert diff.entries.modify == (entry(1, port=2),)
    assert diff.entries.insert == (entry(3, port=1),)
    assert diff.entries.delete == (entry(2, port=1),)
    assert str(diff).splitlines() == [
        "- t: f=2 -> forward(port=1)",
        "~ t: f=1 -> forward(port=2)",
        "+ t: f=3 -> forward(port=1)",
    ]


def test_plans_that_agree_merge_and_plans_that_contradict_do_not() -> None:
    one = Plan(switches={"s1": SwitchPlan.of("prog", [entry(1, port=1)])})
    same_and_more = Plan(switches={"s1": SwitchPlan.of("prog", [entry(1, port=1), entry(2, port=2)])})
    assert one.merged(same_and_more) == same_and_more
    with pytest.raises(ValueError, match="s1: contradiction"):
        one.merged(Plan(switches={"s1": SwitchPlan.of("prog", [entry(1, port=9)])}))
    with pytest.raises(ValueError, match="s1: one switch cannot run prog and other"):
        one.merged(Plan(switches={"s1": SwitchPlan.of("other")}))


def test_saving_and_loading(tmp_path: Path) -> None:
    plan = whole_plan()
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    with pytest.raises(UserError, match="cannot read the plan"):
        Plan.load(tmp_path / "missing.json")
    with pytest.raises(UserError, match=r"not a plan: switches\.s1\.program"):
        Plan.from_json('{"switches": {"s1": {}}}')
    with pytest.raises(UserError, match="not a plan: Invalid JSON"):
        Plan.from_json("[")


@pytest.mark.parametrize("ports", [(2, 1), (1, 1)])
def test_group_ports_are_ascending_and_distinct(ports: tuple[int, ...]) -> None:
    with pytest.raises(ValidationError):
        MulticastGroup(id=1, ports=ports)


def test_values_are_never_negative() -> None:
    with pytest.raises(ValidationError):
        entry(-1)


def test_a_plan_reads_well() -> None:
    switch = SwitchPlan.of(
        "prog",
        [
            TableEntry(
                table="ipv4_routes",
                match={"hdr.ipv4.dst_addr": Lpm(value=0x0A000100, prefix_bits=24)},
                action="forward",
                params={"port": 3, "dst_mac": 0x020000000001},
            ),
            TableEntry(
                table="acl",
                match={"hdr.udp.port": Range(low=5, high=9), "x": Ternary(value=0x10, mask=0xF0)},
                action="drop",
                priority=7,
            ),
            TableEntry(table="any", match={}, action="drop"),
        ],
        [MulticastGroup(id=1, ports=(1, 2))],
        [RegisterValue(register_name="r", index=4, value=5)],
    )
    assert plan_text(Plan(switches={"e1": switch})).splitlines() == [
        "e1: prog (p4), 3 entries",
        "  acl",
        "    udp.port=5..9, x=0x10 &&& 0xf0 -> drop() priority 7",
        "  any",
        "    * -> drop()",
        "  ipv4_routes",
        "    ipv4.dst_addr=10.0.1.0/24 -> forward(port=3, dst_mac=02:00:00:00:00:01)",
        "  multicast group 1 -> ports 1, 2",
        "  r[4] = 5",
    ]


def test_entries_print_in_numerical_order() -> None:
    text = plan_text(Plan(switches={"s": SwitchPlan.of("prog", [entry(10), entry(9), entry(100)])}))
    assert [line.strip() for line in text.splitlines()[2:]] == [
        "f=9 -> forward()",
        "f=10 -> forward()",
        "f=100 -> forward()",
    ]


def test_parts_that_are_the_same_are_not_merged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = SwitchPlan.merged

    def counted(self: SwitchPlan, *others: SwitchPlan) -> SwitchPlan:
        made.append(self.program)
        return real(self, *others)

    monkeypatch.setattr(SwitchPlan, "merged", counted)
    base = Plan(switches={name: SwitchPlan.of(name, [entry(1)]) for name in ("a", "b")})
    job, other = (
        Plan(switches={"a": SwitchPlan.of("a", [entry(n)]), "b": SwitchPlan.of("b", [entry(n)])}) for n in (2, 3)
    )
    merger = Merger()
    first = merger.merged(base, job)
    assert made == ["a", "b"] and merger.merged(base, job) == first and len(made) == 2
    # Of one switch another part, of one more parts, and in another order.
    changed = Plan(switches={**job.switches, "b": SwitchPlan.of("b", [entry(7)])})
    assert merger.merged(base, changed) == base.merged(changed)
    assert merger.merged(base, changed, other) == base.merged(changed, other)
    assert merger.merged(other, changed, base) == other.merged(changed, base)
    assert merger.merged(base) == base and merger.merged(base, job) == first
    # Equal ones are found by what they are, so that nothing is mistaken for a part that is gone.
    again = job.model_copy(deep=True)
    assert merger.merged(base, again) == first
    with pytest.raises(ValueError, match="b: contradiction"):
        merger.merged(base, Plan(switches={"b": SwitchPlan.of("b", [entry(1, port=9)])}))
    assert merger.merged(base, job) == first
