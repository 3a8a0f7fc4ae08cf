"""The fabric process (python -m switch.fabric) as its parent sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from common.errors import UserError
from common.json_lines import JsonLinesProcess, own_program
from switch.engine.statistics import Direction
from switch.insight.fabric_recorder import Recording, read_recording
from topo.link import LinkModel

READY_TIMEOUT_S = 60.0
"""Covers a first build of the switch's runtime library by a slow C compiler."""

COMMAND_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 5.0
RECORDS_TIMEOUT_S = 60.0
"""They may be a gigabyte."""


def fabric_command(config: Path) -> list[str]:
    return own_program("switch.fabric", str(config))


class FabricProcess:
    """Starts with the object; `wait_ready` returns once it serves. Its standard error goes to the log file."""

    def __init__(self, command: Sequence[str], log: Path, keep_open: Sequence[int] = ()) -> None:
        self._process = JsonLinesProcess("fabric process", command, log, keep_open)
        self.grpc_ports: tuple[int, ...] = ()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> None:
        """UserError in the fabric's words if it cannot serve."""
        self.grpc_ports = tuple(self._process.expect("ready", READY_TIMEOUT_S)["grpc_ports"])

    def link_statistics(self) -> list[dict[str, Any]]:
        """One row per link direction: the fields of switch.engine.LinkStatistics."""
        rows: list[dict[str, Any]] = self._ask("link_statistics", COMMAND_TIMEOUT_S)["rows"]
        return rows

    def statistics(self) -> dict[str, Any]:
        """engine, devices and interfaces: the fields of the classes of switch.engine.statistics."""
        return self._ask("statistics", COMMAND_TIMEOUT_S)

    def quiesce(self, timeout_s: float) -> bool:
        """Wait until no packet is queued or in flight; False if some still are after `timeout_s`."""
        return bool(self._ask("quiesce", timeout_s + COMMAND_TIMEOUT_S, timeout_s=timeout_s)["idle"])

    def start_capture(self, file: Path, ports: Sequence[tuple[int, int, str]]) -> None:
        """Write what passes ports, each (device id, port, "in" or "out"), to a pcap file, until the process ends."""
        self._ask("start_capture", COMMAND_TIMEOUT_S, file=str(file), ports=[list(port) for port in ports])

    def restart_switch(self, device_id: int) -> None:
        """Let a switch lose all that it holds, and its controllers their streams."""
        self._ask("restart_switch", COMMAND_TIMEOUT_S, device_id=device_id)

    def set_link(
        self, device_id: int, port: int, model: LinkModel, directions: Sequence[Direction] = ("in", "out")
    ) -> None:
        """Change the model of a port's directions; see switch.engine.Engine.set_link."""
        self._ask(
            "set_link",
            COMMAND_TIMEOUT_S,
            device_id=device_id,
            port=port,
            link=asdict(model),
            directions=list(directions),
        )

    def set_link_up(self, device_id: int, port: int, up: bool) -> None:
        """Cut the link at a port, or mend it."""
        self._ask("set_link_up", COMMAND_TIMEOUT_S, device_id=device_id, port=port, up=up)

    def records(self, file: Path) -> Recording:
        """What programs did since the last call; the file is for the way. UserError if it was too much to keep."""
        told = self._ask("records", RECORDS_TIMEOUT_S, file=str(file))
        if told.get("lost"):
            raise UserError(
                "more happened in the switches than can be recorded: send fewer packets, or for less time"
            )
        recording = read_recording(file, told)
        file.unlink()
        return recording

    def stop(self) -> None:
        """End it, and kill it if it does not end. May be called again."""
        self._process.stop(STOP_TIMEOUT_S)

    def _ask(self, command: str, wait_s: float, **arguments: Any) -> dict[str, Any]:
        self._process.send(command, **arguments)
        return self._process.expect(command, wait_s)
