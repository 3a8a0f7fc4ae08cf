"""Hollow packets are as those with zeros in them, to whoever looks, but nobody writes, copies or keeps what is not
there."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.switch.device import Replica
from gradbed.switch.engine.abi import MAX_FRAME_BYTES
from gradbed.switch.simple_switch.packet_files import read_pcap
from gradbed.switch.virtual import SimulatedNetwork
from gradbed.topo.link import LinkModel
from tests.examples import examples
from tests.unit.virtual.transport.network import Line, contents

PAYLOAD = Path(__file__).with_name("payload.p4")
HOSTS = (1, 2, 3, 4)
MTU_BYTES = 1024
LINK = LinkModel(rate_bps=10**10, delay_us=1, queue_packets=1000)
Messages = list[tuple[int, int]]
"""Tag and length."""


def replicate(simulated: SimulatedNetwork) -> None:
    replication = simulated.devices[1].replication
    replication.set_group(1, [Replica(port, port) for port in (2, 3, 4)])
    replication.set_session(5, [Replica(3, 1), Replica(4, 2)])
    replication.set_session(6, [Replica(4, 3)], truncate_bytes=200)


def seen(messages: Messages, hollow: bool, mtu_bytes: int, threads: int, link: LinkModel = LINK) -> Any:
    """What leaves every port when, and what a host without queue pairs receives."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Line([1] * len(HOSTS), link, file=PAYLOAD, prepare=replicate, threads=threads) as line,
    ):
        files = {host: Path(folder) / f"{host}.pcap" for host in HOSTS}
        for host, file in files.items():
            line.simulated.engine.capture(file, [(1, host, "out")])
        line.connect(1, 2, mtu_bytes=mtu_bytes, give_up_after=3, timeout_ns=5_000_000)
        for tag, size_bytes in messages:
            data = None if hollow else np.zeros(size_bytes, np.uint8)
            line.open(1).send(1, tag, size_bytes, data)
        line.run()
        frames, lengths = line.interface(3).receive()
        received = [bytes(frame[:length]) for frame, length in zip(frames, lengths, strict=False)]
        completions = [[each[:5] for each in line.done[host]] for host in HOSTS]
        line.close()
        found = []
        for file in files.values():
            with file.open("rb") as stream:
                found.append(list(read_pcap(stream)))
        return found, received, completions


def test_a_program_that_does_all_to_payloads_sees_zeros() -> None:
    """In one of each kind, and several together: writing, cloning, replicating, cutting, sending round, summing."""
    messages = [(bits, 1500) for bits in range(128) if bits & 8 == 0] + [(8 | 50 << 8, 300), (0x7F | 200 << 8, 5000)]
    found, received, completions = seen(messages, True, MTU_BYTES, 1)
    assert (found, received, completions) == seen(messages, False, MTU_BYTES, 1)
    # Something was changed, cut and copied at all.
    assert any(b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a" in frame for _, frame in found[1])
    assert len(received) > 70 and len({len(frame) for frame in received}) == 3
    assert len(completions[1]) >= 64


@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(
    messages=st.lists(st.tuples(st.integers(0, 0xFFFF), st.integers(64, 9000)), min_size=1, max_size=8),
    mtu_bytes=st.sampled_from([64, 1024, 4096]),
    threads=st.sampled_from([1, 3]),
)
def test_any_messages(messages: Messages, mtu_bytes: int, threads: int) -> None:
    assert seen(messages, True, mtu_bytes, threads) == seen(messages, False, mtu_bytes, 1)


@pytest.mark.parametrize("hollow", [False, True])
def test_segments_of_64_000_bytes_pass(hollow: bool) -> None:
    found, received, completions = seen([(0b1000010, 200_000), (0b0010001, 64_000)], hollow, 64_000, 1)
    lengths = [54 + 16 + 64_000 + 4, *2 * [54 + 64_000 + 4], 54 + 4 + 8_000 + 4, 54 + 16 + 4 + 64_000 + 4]
    assert [len(frame) for _, frame in found[1]] == lengths
    # The clone of the first one.
    assert [len(frame) for frame in received] == [54 + 16 + 64_000 + 4]
    assert [each[2] for each in completions[1]] == [0b1000010, 0b0000001]


def test_what_nobody_touches_takes_no_memory() -> None:
    """Packets of 64,000 bytes that wait in a queue."""

    def memory(data: np.ndarray[Any, Any] | None) -> int:
        with Line([1, 1, 1], LinkModel(rate_bps=10**9, queue_packets=1000), between=None) as line:
            line.connect(1, 3, 1, 1, mtu_bytes=64_000)
            line.connect(2, 3, 1, 2, mtu_bytes=64_000)
            for host in (1, 2):
                line.open(host).send(1, 7, 200 * 64_000, data)
            line.run(60_000_000)
            assert sum(row.queued for row in line.simulated.engine.link_statistics()) > 50
            return line.simulated.engine.statistics().pool_bytes

    assert memory(None) < 150 * 4096 * 3
    assert memory(contents(200 * 64_000)) > 50 * 64_000


def test_buffers_are_clean_again_after_a_program_has_written_into_them() -> None:
    """Long ones first, so that the same buffers are taken again."""
    messages = [(1, 30_000), (0, 30_000)]
    found, _, _ = seen(messages, True, 4096, 1)
    second = [frame for _, frame in found[1] if len(frame) > 4000][8:]
    assert len(second) > 5
    assert all(not any(frame[74:-8]) for frame in second)


def test_the_longest_frame() -> None:
    assert MAX_FRAME_BYTES == 65_535 + 14 + 4
