"""gradbed's switches on the real clock: the switch process as its parent sees it, and the backend that asks it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic_core import to_jsonable_python

from gradbed.common.json_lines import JsonLinesProcess, own_program
from gradbed.emulation.backend import ForeignSwitches, NetworkBackend
from gradbed.emulation.layout import LinkKind, network_config
from gradbed.switch.engine_network import EngineNetwork
from gradbed.switch.server.addresses import OutsideAddress
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from mininet.net import Mininet


# ---- The switch process (python -m gradbed.switch.switch_process) as its parent sees it ----


READY_TIMEOUT_S = 60.0
"""Covers a first build of the switch's runtime library by a slow C compiler."""

STOP_TIMEOUT_S = 5.0
TIMEOUT_S = 10.0
"""For an answer, besides the time that a command may take by its own argument timeout_s."""
TIMEOUTS_S = {"records": 60.0}
"""For the answers of commands that take longer: records may be a gigabyte."""


def switch_process_command(config: Path | str) -> list[str]:
    """Return the command of a switch process. config: "-" for one that is sent later."""
    return own_program("gradbed.switch.switch_process", str(config))


class SwitchProcess:
    """A child process of gradbed.switch.switch_process, started with the object; its log has standard error."""

    def __init__(self, command: Sequence[str], log: Path, keep_open: Sequence[int] = ()) -> None:
        self._process = JsonLinesProcess("switch process", command, log, keep_open)
        self._asking = threading.Lock()
        self.grpc_ports: tuple[int, ...] = ()

    @property
    def pid(self) -> int:
        return self._process.pid

    def configure(self, config: Path) -> None:
        """Send the configuration, for the command with "-"."""
        self._process.send("configure", file=str(config))

    def wait_ready(self) -> None:
        """Wait until it serves.

        Raises:
            UserError: It cannot; in its own words.
        """
        self.grpc_ports = tuple(self._process.expect("ready", READY_TIMEOUT_S)["grpc_ports"])

    def ask(self, command: str, **arguments: Any) -> Any:
        """Return the answer to a command of gradbed.switch.switch_process; from any thread.

        Raises:
            ProcessLost: It does not answer.
        """
        timeout_s = TIMEOUTS_S.get(command, TIMEOUT_S) + arguments.get("timeout_s", 0.0)
        with self._asking:
            self._process.send(command, **to_jsonable_python(arguments))
            return self._process.expect(command, timeout_s)["answer"]

    def check(self) -> None:
        """Raise ProcessLost if it has ended."""
        self._process.check()

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End it, and kill it if it does not end in time. May be called again."""
        self._process.stop(timeout_s)


class RemoteNetwork:
    """The commands of a switch process as methods, of an EngineNetwork and of its engine, with arguments by name."""

    def __init__(self, running: Callable[[], SwitchProcess]) -> None:
        self._running = running

    @property
    def engine(self) -> RemoteNetwork:
        return self

    def __getattr__(self, command: str) -> Callable[..., Any]:
        if command.startswith("_"):
            raise AttributeError(command)
        return partial(self._running().ask, command)


# ---- The backend ----


LOG = "switches.log"
P4RUNTIME_SOCKET = "p4runtime.sock"
# Of sockaddr_un.sun_path, with the final zero.
SOCKET_PATH_BYTES = 108


class RealBackend(NetworkBackend):
    """The backend of EmulatedNetwork (gradbed.emulation.network.SwitchRunner): its engine is a switch process."""

    def __init__(
        self,
        topology: Topology,
        links: LinkKind,
        seed: int,
        foreign: Sequence[ForeignSwitches] = (),
        p4runtime: OutsideAddress | None = None,
        record: Literal["points", "values"] | None = None,
        loading: SwitchProcess | None = None,
    ) -> None:
        """Make the backend; `start` starts its process.

        Args:
            topology: The network.
            links: As of EmulatedNetwork.
            seed: Seed of the links' random generators.
            foreign: What runs switches that the switch process does not.
            p4runtime: Where it serves P4Runtime besides, outside the network.
            record: As of gradbed.switch.engine_network.NetworkConfig.
            loading: The process, if it was started already, with "-".
        """
        super().__init__(topology, links, cast(EngineNetwork, RemoteNetwork(lambda: self._running)), foreign)
        self.record = record
        self.p4runtime = p4runtime
        self.seed = seed
        self._process = loading

    def check(self) -> None:
        """Do nothing: the gradbed switch needs only a C compiler, and reports itself when there is none."""

    def add_nodes(self, net: Mininet, run_dir: Path) -> None:
        from gradbed.emulation.nodes import EngineSwitch

        if self._process is None:
            # It loads its modules while the network is being made.
            keep_open = [] if self.p4runtime is None else [self.p4runtime.namespace_fd]
            self._process = SwitchProcess(switch_process_command("-"), run_dir / LOG, keep_open)
        for switch in self.topology.switches:
            if switch.name not in self.foreign:
                net.addSwitch(switch.name, cls=EngineSwitch, number=switch.number)

    def start(self, run_dir: Path) -> None:
        addresses = ["127.0.0.1:0"]
        # A socket in the file system can be reached from other network namespaces.
        unix_socket = run_dir / P4RUNTIME_SOCKET
        if len(os.fsencode(unix_socket)) < SOCKET_PATH_BYTES:
            addresses.append(f"unix:{unix_socket}")
        config = network_config(self.topology, self.links, self.seed, addresses, self.foreign)
        config = config.model_copy(update={"outside": self.p4runtime, "record": self.record})
        path = run_dir / "switches.json"
        path.write_text(config.model_dump_json(indent=1), encoding="utf-8")
        self._running.configure(path)
        self._running.wait_ready()

    def check_alive(self) -> None:
        if self._process is not None:
            self._process.check()

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _p4runtime_address(self) -> str:
        return f"127.0.0.1:{self._running.grpc_ports[0]}"

    @property
    def _running(self) -> SwitchProcess:
        if self._process is None:
            raise RuntimeError("the switch process has not been started")
        return self._process
