"""gradbed demo: aggregation with its defaults."""

from __future__ import annotations

from typing import Annotated

import typer


def demo(
    clock: Annotated[str, typer.Option(help="real: Mininet, as root; virtual: one process, any user.")] = "real",
) -> int:
    """Train a digit classifier over a k=4 fat-tree, with and without aggregation in the switches."""
    from cli.run import single_run
    from experiments.systems import DEFAULT_SYSTEM, find_system

    return single_run(DEFAULT_SYSTEM, find_system(DEFAULT_SYSTEM).defaults)(clock=clock)
