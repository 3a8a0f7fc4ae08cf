"""simple_switch and simple_switch_grpc as commands: from arguments to exit status."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

from gradbed.common.errors import UserError
from gradbed.common.signals import wakeups
from gradbed.switch.simple_switch.logs import start_logging
from gradbed.switch.simple_switch.options import Answered, SwitchOptions, read_options

_FAILED = 1
_PR_SET_NAME = 15


def simple_switch(arguments: Sequence[str]) -> int:
    """Runs until SIGTERM or SIGINT. Exit status 0 then, 1 if it cannot start, as BMv2's."""
    return _main("simple_switch", arguments)


def simple_switch_grpc(arguments: Sequence[str]) -> int:
    """As simple_switch."""
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
