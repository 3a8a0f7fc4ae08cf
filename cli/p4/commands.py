"""gradbed p4: P4 programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gradbed.cli import options
from gradbed.cli.p4 import coverage as p4_coverage
from gradbed.cli.p4 import dissector as p4_dissector
from gradbed.cli.p4 import plan as p4_plan
from gradbed.cli.p4 import record as p4_record
from gradbed.cli.p4 import run as p4_run
from gradbed.cli.p4 import shell as p4_shell
from gradbed.cli.p4 import stf
from gradbed.cli.p4 import trace as p4_trace
from gradbed.common.errors import UserError

app = typer.Typer(help="Work with P4 programs.", no_args_is_help=True)
app.command("run")(p4_run.run)
app.command("stf")(stf.stf)
app.command("record")(p4_record.record)
app.command("plan")(p4_plan.plan)
app.command("trace")(p4_trace.trace)
app.command("coverage")(p4_coverage.coverage)
app.command("shell")(p4_shell.shell)
app.command("dissector")(p4_dissector.dissector)


@app.callback()
def p4() -> None:
    """Work with P4 programs."""


@app.command("compile")
def compile_(
    source: Annotated[Path, typer.Argument(help="A P4_16 program for v1model.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="BMv2 JSON; default: SOURCE with .json.")
    ] = None,
    p4info: Annotated[Path | None, typer.Option(help="P4Info as text; default: OUTPUT with .p4info.txt.")] = None,
    include: options.Include = None,
    define: options.Define = None,
    no_warning: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Leave out these warnings: unused, mismatch, ... or all.")
    ] = None,
) -> int:
    """Compile a program to BMv2 JSON and P4Info."""
    from gradbed.switch.compiler import compile_p4
    from gradbed.switch.compiler.analysis import CATEGORIES

    if not source.is_file():
        raise UserError(f"no such P4 program: {source}")
    left_out = set(no_warning or ())
    unknown = left_out - CATEGORIES.keys() - {"all"}
    if unknown:
        raise UserError(f"no warning is called '{min(unknown)}'; there are: all, {', '.join(CATEGORIES)}")
    compiled = compile_p4(
        source,
        include_dirs=include or [],
        defines=options.macros(define),
        without_warnings=CATEGORIES if "all" in left_out else left_out,
    )
    for warning in compiled.warnings:
        print(warning, file=sys.stderr)
    output = output or Path(source.with_suffix(".json").name)
    texts = {output: compiled.json_text}
    if p4info is not None or output.is_file() or not output.exists():  # beside a device (/dev/null) is no place
        texts[p4info or output.with_suffix(".p4info.txt")] = compiled.p4info_text
    for path, text in texts.items():
        try:
            path.write_text(text)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None
    print(*texts, sep="\n")
    return 0


@app.command("shims")
def shims(
    folder: Annotated[Path, typer.Argument(help="Where to write them; put it first in PATH.")],
    bmv2_arbitration: Annotated[
        bool,
        typer.Option("--bmv2-arbitration", help="Switches elect controllers as BMv2 does, not as P4Runtime says."),
    ] = False,
) -> int:
    """Write stand-ins for p4c, p4c-bm2-ss, simple_switch, simple_switch_grpc and simple_switch_CLI."""
    from gradbed.switch.runtime.library import build_runtime
    from gradbed.switch.shims import write_shims

    for path in write_shims(folder, bmv2_arbitration):
        print(path)
    # Tool chains wait some seconds for a switch: the first one must not spend them on the C compiler.
    build_runtime()
    print(f'To use them: export PATH="{folder.resolve()}:$PATH"')
    return 0
