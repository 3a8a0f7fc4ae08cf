"""gradbed bench: measurements, as ratios within one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli import options
from switch.errors import UserError

app = typer.Typer(help="Measure this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure this machine."""


@app.command()
def lanes(
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements of each figure; medians are shown.")] = 5,
) -> int:
    """How many lanes a gradient packet should have: compile time against gradient bytes summed per second."""
    from experiments.systems.aggregation.bench.lanes import run_bench_lanes

    return run_bench_lanes(repetitions)


@app.command()
def start(
    repetitions: Annotated[int, typer.Option(min=1, help="Starts of each kind; medians are shown.")] = 3,
) -> int:
    """How long k=4 and k=6 fat-trees take to come up, and a whole run of one round."""
    from experiments.bench.start import run_bench_start
    from topo.namespaces import require_root

    require_root("gradbed bench start")
    return run_bench_start(repetitions)


@app.command()
def switch(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in which all take turns; medians are shown.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of one turn.")] = 0.5,
) -> int:
    """The switch beside a forwarder without P4, and BMv2 where GRADBED_BMV2 names it."""
    from experiments.bench.switch.run import run_bench_switch
    from topo.namespaces import require_root
    from topo.sandbox import run_in_sandbox

    require_root("gradbed bench switch")
    return run_in_sandbox(lambda: run_bench_switch(rounds, seconds))


@app.command()
def virtual(
    sizes: Annotated[str, typer.Option(help="k of the fat-trees, separated by commas.")] = "4,8,16",
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements of each size; medians are shown.")] = 3,
) -> int:
    """Packet hops per processor second on the virtual clock, and ns-3's where libns3-dev is installed."""
    from experiments.bench.virtual.run import run_bench_virtual

    try:
        wanted = [int(k) for k in sizes.split(",")]
    except ValueError:
        raise UserError(f"--sizes: {sizes!r} is not of the form K,K,... with whole numbers") from None
    return run_bench_virtual(wanted, repetitions)


@app.command()
def throughput(scale: options.Scale = None) -> int:
    """How near one job's throughput comes to the bound of the linear program; at least 80 %, and never above it."""
    from experiments.systems.aggregation.bench.throughput import run_bench_throughput
    from topo.namespaces import require_root

    require_root("gradbed bench throughput")
    return run_bench_throughput(factor=scale)


@app.command()
def placement(
    sizes: Annotated[
        str, typer.Option(help="K:M of the fat-trees to plan for, separated by commas.")
    ] = "4:4,6:6,8:8,12:12,16:16",
    instances: Annotated[int, typer.Option(min=0, help="Random networks on which the quality is measured.")] = 50,
    output: Annotated[Path | None, typer.Option(help="Folder for a figure of how the time grows.")] = None,
) -> int:
    """How long the placement of programmable switches takes, and how near it comes to the optimum."""
    from experiments.systems.aggregation.bench.placement import run_bench_placement

    return run_bench_placement(_sizes(sizes), instances, output)


def _sizes(text: str) -> list[tuple[int, int]]:
    try:
        return [(int(k), int(maximum)) for k, maximum in (size.split(":") for size in text.split(","))]
    except ValueError:
        raise UserError(f"--sizes: {text!r} is not of the form K:M,K:M,... with whole numbers") from None
