"""gradbed p4: the commands about P4 programs; the longer ones have modules of their own."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from gradbed.cli import options
from gradbed.cli.p4 import coverage as p4_coverage
from gradbed.cli.p4 import run as p4_run
from gradbed.cli.p4 import stf
from gradbed.cli.p4 import trace as p4_trace
from gradbed.common.errors import UserError

app = typer.Typer(help="Work with P4 programs.", no_args_is_help=True)


@app.callback()
def p4() -> None:
    """Work with P4 programs."""


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


def plan(
    program: Annotated[Path, typer.Argument(help="A P4_16 program for v1model.")],
    entries: Annotated[list[Path] | None, typer.Argument(help="Files of entries (docs/entries.md).")] = None,
    topology: Annotated[
        str, typer.Option(help="Such as leaf-spine:2,2,2, or the path of a topology.json, p4app.json or network.py.")
    ] = "leaf-spine:2,2,2",
    switch: Annotated[str | None, typer.Option(help="Only this switch.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, which p4 trace and p4 coverage take.")] = False,
) -> int:
    """Show what entries put into the switches of a network; nothing runs. A mistake is one line with its place."""
    from gradbed.controller.entries.planner import EntriesPlanner, EntriesSettings
    from gradbed.controller.planning.plan import Plan
    from gradbed.controller.planning.routing import shortest_routes
    from gradbed.controller.planning.text import plan_text
    from gradbed.experiments.custom_program import custom_network
    from gradbed.topo.files import topology_file
    from gradbed.topo.registry import parse_topology

    network = parse_topology(topology)
    settings = custom_network(network, program, entries or [], file=topology_file(topology)).settings
    assert isinstance(settings, EntriesSettings)
    made = EntriesPlanner(settings).plan(network, shortest_routes(network))
    if switch is not None:
        made = Plan(switches={network.switch(switch).name: made[switch]})
    print(made.to_json() if as_json else plan_text(made))
    return 0


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


def shell(
    grpc_addr: Annotated[
        str, typer.Option("--grpc-addr", help="HOST:PORT or unix:PATH of the P4Runtime server.")
    ] = "127.0.0.1:9559",
    device_id: Annotated[int, typer.Option("--device-id", min=1, help="Device id at the server.")] = 1,
    election_id: Annotated[
        str, typer.Option("--election-id", help="HIGH,LOW; the controller with the highest one may write.")
    ] = "0,1",
    config: Annotated[
        str | None,
        typer.Option("--config", help="P4INFO,JSON: a program to push. Without it, the one that runs is used."),
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Install it, if it is not there, and do nothing else.")
    ] = False,
) -> int:
    """Talk to a switch in p4runtime-shell (installed on first use, in an environment of its own)."""
    from gradbed.switch.p4lang.p4runtime_shell import shell_arguments, shell_python

    arguments = shell_arguments(grpc_addr, device_id, election_id, config)
    python = str(shell_python())
    if not install:
        # The shell takes the place of this process, so that the terminal and its signals are the shell's.
        os.execv(python, [python, *arguments])
    print(f"p4runtime-shell is installed, and runs with {python}")
    return 0


def dissector(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file, such as gradbed.lua; default: standard output.")
    ] = None,
) -> int:
    """Write a Wireshark dissector (Lua) of all headers, for its plugin folder or wireshark -X lua_script:FILE."""
    from gradbed.formats.wireshark.script import script

    if output is None:
        sys.stdout.write(script())
        return 0
    try:
        output.write_text(script(), encoding="utf-8")
    except OSError as error:
        raise UserError(f"--output: cannot write {output}: {error.strerror}") from None
    print(f"wrote {output}; open captures with: wireshark -X lua_script:{output} FILE.pcapng")
    return 0


COMMANDS: Mapping[str, Callable[..., int]] = {
    "compile": compile_,
    "run": p4_run.run,
    "stf": stf.stf,
    "trace": p4_trace.trace,
    "coverage": p4_coverage.coverage,
    "plan": plan,
    "shims": shims,
    "shell": shell,
    "dissector": dissector,
}
"""In the order in which help lists them."""

for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
