"""Many datagrams by one system call: sendmmsg(2) and recvmmsg(2) by ctypes on NumPy memory.

Works on any datagram or packet socket. The message headers are laid out once; a call only fills in addresses
and lengths. Where the socket has SO_TIMESTAMPNS, the kernel's times of arrival come with the messages.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MSG_DONTWAIT = 0x40


class _Iovec(ctypes.Structure):
    # Pointers as size_t, so that NumPy can fill whole columns of them.
    _fields_ = (("base", ctypes.c_size_t), ("length", ctypes.c_size_t))


class _Msghdr(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_size_t),
        ("name_length", ctypes.c_uint),
        ("iov", ctypes.c_size_t),
        ("iov_count", ctypes.c_size_t),
        ("control", ctypes.c_size_t),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )


class _Mmsghdr(ctypes.Structure):
    _fields_ = (("header", _Msghdr), ("length", ctypes.c_uint))


# One control message, of SO_TIMESTAMPNS: struct cmsghdr and struct timespec.
_CONTROL = np.dtype(
    [("length", "u8"), ("level", "i4"), ("type", "i4"), ("seconds", "i8"), ("nanoseconds", "i8")], align=True
)

_libc = ctypes.CDLL(None, use_errno=True)


class _Headers:
    """`count` mmsghdr structures with one iovec each."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.iovecs: NDArray[np.void] = np.zeros(count, np.dtype(_Iovec))
        self.messages: NDArray[np.void] = np.zeros(count, np.dtype(_Mmsghdr))
        self.messages["header"]["iov"] = self.iovecs.ctypes.data + np.arange(count) * self.iovecs.itemsize
        self.messages["header"]["iov_count"] = 1
        self.pointer = ctypes.c_void_p(self.messages.ctypes.data)

    def point_at(self, memory: NDArray[Any], count: int, stride: int, length: int | NDArray[np.uint32]) -> None:
        """Let the first `count` messages be `length` bytes, of each or of all, `stride` apart, from the start of
        `memory`."""
        self.iovecs["base"][:count] = memory.ctypes.data + np.arange(count) * stride
        self.iovecs["length"][:count] = length


def _raise_errno() -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


class ReceiveBatch:
    """Room for `frames` frames of up to `capacity_bytes` bytes; longer ones are cut."""

    def __init__(self, frames: int, capacity_bytes: int) -> None:
        self.buffer: NDArray[np.uint8] = np.zeros((frames, capacity_bytes), np.uint8)
        self._headers = _Headers(frames)
        self._headers.point_at(self.buffer, frames, capacity_bytes, capacity_bytes)
        self._control: NDArray[np.void] = np.zeros(frames, _CONTROL)
        self._headers.messages["header"]["control"] = (
            self._control.ctypes.data + np.arange(frames) * _CONTROL.itemsize
        )
        self._count = 0

    def receive(self, file_descriptor: int) -> NDArray[np.uint32]:
        """Take what is waiting, without blocking: lengths of the frames now in `buffer`, shape (frames,).

        Raises OSError, except when nothing waits.
        """
        self._headers.messages["header"]["control_length"] = _CONTROL.itemsize
        count = _libc.recvmmsg(file_descriptor, self._headers.pointer, self._headers.count, _MSG_DONTWAIT, None)
        if count < 0:
            if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
                _raise_errno()
            count = 0
        self._count = count
        lengths: NDArray[np.uint32] = self._headers.messages["length"][:count].astype(np.uint32)
        return lengths

    @property
    def wall_times_ns(self) -> NDArray[np.int64]:
        """When the last messages arrived, of the wall clock (frames,), if the socket has SO_TIMESTAMPNS."""
        stamps = self._control[: self._count]
        times_ns: NDArray[np.int64] = stamps["seconds"] * 1_000_000_000 + stamps["nanoseconds"]
        return times_ns


class SendBatch:
    """Sends frames, at most `frames` per system call."""

    def __init__(self, frames: int) -> None:
        self._headers = _Headers(frames)

    def send(self, file_descriptor: int, frames: NDArray[Any], lengths: NDArray[np.uint32] | None = None) -> int:
        """Send the rows of `frames` (C-contiguous, any dtype); returns how many, at least one unless empty.

        lengths (frames,): bytes of each row that are sent; None: all.
        Blocks while the socket's buffer is full, if the socket does. Raises OSError if not even the first
        could be sent.
        """
        if not frames.flags.c_contiguous:
            raise ValueError("frames must be C-contiguous")
        count = min(len(frames), self._headers.count)
        if count == 0:
            return 0
        length = frames.nbytes // len(frames)
        self._headers.point_at(frames, count, length, length if lengths is None else lengths[:count])
        sent = _libc.sendmmsg(file_descriptor, self._headers.pointer, count, 0)
        if sent < 0:
            _raise_errno()
        return int(sent)
