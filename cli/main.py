"""The command line as a whole: its commands, and how errors reach the person."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

import typer

from cli import bench, calibrate, demo, figures, p4, run, test, up
from switch.errors import UserError, nobody_reads, trouble

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
    """Run the command line.

    Exit status: 0 done, 1 a check failed, 2 the user can put it right, 130 Ctrl-C, 141 nobody reads the output.
    """
    try:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status = app(prog_name="gradbed", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        # Messages of two lines (an option, then what is wrong with it) are joined: one clear line.
        message = getattr(error, "format_message", error.__str__)()
        sys.exit(_complain(f"gradbed: {' '.join(message.split())} (see --help)"))
    except UserError as error:
        sys.exit(_complain(f"{error.prefix}{error}"))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(128 + signal.SIGINT)
    except Exception as error:
        if isinstance(error, BrokenPipeError) and nobody_reads():
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python still wants to write at its end
            sys.exit(128 + signal.SIGPIPE)
        known = trouble(error)
        if known is None:
            raise
        sys.exit(_complain(f"{known.prefix}{known}"))
    sys.exit(status if isinstance(status, int) else 0)


def _complain(message: str) -> int:
    print(message, file=sys.stderr)
    return 2
