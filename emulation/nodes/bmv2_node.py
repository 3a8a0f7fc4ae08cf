"""A simple_switch_grpc process of BMv2, as a Mininet node."""

from __future__ import annotations

import contextlib
import functools
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from gradbed.common.json_lines import ended, process_lost
from gradbed.emulation.nodes.quiet_switch import QuietSwitch
from gradbed.switch.p4lang.bmv2_programs import PRIORITY_QUEUES

CPU_PORT = 510
DROP_PORT = 511
READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 3.0


@functools.cache
def _has_thrift(binary: str) -> bool:
    """Whether it was built with a Thrift server, which otherwise all switches would start on the same port."""
    usage = subprocess.run([binary, "--help"], capture_output=True, text=True, check=False)
    return "--thrift-port" in usage.stdout


def free_ports(count: int) -> list[int]:
    """TCP ports of 127.0.0.1 that nobody uses at the moment, all different."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Bmv2Switch(QuietSwitch):
    """Ports are the node's interfaces; P4Runtime is served at `grpc_address`; output goes to the log file."""

    def __init__(
        self, name: str, number: int, binary: str, grpc_port: int, thrift_port: int, log: Path, **params: Any
    ) -> None:
        super().__init__(name, number, **params)
        self.binary = binary
        self.grpc_port = grpc_port
        self.thrift_port = thrift_port
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def grpc_address(self) -> str:
        return f"127.0.0.1:{self.grpc_port}"

    @property
    def has_thrift(self) -> bool:
        return _has_thrift(self.binary)

    def arguments(self) -> list[str]:
        """The command line (BMv2's docs: targets/simple_switch_grpc/README.md)."""
        ports = [f"--interface={port}@{intf.name}" for port, intf in sorted(self.intfs.items()) if port]
        thrift = [f"--thrift-port={self.thrift_port}"] if self.has_thrift else []
        general = ["--no-p4", f"--device-id={self.number}", "--log-console", "--log-level=warn"]
        target = [f"--grpc-server-addr={self.grpc_address}", f"--cpu-port={CPU_PORT}", f"--drop-port={DROP_PORT}"]
        return [self.binary, *general, *thrift, *ports, "--", *target, PRIORITY_QUEUES]

    def start(self, controllers: list[Any]) -> None:
        if self.process is None:
            with self.log.open("wb") as log:
                # In a session of its own, so that Ctrl-C reaches it only through stop().
                self.process = subprocess.Popen(
                    self.arguments(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )

    def connected(self) -> bool:
        """Whether its P4Runtime server accepts connections."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.grpc_port)) == 0

    def wait_ready(self) -> None:
        """Return once it serves P4Runtime; ProcessLost if it ended or does not."""
        assert self.process is not None
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self.connected():
            if self.process.poll() is not None or time.monotonic() > deadline:
                status = self.process.returncode
                state = "does not answer" if status is None else ended(status)
                raise process_lost(f"simple_switch_grpc of {self.name}", state, self.log)
            time.sleep(0.02)

    def terminate_process(self) -> None:
        """Ask it to end, without waiting: many end faster together than in turn."""
        if self.process is not None:
            self.process.terminate()

    def stop(self, deleteIntfs: bool = True) -> None:
        if self.process is not None:
            self.terminate_process()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_TIMEOUT_S)
            self.process.kill()
            self.process.wait()
            self.process = None
