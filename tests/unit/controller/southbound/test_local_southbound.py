"""Switches in this process hold a plan as a whole or not at all, as those over P4Runtime (test_southbound.py)."""

from __future__ import annotations

from typing import Any

import pytest
from finsy.proto import rpc_code

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Plan, SwitchPlan
from gradbed.controller.southbound.interface import SouthboundError
from gradbed.controller.southbound.p4runtime.local import LocalSouthbound
from gradbed.switch.p4runtime.status import BatchError, RequestError, StatusCode
from tests.unit.controller.fake_p4runtime import FakeDevice
from tests.unit.controller.southbound.test_southbound import BASE, PIPELINE, TOPOLOGY, WITH_JOB, held

DEVICE_IDS = {switch.name: switch.number for switch in TOPOLOGY.switches}


class Switches:
    """gradbed.controller.southbound.p4runtime.local.LocalSwitches: devices that keep what they are told."""

    def __init__(self) -> None:
        self.devices = {number: FakeDevice() for number in DEVICE_IDS.values()}

    def set_pipeline(self, device_id: int, config: Any) -> None:
        device = self.devices[device_id]
        device.config = config
        device.entries.clear()
        device.groups.clear()

    def write(self, device_id: int, updates: Any) -> None:
        errors = [self.devices[device_id].update(update) for update in updates]
        outcomes = [
            None
            if error.canonical_code == rpc_code.OK
            else RequestError(StatusCode(error.canonical_code), error.message)
            for error in errors
        ]
        if any(outcomes):
            raise BatchError("some updates failed", outcomes)

    def read(self, device_id: int, entities: Any) -> list[Any]:
        return [found for entity in entities for found in self.devices[device_id].read(entity)]

    def cookie(self, device_id: int) -> int | None:
        return int(self.devices[device_id].config.cookie.cookie)

    def acknowledge_digest(self, device_id: int, digest_id: int, list_id: int) -> None: ...

    def hold(self, plan: Plan) -> bool:
        return all(
            held(self.devices[DEVICE_IDS[name]]) == PIPELINE.schema.normalised(plan[name]) for name in plan.switches
        )


@pytest.fixture
def switches() -> Switches:
    return Switches()


@pytest.fixture
def southbound(switches: Switches) -> LocalSouthbound:
    southbound = LocalSouthbound(switches, DEVICE_IDS, {"aggregation": PIPELINE})
    southbound.start(BASE)
    assert switches.hold(BASE)
    return southbound


@pytest.mark.parametrize("refuses", ["s2", "l3"])
def test_if_one_switch_refuses_a_plan_all_go_back(
    switches: Switches, southbound: LocalSouthbound, refuses: str
) -> None:
    """Whether others come after it or not."""
    device = switches.devices[DEVICE_IDS[refuses]]
    roles = PIPELINE.schema.tables["roles"].id
    # The first of these holds part of the plan then, the other, to which all comes last, none.
    device.refuse_entity = lambda entity: refuses == "l3" or entity.table_entry.table_id == roles
    with pytest.raises(SouthboundError, match=rf"^{refuses}: no room"):
        southbound.apply(WITH_JOB)
    assert switches.hold(BASE)
    southbound.restore("l1")
    assert switches.hold(BASE), "what a switch is brought to again is the plan that holds"
    device.refuse_entity = lambda entity: False
    southbound.apply(WITH_JOB)
    assert switches.hold(WITH_JOB)


def test_a_switch_that_refuses_to_go_back_does_not_keep_the_others(
    switches: Switches, southbound: LocalSouthbound
) -> None:
    device = switches.devices[DEVICE_IDS["s2"]]
    device.refuse_entity = lambda entity: True
    with pytest.raises(SouthboundError, match=r"^s2: no room$"):
        southbound.apply(WITH_JOB)
    assert all(
        held(switches.devices[DEVICE_IDS[name]]) == PIPELINE.schema.normalised(BASE[name])
        for name in DEVICE_IDS
        if name != "s2"
    )
    device.refuse_entity = lambda entity: False
    southbound.apply(BASE)
    assert switches.hold(BASE)


def test_a_plan_that_names_no_pipeline_changes_nothing(switches: Switches, southbound: LocalSouthbound) -> None:
    plan = Plan(switches={**WITH_JOB.switches, "s2": SwitchPlan.of("router")})
    with pytest.raises(UserError, match="s2: no pipeline is named 'router'"):
        southbound.apply(plan)
    assert switches.hold(BASE)


def test_a_switch_that_restarts_gets_the_newest_plan_when_it_is_back(
    switches: Switches, southbound: LocalSouthbound
) -> None:
    """A plan that comes meanwhile is not refused for it, and the others hold it at once."""
    device = switches.devices[DEVICE_IDS["l1"]]
    device.refuse_entity = lambda entity: True
    southbound.lost("l1")
    southbound.apply(WITH_JOB)
    assert not switches.hold(WITH_JOB)
    device.refuse_entity = lambda entity: False
    southbound.restore("l1")
    assert switches.hold(WITH_JOB)


def test_a_switch_that_is_asked_tells_what_it_lacks(switches: Switches, southbound: LocalSouthbound) -> None:
    assert southbound.differences("l1") == []
    switches.devices[DEVICE_IDS["l1"]].entries.popitem()
    assert len(southbound.differences("l1") or []) == 1 and southbound.differences("l2") == []
