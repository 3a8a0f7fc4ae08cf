"""The switch process: P4 switches, their links and one P4Runtime server, as a child process.

`python -m gradbed.switch.switch_process CONFIG.json` (NetworkConfig of engine_network.py) talks JSON lines. With "-"
for the file it loads its modules, and waits for {"command": "configure", "file": "CONFIG.json"} on standard input. On
standard output it says {"event": "ready", "grpc_ports": [...]} once it serves. Then it answers commands from standard
input until `stop` or the end of standard input: then it ends with status 0.

A command is a method in COMMANDS with its arguments, such as {"command": "set_link_up", "device_id": 1, "port": 2,
"up": false}. The answer is {"event": "set_link_up", "answer": ...}, with what the method returns. A line that is no
command is answered with {"event": "error", "message": ...}, and "is_users" if people can put that right.

What is wrong with the configuration is one line on standard error, with status 2. The process dies with the thread
that started it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, ValidationError, validate_call

from gradbed.common.errors import UserError
from gradbed.common.json_lines import told_file
from gradbed.common.problems import first_problem
from gradbed.common.signals import die_with_parent
from gradbed.switch.codegen import build_program
from gradbed.switch.engine import Engine
from gradbed.switch.engine_network import (
    EngineNetwork,
    ForeignEnd,
    InterfaceConfig,
    NetworkConfig,
    read_network_config,
)
from gradbed.switch.insight.recorder import build_instrumented
from gradbed.switch.interpreter import prepare_interpreter

if TYPE_CHECKING:
    from gradbed.switch.server import P4RuntimeServer

_USER_ERROR_STATUS = 2


class KernelNetwork(EngineNetwork):
    """A network on the machine's clock, its ports interfaces of this network namespace; a context manager runs it."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config, Engine())
        self.server: P4RuntimeServer | None = None

    def _add_port(self, port: InterfaceConfig) -> None:
        self.engine.add_interface(port.device_id, port.port, port.interface, port.link, port.seed)

    def _add_foreign_switches(self, config: NetworkConfig) -> None:
        for foreign in config.foreign_switches:
            self.engine.add_switch(foreign.device_id, foreign.name, cpu_port=None)
        for wire in config.wires:
            a, b = wire.a, wire.b
            far = (b.device_id, b.port, b.interface) if isinstance(b, ForeignEnd) else (None, None, b.interface)
            self.engine.add_wire((a.device_id, a.port, a.interface), far, wire.link, wire.seed)

    def _restart(self, device_id: int) -> None:
        # Where it is served, its controllers lose their streams, too.
        if self.server is None:
            self.devices[device_id].restart()
        else:
            self.server.restart_device(device_id)

    def __enter__(self) -> KernelNetwork:
        self.engine.start()
        return self


# ---- Commands ----


COMMANDS: Mapping[type[Engine] | type[EngineNetwork], tuple[str, ...]] = {
    Engine: ("set_link", "set_link_up", "count_classes", "quiesce"),
    EngineNetwork: (
        "link_statistics",
        "statistics",
        "program_drops",
        "classes",
        "start_capture",
        "captures",
        "stop_capture",
        "records",
        "restart_switch",
    ),
}
"""Methods that the parent process may call, by class; their annotations say what arguments are."""


def serve_commands(network: EngineNetwork, lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the events that answer a stream of commands, up to "stop" or the end."""
    checked = validate_call(config=ConfigDict(extra="forbid"))
    methods: dict[str, Callable[..., Any]] = {
        name: checked(getattr(owner, name))
        for owner, names in ((network.engine, COMMANDS[Engine]), (network, COMMANDS[EngineNetwork]))
        for name in names
    }
    for line in lines:
        try:
            arguments = json.loads(line)
            if not isinstance(arguments, dict):
                raise ValueError("a command is a JSON object")
            name = arguments.pop("command", None)
            if name == "stop":
                return
            if name not in methods:
                raise ValueError(f"there is no command {name!r}")
            yield {"event": name, "answer": methods[name](**arguments)}
        except ValidationError as error:
            yield {"event": "error", "message": first_problem(error)}
        except ValueError as error:
            yield {"event": "error", "message": str(error)}
        except UserError as error:
            yield {"event": "error", "message": str(error), "is_users": True}


# ---- The process ----


def run(config: NetworkConfig, commands: Iterable[str], write: Any) -> None:
    """Run the network until the commands end. `write` takes each event."""
    # gRPC takes a while to import: only the process needs it.
    from gradbed.switch.server import P4RuntimeServer

    build = build_program if config.record is None else build_instrumented
    with KernelNetwork(config) as network:
        network.server = server = P4RuntimeServer(
            network.devices, config.grpc_addresses, build=build, outside=config.outside
        )
        server.start()
        try:
            write({"event": "ready", "grpc_ports": server.ports})
            for event in serve_commands(network, commands):
                write(event)
        finally:
            server.stop()


@contextmanager
def event_stream() -> Iterator[Any]:
    """Yield a function that writes events to standard output, which nothing else can use meanwhile."""
    with os.fdopen(os.dup(1), "w", buffering=1) as stream:
        os.dup2(2, 1)
        yield lambda event: print(json.dumps(event), file=stream)


def main(arguments: Sequence[str]) -> int:
    die_with_parent()
    prepare_interpreter()
    if len(arguments) != 1:
        print("usage: python -m gradbed.switch.switch_process CONFIG.json (or -)", file=sys.stderr)
        return _USER_ERROR_STATUS
    try:
        if arguments[0] == "-":
            from gradbed.switch.server import P4RuntimeServer  # noqa: F401  # before there is a network to be served
        config = read_network_config(told_file(arguments[0]))
        with event_stream() as write:
            run(config, sys.stdin, write)
    except UserError as error:
        print(error, file=sys.stderr)
        return _USER_ERROR_STATUS
    except (KeyboardInterrupt, BrokenPipeError):
        # Ended from the terminal, or the parent has closed the pipe.
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
