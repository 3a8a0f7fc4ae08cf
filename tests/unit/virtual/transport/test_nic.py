"""Whose turn it is at a NIC's transmitter, what its receivers answer, and that threads change nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.formats.roce import Opcode
from gradbed.switch.simple_switch.packet_files import read_pcap
from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.virtual.transport import roce_frames as rf
from tests.unit.virtual.transport.network import RECEIVED, SENT, Line

LINK = LinkModel(rate_bps=10**10, delay_us=5, queue_packets=1)
"""A host's queue with room for one packet: what NICs send never waits there."""
BETWEEN = LinkModel(rate_bps=10**10, delay_us=5, queue_packets=1000)
US = 1000


class Watched(Line):
    """A line of one switch; `sent` are the frames that host 1 sent."""

    def __init__(self, folder: Path, hosts: int = 2, link: LinkModel = LINK) -> None:
        super().__init__([1] * hosts, link)
        self._file = folder / "sent.pcap"
        self._capture = self.simulated.engine.capture(self._file, [(1, 1, "in")])

    def sent(self) -> list[bytes]:
        self._capture.close()
        with self._file.open("rb") as stream:
            return [frame for _, frame in read_pcap(stream)]


def test_pairs_take_turns(tmp_path: Path) -> None:
    """One that has more to say, and one that began earlier, has no more of the link than others while these send."""
    with Watched(tmp_path, 4, LinkModel(rate_bps=10**10, delay_us=5, queue_packets=1000)) as line:
        for pair, peer, packets in ((1, 2, 100), (2, 3, 40), (3, 4, 20), (4, 2, 40)):
            line.connect(1, peer, pair, pair)
            line.open(1).send(pair, pair, 4096 * packets)
        line.run()
        turns = [rf.bth_of(frame)["destination_pair"] for frame in line.sent()]
    # The first packet of pair 1 left before the others had anything to send, and it was in line for the next.
    assert turns[:81] == [1] + [1, 2, 3, 4] * 20
    assert Counter(turns[81:141]) == {1: 20, 2: 20, 4: 20}
    assert set(turns[141:]) == {1} and len(turns) == 200


def test_larger_priorities_are_first(tmp_path: Path) -> None:
    with Watched(tmp_path, 3) as line:
        line.connect(1, 2, 1, 1, priority=1)
        line.connect(1, 3, 2, 2, priority=6)
        line.open(1).send(1, 0, 4096 * 10)
        line.open(1).send(2, 0, 4096 * 10)
        line.run()
        frames = [frame for frame in line.sent() if rf.bth_of(frame)["opcode"] != Opcode.ACKNOWLEDGE]
    assert [frame[15] >> 5 for frame in frames] == [1] + [6] * 10 + [1] * 9


def test_acknowledgements_do_not_wait_for_data(tmp_path: Path) -> None:
    """They leave as soon as the packet before has left, and tell of all that has come by then."""
    link = LinkModel(rate_bps=10**9, delay_us=1, queue_packets=1)
    with Watched(tmp_path, 2, link) as line:
        line.connect(1, 2)
        line.open(1).send(1, 0, 4096 * 50)
        for tag in range(20):
            line.open(2).send(1, tag, 100)
        line.run()
        opcodes = [rf.bth_of(frame)["opcode"] for frame in line.sent()]
    # 20 short messages come while host 1 sends its first packet.
    assert opcodes[:3] == [Opcode.WRITE_FIRST, Opcode.ACKNOWLEDGE, Opcode.WRITE_MIDDLE]
    assert opcodes.count(Opcode.ACKNOWLEDGE) == 1
    sent = [each for each in line.done[2] if each.kind == SENT]
    assert [each.tag for each in sent] == list(range(20)) and len({each.time_ns for each in sent}) == 1


def test_frames_and_nics_take_turns(tmp_path: Path) -> None:
    with Watched(tmp_path, 2, LinkModel(rate_bps=10**10, delay_us=5, queue_packets=100)) as line:
        line.connect(1, 2)
        line.open(1).send(1, 0, 4096 * 20)
        frame = np.frombuffer(rf.datagram(1, 2, 7000, bytes(1000)), np.uint8)
        line.interface(1).send(np.tile(frame, (10, 1)))
        line.run()
        nics = [len(each) > 2000 for each in line.sent()]
    assert nics[:20] == [True, False] * 10
    assert all(nics[20:]) and len(nics) == 30


def test_nothing_waits_in_the_hosts_queue(tmp_path: Path) -> None:
    with Watched(tmp_path, 2) as line:
        line.connect(1, 2)
        line.open(1).send(1, 0, 4096 * 1000)
        queued = []
        for until_us in range(0, 4000, 10):
            line.run(until_us * US)
            row = next(
                row for row in line.simulated.engine.link_statistics() if (row.port, row.direction) == (1, "in")
            )
            queued.append(row.queued)
        assert row.queue_drops == 0 and max(queued) == 0
        assert [each.kind for each in line.done[2]] == [RECEIVED]


def test_a_rate_of_a_pair_leaves_the_link_to_others() -> None:
    with Line([1, 1, 1], BETWEEN) as line:
        line.connect(1, 2, 1, 1, rate_bps=10**9, timeout_ns=10**9)
        line.connect(1, 3, 2, 2)
        for pair in (1, 2):
            line.open(1).send(pair, 0, 10**6)
        line.run()
        slow, fast = line.received(2)[0].time_ns, line.received(3)[0].time_ns
    assert 8_000_000 < slow < 8_300_000
    assert 880_000 < fast < 930_000  # it has nine tenths


def test_a_nic_that_takes_no_rate_sends_all_at_once() -> None:
    """Links without a rate: a window is all that holds it back, or the packet numbers."""
    with Line([1, 1], LinkModel(delay_us=1000)) as line:
        line.connect(1, 2, timeout_ns=10**9)
        line.open(1).send(1, 0, 2**31)
        line.run(1)
        assert line.open(1).counts()["sent_frames"] == 2**16
        line.run()
        assert [each.time_ns % (1000 * US) for each in line.received(2)] == [0]


# ---- Threads ----


def outcome(threads: int, loss: float, recovery: str, messages: list[tuple[int, int, int]]) -> Any:
    link = LinkModel(rate_bps=10**10, delay_us=2, queue_packets=40, loss=loss)
    hosts = [1, 1, 2, 3, 3]
    with Line(hosts, link, threads=threads) as line:
        line.simulated.engine.call("set_lookahead_windows", 3, 0)
        pairs = [(a, b) for a in range(1, 6) for b in range(1, 6) if a < b]
        for number, (a, b) in enumerate(pairs, 1):
            line.connect(a, b, number, number, recovery=recovery, timeout_ns=300_000, give_up_after=1000)
        for number, size_bytes, way in messages:
            a, b = pairs[number]
            line.open((a, b)[way]).send(number + 1, len(messages), size_bytes)
        line.run()
        statistics = [line.open(host).statistics(number) for number, pair in enumerate(pairs, 1) for host in pair]
        return line.done, statistics, line.simulated.engine.link_statistics()


@settings(max_examples=examples(15), deadline=None, derandomize=True)
@given(
    loss=st.sampled_from([0, 0.02]),
    recovery=st.sampled_from(["go-back-n", "selective-repeat"]),
    messages=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 200_000), st.integers(0, 1)), min_size=1, max_size=20
    ),
)
def test_threads_change_nothing(loss: float, recovery: str, messages: list[tuple[int, int, int]]) -> None:
    alone = outcome(1, loss, recovery, messages)
    assert sum(each.kind == RECEIVED for done in alone[0].values() for each in done) == len(messages)
    assert outcome(2, loss, recovery, messages) == alone
    assert outcome(3, loss, recovery, messages) == alone


@pytest.mark.parametrize("recovery", ["go-back-n", "selective-repeat"])
def test_queues_that_overflow_are_recovered_from(recovery: str) -> None:
    """Four send to one host through a queue of 20 packets."""
    link = LinkModel(rate_bps=10**10, delay_us=2, queue_packets=20)
    with Line([1] * 5, link) as line:
        for host in (1, 2, 3, 4):
            line.connect(host, 5, 1, host, recovery=recovery, window_bytes=200_000, timeout_ns=200_000)
            line.open(host).send(1, host, 10**6)
        line.run()
        assert sorted(each.tag for each in line.received(5)) == [1, 2, 3, 4]
        drops = sum(row.queue_drops for row in line.simulated.engine.link_statistics())
        again = sum(line.open(host).statistics(1)["retransmissions"] for host in (1, 2, 3, 4))
        duplicates = sum(line.open(5).statistics(host)["duplicates"] for host in (1, 2, 3, 4))
    assert 0 < drops <= again
    if recovery == "selective-repeat":
        assert again - duplicates <= drops


def test_selective_repeat_sends_again_what_was_lost_and_nothing_else() -> None:
    with Line([1, 1], LinkModel(rate_bps=10**10, delay_us=2)) as line:
        line.simulated.engine.set_link(1, 1, LinkModel(rate_bps=10**10, delay_us=2, loss=0.01), ["in"])
        line.connect(1, 2, recovery="selective-repeat", window_bytes=200_000)
        line.open(1).send(1, 0, 4096 * 1000)
        line.run()
        losses = sum(row.losses for row in line.simulated.engine.link_statistics())
        sender, receiver = line.open(1).statistics(1), line.open(2).statistics(1)
    assert sender["timeouts"] == 0 and losses > 5
    assert (sender["retransmissions"], receiver["duplicates"]) == (losses, 0)
