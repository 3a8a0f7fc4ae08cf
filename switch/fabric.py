"""A whole fabric in one process: P4 switches, their links, one P4Runtime server. Run as a child process.

`python -m switch.fabric CONFIG.json` (fabric_config.py) talks JSON lines. On standard output it says
{"event": "ready", "grpc_ports": [...]} once it serves; then it answers commands from standard input, each with an
event of the command's name:

- link_statistics: "rows", the fields of LinkStatistics for each direction
- statistics: "engine", "devices", "interfaces", the fields of the other classes of engine/statistics.py
- quiesce (timeout_s): "idle", whether no packet is queued or in flight any more
- set_link (device_id, port, link[, directions]): change the model of a port's directions, ["in", "out"] by default
- set_link_up (device_id, port, up): cut the link at a port, or mend it; the ports at both its ends go down or up
- restart_switch (device_id): program, tables, registers and P4Runtime streams are gone, as when its power failed
- start_capture (file, ports): write what passes ports, each [device id, port, "in" or "out"], to a pcap file
- stop_capture (file): "packets", how many it holds
- records (file): what programs did since the last one goes to a file, where that is kept, with what it takes to read
  it (insight/fabric_recorder.py); "lost", if it was too much
- stop: none, it ends with status 0; so does the end of standard input

A line that is no command is answered with {"event": "error", "message": ...}. What is wrong with the configuration is
one line on standard error, with status 2. The process dies with the thread that started it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from common.errors import UserError
from common.parent_death import die_with_parent
from switch.codegen import build_program
from switch.engine import Capture, Engine, EngineDevice
from switch.fabric_config import (
    CaptureConfig,
    FabricConfig,
    ForeignEnd,
    Records,
    RestartSwitch,
    SetLink,
    SetLinkUp,
    StartCapture,
    StopCapture,
    WireConfig,
    first_mistake,
    read_fabric_config,
)
from switch.insight.fabric_recorder import FabricRecorder
from switch.insight.instrumented import build_instrumented
from switch.insight.recorder import Level

if TYPE_CHECKING:
    from switch.server import P4RuntimeServer

_SWITCH_INTERVAL_S = 0.0005
_USER_ERROR_STATUS = 2


def add_switches(engine: Engine, config: FabricConfig) -> dict[int, EngineDevice]:
    """The configuration's P4 switches by device id."""
    return {
        switch.device_id: engine.add_switch(
            switch.device_id,
            switch.name,
            switch.cpu_port,
            drop_port=switch.drop_port,
            priorities=switch.priorities,
            seed=switch.seed,
        )
        for switch in config.switches
    }


class Fabric:
    """Switches, ports and links of a configuration; a context manager that runs them."""

    def __init__(self, config: FabricConfig) -> None:
        """Raises UserError for what cannot be built, such as an interface that does not exist."""
        self.server: P4RuntimeServer | None = None
        self.engine = Engine()
        try:
            self.devices = add_switches(self.engine, config)
            for port in config.interfaces:
                self.engine.add_interface(port.device_id, port.port, port.interface, port.link, port.seed)
            for link in config.links:
                self.engine.add_link(link.a, link.b, link.link, link.seed)
            for foreign in config.foreign_switches:
                self.engine.add_switch(foreign.device_id, foreign.name, cpu_port=None)
            for wire in config.wires:
                self._add_wire(wire)
            self._captures = {capture.file: self._capture(capture) for capture in config.captures}
            self.recorder = (
                FabricRecorder(self.engine, self.devices, Level[config.record.upper()]) if config.record else None
            )
        except BaseException:
            self.engine.close()
            raise

    def _add_wire(self, wire: WireConfig) -> None:
        a, b = wire.a, wire.b
        far = (b.device_id, b.port, b.interface) if isinstance(b, ForeignEnd) else (None, None, b.interface)
        self.engine.add_wire((a.device_id, a.port, a.interface), far, wire.link, wire.seed)

    def restart_device(self, device_id: int) -> None:
        """Let a switch lose its program and all state, and its controllers, where it is served, their streams."""
        if self.recorder is not None:
            self.recorder.before_restart()
        if self.server is None:
            self.devices[device_id].restart()
        else:
            self.server.restart_device(device_id)

    def __enter__(self) -> Fabric:
        self.engine.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.engine.close()
        if self.recorder is not None:
            self.recorder.close()

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """The event that answers a command. Raises ValueError for one that does not exist."""
        name = command.get("command")
        if name == "link_statistics":
            return {"event": name, "rows": [dataclasses.asdict(row) for row in self.engine.link_statistics()]}
        if name == "statistics":
            return {"event": name, **self._statistics()}
        if name == "quiesce":
            timeout_s = command.get("timeout_s", 1.0)
            if not isinstance(timeout_s, (int, float)):
                raise ValueError(f"timeout_s is a number of seconds, not {timeout_s!r}")
            return {"event": name, "idle": self.engine.quiesce(timeout_s)}
        if name == "set_link":
            change = SetLink.model_validate(command)
            self.engine.set_link(change.device_id, change.port, change.link, change.directions)
            return {"event": name}
        if name == "set_link_up":
            cut = SetLinkUp.model_validate(command)
            self.engine.set_link_up(cut.device_id, cut.port, cut.up)
            return {"event": name}
        if name == "restart_switch":
            restart = RestartSwitch.model_validate(command)
            if restart.device_id not in self.devices:
                raise ValueError(f"there is no P4 switch with device id {restart.device_id}")
            self.restart_device(restart.device_id)
            return {"event": name}
        if name == "start_capture":
            wanted = StartCapture.model_validate(command)
            if wanted.file in self._captures:
                raise ValueError(f"{wanted.file} is being written already")
            self._captures[wanted.file] = self._capture(wanted)
            return {"event": name}
        if name == "stop_capture":
            capture = self._captures.pop(StopCapture.model_validate(command).file, None)
            if capture is None:
                raise ValueError("there is no capture to that file")
            return {"event": name, "packets": capture.close()}
        if name == "records":
            if self.recorder is None:
                raise ValueError("nothing is recorded: the configuration does not say so")
            try:
                return {"event": name, **self.recorder.write(Records.model_validate(command).file)}
            except MemoryError:
                return {"event": name, "lost": True}
        raise ValueError(f"there is no command {name!r}")

    def _capture(self, wanted: CaptureConfig) -> Capture:
        return self.engine.capture(wanted.file, wanted.ports)

    def _statistics(self) -> dict[str, Any]:
        return {
            "engine": dataclasses.asdict(self.engine.statistics()),
            "devices": [
                {"device_id": device_id, **dataclasses.asdict(device.statistics())}
                for device_id, device in self.devices.items()
            ],
            "interfaces": [dataclasses.asdict(row) for row in self.engine.interface_statistics()],
        }


def serve_commands(fabric: Fabric, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The events that answer a stream of commands, up to "stop" or the end."""
    for line in lines:
        try:
            command = json.loads(line)
            if not isinstance(command, dict):
                raise ValueError("a command is a JSON object")
            if command.get("command") == "stop":
                return
            yield fabric.answer(command)
        except ValidationError as error:
            yield {"event": "error", "message": first_mistake(error)}
        except (ValueError, UserError) as error:
            yield {"event": "error", "message": str(error)}


def run(config: FabricConfig, commands: Iterable[str], write: Any) -> None:
    """Run the fabric until the commands end. `write` takes each event."""
    # gRPC takes a while to import: not for those who only want the classes above.
    from switch.server import P4RuntimeServer

    build = build_program if config.record is None else build_instrumented
    with Fabric(config) as fabric:
        fabric.server = server = P4RuntimeServer(
            fabric.devices, config.grpc_addresses, build=build, outside=config.outside
        )
        server.start()
        try:
            write({"event": "ready", "grpc_ports": server.ports})
            for event in serve_commands(fabric, commands):
                write(event)
        finally:
            server.stop()


@contextmanager
def event_stream() -> Iterator[Any]:
    """A function that writes events to standard output, which nothing else gets at meanwhile."""
    with os.fdopen(os.dup(1), "w", buffering=1) as stream:
        os.dup2(2, 1)
        yield lambda event: print(json.dumps(event), file=stream)


def main(arguments: Sequence[str]) -> int:
    die_with_parent()
    # A thread that changes a switch's state keeps packets waiting while it waits for the interpreter.
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    if len(arguments) != 1:
        print("usage: python -m switch.fabric CONFIG.json", file=sys.stderr)
        return _USER_ERROR_STATUS
    try:
        config = read_fabric_config(Path(arguments[0]))
        with event_stream() as write:
            run(config, sys.stdin, write)
    except UserError as error:
        print(error, file=sys.stderr)
        return _USER_ERROR_STATUS
    except (KeyboardInterrupt, BrokenPipeError):
        # Ended from the terminal, or nobody listens any more.
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
