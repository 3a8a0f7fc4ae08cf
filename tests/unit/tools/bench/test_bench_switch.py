"""The benchmark of the switch: what it sends, and how it judges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gradbed.controller.planning.plan import Lpm, TableEntry, Ternary
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.switch.codegen import build_program
from gradbed.switch.device import ActionCall, KeyMatch
from gradbed.switch.engine import Engine
from gradbed.switch.program_cache import compiled_files
from tools.bench.measure import Goal
from tools.bench.switch import workloads
from tools.bench.switch.control_plane import CompileTimes
from tools.bench.switch.run import Rates, control_goals, rate_goals, table_goal
from tools.bench.switch.subjects import Kind, Subject
from tools.bench.switch.system_workloads import gradients, interests

WORKLOADS = {
    "router": workloads.router,
    "aggregation": gradients,
    "ndn": interests,
    "large router": lambda: workloads.large_router(2000),
    "large acl": lambda: workloads.large_acl(500),
}


def switch_with(workload: workloads.Workload, engine: Engine) -> None:
    """A switch with open ports that holds what the workload's plan says for the last one of a path."""
    files = compiled_files(workload.source, workload.defines)
    program = json.loads(files.json.read_text())
    schema = Pipeline.load(workload.program, files.json, files.p4info).schema
    plan = schema.normalised(workload.plan(True))
    device = engine.add_switch(1)
    for port in (workloads.LEFT_PORT, workloads.RIGHT_PORT):
        engine.add_open_port(1, port)
    built = build_program(program)
    device.load(built)
    for entry in plan.entries:
        [name] = [name for name in built.model.tables if name.endswith("." + entry.table.rsplit(".", 1)[-1])]
        table = built.model.tables[name]
        [action] = [a.name for a in table.actions if a.name.endswith("." + entry.action.rsplit(".", 1)[-1])]
        parameters = [p.name for p in table.action(action).parameters]
        key = [_match(entry, field.name, field.match) for field in table.key]
        call = ActionCall(action, tuple(entry.params[p] for p in parameters))
        device.state.tables.insert(name, key, call, entry.priority)
    for group in plan.groups:
        from gradbed.switch.device import Replica

        device.replication.set_group(group.id, [Replica(port) for port in group.ports])


def _match(entry: TableEntry, field: str, kind: str) -> KeyMatch:
    how: Any = next((m for name, m in entry.match.items() if name.endswith(field.removeprefix("hdr."))), None)
    if isinstance(how, Lpm):
        return KeyMatch(how.value, prefix_bits=how.prefix_bits)
    if isinstance(how, Ternary):
        return KeyMatch(how.value, mask=how.mask)
    if how is None:
        return KeyMatch(0, prefix_bits=0) if kind == "lpm" else KeyMatch(0, mask=0)
    return KeyMatch(how)


@pytest.mark.commit_cases(2)
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_cycle_gives_as_many_outputs_as_it_says(name: str) -> None:
    workload = WORKLOADS[name]()
    with Engine(manual_clock=True) as engine:
        switch_with(workload, engine)
        for frame in workload.cycle.frames:
            engine.inject(1, workloads.LEFT_PORT, frame)
            engine.advance(1)
        out = engine.drain()
    assert {port for _, port, _ in out} == {workloads.RIGHT_PORT}
    assert len(out) == workload.cycle.outputs


def test_frames_have_the_size_that_is_printed() -> None:
    for workload in (workloads.router(), interests(), workloads.large_acl(10)):
        assert {len(frame) for frame in workload.cycle.frames} == {workloads.FRAME_BYTES}


def rates(kind: Kind, switches: int, *per_s: float) -> Rates:
    return Rates(Subject(kind, switches, "in", "out", ()), 64, per_s, tuple(1.0 for _ in per_s))


def test_ratios_compare_each_round_with_itself() -> None:
    ours, theirs = rates("gradbed", 1, 100.0, 10.0, 60.0), rates("BMv2", 1, 10.0, 2.0, 5.0)
    assert ours.ratio(theirs) == 10.0
    assert ours.median_per_s == 60.0


def test_rate_goals() -> None:
    measured: dict[tuple[Kind, int], Rates] = {
        ("bare", 1): rates("bare", 1, 100.0),
        ("gradbed", 1): rates("gradbed", 1, 91.0),
        ("gradbed", 5): rates("gradbed", 5, 50.0),
    }
    verdicts = [goal.verdict for goal in rate_goals("p", measured)]
    assert verdicts == ["met", "not measured", "missed", "not measured"]
    measured[("BMv2", 1)] = rates("BMv2", 1, 20.0)
    measured[("BMv2", 5)] = rates("BMv2", 5, 2.0)
    assert [goal.verdict for goal in rate_goals("p", measured)] == ["met", "missed", "missed", "met"]


def test_other_goals() -> None:
    goals = list(control_goals(19_999.0, [CompileTimes("a.p4", 4.9, 0.21)]))
    assert [goal.verdict for goal in goals] == ["missed", "met", "missed"]
    assert table_goal(rates("gradbed", 1, 100.0), rates("gradbed", 1, 50.0), "t").verdict == "met"
    assert Goal("g", 1.0, 1.0, at_most=True).verdict == "met"
