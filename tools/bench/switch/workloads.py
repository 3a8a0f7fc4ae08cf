"""Loads for the switch: frames, the program that they cross, and its table entries."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gradbed.controller.planning.plan import Lpm, SwitchPlan, TableEntry, Ternary
from gradbed.experiments.programs import P4_SOURCES
from tools.bench.switch.packet_io import Cycle

OWN_PROGRAMS = Path(__file__).parent / "programs"

LEFT_PORT, RIGHT_PORT = 1, 2
"""Of every switch: the load goes from left to right."""

FRAME_BYTES = 64
FLOW_SOURCE, FLOW_DESTINATION = 0x0A000001, 0x0A010002
SWITCH_MAC, NEXT_MAC = 0x020000000001, 0x020000000002
UDP = 17

CYCLE_FRAMES = 4096
"""Of the loads that spread over a large table."""


@dataclass(frozen=True)
class Workload:
    """Frames through a program."""

    name: str
    source: Path
    cycle: Cycle
    plan: Callable[[bool], SwitchPlan]
    """Returns what one switch of the path holds; the argument is whether it is the last one."""
    defines: Mapping[str, str] = field(default_factory=dict)

    @property
    def program(self) -> str:
        """The name of the program."""
        return self.source.stem


# ---- Programs of no system ----


def router() -> Workload:
    """Return one flow that one route matches."""
    return _router("router.p4", [(FLOW_DESTINATION & 0xFFFFFF00, 24)], [FLOW_DESTINATION])


# ---- Large tables ----


def small_router() -> Workload:
    """Return as many destinations as `large_router` has, and one route for all."""
    return _router("1 route", [(0, 0)], _addresses(random.Random(2)))


def large_router(prefixes: int) -> Workload:
    """Return random prefixes, most of 16 to 24 bits, nearly half of 24, as in BGP tables, and a default route."""
    rng = random.Random(1)
    chosen = {(0, 0)}
    lengths = [*range(8, 33)]
    weights = [1 if bits < 16 or bits > 24 else 8 if bits < 24 else 60 for bits in lengths]
    while len(chosen) < prefixes:
        bits = rng.choices(lengths, weights)[0]
        chosen.add((rng.getrandbits(bits) << (32 - bits), bits))
    return _router(f"{prefixes} routes", sorted(chosen), _addresses(random.Random(2)))


def small_acl() -> Workload:
    """Return as many flows as `large_acl` has, and one rule for all."""
    return _acl("1 rule", 1)


def large_acl(rules: int) -> Workload:
    """Return random rules as packet filters have them: prefixes of both addresses, a protocol or any, ports."""
    return _acl(f"{rules} rules", rules)


def _router(name: str, prefixes: list[tuple[int, int]], destinations: list[int]) -> Workload:
    def plan(_last: bool) -> SwitchPlan:
        routes = [
            TableEntry(
                table="routes",
                match={"hdr.ipv4.dst_addr": Lpm(value=value, prefix_bits=bits)} if bits else {},
                action="set_next_hop",
                params={"next_hop": 1},
            )
            for value, bits in prefixes
        ]
        hop = TableEntry(
            table="next_hops",
            match={"meta.next_hop": 1},
            action="forward",
            params={"port": RIGHT_PORT, "src_mac": SWITCH_MAC, "dst_mac": NEXT_MAC},
        )
        return SwitchPlan.of("router", [*routes, hop], [])

    frames = tuple(_udp_frame(destination=destination) for destination in destinations)
    return Workload(name, P4_SOURCES / "router.p4", Cycle(frames, len(frames)), plan)


def _acl(name: str, rules: int) -> Workload:
    rng = random.Random(3)

    def prefix(width: int, bits: int) -> Ternary | None:
        mask = (1 << width) - (1 << width - bits)
        return Ternary(value=rng.getrandbits(width) & mask, mask=mask) if bits else None

    def rule(priority: int) -> TableEntry:
        match = {
            "hdr.ipv4.src_addr": prefix(32, rng.choice([0, rng.randint(8, 24), rng.randint(16, 32), 32])),
            "hdr.ipv4.dst_addr": prefix(32, rng.choice([rng.randint(8, 24), rng.randint(16, 32), 32])),
            "hdr.ipv4.protocol": rng.choice([None, Ternary(value=UDP, mask=0xFF), Ternary(value=6, mask=0xFF)]),
            "hdr.ports.src_port": prefix(16, rng.choice([0, 0, 0, 16])),
            "hdr.ports.dst_port": prefix(16, rng.choice([0, 6, rng.randint(1, 15), 16, 16])),
        }
        return TableEntry(
            table="rules",
            match={name: how for name, how in match.items() if how is not None},
            action="permit",
            params={"port": RIGHT_PORT},
            priority=priority,
        )

    last = TableEntry(table="rules", match={}, action="permit", params={"port": RIGHT_PORT}, priority=1)
    entries = [last, *(rule(priority) for priority in range(2, rules + 1))]
    frames = tuple(_udp_frame_of_rule(rng, rng.choice(entries)) for _ in range(CYCLE_FRAMES))

    def plan(_last: bool) -> SwitchPlan:
        return SwitchPlan.of("acl", entries, [])

    return Workload(name, OWN_PROGRAMS / "acl.p4", Cycle(frames, len(frames)), plan)


def _udp_frame_of_rule(rng: random.Random, rule: TableEntry) -> bytes:
    """Return a UDP frame that this rule matches (unless it is for TCP alone), random where the rule allows any."""

    def draw(name: str, width: int) -> int:
        how = rule.match.get(name)
        if not isinstance(how, Ternary):
            return rng.getrandbits(width)
        return how.value | rng.getrandbits(width) & ~how.mask & (1 << width) - 1

    return _udp_frame(
        source=draw("hdr.ipv4.src_addr", 32),
        destination=draw("hdr.ipv4.dst_addr", 32),
        source_port=draw("hdr.ports.src_port", 16),
        destination_port=draw("hdr.ports.dst_port", 16),
    )


# ---- Frames ----


def _addresses(rng: random.Random) -> list[int]:
    return [rng.getrandbits(32) for _ in range(CYCLE_FRAMES)]


def _ethernet(ether_type: int, payload: bytes) -> bytes:
    return SWITCH_MAC.to_bytes(6, "big") + NEXT_MAC.to_bytes(6, "big") + struct.pack(">H", ether_type) + payload


def _udp_frame(
    source: int = FLOW_SOURCE, destination: int = FLOW_DESTINATION, source_port: int = 9, destination_port: int = 9
) -> bytes:
    """Return a frame of Ethernet, IPv4 and UDP, FRAME_BYTES long."""
    datagram = struct.pack(">HHHH", source_port, destination_port, FRAME_BYTES - 34, 0)
    header = struct.pack(">BBHHHBBHII", 0x45, 0, FRAME_BYTES - 14, 0, 0x4000, 64, UDP, 0, source, destination)
    header = header[:10] + struct.pack(">H", _checksum(header)) + header[12:]
    return _ethernet(0x0800, header + datagram).ljust(FRAME_BYTES, b"\0")


def _checksum(header: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF
