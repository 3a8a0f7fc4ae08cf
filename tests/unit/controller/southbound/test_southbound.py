from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import MulticastGroup, Plan, RegisterValue, SwitchPlan
from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.southbound.interface import (
    CounterCell,
    SouthboundError,
    SouthboundTimeout,
    SwitchStatus,
    Target,
)
from gradbed.controller.southbound.p4runtime import contents, p4runtime
from gradbed.controller.southbound.p4runtime.codec import decode_entry, decode_group
from gradbed.controller.southbound.p4runtime.p4runtime import P4RuntimeSouthbound
from gradbed.controller.southbound.p4runtime.schema import Pipeline
from gradbed.topo.generators import leaf_spine
from tests.unit.controller.fake_p4runtime import FakeDevice, FakeP4Runtime
from tests.unit.controller.fake_southbound import News
from tests.unit.controller.networks import routes_alone, shared_path_job
from tests.unit.controller.p4info import aggregation_p4info
from tests.waiting import wait_until

TOPOLOGY = leaf_spine(3, 2, 2)
ROUTES = shortest_routes(TOPOLOGY)
BASE = routes_alone(TOPOLOGY)
WITH_JOB = BASE.merged(shared_path_job(TOPOLOGY, 1, ("h3", "h5"), "h1").plan)
PIPELINE = Pipeline("aggregation", aggregation_p4info(), b"{}")
OTHER_PIPELINE = Pipeline("other", aggregation_p4info(), b"{ }")
PATIENCE_S = 20.0


class Network:
    """A fake server for the whole topology and the southbound clients of a test."""

    def __init__(self, directory: Path) -> None:
        self.server = FakeP4Runtime(f"unix:{directory}/p4rt", [switch.number for switch in TOPOLOGY.switches])
        self.server.start()
        self.news = News()
        self._opened: list[P4RuntimeSouthbound] = []

    def southbound(self, **options: Any) -> P4RuntimeSouthbound:
        targets = {s.name: Target(self.server.address, s.number) for s in TOPOLOGY.switches}
        pipelines = {"aggregation": PIPELINE, "other": OTHER_PIPELINE}
        southbound = P4RuntimeSouthbound(targets, pipelines, **options)
        southbound.listen(self.news)
        self._opened.append(southbound)
        return southbound

    def started(self, plan: Plan = BASE, **options: Any) -> P4RuntimeSouthbound:
        southbound = self.southbound(**options)
        southbound.start(plan)
        southbound.wait_ready(PATIENCE_S)
        return southbound

    def device(self, switch: str) -> FakeDevice:
        return self.server.devices[TOPOLOGY.switch(switch).number]

    def holds(self, plan: Plan) -> bool:
        return all(held(self.device(name)) == PIPELINE.schema.normalised(plan[name]) for name in plan.switches)

    def close(self) -> None:
        for southbound in self._opened:
            southbound.stop()
        self.server.stop()


def held(device: FakeDevice) -> SwitchPlan:
    entries = [decode_entry(PIPELINE.schema, message) for message in device.entries.values()]
    return SwitchPlan.of(
        "aggregation",
        [entry for entry in entries if entry is not None],
        [decode_group(message) for message in device.groups.values()],
    )


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    network = Network(tmp_path)
    yield network
    network.close()


def test_every_switch_gets_pipeline_and_plan(network: Network) -> None:
    southbound = network.started()
    assert network.holds(BASE)
    assert southbound.status() == [SwitchStatus(switch.name, True, PIPELINE.label) for switch in TOPOLOGY.switches]
    assert {status.name for status in network.news.statuses if status.connected} == set(BASE.switches)
    assert network.device("l1").config.p4_device_config == b"{}"


def test_only_the_difference_is_written(network: Network) -> None:
    southbound = network.started()
    for device in network.server.devices.values():
        device.updates.clear()
    southbound.apply(WITH_JOB)
    assert network.holds(WITH_JOB)
    added = len(WITH_JOB["l1"].entries) - len(BASE["l1"].entries)
    groups = len(WITH_JOB["l1"].groups)
    assert groups > 0
    assert network.device("l1").updates == {"table_entry": added, "packet_replication_engine_entry": groups}
    southbound.apply(WITH_JOB)
    assert network.device("l1").updates.total() == added + groups
    southbound.apply(BASE)
    assert network.holds(BASE)


def test_changed_entries_and_groups_are_modified_in_place(network: Network) -> None:
    southbound = network.started(WITH_JOB)
    old = WITH_JOB["l1"]
    changed = SwitchPlan.of(
        old.program,
        [e.model_copy(update={"params": {**e.params, "port": 9}}) if "port" in e.params else e for e in old.entries],
        [MulticastGroup(id=1, ports=(7,))],
    )
    plan = Plan(switches={**WITH_JOB.switches, "l1": changed})
    southbound.apply(plan)
    assert network.holds(plan)


def test_a_plan_may_give_a_switch_another_program(network: Network) -> None:
    southbound = network.started()
    plan = Plan(switches={**BASE.switches, "l1": SwitchPlan.of("other", BASE["l1"].entries)})
    southbound.apply(plan)
    assert network.device("l1").config.p4_device_config == b"{ }"
    assert held(network.device("l1")) == PIPELINE.schema.normalised(BASE["l1"])
    labels = {status.name: status.pipeline for status in southbound.status()}
    assert (labels["l1"], labels["l2"]) == (OTHER_PIPELINE.label, PIPELINE.label)
    southbound.apply(BASE)
    assert [network.device(name).pushes for name in ("l1", "l2")] == [3, 1]
    assert network.holds(BASE)


def test_register_cells_are_written_once_and_again_after_a_push(network: Network) -> None:
    cell = RegisterValue(register_name="slot_owner", index=3, value=77)
    plan = Plan(switches={**BASE.switches, "l1": SwitchPlan.of("aggregation", BASE["l1"].entries, (), [cell])})
    southbound = network.started(plan)
    register = PIPELINE.schema.registers["slot_owner"].id
    assert network.device("l1").registers == {(register, 3): 77}
    southbound.apply(plan)
    assert network.device("l1").updates["register_entry"] == 1
    network.server.stop(forget=True)
    network.server.start()
    wait_until(lambda: network.device("l1").registers == {(register, 3): 77})


def test_a_switch_that_lost_everything_is_programmed_again(network: Network) -> None:
    southbound = network.started()
    southbound.apply(WITH_JOB)
    network.server.stop(forget=True)
    wait_until(lambda: not any(status.connected for status in southbound.status()))
    assert all("no answer" not in status.error for status in southbound.status())
    network.server.start()
    southbound.wait_ready(PATIENCE_S)
    assert network.holds(WITH_JOB)


def test_a_pipeline_that_went_unnoticed_is_pushed_again(network: Network) -> None:
    southbound = network.started()
    device = network.device("l1")
    device.config = None
    device.entries.clear()
    southbound.apply(WITH_JOB)
    assert network.holds(WITH_JOB)
    assert [network.device(name).pushes for name in ("l1", "l2")] == [2, 1]


def test_a_switch_that_lost_its_connection_keeps_its_pipeline_and_is_reconciled(network: Network) -> None:
    southbound = network.started(WITH_JOB)
    network.server.stop()
    wait_until(lambda: not any(status.connected for status in southbound.status()))
    device = network.device("l1")
    device.entries.popitem()
    next(iter(device.groups.values())).replicas[0].egress_port = 99
    stray = type(next(iter(device.groups.values())))(multicast_group_id=50)
    device.groups[50] = stray
    network.server.start()
    southbound.wait_ready(PATIENCE_S)
    assert network.holds(WITH_JOB)
    assert [device.pushes for device in network.server.devices.values()] == [1] * 5


def test_a_switch_that_cannot_be_read_starts_afresh(network: Network) -> None:
    southbound = network.started(WITH_JOB)
    network.device("l1").unreadable = True
    network.server.stop()
    wait_until(lambda: not any(status.connected for status in southbound.status()))
    network.server.start()
    southbound.wait_ready(PATIENCE_S)
    assert network.holds(WITH_JOB)
    assert [network.device(name).pushes for name in ("l1", "l2")] == [2, 1]
    with pytest.raises(SouthboundError, match="l1: read counters: UNIMPLEMENTED reading is not supported"):
        southbound.counters("l1")


def test_a_new_controller_starts_afresh_unless_told_to_keep_pipelines(network: Network) -> None:
    network.started(WITH_JOB).stop()
    network.started(BASE).stop()
    assert network.device("l1").pushes == 2
    network.device("l1").updates.clear()
    network.started(BASE, keep_pipelines=True).stop()
    assert network.device("l1").pushes == 2
    assert network.device("l1").updates.total() == 0
    network.started(WITH_JOB, keep_pipelines=True).stop()
    assert network.device("l1").pushes == 2
    assert network.holds(WITH_JOB)


def test_a_later_controller_takes_over_and_gives_way_again(network: Network) -> None:
    first = network.started()
    second = network.started(WITH_JOB)
    wait_until(lambda: all("another controller" in status.error for status in first.status()))
    with pytest.raises(SouthboundError, match="s1 is not connected: another controller is in charge"):
        first.apply(WITH_JOB)
    assert network.holds(WITH_JOB)
    second.stop()
    first.wait_ready(PATIENCE_S)
    assert network.holds(BASE)


def test_a_refused_pipeline_is_one_line_at_once(network: Network) -> None:
    network.device("l2").refuse_pipeline = "this JSON\nis not for me"
    southbound = network.southbound()
    southbound.start(BASE)
    with pytest.raises(UserError) as caught:
        southbound.wait_ready(PATIENCE_S)
    assert str(caught.value) == ("switch l2 is not ready: push pipeline: INVALID_ARGUMENT this JSON is not for me")


def test_an_unknown_device_is_reported(network: Network) -> None:
    del network.server.devices[TOPOLOGY.switch("s2").number]
    southbound = network.southbound()
    southbound.start(BASE)
    with pytest.raises(UserError, match="switch s2 is not ready: stream: NOT_FOUND no device 2"):
        southbound.wait_ready(PATIENCE_S)


def test_switches_that_stay_away_are_reported(network: Network) -> None:
    network.server.stop()
    southbound = network.southbound()
    southbound.start(BASE)
    with pytest.raises(UserError, match=r"switch s1 \(and 4 other switches\) is not ready: no answer from unix:"):
        southbound.wait_ready(0.2)
    network.server.start()
    southbound.wait_ready(PATIENCE_S)
    assert network.holds(BASE)


def test_if_one_switch_refuses_a_plan_all_go_back(network: Network) -> None:
    southbound = network.started()
    network.device("s2").refuse_entity = lambda entity: (
        entity.table_entry.table_id == PIPELINE.schema.tables["roles"].id
    )
    with pytest.raises(
        SouthboundError,
        match=r"^s2: write \(AggregationIngress.aggregation.policy.roles: .*\): RESOURCE_EXHAUSTED no room$",
    ):
        southbound.apply(WITH_JOB)
    assert network.holds(BASE)
    network.device("s2").refuse_entity = lambda entity: False
    southbound.apply(WITH_JOB)
    assert network.holds(WITH_JOB)


def test_a_plan_cannot_be_applied_while_a_switch_is_away(network: Network) -> None:
    southbound = network.started()
    network.server.stop()
    wait_until(lambda: not any(status.connected for status in southbound.status()))
    with pytest.raises(SouthboundError, match="s1 is not connected: "):
        southbound.apply(WITH_JOB)
    with pytest.raises(SouthboundError, match="l1 is not connected: "):
        southbound.counters("l1")
    network.server.start()
    southbound.wait_ready(PATIENCE_S)
    assert network.holds(BASE)


def test_a_plan_that_is_late_is_cancelled_and_all_go_back(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    southbound = network.started()
    monkeypatch.setattr(p4runtime, "PUSH_TIMEOUT_S", 0.5)
    monkeypatch.setattr(p4runtime, "CALL_TIMEOUT_S", 0.4)
    late = network.device("s2")
    late.answers.clear()
    late.updates.clear()
    with pytest.raises(SouthboundTimeout, match=r"^s2: no answer within 0.5 s$"):
        southbound.apply(WITH_JOB)
    with pytest.raises(SouthboundTimeout, match=r"^s2: no answer within 0.4 s$"):
        southbound.counters("s2")
    assert network.holds(BASE)
    monkeypatch.undo()
    late.answers.set()
    southbound.apply(BASE)
    assert late.updates.total() == 0  # the late plan was never written
    southbound.apply(WITH_JOB)
    assert network.holds(WITH_JOB)


def test_one_call_that_is_late_is_a_timeout_too(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    southbound = network.started()
    monkeypatch.setattr(contents, "CALL_TIMEOUT_S", 0.2)
    network.device("l1").answers.clear()
    with pytest.raises(SouthboundTimeout, match=r"^l1: read counters: DEADLINE_EXCEEDED "):
        southbound.counters("l1")


def test_counters_are_read_whole_and_by_short_name(network: Network) -> None:
    southbound = network.started()
    device = network.device("l1")
    schema = PIPELINE.schema
    for index in range(16):
        device.counters[schema.counters["gradient_in"].id, index] = (index, 100 * index)
    device.counters[schema.counters["events"].id, 2] = (5, 0)
    assert southbound.counters("l1") == {
        "gradient_in": [CounterCell(index, index, 100 * index) for index in range(16)],
        "acknowledgement_in": [],
        "events": [CounterCell(2, 5, 0)],
    }


def test_plans_are_checked_before_anything_is_sent(network: Network) -> None:
    targets = {"l1": Target("unix:/nowhere", 1)}
    southbound = P4RuntimeSouthbound(targets, {"aggregation": PIPELINE})
    with pytest.raises(UserError, match="different switches: l2, l3, s1, s2"):
        southbound.start(BASE)
    with pytest.raises(UserError, match="l1: no pipeline is named 'router'"):
        southbound.start(Plan(switches={"l1": SwitchPlan.of("router")}))
    southbound.stop()
    assert network.device("l1").pushes == 0


def test_many_entries_go_in_several_writes(network: Network) -> None:
    template = next(e for e in BASE["l1"].entries if e.table == "ipv4_routes")
    prefixes = itertools.count(0x0B000000, 256)
    many = [
        template.model_copy(
            update={"match": {field: how.model_copy(update={"value": next(prefixes), "prefix_bits": 24})}}
        )
        for _ in range(2500)
        for field, how in template.match.items()
        if not isinstance(how, int)
    ]
    plan = Plan(switches={**BASE.switches, "l1": SwitchPlan.of("aggregation", [*BASE["l1"].entries, *many])})
    network.started(plan)
    assert network.holds(plan)


def test_calls_from_many_threads_do_not_mix(network: Network) -> None:
    southbound = network.started()
    plans = [BASE, WITH_JOB] * 4
    failures: list[BaseException] = []

    def apply(plan: Plan) -> None:
        try:
            southbound.apply(plan)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=apply, args=(plan,)) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert network.holds(BASE) or network.holds(WITH_JOB)


def test_a_switch_that_is_asked_tells_what_was_taken_out_by_hand(network: Network) -> None:
    southbound = network.started(WITH_JOB)
    assert southbound.differences("s1") == []
    device = network.device("s1")
    key = next(iter(device.entries))
    taken = device.entries.pop(key)
    (line,) = southbound.differences("s1") or []
    assert line.startswith("+ ")
    device.entries[key] = taken
    assert southbound.differences("s1") == []
    device.entries.clear()
    device.groups.clear()
    plan = PIPELINE.schema.normalised(WITH_JOB["s1"])
    assert len(southbound.differences("s1") or []) == len(plan.entries) + len(plan.groups)
    assert not device.entries, "asking writes nothing"
