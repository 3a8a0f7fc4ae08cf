"""Networks with PFC and room enough lose nothing, pause, and do the same on any number of threads."""

from __future__ import annotations

import random
from ipaddress import IPv4Address

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.controller.planning.plan import Lpm
from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.systems.training.service import TrainingService, TrainingSettings
from gradbed.switch.device import ActionCall, KeyMatch
from gradbed.switch.engine.statistics import LinkStatistics
from gradbed.switch.engine_network import InterfaceConfig, LinkConfig, NetworkConfig, SwitchConfig
from gradbed.switch.virtual import HostInterface, SimulatedNetwork
from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel, packets_without_loss
from gradbed.topo.registry import parse_topology
from tests.examples import examples
from tests.unit.virtual.pfc.networks import (
    LEAST_BYTES,
    frame,
    loaded,
    number_of,
    of_topology,
    quiet_interfaces,
    route,
    run,
    send,
)
from tests.unit.virtual.test_threads import side_by_side

MOST_BYTES = 1500
PRIORITIES = (0, 3)


Arrivals = list[tuple[int, int]]
"""When which packet came."""


def arrivals(interface: HostInterface) -> Arrivals:
    texts, _ = interface.receive()
    return list(zip(interface.times_ns.tolist(), map(number_of, map(bytes, texts)), strict=True))


@st.composite
def trees(draw: st.DrawFn, least_delay_us: int = 0) -> tuple[NetworkConfig, networkx.Graph, int]:
    """Switches that hang together as a tree, each with a host at port 1 whose number is the switch's; links at
    random, with queues just as long as the formula says. In a tree no packets wait for each other in a circle."""
    count = draw(st.integers(2, 6))
    graph = networkx.Graph()
    graph.add_node(1)
    for node in range(2, count + 1):
        graph.add_edge(draw(st.integers(1, node - 1)), node)

    def link() -> LinkModel:
        xoff = draw(st.integers(100, 6000))
        return LinkModel(
            rate_bps=draw(st.sampled_from((10**8, 10**9, 3 * 10**9))),
            delay_us=draw(st.integers(least_delay_us, 3)),
            pfc_xoff_bytes=xoff,
            pfc_xon_bytes=draw(st.integers(0, xoff)),
        )

    hosts = {node: link() for node in graph}
    between = {edge: link() for edge in graph.edges}
    # Where a queue is, all links that lead to its switch may fill it.
    into: dict[int, list[LinkModel]] = {node: [hosts[node]] for node in graph}
    for (a, b), model in between.items():
        into[a].append(model)
        into[b].append(model)
    room = {
        node: packets_without_loss(models, LEAST_BYTES, MOST_BYTES, len(PRIORITIES)) for node, models in into.items()
    }
    used = dict.fromkeys(graph, 1)
    links = []
    for (a, b), model in between.items():
        used[a] += 1
        used[b] += 1
        graph.edges[a, b]["ports"] = {a: used[a], b: used[b]}
        # One number for both directions: that of the switch that needs more.
        queue = {"queue_packets": max(room[a], room[b])}
        links.append(LinkConfig(a=(a, used[a]), b=(b, used[b]), link=LinkModel(**{**model.to_json(), **queue})))
    interfaces = tuple(
        InterfaceConfig(
            device_id=node,
            port=1,
            interface=f"h{node}",
            # A host's NIC has room for all that the host sends.
            link=LinkModel(**{**model.to_json(), "queue_packets": max(1000, room[node])}),
        )
        for node, model in hosts.items()
    )
    switches = tuple(SwitchConfig(device_id=node, name=f"s{node}") for node in graph)
    return (
        NetworkConfig(switches=switches, interfaces=interfaces, links=tuple(links)),
        graph,
        draw(st.integers(0, 999)),
    )


def traffic(simulated: SimulatedNetwork, graph: networkx.Graph, seed: int) -> list[HostInterface]:
    """Routes along the tree, and what each host sends to another one. The hosts' interfaces, by node."""
    draw = random.Random(seed)
    for node in graph:
        paths = networkx.single_source_shortest_path(graph, node)
        ports = {to: 1 if to == node else graph.edges[node, path[1]]["ports"][node] for to, path in paths.items()}
        route(simulated, node, ports)
    interfaces = quiet_interfaces(simulated, [(node, 1) for node in graph])
    for node, interface in zip(graph, interfaces, strict=True):
        target = draw.choice([other for other in graph if other != node])
        frames = [
            frame(target, draw.choice((LEAST_BYTES, LEAST_BYTES, 400, MOST_BYTES)), draw.choice(PRIORITIES), number)
            for number in range(150)
        ]
        send(interface, frames, sorted(draw.randrange(200_000) for _ in frames))
    return interfaces


Tree = tuple[NetworkConfig, networkx.Graph, int]


@given(trees())
@settings(max_examples=examples(40), deadline=None, derandomize=True)
def test_nothing_is_lost_where_there_is_room(case: Tree) -> None:
    config, graph, seed = case
    with loaded(config) as simulated:
        interfaces = traffic(simulated, graph, seed)
        run(simulated)
        found = simulated.engine.link_statistics()
        assert not any(row.queue_drops for row in found)
        assert sum(row.packets for row in found if row.direction == "in") == 150 * len(graph)
        assert sum(len(interface.receive()[0]) for interface in interfaces) == 150 * len(graph)
        # Both ends of each link have counted the same pauses, and all are over.
        assert all(row.pauses_sent == row.pauses_received for row in found)
        ended = [row.paused_ns for row in found]
        simulated.run_until(simulated.now_ns + 1_000_000)
        assert [row.paused_ns for row in simulated.engine.link_statistics()] == ended
        assert simulated.engine.statistics().live_packets == 0


def by_threads(case: Tree, threads: int) -> tuple[list[Arrivals], list[LinkStatistics]]:
    config, graph, seed = case
    with side_by_side(loaded(config, threads)) as simulated:
        interfaces = traffic(simulated, graph, seed)
        run(simulated)
        return [arrivals(interface) for interface in interfaces], simulated.engine.link_statistics()


@pytest.mark.thorough
@given(trees(least_delay_us=1))
@settings(max_examples=examples(4), deadline=None, derandomize=True)
def test_any_tree_is_the_same_on_several_threads(case: Tree) -> None:
    alone = by_threads(case, 1)
    assert by_threads(case, 2) == alone
    assert by_threads(case, 3) == alone


# ---- A fat-tree ----

FAT_TREE = parse_topology("fat-tree:4")
LOSSLESS = LinkModel(
    rate_bps=10_000_000_000, delay_us=1, queue_packets=2000, pfc_xoff_bytes=20_000, pfc_xon_bytes=10_000
)


def install(simulated: SimulatedNetwork, topology: Topology) -> None:
    """All shortest paths; each packet takes any."""
    plan = TrainingService(topology, shortest_routes(topology), TrainingSettings(policy="random-spraying")).base()
    for name, switch in plan.switches.items():
        tables = simulated.devices[topology.switch(name).number].state.tables
        for entry in switch.entries:
            key = [
                KeyMatch(how.value, prefix_bits=how.prefix_bits) if isinstance(how, Lpm) else KeyMatch(how)  # type: ignore[arg-type]
                for how in entry.match.values()
            ]
            call = ActionCall(f"TrainingIngress.balance.{entry.action}", tuple(entry.params.values()))
            tables.insert(f"TrainingIngress.balance.{entry.table}", key, call, 0)


def incast(threads: int) -> tuple[list[Arrivals], list[LinkStatistics]]:
    """All hosts send to the first two: what arrived, and what links counted."""
    config = of_topology(FAT_TREE, LOSSLESS)
    with side_by_side(loaded(config, threads)) as simulated:
        install(simulated, FAT_TREE)
        interfaces = quiet_interfaces(simulated, [(each.device_id, each.port) for each in config.interfaces])
        targets = [int(IPv4Address(host.ip)) & 0xFFFFFF for host in FAT_TREE.hosts[:2]]
        for host, interface in enumerate(interfaces[2:]):
            frames = [frame(targets[n % 2], 1500, n % 4 and 3, 1000 * host + n) for n in range(120)]
            send(interface, frames, [500 * n for n in range(120)])
        run(simulated)
        return [arrivals(interface) for interface in interfaces], simulated.engine.link_statistics()


@pytest.fixture(scope="module")
def alone() -> tuple[list[Arrivals], list[LinkStatistics]]:
    return incast(1)


def test_a_fat_tree_under_incast_loses_nothing(alone: tuple[list[Arrivals], list[LinkStatistics]]) -> None:
    arrived, links = alone
    assert [len(each) for each in arrived] == [14 * 60, 14 * 60, *[0] * 14]
    assert not any(row.queue_drops for row in links)
    assert sum(map(sum, (row.pauses_sent for row in links))) > 100
    assert all(row.pauses_sent == row.pauses_received for row in links)
    # Pauses spread from the hosts' switch over the whole tree, up to other hosts' NICs.
    assert any(sum(row.paused_ns) for row in links if row.direction == "in")


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_pause_at_the_same_times(alone: tuple[list[Arrivals], list[LinkStatistics]], threads: int) -> None:
    assert incast(threads) == alone
