"""Multicast groups and clone sessions."""

from __future__ import annotations

import ctypes

import pytest

from gradbed.switch.device import Replica
from gradbed.switch.engine import Engine, EngineDevice
from tests.unit.engine.instructed import DROP, Egress, Ingress, exchange, pass_through, read_report


class MallocCounts(ctypes.Structure):
    """struct mallinfo2."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "free", "fast", "maps", "mapped", "unused", "fast_free", "used", "free_bytes", "top")
    )


def held_bytes() -> int:
    """What this process has of malloc."""
    count = ctypes.CDLL(None).mallinfo2
    count.restype = MallocCounts
    return int(count().used)


INGRESS_CLONE, EGRESS_CLONE, REPLICATED = 1, 2, 5


def test_multicast_makes_a_copy_for_each_replica(engine: Engine, device: EngineDevice) -> None:
    device.replication.set_group(9, [Replica(2, 20), Replica(3, 30), Replica(2, 21), Replica(99, 1)])
    frame = pass_through(ingress=Ingress.MULTICAST, argument=9, egress=Egress.REPORT) + b"to all"
    copies = [(port, read_report(frame)) for _, port, frame in exchange(engine, frame)]
    assert [(port, r.egress_rid, r.instance_type) for port, r in copies] == [
        (2, 20, REPLICATED),
        (3, 30, REPLICATED),
        (2, 21, REPLICATED),
    ]
    assert {r.payload for _, r in copies} == {b"to all"}
    assert {r.mcast_grp for _, r in copies} == {9}
    assert {r.packet_length for _, r in copies} == {len(frame)}
    assert (device.statistics().replicated, device.statistics().copied) == (4, 3)
    assert device.statistics().no_port_drops == 1


def test_multicast_wins_over_the_egress_port(engine: Engine, device: EngineDevice) -> None:
    device.replication.set_group(1, [Replica(3)])
    engine.inject(1, 1, pass_through(DROP, Ingress.MULTICAST, 1) + b"x")
    engine.inject(1, 1, pass_through(2, Ingress.MULTICAST, 1) + b"x")
    engine.advance(0)
    assert [port for _, port, _ in engine.drain()] == [3, 3]


def test_a_group_without_replicas_drops(engine: Engine, device: EngineDevice) -> None:
    device.replication.set_group(1, [])
    assert exchange(engine, *(pass_through(2, Ingress.MULTICAST, group) for group in (1, 2))) == []
    assert device.statistics().no_group_drops == 2


def test_groups_can_be_replaced_and_deleted(engine: Engine, device: EngineDevice) -> None:
    device.replication.set_group(1, [Replica(2)])
    device.replication.set_group(1, [Replica(3), Replica(4)])
    assert [port for _, port, _ in exchange(engine, pass_through(2, Ingress.MULTICAST, 1) + b"x")] == [3, 4]
    device.replication.delete_group(1)
    assert exchange(engine, pass_through(2, Ingress.MULTICAST, 1) + b"x") == []
    with pytest.raises(KeyError, match="multicast group 1"):
        device.replication.delete_group(1)


@pytest.mark.parametrize("group", [0, -1, 65536])
def test_group_ids_outside_16_bits_are_refused(device: EngineDevice, group: int) -> None:
    with pytest.raises(ValueError, match=r"1\.\.65535"):
        device.replication.set_group(group, [Replica(1)])
    with pytest.raises(KeyError):
        device.replication.delete_group(group)


@pytest.mark.parametrize("replica", [Replica(512), Replica(-1), Replica(1, 65536), Replica(1, -1)])
def test_impossible_replicas_are_refused(device: EngineDevice, replica: Replica) -> None:
    with pytest.raises(ValueError, match="is not in"):
        device.replication.set_group(1, [replica])
    with pytest.raises(ValueError, match="is not in"):
        device.replication.set_session(1, [replica])


def test_an_ingress_clone_is_the_frame_as_it_came(engine: Engine, device: EngineDevice) -> None:
    device.replication.set_session(5, [Replica(3, 1), Replica(4, 2)])
    frame = pass_through(2, Ingress.CLONE, 5, Egress.REPORT) + b"rest"
    reports = {port: read_report(frame) for _, port, frame in exchange(engine, frame)}
    assert {port: r.instance_type for port, r in reports.items()} == {2: 0, 3: INGRESS_CLONE, 4: INGRESS_CLONE}
    assert (reports[3].egress_rid, reports[4].egress_rid) == (1, 2)
    for port in (3, 4):
        assert reports[port].payload == b"rest"
        assert reports[port].ingress_port == 1
        assert reports[port].packet_length == len(frame)
        # The field list has the mark alone.
        assert (reports[port].mark, reports[port].mark_in_parser) == (77, 0)
    assert (device.statistics().cloned, device.statistics().copied) == (1, 1)


def test_the_original_of_a_clone_may_be_dropped(engine: Engine, device: EngineDevice) -> None:
    device.replication.set_session(5, [Replica(3)])
    assert [port for _, port, _ in exchange(engine, pass_through(DROP, Ingress.CLONE, 5) + b"x")] == [3]


def test_a_session_truncates_its_clones_and_not_the_original(engine: Engine, device: EngineDevice) -> None:
    device.replication.set_session(5, [Replica(3)], truncate_bytes=4)
    sent = exchange(engine, pass_through(2, Ingress.CLONE, 5) + b"0123456789")
    assert sorted(sent) == [(1, 2, b"0123456789"), (1, 3, b"0123")]


def test_a_clone_for_an_unknown_session_is_none(engine: Engine, device: EngineDevice) -> None:
    device.replication.set_session(5, [Replica(3)])
    device.replication.delete_session(5)
    device.replication.set_session(6, [])
    sent = exchange(engine, *(pass_through(2, Ingress.CLONE, session) + b"x" for session in (4, 5, 6)))
    assert [port for _, port, _ in sent] == [2, 2, 2]
    assert device.statistics().cloned == 0
    with pytest.raises(KeyError, match="clone session 5"):
        device.replication.delete_session(5)


def test_an_egress_clone_is_the_packet_as_egress_left_it(engine: Engine, device: EngineDevice) -> None:
    device.replication.set_session(5, [Replica(3, 33)])
    frame = pass_through(2, egress=Egress.CLONE, egress_argument=5) + b"rest"
    frames = {port: frame for _, port, frame in exchange(engine, frame)}
    assert frames[2] == b"rest"
    clone = read_report(frames[3])
    assert (clone.instance_type, clone.egress_port, clone.egress_rid) == (EGRESS_CLONE, 3, 33)
    assert (clone.payload, clone.packet_length, clone.ingress_port) == (b"rest", len(frame), 1)
    # Metadata are reset, but for the field list: the mark.
    assert (clone.mark, clone.mark_in_parser) == (88, 0)


def test_large_groups_have_no_limit_but_memory(engine: Engine, device: EngineDevice) -> None:
    device.replication.set_group(65535, [Replica(1 + i % 4, i) for i in range(5000)])
    device.replication.set_group(200, [Replica(1 + i % 4, i) for i in range(5000)])
    sent = exchange(engine, pass_through(ingress=Ingress.MULTICAST, argument=200, egress=Egress.REPORT))
    assert [read_report(frame).egress_rid for _, _, frame in sent] == list(range(5000))


def test_numbers_that_are_used_once_take_no_memory(device: EngineDevice) -> None:
    def come_and_go(numbers: range) -> None:
        for number in numbers:
            device.replication.set_group(number, [Replica(1)])
            device.replication.set_session(number, [Replica(1)])
            device.replication.delete_group(number)
            device.replication.delete_session(number)

    device.replication.set_group(0x1FF, [Replica(1)])
    come_and_go(range(0x100, 0x110))
    before = held_bytes()
    come_and_go(range(0x180, 2**16, 0x80))
    # Of 255 numbers with one high byte each, both kinds.
    assert held_bytes() - before < 2**16
    device.replication.delete_group(0x1FF)
