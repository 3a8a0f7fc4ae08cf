"""Packets per second through whatever lies between two interfaces: the C of packet_io.c, from Python."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gradbed.common.c_headers import CHeaders
from gradbed.common.c_library import shared_library

_SOURCE = Path(__file__).with_name("packet_io.c")
DECLARATIONS = CHeaders(_SOURCE)
FRAME_ROOM = DECLARATIONS.constant("FRAME_ROOM")


@DECLARATIONS.declare("load")
class _Load(ctypes.Structure):
    """What is sent, and how."""


@DECLARATIONS.declare("outcome")
class _Outcome(ctypes.Structure):
    """What was measured."""


@dataclass(frozen=True)
class Cycle:
    """Frames that are sent again and again."""

    frames: tuple[bytes, ...]
    outputs: int
    """How many frames come out for one cycle."""
    sequence_offset: int = 0
    """Where in each frame a sequence number of 32 bits lies."""
    sequence_step: int = 0
    """What is added to it from one cycle to the next."""


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(str(shared_library("bench-packet-io", [_SOURCE])))


def build() -> None:
    """Compile the C, so that measurements do not begin with it."""
    _library()


def forward_for_ever(left: str, right: str) -> None:
    """Forward frames between two interfaces; a byte on standard output says when. Ends only with OSError."""
    code = _library().bench_forward(left.encode(), right.encode(), 1)
    raise OSError(-code, f"forwarding between {left} and {right}: {os.strerror(-code)}")


class Source:
    """Sends a cycle; goes on each time where it stopped."""

    def __init__(self, cycle: Cycle) -> None:
        self._cycle = cycle
        self._frames = bytearray().join(frame.ljust(FRAME_ROOM, b"\0") for frame in cycle.frames)
        self._exported = (ctypes.c_uint8 * len(self._frames)).from_buffer(self._frames)
        self._lengths = (ctypes.c_uint32 * len(cycle.frames))(*map(len, cycle.frames))
        self._load = _Load(
            frames=ctypes.addressof(self._exported),
            lengths=ctypes.addressof(self._lengths),
            count=len(cycle.frames),
            outputs=cycle.outputs,
            sequence_offset=cycle.sequence_offset,
            sequence_step=cycle.sequence_step,
        )

    def whole_cycle(self) -> Iterator[bytes]:
        """Yield the frames of a cycle for the caller to send, before any drive."""
        for i, frame in enumerate(self._cycle.frames):
            start = i * FRAME_ROOM
            yield bytes(self._frames[start : start + len(frame)])
            if self._cycle.sequence_step:
                at = start + self._cycle.sequence_offset
                number = int.from_bytes(self._frames[at : at + 4], "big") + self._cycle.sequence_step
                self._frames[at : at + 4] = (number % (1 << 32)).to_bytes(4, "big")

    def drive(self, entrance: str, exit_: str, *, window: int, warm_up_s: float, measure_s: float) -> float:
        """Return the frames per second that entered at one interface and whose outputs were counted at the other.

        Closed loop: at most `window` frames are under way, so nothing is lost to full queues unless a queue is
        shorter than that; what has not come out after 0.1 s counts as lost.
        """
        load, outcome = self._load, _Outcome()
        load.interface = entrance.encode()
        load.window, load.warm_up_ns, load.measure_ns = window, int(warm_up_s * 1e9), int(measure_s * 1e9)
        code = _library().bench_drive(ctypes.byref(load), exit_.encode(), ctypes.byref(outcome))
        if code != 0:
            raise OSError(-code, f"sending from {entrance} to {exit_}: {os.strerror(-code)}")
        return float(outcome.received * load.count / load.outputs / (outcome.elapsed_ns / 1e9))
