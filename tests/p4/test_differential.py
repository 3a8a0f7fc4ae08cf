"""Random packets and random table entries: what our switch does equals what BMv2 does, byte for byte, and what it
leaves in registers and counters; compiled by our compiler and by p4c."""

from __future__ import annotations

import functools
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from finsy.proto import p4r

from gradbed.switch.p4lang.p4c import find_p4c
from tests.emulation.sandboxed import in_sandbox
from tests.p4.differential import (
    MARKER,
    MARKER_NETWORK,
    MARKER_PROTOCOL,
    MARKER_SOURCE,
    UDP,
    Case,
    Names,
    Outputs,
    ipv4_marker,
    is_ipv4_marker,
    make_interfaces,
    outcome,
    to_marker,
)
from tests.p4.random_entries import balanced_ports
from tests.p4.switch_under_test import needs_bmv2
from tests.p4.system_cases import SYSTEM_CASES, ipv4_frame
from tests.unit.p4runtime.client import action, entry, exact, lpm, ternary
from tools.recordings.random_inputs import PORTS, canonical

pytestmark = pytest.mark.root

ROOT = Path(__file__).resolve().parents[2]
FRAMES = 200
NIGHTLY_FRAMES = 1_000  # for each of five seeds
NIGHTLY_TIMEOUT_S = 1_200.0
TOP_PRIORITY = 1 << 20
LANES = 32


def router_entities(names: Names) -> list[Any]:
    """Hosts 10.255.0.1 to 3, to which the markers go, and 0.0.0.1 to 3."""
    entities = []
    for port in range(1, PORTS + 1):
        hop, out = canonical(60000 + port), canonical(port)
        set_next_hop = action(names["set_next_hop"], hop)
        entities += [
            entry(names["routes"], to_marker(1, port), action=set_next_hop),
            entry(names["routes"], lpm(1, out, 32), action=set_next_hop),
            entry(names["next_hops"], exact(1, hop), action=action(names["forward"], out, b"\x01", b"\x02")),
        ]
    return entities


def acl_router_entities(names: Names) -> list[Any]:
    """Next hops 0 to 3 are members and a group of the selector; 60001 on are for the markers."""
    selector = balanced_ports(names["ecmp"], names["forward"], b"\x07")
    to_group = p4r.TableAction(action_profile_group_id=1)
    entities: list[Any] = [*selector, entry(names["nexthops"], exact(1, b"\0"), action=to_group)]
    for port in range(1, PORTS + 1):
        hop, member = canonical(60000 + port), p4r.TableAction(action_profile_member_id=port)
        entities += [
            entry(names["nexthops"], exact(1, canonical(port)), action=member),
            entry(names["nexthops"], exact(1, hop), action=member),
            entry(names["routes"], to_marker(1, port), action=action(names["set_nexthop"], hop)),
        ]
    source = ternary(2, canonical(MARKER_SOURCE), b"\xff\xff\xff\xff")
    spared = entry(
        names["acl"],
        source,
        exact(4, canonical(MARKER_PROTOCOL)),
        action=action(names["permit"], b"\x01"),
        priority=TOP_PRIORITY,
    )
    session = p4r.CloneSessionEntry(session_id=100, replicas=[p4r.Replica(egress_port=2, instance=1)])
    return [*entities, spared, session]


def acl_entities(names: Names) -> list[Any]:
    return [
        entry(
            names["rules"],
            ternary(1, canonical(MARKER_SOURCE), b"\xff\xff\xff\xff"),
            ternary(2, canonical(MARKER_NETWORK + port), b"\xff\xff\xff\xff"),
            action=action(names["permit"], canonical(port)),
            priority=TOP_PRIORITY,
        )
        for port in range(1, PORTS + 1)
    ]


JOBS, SWITCH_NUMBER, NEXT_SWITCH_NUMBER = (0x1001, 0x1002, 0x1003), 0x2001, 0x2002
RECLAIM_DISTANCE = 4096
SERVER_IP, JOB_IP = 0x0A000001, 0xEF001001  # 10.0.0.1, 239.0.16.1


def aggregation_entities(names: Names) -> list[Any]:
    """The switch is the designated one of three jobs, two of which share their slots. Sums go to the server at port
    1, or on by port 2 to the next switch; ACKs leave by ports 1 and 2."""
    destinations = [(MARKER_NETWORK + port, port) for port in range(1, PORTS + 1)] + [(SERVER_IP, 1)]
    routes = [
        entry(
            names["ipv4_routes"],
            lpm(1, canonical(destination), 32),
            action=action(names["forward"], canonical(port), b"\x02"),
        )
        for destination, port in destinations
    ]
    roles = [
        entry(
            names["roles"],
            exact(1, canonical(job)),
            action=action(
                names[policy], *(canonical(value) for value in (SWITCH_NUMBER, first_slot, slots, RECLAIM_DISTANCE))
            ),
        )
        for job, policy, first_slot, slots in (
            (JOBS[0], "aggregate_hashed", 0, 4),
            (JOBS[1], "aggregate_hashed", 0, 4),
            (JOBS[2], "aggregate_indexed", 4, 3),
        )
    ]
    tree = entry(names["multicast_routes"], exact(1, canonical(JOB_IP)), action=action(names["replicate"], b"\x01"))
    group = p4r.MulticastGroupEntry(
        multicast_group_id=1, replicas=[p4r.Replica(egress_port=port, instance=port) for port in (1, 2)]
    )
    steering = entry(
        names["designated_routes"],
        exact(1, canonical(NEXT_SWITCH_NUMBER)),
        action=action(names["towards_designated"], b"\x02"),
    )
    return [*routes, *roles, steering, tree, group]


def gradient_frame(rng: random.Random) -> bytes:
    """Of one of four workers and nine packet numbers, which compete for a few slots; some are resent, some ACKs, some
    NACKs, some too large to be added, and any bit may be set."""
    flags = rng.choice([0, 0, 0, 0, 0, 0, 1, 2, 2, 9, 0x10, 0x40, 0x40, rng.getrandbits(8)])
    lanes = 0 if flags & 9 == 9 else LANES
    length = 28 + 4 * lanes
    gradient = struct.pack(
        ">BBHIHHHHQI",
        2,
        flags,
        rng.choice(JOBS),
        rng.choice([*range(8), 5000]),
        rng.choice([SWITCH_NUMBER, SWITCH_NUMBER, SWITCH_NUMBER, 0]),
        rng.choice([2, 3]),
        rng.choice([NEXT_SWITCH_NUMBER, 0]),
        rng.choice([3, 4]),
        rng.choice([1, 2, 4, 8, 3, 0]),
        rng.choice([0, 1, 1 << 20, 1 << 30, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]),
    )
    udp = struct.pack(">HHHH", 0x4742, 0x4742, 8 + length, 0)
    destination = JOB_IP if flags == 1 else SERVER_IP
    tos, length = rng.randrange(4), 28 + length
    header = struct.pack(">BBHHHBBHII", 0x45, tos, length, 0, 0, 64, UDP, 0, 0x0A000002, destination)
    return bytes(12) + b"\x08\0" + header + udp + gradient + rng.randbytes(4 * lanes)


STATEFUL_KEY = 0xABCDE0


def stateful_marker(port: int, came_by: int) -> bytes:
    """One label, then a value whose key names the multicast group of the port."""
    label = (0x77777 << 12 | 1 << 8 | 64).to_bytes(4, "big")
    return label + bytes([7]) + (STATEFUL_KEY | port).to_bytes(3, "big") + bytes(12) + MARKER + bytes(20)


def is_stateful_marker(frame: bytes) -> bool:
    return MARKER in frame


def stateful_entities(names: Names) -> list[Any]:
    groups = [(1, [1]), (2, [2]), (3, [3]), (4, [1, 2]), (5, [3, 1, 2])]
    # BMv2's P4Runtime writes no value sets: no options, then.
    return [
        p4r.MulticastGroupEntry(
            multicast_group_id=number,
            replicas=[p4r.Replica(egress_port=port, instance=0 if number <= PORTS else port) for port in ports],
        )
        for number, ports in groups
    ]


def stateful_frame(rng: random.Random) -> bytes:
    """One to three labels (with more than one it goes round in the switch), then a value for one of the groups.

    Copies do not go round: in which order they come back is chance in BMv2, and the order shows in the totals.
    """
    labels = rng.randint(1, 3)
    stack = b"".join(
        (rng.randrange(4) << 12 | (i == labels - 1) << 8 | rng.randrange(256)).to_bytes(4, "big")
        for i in range(labels)
    )
    amount = rng.choice([0, 1, 3, 0x7FFFFFFF, 0x80000000, 0x80000001, rng.getrandbits(32)])
    key = rng.randrange(3) << 4 | rng.randint(1, PORTS if labels > 1 else 5)
    value = (
        bytes([rng.choice([1, 1, 2, 3, 9])])
        + key.to_bytes(3, "big")
        + struct.pack(">IQ", amount, rng.getrandbits(64))
    )
    return stack + value + rng.randbytes(rng.randrange(60))


PROGRAMS = ROOT / "tests/p4/programs"
CASES = {
    "router": Case(
        ROOT / "p4src/router.p4",
        ipv4_marker,
        is_ipv4_marker,
        router_entities,
        frame=lambda rng: ipv4_frame(rng, rng.randbytes(rng.randrange(40)), range(4)),
    ),
    "aggregation": Case(
        ROOT / "p4src/aggregation.p4",
        ipv4_marker,
        is_ipv4_marker,
        aggregation_entities,
        # Slots are not to grow old: the clocks of two switches differ.
        defines=(("LANES", str(LANES)), ("SLOTS", "8"), ("RECLAIM_IDLE_TICKS", str(0x3FFF))),
        frame=gradient_frame,
        time={"slot_owner": 0x3FFF << 48},
    ),
    "acl_router": Case(PROGRAMS / "acl_router.p4", ipv4_marker, is_ipv4_marker, acl_router_entities),
    "acl": Case(
        ROOT / "tools/bench/switch/programs/acl.p4",
        lambda port, came_by: ipv4_marker(port, came_by, UDP),
        is_ipv4_marker,
        acl_entities,
    ),
    **SYSTEM_CASES,
    "stateful": Case(
        PROGRAMS / "stateful.p4",
        stateful_marker,
        is_stateful_marker,
        stateful_entities,
        rounds=4,
        frame=stateful_frame,
    ),
}


def compare(name: str, seed: int, frames: int, folder: Path) -> None:
    """All four pairs of compiler and switch, where they are installed: equal outputs, registers and counters."""
    make_interfaces()
    case = CASES[name]
    compilers = ("gradbed", "p4c") if find_p4c() else ("gradbed",)
    first, *others = (
        (f"{compiler} on {kind}", outcome(case, kind, compiler, seed, frames, folder))
        for kind in ("gradbed", "bmv2")
        for compiler in compilers
    )
    pair, one = first
    for other, its in others:
        for number, (our, their) in enumerate(zip(one.frames, its.frames, strict=True)):
            assert our == their, f"seed {seed}, frame {number}: {pair} {_shown(our)}, {other} {_shown(their)}"
        # p4c leaves out registers that decide nothing.
        for part in one.state.keys() & its.state.keys():
            differ = one.state[part].items() ^ its.state[part].items()
            assert not differ, f"seed {seed}, {part}: {pair} and {other}: {sorted(differ)[:8]}"
        assert set(its.state) <= set(one.state)
    # Frames must not merely be dropped by all.
    assert sum(bool(out) for out in one.frames) >= frames // 100
    assert not one.state or any(one.state.values())


def _shown(out: Outputs) -> dict[int, list[str]]:
    return {port: [frame.hex() for frame in frames] for port, frames in out.items()}


# Packets of these each switch answers as their .stf say: test_stf.py.
STF = {"router", "optical", "multicast", "training", "interconnect"}


@needs_bmv2
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] if name in STF else []) for name in CASES]
)
@in_sandbox
def test_outputs_and_state_equal_those_of_bmv2(name: str, tmp_path: Path) -> None:
    compare(name, 1, FRAMES, tmp_path)


@needs_bmv2
@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 7))
@pytest.mark.parametrize("name", CASES)
@functools.partial(in_sandbox, timeout_s=NIGHTLY_TIMEOUT_S)
def test_many_outputs_and_states_equal_those_of_bmv2(name: str, seed: int, tmp_path: Path) -> None:
    compare(name, seed, NIGHTLY_FRAMES, tmp_path)
