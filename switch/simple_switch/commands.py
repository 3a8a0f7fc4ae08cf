"""simple_switch and simple_switch_grpc as commands: from arguments to exit status, with log lines in BMv2's form."""

from __future__ import annotations

import ctypes
import logging
import logging.handlers
import os
import signal
import sys
from collections.abc import Sequence

from gradbed.common.errors import UserError
from gradbed.common.signals import wakeups
from gradbed.switch.simple_switch.options import Answered, SwitchOptions, read_options

# ---- Log lines in the form of BMv2's, to standard output or files ----


_LETTERS = {logging.DEBUG: "D", logging.INFO: "I", logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "C"}


class _Form(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("[%(asctime)s.%(msecs)03d] [bmv2] [%(letter)s] [thread %(thread)d] %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        record.letter = _LETTERS.get(record.levelno, "I")
        return super().format(record)


def start_logging(options: SwitchOptions) -> None:
    """Send the log lines of this package where the command line wants them."""
    logger = logging.getLogger("gradbed.switch")
    logger.propagate = False
    handler: logging.Handler = logging.NullHandler()
    level = logging.CRITICAL + 1
    if options.log_console or options.log_file:
        level = options.log_level
    if options.log_console:
        handler = logging.StreamHandler(sys.stdout)
    elif options.log_file:
        try:
            handler = logging.handlers.RotatingFileHandler(
                options.log_file, maxBytes=options.log_file_bytes, backupCount=options.log_files_kept
            )
        except OSError as error:
            raise UserError(f"cannot write the log {options.log_file}: {error.strerror}") from None
    handler.setFormatter(_Form())
    logger.addHandler(handler)
    logger.setLevel(level)


# ---- The commands ----


_FAILED = 1
_PR_SET_NAME = 15


def simple_switch(arguments: Sequence[str]) -> int:
    """Run until SIGTERM or SIGINT; return exit status 0 then, 1 if it cannot start, as BMv2 does."""
    return _main("simple_switch", arguments)


def simple_switch_grpc(arguments: Sequence[str]) -> int:
    """Run as simple_switch does, under the name of the other command."""
    return _main("simple_switch_grpc", arguments)


def _main(command: str, arguments: Sequence[str]) -> int:
    # For `killall` and the like, also when a shell started the interpreter.
    ctypes.CDLL(None).prctl(_PR_SET_NAME, command.encode())
    with wakeups({signal.SIGTERM, signal.SIGINT}) as woken:
        try:
            options = read_options(command, arguments)
            for note in options.notes:
                print(f"{command}: {note}", file=sys.stderr)
            return _run(options, woken)
        except Answered as answer:
            print(answer)
            return 0
        except UserError as error:
            print(f"{command}: {error}", file=sys.stderr)
            return _FAILED


def _run(options: SwitchOptions, woken: int) -> int:
    start_logging(options)
    # gRPC takes a while to import: not for those who only ask for help.
    from gradbed.switch.interpreter import prepare_interpreter
    from gradbed.switch.simple_switch.running import RunningSwitch

    prepare_interpreter()
    with RunningSwitch(options) as running:
        for address in running.addresses:
            print(f"Server listening on {address}", flush=True)
        os.read(woken, 1)
    return 0
