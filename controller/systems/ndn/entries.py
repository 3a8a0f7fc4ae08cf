"""Table entries of p4src/ndn.p4, and names as they stand in them."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from itertools import combinations
from urllib.parse import unquote_to_bytes

from gradbed.common.errors import UserError
from gradbed.controller.planning.plan import MulticastGroup, TableEntry, Ternary
from gradbed.formats.ndn import MOST_COMPONENT_BYTES, MOST_COMPONENTS, job_component
from gradbed.formats.tlv import generic

# ---- Names as p4src/include/ndn/names.p4 sees them: 64 bits for each prefix ----


_CRC16_POLYNOMIAL = 0xA001  # 0x8005 mirrored (CRC-16/ARC)


def components(uri: str) -> tuple[bytes, ...]:
    """Return the generic components of "/training/h1", percent-decoded (NDN Packet Format, "NDN URI Scheme").

    Raises:
        UserError: A router cannot hold the name.
    """
    parts = tuple(unquote_to_bytes(part) for part in uri.strip("/").split("/"))
    if not uri.startswith("/") or not all(parts):
        raise UserError(f"{uri!r} is not a name such as /training/h1")
    if len(parts) > MOST_COMPONENTS or max(map(len, parts)) > MOST_COMPONENT_BYTES:
        raise UserError(
            f"the name {uri} is too long: routers take {MOST_COMPONENTS} components of {MOST_COMPONENT_BYTES} bytes"
        )
    return parts


def job_name(uri: str, job: int) -> str:
    """Return the name that a job gets in place of "/training/h1": "/training-7/h1"."""
    first, slash, rest = uri.lstrip("/").partition("/")
    return f"/{job_component(first, job)}{slash}{rest}"


def name_id(parts: Sequence[bytes]) -> int:
    """Return the identity of a name of generic components."""
    identity = 0
    for part in parts:
        data = identity.to_bytes(8, "big") + generic(part)
        identity = zlib.crc32(data) << 32 | _crc16(data) << 16 | _internet_checksum(data)
    return identity


def _crc16(data: bytes) -> int:
    rest = 0
    for byte in data:
        rest ^= byte
        for _ in range(8):
            rest = rest >> 1 ^ (_CRC16_POLYNOMIAL if rest & 1 else 0)
    return rest


def _internet_checksum(data: bytes) -> int:
    """RFC 1071."""
    padded = data + bytes(len(data) % 2)
    total = sum(int.from_bytes(padded[at : at + 2], "big") for at in range(0, len(padded), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


# ---- Entries ----


NDN_PROGRAM = "ndn"
MOST_PORTS = 16
"""Of a switch: port sets have 16 bits."""

_ALL = 0xFFFF
_WHOLE_ID = (1 << 64) - 1


def fib_entry(prefix: Sequence[bytes], port: int) -> TableEntry:
    """Interests whose name begins with the prefix leave by `port`, unless a longer prefix matches."""
    return TableEntry(
        table="fib",
        match={f"meta.id_{len(prefix)}": Ternary(value=name_id(prefix), mask=_WHOLE_ID)},
        action="towards",
        params={"port": port},
        priority=len(prefix),
    )


def port_set(ports: Iterable[int]) -> int:
    """Return ports as a bit mask, which is the number of the set's multicast group, too."""
    return sum(1 << (port - 1) for port in ports)


def ports_of(bits: int) -> tuple[int, ...]:
    return tuple(port for port in range(1, MOST_PORTS + 1) if bits >> (port - 1) & 1)


def group_of(bits: int) -> MulticastGroup:
    return MulticastGroup(id=bits, ports=ports_of(bits))


def one_set(bits: int) -> TableEntry:
    """Packets for these ports have a group."""
    return _set_entry(bits, _ALL, priority=2)


def all_sets_of(ports: Sequence[int]) -> tuple[list[TableEntry], list[MulticastGroup]]:
    """Return the group of every set of ports, and the one entry that announces them."""
    everything = port_set(ports)
    sets = [port_set(chosen) for size in range(1, len(ports) + 1) for chosen in combinations(ports, size)]
    return [_set_entry(0, _ALL & ~everything, priority=1)], [group_of(bits) for bits in sets]


def _set_entry(value: int, mask: int, priority: int) -> TableEntry:
    match = {"meta.ports": Ternary(value=value, mask=mask)} if mask else {}
    return TableEntry(table="port_sets", match=match, action="has_group", priority=priority)
