"""gradbed demo: aggregation with its defaults."""

from __future__ import annotations

from typing import Annotated

import typer

VIRTUAL_ROUNDS = 5
"""On the virtual clock all rounds but the first take nearly the same time."""


def demo(
    clock: Annotated[str, typer.Option(help="real: Mininet, as root; virtual: one process, any user.")] = "real",
) -> int:
    """Train a digit classifier over a k=4 fat-tree, with and without aggregation in the switches."""
    from cli.commands.run import single_run
    from experiments.systems import DEFAULT_SYSTEM, find_system

    # Whatever else the machine does, the round times of a few rounds on the virtual clock are the network's.
    beside = {"clock": "virtual", "workload.rounds": VIRTUAL_ROUNDS} if clock == "real" else None
    return single_run(DEFAULT_SYSTEM, find_system(DEFAULT_SYSTEM).defaults, beside)(clock=clock)
