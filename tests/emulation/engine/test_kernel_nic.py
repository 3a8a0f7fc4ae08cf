"""NICs on the machine's clock, over a veth pair: against a queue pair written in Python, and in agents."""

from __future__ import annotations

import contextlib
import os
import random
import select
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.formats.roce import ROCE_PORT
from gradbed.hosts.agents.kernel.raw_socket import RawSocket
from gradbed.switch.engine.queue_pairs import HostQueuePairs
from gradbed.switch.kernel_nic import KernelNic
from tests.emulation.namespaces import Namespace
from tests.emulation.programs import PATIENCE_S
from tests.unit.virtual.transport.network import FAILED, RECEIVED, SENT, contents, ip, mac
from tests.unit.virtual.transport.python_peer import PythonPeer

pytestmark = pytest.mark.root

NUMBER = 7
OPTIONS: dict[str, Any] = {
    "src_mac": mac(1), "dst_mac": mac(2), "src_ip": ip(1), "dst_ip": ip(2), "mtu_bytes": 1024, "window_bytes": 32_768,
    "rate_bps": 0, "timeout_ns": 30_000_000, "give_up_after": 1000, "acknowledge_every": 4, "priority": 0,
    "reordering_packets": 0, "congestion_control": "none", "recovery": "go-back-n",
}  # fmt: skip


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    """With v1, the NIC's, and v2."""
    with contextlib.closing(Namespace()) as found:
        found.run("ip", "link", "add", "v1", "type", "veth", "peer", "name", "v2")
        for interface in ("v1", "v2"):
            found.run("ip", "link", "set", interface, "up")
        yield found


class KernelLine:
    """What PythonPeer has of a simulated line: the interface v2, which loses packets by chance, and a clock."""

    def __init__(self, namespace: Namespace, loss: float, seed: int) -> None:
        self.socket = namespace.call(lambda: RawSocket("v2", udp_port=ROCE_PORT))
        self._chance = random.Random(seed)
        self._loss = loss
        self.lost = 0

    @property
    def simulated(self) -> Any:
        return SimpleNamespace(now_ns=time.monotonic_ns())

    def interface(self, host: int) -> KernelLine:
        return self

    def receive(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        frames, lengths = self.socket.receive()
        kept = [row for row in range(len(lengths)) if self._arrives()]
        return frames[kept], lengths[kept]

    def send(self, frames: NDArray[Any]) -> None:
        if self._arrives():
            self.socket.send(frames)

    def _arrives(self) -> bool:
        arrives = self._chance.random() >= self._loss
        self.lost += not arrives
        return arrives


def completions(nic: KernelNic, pairs: HostQueuePairs) -> list[Any]:
    """At most 10 ms later."""
    if select.select([nic], [], [], 0.01)[0]:
        os.read(nic.fileno(), 8)
    return pairs.completions()


@pytest.mark.parametrize("loss", [0, 0.05])
@pytest.mark.parametrize("selective", [False, True])
def test_both_understand_each_other(namespace: Namespace, selective: bool, loss: float) -> None:
    messages = [(2**60 + tag, contents(size, tag)) for tag, size in enumerate((0, 1, 1024, 50_001, 200_000))]
    line = KernelLine(namespace, loss, seed=3)
    with namespace.call(lambda: KernelNic("v1", 100_000_000)) as nic, nic.open_queue_pairs() as pairs:
        recovery = "selective-repeat" if selective else "go-back-n"
        pairs.connect(NUMBER, NUMBER, **{**OPTIONS, "recovery": recovery})
        peer = PythonPeer(
            line, 2, 1, NUMBER, selective=selective, mtu_bytes=1024, window=24, every=4, timeout_ns=30_000_000,
            first_psn=0,
        )  # type: ignore[arg-type] # fmt: skip
        for tag, data in messages:
            pairs.send(NUMBER, tag, len(data), data)
            peer.send(tag, data.tobytes())
        done: list[Any] = []
        deadline_s = time.monotonic() + PATIENCE_S
        while len(done) < 2 * len(messages) or not peer.is_done:
            assert time.monotonic() < deadline_s, done
            peer.work()
            done += completions(nic, pairs)
        assert peer.received == [(tag, data.tobytes()) for tag, data in messages]
        assert [each.tag for each in done if each.kind == SENT] == [tag for tag, _ in messages]
        came = [each for each in done if each.kind == RECEIVED]
        assert [(each.tag, each.size_bytes) for each in came] == [(tag, len(data)) for tag, data in messages]
        assert all(
            len(data) == 0 or np.array_equal(each.data, data) for each, (_, data) in zip(came, messages, strict=True)
        )
        assert (line.lost > 0) == (loss > 0)
        # A busy machine lets timers run out without a loss, too.
        assert not loss or pairs.statistics(NUMBER)["retransmissions"] > 0


def test_a_length_travels_without_contents(namespace: Namespace) -> None:
    line = KernelLine(namespace, 0, seed=1)
    with namespace.call(lambda: KernelNic("v1", None)) as nic, nic.open_queue_pairs() as pairs:
        pairs.connect(NUMBER, NUMBER, **OPTIONS)
        peer = PythonPeer(
            line, 2, 1, NUMBER, selective=False, mtu_bytes=1024, window=24, every=4, timeout_ns=10**9, first_psn=0
        )  # type: ignore[arg-type]
        pairs.send(NUMBER, 5, 10_000)
        deadline_s = time.monotonic() + PATIENCE_S
        while not peer.received:
            assert time.monotonic() < deadline_s
            peer.work()
            time.sleep(0.001)
        assert peer.received == [(5, bytes(10_000))]


def test_a_nic_sends_at_its_rate_and_counts_what_left(namespace: Namespace) -> None:
    line = KernelLine(namespace, 0, seed=1)
    with namespace.call(lambda: KernelNic("v1", 10_000_000)) as nic, nic.open_queue_pairs() as pairs:
        pairs.connect(NUMBER, NUMBER, **{**OPTIONS, "window_bytes": 0, "timeout_ns": 10**10})
        began_s = time.monotonic()
        pairs.send(NUMBER, 5, 102_400)
        frames = 0
        while frames < 100:
            frames += len(line.receive()[1])
            assert time.monotonic() < began_s + PATIENCE_S
            time.sleep(0.001)
        # 99 of 100 frames of 1,082 bytes (1,098 the first) have been sent before the last one.
        assert time.monotonic() - began_s > 99 * 1082 * 8 / 10_000_000
        carried = nic.carried()
        assert (carried["sent_frames"], carried["sent_bytes"]) == (100, 100 * 1082 + 16 + 4)


def test_a_peer_that_is_gone(namespace: Namespace) -> None:
    with namespace.call(lambda: KernelNic("v1", None)) as nic, nic.open_queue_pairs() as pairs:
        pairs.connect(NUMBER, NUMBER, **{**OPTIONS, "timeout_ns": 2_000_000, "give_up_after": 3})
        pairs.send(NUMBER, 5, 100)
        deadline_s = time.monotonic() + PATIENCE_S
        while not (found := completions(nic, pairs)):
            assert time.monotonic() < deadline_s
        assert [(each.kind, each.tag) for each in found] == [(FAILED, 5)]


def test_there_is_no_such_interface(namespace: Namespace) -> None:
    with pytest.raises(UserError, match="a NIC on v9: there is no such interface here"):
        namespace.call(lambda: KernelNic("v9", None))
