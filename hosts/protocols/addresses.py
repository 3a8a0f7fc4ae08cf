"""MAC and IP addresses in descriptions, and whose they are."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from hosts.agents.description import Description

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)


def _checked_mac(text: str) -> str:
    if not _MAC.fullmatch(text):
        raise ValueError(f"'{text}' is not a MAC address such as 02:00:00:00:00:01")
    return text


def _checked_ip(text: str) -> str:
    return str(ipaddress.IPv4Address(text))


Mac = Annotated[str, AfterValidator(_checked_mac)]
Ip = Annotated[str, AfterValidator(_checked_ip)]


def mac_bytes(mac: str) -> bytes:
    """02:00:00:00:00:01 as six bytes."""
    return bytes.fromhex(mac.replace(":", ""))


def mac_array(mac: str) -> NDArray[np.uint8]:
    """A MAC address as hosts.protocols.datagram_frames.pack_datagrams takes it."""
    return np.frombuffer(mac_bytes(mac), np.uint8)


def ip_integer(ip: str) -> int:
    """10.0.0.1 as an integer."""
    return int(ipaddress.IPv4Address(ip))


class AgentAddress(Description):
    """Where an agent lives. gateway_mac: of the edge switch, to which all its frames go; on_link: but to other agents
    they go by these's own MAC addresses."""

    name: str
    ip: Ip
    mac: Mac
    gateway_mac: Mac
    on_link: bool = False

    def mac_towards(self, other: AgentAddress) -> str:
        """Where frames to another one go."""
        return other.mac if self.on_link else self.gateway_mac


class WorkerAddress(AgentAddress):
    """index: the worker's place among the workers of its job."""

    index: int = Field(ge=0)
