"""Where agents live, as their descriptions tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import Field

from gradbed.formats.addresses import Ip, Mac
from gradbed.hosts.agents.description import Description
from gradbed.topo.graph import Host, Topology

Address = TypeVar("Address", bound="AgentAddress")


class AgentAddress(Description):
    """Where an agent lives. gateway_mac: of the edge switch, to which all its frames go; on_link: but to other agents
    they go by these's own MAC addresses."""

    name: str
    ip: Ip
    mac: Mac
    gateway_mac: Mac
    on_link: bool = False

    @classmethod
    def of(cls: type[Address], host: Host, **more: Any) -> Address:
        """On a host of the network."""
        return cls(name=host.name, ip=host.ip, mac=host.mac, gateway_mac=host.gateway_mac, **more)

    def mac_towards(self, other: AgentAddress) -> str:
        """Where frames to another one go."""
        return other.mac if self.on_link else self.gateway_mac


class WorkerAddress(AgentAddress):
    """index: the worker's place among the workers of its job."""

    index: int = Field(ge=0)


def worker_addresses(topology: Topology, hosts: Sequence[str]) -> tuple[WorkerAddress, ...]:
    """Of workers that live on these hosts, in their order."""
    return tuple(WorkerAddress.of(topology.host(name), index=index) for index, name in enumerate(hosts))
