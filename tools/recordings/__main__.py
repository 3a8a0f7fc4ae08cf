"""python -m tools.recordings PROGRAM: record what p4c and BMv2 make of a program, to be replayed elsewhere.

Run it at the top of a checkout of gradbed, with the Python of its environment (docs/conformance.md).
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gradbed.cli import options
from gradbed.cli.commands import Entry, provide
from gradbed.cli.main import run_command_line
from gradbed.common.errors import UserError

if TYPE_CHECKING:
    from tools.recordings import Recording
    from tools.recordings.record import RecordedCompiler, SwitchToRecord

NAME = "python -m tools.recordings"
NEEDS = Entry(place="", help="", layers=("p4",))
ALL_BITS = (1 << 64) - 1

app = typer.Typer(add_completion=False)


@app.command()
def record(
    program: Annotated[Path, typer.Argument(help="A P4_16 program for v1model.")],
    frames: Annotated[int, typer.Option(callback=options.within(1), help="Number of random frames.")] = 400,
    seed: Annotated[int, typer.Option(help="Random seed of entries and frames.")] = 1,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Default: NAME.SEED.json.gz of the program's name.")
    ] = None,
    define: options.Define = None,
    like: Annotated[
        Path | None, typer.Option(help="Take macros, entries and frames of this recording; none are random then.")
    ] = None,
    time: Annotated[
        list[str] | None, typer.Option(metavar="REGISTER", help="A register that holds times: it is left out.")
    ] = None,
    compiler: Annotated[Literal["gradbed", "p4c"], typer.Option(help="Compiles the program.")] = "p4c",
    switch: Annotated[Literal["gradbed", "bmv2"], typer.Option(help="Runs it; bmv2 needs root.")] = "bmv2",
) -> int:
    """Record what p4c and BMv2 make of a program: frames in and out, and the registers and counters at the end."""
    from gradbed.common.sandbox import run_in_sandbox
    from gradbed.switch.p4lang.bmv2 import find_simple_switch_grpc, require_simple_switch
    from tools.recordings import read_recording

    if not program.is_file():
        raise UserError(f"no such P4 program: {program}")
    other = read_recording(like) if like is not None else None
    defines = dict(other.defines) if other is not None else options.macros(define)
    times = other.times if other is not None else dict.fromkeys(time or (), ALL_BITS)
    seed = other.seed if other is not None else seed
    output = output or Path(f"{program.stem}.{seed}.json.gz")
    compiled_by = _compiler(compiler)

    def run(switch: SwitchToRecord) -> int:
        from tools.recordings import write_recording
        from tools.recordings.record import record

        made = record(program, defines, compiled_by, switch, frames=frames, seed=seed, times=times, like=other)
        write_recording(made, output)
        _report(made, output)
        return 0

    if switch == "gradbed":
        return _on_own_switch(run)
    find_simple_switch_grpc()
    require_simple_switch()
    return run_in_sandbox(partial(_on_bmv2, run), NAME)


def _compiler(name: str) -> RecordedCompiler:
    from tools.recordings.record import RecordedCompiler

    if name == "gradbed":
        return RecordedCompiler("gradbed", _compile)
    from gradbed.switch.p4lang.p4c import require_p4c, version

    p4c = require_p4c()
    number = version(p4c).partition("Version ")[2].strip() or "of an unknown version"
    return RecordedCompiler(f"p4c {number}", partial(_compile_with_p4c, p4c))


def _compile(program: Path, defines: Mapping[str, str]) -> tuple[dict[str, Any], Any]:
    from gradbed.switch.compiler import compile_p4

    compiled = compile_p4(program, defines=defines)
    return compiled.json, compiled.p4info


def _compile_with_p4c(p4c: str, program: Path, defines: Mapping[str, str]) -> tuple[dict[str, Any], Any]:
    from finsy.proto import p4i
    from google.protobuf import text_format

    from gradbed.switch.p4lang.p4c import compile_with_p4c

    with tempfile.TemporaryDirectory() as folder:
        bmv2_json, p4info = Path(folder, "program.json"), Path(folder, "program.p4info.txt")
        compile_with_p4c(p4c, program, defines, bmv2_json, p4info)
        return json.loads(bmv2_json.read_text()), text_format.Parse(p4info.read_text(), p4i.P4Info())


def _on_own_switch(run: Any) -> int:
    from tools.recordings.random_inputs import PORTS
    from tools.recordings.replay import OwnSwitch

    with OwnSwitch(PORTS) as switch:
        status: int = run(switch)
    return status


def _on_bmv2(run: Any) -> int:
    from tools.recordings.bmv2_alone import Bmv2Alone
    from tools.recordings.random_inputs import PORTS

    with tempfile.TemporaryDirectory() as folder, Bmv2Alone(PORTS, Path(folder)) as switch:
        status: int = run(switch)
    return status


def _report(made: Recording, output: Path) -> None:
    answered = sum(bool(each.out) for each in made.frames)
    cells = sum(map(len, made.state.values()))
    print(
        f"{output}: {len(made.frames)} frames, {answered} with packets out; {len(made.inserted)} entries; "
        f"{cells} cells of registers and counters; {made.compiler} on {made.switch}"
    )


def command() -> Any:
    """Return the command, with what it needs installed first."""
    made = typer.main.get_command(app)
    provide(made, NEEDS)
    return made


if __name__ == "__main__":
    run_command_line(command(), NAME, [sys.executable, "-m", "tools.recordings", *sys.argv[1:]])
