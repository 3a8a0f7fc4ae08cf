"""The fabric process (python -m gradbed.switch.fabric) as its parent sees it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from gradbed.common.json_lines import JsonLinesProcess, own_program
from gradbed.switch.fabric_commands import Answer, Command

READY_TIMEOUT_S = 60.0
"""Covers a first build of the switch's runtime library by a slow C compiler."""

STOP_TIMEOUT_S = 5.0


def fabric_command(config: Path | str) -> list[str]:
    """config: "-" for one that is told later."""
    return own_program("gradbed.switch.fabric", str(config))


class FabricProcess:
    """Starts with the object; `wait_ready` returns once it serves. Its standard error goes to the log file."""

    def __init__(self, command: Sequence[str], log: Path, keep_open: Sequence[int] = ()) -> None:
        self._process = JsonLinesProcess("fabric process", command, log, keep_open)
        self._asking = threading.Lock()
        self.grpc_ports: tuple[int, ...] = ()

    @property
    def pid(self) -> int:
        return self._process.pid

    def configure(self, config: Path) -> None:
        """For the command with "-"."""
        self._process.send("configure", file=str(config))

    def wait_ready(self) -> None:
        """UserError in the fabric's words if it cannot serve."""
        self.grpc_ports = tuple(self._process.expect("ready", READY_TIMEOUT_S)["grpc_ports"])

    def ask(self, command: Command) -> Answer:
        """Let the fabric do it; from any thread. ProcessLost if it does not answer."""
        with self._asking:
            self._process.send(**command.model_dump(mode="json"))
            return self._process.expect(command.command, command.wait_s)

    def check(self) -> None:
        """ProcessLost if it has ended."""
        self._process.check()

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End it, and kill it if it does not end in time. May be called again."""
        self._process.stop(timeout_s)
