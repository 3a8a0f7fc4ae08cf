"""The command line as a whole: its commands, and how errors reach the person."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer

from cli import bench, calibrate, demo, figures, p4, run, test, up
from switch.errors import UserError

app = typer.Typer(
    name="gradbed",
    help="Packet-level testbed for the networks of distributed machine learning.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.add_typer(run.app, name="run")
app.command("up")(up.up)
app.command("calibrate")(calibrate.calibrate)
app.add_typer(figures.app, name="figures")
app.add_typer(p4.app, name="p4")
app.add_typer(bench.app, name="bench")
app.command("test", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(test.test)


def main() -> NoReturn:
    """Run the command line. Exit status: 0 done, 1 a check failed, 2 the user can put it right, 130 Ctrl-C."""
    try:
        status = app(prog_name="gradbed", standalone_mode=False)
    except typer.TyperException as error:
        # Messages of two lines (an option, then what is wrong with it) are joined: one clear line.
        message = getattr(error, "format_message", error.__str__)()
        sys.exit(_complain(f"gradbed: {' '.join(message.split())} (see --help)"))
    except UserError as error:
        sys.exit(_complain(f"{error.prefix}{error}"))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)


def _complain(message: str) -> int:
    print(message, file=sys.stderr)
    return 2
