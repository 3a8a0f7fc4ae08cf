"""What the switches and links of a network can do while it is up: the one protocol of all that runs switches."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from gradbed.common.capabilities import GRADBED_SWITCHES
from gradbed.emulation.statistics import ClassCounts, DataPlaneStatistics, DirectionStatistics
from gradbed.switch.engine.statistics import Patterns
from gradbed.switch.insight.recorder import TraceRecording
from gradbed.topo.graph import Link, Topology
from gradbed.topo.link import LinkModel
from gradbed.topo.selectors import Selection

QUIET_S = 0.05
"""Nobody tells what foreign switches hold: so long without a packet on any link counts as nothing."""


class CaptureState(NamedTuple):
    """A capture that was started. is_over: it takes no more, since it has what was asked for, or could not write."""

    file: Path
    packets: int
    is_over: bool


class ForeignSwitches(Protocol):
    """Switches of a network that another program runs, without a model of links of their own."""

    names: frozenset[str]

    def control_address(self, switch: str) -> str: ...

    def restart_switch(self, switch: str) -> None: ...

    def thrift_ports(self) -> dict[str, int]:
        """Return the Thrift ports of switches that serve it, by name."""


class Fabric(ABC):
    """A back end is a subclass. It says how each verb is done; of those that have a body here it may leave out what
    it cannot do. Nodes go by their names.

    foreign: run some of the switches, or all. The back end runs the others, and is the model of every link.
    """

    def __init__(self, topology: Topology, foreign: Sequence[ForeignSwitches] = ()) -> None:
        self.topology = topology
        self._foreign = {name: each for each in foreign for name in each.names}
        self.foreign: frozenset[str] = frozenset(self._foreign)
        """The names of the switches that it does not run."""
        self._models: dict[frozenset[str], LinkModel] = {}
        """Of links that were changed, by their two nodes."""

    def check_alive(self) -> None:
        """ProcessLost where a process of its own has ended. Without any there is nothing to check."""
        return

    # Links.

    @abstractmethod
    def link_statistics(self) -> list[DirectionStatistics]:
        """Return one row per direction of every link, since the start."""

    @abstractmethod
    def set_link_up(self, a: str, b: str, up: bool) -> None:
        """Cut the link between two nodes, or mend it: packets on it are lost, ports at switches go down."""

    def change_link(self, a: str, b: str, **fields: Any) -> None:
        """Change fields of a link's model (gradbed.topo.link.LinkModel), in both directions, from now on. What is
        queued or in flight stays, and so do the random generators. UserError where links keep their attributes."""
        link = self.topology.link(a, b)
        model = replace(self.link_model(a, b), **fields)
        self._set_link(link, model)
        self._models[frozenset((a, b))] = model

    def _set_link(self, link: Link, model: LinkModel) -> None:
        raise GRADBED_SWITCHES.missing("to change a link of a network that is up")

    def link_model(self, a: str, b: str) -> LinkModel:
        """Return what the link between two nodes does to packets now, when it is up."""
        return self._models.get(frozenset((a, b)), self.topology.link(a, b).model)

    def changed_rates_bps(self) -> dict[frozenset[str], int | None]:
        """Return the rates that links have now, of those that were changed."""
        return {pair: model.rate_bps for pair, model in self._models.items()}

    # Switches.

    def control_address(self, switch: str) -> str:
        """Return the address at which the controller reaches a switch, "127.0.0.1:PORT".

        It is its P4Runtime server (the device id is its number), or the OpenFlow port at which it waits for a
        controller.
        """
        name = self.topology.switch(switch).name
        if name in self._foreign:
            return self._foreign[name].control_address(name)
        return self._p4runtime_address(name)

    @abstractmethod
    def _p4runtime_address(self, switch: str) -> str: ...

    def thrift_ports(self) -> dict[str, int]:
        """Return the Thrift ports of BMv2's switches, by name."""
        return {name: port for each in set(self._foreign.values()) for name, port in each.thrift_ports().items()}

    def restart_switch(self, switch: str) -> None:
        """Switch a switch off and on: program, tables, registers (or flows and groups) and connections are gone, its
        links stay. Returns when it serves again."""
        name = self.topology.switch(switch).name
        if name in self._foreign:
            self._foreign[name].restart_switch(name)
        else:
            self._restart_switch(name)

    @abstractmethod
    def _restart_switch(self, switch: str) -> None: ...

    def device_statistics(self) -> dict[str, dict[str, int]]:
        """Return what became of packets that did not leave a switch, by switch, of switches that count it.

        The fields are those of gradbed.switch.engine.DeviceStatistics.
        """
        return {}

    def program_drops(self) -> dict[str, dict[str, int]]:
        """Return packets that programs dropped since they were loaded, by switch and by where in the program
        (gradbed.switch.bmv2_json.drop_sites.DropSite in words); of switches that can tell."""
        return {}

    def count_classes(self, patterns: Patterns) -> None:  # noqa: B027
        """Let links and switches count packets by these classes from now on, those of them that can."""

    def classes(self) -> ClassCounts:
        """Return what the classes have counted since."""
        return ClassCounts()

    # Packets.

    def quiesce(self, timeout_s: float = 2.0) -> bool:
        """Wait until no packet is on its way between switches; False if some still are after `timeout_s`."""
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

    @abstractmethod
    def _quiesce(self, timeout_s: float) -> bool:
        """Wait until the switches that it runs, and the links, are quiet."""

    def data_plane_statistics(self) -> DataPlaneStatistics | None:
        """Return how well what runs switches and links kept up; None where nothing counts it."""
        return None

    def packets_in_flight(self) -> int | None:
        """Return an upper bound of the packets in flight now; None: it is not known."""
        found = None if self._foreign else self.data_plane_statistics()
        return None if found is None else found.live_packets

    def start_capture(
        self, file: Path, place: Selection, packets: int | None = None, seconds: float | None = None
    ) -> None:
        """Write what passes a link or a host's interfaces, both ways, to a pcapng file from now on: of a link each
        packet when the link begins to send it, also one that it then loses, with a comment; of a host what it sends
        at that time, and what it gets when it has it. At most so many packets, and for so long."""
        raise GRADBED_SWITCHES.missing("to capture what passes links")

    def captures(self) -> list[CaptureState]:
        """Return the captures that were started and not stopped."""
        return []

    def stop_capture(self, file: Path) -> int:
        """Stop a capture and return how many packets the file holds.

        Raises:
            UserError: It could not be written.
        """
        raise GRADBED_SWITCHES.missing("to capture what passes links")

    def records(self, file: Path) -> TraceRecording:
        """Return what programs did since the last call; the file is for the way.

        Raises:
            UserError: It was too much to keep.
        """
        raise GRADBED_SWITCHES.missing("to see what programs do")
