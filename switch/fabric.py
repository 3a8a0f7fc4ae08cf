"""A whole fabric in one process: P4 switches, their links, one P4Runtime server. Run as a child process.

`python -m gradbed.switch.fabric CONFIG.json` (fabric_config.py) talks JSON lines. With "-" for the file it loads its
modules, and waits for {"command": "configure", "file": "CONFIG.json"} on standard input. On standard output it says
{"event": "ready", "grpc_ports": [...]} once it serves; then it answers commands from standard input, each with an
event of the command's name (fabric_commands.py has them all), until `stop` or the end of standard input: then it ends
with status 0.

A line that is no command is answered with {"event": "error", "message": ...}, and "is_users" if people can put that
right. What is wrong with the configuration is
one line on standard error, with status 2. The process dies with the thread that started it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from gradbed.common.errors import UserError
from gradbed.common.json_lines import told_file
from gradbed.common.signals import die_with_parent
from gradbed.switch.codegen import build_program
from gradbed.switch.engine import Engine
from gradbed.switch.engine_fabric import EngineFabric
from gradbed.switch.fabric_commands import COMMANDS
from gradbed.switch.fabric_config import FabricConfig, ForeignEnd, InterfaceConfig, first_mistake, read_fabric_config
from gradbed.switch.insight.recorder import build_instrumented
from gradbed.switch.interpreter import prepare_interpreter

if TYPE_CHECKING:
    from gradbed.switch.server import P4RuntimeServer

_USER_ERROR_STATUS = 2


class Fabric(EngineFabric):
    """On the machine's clock, its ports interfaces of this network namespace; a context manager that runs it."""

    def __init__(self, config: FabricConfig) -> None:
        super().__init__(config, Engine())
        self.server: P4RuntimeServer | None = None

    def _add_port(self, port: InterfaceConfig) -> None:
        self.engine.add_interface(port.device_id, port.port, port.interface, port.link, port.seed)

    def _add_foreign_switches(self, config: FabricConfig) -> None:
        for foreign in config.foreign_switches:
            self.engine.add_switch(foreign.device_id, foreign.name, cpu_port=None)
        for wire in config.wires:
            a, b = wire.a, wire.b
            far = (b.device_id, b.port, b.interface) if isinstance(b, ForeignEnd) else (None, None, b.interface)
            self.engine.add_wire((a.device_id, a.port, a.interface), far, wire.link, wire.seed)

    def _restart(self, device_id: int) -> None:
        """Its controllers, where it is served, lose their streams, too."""
        if self.server is None:
            self.devices[device_id].restart()
        else:
            self.server.restart_device(device_id)

    def __enter__(self) -> Fabric:
        self.engine.start()
        return self


def serve_commands(fabric: EngineFabric, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The events that answer a stream of commands, up to "stop" or the end."""
    for line in lines:
        try:
            asked = json.loads(line)
            if not isinstance(asked, dict):
                raise ValueError("a command is a JSON object")
            name = asked.get("command")
            if name == "stop":
                return
            if name not in COMMANDS:
                raise ValueError(f"there is no command {name!r}")
            answer = COMMANDS[name].model_validate(asked).run(fabric)
            yield {"event": name, **(answer or {})}
        except ValidationError as error:
            yield {"event": "error", "message": first_mistake(error)}
        except ValueError as error:
            yield {"event": "error", "message": str(error)}
        except UserError as error:
            yield {"event": "error", "message": str(error), "is_users": True}


def run(config: FabricConfig, commands: Iterable[str], write: Any) -> None:
    """Run the fabric until the commands end. `write` takes each event."""
    # gRPC takes a while to import: not for those who only want the classes above.
    from gradbed.switch.server import P4RuntimeServer

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
    prepare_interpreter()
    if len(arguments) != 1:
        print("usage: python -m gradbed.switch.fabric CONFIG.json (or -)", file=sys.stderr)
        return _USER_ERROR_STATUS
    try:
        if arguments[0] == "-":
            from gradbed.switch.server import P4RuntimeServer  # noqa: F401  # before there is a network to be served
        config = read_fabric_config(told_file(arguments[0]))
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
