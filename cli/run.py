"""gradbed run: experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli import options, study

app = typer.Typer(help="Run an experiment.", no_args_is_help=True, cls=study.StudyOrCommand)
app.command("study")(study.study)


@app.callback()
def run() -> None:
    """Run an experiment."""


@app.command()
@options.network_options
def aggregation(
    network: dict[str, Any],
    jobs: Annotated[int, typer.Option(help="Jobs that train at the same time, on different hosts.")] = 1,
    workers: Annotated[int, typer.Option(help="Hosts that train in each job (at most 64).")] = 8,
    rounds: Annotated[int, typer.Option(help="Rounds of training.")] = 60,
    hidden_units: Annotated[int, typer.Option(help="Hidden layer; 0 is softmax regression.")] = 64,
    min_timeout_ms: Annotated[int, typer.Option(help="Least time before a worker sends a packet again.")] = 50,
    placement: Annotated[
        str,
        typer.Option(
            help="Which switches sum: shared-path, greedy, greedy-gradients, exhaustive, milp, random, "
            "highest-degree, server-tor, every-tor, grid, explicit, lp (both with --switches), none."
        ),
    ] = "shared-path",
    programmable: Annotated[
        int | None, typer.Option(help="At most so many switches besides the server's ToR, where a placement chooses.")
    ] = None,
    switches: Annotated[str | None, typer.Option(help="Names, such as a1,e1.")] = None,
    switch_capacity_mbps: Annotated[float | None, typer.Option(help="What one switch can sum.")] = None,
    demand_mbps: Annotated[float | None, typer.Option(help="The rate that every worker must reach.")] = None,
    legacy: Annotated[
        str, typer.Option(help="What other switches are: none (all are alike), openflow, or p4 (plain forwarding).")
    ] = "none",
    slot_policy: Annotated[
        str, typer.Option(help="dynamic: jobs share slots by hash; static: each has a part for itself.")
    ] = "dynamic",
    window: Annotated[int, typer.Option(help="Fragments that a worker has unanswered at most.")] = 32,
    congestion_control: Annotated[
        str, typer.Option(help="Of the window: aimd, ecn (without heed of losses) or none.")
    ] = "aimd",
    baselines: Annotated[
        str, typer.Option(help="Also by all-reduce among the workers, without a server: ring, gloo, or ring,gloo.")
    ] = "",
    output: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
) -> int:
    """Train a digit classifier, once with gradients summed in the switches and once by the server alone."""
    from experiments.aggregation import run_aggregation
    from experiments.config import AggregationConfig

    return run_aggregation(
        options.validated(
            AggregationConfig,
            jobs=jobs,
            workers=workers,
            rounds=rounds,
            hidden_units=hidden_units,
            min_timeout_ms=min_timeout_ms,
            placement=placement,
            programmable=programmable,
            switches=None if switches is None else tuple(name for name in switches.split(",") if name),
            switch_capacity_mbps=switch_capacity_mbps,
            demand_mbps=demand_mbps,
            legacy=legacy,
            slot_policy=slot_policy,
            window=window,
            congestion_control=congestion_control,
            baselines=tuple(name for name in baselines.split(",") if name),
            output=output,
            **network,
        )
    )


@app.command()
@options.network_options
def torch(
    network: dict[str, Any],
    script: Annotated[Path, typer.Argument(help="A script with DistributedDataParallel and torch_hook.register.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Its arguments, after --.")] = None,
    workers: Annotated[int, typer.Option(help="Hosts that run the script (at most 64).")] = 4,
    exchange: Annotated[
        str, typer.Option(help="server: sums in the switches and the server; ring: ring all-reduce.")
    ] = "server",
    placement: Annotated[str, typer.Option(help="Which switches sum, as in run aggregation.")] = "shared-path",
    programmable: Annotated[
        int | None, typer.Option(help="At most so many switches besides the server's ToR, where a placement chooses.")
    ] = None,
    switches: Annotated[str | None, typer.Option(help="Names, such as a1,e1.")] = None,
    legacy: Annotated[str, typer.Option(help="What other switches are: none, openflow or p4.")] = "none",
    window: Annotated[int, typer.Option(help="Fragments that a worker has unanswered at most.")] = 32,
    min_timeout_ms: Annotated[int, typer.Option(help="Least time before a worker sends a packet again.")] = 50,
    output: Annotated[Path, typer.Option(help="Folder for results.")] = Path("results"),
    install: Annotated[
        bool, typer.Option("--install", help="Install PyTorch first, without CUDA, if it is not there.")
    ] = False,
) -> int:
    """Train your own PyTorch model, its gradients summed in the switches: the script runs in every worker's host."""
    from experiments.config import TorchConfig
    from experiments.systems.aggregation.torch_run import run_torch
    from hosts.torch_hook.torch_extra import install_torch

    config = options.validated(
        TorchConfig,
        script=script,
        arguments=tuple(arguments or ()),
        workers=workers,
        exchange=exchange,
        placement=placement,
        programmable=programmable,
        switches=None if switches is None else tuple(name for name in switches.split(",") if name),
        legacy=legacy,
        window=window,
        min_timeout_ms=min_timeout_ms,
        output=output,
        **network,
    )
    if install:
        install_torch()
    return run_torch(config)
