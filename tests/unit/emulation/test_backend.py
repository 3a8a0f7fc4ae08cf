"""What a network can do, on the back end that needs no kernel; and whom it asks for foreign switches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from gradbed.common.errors import UserError
from gradbed.emulation.backend import NetworkBackend, VirtualBackend
from gradbed.emulation.layout import network_config
from gradbed.emulation.switches.gradbed_switches import RemoteNetwork, SwitchProcess
from gradbed.hosts.agents.virtual.clock import VirtualClock
from gradbed.switch.engine_network import EngineNetwork
from gradbed.switch.virtual import SimulatedNetwork
from gradbed.topo.generators import leaf_spine
from gradbed.topo.link import LinkModel
from gradbed.topo.selectors import select
from tests.pcapng import read_pcapng
from tests.unit.engine.instructed import instructed_program, pass_through
from tests.unit.virtual.test_hosts import rows, texts

DELAY_US = 100
TOPOLOGY = leaf_spine(2, 1, 1, LinkModel(delay_us=DELAY_US))
"""h1 - l1 - s1 - l2 - h2: port 1 of a leaf leads to its host, port 2 up."""

FRAME = pass_through(2) + pass_through(2) + pass_through(1) + b"x"
"""Through l1, s1 and l2."""

BACK = pass_through(2) + pass_through(1) + pass_through(1) + b"x"


class Network:
    """Switches that do what frames tell them."""

    def __init__(self) -> None:
        self.virtual = SimulatedNetwork(network_config(TOPOLOGY, "memory", 1, ()))
        self.backend: NetworkBackend = VirtualBackend(TOPOLOGY, self.virtual, VirtualClock(self.virtual))
        self.h1, self.h2 = (self.virtual.interface(TOPOLOGY.switch(leaf).number, 1) for leaf in ("l1", "l2"))

    def load(self, switch: str) -> None:
        self.virtual.devices[TOPOLOGY.switch(switch).number].load(instructed_program())

    def way_us(self, frame: bytes = FRAME, *, back: bool = False) -> float | None:
        """How long a frame takes from one host to the other; None: it is lost."""
        sender, receiver = (self.h2, self.h1) if back else (self.h1, self.h2)
        begin_ns = self.virtual.now_ns
        sender.send(rows(frame))
        taken = None
        while not (stop := self.virtual.run_until(None)).idle or stop.interfaces:
            assert texts(receiver) == [b"x"]
            taken = (stop.time_ns - begin_ns) / 1000
        return taken

    def carried(self, a: str, b: str) -> tuple[int, int]:
        """Packets and losses."""
        [row] = [row for row in self.backend.link_statistics() if (row.from_node, row.to_node) == (a, b)]
        return row.packets, row.losses


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network()
    with made.virtual:
        for switch in TOPOLOGY.switches:
            made.load(switch.name)
        yield made


PATH = ("h1", "l1", "s1", "l2", "h2")


@pytest.mark.parametrize(("a", "b"), [*pairwise(PATH), *pairwise(reversed(PATH))])
def test_links_are_changed_in_both_directions(network: Network, a: str, b: str) -> None:
    usual_us = 4 * DELAY_US
    assert network.way_us() == usual_us
    network.backend.change_link(a, b, delay_us=250, queue_packets=7)
    changed_us = usual_us + 250 - DELAY_US
    assert (network.way_us(), network.way_us(BACK, back=True)) == (changed_us, changed_us)
    # What is not named stays.
    network.backend.change_link(b, a, rate_bps=8_000_000)
    model = network.backend.link_model(a, b)
    assert (model.delay_us, model.queue_packets, model.rate_bps) == (250, 7, 8_000_000)
    assert network.backend.changed_rates_bps() == {frozenset((a, b)): 8_000_000}
    assert network.way_us() in {changed_us + len(FRAME) - 8 * hop for hop in range(4)}


@pytest.mark.parametrize(("a", "b"), [*pairwise(PATH)])
def test_links_are_cut_and_mended(network: Network, a: str, b: str) -> None:
    network.backend.set_link_up(a, b, False)
    assert (network.way_us(), network.way_us(BACK, back=True)) == (None, None)
    assert (network.carried(a, b), network.carried(b, a)) == ((0, 1), (0, 1))
    network.backend.set_link_up(b, a, True)
    assert network.way_us() == 4 * DELAY_US
    assert network.carried(a, b) == (1, 1)
    for pair in (("h1", "h2"), ("l1", "nobody")):
        with pytest.raises(UserError, match="no link between"):
            network.backend.set_link_up(*pair, True)


def test_a_restarted_switch_drops_and_counts(network: Network) -> None:
    network.backend.restart_switch("s1")
    assert network.way_us() is None
    counted = network.backend.device_statistics()
    assert list(counted) == [switch.name for switch in TOPOLOGY.switches]
    assert {name: row["no_program_drops"] for name, row in counted.items()} == {"l1": 0, "l2": 0, "s1": 1}
    network.load("s1")
    assert network.way_us() == 4 * DELAY_US
    with pytest.raises(UserError, match="s9"):
        network.backend.restart_switch("s9")


def test_it_is_told_what_is_on_its_way(network: Network) -> None:
    assert network.backend.packets_in_flight() == 0
    network.h1.send(rows(FRAME))
    assert network.backend.packets_in_flight() == 1
    assert network.backend.quiesce(1.0)
    assert network.virtual.now_ns == 4000 * DELAY_US
    assert texts(network.h2) == [b"x"]
    assert network.backend.packets_in_flight() == 0


def test_a_hosts_link_is_captured_both_ways(network: Network, tmp_path: Path) -> None:
    file = tmp_path / "h1.pcapng"
    network.backend.start_capture(file, select(TOPOLOGY, "h1"))
    network.way_us()
    network.way_us(BACK, back=True)
    assert network.backend.captures() == [(file, 2, False)]
    assert network.backend.stop_capture(file) == 2
    assert network.backend.captures() == []
    way_ns = 4000 * DELAY_US
    # When its link begins to send it, and when the host has it.
    assert [each[:3] for each in read_pcapng(file)] == [("h1-eth0", 0, "out"), ("h1-eth0", 2 * way_ns, "in")]
    assert [each.frame for each in read_pcapng(file)] == [FRAME, b"x"]


@pytest.mark.parametrize(("a", "b"), [*pairwise(PATH), *pairwise(reversed(PATH))])
def test_a_link_is_captured_both_ways_where_packets_enter_it(
    network: Network, a: str, b: str, tmp_path: Path
) -> None:
    file = tmp_path / "link.pcapng"
    network.backend.start_capture(file, select(TOPOLOGY, f"{a}-{b}"), packets=3)
    network.way_us()
    network.way_us(BACK, back=True)
    network.backend.set_link_up(a, b, False)
    network.way_us()
    assert network.backend.captures() == [(file, 3, True)]
    network.way_us()
    assert network.backend.stop_capture(file) == 3
    forth = f"{a}->{b}" if (a, b) in pairwise(PATH) else f"{b}->{a}"
    back = "->".join(reversed(forth.split("->")))
    hop = PATH.index(forth.split("->")[0])
    way_ns, hop_ns = 4000 * DELAY_US, 1000 * DELAY_US
    seen = read_pcapng(file)
    assert [(each.interface, each.time_ns) for each in seen[:2]] == [
        (forth, hop * hop_ns),
        (back, way_ns + (3 - hop) * hop_ns),
    ]
    assert [each.flow for each in seen] == (["out", "in", "out"] if forth == f"{a}->{b}" else ["in", "out", "in"])
    assert [each.comment for each in seen] == ["", "", "lost on the link"]
    assert seen[0].frame == seen[2].frame == FRAME[8 * hop :]


def test_a_capture_ends_when_its_time_is_over(network: Network, tmp_path: Path) -> None:
    file = tmp_path / "short.pcapng"
    network.backend.start_capture(file, select(TOPOLOGY, "h1-l1"), seconds=1e-6 * DELAY_US)
    network.way_us()
    assert network.backend.captures() == [(file, 1, True)]
    network.way_us()
    assert network.backend.stop_capture(file) == 1


def _not_started() -> SwitchProcess:
    raise RuntimeError("the switch process has not been started")


NOT_STARTED = cast(EngineNetwork, RemoteNetwork(_not_started))


class Bridges:
    """Stands for Open vSwitch; restarts are noted."""

    names = frozenset({"s1"})

    def __init__(self) -> None:
        self.restarted: list[str] = []

    def control_address(self, switch: str) -> str:
        return f"127.0.0.1:1 of {switch}"

    def restart_switch(self, switch: str) -> None:
        self.restarted.append(switch)

    def thrift_ports(self) -> dict[str, int]:
        return {"s1": 9090}


class Counting(NetworkBackend):
    """Its links have carried a packet more at each of the first looks."""

    def __init__(self, foreign: Bridges, looks: int) -> None:
        super().__init__(TOPOLOGY, "memory", NOT_STARTED, (foreign,))
        self.looks = looks

    def _p4runtime_address(self) -> str:
        return "127.0.0.1:2"

    def _quiesce(self, timeout_s: float) -> bool:
        return timeout_s > 0

    def link_statistics(self) -> Any:
        self.looks -= 1
        return max(0, self.looks)


def test_foreign_switches_are_asked_for_what_is_theirs() -> None:
    bridges = Bridges()
    backend = Counting(bridges, 3)
    assert backend.control_address("s1") == "127.0.0.1:1 of s1"
    assert backend.control_address("l1") == "127.0.0.1:2"
    assert backend.thrift_ports() == {"s1": 9090}
    assert backend.packets_in_flight() is None
    backend.restart_switch("s1")
    assert bridges.restarted == ["s1"]
    with pytest.raises(RuntimeError, match="the switch process has not been started"):
        backend.restart_switch("l1")  # the engine's
    # They do not report what they hold: links are looked at until they stand still.
    assert backend.quiesce(5.0) and backend.looks == -1
    assert not Counting(bridges, 10**6).quiesce(0.05)
