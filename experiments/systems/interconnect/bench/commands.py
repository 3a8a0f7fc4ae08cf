"""gradbed bench interconnect."""

from __future__ import annotations

from typing import Annotated

import typer


def interconnect(
    largest: Annotated[int, typer.Option(min=2, max=16, help="The model is run for N from 2 to this.")] = 8,
    slots: Annotated[int, typer.Option(min=100, help="Packet times of each run.")] = 1600,
) -> int:
    """The model beside packets, the largest link load of each policy, and the model beside other networks."""
    from gradbed.experiments.systems.interconnect.bench.run import run_bench

    return run_bench(largest, slots)
