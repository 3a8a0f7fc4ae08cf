"""What the programs of the systems are sent: entries that make sense, frames that look for trouble."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from finsy.proto import p4r

from gradbed.controller.systems.ndn.entries import name_id
from gradbed.formats import tlv
from gradbed.hosts.systems.ndn.packets import EMPTY_BODY, VersionHead, body, data_frame, ethernet
from tests.p4.differential import MARKER, UDP, Case, Names, ipv4_marker, is_ipv4_marker, to_marker
from tests.p4.random_entries import balanced_ports
from tests.unit.p4runtime.client import action, entry, exact, lpm, ternary
from tools.recordings.random_inputs import PORTS, canonical, small

P4_SOURCES = Path(__file__).resolve().parents[2] / "p4src"
ALL_PORTS = range(1, PORTS + 1)


def ipv4_frame(rng: random.Random, payload: bytes, dst_ports: Sequence[int], dst_mac: bytes = bytes(6)) -> bytes:
    """UDP, or something else, to one of the addresses that random entries have."""
    udp = struct.pack(">HHHH", rng.randrange(4), rng.choice(dst_ports), 8 + len(payload), 0)
    protocol = rng.choice([UDP, UDP, UDP, UDP, 6])
    first = rng.choice([0x45, 0x45, 0x45, 0x45, 0x45, 0x45, 0x46])
    ttl, destination = rng.choice([64, 64, 64, 2, 1, 0]), small(rng, 32)
    header = struct.pack(
        ">BBHHHBBHII",
        first,
        rng.randrange(4),
        28 + len(payload),
        0,
        0,
        ttl,
        protocol,
        0,
        rng.randrange(4),
        destination,
    )
    return dst_mac + bytes(6) + b"\x08\0" + header + udp + payload


def marker_routes(names: Names, *more: bytes) -> list[Any]:
    """Of tables named ipv4_routes, whose action `forward` takes a port and a MAC address."""
    return [
        entry(names["ipv4_routes"], to_marker(1, port), action=action(names["forward"], canonical(port), b"\x02"))
        for port in ALL_PORTS
    ]


def groups(most: int = 5) -> list[Any]:
    """1 to 3 are for a port each, 4 and 5 for several."""
    ports = {1: [1], 2: [2], 3: [3], 4: [1, 2], 5: [3, 1, 2]}
    return [
        p4r.MulticastGroupEntry(
            multicast_group_id=number,
            replicas=[p4r.Replica(egress_port=port, instance=port) for port in ports[number]],
        )
        for number in range(1, most + 1)
    ]


# ---- Multicast of coded packets, compressed gradients, plain forwarding ----

CODED_BITS = 64
CODED_PORT = 0x4743  # of compressed gradients, too


def routes_and_groups(names: Names) -> list[Any]:
    return [*marker_routes(names), *groups()]


def coded_frame(rng: random.Random) -> bytes:
    """By bit string along one of a few trees, or by address; requests, repairs and loans."""
    header = struct.pack(
        ">BBHHHIHH", rng.choice([1, 1, 1, 1, 2]), rng.randrange(16), rng.randrange(4), rng.randrange(5), 1,
        rng.getrandbits(32), rng.randrange(3), 3,
    )  # fmt: skip
    payload = header + small(rng, CODED_BITS).to_bytes(CODED_BITS // 8, "big") + rng.randbytes(rng.randrange(40))
    return ipv4_frame(rng, payload, [CODED_PORT, CODED_PORT, CODED_PORT, 1])


def compression_entities(names: Names) -> list[Any]:
    """One port marks all packets that take part, one none: what waits between is a matter of moments."""
    thresholds = [
        entry(names["congestion_thresholds"], exact(1, canonical(port)), action=action(names["mark_above"], packets))
        for port, packets in ((1, b"\0"), (2, canonical((1 << 19) - 1)))
    ]
    return [*routes_and_groups(names), *thresholds]


def part_frame(rng: random.Random) -> bytes:
    part = struct.pack(">BBHI", rng.choice([1, 1, 1, 2]), rng.randrange(8), rng.randrange(4), rng.getrandbits(32))
    return ipv4_frame(rng, part + rng.randbytes(rng.randrange(60)), [CODED_PORT, CODED_PORT, 1])


# ---- The optical and electrical interconnect ----

SELF_MAC = bytes.fromhex("020100000001")
UNITS = 4


def interconnect_marker(port: int, came_by: int) -> bytes:
    return SELF_MAC + ipv4_marker(port, came_by)[6:]


def interconnect_entities(names: Names) -> list[Any]:
    """M(0,0) of four units, each wavelength a channel. No queue is ever loaded here, so the rules are by hash, not by
    load, where a coin would decide; a flowlet lasts for good."""
    forever_us, by_hash = canonical(1 << 40), b"\x03"
    role = action(names["i_am"], bytes([UNITS]), b"\0", b"\0", by_hash, by_hash, b"\x01", forever_us, b"\x05")
    entities = [entry(names["self"], exact(1, SELF_MAC), action=role)]
    entities += [
        entry(
            names["destinations"],
            to_marker(1, port),
            action=action(names["straight"], canonical(port), b"\x02", b"\0"),
        )
        for port in ALL_PORTS
    ]
    for table, call in (("mesh_ways", "mesh"), ("first_lights", "first_light"), ("second_lights", "second_light")):
        entities += _ways(names, table, names[call])
    return entities


def _ways(names: Names, table: str, call: int) -> list[Any]:
    """Keys 0 to 3: a group of all ports, or one of them."""
    to_group = p4r.TableAction(action_profile_group_id=1)
    return [
        *balanced_ports(names[f"{table}.profile"], call, b"\x07"),
        *(entry(names[table], exact(1, canonical(key)), action=to_group) for key in (0, 1)),
        *(
            entry(names[table], exact(1, canonical(key)), action=p4r.TableAction(action_profile_member_id=key))
            for key in (2, 3)
        ),
    ]


def hybrid_frame(rng: random.Random) -> bytes:
    """For this switch as a rule, and as light now and then."""
    mac = rng.choice([SELF_MAC, SELF_MAC, SELF_MAC, SELF_MAC, rng.randbytes(6)])
    frame = ipv4_frame(rng, rng.randbytes(rng.randrange(40)), range(4), mac)
    light = b"\x81\0" + rng.randrange(6).to_bytes(2, "big")
    return frame[:12] + light + frame[12:] if rng.random() < 0.3 else frame


def optical_marker(port: int, came_by: int) -> bytes:
    """The wavelength that leads from one fibre to the other."""
    return bytes(12) + b"\x81\0" + bytes([0, (port - came_by) % PORTS]) + bytes(26) + MARKER + bytes(20)


def light_frame(rng: random.Random) -> bytes:
    kind = rng.choice([b"\x81\0", b"\x81\0", b"\x81\0", b"\x08\0"])
    return (
        rng.randbytes(12) + kind + rng.choice([rng.randrange(5), rng.getrandbits(16)]).to_bytes(2, "big") + bytes(30)
    )


# ---- The router of training traffic ----

FIRST_MULTICAST = 0xE000_0001
NEXT_HOP_SET = b"\x01"


def training_entities(names: Names) -> list[Any]:
    """Ports as hosts and as next hops of one set, which packets to 0.0.0.1 to 0.0.0.5 choose from, each in another
    way; what is drawn at random is drawn from one alone. One port marks all packets that take part, one those that
    find any, one none."""
    several, one, seed, forever_us = canonical(PORTS), b"\x01", b"\x07", canonical(1 << 40)
    choices = [
        action(names["ecmp"], NEXT_HOP_SET, several, seed),
        action(names["round_robin_spraying"], NEXT_HOP_SET, several),
        action(names["least_loaded"], NEXT_HOP_SET, one),
        action(names["flowlets"], NEXT_HOP_SET, one, seed, forever_us),
        action(names["random_spraying"], NEXT_HOP_SET, one),
    ]
    ports = [canonical(port) for port in ALL_PORTS] + [b"\0"] * (16 - PORTS)
    set_and_block = (exact(1, NEXT_HOP_SET), exact(2, b"\0"))
    marks = [
        ("mark_above", [b"\0"]),
        ("mark_between", [b"\0", b"\x01", canonical((1 << 32) - 1)]),
        ("mark_above", [canonical((1 << 19) - 1)]),
    ]
    return [
        *(
            entry(
                names["destinations"], to_marker(1, port), action=action(names["forward"], canonical(port), b"\x02")
            )
            for port in ALL_PORTS
        ),
        *(
            entry(names["destinations"], lpm(1, canonical(number), 32), action=choice)
            for number, choice in enumerate(choices, 1)
        ),
        *(
            entry(
                names["next_hops_of_sets"],
                exact(1, NEXT_HOP_SET),
                exact(2, canonical(place)),
                action=action(names["forward"], canonical(port), canonical(port)),
            )
            for place, port in enumerate(ALL_PORTS)
        ),
        entry(names["candidates"], *set_and_block, action=action(names["among"], *ports)),
        *(
            entry(names["congestion_thresholds"], exact(1, canonical(port)), action=action(names[name], *params))
            for port, (name, params) in enumerate(marks, 1)
        ),
        *(
            entry(
                names["multicast_routes"],
                exact(1, canonical(FIRST_MULTICAST + group)),
                action=action(names["replicate"], canonical(group)),
            )
            for group in range(1, 6)
        ),
        *groups(),
    ]


def training_frame(rng: random.Random) -> bytes:
    """To one of the destinations, or to a group; from any of four hosts and ports, so that flows meet."""
    frame = bytearray(ipv4_frame(rng, rng.randbytes(rng.randrange(40)), [4791, 4791, 1]))
    if rng.random() < 0.8:
        address = rng.choice([rng.randrange(7), rng.randrange(7), FIRST_MULTICAST + rng.randrange(7)])
        frame[30:34] = address.to_bytes(4, "big")
    return bytes(frame)


# ---- Named data ----

LANES = 64
PUBLISHERS = (b"p", b"q", b"long" * 8)
LIFETIME_MS = {b"insert": 10_000_000, b"delete": 12_000_000}
OTHER_LIFETIME_MS = 14_000_000
NDN_HEADER = ethernet(bytes(6))


def ndn_entities(names: Names) -> list[Any]:
    """Each publisher at a port, all at another by a shorter prefix, and every set of ports."""
    whole = b"\xff" * 8
    fib = [
        entry(
            names["fib"],
            ternary(len(prefix), canonical(name_id(prefix)), whole),
            action=action(names["towards"], canonical(port)),
            priority=len(prefix),
        )
        for prefix, port in [
            ((b"t",), 3),
            *(((b"t", publisher), port) for port, publisher in enumerate(PUBLISHERS, 1)),
        ]
    ]
    everything = (1 << PORTS) - 1
    sets = entry(
        names["port_sets"],
        ternary(1, b"\0", canonical(0xFFFF & ~everything)),
        action=action(names["has_group"]),
        priority=1,
    )
    copies = [
        p4r.MulticastGroupEntry(
            multicast_group_id=number,
            replicas=[p4r.Replica(egress_port=port, instance=0) for port in ALL_PORTS if number >> port - 1 & 1],
        )
        for number in range(1, everything + 1)
    ]
    return [*marker_routes(names), *fib, sets, *copies]


def ndn_frame(rng: random.Random) -> bytes:
    """Subscriptions, pushes, requests and plain names, of few publishers, so that they meet; and what is no packet.

    Interests last for longer than any run: when they end is a matter of the switch's clock. An insertion, a deletion
    and the name itself meet in one row of two, where the one that ends first is evicted: which one, no clock decides.
    """
    publisher, training = rng.choice(PUBLISHERS), rng.choice([b"t", b"u"])
    operation = rng.choice([b"insert", b"insert", b"delete", b"distribute", b"distribute", b"", b""])
    parts = [operation, publisher, training] if operation else [training, publisher]
    if operation in (b"distribute", b"") and rng.random() < 0.8:
        parts += [b"v%d" % rng.randrange(3), b"s%d" % rng.randrange(2)]
    parts += [b"more"] * rng.choice([0, 0, 0, 0, 0, 1, 3, 5])
    name = [tlv.generic(part) for part in parts]
    if rng.random() < 0.5:
        frame = _interest(rng, name, LIFETIME_MS.get(operation, OTHER_LIFETIME_MS))
    else:
        lanes = _lanes(rng)
        frame = data_frame(
            NDN_HEADER, name, rng.choice([lanes, lanes, lanes, EMPTY_BODY, tlv.tlv(tlv.CONTENT, bytes(20))])
        )
    if rng.random() < 0.1:
        return frame[: rng.randrange(20, len(frame))]
    return NDN_HEADER + rng.randbytes(rng.randrange(20, 60)) if rng.random() < 0.05 else frame


def _interest(rng: random.Random, name: Sequence[bytes], lifetime_ms: int) -> bytes:
    fresh = tlv.tlv(tlv.MUST_BE_FRESH, b"") if rng.random() < 0.2 else b""
    # Always one: a router draws what is missing by chance.
    nonce = tlv.tlv(tlv.NONCE, rng.choice([bytes(4), rng.randbytes(4)]))
    hops = tlv.tlv(tlv.HOP_LIMIT, bytes([rng.choice([0, 1, 2, 32, 255])])) if rng.random() < 0.8 else b""
    lifetime = tlv.tlv(tlv.LIFETIME, tlv.integer(lifetime_ms))
    return NDN_HEADER + tlv.tlv(tlv.INTEREST, tlv.name_tlv(name) + fresh + nonce + lifetime + hops)


def _lanes(rng: random.Random) -> bytes:
    import numpy as np

    lanes = np.frombuffer(rng.randbytes(4 * LANES), np.int32)
    return body(VersionHead(rng.choice([0.0, 1.5, float("inf")])), lanes)


EVERYTHING = (1 << 64) - 1

SYSTEM_CASES = {
    "ndn": Case(
        P4_SOURCES / "ndn.p4",
        ipv4_marker,
        is_ipv4_marker,
        ndn_entities,
        defines=(
            ("LANES", str(LANES)), ("CONTENTS", "8"), ("SUBSCRIPTIONS", "4"), ("EPOCH_SHIFT", "40"),
            # A repetition goes on again after so long; rows are many, since the one that ends first would be evicted.
            ("REPEAT_TICKS", "0xFFFF"), ("PENDING", "4096"),
        ),
        frame=ndn_frame,
        given=frozenset({"fib", "port_sets"}),
        undamaged=True,
        # Of `end ++ ports ++ went_on` the ports are no time.
        time={"pending_state": EVERYTHING & ~0xFFFF0000},
    ),
    "multicast": Case(
        P4_SOURCES / "multicast.p4",
        ipv4_marker,
        is_ipv4_marker,
        routes_and_groups,
        defines=(("BITS", str(CODED_BITS)),),
        frame=coded_frame,
    ),
    "compression": Case(
        P4_SOURCES / "compression.p4",
        ipv4_marker,
        is_ipv4_marker,
        compression_entities,
        frame=part_frame,
        given=frozenset({"congestion_thresholds"}),
        time={"longest_queue": EVERYTHING},
    ),
    "interconnect": Case(
        P4_SOURCES / "interconnect.p4",
        interconnect_marker,
        is_ipv4_marker,
        interconnect_entities,
        frame=hybrid_frame,
        given=frozenset({"self"}),
        time={"flowlet_seen_us": EVERYTHING},
    ),
    "training": Case(
        P4_SOURCES / "training.p4",
        ipv4_marker,
        is_ipv4_marker,
        training_entities,
        frame=training_frame,
        given=frozenset(
            {"destinations", "next_hops_of_sets", "candidates", "congestion_thresholds", "multicast_routes"}
        ),
        time={"flowlet_seen_us": EVERYTHING, "waiting": EVERYTHING, "longest_queue": EVERYTHING},
    ),
    "optical": Case(
        P4_SOURCES / "optical.p4",
        optical_marker,
        lambda frame: MARKER in frame,
        lambda names: [],
        defines=(("UNITS", str(PORTS)), ("CHANNELS", "1")),
        frame=light_frame,
    ),
    "forward": Case(
        P4_SOURCES / "forward.p4",
        ipv4_marker,
        is_ipv4_marker,
        routes_and_groups,
        frame=lambda rng: ipv4_frame(rng, rng.randbytes(rng.randrange(40)), range(4)),
    ),
}  # fmt: skip
