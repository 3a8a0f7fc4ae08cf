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
        """Return the address with the MAC address that follows from its IP address (RFC 1112)."""
        return cls(ip=ip, mac=multicast_mac(ip))


def mac_bytes(mac: str) -> bytes:
    """Return the six bytes of 02:00:00:00:00:01."""
    return bytes.fromhex(mac.replace(":", ""))


def mac_number(mac: str) -> int:
    """Return the 48-bit number of 02:00:00:00:00:01."""
    return int.from_bytes(mac_bytes(mac), "big")


def mac_text(number: int) -> str:
    """Return a MAC address in colon notation."""
    return number.to_bytes(6, "big").hex(":")


@functools.lru_cache(maxsize=1 << 16)
def ip_integer(ip: str) -> int:
    """Return 10.0.0.1 as an integer. Cached: each of a thousand workers asks for those of all others."""
    return int(ipaddress.IPv4Address(ip))


def multicast_mac(ip: str) -> str:
    """Return the multicast MAC address of an IP address: 01:00:5e and its low 23 bits (RFC 1112)."""
    return mac_text(0x01005E000000 | ip_integer(ip) & 0x7FFFFF)
