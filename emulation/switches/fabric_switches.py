"""All switches of a network in one fabric process, among the kernel's interfaces."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gradbed.common.errors import UserError
from gradbed.common.json_lines import JsonLinesProcess, own_program
from gradbed.emulation.fabric import ForeignSwitches
from gradbed.emulation.switches.fabric_layout import LinkKind, fabric_config
from gradbed.emulation.switches.gradbed_fabric import GradbedFabric
from gradbed.switch.fabric_commands import Answer, Command, TakeRecords
from gradbed.switch.insight.recorder import TraceRecording, read_recording
from gradbed.switch.server.addresses import OutsideAddress
from gradbed.topo.graph import Topology

if TYPE_CHECKING:
    from mininet.net import Mininet


# ---- The fabric process (python -m gradbed.switch.fabric) as its parent sees it ----


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
        """Send the configuration, for the command with "-"."""
        self._process.send("configure", file=str(config))

    def wait_ready(self) -> None:
        """Wait until the fabric serves.

        Raises:
            UserError: It cannot; in its own words.
        """
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


# ---- The back end ----


LOG = "fabric.log"
P4RUNTIME_SOCKET = "p4runtime.sock"
# Of sockaddr_un.sun_path, with the final zero.
SOCKET_PATH_BYTES = 108


class FabricSwitches(GradbedFabric):
    """A back end of EmulatedNetwork (gradbed.emulation.network.SwitchRunner).

    It is the model of the links between foreign switches, too. p4runtime: where it serves P4Runtime besides, outside
    the network. record: as of gradbed.switch.fabric_config. loading: the process, if it was started already, with
    "-".
    """

    def __init__(
        self,
        topology: Topology,
        links: LinkKind,
        seed: int,
        foreign: Sequence[ForeignSwitches] = (),
        p4runtime: OutsideAddress | None = None,
        record: Literal["points", "values"] | None = None,
        loading: FabricProcess | None = None,
    ) -> None:
        super().__init__(topology, links, foreign)
        self.record = record
        self.p4runtime = p4runtime
        self.seed = seed
        self._process = loading

    def check(self) -> None:
        """Do nothing: the gradbed switch needs only a C compiler, and reports itself when there is none."""

    def add_nodes(self, net: Mininet, run_dir: Path) -> None:
        from gradbed.emulation.nodes import FabricSwitch

        if self._process is None:
            # It loads its modules while the network is being made.
            keep_open = [] if self.p4runtime is None else [self.p4runtime.namespace_fd]
            self._process = FabricProcess(fabric_command("-"), run_dir / LOG, keep_open)
        for switch in self.topology.switches:
            if switch.name not in self.foreign:
                net.addSwitch(switch.name, cls=FabricSwitch, number=switch.number)

    def start(self, run_dir: Path) -> None:
        addresses = ["127.0.0.1:0"]
        # A socket in the file system can be reached from other network namespaces.
        unix_socket = run_dir / P4RUNTIME_SOCKET
        if len(os.fsencode(unix_socket)) < SOCKET_PATH_BYTES:
            addresses.append(f"unix:{unix_socket}")
        config = fabric_config(self.topology, self.links, self.seed, addresses, self.foreign)
        config = config.model_copy(update={"outside": self.p4runtime, "record": self.record})
        path = run_dir / "fabric.json"
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

    def records(self, file: Path) -> TraceRecording:
        answer = self._ask(TakeRecords(file=file))
        if answer.get("lost"):
            raise UserError(
                "more happened in the switches than can be recorded: send fewer packets, or for less time"
            )
        recording = read_recording(file, answer)
        file.unlink()
        return recording

    def _p4runtime_address(self, switch: str) -> str:
        return f"127.0.0.1:{self._running.grpc_ports[0]}"

    def _ask(self, command: Command) -> Answer:
        return self._running.ask(command)

    @property
    def _running(self) -> FabricProcess:
        if self._process is None:
            raise RuntimeError("the fabric process has not been started")
        return self._process
