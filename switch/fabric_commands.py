"""What can be asked of a fabric of gradbed's switches: one class for each command, whether the fabric is in this
process (`run`) or is another one (fabric.py, as a JSON line)."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from gradbed.switch.engine.statistics import Direction
from gradbed.switch.engine_fabric import EngineFabric
from gradbed.switch.fabric_config import CaptureConfig, Part
from gradbed.topo.link import LinkModel

Answer = dict[str, Any]
"""JSON values."""


class Command(Part):
    """A subclass has its name as the default of `command`."""

    command: str

    @property
    def wait_s(self) -> float:
        """Return how long an answer may take."""
        return 10.0

    @abstractmethod
    def run(self, fabric: EngineFabric) -> Answer | None:
        """Do it. UserError or ValueError in one line if it makes no sense."""


class GetLinkStatistics(Command):
    """rows: the fields of LinkStatistics for each direction, in order of creation; and socket_drops, the frames from
    outside that never came to it: its socket had no room, or they were longer than the MTU."""

    command: Literal["link_statistics"] = "link_statistics"

    def run(self, fabric: EngineFabric) -> Answer:
        drops = {
            (row.device_id, row.port, row.direction): row.socket_drops + row.oversize_drops
            for row in fabric.engine.interface_statistics()
        }
        rows = fabric.engine.link_statistics()
        return {
            "rows": [
                {**vars(row), "socket_drops": drops.get((row.device_id, row.port, row.direction), 0)} for row in rows
            ]
        }


class GetStatistics(Command):
    """engine, devices, interfaces: the fields of the other classes of engine/statistics.py."""

    command: Literal["statistics"] = "statistics"

    def run(self, fabric: EngineFabric) -> Answer:
        return {
            "engine": dict(vars(fabric.engine.statistics())),
            "devices": [{"device_id": each, **vars(device.statistics())} for each, device in fabric.devices.items()],
            "interfaces": [dict(vars(row)) for row in fabric.engine.interface_statistics()],
        }


class GetProgramDrops(Command):
    """Packets by the drop site's description, for each device that runs a program."""

    command: Literal["program_drops"] = "program_drops"

    def run(self, fabric: EngineFabric) -> Answer:
        return {
            "devices": [
                {"device_id": each, "packets": {str(site): count for site, count in device.program_drops().items()}}
                for each, device in fabric.devices.items()
            ]
        }


class CountClasses(Command):
    """Count packets by class from now on. patterns: of each class its words (engine/statistics.py)."""

    command: Literal["count_classes"] = "count_classes"
    patterns: tuple[tuple[tuple[int, int, int], ...], ...]

    def run(self, fabric: EngineFabric) -> None:
        fabric.engine.count_classes(self.patterns)


class GetClasses(Command):
    """links: the fields of LinkClasses for each direction; devices: those of DeviceClasses, with device_id."""

    command: Literal["classes"] = "classes"

    def run(self, fabric: EngineFabric) -> Answer:
        links = [dict(vars(row)) for row in fabric.engine.link_classes()]
        counted = {each: device.classes() for each, device in fabric.devices.items()} if links else {}
        return {"links": links, "devices": [{"device_id": each, **vars(row)} for each, row in counted.items()]}


class Quiesce(Command):
    """idle: whether no packet is queued or in flight any more, as soon as that is so."""

    command: Literal["quiesce"] = "quiesce"
    timeout_s: float = 1.0

    @property
    def wait_s(self) -> float:
        return self.timeout_s + 10.0

    def run(self, fabric: EngineFabric) -> Answer:
        return {"idle": fabric.engine.quiesce(self.timeout_s)}


class SetLink(Command):
    """Change the model of a port's directions."""

    command: Literal["set_link"] = "set_link"
    device_id: int
    port: int = Field(ge=0, le=511)
    link: LinkModel
    directions: tuple[Direction, ...] = ("in", "out")

    def run(self, fabric: EngineFabric) -> None:
        fabric.engine.set_link(self.device_id, self.port, self.link, self.directions)


class SetLinkUp(Command):
    """Cut the link at a port, or mend it; the ports at both its ends go down or up."""

    command: Literal["set_link_up"] = "set_link_up"
    device_id: int
    port: int = Field(ge=0, le=511)
    up: bool

    def run(self, fabric: EngineFabric) -> None:
        fabric.engine.set_link_up(self.device_id, self.port, self.up)


class RestartSwitch(Command):
    """Program, tables, registers and P4Runtime streams are gone, as when its power failed."""

    command: Literal["restart_switch"] = "restart_switch"
    device_id: int

    def run(self, fabric: EngineFabric) -> None:
        fabric.restart_switch(self.device_id)


class StartCapture(Command, CaptureConfig):
    """Start a capture, as CaptureConfig says."""

    command: Literal["start_capture"] = "start_capture"

    def run(self, fabric: EngineFabric) -> None:
        fabric.start_capture(self)


class GetCaptures(Command):
    """captures: file, packets so far, and whether it takes no more (over), of each that was not stopped."""

    command: Literal["captures"] = "captures"

    def run(self, fabric: EngineFabric) -> Answer:
        return {
            "captures": [
                {"file": str(file), "packets": capture.packets, "over": capture.is_over}
                for file, capture in fabric.captures.items()
            ]
        }


class StopCapture(Command):
    """packets: how many the file holds."""

    command: Literal["stop_capture"] = "stop_capture"
    file: Path

    def run(self, fabric: EngineFabric) -> Answer:
        capture = fabric.captures.pop(self.file, None)
        if capture is None:
            raise ValueError("there is no capture to that file")
        return {"packets": capture.close()}


class TakeRecords(Command):
    """What programs did since the last one goes to a file, where that is kept, with what it takes to read it
    (insight/recorder.py); lost, if it was too much."""

    command: Literal["records"] = "records"
    file: Path

    @property
    def wait_s(self) -> float:
        return 60.0  # they may be a gigabyte

    def run(self, fabric: EngineFabric) -> Answer:
        if fabric.recorder is None:
            raise ValueError("nothing is recorded: the configuration does not say so")
        try:
            return fabric.recorder.write(self.file)
        except MemoryError:
            return {"lost": True}


COMMANDS: dict[str, type[Command]] = {
    kind.model_fields["command"].default: kind
    for kind in (
        GetLinkStatistics,
        GetStatistics,
        GetProgramDrops,
        CountClasses,
        GetClasses,
        Quiesce,
        SetLink,
        SetLinkUp,
        RestartSwitch,
        StartCapture,
        GetCaptures,
        StopCapture,
        TakeRecords,
    )
}
