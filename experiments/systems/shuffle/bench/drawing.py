"""The figures of `gradbed bench shuffle`."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from experiments.plotting.style import COLOURS, MARKERS, figure, save
from experiments.systems.shuffle.bench.growth import GOALS_S, Growth
from experiments.systems.shuffle.bench.sweep import BOUNDS, Hops, Waiting, by_fabric

DASHES = dict(zip(BOUNDS, ("--", ":"), strict=True))


def draw_hops(found: Sequence[Hops], folder: Path) -> list[Path]:
    """Hops of all schedulers and both bounds against the storage of workers."""
    fabrics = by_fabric(found)
    with figure(columns=len(fabrics)) as (made, axes):
        for at, (fabric, rows) in zip(axes, fabrics.items(), strict=True):
            shares = [row.share for row in rows]
            for number, name in enumerate(rows[0].hops):
                values = [row.hops[name] for row in rows]
                if name in DASHES:
                    at.plot(shares, values, DASHES[name], color="black", label=name)
                else:
                    at.plot(
                        shares,
                        values,
                        color=COLOURS[number % len(COLOURS)],
                        marker=MARKERS[number % len(MARKERS)],
                        label=name,
                    )
            at.set_title(fabric, fontsize=9)
            at.set_xlabel("share of all samples that a worker stores")
            at.set_ylim(bottom=0)
        axes[0].set_ylabel("hops of all packets")
        axes[-1].legend(fontsize=7)
        return save(made, folder / "shuffle_hops")


def draw_growth(grown: Sequence[Growth], folder: Path) -> list[Path]:
    """Time to make a schedule against samples, and the goals."""
    with figure() as (made, [at]):
        for number, k in enumerate(sorted({row.k for row in grown})):
            rows = sorted((row for row in grown if row.k == k), key=lambda row: row.samples)
            at.plot(
                [row.samples for row in rows],
                [row.cpu_s for row in rows],
                color=COLOURS[number],
                marker=MARKERS[number],
                label=f"k = {k}, {rows[0].workers} workers",
            )
            goals = [(samples, goal_s) for (of, samples), goal_s in GOALS_S.items() if of == k]
            at.plot(*zip(*goals, strict=True), "_", color=COLOURS[number], markersize=14) if goals else None
        at.set_xscale("log")
        at.set_yscale("log")
        at.set_xlabel("samples")
        at.set_ylabel("processor time (s); bars: goals")
        at.legend()
        return save(made, folder / "shuffle_scheduler_time")


def draw_waiting(found: Sequence[Waiting], folder: Path) -> list[Path]:
    """Planned waiting of A packets, and their share of all packets, against the threshold."""
    with figure(columns=2) as (made, [waits, shares]):
        for number, share in enumerate(sorted({row.share for row in found})):
            rows = [row for row in found if row.share == share]
            thresholds = [row.threshold_us for row in rows]
            look = {"color": COLOURS[number], "marker": MARKERS[number]}
            largest = [max(row.waits_us, default=0) for row in rows]
            means = [statistics.mean(row.waits_us) if row.waits_us else 0 for row in rows]
            waits.plot(thresholds, largest, **look, label=f"largest, a worker stores {share:g}")
            waits.plot(thresholds, means, "--", **look, label="mean")
            shares.plot(thresholds, [len(row.waits_us) / row.packets for row in rows], **look, label=f"{share:g}")
        waits.set_ylabel("planned waiting of A packets (us)")
        shares.set_ylabel("A packets / all packets")
        for at in (waits, shares):
            at.set_xlabel("threshold (us)")
            at.set_ylim(bottom=0)
            at.legend(fontsize=7)
        return save(made, folder / "shuffle_waiting")
