"""Compare the schedulers of the shuffle with bounds and optima, and measure how long scheduling takes."""

from __future__ import annotations

import resource
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from rich.table import Table

from gradbed.common.errors import UserError
from gradbed.controller.systems.shuffle.scheduling.bounds import bounds
from gradbed.controller.systems.shuffle.scheduling.clusters import Exact, Improved
from gradbed.controller.systems.shuffle.scheduling.hop_aware import HopAware, Limits
from gradbed.controller.systems.shuffle.scheduling.instance import ShuffleInstance, epochs
from gradbed.controller.systems.shuffle.scheduling.schedule import Scheduler, check_schedule, with_trees_chosen
from gradbed.controller.systems.shuffle.scheduling.schedulers import Unicast
from gradbed.controller.systems.shuffle.scheduling.trees import Trees
from gradbed.experiments.systems.shuffle.figures import SCHEDULING_GOALS_S
from gradbed.experiments.tables.console import Columns, make_console, rows_table
from gradbed.topo.generators import fat_tree
from gradbed.topo.registry import parse_topology
from tools.bench.measure import Stopwatch, seconds_goal

# ---- Thirty shuffles ----


SHUFFLES_SEED = 13
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5)
SAMPLES = {"fat-tree:4": 240, "fat-tree:8": 640, "bcube:4,1": 240}
EPOCHS = (1, 3)
"""Before the first, storage is by chance; before the third it is what two shuffles and their caches left."""

VARIANTS = 2
SAMPLE_BYTES = 1000


@dataclass(frozen=True)
class PublicInstance:
    """A shuffle among all hosts of a network."""

    fabric: str
    share: float
    """Storage fraction of a worker."""
    epoch: int
    """The epoch before which the shuffle takes place."""

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.fabric} {self.share:g} epoch {self.epoch}"

    def build(self) -> tuple[ShuffleInstance, Trees]:
        """Return the instance and its trees."""
        topology = parse_topology(self.fabric)
        hosts = [host.name for host in topology.hosts]
        sizes = [SAMPLE_BYTES] * SAMPLES[self.fabric]
        shuffles = epochs(hosts, sizes, self.share, SHUFFLES_SEED, "least-recent")
        instance = next(islice(shuffles, self.epoch - 1, None))
        return instance, Trees(topology, instance.hosts, VARIANTS)


PUBLIC_INSTANCES = tuple(
    PublicInstance(fabric, share, epoch) for fabric in SAMPLES for share in SHARES for epoch in EPOCHS
)


# ---- Hops and bounds ----


SOURCE, OURS, OPTIMUM = "source", "ours", "optimum"
COMPARED: Mapping[str, Scheduler] = {
    "nearest": Unicast(nearest=True),
    SOURCE: HopAware(),
    "loans counted": HopAware(count_loans=True),
    "no loans": HopAware(limits=Limits(loans=0)),
    OURS: Improved(),
}
"""The source's scheduler in three forms: as it is written, with the hops of loans in its loss, without loans."""

SHARES_OF_THE_GOAL = (0.2, 0.5)
SCHEDULERS_SEED = 1


@dataclass(frozen=True)
class ScheduleQuality:
    """The hops of schedules for one instance."""

    instance: PublicInstance
    demands: int
    bound: int
    """The greatest lower bound."""
    hops: Mapping[str, int]
    """Total, by scheduler; the optimum where the instance is small enough."""

    @property
    def of_the_source(self) -> float:
        """Our hops as a share of those of the source's scheduler."""
        return self.hops[OURS] / self.hops[SOURCE]


def measure_quality(public: PublicInstance, compared: Collection[str] = (*COMPARED, OPTIMUM)) -> ScheduleQuality:
    """Compare schedulers by name; every schedule is checked, and none may be below the bound."""
    instance, trees = public.build()
    bound = bounds(instance, trees).best
    hops = {}
    for name, scheduler in {**COMPARED, OPTIMUM: Exact()}.items():
        if name not in compared:
            continue
        try:
            schedule = scheduler.schedule(instance, trees, SCHEDULERS_SEED)
        except UserError:
            continue
        check_schedule(instance, schedule, trees.topology)
        assert schedule.hops >= bound, f"{public.name}: {name} takes {schedule.hops} hops, below the bound {bound}"
        hops[name] = schedule.hops
    return ScheduleQuality(public, len(instance.demands), bound, hops)


QUALITY_COLUMNS: Columns = (
    ("instance", lambda row: row.instance.name),
    ("demands", lambda row: row.demands),
    ("bound", lambda row: row.bound),
    *((name, lambda row, name=name: row.hops.get(name)) for name in (*COMPARED, OPTIMUM)),
    ("/source", lambda row: f"{row.of_the_source:.3f}"),
    ("/optimum", lambda row: f"{row.hops[OURS] / row.hops[OPTIMUM]:.3f}" if OPTIMUM in row.hops else None),
    ("/bound", lambda row: f"{row.hops[OURS] / row.bound:.3f}"),
)


def quality_table(qualities: Sequence[ScheduleQuality]) -> Table:
    """Return the table of hops."""
    title = f"Hops on {len(qualities)} public instances; ratios are those of our scheduler"
    return rows_table(title, QUALITY_COLUMNS, qualities, words=("instance",))


def summary_table(qualities: Sequence[ScheduleQuality]) -> Table:
    """Return the table of our hops as shares of those of others: mean, total and largest."""
    low, high = SHARES_OF_THE_GOAL
    chosen = [row for row in qualities if low <= row.instance.share <= high]

    def pairs(name: str, rows: Sequence[ScheduleQuality]) -> list[tuple[int, int]]:
        return [(row.hops[OURS], row.hops[name]) for row in rows if name in row.hops]

    def largest(name: str, rows: Sequence[ScheduleQuality]) -> str:
        return f"{max(ours / other for ours, other in pairs(name, rows)):.3f}"

    columns: Columns = (
        ("as a share of", str),
        ("mean", lambda name: f"{statistics.mean(ours / other for ours, other in pairs(name, chosen)):.3f}"),
        (
            "all hops together",
            lambda name: f"{sum(o for o, _ in pairs(name, chosen)) / sum(o for _, o in pairs(name, chosen)):.3f}",
        ),
        ("largest", lambda name: largest(name, chosen)),
        ("largest of all instances", lambda name: largest(name, qualities)),
    )
    others = [name for name in (*COMPARED, OPTIMUM) if name != OURS and pairs(name, chosen)]
    title = f"Our hops where a worker stores {low:g} to {high:g} of all ({len(chosen)} instances)"
    return rows_table(title, columns, others, words=("as a share of",))


# ---- The benchmark ----


def run_bench_shuffle(sizes: Sequence[tuple[int, int]], share: float, quality: bool) -> int:
    """Print the tables: time for fat-trees of sizes (k, samples), and hops on the public instances."""
    console = make_console()
    grown = []
    for k, samples in sizes:
        with console.status(f"fat-tree:{k}, {samples:,} samples"):
            grown.append(measure_growth(k, samples, share))
    if grown:
        console.print(growth_table(grown, share))
    if quality:
        qualities = []
        for public in PUBLIC_INSTANCES:
            with console.status(public.name):
                qualities.append(measure_quality(public))
        console.print(quality_table(qualities))
        console.print(summary_table(qualities))
    return 0


# ---- Growth: how long our scheduler takes, against the number of samples ----


@dataclass(frozen=True)
class ScheduleCost:
    """The cost of one schedule for a fat-tree whose hosts are all workers."""

    k: int
    workers: int
    samples: int
    demands: int
    packets: int
    hops: int
    nearest_hops: int
    """Of unicast from the nearest holder."""
    bound: int
    cpu_s: float
    """Processor time of trees and schedule, without checks."""
    wall_s: float
    memory_bytes: int
    """Peak memory of the process until then."""


def measure_growth(k: int, samples: int, share: float) -> ScheduleCost:
    """Schedule a shuffle on a k-ary fat-tree, and measure what that costs."""
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
    return ScheduleCost(
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


GROWTH_COLUMNS: Columns = (
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
    ("goal s", lambda row: seconds_goal(SCHEDULING_GOALS_S.get((row.k, row.samples)), row.cpu_s)),
)


def growth_table(grown: Sequence[ScheduleCost], share: float) -> Table:
    """Return the table of the costs."""
    title = f"Our scheduler on fat-trees, each worker stores {share:g} of all samples"
    return rows_table(title, GROWTH_COLUMNS, grown)
