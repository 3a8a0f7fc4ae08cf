"""How long our scheduler takes, against the number of samples."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from controller.systems.shuffle.scheduling.bounds import bounds
from controller.systems.shuffle.scheduling.checking import check_schedule
from controller.systems.shuffle.scheduling.clusters.improved import Improved
from controller.systems.shuffle.scheduling.storage import epochs
from controller.systems.shuffle.scheduling.tree_choice import with_trees_chosen
from controller.systems.shuffle.scheduling.trees.trees import Trees
from controller.systems.shuffle.scheduling.unicast import Unicast
from topo.shapes.fat_tree import fat_tree

GOALS_S = {(8, 50_000): 60.0, (16, 200_000): 3600.0}
"""(k, samples): of processor time; the scheduler is one process, so that an idle machine takes no longer."""


@dataclass(frozen=True)
class Growth:
    """One schedule, of a fat-tree whose hosts are all workers. cpu_s, wall_s: for trees and schedule, without checks.
    memory_bytes: the most that the process had until its end. nearest_hops: of unicast from the nearest holder."""

    k: int
    workers: int
    samples: int
    demands: int
    packets: int
    hops: int
    nearest_hops: int
    bound: int
    cpu_s: float
    wall_s: float
    memory_bytes: int


def measure_growth(k: int, samples: int, share: float) -> Growth:
    topology = fat_tree(k)
    instance = next(epochs([host.name for host in topology.hosts], [1000] * samples, share, seed=1))
    wall, cpu = time.perf_counter(), time.process_time()
    trees = Trees(topology, instance.hosts, variants=k)
    schedule = with_trees_chosen(
        Improved().schedule(instance, trees, seed=1), instance, trees, "least-loaded", seed=1
    )
    cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - wall
    memory_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    check_schedule(instance, schedule, topology)
    return Growth(
        k=k,
        workers=len(instance.workers),
        samples=samples,
        demands=len(instance.demands),
        packets=len(schedule.transmissions),
        hops=schedule.hops,
        nearest_hops=Unicast(nearest=True).schedule(instance, trees, seed=1).hops,
        bound=bounds(instance, trees).best,
        cpu_s=cpu_s,
        wall_s=wall_s,
        memory_bytes=memory_bytes,
    )


def growth_table(grown: Sequence[Growth], share: float) -> Table:
    table = Table(title=f"Our scheduler on fat-trees, each worker stores {share:g} of all samples", padding=0)
    for name in (
        *("k", "workers", "samples", "demands", "packets", "hops", "/nearest", "/bound"),
        *("CPU s", "wall s", "MB", "goal s"),
    ):
        table.add_column(name, justify="right", no_wrap=True)
    for row in grown:
        goal_s = GOALS_S.get((row.k, row.samples))
        table.add_row(
            *map(str, (row.k, row.workers, row.samples, row.demands, row.packets, row.hops)),
            f"{row.hops / row.nearest_hops:.3f}",
            f"{row.hops / row.bound:.3f}",
            f"{row.cpu_s:.1f}",
            f"{row.wall_s:.1f}",
            f"{row.memory_bytes / 1e6:.0f}",
            "" if goal_s is None else f"{goal_s:g}: {'met' if row.cpu_s <= goal_s else 'missed'}",
        )
    return table
