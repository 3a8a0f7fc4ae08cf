"""Placement of ranks on hosts, and the groups whose collectives switches carry out."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gradbed.common.errors import UserError
from gradbed.experiments.setup import StreamGroup, SwitchCollectives
from gradbed.experiments.systems import find_system, systems
from gradbed.experiments.systems.training.configuration import CollectivesSection, RanksSection
from gradbed.hosts.collectives.schedule import Operation
from gradbed.hosts.systems.training.traces.graph import Kind
from gradbed.hosts.systems.training.traces.trace import Trace
from gradbed.topo.graph import Topology

# ---- Ranks on hosts ----


def place_ranks(topology: Topology, ranks: int, section: RanksSection, seed: int) -> list[list[str]]:
    """Return the hosts of each job's ranks, in rank order.

    Raises:
        UserError: there are too few hosts.
    """
    needed, hosts = ranks * section.jobs, [host.name for host in topology.hosts]
    if needed > len(hosts):
        jobs = "" if section.jobs == 1 else f"{section.jobs} jobs of "
        raise UserError(f"--ranks: {jobs}{ranks} ranks need {needed} hosts, {topology.name} has {len(hosts)}")
    if section.placement == "striped":
        hosts = _striped(topology, hosts)
    elif section.placement == "racks":
        hosts = _in_racks(topology, hosts, needed)
    elif section.placement == "random":
        random.Random(f"ranks {seed}").shuffle(hosts)
    return [hosts[job * ranks : (job + 1) * ranks] for job in range(section.jobs)]


def _in_racks(topology: Topology, hosts: list[str], needed: int) -> list[str]:
    """Return as many hosts of each rack, in the order of hosts."""
    chosen = set(_striped(topology, hosts)[:needed])
    return [host for host in hosts if host in chosen]


def _striped(topology: Topology, hosts: list[str]) -> list[str]:
    """Return one host of each rack in turn."""
    racks: defaultdict[str, list[str]] = defaultdict(list)
    for host in hosts:
        racks[topology.attachment(host).name].append(host)
    most = max(map(len, racks.values()))
    return [rack[place] for place in range(most) for rack in racks.values() if place < len(rack)]


# ---- Collectives in switches ----


@dataclass(frozen=True)
class SwitchedGroup:
    """A group of ranks whose collectives switches carry out."""

    job: int
    """Number of the job, from 0."""
    operation: Operation
    group: tuple[int, ...]
    """Ranks of the group."""
    streams: StreamGroup


def switched_groups(
    section: CollectivesSection, topology: Topology, jobs: Sequence[Sequence[str]], trace: Trace
) -> tuple[SwitchCollectives | None, list[SwitchedGroup]]:
    """Return what the system of --in-network does, and for which groups; None if no system is named.

    Raises:
        UserError: the system cannot do it.
    """
    if section.in_network == "none":
        return None, []
    system = find_system(section.in_network) if section.in_network in systems() else None
    if system is None or not system.switches.collective:
        able = [name for name in systems() if find_system(name).switches.collective]
        raise UserError(
            f"--in-network: no system {section.in_network} has switches that carry out collectives: those of "
            f"{' and '.join(able)} do"
        )
    operation = Operation(system.switches.collective)
    used = {host for hosts in jobs for host in hosts}
    idle = [host.name for host in topology.hosts if host.name not in used]
    found = []
    for job, hosts in enumerate(jobs):
        for group, root in _groups(trace, len(hosts), operation, section.in_network_from_bytes):
            members = [hosts[rank] for rank in group]
            if root is not None:
                found.append((job, group, members, hosts[root]))
            elif not idle:
                raise UserError("--in-network: sums need a host without a rank, as their server: take fewer --ranks")
            else:
                found.append((job, group, members, idle[len(found) % len(idle)]))
    if not found:
        raise UserError(
            f"--in-network: there is no {operation.value} of {section.in_network_from_bytes} bytes or more to carry "
            "out (--in-network-from-bytes)"
        )
    collectives = system.collectives(topology, [(members, other) for _, _, members, other in found])
    groups = [
        SwitchedGroup(job, operation, group, streams)
        for (job, group, _, _), streams in zip(found, collectives.groups, strict=True)
    ]
    return collectives, groups


def _groups(
    trace: Trace, ranks: int, operation: Operation, from_bytes: int
) -> list[tuple[tuple[int, ...], int | None]]:
    """Return the groups of two ranks or more with such a collective of so many bytes, and the root, if there is
    one.
    """
    everybody = tuple(range(ranks))
    found: dict[tuple[tuple[int, ...], int | None], None] = {}
    for rank in everybody:
        for node in trace.nodes(rank):
            if node.kind is Kind.COLLECTIVE and node.operation is operation and node.size_bytes >= from_bytes:
                group = node.group or everybody
                if len(group) > 1:
                    found[group, node.root] = None
    return list(found)
