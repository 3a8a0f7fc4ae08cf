"""Table entries of p4src/ndn.p4."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from gradbed.controller.planning.plan import MulticastGroup, TableEntry, Ternary
from gradbed.controller.systems.ndn.names import name_id

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
    """As a bit mask, which is the number of the set's multicast group, too."""
    return sum(1 << (port - 1) for port in ports)


def ports_of(bits: int) -> tuple[int, ...]:
    return tuple(port for port in range(1, MOST_PORTS + 1) if bits >> (port - 1) & 1)


def group_of(bits: int) -> MulticastGroup:
    return MulticastGroup(id=bits, ports=ports_of(bits))


def one_set(bits: int) -> TableEntry:
    """Packets for these ports have a group."""
    return _set_entry(bits, _ALL, priority=2)


def all_sets_of(ports: Sequence[int]) -> tuple[list[TableEntry], list[MulticastGroup]]:
    """The group of every set of ports, and the one entry that says so."""
    everything = port_set(ports)
    sets = [port_set(chosen) for size in range(1, len(ports) + 1) for chosen in combinations(ports, size)]
    return [_set_entry(0, _ALL & ~everything, priority=1)], [group_of(bits) for bits in sets]


def _set_entry(value: int, mask: int, priority: int) -> TableEntry:
    match = {"meta.ports": Ternary(value=value, mask=mask)} if mask else {}
    return TableEntry(table="port_sets", match=match, action="has_group", priority=priority)
