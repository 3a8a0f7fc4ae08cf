"""A host's end of an NDN network: makes and sends frames, at a pace, and takes frames apart."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gradbed.formats import tlv
from gradbed.formats.datagram import ETHERNET_BYTES
from gradbed.formats.tlv import MalformedError, Name
from gradbed.hosts.agents.context import Interface
from gradbed.hosts.systems.ndn.config import CHUNK_FRAMES
from gradbed.hosts.systems.ndn.packets import (
    CONTENT_HEAD_BYTES,
    Frames,
    VersionHead,
    content_bytes,
    data_frame,
    ethernet,
    interest_frame,
)

_META_INFO = bytes((tlv.META_INFO,))


@dataclass(frozen=True)
class Fragment:
    """A gradient's Data."""

    publisher: int
    version: int
    segment: int
    pushed: bool
    """Whether it came under the name of a distribution, not that of a probe."""
    head: VersionHead
    lanes: NDArray[np.int32]


class NdnEndpoint:
    """The end of an agent on an open interface. Frames wait for the pace; single packets do not."""

    def __init__(self, interface: Interface, mac: bytes, pace_bps: int | None, seed: str) -> None:
        self._interface = interface
        self._pace_bps = pace_bps
        self._nonces = random.Random(seed)
        self._queue: deque[Frames] = deque()
        self._next_us = 0
        self.header = ethernet(mac)

    def send_interest(self, name: Name, lifetime_ms: int, must_be_fresh: bool = False) -> None:
        frame = interest_frame(self.header, name, self._nonces.getrandbits(32), lifetime_ms, must_be_fresh)
        self._send(frame)

    def send_data(self, name: Name, *body: bytes) -> None:
        """body: all TLVs after the name; without, those of an empty content."""
        self._send(data_frame(self.header, name, *body))

    def _send(self, frame: bytes) -> None:
        self._interface.send(np.frombuffer(frame, np.uint8).reshape(1, -1))

    def queue(self, frames: Frames) -> None:
        """Equally long frames, one per row."""
        self._queue += [frames[at : at + CHUNK_FRAMES] for at in range(0, len(frames), CHUNK_FRAMES)]

    @property
    def deadline_us(self) -> int | None:
        """Return when queued frames can leave; None: there are none."""
        return self._next_us if self._queue else None

    def send_queued(self, now_us: int) -> int:
        """Send as many frames as the pace allows by now; return how many."""
        sent = 0
        while self._queue and self._next_us <= now_us:
            frames = np.ascontiguousarray(self._queue.popleft())
            self._interface.send(frames)
            sent += len(frames)
            if self._pace_bps is not None:
                self._next_us = max(self._next_us, now_us - 1000) + 8_000_000 * frames.size // self._pace_bps
        return sent

    def receive(self) -> list[bytes] | None:
        """Return one batch of frames; None: nothing waits."""
        buffer, lengths = self._interface.receive()
        if not len(lengths):
            return None
        return [buffer[row, :length].tobytes() for row, length in enumerate(lengths.tolist())]


class FragmentReader:
    """Takes Data of gradients apart. prefixes: the names before the version, as bytes, of pushes and probes, with the
    publisher's number."""

    def __init__(self, pushed: Mapping[bytes, int], probed: Mapping[bytes, int], lanes: int) -> None:
        self._prefixes = {
            **{prefix: (publisher, True) for prefix, publisher in pushed.items()},
            **{prefix: (publisher, False) for prefix, publisher in probed.items()},
        }
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})
        self._lanes = lanes
        self._content_head = tlv.number(tlv.CONTENT) + tlv.number(content_bytes(lanes))
        self._heads: dict[bytes, VersionHead] = {}

    def read(self, frame: bytes) -> Fragment | None:
        """Return the fragment in a Data packet; None: Data of something else.

        MalformedError for what is not Data, or not of a gradient's form.
        """
        kind, at, end = tlv.read_tlv(frame, ETHERNET_BYTES, len(frame))
        first, begin, after = tlv.read_tlv(frame, at, end)
        if kind != tlv.DATA or first != tlv.NAME:
            raise MalformedError("no Data")
        name = frame[begin:after]
        for length in self._lengths:
            found = self._prefixes.get(name[:length])
            if found is not None:
                break
        else:
            return None
        numbers = tlv.read_name(name, length, len(name))
        if len(numbers) != 2:
            return None
        if frame[after : after + 1] == _META_INFO:
            _, _, after = tlv.read_tlv(frame, after, end)
        content = after + len(self._content_head)
        if frame[after:content] != self._content_head or content + content_bytes(self._lanes) > end:
            raise MalformedError("content that is no fragment of a gradient")
        publisher, pushed = found
        return Fragment(
            publisher,
            tlv.component_number(numbers[0], tlv.VERSION),
            tlv.component_number(numbers[1], tlv.SEGMENT),
            pushed,
            self._head(frame[content : content + CONTENT_HEAD_BYTES]),
            np.frombuffer(frame, ">i4", self._lanes, content + CONTENT_HEAD_BYTES),
        )

    def _head(self, data: bytes) -> VersionHead:
        """The fragments of a version have equal ones."""
        head = self._heads.get(data)
        if head is None:
            if len(self._heads) > 4096:
                self._heads.clear()
            head = self._heads[data] = VersionHead.from_bytes(data)
        return head


def waiting(*deadlines_us: int | None) -> Iterator[int]:
    """Return the bits that are set."""
    return (deadline for deadline in deadlines_us if deadline is not None)
