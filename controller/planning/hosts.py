"""Which hosts of a topology a job uses when nobody says."""

from __future__ import annotations

from collections.abc import Collection

from gradbed.common.errors import UserError
from gradbed.topo.graph import Topology


def choose_hosts_of_jobs(topology: Topology, jobs: int, workers: int) -> list[tuple[tuple[str, ...], str]]:
    """Return (worker names, server name) for each of several jobs that share no host.

    Servers and workers are spread evenly over the hosts, and neighbours belong to different jobs.
    """
    if jobs < 1:
        raise UserError(f"a run needs at least one job, got {jobs}")
    if jobs == 1:
        return [choose_hosts(topology, workers)]
    if workers < 1:
        raise UserError(f"a job needs at least one worker, got {workers}")
    names = [host.name for host in topology.hosts]
    needed = jobs * (workers + 1)
    if needed > len(names):
        raise UserError(
            f"{jobs} jobs of {workers} workers and a server need {needed} hosts, the topology has {len(names)}"
        )
    servers = [names[index * len(names) // jobs] for index in range(jobs)]
    rest = [name for name in names if name not in servers]
    chosen = [rest[index * len(rest) // (jobs * workers)] for index in range(jobs * workers)]
    return [(tuple(chosen[job::jobs]), server) for job, server in enumerate(servers)]


def choose_hosts(topology: Topology, workers: int, busy: Collection[str] = ()) -> tuple[tuple[str, ...], str]:
    """Return (worker names, server name): the first idle host serves, workers are spread over the others."""
    if workers < 1:
        raise UserError(f"a job needs at least one worker, got {workers}")
    names = [host.name for host in topology.hosts if host.name not in busy]
    if workers + 1 > len(names):
        plural = "worker and a server need" if workers == 1 else "workers and a server need"
        there = f"{len(names)} of {len(topology.hosts)} are free" if busy else f"the topology has {len(names)}"
        raise UserError(f"{workers} {plural} {workers + 1} hosts, {there}")
    server, *rest = names
    return tuple(rest[index * len(rest) // workers] for index in range(workers)), server
