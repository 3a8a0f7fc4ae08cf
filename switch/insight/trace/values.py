"""Field values as people write them: addresses as addresses, identifiers in hexadecimal, amounts in decimal."""

from __future__ import annotations

import ipaddress
import re

from gradbed.switch.insight.packet_state import Value
from gradbed.switch.insight.trace.events import EntryPart

_MAC_BITS, _IPV4_BITS, _IPV6_BITS = 48, 32, 128
_ADDRESS = re.compile(r"(addr|address|ip|ipv4|ipv6|src|dst)\d*$", re.IGNORECASE)
_IDENTIFIER = re.compile(r"(type|checksum|csum|flags|mask|bitmap|magic|owner|hash)\w*$", re.IGNORECASE)
_LONG_BITS = 32


def value_text(value: Value, width: int, name: str) -> str:
    """name: of the field, the last part of which decides among the forms. width: bits; 0 is a Boolean."""
    if isinstance(value, bytes):
        return value.hex() or "(empty)"
    if width == 0:
        return "true" if value else "false"
    last = name.rsplit(".", 1)[-1]
    if width == _MAC_BITS:
        return value.to_bytes(6, "big").hex(":")
    if width == _IPV4_BITS and value >= 0 and _ADDRESS.search(last):
        return str(ipaddress.IPv4Address(value))
    if width == _IPV6_BITS and value >= 0 and _ADDRESS.search(last):
        return str(ipaddress.IPv6Address(value))
    if width > 1 and value > 9 and (width > _LONG_BITS or _IDENTIFIER.search(last)):
        return f"0x{value:0{(width + 3) // 4}x}"
    return str(value)


def match_text(part: EntryPart, name: str) -> str:
    """How an entry matches a field: VALUE, VALUE/BITS, VALUE &&& MASK, LOW..HIGH, or _ for whatever."""
    value = value_text(part.value, part.width, name)
    if part.prefix_bits is not None:
        return f"{value}/{part.prefix_bits}"
    if part.mask is not None:
        if part.mask == 0:
            return "_"
        full = part.mask == (1 << part.width) - 1
        return value if full else f"{value} &&& 0x{part.mask:0{(part.width + 3) // 4}x}"
    return value if part.high is None else f"{value}..{value_text(part.high, part.width, name)}"
