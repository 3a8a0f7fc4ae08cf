"""Which hosts of a topology a job uses when nobody says."""

from __future__ import annotations

from switch.errors import UserError
from topo.graph import Topology


def choose_hosts(topology: Topology, workers: int) -> tuple[tuple[str, ...], str]:
    """(worker names, server name): the server is the first host, the workers are spread evenly over the others."""
    if workers < 1:
        raise UserError(f"a job needs at least one worker, got {workers}")
    names = [host.name for host in topology.hosts]
    if workers + 1 > len(names):
        plural = "worker and a server need" if workers == 1 else "workers and a server need"
        raise UserError(f"{workers} {plural} {workers + 1} hosts, the topology has {len(names)}")
    server, *rest = names
    return tuple(rest[index * len(rest) // workers] for index in range(workers)), server
