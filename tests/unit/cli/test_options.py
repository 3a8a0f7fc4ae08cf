"""Options that commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from experiments.config import NetworkConfig
from typer.testing import CliRunner

from cli import options


def test_every_field_of_a_network_has_an_option() -> None:
    assert set(options.NETWORK) == set(NetworkConfig.model_fields)


def test_a_command_gets_its_network_in_one_piece() -> None:
    seen: list[tuple[dict[str, Any], int]] = []

    @options.network_options
    def command(network: dict[str, Any], count: Annotated[int, typer.Option()] = 3) -> int:
        seen.append((network, count))
        return 0

    app = typer.Typer()
    app.command()(command)
    assert CliRunner().invoke(app, ["--rate-mbps", "5", "--switch", "bmv2"]).exit_code == 0
    assert CliRunner().invoke(app, ["--count", "4"]).exit_code == 0
    defaults = NetworkConfig().model_dump()
    assert seen == [({**defaults, "rate_mbps": 5.0, "switch": "bmv2"}, 3), (defaults, 4)]
