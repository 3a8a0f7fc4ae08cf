"""All switches of a network in one fabric process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from topo.fabric_layout import LinkKind, fabric_config, name_statistics
from topo.fabric_process import FabricProcess, fabric_command
from topo.graph import Topology
from topo.link_statistics import DirectionStatistics

if TYPE_CHECKING:
    from mininet.net import Mininet


P4RUNTIME_SOCKET = "p4runtime.sock"
# Of sockaddr_un.sun_path, with the final zero.
SOCKET_PATH_BYTES = 108


class FabricSwitches:
    """The gradbed back end of EmulatedNetwork (topo.network.SwitchBackend)."""

    def __init__(self, topology: Topology, links: LinkKind, seed: int) -> None:
        self.topology = topology
        self.links: LinkKind = links
        self.seed = seed
        self._process: FabricProcess | None = None

    def check(self) -> None:
        """The gradbed switch needs nothing but a C compiler, and says so itself."""

    def add_nodes(self, net: Mininet, run_dir: Path) -> None:
        from switch.nodes.fabric_node import FabricSwitch

        for switch in self.topology.switches:
            net.addSwitch(switch.name, cls=FabricSwitch, number=switch.number)

    def start(self, net: Mininet, run_dir: Path) -> None:
        addresses = ["127.0.0.1:0"]
        # A socket in the file system can be reached from other network namespaces.
        unix_socket = run_dir / P4RUNTIME_SOCKET
        if len(os.fsencode(unix_socket)) < SOCKET_PATH_BYTES:
            addresses.append(f"unix:{unix_socket}")
        config = fabric_config(self.topology, self.links, self.seed, addresses)
        path = run_dir / "fabric.json"
        path.write_text(config.model_dump_json(indent=1), encoding="utf-8")
        self._process = FabricProcess(fabric_command(path), run_dir / "fabric.log")
        self._process.wait_ready()

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def p4runtime_address(self, switch: str) -> str:
        return f"127.0.0.1:{self._running.grpc_ports[0]}"

    def link_statistics(self) -> list[DirectionStatistics]:
        return list(name_statistics(self.topology, self.links, self._running.link_statistics()))

    def quiesce(self, timeout_s: float) -> bool:
        return self._running.quiesce(timeout_s)

    @property
    def _running(self) -> FabricProcess:
        if self._process is None:
            raise RuntimeError("the fabric process has not been started")
        return self._process
