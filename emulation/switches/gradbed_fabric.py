"""Networks of gradbed's switches: their verbs become the commands of switch/fabric_commands.py."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path

from gradbed.emulation.fabric import CaptureState, Fabric, ForeignSwitches
from gradbed.emulation.statistics import ClassCounts, DataPlaneStatistics, DirectionStatistics, SwitchClasses
from gradbed.emulation.switches.fabric_layout import LinkKind, interface_name, name_classes, name_statistics
from gradbed.switch.engine import CaptureInterface, Tap
from gradbed.switch.engine.statistics import Direction, Patterns
from gradbed.switch.fabric_commands import (
    Answer,
    Command,
    CountClasses,
    GetCaptures,
    GetClasses,
    GetLinkStatistics,
    GetProgramDrops,
    GetStatistics,
    Quiesce,
    RestartSwitch,
    SetLink,
    SetLinkUp,
    StartCapture,
    StopCapture,
)
from gradbed.topo.graph import Endpoint, Link, Topology
from gradbed.topo.link import LinkModel
from gradbed.topo.selectors import Selection


class GradbedFabric(Fabric):
    """The parts of a fabric of gradbed's switches that are the same wherever these run. links: as of
    gradbed.emulation.network.EmulatedNetwork."""

    def __init__(self, topology: Topology, links: LinkKind, foreign: Sequence[ForeignSwitches] = ()) -> None:
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

    def program_drops(self) -> dict[str, dict[str, int]]:
        rows = self._ask(GetProgramDrops())["devices"]
        return {self.topology.switch_by_number(row["device_id"]).name: row["packets"] for row in rows}

    def count_classes(self, patterns: Patterns) -> None:
        self._ask(CountClasses(patterns=tuple(tuple(words) for words in patterns)))

    def classes(self) -> ClassCounts:
        found = self._ask(GetClasses())
        switches = {self.topology.switch_by_number(row["device_id"]).name: row for row in found["devices"]}
        return ClassCounts(
            name_classes(self.topology, self.links, found["links"], self.foreign),
            {name: SwitchClasses.of(row) for name, row in switches.items() if name not in self.foreign},
        )

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

    def start_capture(
        self, file: Path, place: Selection, packets: int | None = None, seconds: float | None = None
    ) -> None:
        interfaces = self._host_interfaces(place) if place.host is not None else self._link_interfaces(place)
        self._ask(StartCapture(file=file, interfaces=interfaces, packets=packets, seconds=seconds))

    def _link_interfaces(self, place: Selection) -> tuple[CaptureInterface, ...]:
        """Return one interface for each direction."""
        (link,) = place.links
        first = place.name.partition("-")[0]
        found = []
        for sender, device_id, port, direction in self._directions(link):
            receiver = link.other(sender).node
            tap = Tap(device_id, port, direction, arriving=False, outbound=sender == first)
            found.append(CaptureInterface(f"{sender}->{receiver}", "when the link begins to send it", (tap,)))
        return tuple(sorted(found, key=lambda each: each.name != f"{first}->{link.other(first).node}"))

    def _host_interfaces(self, place: Selection) -> tuple[CaptureInterface, ...]:
        """Return interfaces for what the host sends, when its link begins to, and what it gets, when it has it."""
        assert place.host is not None
        found = []
        for link in place.links:
            taps = tuple(
                Tap(device_id, port, direction, arriving=sender != place.host, outbound=sender == place.host)
                for sender, device_id, port, direction in self._directions(link)
            )
            found.append(CaptureInterface(interface_name(link.end(place.host)), f"of {place.host}", taps))
        return tuple(found)

    def captures(self) -> list[CaptureState]:
        rows = self._ask(GetCaptures())["captures"]
        return [CaptureState(Path(row["file"]), row["packets"], row["over"]) for row in rows]

    def stop_capture(self, file: Path) -> int:
        return int(self._ask(StopCapture(file=file))["packets"])

    def _quiesce(self, timeout_s: float) -> bool:
        return bool(self._ask(Quiesce(timeout_s=timeout_s))["idle"])

    def _restart_switch(self, switch: str) -> None:
        self._ask(RestartSwitch(device_id=self.topology.switch(switch).number))

    def _set_link(self, link: Link, model: LinkModel) -> None:
        for _, device_id, port, direction in self._directions(link):
            self._ask(SetLink(device_id=device_id, port=port, link=model, directions=(direction,)))

    def _directions(self, link: Link) -> list[tuple[str, int, int, Direction]]:
        """Sender, device id, port and direction: where the engine has the model of each direction. Of two ends each
        models what leaves there, but of a pair of its own interfaces the first models everything
        (emulation/switches/fabric_layout.py)."""
        ends = self._engine_ends(link)
        if len(ends) == 2 and not (self.links == "veth" and link.a.node not in self.foreign):
            return [(end.node, self.topology.switch(end.node).number, end.port, "out") for end in ends]
        node, port = ends[0].node, ends[0].port
        number = self.topology.switch(node).number
        return [(node, number, port, "out"), (link.other(node).node, number, port, "in")]

    def set_link_up(self, a: str, b: str, up: bool) -> None:
        for device_id, port in self._ports(self.topology.link(a, b)):
            self._ask(SetLinkUp(device_id=device_id, port=port, up=up))

    def _ports(self, link: Link) -> list[tuple[int, int]]:
        """Return (device id, port) of the ends at which the engine has a link."""
        return [(self.topology.switch(end.node).number, end.port) for end in self._engine_ends(link)]

    def _engine_ends(self, link: Link) -> list[Endpoint]:
        """Return the ends at its own switches, or else at those that it stands for."""
        ends = [end for end in (link.a, link.b) if not self.topology.is_host(end.node)]
        return [end for end in ends if end.node not in self.foreign] or ends
