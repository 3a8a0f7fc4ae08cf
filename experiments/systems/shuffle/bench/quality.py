"""Hops of schedulers beside bounds and optimum on the public instances."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from common.errors import UserError
from controller.systems.shuffle.scheduling.bounds import bounds
from controller.systems.shuffle.scheduling.checking import check_schedule
from controller.systems.shuffle.scheduling.clusters.exact import Exact
from controller.systems.shuffle.scheduling.clusters.improved import Improved
from controller.systems.shuffle.scheduling.hop_aware import HopAware, Limits
from controller.systems.shuffle.scheduling.schedule import Scheduler
from controller.systems.shuffle.scheduling.unicast import Unicast
from experiments.systems.shuffle.bench.instances import PublicInstance

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
SEED = 1


@dataclass(frozen=True)
class Quality:
    """hops: in total, by scheduler; the optimum where the instance is small enough. bound: the greatest lower one."""

    instance: PublicInstance
    demands: int
    bound: int
    hops: Mapping[str, int]

    @property
    def of_the_source(self) -> float:
        return self.hops[OURS] / self.hops[SOURCE]


def measure_quality(public: PublicInstance, compared: Collection[str] = (*COMPARED, OPTIMUM)) -> Quality:
    """Every schedule is checked, and none may be below the bound. compared: by which names."""
    instance, trees = public.build()
    bound = bounds(instance, trees).best
    hops = {}
    for name, scheduler in {**COMPARED, OPTIMUM: Exact()}.items():
        if name not in compared:
            continue
        try:
            schedule = scheduler.schedule(instance, trees, SEED)
        except UserError:
            continue
        check_schedule(instance, schedule, trees.topology)
        assert schedule.hops >= bound, f"{public.name}: {name} takes {schedule.hops} hops, below the bound {bound}"
        hops[name] = schedule.hops
    return Quality(public, len(instance.demands), bound, hops)


def quality_table(qualities: Sequence[Quality]) -> Table:
    table = Table(title=f"Hops on {len(qualities)} public instances; ratios are those of our scheduler", padding=0)
    table.add_column("instance", no_wrap=True)
    for name in ("demands", "bound", *COMPARED, OPTIMUM, "/source", "/optimum", "/bound"):
        table.add_column(name, justify="right")
    for row in qualities:
        ours = row.hops[OURS]
        table.add_row(
            row.instance.name,
            str(row.demands),
            str(row.bound),
            *(str(row.hops.get(name, "")) for name in (*COMPARED, OPTIMUM)),
            f"{row.of_the_source:.3f}",
            f"{ours / row.hops[OPTIMUM]:.3f}" if OPTIMUM in row.hops else "",
            f"{ours / row.bound:.3f}",
        )
    return table


def summary_table(qualities: Sequence[Quality]) -> Table:
    """Our hops as shares of others': of all hops together, and on the instance where the share is largest."""
    low, high = SHARES_OF_THE_GOAL
    chosen = [row for row in qualities if low <= row.instance.share <= high]
    table = Table(title=f"Our hops where a worker stores {low:g} to {high:g} of all ({len(chosen)} instances)")
    for name in ("as a share of", "mean", "all hops together", "largest", "largest of all instances"):
        table.add_column(name, justify="left" if name == "as a share of" else "right")
    for name in (*COMPARED, OPTIMUM):
        if name == OURS:
            continue
        pairs = [(row.hops[OURS], row.hops[name]) for row in chosen if name in row.hops]
        everywhere = [row.hops[OURS] / row.hops[name] for row in qualities if name in row.hops]
        if pairs:
            table.add_row(
                name,
                f"{statistics.mean(ours / other for ours, other in pairs):.3f}",
                f"{sum(ours for ours, _ in pairs) / sum(other for _, other in pairs):.3f}",
                f"{max(ours / other for ours, other in pairs):.3f}",
                f"{max(everywhere):.3f}",
            )
    return table
