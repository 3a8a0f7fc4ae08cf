"""gradbed up: a programmed network to look around in."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli import options


@options.network_options
def up(
    network: dict[str, Any],
    rest_port: Annotated[int, typer.Option(help="Of the REST interface on 127.0.0.1; 0 picks one.")] = 8080,
) -> int:
    """Bring up a network whose switches route and aggregate, and give Mininet's prompt."""
    from experiments.config import NetworkConfig
    from experiments.interactive import run_interactive

    return run_interactive(options.validated(NetworkConfig, **network), rest_port)
