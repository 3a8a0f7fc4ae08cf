"""What a fabric process is made of: the JSON file on its command line."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem
from gradbed.switch.engine.capture import CaptureInterface
from gradbed.switch.engine.statistics import Direction
from gradbed.switch.server.addresses import OutsideAddress
from gradbed.topo.link import LinkModel


class Part(BaseModel):
    """A part of a configuration, or a command (fabric_commands.py)."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SwitchConfig(Part):
    """A switch; device_id is also its P4Runtime device id. The rest as in Engine.add_switch."""

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
    """What passes ports, each [device id, port, "in" or "out"], written to a pcap file from the beginning; or what
    passes interfaces, to a pcapng file. packets, seconds: when it ends by itself; None: never."""

    file: Path
    ports: tuple[tuple[int, int, Direction], ...] = ()
    interfaces: tuple[CaptureInterface, ...] = ()
    packets: int | None = Field(default=None, ge=1, lt=2**63)
    seconds: float | None = Field(default=None, gt=0)


class FabricConfig(Part):
    """grpc_addresses: "host:port" (port 0: any free one) or "unix:/path". outside: a further one. record: programs
    are built so that they report what they do, and that is kept (command records)."""

    grpc_addresses: tuple[str, ...] = ()
    outside: OutsideAddress | None = None
    switches: tuple[SwitchConfig, ...]
    interfaces: tuple[InterfaceConfig, ...] = ()
    links: tuple[LinkConfig, ...] = ()
    foreign_switches: tuple[ForeignSwitchConfig, ...] = ()
    wires: tuple[WireConfig, ...] = ()
    captures: tuple[CaptureConfig, ...] = ()
    record: Literal["points", "values"] | None = None


def first_mistake(error: ValidationError) -> str:
    """Return one line that says where the first mistake is, and what."""
    return first_problem(error)


def read_fabric_config(path: Path) -> FabricConfig:
    """Raises UserError with one line when the file cannot be read or says something impossible."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read the fabric's configuration {path}: {error.strerror}") from None
    try:
        return FabricConfig.model_validate_json(text)
    except ValidationError as error:
        raise UserError(f"{path}: {first_mistake(error)}") from None
