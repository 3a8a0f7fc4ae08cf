"""The tables of gradbed bench interconnect."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

from rich.table import Table

from controller.systems.interconnect.policies import PolicyName
from experiments.study.command import make_console
from experiments.systems.interconnect.comparison import PACKET_S, ROUTES, Case, Compared, compare, packets
from experiments.systems.interconnect.model.optical_electrical import OpticalElectrical
from experiments.systems.interconnect.model.shortest_paths import ShortestPaths
from experiments.systems.interconnect.model.slots import Fabric, simulate
from experiments.systems.interconnect.model.traffic import of_pattern
from experiments.systems.interconnect.sizes import balanced_dragonfly
from topo.shapes.fat_tree import fat_tree
from topo.shapes.torus import torus

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
        """By how much least-loaded is above the better of the others; below zero: it is better."""
        own, *others = (self.loads[policy] for policy in ("least-loaded", *SETTLED))
        return own / min(others) - 1


def largest_loads(n: int, patterns: tuple[str, ...], seeds: range, load: float, slots: int) -> Iterator[Largest]:
    policies: tuple[PolicyName, ...] = ("least-loaded", *SETTLED)
    for pattern, seed in itertools.product(patterns, seeds):
        cases = {
            policy: Case(f"optical-electrical:{n}", pattern, policy, load, slots, seed=seed) for policy in policies
        }
        found = {policy: float(packets(case).metrics["largest_link_load"] or 0) for policy, case in cases.items()}
        yield Largest(n, pattern, seed, load, found)


def run_bench(largest: int, slots: int) -> int:
    """Exit status: 1 if the model misses its goals."""
    console = make_console()
    compared = [compare(case) for case in COMMON]
    console.print(comparison_table(compared))
    for n in (2, 3):
        console.print(largest_table(list(largest_loads(n, ("permutation", "hotspot:0.2"), range(1, 4), 0.6, slots))))
    console.print(networks_table(range(2, largest + 1), slots))
    return int(any(not meets(each) for each in compared))


def meets(compared: Compared) -> bool:
    return abs(compared.accepted_off) <= ACCEPTED_GOAL and abs(compared.latency_off) <= LATENCY_GOAL


def comparison_table(rows: list[Compared]) -> Table:
    table = Table(title="model and packets")
    for title in ("network", "pattern", "policy", "load", "accepted", "model", "off", "latency us", "model", "off"):
        table.add_column(title)
    for row in rows:
        case = row.case
        table.add_row(
            case.topology,
            case.pattern,
            case.policy,
            str(case.load),
            *(f"{value:.3f}" for value in row.accepted),
            f"{100 * row.accepted_off:+.1f} %",
            *(f"{1e6 * value:.0f}" for value in row.latency_s),
            f"{100 * row.latency_off:+.1f} %",
        )
    return table


def largest_table(rows: list[Largest]) -> Table:
    table = Table(title="largest load of a link between switches (packets)")
    for title in ("N", "pattern", "seed", "load", "least-loaded", *SETTLED, "above the better"):
        table.add_column(title)
    for row in rows:
        values = (f"{row.loads[policy]:.3f}" for policy in ("least-loaded", *SETTLED))
        table.add_row(str(row.n), row.pattern, str(row.seed), str(row.load), *values, f"{100 * row.worse:+.1f} %")
    return table


def networks_table(sizes: range, slots: int) -> Table:
    """The model alone, all-to-all at full load: what the network carries, and its latency at 0.5."""
    table = Table(title="the model: all-to-all")
    for title in ("N", "network", "hosts", "accepted at 1.0", "latency us at 0.5", "seconds"):
        table.add_column(title)
    for n in sizes:
        for name, fabric in networks(n):
            began = time.process_time()
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
            latency_s = half.latency_s(PACKET_S, 5e-6) or 0.0
            taken = time.process_time() - began
            table.add_row(
                str(n), name, str(fabric.hosts), f"{full.accepted_load:.3f}", f"{1e6 * latency_s:.0f}", f"{taken:.1f}"
            )
    return table


def networks(n: int) -> Iterator[tuple[str, Fabric]]:
    yield "optical-electrical", OpticalElectrical(n)
    k = next(k for k in range(2, 1000, 2) if k**3 // 4 >= n**3)
    for topology in (fat_tree(k), balanced_dragonfly(n**3), torus(n, n, n)):
        yield topology.name, ShortestPaths(topology, "least-loaded")
