"""An agent's context on the machine's clock: commands in, events out, waiting on interfaces."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from gradbed.common.errors import UserError
from gradbed.hosts.agents.kernel.context import RealContext
from gradbed.hosts.agents.kernel.raw_socket import BATCH_FRAMES
from gradbed.hosts.agents.launching import BEGIN, STOP, ComputeTimes

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets need root")

PORT = 0x4747
ETHER_TYPE = 0x88B5
"""For local experiments (IEEE 802)."""


@dataclass
class Ends:
    context: RealContext
    control: int
    events: int


@pytest.fixture
def ends() -> Iterator[Ends]:
    control_read, control_write = os.pipe()
    events_read, events_write = os.pipe()
    context = RealContext(7, "worker 3", ("lo", "lo"), control_read, events_write)
    yield Ends(context, control_write, events_read)
    for descriptor in (control_read, events_read, events_write):
        os.close(descriptor)


def frame(ether_type: int, length: int = 60) -> np.ndarray:
    """One broadcast frame, shape (1, length)."""
    content = b"\xff" * 6 + b"\x02\x00\x00\x00\x00\x09" + ether_type.to_bytes(2, "big")
    return np.frombuffer(content.ljust(length, b"\0"), np.uint8)[None]


def test_events_are_lines_of_json(ends: Ends) -> None:
    ends.context.emit("ready")
    ends.context.emit("round", round=1, loss=0.5)
    lines = os.read(ends.events, 4096).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"event": "ready", "job": 7, "name": "worker 3"},
        {"event": "round", "job": 7, "name": "worker 3", "round": 1, "loss": 0.5},
    ]
    os.close(ends.control)


def test_begin_and_then_stop(ends: Ends) -> None:
    os.write(ends.control, BEGIN)
    assert ends.context.wait_for_begin()
    assert not ends.context.stopped
    os.write(ends.control, STOP)
    ends.context.wait()
    assert ends.context.stopped
    assert not ends.context.wait_for_begin()
    os.close(ends.control)


def test_a_begin_that_came_in_a_wait_counts(ends: Ends) -> None:
    os.write(ends.control, BEGIN)
    ends.context.wait()
    assert ends.context.wait_for_begin()
    os.close(ends.control)


def test_a_launcher_that_has_ended_means_stop_and_nothing_spins_afterwards(ends: Ends) -> None:
    os.close(ends.control)
    assert not ends.context.wait_for_begin()
    assert ends.context.stopped
    until_us = ends.context.now_us() + 2000
    ends.context.wait(until_us)
    assert ends.context.now_us() >= until_us


@needs_root
def test_waiting_ends_with_a_frame_on_either_of_two_interfaces(ends: Ends) -> None:
    context = ends.context
    with context.open(ether_type=ETHER_TYPE) as first, context.open(ether_type=ETHER_TYPE + 1, interface=1) as second:
        for receiver, other, ether_type in ((first, second, ETHER_TYPE), (second, first, ETHER_TYPE + 1)):
            assert first.send(frame(ether_type)) == 1
            context.wait()
            buffer, lengths = receiver.receive()
            assert lengths.tolist() == [60]
            assert buffer[0, :60].tobytes() == frame(ether_type).tobytes()
            assert other.receive()[1].tolist() == []
    # A closed interface wakes nobody.
    until_us = context.now_us() + 1000
    context.wait(until_us)
    assert context.now_us() >= until_us
    os.close(ends.control)


def test_a_turn_says_how_long_to_go_on(ends: Ends) -> None:
    context = ends.context
    begin_us, called_us = context.now_us(), []

    def fast_path() -> int | None:
        called_us.append(context.now_us())
        return None if len(called_us) == 3 else called_us[-1] + 2000

    context.wait(begin_us + 1000, fast_path=fast_path)
    assert len(called_us) == 3
    assert called_us[0] >= begin_us + 1000
    assert called_us[1] >= called_us[0] + 2000 and called_us[2] >= called_us[1] + 2000
    os.close(ends.control)


@pytest.mark.parametrize("command", [BEGIN, STOP])
def test_a_command_is_for_the_agent_and_not_for_a_turn(ends: Ends, command: bytes) -> None:
    os.write(ends.control, command)
    ends.context.wait(fast_path=lambda: pytest.fail("called"))
    assert ends.context.stopped == (command == STOP) != ends.context.begun
    os.close(ends.control)


@needs_root
def test_what_an_agent_takes_past_the_interface_is_not_counted_unless_it_is_kept(ends: Ends) -> None:
    context = ends.context
    with context.open(ether_type=ETHER_TYPE) as interface:
        beneath = interface.raw_frames()
        assert beneath is not None
        kept_ns = []

        def fast_path() -> None:
            buffer, lengths = beneath.receive()
            kept_ns.append(beneath.times_ns.tolist())
            interface.keep(buffer, lengths, beneath.times_ns)

        assert beneath.send(frame(ETHER_TYPE, 70)) == 1
        context.wait(fast_path=fast_path)
        assert (interface.counts.sent_frames, interface.counts.received_frames) == (0, 0)
        assert interface.raw_frames() is None
        buffer, lengths = interface.receive()
        assert lengths.tolist() == [70] and buffer[0, :70].tobytes() == frame(ETHER_TYPE, 70).tobytes()
        assert abs(interface.times_ns[0] - kept_ns[0][0]) < 1e9 and len(interface.times_ns) == 1
        assert (interface.counts.received_frames, interface.counts.received_bytes) == (1, 70)
        assert interface.receive()[1].tolist() == []
        assert interface.raw_frames() is not None
    os.close(ends.control)


@needs_root
@pytest.mark.parametrize("count", [1, BATCH_FRAMES, BATCH_FRAMES + 1, 3 * BATCH_FRAMES + 5])
def test_past_the_interface_all_comes_that_waits(ends: Ends, count: int) -> None:
    frames = np.repeat(frame(ETHER_TYPE), count, 0)
    frames[:, 20:24] = np.arange(count, dtype=">u4")[:, None].view(np.uint8)
    context = ends.context
    with (
        context.open(ether_type=ETHER_TYPE) as interface,
        context.open(ether_type=ETHER_TYPE, interface=1) as witness,
    ):
        # The kernel may take a while to bring them. When a later one has come to the witness, all have come to both.
        for sent in (frames, frame(ETHER_TYPE, 61)):
            assert interface.send(sent) == len(sent)
            came = 0
            while came < len(sent):
                context.wait()
                came += len(witness.receive()[1])
        beneath = interface.raw_frames()
        assert beneath is not None
        buffer, lengths = beneath.receive()
        assert lengths.tolist() in ([60] * count, [60] * count + [61])
        assert buffer[:count, :60].tobytes() == frames.tobytes()
        # The kernel begins to stamp a while after it was asked to: until then it does when the agent receives.
        assert len(beneath.times_ns) == len(lengths)
        beneath.receive()
        assert interface.send(frame(ETHER_TYPE, 62)) == 1
        while not len(lengths := beneath.receive()[1]):
            context.wait()
        assert lengths.tolist() == [62] and len(beneath.times_ns) == 1
    os.close(ends.control)


@needs_root
def test_without_a_filter_everything_is_taken_in(ends: Ends) -> None:
    with ends.context.open() as everything, ends.context.open(udp_port=PORT) as datagrams:
        datagrams.send(frame(ETHER_TYPE, 77))
        while 77 not in everything.receive()[1].tolist():
            ends.context.wait()
        assert datagrams.receive()[1].tolist() == []
    os.close(ends.control)


def test_an_interface_that_is_not_there_is_one_line(ends: Ends) -> None:
    with pytest.raises(UserError, match="worker 3 has 2 interfaces, none with the number 2"):
        ends.context.open(interface=2)
    os.close(ends.control)


@needs_root
def test_frames_leave_at_their_times_with_the_kernels_stamps(ends: Ends) -> None:
    context = ends.context
    with context.open(ether_type=ETHER_TYPE) as sender, context.open(ether_type=ETHER_TYPE, quiet=True) as receiver:
        frames = np.concatenate([frame(ETHER_TYPE, 100) for _ in range(3)])
        begin_ns = context.now_ns()
        times_ns = begin_ns + np.array([2_000_000, 4_000_000, 30_000_000])
        sender.send_at(frames, times_ns, np.array([60, 80, 100], np.uint32), stamp=True)
        assert receiver.receive()[1].tolist() == []
        while context.now_ns() < begin_ns + 31_000_000:
            context.wait((begin_ns + 31_000_000) // 1000)
            sender.receive()
        buffer, lengths = receiver.receive()
        assert sorted(set(lengths.tolist())) == [60, 80, 100]
        for row, length, arrived_ns in zip(buffer[: len(lengths)], lengths, receiver.times_ns, strict=True):
            sent_ns = int.from_bytes(row[length - 8 : length].tobytes(), "big")
            assert sent_ns >= times_ns[[60, 80, 100].index(int(length))]
            assert sent_ns <= arrived_ns + 1_000_000
        assert sender.counts.sent_bytes == 240


def test_a_computation_takes_at_least_as_long_as_the_run_says(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns, waited_s = 0, []

    def work() -> str:
        nonlocal now_ns
        now_ns += 2_000_000
        return "done"

    def wait(read: list[int], write: list[int], other: list[int], timeout_s: float) -> tuple[list[int], ...]:
        nonlocal now_ns
        now_ns += round(timeout_s * 1e9)
        waited_s.append(timeout_s)
        return [], [], []

    monkeypatch.setattr("gradbed.hosts.agents.kernel.context.time.monotonic_ns", lambda: now_ns)
    monkeypatch.setattr("gradbed.hosts.agents.kernel.context.select.select", wait)
    read, write = os.pipe()
    times_us = iter((5000, 2000, 0))
    context = RealContext(7, "worker 3", (), read, write, lambda: next(times_us))
    assert [context.compute(work) for _ in range(3)] == ["done"] * 3
    assert waited_s == [0.003]
    os.close(read)
    os.close(write)


def test_a_stop_ends_a_computation_that_only_waits(ends: Ends) -> None:
    ends.context._compute_us = lambda: 3_600_000_000
    os.write(ends.control, BEGIN + STOP)
    assert ends.context.compute(lambda: 5) == 5
    assert (ends.context.begun, ends.context.stopped) == (True, True)
    os.close(ends.control)


def test_drawn_times_are_of_each_agent_alone_and_go_by_the_seed() -> None:
    def times(seed: int, name: str) -> list[int]:
        sent = ComputeTimes(4000, "exponential", seed).to_arguments()[0].removeprefix("--compute=")
        drawn = ComputeTimes.of_argument(sent)
        return [drawn(1, name) for _ in range(2000)]

    first = times(3, "peer 0")
    assert first == times(3, "peer 0")
    assert first != times(3, "peer 1")
    assert first != times(4, "peer 0")
    assert 3600 < np.mean(first) < 4400
    assert 3600 < np.std(first) < 4400  # an exponential distribution's is its mean
    assert [ComputeTimes(1.5e6)(1, "a"), ComputeTimes()(1, "a")] == [1_500_000, 0]
