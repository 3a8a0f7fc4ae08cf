"""gradbed bench: measurements, as ratios within one run."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(help="Measure this machine.", no_args_is_help=True)


@app.callback()
def bench() -> None:
    """Measure this machine."""


@app.command()
def lanes(
    repetitions: Annotated[int, typer.Option(min=1, help="Measurements of each figure; medians are shown.")] = 5,
) -> int:
    """How many lanes a gradient packet should have: compile time against gradient bytes summed per second."""
    from experiments.bench_lanes import run_bench_lanes

    return run_bench_lanes(repetitions)


@app.command()
def switch(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in which all take turns; medians are shown.")] = 5,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of one turn.")] = 0.5,
) -> int:
    """The switch beside a forwarder without P4, and BMv2 where GRADBED_BMV2 names it."""
    from experiments.bench_switch.run import run_bench_switch
    from topo.namespaces import require_root
    from topo.sandbox import run_in_sandbox

    require_root("gradbed bench switch")
    return run_in_sandbox(lambda: run_bench_switch(rounds, seconds))
