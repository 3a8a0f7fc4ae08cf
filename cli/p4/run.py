"""gradbed p4 run: send frames through a program and print what leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradbed.cli import options
from gradbed.cli.p4 import setup as p4_setup
from gradbed.common.errors import UserError

if TYPE_CHECKING:
    from gradbed.switch.stf.statements import Script, StfStatement

Outputs = Sequence[tuple[int, bytes]]


def run(
    program: Annotated[Path, typer.Argument(help="A P4_16 program for v1model.")],
    frames: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FRAME ...]", help="Frames in hexadecimal; PORT:FRAME for another port."),
    ] = None,
    port: Annotated[int, typer.Option(callback=options.within(0, 510), help="Ingress port of the frames.")] = 0,
    pcap: p4_setup.Pcap = None,
    entries: Annotated[
        list[Path] | None,
        typer.Option("--entries", "-e", help="Initial state: a file of STF commands (add, ...); repeatable."),
    ] = None,
    reference: Annotated[
        bool,
        typer.Option("--reference", help="Interpret the source as the specification says, instead of compiling it."),
    ] = False,
    include: options.Include = None,
    define: options.Define = None,
) -> int:
    """Send frames through a program and print what leaves, by which port; --reference: without our compiler."""
    from gradbed.switch.stf import parse_stf
    from gradbed.switch.stf.statements import Expect, NoPacket, Packet

    if not program.is_file():
        raise UserError(f"no such P4 program: {program}")
    sent = [_frame(text, port) for text in frames or []]
    if pcap is not None:
        sent += [(port, frame) for frame in p4_setup.frames(pcap)]
    if not sent:
        raise UserError("give frames: in hexadecimal, or with --pcap FILE")
    scripts: list[Script] = []
    for path in entries or []:
        script = parse_stf(p4_setup.read_text(path), path)
        if any(isinstance(statement, Packet | Expect | NoPacket) for statement in script.statements):
            raise UserError(f"{path} has packets: gradbed p4 stf runs such files")
        scripts.append(script)
    outcomes = (_on_reference if reference else _on_our_switch)(program, sent, scripts, include, define)
    for number, ((came_by, frame), outputs) in enumerate(zip(sent, outcomes, strict=True), 1):
        print(f"packet {number}, in by port {came_by}: {frame.hex()}")
        for to, left in outputs:
            print(f"  out by port {to}: {left.hex()}")
        if not outputs:
            print("  nothing leaves")
    return 0


def _frame(text: str, port: int) -> tuple[int, bytes]:
    before, colon, after = text.partition(":")
    if colon and before.isdigit() and len(before) < 4 and int(before) <= 510 and ":" not in after:
        port, text = int(before), after
    try:
        frame = bytes.fromhex(text.replace(":", " ").removeprefix("0x"))
    except ValueError:
        raise UserError(f"'{text[:40]}' is not hexadecimal: two digits for each byte") from None
    if not frame:
        raise UserError("a frame has no bytes")
    return port, frame


def _on_reference(
    program: Path,
    sent: Sequence[tuple[int, bytes]],
    scripts: Sequence[Script],
    include: list[Path] | None,
    define: list[str] | None,
) -> list[Outputs]:
    from gradbed.switch.reference import ReferenceSwitch
    from gradbed.switch.reference.stf import ReferenceTarget

    switch = ReferenceSwitch(program, include or (), defines=options.macros(define))
    _apply(ReferenceTarget(switch).apply, scripts)
    return [switch.process(port, frame) for port, frame in sent]


def _on_our_switch(
    program: Path,
    sent: Sequence[tuple[int, bytes]],
    scripts: Sequence[Script],
    include: list[Path] | None,
    define: list[str] | None,
) -> list[Outputs]:
    from gradbed.switch.codegen import build_program
    from gradbed.switch.compiler import compile_p4
    from gradbed.switch.stf.engine_target import EngineTarget
    from gradbed.switch.stf.names import NoFit
    from gradbed.switch.stf.statements import Packet
    from gradbed.switch.stf.target import CheckFailed

    built = build_program(compile_p4(program, include_dirs=include or [], defines=options.macros(define)).json)
    outcomes: list[Outputs] = []
    with EngineTarget(built, frozenset(port for port, _ in sent)) as target:
        try:
            _apply(target.apply, scripts)
            for port, frame in sent:
                target.send(Packet(0, port, frame))
                outcomes.append(target.drain())
        except (NoFit, CheckFailed) as error:
            raise UserError(str(error)) from None
    return outcomes


def _apply(apply: Callable[[StfStatement], None], scripts: Sequence[Script]) -> None:
    for script in scripts:
        for statement in script.statements:
            apply(statement)
