"""gradbed up: a programmed network to look around in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli import options
from switch.errors import UserError
from switch.server_tls import ServerTls


@options.network_options
def up(
    network: dict[str, Any],
    rest_port: Annotated[int, typer.Option(help="Of the REST interface on 127.0.0.1; 0 picks one.")] = 8080,
    p4runtime_address: Annotated[
        str | None, typer.Option(help="HOST:PORT where P4Runtime is served to clients outside the network, too.")
    ] = None,
    p4runtime_cert: Annotated[
        Path | None, typer.Option(help="PEM file of that server's certificate: it speaks TLS.")
    ] = None,
    p4runtime_key: Annotated[Path | None, typer.Option(help="PEM file of its key.")] = None,
    p4runtime_client_ca: Annotated[
        Path | None, typer.Option(help="PEM file of authorities: clients need a certificate of one of them.")
    ] = None,
) -> int:
    """Bring up a network whose switches route and aggregate, and give Mininet's prompt."""
    from experiments.config import NetworkConfig
    from experiments.interactive import run_interactive

    config = options.validated(NetworkConfig, **network)
    tls = _tls(p4runtime_cert, p4runtime_key, p4runtime_client_ca)
    if p4runtime_address is None and tls is not None:
        raise UserError("--p4runtime-cert goes with --p4runtime-address")
    return run_interactive(config, rest_port, p4runtime_address, tls)


def _tls(certificate: Path | None, key: Path | None, client_ca: Path | None) -> ServerTls | None:
    if certificate is not None and key is not None:
        tls = ServerTls(certificate.absolute(), key.absolute(), client_ca and client_ca.absolute())
        tls.credentials()  # what is wrong with the files is said at once
        return tls
    if certificate is not None or key is not None or client_ca is not None:
        raise UserError("TLS takes both --p4runtime-cert and --p4runtime-key")
    return None
