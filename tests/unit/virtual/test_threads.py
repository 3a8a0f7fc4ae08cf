"""A network on several threads is the same, to the last byte, as on one."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.common.errors import UserError
from gradbed.emulation.layout import network_config
from gradbed.switch.codegen import build_program
from gradbed.switch.device import ActionCall, KeyMatch, Program
from gradbed.switch.engine_network import InterfaceConfig, LinkConfig, NetworkConfig, SwitchConfig
from gradbed.switch.program_cache import compiled_files
from gradbed.switch.virtual import Generator, HostInterface, SimulatedNetwork
from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.engine.instructed import pass_through
from tests.unit.virtual.test_event_order import HOSTS, LINKS, SENDINGS, US, Links, Sending, network_of, send, texts
from tools.bench.virtual.measure import add_traffic, install, place_of
from tools.bench.virtual.workload import Permutation

ROUTER = Path(__file__).parents[3] / "p4src" / "router.p4"
HOST_PORT = 1
CPU_PORT = 200
AFTER_EVENTS, FEWEST_EVENTS = 3, 0
"""Side by side almost from the beginning, however little there is to do."""


def side_by_side(simulated: SimulatedNetwork) -> SimulatedNetwork:
    simulated.engine.call("set_lookahead_windows", AFTER_EVENTS, FEWEST_EVENTS)
    return simulated


# ---- Frames of one time ----


def arrivals(links: Links, sendings: list[Sending], threads: int) -> list[list[tuple[int, int]]]:
    """By host: when which frame came."""
    with side_by_side(network_of(links, threads)) as simulated:
        interfaces = [simulated.interface(*place) for place in HOSTS]
        for interface in interfaces:
            interface.set_quiet(True)
        for number, sending in enumerate(sendings):
            frame = b"".join(pass_through(port) for port in (*sending.way, sending.to_port))
            send(interfaces[sending.host], frame + bytes([number]) * sending.payload_bytes, sending.at_us * US)
        while not simulated.run_until(None).idle:
            pass
        return [came_to(interface) for interface in interfaces]


def came_to(interface: HostInterface) -> list[tuple[int, int]]:
    found = [text[0] for text in texts(interface)]
    return list(zip(interface.times_ns.tolist(), found, strict=True))


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(links=LINKS, sendings=st.lists(SENDINGS, min_size=2, max_size=25))
def test_events_of_one_time_keep_their_order(links: Links, sendings: list[Sending]) -> None:
    alone = arrivals(links, sendings, 1)
    assert arrivals(links, sendings, 2) == alone
    assert arrivals(links, sendings, 3) == alone


FAST = (0, 8)
"""A link that takes no time for bytes, so that many frames are under way on it in one window."""


@pytest.mark.thorough
def test_frames_behind_one_another_keep_their_place_among_others() -> None:
    """Two frames of one link, of which the first arrives together with others that were sent between the two: their
    numbers in a window are other ones' numbers afterwards."""
    links = Links(between=(FAST, FAST, FAST), hosts=6 * (FAST,))
    draw = random.Random(1)
    for _ in range(150):
        sendings = [
            Sending(draw.randrange(6), draw.choice((0, 1, 2, 3)), tuple(draw.choices((1, 2), k=draw.randrange(4))),
                    draw.choice((3, 4)), 8)
            for _ in range(40)
        ]  # fmt: skip
        alone = arrivals(links, sendings, 1)
        assert arrivals(links, sendings, 2) == alone
        assert arrivals(links, sendings, 3) == alone


# ---- Signals ----


class Interrupted(Exception):
    """As KeyboardInterrupt after Ctrl-C."""


@pytest.mark.parametrize("threads", [1, 2])
def test_a_signal_is_looked_at_and_nothing_is_lost(threads: int) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise Interrupted

    permutation, end_ns = Permutation(8, delay_us=1), 4_000_000_000  # some tens of seconds
    made = SimulatedNetwork(network_config(permutation.topology, "memory", 1, ()), threads=threads)
    with side_by_side(made) as simulated:
        install(simulated, permutation.topology, permutation.routes())
        add_traffic(simulated, permutation)
        former = signal.signal(signal.SIGVTALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.05)
            with pytest.raises(Interrupted):
                simulated.run_until(end_ns)
        finally:
            signal.signal(signal.SIGVTALRM, former)
        assert simulated.engine.now_ns() < end_ns
        until_ns = simulated.engine.now_ns() + 1_000_000
        simulated.run_until(until_ns)
        assert counts(permutation, simulated) == counted(1, until_ns)


def test_it_is_looked_at_while_time_goes_on() -> None:
    looks = []

    def look() -> None:
        looks.append(simulated.engine.now_ns())
        if len(looks) == 3:
            raise Interrupted

    permutation, end_ns = Permutation(8, delay_us=1), 4_000_000_000  # some tens of seconds
    with SimulatedNetwork(network_config(permutation.topology, "memory", 1, ())) as simulated:
        install(simulated, permutation.topology, permutation.routes())
        add_traffic(simulated, permutation)
        simulated.after_running.append(look)
        with pytest.raises(Interrupted):
            simulated.run_until(end_ns)
    assert 0 < looks[0] < looks[1] < looks[2] < end_ns


# ---- What nobody expected ----


@pytest.mark.parametrize("threads", [1, 2])
def test_a_switch_that_tells_its_controller_something(threads: int) -> None:
    """Where one thread works the controller is told; where several do, that would be too late."""
    links = Links(between=((1, 8), (1, 8), (1, 8)), hosts=6 * ((1, 8),))
    told: list[bytes] = []
    with side_by_side(network_of(links, threads, cpu_port=CPU_PORT)) as simulated:
        for device in simulated.devices.values():
            device.on_packet_in(told.append)
        simulated.expect_no_messages()
        interfaces = [simulated.interface(*place) for place in HOSTS]
        for interface in interfaces:
            interface.set_quiet(True)
        for number, ports in enumerate(((1, 1, 3), (2, 2, 4), (1, 1, CPU_PORT))):
            frame = b"".join(map(pass_through, ports)) + bytes(8)
            send(interfaces[number], frame, 10 * US)
        if threads == 1:
            simulated.run_until(None)
            assert len(told) == 1
        else:
            with pytest.raises(UserError, match="sent its controller a message"):
                simulated.run_until(None)


# ---- Where the threads have one processor ----


def counts(permutation: Permutation, simulated: SimulatedNetwork) -> list[Any]:
    sinks = [simulated.sink_statistics(*place_of(permutation, host)) for host in permutation.topology.hosts]
    return [simulated.engine.link_statistics(), sinks]


def counted(threads: int, until_ns: int = 3_000_000) -> list[Any]:
    """What a fat-tree counts that comes to windows by itself, as it has events enough."""
    permutation = Permutation(8, delay_us=1)
    with SimulatedNetwork(network_config(permutation.topology, "memory", 1, ()), threads=threads) as simulated:
        install(simulated, permutation.topology, permutation.routes())
        add_traffic(simulated, permutation)
        simulated.run_until(until_ns)
        return counts(permutation, simulated)


def test_threads_that_wait_for_a_processor_leave_the_work_to_one() -> None:
    alone = counted(1)
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert counted(2) == alone
        assert counted(3) == alone
    finally:
        os.sched_setaffinity(0, allowed)


# ---- Networks with traffic and faults ----


def router() -> Program:
    return build_program(json.loads(Path(compiled_files(ROUTER, {}).json).read_text()))


def random_link(draw: random.Random) -> LinkModel:
    return LinkModel(
        rate_bps=draw.choice((None, 100_000_000, 1_000_000_000)),
        delay_us=draw.choice((2, 2, 3, 5)),
        jitter_us=draw.choice((0, 0, 1)),
        reorder=draw.random() < 0.5,
        loss=draw.choice((0, 0, 0.05)),
        duplicate=draw.choice((0, 0, 0.05)),
        bit_error_rate=draw.choice((0, 0, 1e-6)),
        queue_packets=draw.choice((3, 50)),
    )


class Network:
    """Switches at random, each with a host at HOST_PORT, and shortest paths between all."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(seed)
        count = draw.randint(3, 12)
        self.graph = networkx.connected_watts_strogatz_graph(count, min(4, count - 1), 0.3, seed=seed)
        equal = random_link(draw)
        links, self.ports, used = [], {}, dict.fromkeys(self.graph, HOST_PORT)
        for a, b in self.graph.edges:
            for end, other in ((a, b), (b, a)):
                used[end] += 1
                self.ports[end, other] = used[end]
            model = equal if draw.random() < 0.7 else random_link(draw)
            links.append(
                LinkConfig(
                    a=(a + 1, self.ports[a, b]), b=(b + 1, self.ports[b, a]), link=model, seed=draw.randrange(99)
                )
            )
        self.config = NetworkConfig(
            switches=tuple(SwitchConfig(device_id=node + 1) for node in self.graph),
            interfaces=tuple(
                InterfaceConfig(device_id=node + 1, port=HOST_PORT, interface=f"s{node}", link=equal, seed=node)
                for node in self.graph
            ),
            links=tuple(links),
        )
        self.generators = [self.generator(node) for node in self.graph for _ in range(2)]

    def generator(self, node: int) -> tuple[int, Generator]:
        to = self.draw.choice([other for other in self.graph if other != node])
        return node + 1, Generator(
            src_mac=bytes(6),
            dst_mac=bytes(6),
            src_ip=address(node),
            dst_ip=address(to),
            rate_bps=self.draw.choice((80_000_000, 400_000_000)),
            frame_bytes=self.draw.choice((100, 1000)),
            poisson=self.draw.random() < 0.5,
            seed=self.draw.randrange(99),
            stop_ns=400_000,
            dst_port=self.draw.choice((9, 10)),
        )

    def install(self, simulated: SimulatedNetwork, device_id: int) -> None:
        device, node = simulated.devices[device_id], device_id - 1
        device.load(router())
        paths = networkx.single_source_shortest_path(self.graph, node)
        for other, path in paths.items():
            port = HOST_PORT if other == node else self.ports[node, path[1]]
            device.state.tables.insert(
                "RouterIngress.next_hops", [KeyMatch(other + 1)], ActionCall("RouterIngress.forward", (port, 1, 2)), 0
            )
            key = KeyMatch(int(address(other)), prefix_bits=32)
            hop = ActionCall("RouterIngress.set_next_hop", (other + 1,))
            device.state.tables.insert("RouterIngress.routes", [key], hop, 32)


def address(node: int) -> IPv4Address:
    return IPv4Address("10.0.0.1") + node


def faults(network: Network, simulated: SimulatedNetwork, seed: int) -> Iterator[None]:
    draw = random.Random(seed)
    links = network.config.links
    for _ in range(6):
        link = draw.choice(links)
        what = draw.choice(("cut", "mend", "change", "restart", "nothing"))
        if what in ("cut", "mend"):
            simulated.engine.set_link_up(*link.a, what == "mend")
        elif what == "change":
            simulated.engine.set_link(*link.a, random_link(draw), ["out"])
        elif what == "restart":
            network.install(simulated, link.a[0])
        yield


def seen_in(seed: int, threads: int) -> list[Any]:
    """Everything that a run shows, whenever somebody looks."""
    network = Network(seed)
    seen: list[Any] = []
    with side_by_side(SimulatedNetwork(network.config, threads=threads)) as simulated:
        for device_id in simulated.devices:
            network.install(simulated, device_id)
            simulated.add_sink(device_id, HOST_PORT, 9)
        interfaces = [simulated.interface(device_id, HOST_PORT) for device_id in simulated.devices]
        for interface in interfaces:
            interface.set_quiet(True)
        for device_id, generator in network.generators:
            simulated.add_generator(device_id, HOST_PORT, generator)
        for number, _ in enumerate(faults(network, simulated, seed), 1):
            stop = simulated.run_until(number * 80_000 - 1 if number < 6 else None)
            seen.append((stop.time_ns, stop.idle, simulated.engine.link_statistics()))
            seen += [device.statistics() for device in simulated.devices.values()]
            seen += [simulated.sink_statistics(device_id, HOST_PORT) for device_id in simulated.devices]
            for interface in interfaces:
                frames = texts(interface)
                seen.append((interface.times_ns.tolist(), frames))
        seen.append(simulated.engine.statistics().live_packets)
    return seen


def compare(seed: int) -> None:
    alone = seen_in(seed, 1)
    for threads in (2, 3):
        assert seen_in(seed, threads) == alone, f"seed {seed}, {threads} threads"


@pytest.mark.commit_cases(3)
@pytest.mark.parametrize("seed", range(8))
def test_a_network_with_faults_is_the_same_on_several_threads(seed: int) -> None:
    compare(seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(8, 108))
def test_many_networks_with_faults_are_the_same_on_several_threads(seed: int) -> None:
    compare(seed)
