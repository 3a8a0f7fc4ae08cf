"""Compare the model of the interconnect with packets, its policies, and other networks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from rich.table import Table

from gradbed.controller.systems.interconnect.entries import PolicyName
from gradbed.experiments.systems.interconnect.comparison import PACKET_S, ROUTES, Case, Compared, compare, packets
from gradbed.experiments.systems.interconnect.figures import balanced_dragonfly
from gradbed.experiments.systems.interconnect.model import (
    OpticalElectrical,
    QueueNetwork,
    ShortestPaths,
    of_pattern,
    simulate,
)
from gradbed.experiments.tables.console import Columns, make_console, rows_table
from gradbed.topo.generators import fat_tree, torus
from tools.bench.measure import Stopwatch

ACCEPTED_GOAL, LATENCY_GOAL = 0.10, 0.20
"""By how much the model may differ from packets in throughput and mean latency."""

_POLICIES: tuple[PolicyName, ...] = ("least-loaded", "fixed-plane", "mesh-first")

COMMON = (
    *(
        Case(f"optical-electrical:{n}", pattern, policy, load)
        for (n, pattern), policy, load in itertools.product(
            ((2, "all-to-all"), (3, "all-to-all"), (3, "permutation"), (3, "hotspot:0.2"), (4, "all-to-all")),
            _POLICIES,
            (0.3, 0.7),
        )
    ),
    *(
        Case(network, pattern, ROUTES, load)
        for network, pattern, load in itertools.product(
            ("fat-tree:4", "dragonfly:4,2,1", "dragonfly:9,4,2", "torus:2,2,2", "torus:3,3,3"),
            ("all-to-all", "permutation"),
            (0.3, 0.6),
        )
    ),
)
"""The cases on which model and packets are compared."""

SETTLED: tuple[PolicyName, ...] = ("fixed-plane", "mesh-first")


@dataclass(frozen=True)
class Largest:
    """The largest load of any link between switches, packets, by policy."""

    n: int
    pattern: str
    seed: int
    load: float
    loads: dict[PolicyName, float]

    @property
    def worse(self) -> float:
        """Relative load of least-loaded above the better of the others; negative if it is better."""
        own, *others = (self.loads[policy] for policy in ("least-loaded", *SETTLED))
        return own / min(others) - 1


def largest_loads(n: int, patterns: tuple[str, ...], seeds: range, load: float, slots: int) -> Iterator[Largest]:
    """Yield the largest load of a link under each policy, for patterns and seeds."""
    policies: tuple[PolicyName, ...] = ("least-loaded", *SETTLED)
    for pattern, seed in itertools.product(patterns, seeds):
        cases = {
            policy: Case(f"optical-electrical:{n}", pattern, policy, load, slots, seed=seed) for policy in policies
        }
        found = {policy: float(packets(case).metrics["largest_link_load"] or 0) for policy, case in cases.items()}
        yield Largest(n, pattern, seed, load, found)


def run_bench(largest: int, slots: int) -> int:
    """Print the tables; exit status 1 if the model misses its goals."""
    console = make_console()
    compared = [compare(case) for case in COMMON]
    console.print(comparison_table(compared))
    for n in (2, 3):
        console.print(largest_table(list(largest_loads(n, ("permutation", "hotspot:0.2"), range(1, 4), 0.6, slots))))
    console.print(networks_table(range(2, largest + 1), slots))
    return int(any(not meets(each) for each in compared))


def meets(compared: Compared) -> bool:
    """Return whether the model is near enough to the packets."""
    return abs(compared.accepted_off) <= ACCEPTED_GOAL and abs(compared.latency_off) <= LATENCY_GOAL


COMPARISON: Columns = (
    ("network", lambda row: row.case.topology),
    ("pattern", lambda row: row.case.pattern),
    ("policy", lambda row: row.case.policy),
    ("load", lambda row: row.case.load),
    ("accepted", lambda row: f"{row.accepted[0]:.3f}"),
    ("model", lambda row: f"{row.accepted[1]:.3f}"),
    ("off", lambda row: f"{100 * row.accepted_off:+.1f} %"),
    ("latency us", lambda row: f"{1e6 * row.latency_s[0]:.0f}"),
    ("model", lambda row: f"{1e6 * row.latency_s[1]:.0f}"),
    ("off", lambda row: f"{100 * row.latency_off:+.1f} %"),
)


def comparison_table(rows: list[Compared]) -> Table:
    """Return the table of model and packets."""
    return rows_table("model and packets", COMPARISON, rows, words=("network", "pattern", "policy"))


LARGEST: Columns = (
    ("N", lambda row: row.n),
    ("pattern", lambda row: row.pattern),
    ("seed", lambda row: row.seed),
    ("load", lambda row: row.load),
    *((policy, lambda row, policy=policy: f"{row.loads[policy]:.3f}") for policy in ("least-loaded", *SETTLED)),
    ("above the better", lambda row: f"{100 * row.worse:+.1f} %"),
)


def largest_table(rows: list[Largest]) -> Table:
    """Return the table of the largest loads."""
    return rows_table("largest load of a link between switches (packets)", LARGEST, rows, words=("pattern",))


MODELLED: Columns = (
    ("N", lambda row: row[0]),
    ("network", lambda row: row[1]),
    ("hosts", lambda row: row[2].hosts),
    ("accepted at 1.0", lambda row: f"{row[3].accepted_load:.3f}"),
    ("latency us at 0.5", lambda row: f"{1e6 * (row[4].latency_s(PACKET_S, 5e-6) or 0.0):.0f}"),
    ("seconds", lambda row: f"{row[5]:.1f}"),
)


def networks_table(sizes: range, slots: int) -> Table:
    """Return the table of the model alone under all-to-all traffic: throughput at full load, latency at half."""
    rows = []
    for n in sizes:
        for name, fabric in networks(n):
            spent = Stopwatch()
            full, half = (
                simulate(
                    fabric,
                    of_pattern("all-to-all", fabric.hosts, load, 1),
                    slots=slots // 4,
                    warm_up_slots=slots // 16,
                    queue_packets=32,
                    seed=1,
                )
                for load in (1.0, 0.5)
            )
            rows.append((n, name, fabric, full, half, spent.cpu_s))
    return rows_table("the model: all-to-all", MODELLED, rows, words=("network",))


def networks(n: int) -> Iterator[tuple[str, QueueNetwork]]:
    """Yield the networks that the model compares, with about as many hosts as N allows."""
    yield "optical-electrical", OpticalElectrical(n)
    k = next(k for k in range(2, 1000, 2) if k**3 // 4 >= n**3)
    for topology in (fat_tree(k), balanced_dragonfly(n**3), torus(n, n, n)):
        yield topology.name, ShortestPaths(topology, "least-loaded")
