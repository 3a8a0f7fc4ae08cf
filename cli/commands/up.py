"""gradbed up: a programmed network to look around in."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from gradbed.cli import options
from gradbed.cli.options import parameters, with_parameters
from gradbed.common.errors import UserError
from gradbed.experiments.configuration.options import complaint, model_options, nested, within
from gradbed.experiments.custom_program import (
    WHICH_PROGRAM,
    CustomProgram,
    CustomProgramConfiguration,
    CustomProgramSystem,
)
from gradbed.experiments.system import System
from gradbed.experiments.systems import DEFAULT_SYSTEM, find_system
from gradbed.switch.server.addresses import ServerTls
from gradbed.topo.files import TopologyFile, topology_file

_SYSTEM = find_system(DEFAULT_SYSTEM)
_OF_SYSTEMS = within(model_options(_SYSTEM.configuration, {}), _SYSTEM.options.network_options)
_OF_PROGRAMS = [
    each
    for each in within(model_options(CustomProgramConfiguration, {}), ["topology"])
    if each.flag not in {known.flag for known in _OF_SYSTEMS}
]
"""Of a program of one's own alone."""
_OPTIONS = [*_OF_SYSTEMS, *_OF_PROGRAMS]


def _up(
    *,
    system: Annotated[
        str | None,
        typer.Option(
            help="System whose programs the switches run, and whose commands the prompt has.",
            show_default=f"{DEFAULT_SYSTEM}, or the programs that the topology's file names",
        ),
    ] = None,
    program: Annotated[
        Path | None, typer.Option(help="Your own P4 program for every switch, in place of gradbed's.")
    ] = None,
    entries: Annotated[
        list[Path] | None,
        typer.Option(help="Table entries of the program: .yaml or .py (docs/entries.md); may be repeated."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Reload program and entries when their files change.")
    ] = False,
    controller: Annotated[
        str | None,
        typer.Option(
            help="Command of your own controller (a P4Runtime client), started once program and entries are "
            "installed, with the switches' addresses in its environment; none: any client may connect."
        ),
    ] = None,
    seed: options.Seed = 1,
    rest_port: Annotated[int, typer.Option(help="Port of the REST interface on 127.0.0.1; 0 picks one.")] = 8080,
    p4runtime_address: Annotated[
        str | None, typer.Option(help="HOST:PORT for P4Runtime clients outside the network (default: none).")
    ] = None,
    p4runtime_cert: Annotated[
        Path | None, typer.Option(help="PEM file of the P4Runtime server's TLS certificate.")
    ] = None,
    p4runtime_key: Annotated[Path | None, typer.Option(help="PEM file of the certificate's private key.")] = None,
    p4runtime_client_ca: Annotated[
        Path | None,
        typer.Option(help="PEM file of the CA certificates that sign client certificates (mutual TLS)."),
    ] = None,
    pcap: options.Pcap = None,
    live: options.Live = False,
    output: options.Output = Path("results"),
    **given: Any,
) -> int:
    """Bring up a network whose switches route and aggregate, or run a program of yours, and give Mininet's prompt."""
    from gradbed.experiments.interactive import Keeps, run_interactive

    shown = find_system(system or DEFAULT_SYSTEM)
    file = _file(given)
    is_own = program is not None or bool(entries) or watch or controller is not None
    if is_own or (system is None and file is not None and file.form):
        if system not in (None, DEFAULT_SYSTEM):
            raise UserError(f"--system {system} does not go with a program of your own")
        _require_program(program, file)
        whose = "a program of your own" if is_own or file is None else f"the programs that {file.path} names"
        shown = _own_program(program, entries or [], watch, controller, given, whose)
    else:
        _check_options_of_system(system or DEFAULT_SYSTEM, given)
    tls = _tls(p4runtime_cert, p4runtime_key, p4runtime_client_ca)
    if p4runtime_address is None and tls is not None:
        raise UserError("--p4runtime-cert goes with --p4runtime-address")
    try:
        values = nested(_OPTIONS, given, {})
        keeps = Keeps(output, options.captured(pcap), live) if pcap is not None or live else None
        return run_interactive(shown, values, seed, rest_port, p4runtime_address, tls, keeps)
    except ValidationError as error:
        raise complaint(error, _OPTIONS) from None


def _file(given: dict[str, Any]) -> TopologyFile | None:
    """Read the file that --topology names."""
    kind = given.get("topology__kind")
    try:
        return None if kind is None else topology_file(kind)
    except UserError as error:
        raise UserError(f"--topology: {error}") from None


def _require_program(program: Path | None, file: TopologyFile | None) -> None:
    """Raise UserError where nothing says what a switch runs."""
    if program is not None:
        return
    if file is None:
        raise UserError(f"{WHICH_PROGRAM} with --program")
    try:
        file.sources(None)
    except UserError as error:
        gradbeds = f", or run gradbed's with --system {DEFAULT_SYSTEM}" if file.form else ""
        raise UserError(f"{error} with --program{gradbeds}") from None


def _own_program(
    program: Path | None,
    entries: list[Path],
    watch: bool,
    controller: str | None,
    given: dict[str, Any],
    whose: str,
) -> System[Any]:
    """Return the system of a network for a user's program. UserError for what does not go together."""
    _only_of_every_network(given, whose, besides=("switches__model", "switches__links"))
    if watch and controller is not None:
        raise UserError("--watch does not go with --controller: who fills the tables reloads them")
    return CustomProgramSystem(CustomProgram(program, tuple(entries), watch, controller))


def _check_options_of_system(system: str, given: dict[str, Any]) -> None:
    """Raise UserError for options that the system does not have."""
    for option in _OF_PROGRAMS:
        if given.get(option.parameter) is not None:
            raise UserError(f"{option.flag} goes with a program of your own: --program")
    if system != DEFAULT_SYSTEM:
        _only_of_every_network(given, f"--system {system}")


def _only_of_every_network(given: dict[str, Any], with_what: str, besides: Collection[str] = ()) -> None:
    """Raise UserError for options of the default system's program."""
    for option in _OPTIONS:
        wanted = option.path[0] == "topology" or option.parameter in besides
        if given.get(option.parameter) is not None and not wanted:
            raise UserError(f"{option.flag} does not go with {with_what}")


def _tls(certificate: Path | None, key: Path | None, client_ca: Path | None) -> ServerTls | None:
    if certificate is not None and key is not None:
        tls = ServerTls(certificate.absolute(), key.absolute(), client_ca and client_ca.absolute())
        tls.credentials()  # what is wrong with the files is said at once
        return tls
    if certificate is not None or key is not None or client_ca is not None:
        raise UserError("TLS takes both --p4runtime-cert and --p4runtime-key")
    return None


up = with_parameters(_up, parameters(_OPTIONS))
