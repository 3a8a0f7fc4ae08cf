"""Optical switches as OpenFlow switches: the same wavelength router in flows."""

from __future__ import annotations

import threading

import pytest

from gradbed.controller.core.controller import Controller
from gradbed.controller.core.service import ServiceConfig, load_services
from gradbed.controller.planning.legacy import OPENFLOW
from gradbed.controller.planning.plan import Output, SwitchPlan
from gradbed.controller.southbound.openflow.openflow_codec import flow_mod, held_flows
from gradbed.controller.systems.interconnect.entries import TO_IN_PORT, VLAN_PRESENT, crossbar
from gradbed.topo.optical_electrical import HYBRID, optical_electrical
from tests.unit.controller.fake_openflow import FakeSwitch
from tests.unit.controller.fake_southbound import FakeSouthbound


def table(plan: SwitchPlan) -> dict[tuple[int, int], int]:
    """(port in, wavelength) to port out; every flow has these two fields alone and this one action."""
    found = {}
    for flow in plan.flows:
        assert set(flow.match) == {"in_port", "vlan_vid"}
        in_port, vlan_vid = flow.match["in_port"], flow.match["vlan_vid"]
        assert isinstance(in_port, int) and isinstance(vlan_vid, int) and vlan_vid & VLAN_PRESENT
        (action,) = flow.actions
        assert isinstance(action, Output)
        found[in_port, vlan_vid ^ VLAN_PRESENT] = in_port if action.output == TO_IN_PORT else action.output
    return found


@pytest.mark.parametrize("n", [2, 3, 8])
def test_out_is_in_plus_the_wavelength(n: int) -> None:
    """Ports count from 1. For each wavelength and each way out there is one way in: no two beams meet."""
    found = table(crossbar(n))
    assert found == {(port, w): 1 + (port - 1 + w) % n for port in range(1, n + 1) for w in range(n)}
    for wavelength in range(n):
        assert len({out for (_, w), out in found.items() if w == wavelength}) == n


def test_the_controller_gives_it_these_flows_and_no_routes() -> None:
    topology = optical_electrical(2)
    southbound = FakeSouthbound([switch.name for switch in topology.switches])
    service = ServiceConfig(
        name="interconnect",
        service="gradbed.controller.systems.interconnect.service:InterconnectService",
        settings={"optical": "openflow", "per_wavelength": False},
    )
    controller = Controller(
        topology,
        southbound,
        load_services([service]),
        {each.name: "interconnect" if each.tier == HYBRID else OPENFLOW for each in topology.switches},
        unrouted_programs=("interconnect",),
    )
    plan = controller.plan()
    assert [plan[f"a{i}"] for i in range(4)] == [crossbar(2)] * 4
    assert all(plan[f"m{x}_{y}"].entries for x in range(2) for y in range(2))


def test_flows_come_back_from_a_switch_as_they_went() -> None:
    switch, heard = FakeSwitch(1), threading.Event()
    datapath = switch.connect(lambda message: heard.set())
    for flow in crossbar(3).flows:
        message = flow_mod(datapath, flow)
        datapath.set_xid(message)
        datapath.send_msg(message)
    flows, strange = held_flows(switch.flows.values())
    assert (SwitchPlan.of("forward", flows=flows, kind="openflow"), strange) == (crossbar(3), [])
