"""All switches of a network in one fabric process."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from emulation.links.link_statistics import DataPlaneStatistics, DirectionStatistics
from emulation.switches.fabric_layout import LinkKind, fabric_config, name_statistics
from emulation.switches.fabric_process import FabricProcess, fabric_command
from switch.insight.fabric_recorder import Recording
from switch.server.outside_address import OutsideAddress
from topo.graph import Link, Topology
from topo.link import LinkModel

if TYPE_CHECKING:
    from mininet.net import Mininet


P4RUNTIME_SOCKET = "p4runtime.sock"
# Of sockaddr_un.sun_path, with the final zero.
SOCKET_PATH_BYTES = 108


class FabricSwitches:
    """The gradbed back end of EmulatedNetwork (emulation.network.SwitchBackend).

    It runs all switches but the foreign ones, and is the model of every link, of those between foreign ones too.
    p4runtime: where it serves P4Runtime besides, outside the network. record: as of switch.fabric_config.
    """

    def __init__(
        self,
        topology: Topology,
        links: LinkKind,
        seed: int,
        foreign: Collection[str] = (),
        p4runtime: OutsideAddress | None = None,
        record: Literal["points", "values"] | None = None,
    ) -> None:
        self.topology = topology
        self.record = record
        self.p4runtime = p4runtime
        self.foreign = frozenset(foreign)
        self.links: LinkKind = links
        self.seed = seed
        self._process: FabricProcess | None = None

    def check(self) -> None:
        """The gradbed switch needs nothing but a C compiler, and says so itself."""

    def add_nodes(self, net: Mininet, run_dir: Path) -> None:
        from emulation.nodes.fabric_node import FabricSwitch

        for switch in self.topology.switches:
            if switch.name in self.foreign:
                continue
            net.addSwitch(switch.name, cls=FabricSwitch, number=switch.number)

    def start(self, net: Mininet, run_dir: Path) -> None:
        addresses = ["127.0.0.1:0"]
        # A socket in the file system can be reached from other network namespaces.
        unix_socket = run_dir / P4RUNTIME_SOCKET
        if len(os.fsencode(unix_socket)) < SOCKET_PATH_BYTES:
            addresses.append(f"unix:{unix_socket}")
        config = fabric_config(self.topology, self.links, self.seed, addresses, self.foreign)
        config = config.model_copy(update={"outside": self.p4runtime, "record": self.record})
        path = run_dir / "fabric.json"
        path.write_text(config.model_dump_json(indent=1), encoding="utf-8")
        keep_open = [] if self.p4runtime is None else [self.p4runtime.namespace_fd]
        self._process = FabricProcess(fabric_command(path), run_dir / "fabric.log", keep_open)
        self._process.wait_ready()

    def stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def p4runtime_address(self, switch: str) -> str:
        return f"127.0.0.1:{self._running.grpc_ports[0]}"

    def link_statistics(self) -> list[DirectionStatistics]:
        return list(name_statistics(self.topology, self.links, self._running.link_statistics(), self.foreign))

    def device_statistics(self) -> dict[str, dict[str, int]]:
        found = {}
        for row in self._running.statistics()["devices"]:
            switch = self.topology.switch_by_number(row.pop("device_id"))
            if switch.name not in self.foreign:
                found[switch.name] = row
        return found

    def start_capture(self, file: Path, host: str) -> None:
        switch = self.topology.attachment(host)
        port = self.topology.port(switch.name, host)
        self._running.start_capture(file, [(switch.number, port, direction) for direction in ("in", "out")])

    def data_plane_statistics(self) -> DataPlaneStatistics:
        found = self._running.statistics()
        drops = sum(row["socket_drops"] for row in found["interfaces"])
        return DataPlaneStatistics(
            late_ns_total=found["engine"]["late_ns_total"],
            late_counts=tuple(found["engine"]["late_counts"]),
            socket_frames=drops + sum(row["received"] for row in found["interfaces"]),
            socket_drops=drops,
            live_packets=found["engine"]["live_packets"],
        )

    def records(self, file: Path) -> Recording:
        return self._running.records(file)

    def quiesce(self, timeout_s: float) -> bool:
        return self._running.quiesce(timeout_s)

    def restart_switch(self, switch: str) -> None:
        self._running.restart_switch(self.topology.switch(switch).number)

    def set_link(self, link: Link, model: LinkModel) -> None:
        ends = self._ports(link)
        if len(ends) == 1 or (self.links == "veth" and link.a.node not in self.foreign):
            self._running.set_link(*ends[0], model)
        else:
            for end in ends:
                self._running.set_link(*end, model, ["out"])

    def set_link_up(self, link: Link, up: bool) -> None:
        for end in self._ports(link):
            self._running.set_link_up(*end, up)

    def _ports(self, link: Link) -> list[tuple[int, int]]:
        """(device id, port) of the ends at which the fabric process has a link: its own switches, or else those that
        it stands for. Of two, each models what leaves there, but of a pair of its own interfaces the first models
        everything (emulation/switches/fabric_layout.py)."""
        ends = [end for end in (link.a, link.b) if not self.topology.is_host(end.node)]
        own = [end for end in ends if end.node not in self.foreign]
        return [(self.topology.switch(end.node).number, end.port) for end in own or ends]

    @property
    def _running(self) -> FabricProcess:
        if self._process is None:
            raise RuntimeError("the fabric process has not been started")
        return self._process
