"""What a fabric process is made of: the JSON file on its command line."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from switch.errors import UserError
from switch.link import LinkModel


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SwitchConfig(_Part):
    """A switch; device_id is also its P4Runtime device id."""

    device_id: int = Field(ge=0, lt=2**64)
    name: str = ""
    cpu_port: int = Field(default=510, ge=0, le=510)


class InterfaceConfig(_Part):
    """A network interface as a port. The link model applies to both directions."""

    device_id: int
    port: int = Field(ge=0, le=510)
    interface: str
    link: LinkModel = LinkModel()
    seed: int = 0


class LinkConfig(_Part):
    """A link in memory between two ports, each [device id, port]."""

    a: tuple[int, int]
    b: tuple[int, int]
    link: LinkModel = LinkModel()
    seed: int = 0


class FabricConfig(_Part):
    """grpc_addresses: "host:port" (port 0: any free one) or "unix:/path"."""

    grpc_addresses: tuple[str, ...] = ()
    switches: tuple[SwitchConfig, ...]
    interfaces: tuple[InterfaceConfig, ...] = ()
    links: tuple[LinkConfig, ...] = ()


def read_fabric_config(path: Path) -> FabricConfig:
    """Raises UserError with one line when the file cannot be read or says something impossible."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read the fabric's configuration {path}: {error.strerror}") from None
    try:
        return FabricConfig.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{path}: {place + ': ' if place else ''}{first['msg']}") from None
