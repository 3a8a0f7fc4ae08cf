"""python -m tools.bench shuffle: what it compares and measures."""

from __future__ import annotations

import statistics

import pytest
from rich.console import Console

from gradbed.common.errors import UserError
from tools.bench.__main__ import shuffle
from tools.bench.shuffle import (
    OURS,
    PUBLIC_INSTANCES,
    SHARES_OF_THE_GOAL,
    SOURCE,
    PublicInstance,
    ScheduleQuality,
    growth_table,
    measure_growth,
    measure_quality,
    quality_table,
    summary_table,
)


def hold_the_promise(qualities: list[ScheduleQuality]) -> None:
    """Never worse than the source's scheduler, and a tenth better in the mean where workers store 0.2 to 0.5."""
    low, high = SHARES_OF_THE_GOAL
    assert all(row.hops[OURS] <= row.hops[SOURCE] for row in qualities)
    assert statistics.mean(row.of_the_source for row in qualities if low <= row.instance.share <= high) <= 0.9


@pytest.mark.thorough
def test_ours_beats_the_sources_on_some_public_instances() -> None:
    chosen = [public for public in PUBLIC_INSTANCES if public.fabric != "fat-tree:8" and public.share in (0.2, 0.4)]
    hold_the_promise([measure_quality(public, (SOURCE, OURS)) for public in chosen])


@pytest.mark.nightly
def test_ours_beats_the_sources_on_all_public_instances() -> None:
    assert len(PUBLIC_INSTANCES) == 30
    hold_the_promise([measure_quality(public, (SOURCE, OURS)) for public in PUBLIC_INSTANCES])


def shown(table: object) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_tables_of_made_up_results() -> None:
    rows = [
        ScheduleQuality(
            PublicInstance("fat-tree:4", 0.2, 1), 10, 40, {"nearest": 80, SOURCE: 100, OURS: 50, "optimum": 50}
        ),
        ScheduleQuality(PublicInstance("fat-tree:4", 0.1, 1), 10, 40, {"nearest": 80, SOURCE: 100, OURS: 90}),
    ]
    assert "0.500" in shown(quality_table(rows)) and "2.250" in shown(quality_table(rows))
    source = next(line for line in shown(summary_table(rows)).splitlines() if "source" in line)
    # The second is outside of the goal's shares, and counts as one of all instances.
    assert [cell.strip() for cell in source.strip("│ ").split("│")] == ["source", "0.500", "0.500", "0.500", "0.900"]


def test_growth_is_measured() -> None:
    row = measure_growth(4, 160, 0.3)
    assert row.bound <= row.hops < row.nearest_hops
    assert (row.k, row.workers, row.samples) == (4, 16, 160)
    assert str(row.hops) in shown(growth_table([row], 0.3))


def test_sizes_that_cannot_be_read() -> None:
    with pytest.raises(UserError, match="--sizes: '4' is not of the form"):
        shuffle(sizes="4")
