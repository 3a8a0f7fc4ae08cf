"""Networks of gradbed's switches: their verbs become the commands of switch/fabric_commands.py."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from emulation.fabric import Fabric, ForeignSwitches
from emulation.links.link_statistics import DataPlaneStatistics, DirectionStatistics
from emulation.switches.fabric_layout import LinkKind, name_statistics
from switch.engine.statistics import Direction
from switch.fabric_commands import (
    Answer,
    Command,
    GetLinkStatistics,
    GetStatistics,
    Quiesce,
    RestartSwitch,
    SetLink,
    SetLinkUp,
    StartCapture,
)
from topo.graph import Link, Topology
from topo.link import LinkModel

OUT: tuple[Direction, ...] = ("out",)
BOTH: tuple[Direction, ...] = ("in", "out")


class GradbedFabric(Fabric):
    """What is the same wherever the switches run. links: as of emulation.network.EmulatedNetwork."""

    def __init__(self, topology: Topology, links: LinkKind, foreign: ForeignSwitches | None = None) -> None:
        super().__init__(topology, foreign)
        self.links: LinkKind = links

    @abstractmethod
    def _ask(self, command: Command) -> Answer: ...

    def link_statistics(self) -> list[DirectionStatistics]:
        rows = self._ask(GetLinkStatistics())["rows"]
        return list(name_statistics(self.topology, self.links, rows, self.foreign))

    def device_statistics(self) -> dict[str, dict[str, int]]:
        rows = self._ask(GetStatistics())["devices"]
        return {self.topology.switch_by_number(row.pop("device_id")).name: row for row in rows}

    def data_plane_statistics(self) -> DataPlaneStatistics:
        found = self._ask(GetStatistics())
        drops = sum(row["socket_drops"] for row in found["interfaces"])
        return DataPlaneStatistics(
            late_ns_total=found["engine"]["late_ns_total"],
            late_counts=tuple(found["engine"]["late_counts"]),
            socket_frames=drops + sum(row["received"] for row in found["interfaces"]),
            socket_drops=drops,
            live_packets=found["engine"]["live_packets"],
        )

    def start_capture(self, file: Path, host: str) -> None:
        switch = self.topology.attachment(self.topology.host(host).name)
        port = self.topology.port(switch.name, host)
        ports = tuple((switch.number, port, direction) for direction in BOTH)
        self._ask(StartCapture(file=file, ports=ports))

    def _quiesce(self, timeout_s: float) -> bool:
        return bool(self._ask(Quiesce(timeout_s=timeout_s))["idle"])

    def _restart_switch(self, switch: str) -> None:
        self._ask(RestartSwitch(device_id=self.topology.switch(switch).number))

    def _set_link(self, link: Link, model: LinkModel) -> None:
        ends, directions = self._ports(link), OUT
        if len(ends) == 1 or (self.links == "veth" and link.a.node not in self.foreign):
            ends, directions = ends[:1], BOTH
        for device_id, port in ends:
            self._ask(SetLink(device_id=device_id, port=port, link=model, directions=directions))

    def set_link_up(self, a: str, b: str, up: bool) -> None:
        for device_id, port in self._ports(self.topology.link(a, b)):
            self._ask(SetLinkUp(device_id=device_id, port=port, up=up))

    def _ports(self, link: Link) -> list[tuple[int, int]]:
        """(device id, port) of the ends at which the engine has a link: its own switches, or else those that it
        stands for. Of two, each models what leaves there, but of a pair of its own interfaces the first models
        everything (emulation/switches/fabric_layout.py)."""
        ends = [end for end in (link.a, link.b) if not self.topology.is_host(end.node)]
        own = [end for end in ends if end.node not in self.foreign]
        return [(self.topology.switch(end.node).number, end.port) for end in own or ends]
