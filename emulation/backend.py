"""Network backends: what switches and links can do while a network is up, on either clock."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gradbed.common.capabilities import REAL_CLOCK
from gradbed.common.errors import UserError
from gradbed.emulation.layout import LinkKind, interface_name, name_classes, name_statistics
from gradbed.emulation.statistics import ClassCounts, DataPlaneStatistics, DirectionStatistics, SwitchClasses
from gradbed.switch.engine import CaptureInterface, Tap
from gradbed.switch.engine.statistics import Direction, Patterns
from gradbed.switch.engine_network import CaptureConfig, EngineNetwork
from gradbed.switch.insight.recorder import TraceRecording, read_recording
from gradbed.topo.graph import Endpoint, Link, Topology
from gradbed.topo.link import LinkModel
from gradbed.topo.selectors import Selection

QUIET_S = 0.05
"""Foreign switches do not report what they hold: so long without a packet on any link counts as quiescent."""


class CaptureState(NamedTuple):
    """A capture that was started and not stopped."""

    file: Path
    packets: int
    is_over: bool
    """Whether it takes no more: it has what was asked for, or could not write."""


class ForeignSwitches(Protocol):
    """Switches of a network that another program runs, such as BMv2 or Open vSwitch.

    They have no model of links: that is the engine's, which sits in the middle of their links.
    """

    names: frozenset[str]

    def control_address(self, switch: str) -> str: ...

    def restart_switch(self, switch: str) -> None: ...

    def thrift_ports(self) -> dict[str, int]:
        """Return the Thrift ports of switches that serve it, by name."""


class NetworkBackend(ABC):
    """The switches and links of a network that is up, by the names of nodes.

    An engine is the model of every link, and runs the switches that no other program runs: it is in this process
    (`VirtualBackend`), or in the switch process (gradbed.emulation.switches.gradbed_switches.RealBackend). A verb is
    defined here once, in names of nodes, and once in the engine, in device ids and ports.
    """

    def __init__(
        self, topology: Topology, links: LinkKind, switches: EngineNetwork, foreign: Sequence[ForeignSwitches] = ()
    ) -> None:
        """Make the backend.

        Args:
            topology: The network.
            links: Links between switches: in memory, or of the kernel (gradbed.emulation.network.EmulatedNetwork).
            switches: The engine's network, or what stands for one in another process.
            foreign: What runs switches that the engine does not.
        """
        self.topology = topology
        self.links: LinkKind = links
        self._switches = switches
        self._foreign = {name: each for each in foreign for name in each.names}
        self.foreign: frozenset[str] = frozenset(self._foreign)
        """Names of the switches that the engine does not run."""
        self._models: dict[frozenset[str], LinkModel] = {}
        """Of links that were changed, by their two nodes."""
        self.on_rate_change: Callable[[], None] = lambda: None
        """Called after the rate of a link has changed."""

    def check_alive(self) -> None:
        """Raise ProcessLost where a process of its own has ended; without any there is nothing to check."""
        return

    # ---- Links ----

    def link_statistics(self) -> list[DirectionStatistics]:
        """Return one row per direction of every link, since the start."""
        rows = self._switches.link_statistics()
        return list(name_statistics(self.topology, self.links, rows, self.foreign))

    def set_link_up(self, a: str, b: str, up: bool) -> None:
        """Cut the link between two nodes, or mend it: packets on it are lost, ports at switches go down."""
        for end in self._engine_ends(self.topology.link(a, b)):
            number = self.topology.switch(end.node).number
            self._switches.engine.set_link_up(device_id=number, port=end.port, up=up)

    def change_link(self, a: str, b: str, **fields: Any) -> None:
        """Change fields of a link's model (gradbed.topo.link.LinkModel), in both directions, from now on.

        What is queued or in flight stays, and so do the random generators.
        """
        link = self.topology.link(a, b)
        model = replace(self.link_model(a, b), **fields)
        for _, device_id, port, direction in self._directions(link):
            self._switches.engine.set_link(device_id=device_id, port=port, link=model, directions=(direction,))
        self._models[frozenset((a, b))] = model
        if "rate_bps" in fields:
            self.on_rate_change()

    def link_model(self, a: str, b: str) -> LinkModel:
        """Return what the link between two nodes does to packets now, when it is up."""
        return self._models.get(frozenset((a, b)), self.topology.link(a, b).model)

    def changed_rates_bps(self) -> dict[frozenset[str], int | None]:
        """Return the rates that links have now, of those that were changed."""
        return {pair: model.rate_bps for pair, model in self._models.items()}

    # ---- Switches ----

    def control_address(self, switch: str) -> str:
        """Return the address at which the controller reaches a switch, "127.0.0.1:PORT".

        It is its P4Runtime server (the device id is its number), or the OpenFlow port at which it waits for a
        controller.
        """
        name = self.topology.switch(switch).name
        if name in self._foreign:
            return self._foreign[name].control_address(name)
        return self._p4runtime_address()

    @abstractmethod
    def _p4runtime_address(self) -> str: ...

    def thrift_ports(self) -> dict[str, int]:
        """Return the Thrift ports of BMv2's switches, by name."""
        return {name: port for each in set(self._foreign.values()) for name, port in each.thrift_ports().items()}

    def restart_switch(self, switch: str) -> None:
        """Switch a switch off and on: program, tables, registers (or flows and groups) and connections are gone.

        Its links stay. Returns when it serves again.
        """
        name, number = self.topology.switch(switch).name, self.topology.switch(switch).number
        if name in self._foreign:
            self._foreign[name].restart_switch(name)
        else:
            self._switches.restart_switch(device_id=number)

    def device_statistics(self) -> dict[str, dict[str, int]]:
        """Return what became of packets that did not leave a switch, by switch, of switches that count it.

        The fields are those of gradbed.switch.engine.DeviceStatistics.
        """
        rows = self._switches.statistics()["devices"]
        return {self.topology.switch_by_number(row.pop("device_id")).name: row for row in rows}

    def program_drops(self) -> dict[str, dict[str, int]]:
        """Return packets that programs dropped since they were loaded, by switch and by where in the program.

        That is gradbed.switch.bmv2_json.drop_sites.DropSite in words; of switches that report it.
        """
        rows = self._switches.program_drops()
        return {self.topology.switch_by_number(row["device_id"]).name: row["packets"] for row in rows}

    def count_classes(self, patterns: Patterns) -> None:
        """Let links and switches count packets by these classes from now on, those of them that can."""
        self._switches.engine.count_classes(patterns=patterns)

    def classes(self) -> ClassCounts:
        """Return what the classes have counted since."""
        found = self._switches.classes()
        switches = {self.topology.switch_by_number(row["device_id"]).name: row for row in found["devices"]}
        return ClassCounts(
            name_classes(self.topology, self.links, found["links"], self.foreign),
            {name: SwitchClasses.of(row) for name, row in switches.items() if name not in self.foreign},
        )

    # ---- Packets ----

    def quiesce(self, timeout_s: float = 2.0) -> bool:
        """Wait until no packet is on its way between switches; return False if some still are after `timeout_s`."""
        if not self._foreign:
            return self._quiesce(timeout_s)
        deadline = time.monotonic() + timeout_s
        before: list[DirectionStatistics] | None = None
        while (left_s := deadline - time.monotonic()) > 0 and self._quiesce(left_s):
            now = self.link_statistics()
            if now == before:
                return True
            before = now
            time.sleep(QUIET_S)
        return False

    def _quiesce(self, timeout_s: float) -> bool:
        """Wait until the switches that the engine runs, and the links, are quiescent."""
        return self._switches.engine.quiesce(timeout_s=timeout_s)

    def data_plane_statistics(self) -> DataPlaneStatistics:
        """Return how well the engine kept up with the clock."""
        found = self._switches.statistics()
        drops = sum(row["socket_drops"] for row in found["interfaces"])
        return DataPlaneStatistics(
            late_ns_total=found["engine"]["late_ns_total"],
            late_counts=tuple(found["engine"]["late_counts"]),
            socket_frames=drops + sum(row["received"] for row in found["interfaces"]),
            socket_drops=drops,
            live_packets=found["engine"]["live_packets"],
        )

    def packets_in_flight(self) -> int | None:
        """Return an upper bound of the packets in flight now; None: it is not known."""
        return None if self._foreign else self.data_plane_statistics().live_packets

    # ---- Captures and records ----

    def start_capture(
        self, file: Path, place: Selection, packets: int | None = None, seconds: float | None = None
    ) -> None:
        """Write what passes a link or a host's interfaces, both ways, to a pcapng file from now on.

        Of a link each packet is recorded when the link begins to send it, with a comment if it then loses it; of a
        host what it sends at that time, and what it gets when it has it.

        Args:
            file: The file.
            place: The link or host.
            packets: Number of packets after which it ends; None: no limit.
            seconds: End after so long; None: never.
        """
        interfaces = self._host_interfaces(place) if place.host is not None else self._link_interfaces(place)
        capture = CaptureConfig(file=file, interfaces=interfaces, packets=packets, seconds=seconds)
        self._switches.start_capture(capture=capture)

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
        """Return the captures that were started and not stopped."""
        return [CaptureState(Path(row["file"]), row["packets"], row["over"]) for row in self._switches.captures()]

    def stop_capture(self, file: Path) -> int:
        """Stop a capture and return how many packets the file holds.

        Raises:
            UserError: It could not be written.
        """
        return self._switches.stop_capture(file=file)

    def records(self, file: Path) -> TraceRecording:
        """Return what programs did since the last call, which passes through the file.

        Raises:
            UserError: It was too much to keep.
        """
        written = self._switches.records(file=file)
        if written.get("lost"):
            raise UserError(
                "more happened in the switches than can be recorded: send fewer packets, or for less time"
            )
        recording = read_recording(file, written)
        file.unlink()
        return recording

    # ---- Where the engine has a link ----

    def _directions(self, link: Link) -> list[tuple[str, int, int, Direction]]:
        """Return sender, device id, port and direction: where the engine has the model of each direction.

        Of two ends each models what leaves there, but of a pair of its own interfaces the first models everything
        (emulation/layout.py).
        """
        ends = self._engine_ends(link)
        if len(ends) == 2 and not (self.links == "veth" and link.a.node not in self.foreign):
            return [(end.node, self.topology.switch(end.node).number, end.port, "out") for end in ends]
        node, port = ends[0].node, ends[0].port
        number = self.topology.switch(node).number
        return [(node, number, port, "out"), (link.other(node).node, number, port, "in")]

    def _engine_ends(self, link: Link) -> list[Endpoint]:
        """Return the ends at the engine's own switches, or else at those that it stands for."""
        ends = [end for end in (link.a, link.b) if not self.topology.is_host(end.node)]
        return [end for end in ends if end.node not in self.foreign] or ends


# ---- On the virtual clock ----


class SteppedClock(Protocol):
    """A clock that advances when it is told to (gradbed.hosts.agents.virtual.clock.VirtualClock)."""

    @property
    def now_ns(self) -> int: ...

    def step(self) -> bool:
        """Let time advance to the next event; return False if there is none."""


class VirtualBackend(NetworkBackend):
    """A backend whose engine is in this process, with links in memory and time that advances by a clock."""

    def __init__(self, topology: Topology, switches: EngineNetwork, clock: SteppedClock) -> None:
        super().__init__(topology, "memory", switches)
        self._clock = clock

    def _p4runtime_address(self) -> str:
        raise REAL_CLOCK.missing("a server of P4Runtime")

    def _quiesce(self, timeout_s: float) -> bool:
        """Let the virtual clock run until nothing is in flight."""
        engine = self._switches.engine
        end_ns = self._clock.now_ns + round(1e9 * timeout_s)
        while not engine.quiesce(0):
            if self._clock.now_ns > end_ns or not self._clock.step():
                return engine.quiesce(0)
        return True
