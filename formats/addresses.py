"""MAC and IP addresses as text, as numbers and as bytes."""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)


def _checked_mac(text: str) -> str:
    if not _MAC.fullmatch(text):
        raise ValueError(f"'{text}' is not a MAC address such as 02:00:00:00:00:01")
    return text


def _checked_ip(text: str) -> str:
    return str(ipaddress.IPv4Address(text))


Mac = Annotated[str, AfterValidator(_checked_mac)]
Ip = Annotated[str, AfterValidator(_checked_ip)]


class MulticastAddress(BaseModel, frozen=True):
    """A multicast group of hosts."""

    ip: Ip
    mac: Mac

    @classmethod
    def of(cls, ip: str) -> MulticastAddress:
        """With the MAC address that follows from the IP address."""
        return cls(ip=ip, mac=multicast_mac(ip))


def mac_bytes(mac: str) -> bytes:
    """02:00:00:00:00:01 as six bytes."""
    return bytes.fromhex(mac.replace(":", ""))


def mac_number(mac: str) -> int:
    """The 48-bit number of 02:00:00:00:00:01."""
    return int.from_bytes(mac_bytes(mac), "big")


def mac_text(number: int) -> str:
    return number.to_bytes(6, "big").hex(":")


@functools.lru_cache(maxsize=1 << 16)
def ip_integer(ip: str) -> int:
    """10.0.0.1 as an integer. Kept: each of a thousand workers asks for those of all others."""
    return int(ipaddress.IPv4Address(ip))


def multicast_mac(ip: str) -> str:
    """RFC 1112: 01:00:5e and the low 23 bits of the IP address."""
    return mac_text(0x01005E000000 | ip_integer(ip) & 0x7FFFFF)
