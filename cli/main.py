"""The command line: its commands, and how errors are reported."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, NoReturn

import typer

from gradbed.cli import layers
from gradbed.cli.commands import Commands, Entry
from gradbed.cli.interrupts import raise_interrupts
from gradbed.common.errors import MissingPackages, ProcessLost, UserError, nobody_reads, out_of_reach, say, trouble
from gradbed.common.json_lines import own_program
from gradbed.common.modules import COMMAND, INSTALLED
from gradbed.common.version import VERSION

INVALID = r"^Invalid value for '([^']+)': "
"""How messages of typer begin; gradbed puts the option first."""

INTRODUCTION = """Packet-level runtime for the networks of distributed machine learning.

To begin with:

  ./gradbed demo                     train over switches that sum gradients, in simulated time: a table and a figure
  sudo ./gradbed demo --clock real   the same in Mininet, in real time
  ./gradbed demo ndn                 the demo of another system; ./gradbed demo --help lists them
  ./gradbed run ndn --peers 8        an experiment of your own; its options: ./gradbed run ndn --help
  ./gradbed p4 compile PROGRAM.p4    compile a P4_16 program to BMv2 JSON and P4Info; p4 trace follows a packet
  sudo ./gradbed up                  an interactive network with Mininet's prompt

All commands: ./gradbed --help. Completion by the TAB key: ./gradbed --install-completion
"""


class GradbedCommands(Commands):
    """The commands of `gradbed`."""

    entries = {  # noqa: RUF012
        "demo": Entry(
            "gradbed.cli.commands.demo:demo",
            "Show what a system does: a table, a figure, and what they mean.",
            ("run", "study"),
        ),
        "new": Entry(
            "gradbed.cli.commands.new:app", "Make a folder with a P4 program of your own that runs, or a trace."
        ),
        "exercise": Entry(
            "gradbed.cli.commands.exercise:app",
            "Tasks with starter code, hints and hidden checks.",
            of={"check": ("run", "study"), "grade": ("run", "study")},
        ),
        "run": Entry(
            "gradbed.cli.commands.run:app",
            "Run an experiment.",
            ("run",),
            # What more a system needs cli/commands/run.py asks it.
            of={"study": ("run", "study")},
        ),
        "up": Entry(
            "gradbed.cli.commands.up:up",
            "Bring up a network, and give Mininet's prompt.",
            ("run", "study"),
            network=True,
        ),
        "replay": Entry(
            "gradbed.cli.commands.replay:replay", "Show the recording of a run with --live again.", ("run",)
        ),
        "chaos": Entry("gradbed.cli.commands.chaos:chaos", "Let faults happen to a system.", ("run", "study")),
        "figures": Entry("gradbed.cli.commands.figures:figures", "Make the figures of a system.", ("run", "study")),
        "report": Entry(
            "gradbed.cli.commands.report:report", "Make the page of a run, or of a folder of runs.", ("run", "study")
        ),
        "systems": Entry(
            "gradbed.cli.commands.systems:show_systems", "List the systems, or where one has its parts."
        ),
        "topo": Entry("gradbed.cli.commands.topo:app", "Show a topology, or write it as a file.", ("run",)),
        "doctor": Entry(
            "gradbed.cli.commands.doctor:doctor", "Check what this machine has and lacks, and how to fix it."
        ),
        "calibrate": Entry(
            "gradbed.cli.commands.calibrate:calibrate",
            "Find how fast a network this machine carries.",
            ("run", "study"),
            network=True,
        ),
        "python": Entry("gradbed.cli.commands.python:app", "Run Python in which `import gradbed` works.", ("api",)),
        "docs": Entry(
            "gradbed.cli.commands.docs:docs",
            "Make the documents into a site to browse.",
            () if INSTALLED else ("docs",),
        ),
        "p4": Entry("gradbed.cli.p4.commands:app", "Work with P4 programs.", ("p4",), of={"plan": ("run",)}),
        "test": Entry(
            "gradbed.cli.commands.test:test",
            "Check style and types, and run the tests.",
            () if INSTALLED else ("test",),
            network=not INSTALLED,
            passes_on=True,
        ),
    }


app = typer.Typer(
    name="gradbed",
    cls=GradbedCommands,
    help="Packet-level runtime for the networks of distributed machine learning.",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def gradbed(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Say which version this is.", is_eager=True)] = False,
) -> None:
    """Packet-level testbed for the networks of distributed machine learning."""
    if version:
        print(f"gradbed {VERSION}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        lines = INTRODUCTION.replace("./gradbed", COMMAND).rstrip("\n").splitlines()
        # Commands stand in a column of their own; what they do goes on beside them.
        column = max(line.index(parted[1]) for line in lines if (parted := re.split(r"(?<=\S) {2,}", line))[1:])
        for line in lines:
            say(line, sys.stdout, hang=column - 2 if line.startswith("  ") else 0)


def main() -> NoReturn:
    """Run `gradbed` with the arguments of this process."""
    run_command_line(app, "gradbed", own_program("gradbed", *sys.argv[1:]))


def run_command_line(command: Callable[..., Any], name: str, again: Sequence[str]) -> NoReturn:
    """Run a command line with the arguments of this process, and report its errors in one line each.

    Exit status: 0 done, 1 a check failed, 2 the user can correct it, 3 a process of gradbed was lost, 130 Ctrl-C,
    141 the reader of the output has gone.

    Args:
        command: A typer.Typer or a command made of one.
        name: How people call it.
        again: The arguments of a process that does the same; it takes over once missing packages are installed.
    """
    try:
        raise_interrupts()
        status = command(prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        # Messages of two lines (an option, then what is wrong with it) are joined: one clear line.
        message = " ".join(getattr(error, "format_message", error.__str__)().split())
        if not message:
            sys.exit(0)  # a group without a command has explained itself
        message = re.sub(INVALID, r"\1: ", message).replace("Value error, ", "")
        sys.exit(_report(f"gradbed: {message} (see --help)"))
    except MissingPackages as error:
        if os.geteuid() != 0:
            sys.exit(_report(f"{error.prefix}{error}"))
        _again_with(partial(layers.install_debian, error.packages), again)
    except UserError as error:
        missing = error.__cause__.name if isinstance(error.__cause__, ModuleNotFoundError) else None
        if layer := layers.layer_to_install(missing):
            _again_with(partial(layers.need, [layer]), again)
        sys.exit(_report(f"{error.prefix}{error}"))
    except ProcessLost as error:
        sys.exit(_report(f"gradbed: {error}", error.status))
    except ModuleNotFoundError as error:
        # Some options need more than their command does (cli/layers.py).
        if (layer := layers.layer_to_install(error.name)) is None:
            raise
        _again_with(partial(layers.need, [layer]), again)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        if nobody_reads(error):
            _discard_output()
            sys.exit(128 + signal.SIGPIPE)
        known = trouble(error) or out_of_reach(error)
        if known is None:
            raise
        sys.exit(_report(f"{known.prefix}{known}"))
    sys.exit(status if isinstance(status, int) else 0)


def _again_with(install: Callable[[], None], again: Sequence[str]) -> NoReturn:
    """Install what was missing, then run the command from its beginning."""
    try:
        install()
    except UserError as problem:
        sys.exit(_report(f"{problem.prefix}{problem}"))
    os.execv(sys.executable, [*again])


def _report(message: str, status: int = 2) -> int:
    # A message about a file may quote it: no byte of it may control the terminal.
    shown = "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in message)
    with contextlib.suppress(OSError):
        say(shown, sys.stderr)
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    return status


def _discard_output() -> None:
    """Discard what Python would still write at its end to a closed pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
