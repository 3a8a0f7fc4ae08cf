"""Switches brought to plans by OpenFlow, against switches in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network

import pytest

from gradbed.common.errors import UserError
from gradbed.controller.planning.entries import ipv4_route, multicast_route, udp_route
from gradbed.controller.planning.legacy import openflow_plan
from gradbed.controller.planning.plan import MulticastGroup, Plan, SwitchPlan
from gradbed.controller.southbound.interface import NoListener, SouthboundError, SwitchStatus, Target
from gradbed.controller.southbound.openflow.openflow import OpenFlowSouthbound
from gradbed.controller.switches import SouthboundByProtocol
from gradbed.topo.addressing import make_switch
from tests.unit.controller.fake_openflow import FakeDatapath, FakeSwitch
from tests.unit.controller.fake_southbound import FakeSouthbound
from tests.waiting import wait_until

PATIENCE_S = 20.0
MAC = "02:00:0a:00:00:02"
NUMBERS = {"s1": 1, "s2": 2}


def plan_with(*designated: int, group: tuple[int, ...] = ()) -> Plan:
    """The same for all switches: a route, some designated routes and a multicast group."""

    def of(name: str, number: int) -> SwitchPlan:
        entries = [ipv4_route(IPv4Network("10.0.0.0/24"), 1, MAC), *(udp_route(0x4742, n, 2) for n in designated)]
        groups = []
        if group:
            entries.append(multicast_route(IPv4Address("239.66.0.1"), 1))
            groups.append(MulticastGroup(id=1, ports=group))
        return openflow_plan(make_switch(name, number, "hub"), SwitchPlan.of("forward", entries, groups))

    return Plan(switches={name: of(name, number) for name, number in NUMBERS.items()})


class Network(NoListener):
    """Two switches that can be called, cut off and replaced. switches: those that another one has, too."""

    def __init__(self, switches: dict[str, FakeSwitch] | None = None, generation: int | None = None) -> None:
        self.switches = switches or {str(number): FakeSwitch(number) for number in NUMBERS.values()}
        self.connections: dict[str, tuple[FakeDatapath, threading.Event]] = {}
        self.unreachable: set[str] = set()
        self.statuses: list[SwitchStatus] = []
        targets = {name: Target(str(number), number) for name, number in NUMBERS.items()}
        self.southbound = OpenFlowSouthbound(targets, self._dial, generation)
        self.southbound.listen(self)
        self.changed = threading.Condition()

    def switch_changed(self, status: SwitchStatus) -> None:
        with self.changed:
            self.statuses.append(status)
            self.changed.notify_all()

    def _dial(self, address: str) -> None:
        if address in self.unreachable:
            raise ConnectionRefusedError(111, "Connection refused")
        datapath = self.switches[address].connect(self.southbound.message)
        over = threading.Event()
        datapath.close = over.set  # type: ignore[method-assign]
        self.connections[address] = (datapath, over)
        self.southbound.arrived(datapath)
        over.wait()

    def stop(self) -> None:
        self.southbound.stop()
        for _, over in self.connections.values():
            over.set()

    def hang_up(self, address: str) -> None:
        self.connections[address][1].set()

    def wait_for(self, name: str, connected: bool) -> SwitchStatus:
        def latest() -> SwitchStatus | None:
            found = [status for status in self.statuses if status.name == name]
            return found[-1] if found and found[-1].connected == connected else None

        with self.changed:
            assert self.changed.wait_for(lambda: latest() is not None, PATIENCE_S)
            status = latest()
        assert status is not None
        return status

    def writes(self, address: str) -> list[str]:
        """What was written since the last call."""
        log = self.switches[address].log
        written, log[:] = list(log), []
        return written


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.stop()


def start(network: Network, plan: Plan) -> None:
    network.southbound.start(plan)
    network.southbound.wait_ready(PATIENCE_S)


def test_groups_before_flows_and_a_barrier_after_each_batch(network: Network) -> None:
    start(network, plan_with(5, group=(1, 2)))
    assert network.writes("1") == ["add group 1", "barrier", "add 3000", "add 2000", "add 1024", "barrier"]
    assert [status.pipeline for status in network.southbound.status()] == ["forward (OpenFlow 1.3)"] * 2


def test_a_plan_is_reached_by_the_difference(network: Network) -> None:
    start(network, plan_with(5, group=(1, 2)))
    network.writes("1")
    network.southbound.apply(plan_with(6, group=(1, 3)))
    assert network.writes("1") == ["modify group 1", "barrier", "add 3000", "delete 3000", "barrier"]
    network.southbound.apply(plan_with(6))
    assert network.writes("1") == ["delete 2000", "barrier", "delete group 1", "barrier"]
    assert len(network.switches["1"].flows) == 2


def test_a_switch_that_comes_back_keeps_what_is_right(network: Network) -> None:
    start(network, plan_with(5))
    network.writes("1")
    network.unreachable.add("1")
    network.hang_up("1")
    assert network.wait_for("s1", connected=False).error
    with pytest.raises(SouthboundError, match="s1 is not connected"):
        network.southbound.apply(plan_with(6))
    with pytest.raises(SouthboundError, match="s1 is not connected"):
        network.southbound.counters("s1")
    # Meanwhile somebody has spoilt it.
    flows = network.switches["1"].flows
    spoilt = next(key for key in flows if key[0] == 1024)
    del flows[spoilt]
    network.unreachable.clear()
    network.wait_for("s1", connected=True)
    assert network.writes("1") == ["add 1024", "barrier"]
    # The other one went back to the plan before.
    assert sorted(key[0] for key in network.switches["2"].flows) == [1024, 3000]


def test_a_switch_that_is_asked_tells_what_was_changed_by_hand(network: Network) -> None:
    start(network, plan_with(5, group=(1, 2)))
    network.writes("1")
    assert network.southbound.differences("s1") == []
    switch = network.switches["1"]
    switch.flows.clear()  # ovs-ofctl del-flows
    assert len(network.southbound.differences("s1")) == 3
    assert all(line.startswith("+ flow: ") for line in network.southbound.differences("s1"))
    assert network.southbound.differences("s2") == []
    switch.groups.clear()
    assert len(network.southbound.differences("s1")) == 4
    assert network.writes("1") == [], "asking writes nothing"


def test_a_new_controller_leaves_strangers_flows_alone(network: Network) -> None:
    switch = network.switches["1"]
    datapath = switch.connect(lambda message: None)
    parser = datapath.ofproto_parser
    for cookie, port in ((1, 1), (0x6772616462656400, 2)):
        datapath.send_msg(parser.OFPFlowMod(datapath, cookie=cookie, match=parser.OFPMatch(in_port=port)))
    network.writes("1")
    start(network, plan_with())
    # The second bears our cookie, but no plan of ours has such flows.
    assert network.writes("1") == ["delete 32768", "barrier", "add 1024", "barrier"]
    assert sorted(flow.cookie for flow in switch.flows.values()) == [1, 0x6772616462656400]


def test_the_master_before_is_refused_and_cannot_come_back(network: Network) -> None:
    start(network, plan_with(5))
    later = Network(network.switches, generation=time.time_ns())
    try:
        start(later, plan_with(5))
        held = {address: dict(switch.flows) for address, switch in network.switches.items()}
        network.writes("1")
        with pytest.raises(SouthboundError, match=r"s1: .*BAD_REQUEST.*IS_SLAVE"):
            network.southbound.apply(plan_with(6))
        network.hang_up("1")
        wait_until(lambda: "another controller is in charge" in network.southbound.status()[0].error)
        assert "STALE" in network.southbound.status()[0].error
        assert held == {address: switch.flows for address, switch in network.switches.items()}
    finally:
        later.stop()


def test_a_refusal_names_the_flow(network: Network) -> None:
    start(network, plan_with())
    network.switches["2"].refuse = 3000
    with pytest.raises(SouthboundError, match=r"s2: .*udp_src=5.*TABLE_FULL") as refusal:
        network.southbound.apply(plan_with(5))
    assert "\n" not in str(refusal.value)
    # Both are back where they were.
    assert [key[0] for key in network.switches["1"].flows] == [1024]
    assert [key[0] for key in network.switches["2"].flows] == [1024]


def test_a_switch_that_refuses_from_the_beginning(network: Network) -> None:
    network.switches["1"].refuse = 1024
    network.southbound.start(plan_with())
    with pytest.raises(UserError, match=r"switch s1 is not ready: .*10\.0\.0\.0/24.*TABLE_FULL"):
        network.southbound.wait_ready(PATIENCE_S)


def test_a_switch_that_is_not_there(network: Network) -> None:
    network.unreachable.add("2")
    network.southbound.start(plan_with())
    with pytest.raises(UserError, match=r"switch s2 is not ready: no answer from 2 \(Connection refused\)"):
        network.southbound.wait_ready(0.5)


def test_a_connection_lost_in_the_middle(network: Network) -> None:
    start(network, plan_with())
    network.switches["1"].silent = True
    threading.Timer(0.1, network.hang_up, ["1"]).start()
    with pytest.raises(SouthboundError, match="s1: the connection was lost"):
        network.southbound.apply(plan_with(5))


def test_port_counters(network: Network) -> None:
    start(network, plan_with())
    counters = network.southbound.counters("s1")
    assert [(c.index, c.packets, c.bytes) for c in counters["port_in"]] == [(1, 10, 1000), (2, 20, 2000)]
    assert [(c.index, c.packets, c.bytes) for c in counters["port_out"]] == [(1, 11, 2000), (2, 21, 4000)]
    assert [(c.index, c.packets, c.bytes) for c in counters["looked_up"]] == [(0, 30, 0)]


def test_both_protocols_as_one(network: Network) -> None:
    p4 = FakeSouthbound(["s3"])
    both = SouthboundByProtocol(p4, network.southbound, NUMBERS)

    def plan(*designated: int) -> Plan:
        return Plan(switches={"s3": SwitchPlan.of("aggregation"), **plan_with(*designated).switches})

    both.start(plan())
    both.wait_ready(PATIENCE_S)
    assert [status.name for status in both.status()] == ["s3", "s1", "s2"]
    assert set(p4.applied[-1].switches) == {"s3"}
    both.apply(plan(5))
    assert len(network.switches["1"].flows) == 2
    # What P4 switches refuse, OpenFlow switches give up, too.
    p4.failure = SouthboundError("s3: refused")
    with pytest.raises(SouthboundError, match="s3: refused"):
        both.apply(plan(5, 6))
    assert len(network.switches["1"].flows) == 2
    assert set(both.counters("s1")) == {"port_in", "port_out", "looked_up"}
