"""Networks of gradbed's switches in one engine: their configuration, and their verbs on either clock."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem
from gradbed.common.resources import Closing
from gradbed.switch.engine import Capture, Engine, EngineDevice
from gradbed.switch.engine.capture import CaptureInterface
from gradbed.switch.engine.statistics import Direction
from gradbed.switch.insight.recorder import Level, NetworkRecorder
from gradbed.switch.server.addresses import OutsideAddress
from gradbed.topo.link import LinkModel

# ---- Configuration ----


class Part(BaseModel):
    """A part of a configuration."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SwitchConfig(Part):
    """A switch, with the arguments of Engine.add_switch; device_id is also its P4Runtime device id."""

    device_id: int = Field(ge=0, lt=2**64)
    name: str = ""
    cpu_port: int | None = Field(default=510, ge=0, le=511)
    drop_port: int = Field(default=511, ge=0, le=511)
    priorities: int = Field(default=8, ge=1, le=8)
    seed: int = Field(default=0, ge=0, lt=2**64)


class InterfaceConfig(Part):
    """A network interface as a port. The link model applies to both directions."""

    device_id: int
    port: int = Field(ge=0, le=511)
    interface: str
    link: LinkModel = LinkModel()
    seed: int = 0


class LinkConfig(Part):
    """A link in memory between two ports, each [device id, port]."""

    a: tuple[int, int]
    b: tuple[int, int]
    link: LinkModel = LinkModel()
    seed: int = 0


class ForeignSwitchConfig(Part):
    """A switch that another program runs. Here it has nothing but ports at the ends of wires."""

    device_id: int = Field(ge=0, lt=2**64)
    name: str = ""


class HostEnd(Part):
    """An interface that leads to a host."""

    interface: str


class ForeignEnd(HostEnd):
    """An interface that leads to the port of a foreign switch."""

    device_id: int
    port: int = Field(ge=0, le=511)


class WireConfig(Part):
    """A link between two network interfaces, at least one of them a foreign switch's."""

    a: ForeignEnd
    b: ForeignEnd | HostEnd
    link: LinkModel = LinkModel()
    seed: int = 0


class CaptureConfig(Part):
    """A capture of ports, to a pcap file, or of interfaces, to a pcapng file."""

    file: Path
    ports: tuple[tuple[int, int, Direction], ...] = ()
    """Each is [device id, port, "in" or "out"]."""
    interfaces: tuple[CaptureInterface, ...] = ()
    packets: int | None = Field(default=None, ge=1, lt=2**63)
    """Number of packets after which the capture ends; None: no limit."""
    seconds: float | None = Field(default=None, gt=0)
    """End by itself after so long; None: never."""


class NetworkConfig(Part):
    """A network of gradbed's switches: the JSON file on the command line of a switch process."""

    grpc_addresses: tuple[str, ...] = ()
    """Where P4Runtime is served: "host:port" (port 0: any free one) or "unix:/path"."""
    outside: OutsideAddress | None = None
    """A further address of P4Runtime, in another network namespace."""
    switches: tuple[SwitchConfig, ...]
    interfaces: tuple[InterfaceConfig, ...] = ()
    links: tuple[LinkConfig, ...] = ()
    foreign_switches: tuple[ForeignSwitchConfig, ...] = ()
    wires: tuple[WireConfig, ...] = ()
    captures: tuple[CaptureConfig, ...] = ()
    record: Literal["points", "values"] | None = None
    """Build programs so that they report what they do, and keep that for `EngineNetwork.records`."""


def read_network_config(path: Path) -> NetworkConfig:
    """Read a configuration.

    Raises:
        UserError: The file cannot be read, or says something impossible; one line.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read the switch process's configuration {path}: {error.strerror}") from None
    try:
        return NetworkConfig.model_validate_json(text)
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}") from None


# ---- The network ----


class EngineNetwork(Closing):
    """Switches, links and captures of a configuration; a subclass says what is at the other end of its ports.

    Public methods return values that JSON can express: those of a switch process come through its pipe
    (switch/switch_process.py), under the same names and with the same arguments.
    """

    engine: Engine
    devices: dict[int, EngineDevice]
    """P4 switches by device id."""
    recorder: NetworkRecorder | None

    def __init__(self, config: NetworkConfig, engine: Engine, lp_of: Mapping[int, int] | None = None) -> None:
        """Build the network.

        Args:
            config: Its parts.
            engine: What they are made in; closed if that fails.
            lp_of: Numbers of logical processes by device id; None: all switches are in one.

        Raises:
            UserError: Something cannot be built, such as a port on an interface that does not exist.
        """
        self.engine = engine
        try:
            self.devices = {
                switch.device_id: engine.add_switch(
                    switch.device_id,
                    switch.name,
                    switch.cpu_port,
                    drop_port=switch.drop_port,
                    priorities=switch.priorities,
                    seed=switch.seed,
                    lp=lp_of[switch.device_id] if lp_of else 0,
                )
                for switch in config.switches
            }
            for port in config.interfaces:
                self._add_port(port)
            for link in config.links:
                engine.add_link(link.a, link.b, link.link, link.seed)
            self._add_foreign_switches(config)
            self._captures: dict[Path, Capture] = {}
            for capture in config.captures:
                self.start_capture(capture)
            self.recorder = (
                NetworkRecorder(engine, self.devices, Level[config.record.upper()]) if config.record else None
            )
        except BaseException:
            engine.close()
            raise

    @abstractmethod
    def _add_port(self, port: InterfaceConfig) -> None:
        """Add a port that leads to a host."""

    @abstractmethod
    def _add_foreign_switches(self, config: NetworkConfig) -> None:
        """Add switches that other programs run, and the wires between them and to hosts."""

    @abstractmethod
    def _restart(self, device_id: int) -> None: ...

    # ---- Statistics ----

    def link_statistics(self) -> list[dict[str, Any]]:
        """Return the fields of LinkStatistics for each direction, in order of creation.

        Besides, socket_drops: frames from outside that never came to it, because its socket had no room or they were
        longer than the MTU.
        """
        drops = {
            (row.device_id, row.port, row.direction): row.socket_drops + row.oversize_drops
            for row in self.engine.interface_statistics()
        }
        return [
            {**vars(row), "socket_drops": drops.get((row.device_id, row.port, row.direction), 0)}
            for row in self.engine.link_statistics()
        ]

    def statistics(self) -> dict[str, Any]:
        """Return engine, devices and interfaces: the fields of the other classes of switch/engine/statistics.py."""
        return {
            "engine": dict(vars(self.engine.statistics())),
            "devices": [{"device_id": each, **vars(device.statistics())} for each, device in self.devices.items()],
            "interfaces": [dict(vars(row)) for row in self.engine.interface_statistics()],
        }

    def program_drops(self) -> list[dict[str, Any]]:
        """Return packets by the drop site's description, for each device that runs a program."""
        return [
            {"device_id": each, "packets": {str(site): count for site, count in device.program_drops().items()}}
            for each, device in self.devices.items()
        ]

    def classes(self) -> dict[str, Any]:
        """Return links, the fields of LinkClasses for each direction, and devices, those of DeviceClasses."""
        links = [dict(vars(row)) for row in self.engine.link_classes()]
        counted = {each: device.classes() for each, device in self.devices.items()} if links else {}
        return {"links": links, "devices": [{"device_id": each, **vars(row)} for each, row in counted.items()]}

    # ---- Captures and records ----

    def start_capture(self, capture: CaptureConfig) -> None:
        """Start a capture.

        Raises:
            UserError: The file cannot be written, or is being written already.
        """
        if capture.file in self._captures:
            raise UserError(f"{capture.file} is being written already")
        if capture.interfaces:
            made = self.engine.capture_interfaces(capture.file, capture.interfaces)
        else:
            made = self.engine.capture(capture.file, capture.ports)
        made.limit(capture.packets, capture.seconds)
        self._captures[capture.file] = made

    def captures(self) -> list[dict[str, Any]]:
        """Return file, packets so far, and whether it takes no more (over), of each that was not stopped."""
        return [
            {"file": str(file), "packets": capture.packets, "over": capture.is_over}
            for file, capture in self._captures.items()
        ]

    def stop_capture(self, file: Path) -> int:
        """Stop a capture and return how many packets the file holds."""
        capture = self._captures.pop(file, None)
        if capture is None:
            raise ValueError("there is no capture to that file")
        return capture.close()

    def records(self, file: Path) -> dict[str, Any]:
        """Write what programs did since the last call to a file, and return what it takes to read that.

        See insight/recorder.py. {"lost": True}: it was too much to keep.
        """
        if self.recorder is None:
            raise ValueError("nothing is recorded: the configuration does not say so")
        try:
            return self.recorder.write(file)
        except MemoryError:
            return {"lost": True}

    # ---- Faults ----

    def restart_switch(self, device_id: int) -> None:
        """Let a P4 switch lose program, tables, registers and P4Runtime streams, as when its power failed."""
        if device_id not in self.devices:
            raise UserError(f"there is no P4 switch with device id {device_id}")
        if self.recorder is not None:
            self.recorder.before_restart()
        self._restart(device_id)

    def close(self) -> None:
        """Give everything back. May be repeated."""
        self.engine.close()
        if self.recorder is not None:
            self.recorder.close()
