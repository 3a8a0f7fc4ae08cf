"""What the command lines of simple_switch and simple_switch_grpc ask for (BMv2 1.15)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.switch.server.addresses import ServerTls
from gradbed.switch.shims.command_line import CommandLine, Option, parse, usage

DEFAULT_GRPC_ADDRESS = "127.0.0.1:9559"
"""BMv2 listens on all addresses: whoever reaches the machine may then write to the switch."""
DEFAULT_THRIFT_PORT = 9090
DROP_PORT = 511
MAX_PORT = 511
MAX_PRIORITIES = 8

QUEUE_PACKETS = 64
"""BMv2's depth of egress queues."""

# BMv2's levels; what it calls trace and debug are one here.
LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}

_NANOMSG = "nanomsg is not offered"
_LIMITS = "there is no such limit"

_GENERAL = (
    Option(("--help", "-h"), help="print this"),
    Option(("--interface", "-i"), "value", "PORT@INTERFACE: attach a network interface as a port; repeat for more"),
    Option(("--pcap",), "optional", "write INTERFACE_in.pcap and INTERFACE_out.pcap; to this folder (default: .)"),
    Option(("--use-files",), "value", "take packets from X_in.pcap, write X_out.pcap, after so many seconds"),
    Option(("--thrift-port",), "value", "there is no Thrift; P4Runtime is served on this port of 127.0.0.1 too"),
    Option(("--device-id",), "value", "P4Runtime device id (default: 0)"),
    Option(("--log-console",), help="log to standard output"),
    Option(("--log-file",), "value", "log to this file, with .txt added"),
    Option(("--log-level", "-L"), "value", f"{', '.join(LEVELS)} (default: trace)"),
    Option(("--log-flush",), ignored="every line is written at once"),
    Option(("--log-file-max-size",), "value", "bytes of a log file before a new one is begun (default: 5242880)"),
    Option(("--log-file-max-files",), "value", "older log files that are kept (default: 3)"),
    Option(("--no-p4",), help="start without a program"),
    Option(
        ("--bmv2-arbitration",), help="elect controllers as BMv2 does, not as P4Runtime says; BMv2 has no such option"
    ),
    Option(("--version", "-v"), help="print the version"),
    Option(("--json-version",), help="print the version of BMv2 JSON"),
    Option(("--max-port-count",), "value", ignored=_LIMITS),
    Option(("--nanolog",), "value", ignored=_NANOMSG),
    Option(("--notifications-addr",), "value", ignored=_NANOMSG + "; digests and timeouts come by P4Runtime"),
    Option(("--debugger",), ignored="there is no debugger; see gradbed p4 trace"),
    Option(("--debugger-addr",), "value", ignored="there is no debugger; see gradbed p4 trace"),
    Option(("--dump-packet-data",), "value", ignored="use --pcap"),
    Option(("--restore-state",), "value", refused="saved state cannot be restored"),
    Option(("--packet-in",), "value", refused=_NANOMSG + ", attach interfaces instead"),
)

_TARGET = (
    Option(("--drop-port",), "value", f"packets to this port are dropped (default: {DROP_PORT})"),
    Option(("--priority-queues",), "value", f"queues of each port, up to {MAX_PRIORITIES} (default: 8, BMv2's is 1)"),
    Option(("--max-mc-groups", "--max-l1-entries", "--max-l2-entries"), "value", ignored=_LIMITS),
    Option(("--load-modules",), "value", refused="externs other than v1model's are not offered"),
)

_GRPC_TARGET = (
    Option(("--grpc-server-addr",), "value", f"where P4Runtime is served (default: {DEFAULT_GRPC_ADDRESS})"),
    Option(("--cpu-port",), "value", "port of packet-ins and packet-outs (default: none)"),
    Option(("--grpc-server-ssl",), help="serve P4Runtime over TLS; needs certificate and key"),
    Option(("--grpc-server-cert",), "value", "PEM file of the server's certificate"),
    Option(("--grpc-server-key",), "value", "PEM file of its key"),
    Option(("--grpc-server-with-client-auth",), help="clients must have a certificate of an authority of cacert"),
    Option(("--grpc-server-cacert",), "value", "PEM file of authorities whose clients are let in"),
    Option(("--dp-grpc-server-addr",), "value", refused="packets over gRPC are not offered, attach interfaces"),
    Option(("--disable-swap",), ignored="programs can always be exchanged"),
    *_TARGET,
)

_PLAIN_TARGET = (
    Option(("--enable-swap",), ignored="programs can always be exchanged"),
    *_TARGET,
)


@dataclass(frozen=True)
class SwitchOptions:
    """Options of a switch; None where an option was not given."""

    interfaces: dict[int, str]
    """Names of network interfaces by port."""
    device_id: int
    program: Path | None
    grpc_addresses: tuple[str, ...]
    tls: ServerTls | None
    thrift_port: int | None
    bmv2_arbitration: bool
    cpu_port: int | None
    drop_port: int
    priorities: int
    pcap_dir: Path | None
    files_delay_s: int | None
    log_console: bool
    log_file: Path | None
    """Path with its suffix."""
    log_level: int
    log_file_bytes: int
    log_files_kept: int
    notes: tuple[str, ...]


class Answered(Exception):
    """The command line asks for no switch, but for this text."""


def read_options(command: str, arguments: Sequence[str]) -> SwitchOptions:
    """Read the arguments of simple_switch or simple_switch_grpc.

    Raises UserError, and Answered for --help and the like.
    """
    with_grpc = command == "simple_switch_grpc"
    target_options = _GRPC_TARGET if with_grpc else _PLAIN_TARGET
    line = parse(_GENERAL, arguments)
    if "--help" in line:
        raise Answered(
            f"Usage: {command} [options] JSON [-- target options]\n{usage(_GENERAL)}\n"
            f"Target options, behind --:\n{usage(target_options)}"
        )
    if "--version" in line:
        raise Answered("1.15.0-gradbed")
    if "--json-version" in line:
        raise Answered("2.24")
    for argument in line.unknown:
        misplaced = any(argument.startswith(name) for option in target_options for name in option.names)
        hint = "a target option: put it behind --" if misplaced else f"unknown (see {command} --help)"
        raise UserError(f"option {argument} is {hint}")
    # BMv2 takes what stands behind the JSON file without a dash for target options as well.
    program, *rest = line.positional or [""]
    target = parse(target_options, [*rest, *line.behind_dashes])
    notes = [*line.notes, *target.notes]
    notes += [f"unknown target option {argument} has no effect" for argument in [*target.unknown, *target.positional]]
    return _options(line, target, program, with_grpc, notes)


def _options(
    line: CommandLine, target: CommandLine, program: str, with_grpc: bool, notes: list[str]
) -> SwitchOptions:
    if "--no-p4" in line:
        if program:
            notes.append(f"{program} is not loaded because of --no-p4")
        program = ""
    elif not program:
        raise UserError("name a BMv2 JSON file, or start without one: --no-p4")
    cpu_port = target.number("--cpu-port", least=1)
    drop_port = target.number("--drop-port")
    priorities = target.number("--priority-queues", least=1) or MAX_PRIORITIES
    if priorities > MAX_PRIORITIES:
        notes.append(f"--priority-queues {priorities}: standard_metadata.priority has 3 bits, so there are 8 queues")
    log_level = line.last("--log-level") or "trace"
    if log_level not in LEVELS:
        raise UserError(f"--log-level {log_level}: levels are {', '.join(LEVELS)}")
    log_file = line.last("--log-file")
    if log_file and "--log-console" in line:
        raise UserError("log to one place: --log-console or --log-file")
    pcap_dir = Path(line.last("--pcap") or ".") if "--pcap" in line else None
    if pcap_dir is not None and not pcap_dir.is_dir():
        raise UserError(f"--pcap: there is no folder {pcap_dir}")
    thrift_port = line.number("--thrift-port", least=1)
    if not with_grpc:
        thrift_port = thrift_port or DEFAULT_THRIFT_PORT
    if thrift_port is not None:
        notes.append(
            f"--thrift-port: Thrift is not offered; P4Runtime is served on 127.0.0.1:{thrift_port}, "
            "where our simple_switch_CLI finds it"
        )
    return SwitchOptions(
        interfaces=_interfaces(line.values.get("--interface", [])),
        device_id=line.number("--device-id") or 0,
        program=Path(program) if program else None,
        grpc_addresses=(target.last("--grpc-server-addr") or DEFAULT_GRPC_ADDRESS,) if with_grpc else (),
        tls=_tls(target, notes),
        thrift_port=thrift_port,
        bmv2_arbitration="--bmv2-arbitration" in line,
        cpu_port=cpu_port,
        drop_port=DROP_PORT if drop_port is None else drop_port,
        priorities=min(priorities, MAX_PRIORITIES),
        pcap_dir=pcap_dir,
        files_delay_s=line.number("--use-files"),
        log_console="--log-console" in line,
        log_file=Path(f"{log_file}.txt") if log_file else None,
        log_level=LEVELS[log_level],
        log_file_bytes=line.number("--log-file-max-size", least=1) or 5 << 20,
        log_files_kept=3 if line.number("--log-file-max-files") is None else line.number("--log-file-max-files") or 0,
        notes=tuple(notes),
    )


def _tls(target: CommandLine, notes: list[str]) -> ServerTls | None:
    files = {name: target.last(f"--grpc-server-{name}") for name in ("cert", "key", "cacert")}
    client_auth = "--grpc-server-with-client-auth" in target
    if "--grpc-server-ssl" not in target:
        given = [f"--grpc-server-{name}" for name, file in files.items() if file is not None]
        given += ["--grpc-server-with-client-auth"] * client_auth
        notes += [f"{name} has no effect without --grpc-server-ssl" for name in given]
        return None
    for name in ("cert", "key"):
        if not files[name]:
            raise UserError(f"--grpc-server-ssl needs --grpc-server-{name}, a PEM file")
    if client_auth and not files["cacert"]:
        raise UserError("--grpc-server-with-client-auth needs --grpc-server-cacert, a PEM file")
    client_ca = Path(files["cacert"] or "") if client_auth else None
    return ServerTls(Path(files["cert"] or ""), Path(files["key"] or ""), client_ca)


def _interfaces(wanted: Sequence[str]) -> dict[int, str]:
    interfaces: dict[int, str] = {}
    for text in wanted:
        port, at, name = text.strip().partition("@")
        if not at or not name or not port.isdecimal():
            raise UserError(f"--interface {text}: write PORT@INTERFACE, for instance 1@s1-eth1")
        if int(port) > MAX_PORT:
            raise UserError(f"--interface {text}: v1model's ports have 9 bits, so they are 0..{MAX_PORT}")
        if int(port) in interfaces:
            raise UserError(f"--interface {text}: port {port} is {interfaces[int(port)]} already")
        interfaces[int(port)] = name
    return interfaces
