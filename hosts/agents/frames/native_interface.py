"""An interface of a simulated network's card that one agent has for itself, as the agent's own C gets at it."""

from __future__ import annotations

import ctypes
import functools
from ctypes import c_uint64, c_void_p
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hosts.agents.frames.interface_counts import InterfaceCounts

_ROWS, _ROW_BYTES = 512, 2048


CardCalls = tuple[int, int, int, int, int]
"""struct gb_card_calls of frames.h: the network's address, the card's number, addresses of functions."""


@runtime_checkable
class CardWithCalls(Protocol):
    @property
    def calls(self) -> CardCalls:
        """Valid as long as the network is there."""


class InterfaceStruct(ctypes.Structure):
    """struct gb_interface."""

    _fields_ = (
        ("network", c_void_p),
        ("card", c_uint64),
        ("waiting", c_void_p),
        ("receive", c_void_p),
        ("send", c_void_p),
        ("words", c_void_p),
        ("word_count", c_uint64),
        ("received_classes", c_void_p),
        ("sent_classes", c_void_p),
        ("received_frames", c_uint64),
        ("received_bytes", c_uint64),
        ("sent_frames", c_uint64),
        ("sent_bytes", c_uint64),
        ("rows", c_void_p),
        ("lengths", c_void_p),
        ("times_ns", c_void_p),
        ("stride", c_uint64),
        ("capacity", c_uint64),
    )


class _Rows(NamedTuple):
    frames: NDArray[np.uint8]
    lengths: NDArray[np.uint32]
    times_ns: NDArray[np.int64]


@functools.cache
def _rows() -> _Rows:
    """Of all interfaces: nobody else acts meanwhile."""
    return _Rows(np.empty((_ROWS, _ROW_BYTES), np.uint8), np.empty(_ROWS, np.uint32), np.empty(_ROWS, np.int64))


class NativeInterface:
    """What it carries is counted with the rest."""

    def __init__(self, calls: CardCalls, counts: InterfaceCounts) -> None:
        rows, sent, received = _rows(), counts.sent_classes, counts.received_classes
        self.struct = InterfaceStruct(
            *calls,
            words=received.words,
            word_count=received.word_count,
            received_classes=received.address,
            sent_classes=sent.address,
            rows=rows.frames.ctypes.data,
            lengths=rows.lengths.ctypes.data,
            times_ns=rows.times_ns.ctypes.data,
            stride=_ROW_BYTES,
            capacity=_ROWS,
        )
        counts.native = self.struct

    @staticmethod
    def rows(count: int) -> tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.int64]]:
        """The first: frames, lengths, and when each arrived; valid until any interface's C receives or sends."""
        rows = _rows()
        return rows.frames[:count], rows.lengths[:count], rows.times_ns[:count]
