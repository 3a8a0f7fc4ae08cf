"""gradbed up: a programmed network to look around in."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import options


def up(
    topology: options.Topology = "fat-tree:4",
    lanes: Annotated[int, typer.Option(help="int32 lanes of a gradient packet.")] = 352,
    rate_mbps: options.RateMbps = 20.0,
    delay_us: options.DelayUs = 50,
    loss: options.Loss = 0.0,
    duplicate: options.Duplicate = 0.0,
    queue_packets: options.QueuePackets = 1000,
    switch: options.SwitchKind = "gradbed",
    links: options.Links = "memory",
    seed: options.Seed = 1,
    rest_port: Annotated[int, typer.Option(help="Of the REST interface on 127.0.0.1; 0 picks one.")] = 8080,
) -> int:
    """Bring up a network whose switches route and aggregate, and give Mininet's prompt."""
    from experiments.config import NetworkConfig
    from experiments.interactive import run_interactive

    return run_interactive(
        options.validated(
            NetworkConfig,
            topology=topology,
            lanes=lanes,
            rate_mbps=rate_mbps,
            delay_us=delay_us,
            loss=loss,
            duplicate=duplicate,
            queue_packets=queue_packets,
            switch=switch,
            links=links,
            seed=seed,
        ),
        rest_port,
    )
