"""A queue pair in Python, written from docs/queue-pairs.md and formats/roce.py alone, for a plain interface."""

from __future__ import annotations

from collections import deque

import numpy as np

from gradbed.formats.roce import IMMEDIATE, NEGATIVE_SEQUENCE, PAD_SHIFT, PSN_BITS, RETH, SELECTIVE, Opcode
from tests.unit.virtual.transport import roce_frames as rf
from tests.unit.virtual.transport.network import Line

Message = tuple[int, bytes]
"""Tag and contents."""
BLOCK = 64


def widened(near: int, psn: int) -> int:
    half = 1 << (PSN_BITS - 1)
    return near + (psn - near + half) % (1 << PSN_BITS) - half


class PythonPeer:
    """Of host `here`, to the queue pair `number` of host `there`; its own number is the same."""

    def __init__(
        self, line: Line, here: int, there: int, number: int, *, selective: bool, mtu_bytes: int, window: int,
        every: int, timeout_ns: int, first_psn: int,
    ) -> None:  # fmt: skip
        self.received: list[Message] = []
        self._line, self._here, self._there, self._number = line, here, there, number
        self._selective, self._mtu_bytes, self._window, self._every = selective, mtu_bytes, window, every
        self._timeout_ns = timeout_ns
        # Sending: frames by number, from first_psn on.
        self._frames: list[bytes] = []
        self._first = self._una = self._next = self._top = first_psn
        self._come: set[int] = set()
        self._again: deque[int] = deque()
        self._highest_again = first_psn
        self.deadline_ns: int | None = None
        # Receiving.
        self._expected = first_psn
        self._held: dict[int, bytes] = {}
        self._since = 0
        self._asked = False
        self._messages = 0
        self._marked_bytes = 0
        self._tag, self._parts = 0, b""

    def send(self, tag: int, contents: bytes) -> None:
        parts = [contents[at : at + self._mtu_bytes] for at in range(0, len(contents), self._mtu_bytes)] or [b""]
        for i, part in enumerate(parts):
            first, last = i == 0, i == len(parts) - 1
            opcode = {
                (True, True): Opcode.WRITE_ONLY_WITH_IMMEDIATE,
                (True, False): Opcode.WRITE_FIRST,
                (False, True): Opcode.WRITE_LAST_WITH_IMMEDIATE,
                (False, False): Opcode.WRITE_MIDDLE,
            }[first, last]
            behind = rf.header(RETH, tag=tag, r_key=1, dma_length=len(contents)) if first else b""
            behind += rf.header(IMMEDIATE, immediate=tag % 2**32) if last else b""
            pad = -len(part) % 4
            psn = self._first + len(self._frames)
            self._frames.append(
                rf.frame(
                    self._here, self._there, opcode, behind + part + bytes(pad), psn=psn, pair=self._number,
                    flags=pad << PAD_SHIFT, acknowledge=0x80,
                )
            )  # fmt: skip

    @property
    def is_done(self) -> bool:
        return self._una == self._first + len(self._frames)

    def work(self) -> None:
        """Take in what has come, and send what may be sent."""
        frames, lengths = self._line.interface(self._here).receive()
        for frame, length in zip(frames.copy(), lengths.tolist(), strict=False):
            data = frame[:length].tobytes()
            if rf.bth_of(data)["opcode"] == Opcode.ACKNOWLEDGE:
                self._acknowledged(data)
            else:
                self._arrived(data)
        now_ns = self._line.simulated.now_ns
        if self.deadline_ns is not None and now_ns >= self.deadline_ns:
            self._begin_again(self._una)
            self._again = deque(psn for psn in range(self._una, self._top) if psn not in self._come)
            self.deadline_ns = now_ns + self._timeout_ns
        self._send_more()
        if self.is_done:
            self.deadline_ns = None
        elif self.deadline_ns is None:
            self.deadline_ns = now_ns + self._timeout_ns

    # ---- Sending ----

    def _send_more(self) -> None:
        while self._selective and self._again:
            psn = self._again.popleft()
            if psn >= self._una and psn not in self._come:
                self._put(self._frames[psn - self._first])
        while self._next < self._first + len(self._frames) and self._next - self._una < self._window:
            self._put(self._frames[self._next - self._first])
            self._next += 1
        self._top = max(self._top, self._next)

    def _acknowledged(self, data: bytes) -> None:
        behind = rf.behind_bth(data)
        missing = behind[0] == NEGATIVE_SEQUENCE
        una = widened(self._una, rf.bth_of(data)["psn"] + (not missing))
        if una > self._una:
            self._una, self._next = una, max(una, self._next)
            self.deadline_ns = self._line.simulated.now_ns + self._timeout_ns
        if len(behind) > 4:
            selective = rf.read(SELECTIVE, behind[4:])
            block = widened(self._una, selective["block_psn"])
            self._come |= {block + bit for bit in range(BLOCK) if selective["selective"] >> bit & 1}
            highest = max(self._come, default=0)
            self._again += [
                psn for psn in range(max(self._una, self._highest_again), highest) if psn not in self._come
            ]
            self._highest_again = max(self._highest_again, highest)
        elif missing and una == self._una:
            self._begin_again(una)

    def _begin_again(self, una: int) -> None:
        if not self._selective:
            self._next = una

    # ---- Receiving ----

    def _arrived(self, data: bytes) -> None:
        bth = rf.bth_of(data)
        psn = widened(self._expected, bth["psn"])
        ask = bool(bth["acknowledge"])
        missing = False
        if psn == self._expected:
            ends = self._accept(data)
            while self._expected in self._held:
                ends |= self._accept(self._held.pop(self._expected))
            self._asked = False
        elif psn < self._expected:
            ends = True
        elif self._selective:
            self._held[psn] = data
            ends = missing = True
        else:
            ends = missing = not self._asked
            self._asked = True
            ask = False
        if ask or ends or self._since >= self._every:
            self._answer(missing, psn)

    def _accept(self, data: bytes) -> bool:
        """Whether a message ends."""
        bth, behind = rf.bth_of(data), rf.behind_bth(data)
        opcode = bth["opcode"]
        if opcode in (Opcode.WRITE_FIRST, Opcode.WRITE_ONLY_WITH_IMMEDIATE):
            self._tag, self._parts, behind = rf.read(RETH, behind)["tag"], b"", behind[RETH.size_bytes :]
        ends = opcode in (Opcode.WRITE_LAST_WITH_IMMEDIATE, Opcode.WRITE_ONLY_WITH_IMMEDIATE)
        if ends:
            assert rf.read(IMMEDIATE, behind)["immediate"] == self._tag % 2**32
            behind = behind[IMMEDIATE.size_bytes :]
        self._parts += behind[: len(behind) - (bth["flags"] >> PAD_SHIFT & 3)]
        self._expected += 1
        self._since += 1
        if ends:
            self.received.append((self._tag, self._parts))
            self._messages += 1
        return ends

    def _answer(self, missing: bool, psn: int) -> None:
        self._since = 0
        selective = None
        if self._selective:
            block = psn // BLOCK * BLOCK
            bits = sum(1 << bit for bit in range(BLOCK) if block + bit < self._expected or block + bit in self._held)
            selective = {"block_psn": block % 2**PSN_BITS, "selective": bits}
        self._put(
            rf.acknowledgement(
                self._here, self._there, self._expected, missing=missing, messages=self._messages,
                selective=selective, pair=self._number,
            )
        )  # fmt: skip

    def _put(self, frame: bytes) -> None:
        self._line.interface(self._here).send(np.frombuffer(frame, np.uint8)[None])
