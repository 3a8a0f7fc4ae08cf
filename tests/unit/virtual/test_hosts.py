"""Hosts on the virtual clock: frames in and out in batches, at exact times, and when time stops for them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.switch.engine_network import ForeignSwitchConfig, NetworkConfig
from gradbed.switch.virtual import HostInterface, SimulatedNetwork
from gradbed.topo.link import LinkModel
from tests.unit.engine.instructed import pass_through
from tests.unit.virtual.conftest import instructed_network

OVER = pass_through(2) + pass_through(1)
"""From one host to the other: through both switches."""


def rows(*frames: bytes) -> NDArray[np.uint8]:
    """Equally long frames, one in each row."""
    return np.array([np.frombuffer(frame, np.uint8) for frame in frames])


def texts(interface: HostInterface) -> list[bytes]:
    buffer, lengths = interface.receive()
    return [bytes(row[:length]) for row, length in zip(buffer, lengths, strict=True)]


def test_frames_take_the_time_of_every_link_on_their_way(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1)
    assert left.send(rows(OVER + b"one", OVER + b"two")) == 2
    stop = simulated.run_until(10_000_000)
    # 19, 11 and 3 bytes, and 100 us for each link; the second is 19 us behind, which is the longest.
    assert (stop.time_ns, stop.interfaces, stop.messages) == (333_000, (right,), ())
    assert texts(right) == [b"one"]
    assert right.times_ns.tolist() == [333_000]
    assert simulated.run_until(10_000_000).time_ns == 352_000
    assert texts(right) == [b"two"]
    stop = simulated.run_until(10_000_000)
    assert (stop.time_ns, stop.interfaces, stop.idle) == (10_000_000, (), True)
    assert simulated.now_ns == 10_000_000


def test_a_batch_holds_what_arrives_within_the_time_of_coalescing(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1, receive_coalescing_us=40)
    left.send(rows(*(OVER + bytes([number]) for number in range(5))))
    # They arrive 17 us apart; the NIC tells 40 us after the first of a batch.
    stops = [simulated.run_until(None) for _ in range(2)]
    assert [stop.time_ns for stop in stops] == [327_000 + 40_000, 327_000 + 3 * 17_000 + 40_000]
    assert texts(right) == [bytes([number]) for number in range(5)]
    assert right.times_ns.tolist() == [327_000 + 17_000 * number for number in range(5)]


def test_what_the_nic_has_not_told_of_is_not_received(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1, receive_coalescing_us=40)
    left.send(rows(OVER + b"x"))
    simulated.run_until(350_000)
    assert texts(right) == []
    simulated.run_until(None)
    assert texts(right) == [b"x"]


def test_frames_of_one_moment_are_one_batch_and_each_batch_is_told_once(simulated: SimulatedNetwork) -> None:
    simulated.engine.set_link(1, 1, LinkModel())
    left = simulated.interface(1, 1)
    left.send(rows(*(pass_through(1) + bytes([number]) for number in range(100))))
    stop = simulated.run_until(1000)
    assert (stop.time_ns, stop.interfaces) == (0, (left,))
    # Not taken, and not told of again.
    assert simulated.run_until(1000).interfaces == ()
    left.send(rows(pass_through(1) + b"!"))
    assert simulated.run_until(2000).interfaces == (left,)
    assert texts(left) == [*(bytes([number]) for number in range(100)), b"!"]


def test_hosts_of_one_moment_are_told_together_in_order(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1)
    right.send(rows(pass_through(1) + b"r"))
    left.send(rows(pass_through(1) + b"l"))
    stop = simulated.run_until(None)
    assert stop.interfaces == (right, left)


def test_frames_of_different_lengths_and_structured_rows(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1)
    fields = np.zeros(2, [("instructions", np.uint8, 16), ("number", ">u2")])
    fields["instructions"] = np.frombuffer(OVER, np.uint8)
    fields["number"] = [1, 258]
    left.send(fields)
    left.send(rows(OVER + b"abc", OVER + b"def"), np.array([17, 19], np.uint32))
    # Every second row of a longer array.
    left.send(rows(OVER + b"yes", OVER + b"no!", OVER + b"yea")[::2])
    received = []
    while not (stop := simulated.run_until(None)).idle or stop.interfaces:
        received += texts(right)
    assert received == [b"\0\1", b"\1\2", b"a", b"def", b"yes", b"yea"]


def test_large_batches_and_long_frames_find_room(simulated: SimulatedNetwork) -> None:
    simulated.engine.set_link(1, 1, LinkModel(queue_packets=5000))
    left = simulated.interface(1, 1)
    left.send(np.tile(np.frombuffer(pass_through(1) + bytes(9000), np.uint8), (300, 1)))
    simulated.run_until(None)
    buffer, lengths = left.receive()
    assert (len(buffer), lengths.tolist()) == (300, [9000] * 300)


def test_a_full_queue_drops_and_counts(simulated: SimulatedNetwork) -> None:
    simulated.engine.set_link(1, 1, LinkModel(rate_bps=8_000_000, queue_packets=3), ("in",))
    left = simulated.interface(1, 1)
    left.send(rows(*[pass_through(255) + b"x"] * 10))
    simulated.run_until(None)
    [row] = [
        row for row in simulated.engine.link_statistics() if (row.device_id, row.port, row.direction) == (1, 1, "in")
    ]
    assert (row.packets, row.queue_drops) == (4, 6)


def test_frames_for_nobody_are_lost(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1, receive_coalescing_us=1000)
    left.send(rows(OVER + b"1"))
    simulated.run_until(400_000)
    right.close()
    left.send(rows(OVER + b"2"))
    assert simulated.run_until(None).interfaces == ()
    assert simulated.engine.quiesce()
    assert simulated.interface(2, 1).receive()[1].size == 0
    with pytest.raises(UserError, match="closed"):
        left.close()
        left.send(rows(OVER))


def test_an_interface_that_is_opened_again_is_told_of_its_own_frames_only(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1, receive_coalescing_us=1000)
    left.send(rows(OVER + b"1"))
    simulated.run_until(400_000)
    right.close()
    right = simulated.interface(2, 1, receive_coalescing_us=2000)
    assert simulated.run_until(2_000_000).interfaces == ()
    left.send(rows(OVER + b"2"))
    assert simulated.run_until(None).interfaces == (right,)
    assert texts(right) == [b"2"]
    assert simulated.engine.quiesce()


def test_mistakes_are_told(simulated: SimulatedNetwork) -> None:
    left = simulated.interface(1, 1)
    with pytest.raises(ValueError, match="65553"):
        left.send(np.zeros((1, 65_554), np.uint8))
    with pytest.raises(ValueError, match="longer than its row"):
        left.send(np.zeros((2, 10), np.uint8), np.array([10, 11], np.uint32))
    with pytest.raises(ValueError, match="shape"):
        left.send(np.zeros((2, 10), np.uint8), np.array([10], np.uint32))
    assert left.send(np.zeros((0, 10), np.uint8)) == 0
    for device_id, port in ((1, 2), (1, 9), (3, 1)):
        with pytest.raises(UserError, match="does not lead to a host"):
            simulated.interface(device_id, port)
    with pytest.raises(UserError, match="receive_coalescing_us"):
        simulated.interface(2, 1, receive_coalescing_us=-1)
    simulated.run_until(500)
    with pytest.raises(ValueError, match="past"):
        simulated.run_until(499)


def test_switches_of_other_programs_need_the_real_clock() -> None:
    config = NetworkConfig(switches=(), foreign_switches=(ForeignSwitchConfig(device_id=1),))
    with pytest.raises(UserError, match="real clock"):
        SimulatedNetwork(config)


def test_packets_that_go_round_without_time_are_noticed_and_others_are_not() -> None:
    with instructed_network(LinkModel()) as simulated:
        left = simulated.interface(1, 1)
        left.send(rows(pass_through(2) + b"x"))
        # More events than that, one time after the other.
        for _ in range(50):
            simulated.run_until(simulated.now_ns + 1)
            left.send(rows(OVER))
        simulated.engine.set_link(1, 1, LinkModel(rate_bps=1_000_000, queue_packets=100), ("in",))
        left.send(rows(*[OVER] * 50))
        simulated.engine.run_until(None, simulated._due, 30)
        simulated.engine.set_link(1, 1, LinkModel())
        left.send(rows(*[OVER] * 20))
        with pytest.raises(RuntimeError, match="circles"):
            simulated.engine.run_until(None, simulated._due, 30)


def test_time_steps_make_no_difference() -> None:
    def run(step_ns: int) -> list[tuple[int, bytes]]:
        link = LinkModel(rate_bps=3_333_333, delay_us=7, jitter_us=5, loss=0.1, duplicate=0.1, queue_packets=8)
        with instructed_network(link) as simulated:
            left, right = simulated.interface(1, 1), simulated.interface(2, 1, receive_coalescing_us=3)
            seen: list[tuple[int, bytes]] = []
            for number in range(60):
                left.send(rows(OVER + bytes([number]) * (1 + number * 7 % 90)))
                end_ns = simulated.now_ns + 60_000
                while simulated.now_ns < end_ns:
                    simulated.run_until(min(end_ns, simulated.now_ns + step_ns))
                    frames = texts(right)
                    seen += zip(map(int, right.times_ns), frames, strict=True)
            return seen

    whole = run(60_000)
    assert len(whole) > 20
    assert whole == run(1_000)


def test_two_fabrics_do_not_disturb_each_other() -> None:
    def act(simulated: SimulatedNetwork, number: int) -> list[bytes]:
        simulated._interfaces[min(simulated._interfaces)].send(rows(OVER + bytes([number])))
        simulated.run_until(simulated.now_ns + 20_000)
        return texts(simulated._interfaces[max(simulated._interfaces)])

    lossy = LinkModel(rate_bps=8_000_000, delay_us=30, loss=0.2, jitter_us=20, reorder=True)

    def network_of(seed: int) -> SimulatedNetwork:
        simulated = instructed_network(lossy, seed)
        simulated.interface(1, 1)
        simulated.interface(2, 1)
        return simulated

    def alone(seed: int) -> list[list[bytes]]:
        with network_of(seed) as simulated:
            return [act(simulated, number) for number in range(50)]

    with network_of(1) as one, network_of(2) as other:
        together = [(act(one, number), act(other, number)) for number in range(50)]
    assert [first for first, _ in together] == alone(1)
    assert [second for _, second in together] == alone(2)
    assert alone(1) != alone(2)


def test_frames_leave_at_their_times(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1)
    times_ns = np.array([500_000, 900_000], np.int64)
    left.send(rows(OVER + b"b", OVER + b"d"), times_ns=times_ns)
    left.send(rows(OVER + b"a", OVER + b"c"), times_ns=times_ns - 300_000)
    left.send(rows(OVER + b"0"), times_ns=np.array([0], np.int64))
    assert not simulated.engine.quiesce(0)
    assert simulated.run_until(327_000).interfaces == (right,) and texts(right) == [b"0"]
    arrived = []
    while not (stop := simulated.run_until(None)).idle:
        arrived += [(stop.time_ns - 327_000, text) for text in texts(right)]
    assert arrived == [(200_000, b"a"), (500_000, b"b"), (600_000, b"c"), (900_000, b"d")]


def test_time_does_not_stop_for_a_quiet_host(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1)
    right.set_quiet(True)
    left.send(rows(OVER + b"x"))
    assert simulated.run_until(10_000_000).time_ns == 10_000_000
    assert texts(right) == [b"x"] and right.times_ns.tolist() == [327_000]
    left.send(rows(OVER + b"y"))
    simulated.run_until(20_000_000)
    # What waits is told of as soon as it is not quiet any more.
    right.set_quiet(False)
    assert simulated.run_until(30_000_000).interfaces == (right,)
    assert texts(right) == [b"y"]


def test_a_nic_that_becomes_quiet_keeps_the_order(simulated: SimulatedNetwork) -> None:
    left, right = simulated.interface(1, 1), simulated.interface(2, 1, receive_coalescing_us=100)
    left.send(rows(OVER + b"1", OVER + b"2", OVER + b"3"))
    simulated.run_until(330_000)
    right.set_quiet(True)
    simulated.run_until(2_000_000)
    assert texts(right) == [b"1", b"2", b"3"]


def test_wrong_times_are_an_error(simulated: SimulatedNetwork) -> None:
    with pytest.raises(ValueError, match="1 frames, but times of shape"):
        simulated.interface(1, 1).send(rows(OVER + b"x"), times_ns=np.array([1, 2], np.int64))
