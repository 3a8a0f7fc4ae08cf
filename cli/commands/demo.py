"""gradbed demo: what a system does, in half a minute."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from gradbed.cli import options
from gradbed.common.modules import COMMAND

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
            help="real: Mininet, as root; virtual: one process, any user.",
            show_default="the demo's own, for root",
        ),
    ] = None,
    output: options.Output = Path("results"),
    pcap: options.Pcap = None,
    live: options.Live = False,
    live_paused: options.LivePaused = False,
) -> int:
    """Run a system with and without its idea: a table, a figure, and what they mean."""
    from gradbed.cli.layers import need_debian
    from gradbed.experiments.study.demo import load_demo, run_demo
    from gradbed.experiments.study.running.executors import RunOptions
    from gradbed.experiments.systems import DEFAULT_SYSTEM

    name = DEFAULT_SYSTEM if system is None else system
    study, _ = load_demo(name, clock)
    if not study.needs_network and clock is None and system is None and os.geteuid() != 0:
        print(
            f"gradbed: on the virtual clock, without root; sudo {COMMAND} demo is in Mininet",
            file=sys.stderr,
        )
    with options.observed(live, live_paused) as observer:
        of_run = RunOptions(output, pcap=options.captured(pcap), observer=observer, prepare_network=need_debian)
        return run_demo(name, of_run, clock)
