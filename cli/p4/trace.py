"""gradbed p4 trace: what a program does to one packet."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gradbed.cli import options
from gradbed.cli.p4 import setup as p4_setup
from gradbed.common.errors import UserError

if TYPE_CHECKING:
    from gradbed.switch.insight.traced_switch import TracedSwitch

_PROGRAM_SUFFIXES = (".p4", ".json")


def trace(
    program: Annotated[
        str | None,
        typer.Argument(help="A P4_16 program for v1model, or BMv2 JSON; not needed with --target."),
    ] = None,
    packet: Annotated[str | None, typer.Argument(help="The frame in hexadecimal.")] = None,
    port: Annotated[int, typer.Option(help="Ingress port of the packet.")] = 0,
    pcap: p4_setup.Pcap = None,
    index: Annotated[int, typer.Option(min=1, help="Which packet of the capture file, from 1.")] = 1,
    replay: Annotated[bool, typer.Option("--replay", help="Send the packets before it through first.")] = False,
    entries: p4_setup.Entries = None,
    switch: p4_setup.SwitchName = None,
    target: Annotated[
        str | None, typer.Option(help="Take program and state from the switch behind this P4Runtime address.")
    ] = None,
    device_id: Annotated[int, typer.Option(help="Its device id there.")] = 1,
    p4info: p4_setup.P4Info = None,
    source: p4_setup.SourceFolder = None,
    cpu_port: p4_setup.CpuPort = 510,
    whole: Annotated[bool, typer.Option("--whole", help="Print long lists in full.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    include: options.Include = None,
    define: options.Define = None,
) -> int:
    """Show what a program does to one packet: parser, tables, actions, headers, registers, and where it goes."""
    from gradbed.switch.insight.trace import build_trace
    from gradbed.switch.insight.traced_switch import TracedSwitch

    if target is not None and program and packet is None and not program.endswith(_PROGRAM_SUFFIXES):
        program, packet = None, program
    before, frame = _packet(packet, pcap, index, replay)
    updates: Sequence[Any] = ()
    if target is not None:
        folders = [*(source or []), *([Path(program).parent] if program else []), Path.cwd()]
        setup, updates = _of_target(target, device_id, folders)
    elif program is not None:
        setup = p4_setup.load(Path(program), include, define, p4info, source)
    else:
        raise UserError("give a program and a packet, or --target and a packet")
    with TracedSwitch(setup.program, cpu_port=cpu_port) as traced:
        if target is not None:
            _write(traced, setup, updates)
        setup.fill(traced, entries or [], switch)
        for earlier in before:
            traced.send(port, earlier)
        passage = traced.send(port, frame)
    result = build_trace(setup.program, setup.sources, port, frame, passage.records, passage.outputs)
    if as_json:
        print(json.dumps(result.to_json(), indent=1))
        return 0
    from rich.console import Console

    from gradbed.switch.insight.trace_text import print_trace

    print_trace(result, setup.sources, Console(highlight=False), whole=whole)
    return 0


def _packet(packet: str | None, pcap: Path | None, index: int, replay: bool) -> tuple[Sequence[bytes], bytes]:
    """Return the frames to send first, and the one to trace."""
    if (packet is None) == (pcap is None):
        raise UserError("give one packet: in hexadecimal, or with --pcap FILE and --index N")
    if packet is not None:
        try:
            return (), bytes.fromhex(packet.replace(":", " ").removeprefix("0x"))
        except ValueError:
            raise UserError("the packet is not hexadecimal: two digits for each byte, spaces as you like") from None
    assert pcap is not None
    frames = p4_setup.frames(pcap)
    if index > len(frames):
        raise UserError(f"{pcap} has {len(frames)} packets, no packet {index}")
    return frames[: index - 1] if replay else (), frames[index - 1]


def _of_target(target: str, device_id: int, folders: Sequence[Path]) -> tuple[p4_setup.Setup, Sequence[Any]]:
    """Return the program of a running switch, and what makes another switch hold the same."""
    from gradbed.switch.insight.p4runtime_state import read_switch

    snapshot = read_switch(target, device_id)
    for what in snapshot.unread:
        _note(f"the switch does not let its {what} be read: they are taken as empty")
    return p4_setup.of_config(snapshot.p4info, snapshot.device_config, folders, target), snapshot.updates


def _write(traced: TracedSwitch, setup: p4_setup.Setup, updates: Sequence[Any]) -> None:
    from gradbed.switch.insight.p4runtime_state import write_updates

    assert setup.pipeline is not None
    for what in write_updates(traced.device, setup.pipeline, updates, replace=True):
        _note(what)


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)
