"""Pauses that wait for each other in a circle are found, and nothing else is called so."""

from __future__ import annotations

from ipaddress import IPv4Address

import networkx
import pytest

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import Plan
from gradbed.controller.planning.routing import shortest_routes
from gradbed.controller.systems.training.service import TrainingService, TrainingSettings
from gradbed.switch.engine.engine import LinksDeadlocked
from gradbed.switch.virtual import Generator, SimulatedNetwork
from gradbed.topo.graph import Topology
from gradbed.topo.link import LinkModel
from gradbed.topo.registry import parse_topology
from tests.unit.controller.services.test_training_service import Walker
from tests.unit.virtual.pfc.networks import (
    address,
    frame,
    loaded,
    quiet_interfaces,
    ring,
    route,
    rows,
    run,
    send,
)

LINK = LinkModel(rate_bps=1_000_000_000, delay_us=1, queue_packets=1000, pfc_xoff_bytes=4000, pfc_xon_bytes=2000)
BURST = 200


def ring_of(count: int, hops: int, threads: int = 1) -> SimulatedNetwork:
    """Host i's packets for the one `hops` further go that way round."""
    simulated = loaded(ring(count, LINK), threads)
    for switch in range(1, count + 1):
        # Everything else goes on round the ring.
        route(simulated, switch, {host: 1 if host == switch else 2 for host in range(1, count + 1)})
    return simulated


def burst(simulated: SimulatedNetwork, count: int, hops: int) -> None:
    interfaces = quiet_interfaces(simulated, [(switch, 1) for switch in range(1, count + 1)])
    for host, interface in enumerate(interfaces, 1):
        send(interface, [frame((host - 1 + hops) % count + 1, 1000, 3)] * BURST)


def test_a_ring_that_waits_for_itself_is_named() -> None:
    with ring_of(3, 2) as simulated:
        burst(simulated, 3, 2)
        with pytest.raises(LinksDeadlocked) as found:
            run(simulated)
        assert {(each.device_id, each.port, each.priority) for each in found.value.circle} == {
            (1, 2, 3), (2, 2, 3), (3, 2, 3)
        }  # fmt: skip
        # Each waits for the one that leads on.
        order = [each.device_id for each in found.value.circle]
        assert all(b == a % 3 + 1 for a, b in zip(order, [*order[1:], order[0]], strict=True))
        text = str(found.value)
        assert isinstance(found.value, UserError)
        assert "\n" not in text
        assert all(link in text for link in ("s1-s2", "s2-s3", "s3-s1", "priority 3"))
        waiting = sum(row.queued for row in simulated.engine.link_statistics())
        assert waiting > 0 and not any(row.queue_drops for row in simulated.engine.link_statistics())
        # From then on time goes on without it.
        assert simulated.run_until(10**10).time_ns == 10**10


def test_a_deadlock_is_found_while_others_go_on() -> None:
    """Something always happens elsewhere: a host of another switch sends without end."""
    config = ring(3, LINK)
    more = ring(1, LINK).interfaces[0].model_copy(update={"device_id": 9, "interface": "h9"})
    other = config.switches[0].model_copy(update={"device_id": 9, "name": "s9"})
    config = config.model_copy(
        update={"switches": (*config.switches, other), "interfaces": (*config.interfaces, more)}
    )
    with loaded(config) as simulated:
        for switch in (1, 2, 3):
            route(simulated, switch, {host: 1 if host == switch else 2 for host in (1, 2, 3)})
        generator = Generator(
            src_mac=bytes(6), dst_mac=bytes(6), src_ip=IPv4Address(address(8)), dst_ip=IPv4Address(address(9)),
            rate_bps=10_000_000, frame_bytes=1000, stop_ns=10**12, dst_port=9,
        )  # fmt: skip
        simulated.add_generator(9, 1, generator)
        burst(simulated, 3, 2)
        with pytest.raises(LinksDeadlocked, match="s1-s2"):
            simulated.run_until(10**11)
        assert simulated.now_ns < 60_000_000


def test_a_ring_of_single_steps_goes_on() -> None:
    with ring_of(3, 1) as simulated:
        burst(simulated, 3, 1)
        run(simulated)
        assert simulated.engine.deadlock() == []
        assert all(rows(simulated)[switch, 1, "out"].packets == BURST for switch in (1, 2, 3))


def test_a_ring_with_room_for_all_goes_on() -> None:
    """The same circle of links, but no pause."""
    with loaded(ring(3, LinkModel(rate_bps=10**9, queue_packets=1000, pfc_xoff_bytes=10**6))) as simulated:
        for switch in (1, 2, 3):
            route(simulated, switch, {host: 1 if host == switch else 2 for host in (1, 2, 3)})
        burst(simulated, 3, 2)
        run(simulated)
        assert all(rows(simulated)[switch, 1, "out"].packets == BURST for switch in (1, 2, 3))


def test_long_pauses_behind_a_slow_host_are_no_deadlock() -> None:
    slow = LinkModel(rate_bps=100_000, queue_packets=1000)
    config = ring(3, LINK)
    interfaces = [each.model_copy(update={"link": slow} if each.device_id == 2 else {}) for each in config.interfaces]
    with loaded(config.model_copy(update={"interfaces": tuple(interfaces)})) as simulated:
        for switch in (1, 2, 3):
            route(simulated, switch, {host: 1 if host == switch else 2 for host in (1, 2, 3)})
        (interface,) = quiet_interfaces(simulated, [(1, 1)])
        send(interface, [frame(2, 1000, 3)] * 40)
        run(simulated)
        found = rows(simulated)
        assert found[2, 1, "out"].packets == 40
        assert found[1, 2, "out"].paused_ns[3] > 10**9


# ---- Which routes can: dependencies between links, by code of the test's own ----


def dependencies(topology: Topology, plan: Plan) -> networkx.DiGraph:
    """From a link to each that packets which came by it may take next."""
    walker = Walker(topology, plan)
    graph = networkx.DiGraph()
    for host in topology.hosts:
        to = int(IPv4Address(host.ip))
        for source in topology.hosts:
            if source == host:
                continue
            waiting, seen = [(source.name, topology.attachment(source.name).name)], set()
            while waiting:
                link = waiting.pop()
                if link in seen or topology.is_host(link[1]):
                    continue
                seen.add(link)
                for node in walker.next_nodes(link[1], to):
                    graph.add_edge(link, (link[1], node))
                    waiting.append((link[1], node))
    return graph


@pytest.mark.parametrize(
    ("shape", "circles"),
    [("fat-tree:4", False), ("leaf-spine:3,2,2", False), ("star:4", False), ("torus:5,1,1", True)],
)
def test_shortest_paths_on_trees_depend_on_each_other_in_no_circle(shape: str, circles: bool) -> None:
    topology = parse_topology(shape)
    plan = TrainingService(topology, shortest_routes(topology), TrainingSettings()).base()
    assert networkx.is_directed_acyclic_graph(dependencies(topology, plan)) is not circles
