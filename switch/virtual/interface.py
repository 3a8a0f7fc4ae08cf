"""A host's network interface in memory."""

from __future__ import annotations

import ctypes
import errno

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.switch.engine import Engine
from gradbed.switch.engine.abi import MAX_FRAME_BYTES, NEVER_TOLD
from gradbed.switch.engine.queue_pairs import HostQueuePairs

_FIRST_FRAMES = 64
_FIRST_FRAME_BYTES = 2048


class HostInterface:
    """The host's end of a switch port. Made by VirtualFabric.interface; sends and receives as hosts' raw sockets do.

    receive_coalescing_us: how long after the first frame of a batch the host is told of it (rx-usecs of ethtool(8)).
    """

    def __init__(self, engine: Engine, device_id: int, port: int, receive_coalescing_us: int) -> None:
        if receive_coalescing_us < 0:
            raise UserError(f"receive_coalescing_us is not negative, got {receive_coalescing_us}")
        self.device_id = device_id
        self.port = port
        self.receive_coalescing_us = receive_coalescing_us
        self._engine = engine
        self.number = self._listen(receive_coalescing_us * 1000)
        if self.number < 0:
            raise UserError(f"port {port} of switch {device_id} does not lead to a host in memory")
        self._longest = ctypes.c_uint32()
        self._longest_pointer = ctypes.byref(self._longest)
        self._make_room(_FIRST_FRAMES, _FIRST_FRAME_BYTES)
        self.times_ns: NDArray[np.int64] = self._times_ns[:0]
        """When the frames of the last batch arrived, in nanoseconds of the virtual clock."""

    def _listen(self, receive_coalescing_ns: int) -> int:
        number: int = self._engine.call("open_inbox", self.device_id, self.port, receive_coalescing_ns)
        return number

    def set_quiet(self, quiet: bool) -> None:
        """Whether the host is told of nothing any more: it receives when it likes, and time does not stop for it."""
        self._listen(NEVER_TOLD if quiet else self.receive_coalescing_us * 1000)

    def send(
        self,
        frames: NDArray[np.generic],
        lengths: NDArray[np.uint32] | None = None,
        times_ns: NDArray[np.int64] | None = None,
    ) -> int:
        """Offer whole Ethernet frames, one in each row, to the link, in order; how many.

        A full queue of the link drops, and counts, what is too much. lengths (frames,): how many bytes of each row
        are the frame; None: all. times_ns (frames,): when each is offered, now if that is over; None: now. Raises
        ValueError for frames that are too long.
        """
        count = len(frames)
        if count == 0:
            return 0
        frames = np.ascontiguousarray(frames)
        stride = frames.nbytes // count
        if lengths is not None:
            lengths = np.ascontiguousarray(lengths, np.uint32)
            if lengths.shape != (count,):
                raise ValueError(f"{count} frames, but lengths of shape {lengths.shape}")
        if times_ns is not None:
            times_ns = np.ascontiguousarray(times_ns, np.int64)
            if times_ns.shape != (count,):
                raise ValueError(f"{count} frames, but times of shape {times_ns.shape}")
        at = None if lengths is None else lengths.ctypes.data
        times = None if times_ns is None else times_ns.ctypes.data
        code = self._engine.call("send", self.number, frames.ctypes.data, stride, at, times, count)
        if code == -errno.EMSGSIZE:
            raise ValueError(f"a frame is longer than its row, or than {MAX_FRAME_BYTES} bytes")
        if code == -errno.ENOMEM:
            raise MemoryError("too many packets are under way")
        if code < 0:
            raise UserError(f"the interface at port {self.port} of switch {self.device_id} was closed")
        return count

    def receive(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        """What the host has been told of: buffer (frames, capacity) and lengths (frames,); none: nothing waits.

        Valid until the next call, as are `times_ns` (frames,).
        """
        count = self._engine.call("inbox_waiting", self.number, self._longest_pointer)
        if count <= 0:
            self.times_ns = self._times_ns[:0]
            return self._frames[:0], self._lengths[:0]
        capacity, row_bytes = self._frames.shape
        if count > capacity or self._longest.value > row_bytes:
            self._make_room(max(capacity, 2 * count), max(row_bytes, self._longest.value))
        self._engine.call("receive", self.number, *self._pointers, count)
        self.times_ns = self._times_ns[:count]
        return self._frames[:count], self._lengths[:count]

    def open_queue_pairs(self) -> HostQueuePairs:
        """Of its NIC, which is told of with the interface."""
        return HostQueuePairs(self._engine, self.device_id, self.port)

    def close(self) -> None:
        """Nobody listens any more: what waits and what comes is lost. May be repeated."""
        self._engine.call("close_inbox", self.number)

    def _make_room(self, frames: int, row_bytes: int) -> None:
        self._frames = np.empty((frames, row_bytes), np.uint8)
        self._lengths = np.empty(frames, np.uint32)
        self._times_ns = np.empty(frames, np.int64)
        self._pointers = (self._frames.ctypes.data, row_bytes, self._lengths.ctypes.data, self._times_ns.ctypes.data)
