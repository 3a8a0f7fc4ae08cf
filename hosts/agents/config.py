"""Configs of agents, which are checked before an agent starts, and the addresses in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.problems import in_words
from gradbed.formats.addresses import Ip, Mac
from gradbed.topo.graph import Host, Topology

Model = TypeVar("Model", bound=BaseModel)


class AgentConfig(BaseModel):
    """An agent's config, or a value in one: frozen, and without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def parse_config(model: type[Model], config: Any) -> Model:
    """Return a checked config.

    Args:
        model: The config's type.
        config: JSON text, a decoded JSON object, or such a value itself, which many agents may share.

    Raises:
        UserError: a field is wrong.
    """
    if isinstance(config, BaseModel) and not isinstance(config, model):
        config = config.model_dump(mode="json")
    try:
        if isinstance(config, (str, bytes)):
            return model.model_validate_json(config)
        return model.model_validate(config)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "as a whole"
        raise UserError(f"config, {where}: {in_words(first)}") from None


# ---- Addresses ----


Address = TypeVar("Address", bound="AgentAddress")


class AgentAddress(AgentConfig):
    """The address of an agent."""

    name: str
    ip: Ip
    mac: Mac
    gateway_mac: Mac
    """MAC address of the edge switch, to which all its frames go."""
    on_link: bool = False
    """Whether frames to other agents go by their own MAC addresses instead."""

    @classmethod
    def of(cls: type[Address], host: Host, **more: Any) -> Address:
        """Return the address of an agent on a host of the network."""
        return cls(name=host.name, ip=host.ip, mac=host.mac, gateway_mac=host.gateway_mac, **more)

    def mac_towards(self, other: AgentAddress) -> str:
        """Return the destination MAC address of frames to another agent."""
        return other.mac if self.on_link else self.gateway_mac


class WorkerAddress(AgentAddress):
    """The address of a worker."""

    index: int = Field(ge=0)
    """Place of the worker among the workers of its job."""


def worker_addresses(topology: Topology, hosts: Sequence[str]) -> tuple[WorkerAddress, ...]:
    """Return the addresses of workers that live on these hosts, in their order."""
    return tuple(WorkerAddress.of(topology.host(name), index=index) for index, name in enumerate(hosts))
