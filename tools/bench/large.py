"""Large fat-trees: how long they take to come up, what memory they take, and do all hosts reach each other?

On the real clock every host sends a datagram to every other through its kernel's socket; on the virtual one each
sends to its partners in so many random permutations. Who has to hear whom the graph says.
"""

from __future__ import annotations

import json
import random
import resource
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np

from gradbed.common.errors import UserError
from gradbed.common.namespaces import in_network_namespace
from gradbed.common.resources import scratch_folder
from gradbed.common.sandbox import run_in_sandbox
from gradbed.emulation.size import announce
from gradbed.experiments.runtimes.real import RealRuntime
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.systems import DEFAULT_SYSTEM, find_system
from gradbed.experiments.tables.console import make_console
from gradbed.topo.graph import Topology
from tools.bench.measure import Goal, exit_status, goals_table
from tools.bench.memory_profile import processes

GIBIBYTE = 1 << 30
GOAL_S, GOAL_GIB = 60.0, 6.0
"""Of the k = 8 fat-tree on the real clock."""
GOAL_K = 8

UDP_PORT = 9
QUIET_S = 3.0
"""When nothing has come for so long, nothing will."""
ROUNDS = 3

Pair = tuple[str, str]
"""A sender and a receiver."""


@dataclass(frozen=True)
class Large:
    """What a large network cost, and whether its hosts reach each other."""

    up_s: float
    """Seconds until every switch held its routes."""
    cpu_s: float
    """Processor time of all processes until then; on the virtual clock to the end."""
    bytes: int
    """Proportional set size of all processes (real clock), largest resident size (virtual clock)."""
    reached: int
    """Connected pairs of hosts whose packets arrived."""
    connected: int
    """Pairs of hosts that the graph connects."""


def run_bench_large(real_k: int, virtual_k: int) -> int:
    """Measure both fat-trees; a k of 0 omits one.

    Returns:
        1 if a goal is missed or hosts do not reach each other, otherwise 0.
    """
    goals: list[Goal] = []
    for clock, k in (("real", real_k), ("virtual", virtual_k)):
        if k:
            goals += _goals(clock, k, measured(clock, k))
    make_console().print(goals_table(goals))
    return exit_status(goals)


def _goals(clock: str, k: int, found: Large) -> Iterator[Goal]:
    has_goal = (clock, k) == ("real", GOAL_K)
    name = f"fat-tree:{k}, {clock} clock"
    yield Goal(f"{name}: up", GOAL_S if has_goal else float("inf"), found.up_s, "s", at_most=True)
    yield Goal(f"{name}: processor time", float("inf"), found.cpu_s, "s", at_most=True)
    gibibytes = found.bytes / GIBIBYTE
    yield Goal(f"{name}: memory", GOAL_GIB if has_goal else float("inf"), gibibytes, "GiB", at_most=True)
    yield Goal(f"{name}: pairs that reach each other", found.connected, found.reached)


def measured(clock: str, k: int) -> Large:
    """Bring a network up, and measure it. UserError if it does not come up."""
    with scratch_folder() as folder:
        found = folder / "large.json"

        def run() -> int:
            found.write_text(json.dumps(asdict((_real if clock == "real" else _virtual)(k, folder))))
            return 0

        if run_in_sandbox(run, "python -m tools.bench large") != 0:
            raise UserError(f"fat-tree:{k} did not come up")
        return Large(**json.loads(found.read_text()))


def _real(k: int, folder: Path) -> Large:
    task = _task(k, "real", folder)
    system = find_system(DEFAULT_SYSTEM)
    setup = system.network(task)
    announce(setup.topology)
    start_s = time.monotonic()
    with ExitStack() as stack:
        runtime = stack.enter_context(RealRuntime(system, setup, task))
        up_s, cpu_s = time.monotonic() - start_s, sum(map(_cpu_s, _pids()))
        held = sum(map(proportional_bytes, _pids()))
        sockets = {
            host.name: stack.enter_context(in_network_namespace(runtime.network.host_pid(host.name), _socket))
            for host in setup.topology.hosts
        }
        reached = heard(setup.topology, sockets)
    wanted = connected(setup.topology)
    return Large(up_s, cpu_s, held, len(reached & wanted), len(wanted))


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("0.0.0.0", UDP_PORT))
    made.settimeout(QUIET_S)
    return made


def heard(topology: Topology, sockets: Mapping[str, socket.socket]) -> set[Pair]:
    """Return who heard whom when each host sends to each: the payload names the receiver, its address the sender."""
    names = {host.ip: host.name for host in topology.hosts}
    found: set[Pair] = set()
    for receiver in topology.hosts:
        # All to one at a time, as many as its buffer holds.
        for sender, sending in sockets.items():
            if sender != receiver.name:
                sending.sendto(receiver.name.encode(), (receiver.ip, UDP_PORT))
        found |= _received(receiver.name, sockets[receiver.name], names, len(sockets) - 1)
    return found


def _received(name: str, receiving: socket.socket, names: Mapping[str, str], most: int) -> set[Pair]:
    found: set[Pair] = set()
    while len(found) < most:
        try:
            payload, (address, _) = receiving.recvfrom(2048)
        except TimeoutError:
            break
        if payload == name.encode():
            found.add((names[address], name))
    return found


def _virtual(k: int, folder: Path) -> Large:
    from gradbed.experiments.runtimes.virtual import VirtualRuntime

    task = _task(k, "virtual", folder)
    system = find_system(DEFAULT_SYSTEM)
    setup = system.network(task)
    start_s = time.monotonic()
    with VirtualRuntime(system, setup, task) as runtime:
        up_s = time.monotonic() - start_s
        topology, draw = setup.topology, random.Random(1)
        interfaces = {host.name: runtime.interfaces[f"{host.name}-eth0"] for host in topology.hosts}
        found: set[Pair] = set()

        def take(receiver: str) -> None:
            frames, lengths = interfaces[receiver].receive()
            senders = (each[HEADERS_BYTES:length].tobytes() for each, length in zip(frames, lengths, strict=True))
            found.update((sender.decode(), receiver) for sender in senders)

        for name, interface in interfaces.items():
            runtime.clock.listen(interface, partial(take, name))
        wanted: set[Pair] = set()
        for _ in range(ROUNDS):
            partners = permutation(list(interfaces), draw)
            for sender, receiver in partners.items():
                interfaces[sender].send(frame(topology, sender, receiver)[None, :])
            runtime.backend.quiesce(QUIET_S)
            wanted |= set(partners.items())
        wanted &= connected(topology)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = usage.ru_utime + usage.ru_stime
    return Large(up_s, cpu_s, 1024 * usage.ru_maxrss, len(found & wanted), len(wanted))


HEADERS_BYTES = 14 + 20 + 8


def frame(topology: Topology, sender: str, receiver: str) -> np.ndarray:
    """Return a UDP datagram with the sender's name as its payload, as a host would send it."""
    from scapy.layers.inet import IP, UDP
    from scapy.layers.l2 import Ether

    a, b = topology.host(sender), topology.host(receiver)
    packet = Ether(src=a.mac, dst=a.gateway_mac) / IP(src=a.ip, dst=b.ip) / UDP(sport=UDP_PORT, dport=UDP_PORT)
    return np.frombuffer(bytes(packet / sender.encode()), np.uint8)


def permutation(names: Sequence[str], draw: random.Random) -> dict[str, str]:
    """Return a partner for each host, never itself."""
    order = list(names)
    draw.shuffle(order)
    return dict(zip(order, order[1:] + order[:1], strict=True))


def connected(topology: Topology) -> set[Pair]:
    """Return the ordered pairs of hosts that the graph connects."""
    graph = nx.Graph((link.a.node, link.b.node) for link in topology.links)
    hosts = {host.name for host in topology.hosts}
    parts: Iterable[set[str]] = (part & hosts for part in nx.connected_components(graph))
    return {(a, b) for part in parts for a in part for b in part if a != b}


def _task(k: int, clock: str, folder: Path) -> TrialTask:
    system = find_system(DEFAULT_SYSTEM)
    configuration = system.configuration.model_validate({"clock": clock, "topology": {"kind": f"fat-tree:{k}"}})
    return TrialTask(configuration, 1, Scale(), folder)


def _pids() -> list[int]:
    return [process.pid for process in processes()]


def proportional_bytes(pid: int) -> int:
    """Return the proportional set size of a process: shared pages count in parts."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def _cpu_s(pid: int) -> float:
    """Return user and system time of a process and of its children that have ended (proc_pid_stat(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / 100
