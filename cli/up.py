"""gradbed up: a programmed network to look around in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from cli import options
from cli.model_options import parameters, with_parameters
from experiments.configuration.options import complaint, model_options, nested, within
from experiments.systems import DEFAULT_SYSTEM, find_system
from switch.errors import UserError
from switch.server_tls import ServerTls

_SYSTEM = find_system(DEFAULT_SYSTEM)
_OPTIONS = within(model_options(_SYSTEM.configuration, {}), _SYSTEM.network_options)


def _up(
    *,
    seed: options.Seed = 1,
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
    **given: Any,
) -> int:
    """Bring up a network whose switches route and aggregate, and give Mininet's prompt."""
    from experiments.interactive import run_interactive

    tls = _tls(p4runtime_cert, p4runtime_key, p4runtime_client_ca)
    if p4runtime_address is None and tls is not None:
        raise UserError("--p4runtime-cert goes with --p4runtime-address")
    try:
        return run_interactive(DEFAULT_SYSTEM, nested(_OPTIONS, given, {}), seed, rest_port, p4runtime_address, tls)
    except ValidationError as error:
        raise complaint(error, _OPTIONS) from None


def _tls(certificate: Path | None, key: Path | None, client_ca: Path | None) -> ServerTls | None:
    if certificate is not None and key is not None:
        tls = ServerTls(certificate.absolute(), key.absolute(), client_ca and client_ca.absolute())
        tls.credentials()  # what is wrong with the files is said at once
        return tls
    if certificate is not None or key is not None or client_ca is not None:
        raise UserError("TLS takes both --p4runtime-cert and --p4runtime-key")
    return None


up = with_parameters(_up, parameters(_OPTIONS))
