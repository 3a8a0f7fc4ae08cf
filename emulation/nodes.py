"""Mininet's hosts, interfaces, links and switches, without the processes that Mininet starts to configure each of
them.

The interfaces themselves are made by gradbed.emulation.veth, all at once; these objects record what is there, so that
Mininet's own functions and its command line work on it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mininet.link import Intf, Link
from mininet.node import Host, Node, Switch

from gradbed.common.json_lines import ended, process_lost
from gradbed.switch.p4lang.bmv2 import PRIORITY_QUEUES

# ---- Hosts, interfaces and links ----


class EmulatedHost(Host):  # type: ignore[misc]
    """A shell in a network namespace of its own. Its `python3` is the one that runs this, which has Scapy."""

    def _popen(self, cmd: Any, **params: Any) -> Any:
        path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
        params.setdefault("env", {**os.environ, "PATH": path})
        return super()._popen(cmd, **params)

    def startShell(self, mnopts: str | None = None) -> None:
        try:
            super().startShell(mnopts)
        except BaseException:
            # Ctrl-C during the start: nobody holds this half-made node, so nobody else would end its shell.
            if self.shell is not None:
                os.kill(self.shell.pid, signal.SIGKILL)
                self.shell.wait()
            raise


class RecordedIntf(Intf):  # type: ignore[misc]
    """An interface of the kernel that needs no configuration any more."""

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}


class MemoryIntf(RecordedIntf):
    """The end of a link inside the switch process: no interface of the kernel."""

    def ifconfig(self, *args: str) -> str:
        if args:
            return f"{self.name} is in the memory of the switch process and cannot be configured\n"
        return f"{self.name}: UP, in the memory of the switch process\n"

    def updateIP(self) -> None:
        return None

    def status(self) -> str:
        return "OK"

    def delete(self) -> None:
        self.node.delIntf(self)
        self.link = None


class RecordedLink(Link):  # type: ignore[misc]
    """A link that exists, or will once all links are made."""

    @classmethod
    def makeIntfPair(cls, *_args: Any, **_kwargs: Any) -> None:
        """Do nothing: gradbed.emulation.veth makes the interfaces, all at once."""

    def stop(self) -> None:
        """Do nothing: gradbed.emulation.veth deletes the interfaces, all at once."""


# ---- Switches that cost nothing until someone types a command for them ----


class QuietLoopback(Intf):  # type: ignore[misc]
    """The control interface that Mininet expects of a switch; it is up already."""

    def config(self, **_params: Any) -> dict[str, Any]:
        return {}


class QuietSwitch(Switch):  # type: ignore[misc]
    """A switch in the network namespace of the caller, whose shell starts with the first command.

    Mininet starts a shell per switch and runs ifconfig in it, some 20 ms each, although nothing in an
    emulation needs one. `number` is the P4Runtime device id, shown to Mininet as the datapath id.
    """

    def __init__(self, name: str, number: int, **params: Any) -> None:
        # Not Switch.__init__, which runs ifconfig for the loopback interface.
        params["inNamespace"] = False
        Node.__init__(self, name, **params)
        self.number = number
        self.dpid = self.defaultDpid(f"{number:x}")
        self.opts = ""
        self.listenPort = None
        self.controlIntf = QuietLoopback("lo", self, port=0)

    def startShell(self, mnopts: str | None = None) -> None:
        self.pid = os.getpid()

    def _want_shell(self) -> None:
        if self.shell is None:
            super().startShell()

    def cmd(self, *args: Any, **kwargs: Any) -> str | None:
        self._want_shell()
        output: str | None = super().cmd(*args, **kwargs)
        return output

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        self._want_shell()
        super().sendCmd(*args, **kwargs)

    def start(self, controllers: list[Any]) -> None:
        """Do nothing: the switch process is not Mininet's."""

    def stop(self, deleteIntfs: bool = True) -> None:
        """Do nothing: the owner of the interfaces deletes them, all at once."""


class EngineSwitch(QuietSwitch):
    """A device among the many of the switch process, which is not Mininet's to start or stop."""


# ---- Open vSwitch ----


OPENFLOW_VERSION = "OpenFlow13"


class OvsBridge(QuietSwitch):
    """A bridge of the network's ovs-vswitchd. Its datapath id is the switch's number; run_dir has its sockets."""

    def __init__(self, name: str, number: int, run_dir: Path, **params: Any) -> None:
        super().__init__(name, number, **params)
        self.run_dir = run_dir

    def dpctl(self, *arguments: str) -> str:
        """Return the output of ovs-ofctl: `dpctl("dump-flows")`. Mininet's command line has it, too."""
        command, *rest = arguments
        return subprocess.run(
            ["ovs-ofctl", "-O", OPENFLOW_VERSION, command, f"unix:{self.run_dir}/{self.name}.mgmt", *rest],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        ).stdout


# ---- BMv2: a simple_switch_grpc process each ----


CPU_PORT = 510
DROP_PORT = 511
BMV2_READY_TIMEOUT_S = 30.0
BMV2_STOP_TIMEOUT_S = 3.0


@functools.cache
def _has_thrift(binary: str) -> bool:
    """Return whether it was built with a Thrift server, which otherwise all switches would start on the same port."""
    usage = subprocess.run([binary, "--help"], capture_output=True, text=True, check=False)
    return "--thrift-port" in usage.stdout


def free_ports(count: int) -> list[int]:
    """Return TCP ports of 127.0.0.1 that are free at the moment, all different."""
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
        """Return the command line (BMv2's docs: targets/simple_switch_grpc/README.md)."""
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
        """Return whether its P4Runtime server accepts connections."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.grpc_port)) == 0

    def wait_ready(self) -> None:
        """Return once it serves P4Runtime; ProcessLost if it ended or does not."""
        assert self.process is not None
        deadline = time.monotonic() + BMV2_READY_TIMEOUT_S
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
                self.process.wait(BMV2_STOP_TIMEOUT_S)
            self.process.kill()
            self.process.wait()
            self.process = None
