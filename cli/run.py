"""gradbed run: experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli import options

app = typer.Typer(help="Run an experiment.", no_args_is_help=True)


@app.callback()
def run() -> None:
    """Run an experiment."""


@app.command()
def aggregation(
    topology: options.Topology = "fat-tree:4",
    workers: Annotated[int, typer.Option(help="Hosts that train (at most 64).")] = 8,
    rounds: Annotated[int, typer.Option(help="Rounds of training.")] = 60,
    hidden_units: Annotated[int, typer.Option(help="Hidden layer; 0 is softmax regression.")] = 64,
    min_timeout_ms: Annotated[int, typer.Option(help="Least time before a worker sends a packet again.")] = 50,
    lanes: Annotated[int, typer.Option(help="int32 lanes of a gradient packet.")] = 352,
    rate_mbps: options.RateMbps = 20.0,
    delay_us: options.DelayUs = 50,
    loss: options.Loss = 0.0,
    duplicate: options.Duplicate = 0.0,
    queue_packets: options.QueuePackets = 1000,
    switch: options.SwitchKind = "gradbed",
    links: options.Links = "memory",
    seed: options.Seed = 1,
    output: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
) -> int:
    """Train a digit classifier, once with gradients summed in the switches and once by the server alone."""
    from experiments.aggregation import run_aggregation
    from experiments.config import AggregationConfig

    return run_aggregation(
        options.validated(
            AggregationConfig,
            topology=topology,
            workers=workers,
            rounds=rounds,
            hidden_units=hidden_units,
            min_timeout_ms=min_timeout_ms,
            lanes=lanes,
            rate_mbps=rate_mbps,
            delay_us=delay_us,
            loss=loss,
            duplicate=duplicate,
            queue_packets=queue_packets,
            switch=switch,
            links=links,
            seed=seed,
            output=output,
        )
    )
