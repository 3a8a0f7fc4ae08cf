"""How long our scheduler takes, against the number of samples."""

from __future__ import annotations

import resource
from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from gradbed.controller.systems.shuffle.scheduling.baselines import Unicast
from gradbed.controller.systems.shuffle.scheduling.bounds import bounds
from gradbed.controller.systems.shuffle.scheduling.checking import check_schedule
from gradbed.controller.systems.shuffle.scheduling.clusters import Improved
from gradbed.controller.systems.shuffle.scheduling.storage import epochs
from gradbed.controller.systems.shuffle.scheduling.tree_choice import with_trees_chosen
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.experiments.bench.measure import Stopwatch, seconds_goal
from gradbed.experiments.tables.console import Columns, rows_table
from gradbed.topo.shapes import fat_tree

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
    spent = Stopwatch()
    trees = Trees(topology, instance.hosts, variants=k)
    schedule = with_trees_chosen(
        Improved().schedule(instance, trees, seed=1), instance, trees, "least-loaded", seed=1
    )
    cpu_s, wall_s = spent.cpu_s, spent.wall_s
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


COLUMNS: Columns = (
    ("k", lambda row: row.k),
    ("workers", lambda row: row.workers),
    ("samples", lambda row: row.samples),
    ("demands", lambda row: row.demands),
    ("packets", lambda row: row.packets),
    ("hops", lambda row: row.hops),
    ("/nearest", lambda row: f"{row.hops / row.nearest_hops:.3f}"),
    ("/bound", lambda row: f"{row.hops / row.bound:.3f}"),
    ("CPU s", lambda row: f"{row.cpu_s:.1f}"),
    ("wall s", lambda row: f"{row.wall_s:.1f}"),
    ("MB", lambda row: f"{row.memory_bytes / 1e6:.0f}"),
    ("goal s", lambda row: seconds_goal(GOALS_S.get((row.k, row.samples)), row.cpu_s)),
)


def growth_table(grown: Sequence[Growth], share: float) -> Table:
    title = f"Our scheduler on fat-trees, each worker stores {share:g} of all samples"
    return rows_table(title, COLUMNS, grown)
