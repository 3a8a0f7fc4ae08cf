"""Hops against what workers store, and waiting times against the threshold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from controller.systems.shuffle.scheduling.bounds import bounds
from controller.systems.shuffle.scheduling.checking import check_schedule
from controller.systems.shuffle.scheduling.hop_aware import HopAware
from controller.systems.shuffle.scheduling.queues import Timing
from controller.systems.shuffle.scheduling.schedulers import SCHEDULERS
from controller.systems.shuffle.scheduling.storage import epochs
from controller.systems.shuffle.scheduling.trees import Trees
from topo.registry import parse_topology

FABRICS = {"fat-tree:4": 480, "fat-tree:8": 512, "bcube:4,1": 480}
"""Samples on each."""

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9, 1.0)
"""Of all samples that a worker stores; 0 stands for the least, its own part alone."""

LEFT_OUT = {"exact"}
"""Takes too long where workers store much."""

THRESHOLDS_US = (0, 60, 120, 240, 480, 960)
BOUNDS = ("bound of packets", "bound of cuts")


@dataclass(frozen=True)
class Hops:
    fabric: str
    share: float
    hops: dict[str, int]
    """By scheduler, and BOUNDS."""


@dataclass(frozen=True)
class Waiting:
    """waits_us: of every A packet."""

    share: float
    threshold_us: int
    packets: int
    waits_us: tuple[int, ...]


def measure_hops(fabric: str, seed: int = 1) -> Iterator[Hops]:
    """The last host is the master of the classical scheme, and no worker in any."""
    topology = parse_topology(fabric)
    *workers, master = (host.name for host in topology.hosts)
    for asked in SHARES:
        share = max(asked, -(-FABRICS[fabric] // len(workers)) / FABRICS[fabric])
        instance = next(epochs(workers, [1000] * FABRICS[fabric], share, seed, master=master))
        trees = Trees(topology, instance.hosts, variants=2)
        hops = {}
        for name, scheduler in SCHEDULERS.items():
            if name not in LEFT_OUT:
                schedule = scheduler.schedule(instance, trees, seed)
                check_schedule(instance, schedule, trees)
                hops[name] = schedule.hops
        found = bounds(instance, trees)
        yield Hops(fabric, share, {**hops, **dict(zip(BOUNDS, (found.packets, found.cuts), strict=True))})


def measure_waiting(shares: Sequence[float] = (0.1, 0.2, 0.3), seed: int = 1) -> Iterator[Waiting]:
    """Of the source's scheduler on a k=4 fat-tree."""
    topology = parse_topology("fat-tree:4")
    for share in shares:
        instance = next(epochs([host.name for host in topology.hosts], [1000] * 480, share, seed))
        trees = Trees(topology, instance.hosts)
        for threshold_us in THRESHOLDS_US:
            schedule = HopAware(timing=Timing(threshold_us=threshold_us)).schedule(instance, trees, seed)
            waits = tuple(sent.wait_us for sent in schedule.transmissions if sent.kind == "A")
            assert all(wait_us <= threshold_us for wait_us in waits), "S5 keeps the threshold"
            yield Waiting(share, threshold_us, len(schedule.transmissions), waits)


def by_fabric(found: Sequence[Hops]) -> dict[str, list[Hops]]:
    rows = defaultdict(list)
    for row in found:
        rows[row.fabric].append(row)
    return dict(rows)
