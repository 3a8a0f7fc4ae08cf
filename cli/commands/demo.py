"""gradbed demo: aggregation with its defaults."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

VIRTUAL_ROUNDS = 5
"""On the virtual clock all rounds but the first take nearly the same time."""


def _clock() -> str:
    return "real" if os.geteuid() == 0 else "virtual"


def demo(
    clock: Annotated[
        str,
        typer.Option(
            default_factory=_clock,
            help="real: Mininet, as root; virtual: one process, any user.",
            show_default="real for root, else virtual",
        ),
    ],
) -> int:
    """Train a digit classifier over a k=4 fat-tree, with and without aggregation in the switches."""
    from cli.commands.run import single_run
    from experiments.systems import DEFAULT_SYSTEM, find_system

    if clock == "virtual" and os.geteuid() != 0:
        print(
            "gradbed: on the virtual clock, without root; sudo ./gradbed demo is in Mininet",
            file=sys.stderr,
        )
    # Whatever else the machine does, the round times of a few rounds on the virtual clock are the network's.
    beside = {"clock": "virtual", "workload.rounds": VIRTUAL_ROUNDS} if clock == "real" else None
    return single_run(DEFAULT_SYSTEM, find_system(DEFAULT_SYSTEM).defaults, beside)(clock=clock)
