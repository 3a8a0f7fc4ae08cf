"""gradbed bench lanes, clocks, rounds, throughput, placement, soak."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Scale = Annotated[
    float | None,
    typer.Option(min=0.001, max=1.0, help="Emulated over nominal link rate, instead of this machine's factor."),
]
Output = Annotated[Path, typer.Option(help="Folder for results.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where a run stopped.")]
RESULTS = Path("results")


def lanes(
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements of each figure; medians are shown.")] = 5,
) -> int:
    """How many lanes a gradient packet should have: compile time against gradient bytes summed per second."""
    from gradbed.experiments.systems.aggregation.bench.lanes import run_bench_lanes

    return run_bench_lanes(repetitions)


def clocks(scale: Scale = None, output: Output = RESULTS, resume: Resume = False) -> int:
    """Do the virtual and the real clock agree? Mean round times and counts of fourteen settings on both."""
    return _run_study("clocks", scale, output, resume)


def throughput(scale: Scale = None, output: Output = RESULTS, resume: Resume = False) -> int:
    """How near one job's throughput comes to the bound of the linear program; at least 80 %, and never above it."""
    return _run_study("throughput", scale, output, resume)


def _run_study(name: str, scale: float | None, output: Path, resume: bool) -> int:
    from gradbed.common.namespaces import require_root
    from gradbed.experiments.study.command import RunOptions, run_study_file
    from gradbed.experiments.systems import studies_folder

    require_root(f"gradbed bench {name}")
    return run_study_file(studies_folder("aggregation") / f"bench_{name}.yaml", RunOptions(output, resume, scale))


def rounds(
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements; the median is shown.")] = 3,
) -> int:
    """What a round of gradients costs on the virtual clock, and where the time goes. Needs no root."""
    from gradbed.experiments.systems.aggregation.bench.rounds import run_bench_rounds

    return run_bench_rounds(repetitions)


def placement(
    sizes: Annotated[
        str, typer.Option(help="K:M of the fat-trees to plan for, separated by commas.")
    ] = "4:4,6:6,8:8,12:12,16:16",
    instances: Annotated[int, typer.Option(min=0, help="Random networks on which the quality is measured.")] = 50,
    output: Annotated[Path | None, typer.Option(help="Folder for a figure of how the time grows.")] = None,
) -> int:
    """How long the placement of programmable switches takes, and how near it comes to the optimum."""
    from gradbed.experiments.bench.measure import sizes_of
    from gradbed.experiments.systems.aggregation.bench.placement import run_bench_placement

    return run_bench_placement([(k, maximum) for k, maximum in sizes_of(sizes, "K:M")], instances, output)


def soak(
    minutes: Annotated[float, typer.Option(min=0.1, help="For so long jobs come and go.")] = 60.0,
    every_s: Annotated[
        float, typer.Option("--every-s", min=0.0, help="From one job's beginning to the next's.")
    ] = 5.0,
    sample_s: Annotated[float, typer.Option("--sample-s", min=0.1, help="Between samples.")] = 10.0,
    output: Output = RESULTS,
) -> int:
    """Jobs that come and go for an hour on one network in Mininet: nothing is left, and memory and all else stay."""
    from gradbed.common.namespaces import require_root
    from gradbed.experiments.systems.aggregation.bench.soak import Pace, run_bench_soak

    require_root("gradbed bench soak")
    return run_bench_soak(Pace(60 * minutes, every_s, sample_s), output)
