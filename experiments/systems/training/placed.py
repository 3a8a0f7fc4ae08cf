"""Which rank of which job lives on which host."""

from __future__ import annotations

import random
from collections import defaultdict

from gradbed.common.errors import UserError
from gradbed.experiments.systems.training.configuration import RanksSection
from gradbed.topo.graph import Topology


def place_ranks(topology: Topology, ranks: int, section: RanksSection, seed: int) -> list[list[str]]:
    """The hosts of each job's ranks, in their order. UserError if there are too few hosts."""
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
    """As many of each rack, in the order of hosts."""
    chosen = set(_striped(topology, hosts)[:needed])
    return [host for host in hosts if host in chosen]


def _striped(topology: Topology, hosts: list[str]) -> list[str]:
    """One of each rack in turn."""
    racks: defaultdict[str, list[str]] = defaultdict(list)
    for host in hosts:
        racks[topology.attachment(host).name].append(host)
    most = max(map(len, racks.values()))
    return [rack[place] for place in range(most) for rack in racks.values() if place < len(rack)]
