"""Measure what packets of queue pairs cost on the virtual clock.

Every host sends to one other, in a star (two links each) and in a k = 4 fat-tree (six links, no two flows on one).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network

from gradbed.emulation.layout import network_config
from gradbed.experiments.tables.console import Columns, make_console, rows_table
from gradbed.formats.addresses import ip_integer
from gradbed.hosts.agents.queue_pairs import QueuePairOptions
from gradbed.switch.engine.queue_pairs import HostQueuePairs
from gradbed.switch.virtual import SimulatedNetwork
from gradbed.topo.generators import star
from gradbed.topo.graph import Host, Topology
from gradbed.topo.link import LinkModel
from tools.bench.measure import Goal, exit_status, goals_table
from tools.bench.virtual.measure import install, mac
from tools.bench.virtual.workload import Permutation

K = 4
LINK = LinkModel(rate_bps=100_000_000_000, delay_us=1, queue_packets=10_000)
GOAL_PACKETS, GOAL_S = 100_000_000, 600
"""An iteration of a transformer with 7 billion parameters on 64 accelerators, and how soon it should be simulated."""
WINDOW_PACKETS = 64
_PAIR = 1


@dataclass(frozen=True)
class Network:
    """A network and its flows."""

    name: str
    topology: Topology
    routes: Sequence[tuple[str, Mapping[IPv4Network, int]]]
    """The port of each prefix, for each switch."""
    flows: Sequence[tuple[Host, Host]]
    """Sender and receiver of each flow."""
    links: int
    """Links on the path of a flow."""


@dataclass(frozen=True)
class TransportResult:
    """What the packets of a network cost."""

    mtu_bytes: int
    network: Network
    data_packets: int
    hops: int
    """Frames that links delivered, with acknowledgements."""
    run_s: float
    """Processor time in seconds."""

    @property
    def packet_us(self) -> float:
        """Processor time of a packet in microseconds."""
        return 1e6 * self.run_s / self.data_packets


COLUMNS: Columns = (
    ("network", lambda row: row.network.name),
    ("MTU", lambda row: row.mtu_bytes),
    ("packets", lambda row: row.data_packets),
    ("links each", lambda row: row.network.links),
    ("frames over links", lambda row: row.hops),
    ("packets/s", lambda row: f"{row.data_packets / row.run_s:,.0f}"),
    ("frames/s", lambda row: f"{row.hops / row.run_s:,.0f}"),
    ("us of a packet", lambda row: f"{row.packet_us:.2f}"),
    ("us of a frame and link", lambda row: f"{1e6 * row.run_s / row.hops:.2f}"),
)


def run_bench_transport(packets: int, repetitions: int) -> int:
    """Measure and print tables; packets: of each host. Exit status 1 if a goal is missed."""
    networks = (_star(), _fat_tree())
    rows = [
        _median([measure(network, mtu_bytes, packets) for _ in range(repetitions)])
        for mtu_bytes in (4096, 64_000)
        for network in networks
    ]
    worst_us = max(row.packet_us for row in rows if row.mtu_bytes == 4096)
    name = f"{GOAL_PACKETS / 1e6:.0f} million packets of 4,096 bytes over six links"
    goals = [Goal(name, GOAL_S, worst_us * GOAL_PACKETS / 1e6, "s", at_most=True)]
    console = make_console()
    console.print(
        rows_table(
            "Queue pairs, every host to one other (processor time, medians)", COLUMNS, rows, words=("network",)
        )
    )
    console.print(goals_table(goals))
    return exit_status(goals)


def _median(found: Sequence[TransportResult]) -> TransportResult:
    return sorted(found, key=lambda each: each.run_s)[len(found) // 2]


def _star() -> Network:
    topology = star(K**3 // 4, LINK)
    hosts = topology.hosts
    (switch,) = topology.switches
    ports = {link.a.node: link.b.port for link in topology.links} | {
        link.b.node: link.a.port for link in topology.links
    }
    routes = {IPv4Network(host.ip): ports[host.name] for host in hosts}
    flows = list(zip(hosts, (*hosts[1:], hosts[0]), strict=True))
    return Network("star of 16", topology, [(switch.name, routes)], flows, 2)


def _fat_tree() -> Network:
    permutation = Permutation(K)
    topology = permutation.topology
    return Network("fat-tree:4", topology, list(permutation.routes()), permutation.flows(), 6)


def measure(network: Network, mtu_bytes: int, packets: int) -> TransportResult:
    """Let each host send one message of so many packets, without contents."""
    config = network_config(network.topology, "memory", 1, ())
    config = config.model_copy(
        update={
            name: tuple(each.model_copy(update={"link": LINK}) for each in getattr(config, name))
            for name in ("interfaces", "links")
        }
    )
    places = {host.name: _place_of(network.topology, host) for host in network.topology.hosts}
    with SimulatedNetwork(config) as simulated:
        install(simulated, network.topology, network.routes)
        pairs = {}
        for host, place in places.items():
            pairs[host] = simulated.interface(*place).open_queue_pairs()
        for number, (source, destination) in enumerate(network.flows, _PAIR):
            _connect(pairs[source.name], number, source, destination, mtu_bytes)
            _connect(pairs[destination.name], number, destination, source, mtu_bytes)
            pairs[source.name].send(number, number, packets * mtu_bytes)
        begin_s = time.process_time()
        while not simulated.run_until(None).idle:
            pass
        run_s = time.process_time() - begin_s
        received = sum(len(each.completions()) for each in pairs.values())
        if received != 2 * len(network.flows):
            raise RuntimeError(f"{received} completions of {len(network.flows)} messages")
        hops = sum(row.packets for row in simulated.engine.link_statistics())
        return TransportResult(mtu_bytes, network, packets * len(network.flows), hops, run_s)


def _connect(pairs: HostQueuePairs, number: int, here: Host, there: Host, mtu_bytes: int) -> None:
    options = QueuePairOptions(mtu_bytes=mtu_bytes, window_bytes=WINDOW_PACKETS * mtu_bytes, timeout_us=100_000)
    pairs.connect(
        number,
        number,
        src_mac=mac(here.mac),
        dst_mac=mac(here.gateway_mac),
        congestion_control=options.congestion_control,
        recovery=options.recovery,
        src_ip=ip_integer(here.ip),
        dst_ip=ip_integer(there.ip),
        timeout_ns=1000 * options.timeout_us,
        **options.model_dump(exclude={"timeout_us", "congestion_control", "recovery"}),
    )


def _place_of(topology: Topology, host: Host) -> tuple[int, int]:
    """Return the device id and the port to which a host is attached."""
    switch = topology.attachment(host.name)
    (port,) = (
        end.port
        for link in topology.host_links
        for end, other in ((link.a, link.b), (link.b, link.a))
        if other.node == host.name
    )
    return switch.number, port
