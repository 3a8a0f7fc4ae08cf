"""Every field of standard metadata stays within its bits, however long the switch has been up."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.switch.codegen import build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.device import Replica
from gradbed.switch.engine import Engine, EngineDevice
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import exchange

WIDTHS = {
    "ingress_port": 9,
    "egress_spec": 9,
    "egress_port": 9,
    "instance_type": 32,
    "packet_length": 32,
    "enq_timestamp": 32,
    "enq_qdepth": 19,
    "deq_timedelta": 32,
    "deq_qdepth": 19,
    "ingress_global_timestamp": 48,
    "egress_global_timestamp": 48,
    "mcast_grp": 16,
    "egress_rid": 16,
    "checksum_error": 1,
    "parser_error": 1,
    "priority": 3,
}
GUARD_BITS, BEFORE, BEHIND = 4, 0, 5
HEADER_BYTES = sum(-(-(width + 2 * GUARD_BITS) // 8) for width in WIDTHS.values())
SECOND_US = 1_000_000
FIVE_HOURS_US = 5 * 3600 * SECOND_US
TEN_YEARS_US = 10 * 365 * 24 * 3600 * SECOND_US
REPLICATED = 5


def read(frame: bytes) -> dict[str, int]:
    """What egress saw; fails if a field wrote beyond its bits."""
    seen = {}
    for name, width in WIDTHS.items():
        size = -(-(width + 2 * GUARD_BITS) // 8)
        behind_bits = 8 * size - GUARD_BITS - width
        value, frame = int.from_bytes(frame[:size], "big"), frame[size:]
        before, behind = value >> (width + behind_bits), value & ((1 << behind_bits) - 1)
        assert (before, behind) == (BEFORE, BEHIND), f"{name} wrote beyond its {width} bits"
        seen[name] = value >> behind_bits & ((1 << width) - 1)
    return seen


def order(port: int, group: int = 0) -> bytes:
    return ((port << 7) | group).to_bytes(2, "big")


@pytest.fixture
def switch(engine: Engine) -> EngineDevice:
    """Port 1 is perfect; a frame of b bytes takes 8 b seconds to leave by port 2."""
    device = engine.add_switch(1)
    device.load(build_program(compile_p4(Path(__file__).parent / "programs" / "standard_fields.p4").json))
    engine.add_open_port(1, 1)
    engine.add_open_port(1, 2, LinkModel(rate_bps=1))
    device.replication.set_group(3, [Replica(509, 0xFFFF)])
    return device


@pytest.mark.parametrize("uptime_us", [0, FIVE_HOURS_US, TEN_YEARS_US], ids=["start", "five hours", "ten years"])
def test_every_field_after_a_long_time(engine: Engine, switch: EngineDevice, uptime_us: int) -> None:
    engine.advance(uptime_us)
    [(_, _, frame)] = exchange(engine, order(1))
    assert read(frame) == {
        **dict.fromkeys(WIDTHS, 0),
        "ingress_port": 1,
        "egress_port": 1,
        "packet_length": 2,
        "enq_timestamp": uptime_us % 2**32,
        "ingress_global_timestamp": uptime_us % 2**48,
        "egress_global_timestamp": uptime_us % 2**48,
        "priority": 5,
    }


def test_a_wait_of_hours(engine: Engine, switch: EngineDevice) -> None:
    engine.advance(FIVE_HOURS_US)
    sent = exchange(engine, *(order(2) + bytes(700) for _ in range(3)), after_us=10 * FIVE_HOURS_US)
    seen = [read(frame) for _, _, frame in sent]
    waits_us = [8 * (HEADER_BYTES + 700) * SECOND_US * number for number in range(3)]
    assert waits_us[1] > 2**32
    assert [each["deq_timedelta"] for each in seen] == [wait_us % 2**32 for wait_us in waits_us]
    assert [each["enq_timestamp"] for each in seen] == [FIVE_HOURS_US % 2**32] * 3
    assert [each["enq_qdepth"] for each in seen] == [0, 0, 1]
    assert [each["deq_qdepth"] for each in seen] == [0, 1, 0]
    assert [each["egress_global_timestamp"] - FIVE_HOURS_US for each in seen] == waits_us


def test_a_copy_with_the_largest_replica_id_and_port(engine: Engine, switch: EngineDevice) -> None:
    engine.add_open_port(1, 509)
    engine.advance(FIVE_HOURS_US)
    [(_, port, frame)] = exchange(engine, order(1, 3), port=509)
    seen = read(frame)
    assert (port, seen["ingress_port"], seen["egress_port"]) == (509, 509, 509)
    assert (seen["mcast_grp"], seen["egress_rid"], seen["instance_type"]) == (3, 0xFFFF, REPLICATED)
