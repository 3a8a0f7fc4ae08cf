"""python -m tools.bench NAME: measure the switch, the planners and the runtime on this machine.

Run it at the top of a checkout, with the Python of its environment: `.venv/bin/python -m tools.bench --help`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from gradbed.cli import layers, options
from gradbed.cli.commands import Entry, provide
from gradbed.cli.main import run_command_line
from gradbed.common.namespaces import require_root
from gradbed.common.sandbox import run_in_sandbox

NAME = "python -m tools.bench"
NEEDS = Entry(
    place="",
    help="",
    layers=("run", "study"),
    of={"virtual": ("p4",)},
    network=("start", "switch", "models", "leaks"),
)
"""What the benchmarks install before they run; `large` and `live` ask for Debian packages themselves."""

STUDIES = Path(__file__).parent / "studies"
RESULTS = Path("results")

Scale = Annotated[
    float | None,
    typer.Option(min=0.001, max=1.0, help="Emulated over nominal link rate, instead of this machine's factor."),
]
Output = Annotated[Path, typer.Option(help="Folder for results.")]
Resume = Annotated[bool, typer.Option("--resume", help="Resume an interrupted run.")]

app = typer.Typer(help="Measure gradbed on this machine.", no_args_is_help=True, add_completion=False)


@app.callback()
def bench() -> None:
    """Measure gradbed on this machine."""


# ---- The switch and the virtual clock ----


@app.command()
def switch(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, in each of which every switch is measured once.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of one measurement.")] = 0.5,
) -> int:
    """Compare the switch with a forwarder without P4, and with BMv2 where GRADBED_BMV2 names it."""
    from tools.bench.switch.run import run_bench_switch

    require_root(f"{NAME} switch")
    return run_in_sandbox(lambda: run_bench_switch(rounds, seconds))


@app.command()
def virtual(
    sizes: Annotated[str, typer.Option(help="k of the fat-trees, separated by commas.")] = "4,8,16,32",
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements of each size; medians are shown.")] = 3,
    threads: Annotated[int, typer.Option(min=1, max=64, help="Also measure the speed-up on this many threads.")] = 1,
    delay_us: Annotated[int, typer.Option(min=1, max=1_000_000, help="Delay of each link in microseconds.")] = 5,
) -> int:
    """Measure packet hops per processor second: virtual clock, ns-3 (libns3-dev), htsim (GRADBED_HTSIM names it)."""
    from tools.bench.measure import sizes_of
    from tools.bench.virtual.run import run_bench_virtual

    return run_bench_virtual([k for (k,) in sizes_of(sizes)], repetitions, threads, delay_us)


@app.command()
def transport(
    packets: Annotated[int, typer.Option(min=100, help="Packets that each host sends.")] = 10_000,
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements of each kind; medians are shown.")] = 3,
) -> int:
    """Measure what packets of queue pairs cost on the virtual clock, at the hosts and on each link."""
    from tools.bench.virtual.transport import run_bench_transport

    return run_bench_transport(packets, repetitions)


@app.command()
def scale(
    trials: Annotated[
        list[str] | None, typer.Argument(help="Names of trials (default: all).", show_default=False)
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="Fewer values or samples, and no goals.")] = False,
    threads: options.Threads = 1,
) -> int:
    """Run one round of 64 to 1,024 hosts on the virtual clock: wall time and processor time of each."""
    from tools.bench.scale import run_bench_scale

    return run_bench_scale(trials or [], small, threads)


# ---- What a run costs the machine ----


@app.command()
def start(
    repetitions: Annotated[int, typer.Option(min=1, help="Starts of each kind; medians are shown.")] = 3,
) -> int:
    """Measure how long k=4 and k=6 fat-trees take to come up, and a whole run of one round."""
    from tools.bench.start import run_bench_start

    require_root(f"{NAME} start")
    return run_bench_start(repetitions)


@app.command()
def live(
    repetitions: Annotated[
        int, typer.Option(min=1, help="Runs with and without --live, alternating; medians are shown.")
    ] = 5,
) -> int:
    """Measure what --live costs a run, on the virtual clock and, as root, on the real one."""
    from tools.bench.live import run_bench_live

    if os.geteuid() == 0:
        layers.need_debian()
    return run_bench_live(repetitions)


@app.command()
def large(
    k: Annotated[int, typer.Option(min=0, help="k of the fat-tree in Mininet; 0: none.")] = 8,
    virtual_k: Annotated[int, typer.Option(min=0, help="k of the fat-tree on the virtual clock; 0: none.")] = 16,
) -> int:
    """Bring up fat-trees of 128 and 1,024 hosts: time, memory, and whether all hosts reach each other."""
    from tools.bench.large import run_bench_large

    if k:
        layers.need_debian()
    return run_bench_large(k, virtual_k)


@app.command()
def leaks(
    starts: Annotated[int, typer.Option(min=3, help="Number of networks.")] = 100,
) -> int:
    """Bring networks of two hosts up and down, killing some: no resource may be left behind."""
    from tools.bench.leaks import run_bench_leaks

    return run_bench_leaks(starts)


@app.command()
def soak(
    minutes: Annotated[float, typer.Option(min=0.1, help="Duration in minutes.")] = 60.0,
    every_s: Annotated[
        float, typer.Option("--every-s", min=0.0, help="Seconds from the start of one job to that of the next.")
    ] = 5.0,
    sample_s: Annotated[float, typer.Option("--sample-s", min=0.1, help="Seconds between samples.")] = 10.0,
    output: Output = RESULTS,
) -> int:
    """Run jobs one after the other on one network in Mininet: memory must not grow, and nothing may be left."""
    from tools.bench.soak import Pace, run_bench_soak

    require_root(f"{NAME} soak")
    return run_bench_soak(Pace(60 * minutes, every_s, sample_s), output)


@app.command()
def models(
    system: Annotated[str | None, typer.Option(help="Only this system.")] = None,
    scale: Annotated[
        float, typer.Option(help="Emulated over nominal link rate; BMv2 has to keep up with it.")
    ] = 0.02,
) -> int:
    """Run every system in Mininet on its own switch and on BMv2: whether results are exact, and how long it takes."""
    from tools.bench.models import run_bench_models

    require_root(f"{NAME} models")
    return run_bench_models(system, scale)


# ---- Studies with goals ----


@app.command()
def clocks(scale: Scale = None, output: Output = RESULTS, resume: Resume = False) -> int:
    """Compare the virtual clock with the real one: mean round times and counts of fourteen settings."""
    return _run_study("clocks", scale, output, resume)


@app.command()
def throughput(scale: Scale = None, output: Output = RESULTS, resume: Resume = False) -> int:
    """Compare one job's throughput with the bound of the linear program: at least 80 % of it, and never above it."""
    return _run_study("throughput", scale, output, resume)


def _run_study(name: str, scale: float | None, output: Path, resume: bool) -> int:
    from gradbed.experiments.study.command import run_study_file
    from gradbed.experiments.study.running.executors import RunOptions

    require_root(f"{NAME} {name}")
    return run_study_file(STUDIES / f"{name}.yaml", RunOptions(output, resume, scale))


# ---- Parts of the systems ----


@app.command()
def lanes(
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements of each number; medians are shown.")] = 5,
) -> int:
    """Measure how many lanes a gradient packet should have: compile time against gradient bytes summed per second."""
    from tools.bench.lanes import run_bench_lanes

    return run_bench_lanes(repetitions)


@app.command()
def rounds(
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements; the median is shown.")] = 3,
) -> int:
    """Measure what a round of gradients costs on the virtual clock, and where the time goes."""
    from tools.bench.rounds import run_bench_rounds

    return run_bench_rounds(repetitions)


@app.command()
def placement(
    sizes: Annotated[
        str, typer.Option(help="K:M of the fat-trees to plan for, separated by commas.")
    ] = "4:4,6:6,8:8,12:12,16:16",
    instances: Annotated[int, typer.Option(min=0, help="Random networks on which the quality is measured.")] = 50,
    output: Annotated[Path | None, typer.Option(help="Folder for a figure of how the time grows.")] = None,
) -> int:
    """Measure how long the placement of programmable switches takes, and how near it comes to the optimum."""
    from tools.bench.measure import sizes_of
    from tools.bench.placement import run_bench_placement

    return run_bench_placement([(k, maximum) for k, maximum in sizes_of(sizes, "K:M")], instances, output)


@app.command()
def compressors(
    values: Annotated[int, typer.Option(min=1000, help="Values of the gradient.")] = 25_000_000,
    part: Annotated[float, typer.Option(min=0.0001, max=0.5, help="Share of the values that top-k keeps.")] = 0.01,
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements of each; medians are shown.")] = 5,
) -> int:
    """Measure a worker's time and memory for a gradient of which top-k sends a part, on one core.

    The same path is measured with PyTorch's and with NumPy's selection.
    """
    from tools.bench.compressors import run_bench_compressors

    return run_bench_compressors(values, part, repetitions)


@app.command()
def shuffle(
    sizes: Annotated[
        str,
        typer.Option(
            help="K:SAMPLES of the fat-trees on which time is measured, separated by commas.",
            show_default="4:2000, 8:5000, 8:20000, 8:50000",
        ),
    ] = "4:2000,8:5000,8:20000,8:50000",
    share: Annotated[float, typer.Option(min=0.001, max=1, help="Storage fraction of a worker there.")] = 0.3,
    quality: Annotated[
        bool, typer.Option(help="Compare schedulers on the thirty public instances (a few minutes).")
    ] = True,
) -> int:
    """Compare the hops of schedules with bounds and the optimum, and measure how long scheduling takes."""
    from tools.bench.measure import sizes_of
    from tools.bench.shuffle import run_bench_shuffle

    pairs = [(k, samples) for k, samples in sizes_of(sizes, "K:SAMPLES")] if sizes else []
    return run_bench_shuffle(pairs, share, quality)


@app.command()
def interconnect(
    largest: Annotated[int, typer.Option(min=2, max=16, help="The model is run for N from 2 to this.")] = 8,
    slots: Annotated[int, typer.Option(min=100, help="Length of each run in packet times.")] = 1600,
) -> int:
    """Compare the model with packets, link loads of the policies, and the model with other networks."""
    from tools.bench.interconnect import run_bench

    return run_bench(largest, slots)


def command() -> Any:
    """Return the command line, each command with what it needs installed first."""
    made = typer.main.get_command(app)
    provide(made, NEEDS)
    return made


if __name__ == "__main__":
    run_command_line(command(), NAME, [sys.executable, "-m", "tools.bench", *sys.argv[1:]])
