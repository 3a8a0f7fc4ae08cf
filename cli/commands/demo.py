"""gradbed demo: what a system does, in half a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from gradbed.cli import options

# ---- Demo ----
#
# gradbed demo: what a system does, in half a minute.


def demo(
    system: Annotated[
        str | None, typer.Argument(help="A system, such as ndn (gradbed run --help lists them).")
    ] = None,
    clock: Annotated[
        Literal["real", "virtual"] | None,
        typer.Option(
            help="Clock: virtual (simulated time, any user) or real (Mininet, needs root).",
            show_default="virtual",
        ),
    ] = None,
    output: options.Output = Path("results"),
    pcap: options.Pcap = None,
    live: options.Live = False,
    live_paused: options.LivePaused = False,
) -> int:
    """Run a system with and without its idea: a table, a figure, and what they mean."""
    from gradbed.cli.layers import need_debian
    from gradbed.experiments.study.demo import run_demo
    from gradbed.experiments.study.running.executors import RunOptions
    from gradbed.experiments.systems import DEFAULT_SYSTEM

    name = DEFAULT_SYSTEM if system is None else system
    with options.observed(live, live_paused) as observer:
        of_run = RunOptions(output, pcap=options.captured(pcap), observer=observer, prepare_network=need_debian)
        return run_demo(name, of_run, clock)
