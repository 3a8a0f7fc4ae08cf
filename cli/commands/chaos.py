"""gradbed chaos: what systems do when things fail."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from gradbed.cli import options

# ---- Chaos ----
#
# gradbed chaos: what systems do when things fail.


MOST_SEED = 2**31 - 1001
"""Repetitions have the numbers after it."""


def chaos(
    system: Annotated[
        str | None, typer.Argument(help="A system, such as ndn (gradbed run --help lists them); none: all.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="One repetition of each fault.")] = False,
    fault: Annotated[
        list[str] | None, typer.Option("--fault", help="Only this fault of the table; may be repeated.")
    ] = None,
    clock: options.Clock = None,
    switch: Annotated[
        Literal["gradbed", "bmv2"] | None, typer.Option(help="What runs the P4 switches; bmv2 needs the real clock.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            callback=options.within(0, MOST_SEED),
            help="Random seed of the first repetition; the next ones have the numbers after it.",
            show_default="1",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the newest run.")] = False,
    jobs: options.Jobs = None,
    output: options.Output = Path("results"),
    scale: options.Scale = None,
) -> int:
    """Let every fault happen to a system, each at several times: is the result right, or the error clear?"""
    from gradbed.cli.layers import need_debian
    from gradbed.experiments.study.chaos import Cell, Matrix, run_chaos, with_chaos, write_outcome
    from gradbed.experiments.study.command import INTERRUPTED
    from gradbed.experiments.study.running.executors import RunOptions

    of_run = RunOptions(output, resume, scale, jobs, prepare_network=need_debian)
    wanted = Matrix(quick, fault or (), clock, switch, seed)
    status = 0
    found: dict[str, Sequence[Cell]] = {}
    for name in with_chaos() if system is None else [system]:
        status = max(status, run_chaos(name, of_run, wanted, found))
        if status == INTERRUPTED:
            return status
    if system is None and not fault and found:
        print(f"all systems together: {write_outcome(output, found)}")
    return status
