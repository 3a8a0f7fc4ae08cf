"""An interface of the kernel as agents have it: whole Ethernet frames through a raw socket, in batches."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradbed.common.errors import UserError
from gradbed.common.resources import Closing
from gradbed.formats.datagram import ETHER_TYPE_IPV4, ETHERNET_BYTES, FRAGMENT_MASK, PROTOCOL_UDP
from gradbed.hosts.agents.frames.counts import InterfaceCounts, Patterns
from gradbed.hosts.agents.nic import RawFrames, stamped

# ---- Classic BPF programs: which frames a packet socket receives ----


_SO_ATTACH_FILTER = 26

# Instruction classes, sizes and modes of linux/bpf_common.h, as far as used.
_LOAD_HALF_ABSOLUTE = 0x28
_LOAD_BYTE_ABSOLUTE = 0x30
_LOAD_HALF_INDIRECT = 0x48
_LOAD_X_HEADER_LENGTH = 0xB1  # X = 4 * (byte & 15)
_JUMP_EQUAL = 0x15
_JUMP_BITS_SET = 0x45
_RETURN = 0x06

_WHOLE_FRAME = 0x40000
Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant

DROP_ALL: tuple[Instruction, ...] = ((_RETURN, 0, 0, 0),)


def udp_destination_port(port: int) -> tuple[Instruction, ...]:
    """Accepts Ethernet frames with an unfragmented IPv4 datagram to a UDP port."""
    return (
        (_LOAD_HALF_ABSOLUTE, 0, 0, 12),  # EtherType
        (_JUMP_EQUAL, 0, 8, ETHER_TYPE_IPV4),
        (_LOAD_BYTE_ABSOLUTE, 0, 0, 23),  # IPv4 protocol
        (_JUMP_EQUAL, 0, 6, PROTOCOL_UDP),
        (_LOAD_HALF_ABSOLUTE, 0, 0, 20),  # IPv4 flags and fragment offset
        (_JUMP_BITS_SET, 4, 0, FRAGMENT_MASK),
        (_LOAD_X_HEADER_LENGTH, 0, 0, ETHERNET_BYTES),
        (_LOAD_HALF_INDIRECT, 0, 0, 16),  # 14 bytes of Ethernet + X + 2
        (_JUMP_EQUAL, 0, 1, port),
        (_RETURN, 0, 0, _WHOLE_FRAME),
        (_RETURN, 0, 0, 0),
    )


def inverted(program: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """Accepts what the other does not."""
    return tuple(
        (code, yes, no, _WHOLE_FRAME - value if code == _RETURN else value) for code, yes, no, value in program
    )


def attach_filter(sock: socket.socket, program: Sequence[Instruction]) -> None:
    """Let the kernel drop what `program` does not accept before it reaches the socket."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *instruction) for instruction in program))
    sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(code)))


# ---- Batches of messages, on any datagram or packet socket ----


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
        """Return when the last messages arrived, by the wall clock (frames,), if the socket has SO_TIMESTAMPNS."""
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


# ---- Frames that are to leave at times to come, where the kernel's interfaces have no such thing ----


Due = tuple[NDArray[np.uint8], NDArray[np.uint32] | None, bool]
"""Rows of bytes, their lengths if they differ, and whether they are to be stamped."""


class TimedFrames:
    """Batches in the order in which they were added; a batch waits for those before it."""

    def __init__(self) -> None:
        self._batches: deque[tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.uint32] | None, bool]] = deque()

    def add(
        self, frames: NDArray[Any], times_ns: NDArray[np.int64], lengths: NDArray[np.uint32] | None, stamp: bool
    ) -> None:
        """Queue frames for their times, as gradbed.hosts.agents.context.Interface.send_at."""
        if len(frames):
            rows = np.ascontiguousarray(frames).view(np.uint8).reshape(len(frames), -1)
            self._batches.append((rows, times_ns, lengths, stamp))

    @property
    def next_ns(self) -> int | None:
        """Return when the next frame is due; None: there is none."""
        return int(self._batches[0][1][0]) if self._batches else None

    def take_due(self, now_ns: int) -> list[Due]:
        """Remove and return all frames whose time has come."""
        due: list[Due] = []
        while self._batches and self._batches[0][1][0] <= now_ns:
            rows, times_ns, lengths, stamp = self._batches.popleft()
            count = int(np.searchsorted(times_ns, now_ns, "right"))
            due.append((rows[:count], None if lengths is None else lengths[:count], stamp))
            if count < len(rows):
                rest = None if lengths is None else lengths[count:]
                self._batches.appendleft((rows[count:], times_ns[count:], rest, stamp))
        return due


# ---- The interface ----


_ETH_P_ALL = 0x0003
_SOL_PACKET = 263
_PACKET_ADD_MEMBERSHIP = 1
_PACKET_STATISTICS = 6
_PACKET_IGNORE_OUTGOING = 23
_PACKET_MR_MULTICAST = 0
_SO_SNDBUFFORCE = 32
_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPNS = 35

BUFFER_BYTES = 8 << 20
BATCH_FRAMES = 128
MOST_BATCHES = 32
"""That an agent takes in before it acts, however fast more come."""

FRAME_CAPACITY_BYTES = 2048
SEND_ATTEMPTS = 50
SEND_RETRY_MS = 1
_TRANSIENT = (errno.ENOBUFS, errno.EAGAIN, errno.EINTR)


class RawSocket(Closing):
    """gradbed.hosts.agents.context.Interface: an AF_PACKET socket on an interface of the present network namespace.

    Raises UserError when the interface is missing or the right to open raw sockets is.
    """

    def __init__(
        self,
        interface: str,
        *,
        udp_port: int | None = None,
        ether_type: int | None = None,
        except_udp_port: int | None = None,
        classes: Patterns = (),
    ) -> None:
        """Takes in what gradbed.hosts.agents.context.AgentContext.open says. classes: of packets, by which it
        counts."""
        protocol = ETHER_TYPE_IPV4 if udp_port is not None else ether_type or _ETH_P_ALL
        with contextlib.ExitStack() as stack:
            try:
                # Protocol 0 receives nothing until bound: no frame slips in before the filter is there.
                self._socket = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
                if udp_port is not None:
                    attach_filter(self._socket, udp_destination_port(udp_port))
                    stack.enter_context(_hold_udp_port(udp_port))
                if except_udp_port is not None:
                    attach_filter(self._socket, inverted(udp_destination_port(except_udp_port)))
                if protocol == _ETH_P_ALL:
                    stack.enter_context(_silent_kernel(interface))
                self._socket.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
                self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
                self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, BUFFER_BYTES)
                self._socket.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, BUFFER_BYTES)
                self._socket.bind((interface, protocol))
            except PermissionError:
                raise UserError(f"raw sockets on {interface} need root: run with sudo") from None
            except OSError as error:
                raise UserError(f"cannot open a raw socket on interface {interface}: {error.strerror}") from None
            self._resources = stack.pop_all()
        self._interface_index = socket.if_nametoindex(interface)
        self._batches = _Batches(self._socket)
        self._kept: tuple[NDArray[np.uint8], NDArray[np.uint32]] | None = None
        self._timed = TimedFrames()
        self.counts = InterfaceCounts.by(classes)
        self.on_close(self.drops)

    def close(self) -> None:
        self._resources.close()

    def on_close(self, action: Callable[[], object]) -> None:
        """Do this before the socket is closed."""
        self._resources.callback(action)

    def fileno(self) -> int:
        return self._socket.fileno()

    def join(self, mac: bytes) -> None:
        """Let the interface take frames to this multicast MAC address (NICs filter them)."""
        request = struct.pack("iHH8s", self._interface_index, _PACKET_MR_MULTICAST, len(mac), mac)
        self._socket.setsockopt(_SOL_PACKET, _PACKET_ADD_MEMBERSHIP, request)

    def receive(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        """Return one batch of waiting frames, without blocking: buffer (frames, capacity) and lengths (frames,).

        The buffer is valid until the next call. No lengths: nothing waits.
        """
        buffer, lengths = self._kept or self._batches.receive_batch()
        self._kept = None
        self.counts.add_received(buffer, lengths)
        return buffer, lengths

    @property
    def times_ns(self) -> NDArray[np.int64]:
        """Return when the frames of the last batch arrived, by the kernel's time stamps, of time.monotonic_ns
        (frames,).
        """
        return self._batches.times_ns

    def send_at(
        self,
        frames: NDArray[Any],
        times_ns: NDArray[np.int64],
        lengths: NDArray[np.uint32] | None = None,
        *,
        stamp: bool = False,
    ) -> None:
        """Send frames at times of time.monotonic_ns: whenever send_due is called."""
        self._timed.add(frames, times_ns, lengths, stamp)
        self.send_due()

    def send_due(self) -> int | None:
        """Send what is due; when the next is, None: nothing more."""
        now_ns = time.monotonic_ns()
        for frames, lengths, stamp in self._timed.take_due(now_ns):
            if stamp:
                stamped(frames, np.full(len(frames), time.monotonic_ns()), lengths)
            self.send(frames, lengths)
        return self._timed.next_ns

    def send(self, frames: NDArray[Any], lengths: NDArray[np.uint32] | None = None) -> int:
        """Send frames, one per row (C-contiguous); returns how many the kernel took.

        lengths (frames,): bytes of each row that are the frame; None: all. Waits for room in a full queue, but not
        for ever: what stays behind is lost like any packet.
        """
        sent = self._batches.send(frames, lengths)
        self.counts.add_sent(frames, sent, lengths)
        return sent

    def raw_frames(self) -> RawFrames | None:
        return None if self._kept else self._batches

    def keep(self, buffer: NDArray[np.uint8], lengths: NDArray[np.uint32], times_ns: NDArray[np.int64]) -> None:
        # It came last: its times are there still.
        self._kept = buffer, lengths

    def drops(self) -> int:
        """Frames lost so far because the receive buffer was full (packet(7), PACKET_STATISTICS)."""
        if self.fileno() >= 0:
            _, dropped = struct.unpack("II", self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8))
            self.counts.drops += dropped  # reading resets the kernel's count
        return self.counts.drops


class _Batches:
    """gradbed.hosts.agents.nic.RawFrames of a socket."""

    def __init__(self, raw: socket.socket) -> None:
        self._socket = raw
        self._received = ReceiveBatch(BATCH_FRAMES, FRAME_CAPACITY_BYTES)
        self._sent = SendBatch(BATCH_FRAMES)
        self._all_wall_times_ns: NDArray[np.int64] | None = None
        """Of several batches."""

    def receive(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        buffer, lengths = self.receive_batch()
        if len(lengths) < BATCH_FRAMES:
            return buffer, lengths
        batches = [(buffer.copy(), lengths, self._received.wall_times_ns)]
        while len(lengths) == BATCH_FRAMES and len(batches) < MOST_BATCHES:
            buffer, lengths = self.receive_batch()
            batches.append((buffer[: len(lengths)].copy(), lengths, self._received.wall_times_ns))
        buffers, all_lengths, self._all_wall_times_ns = (np.concatenate(each) for each in zip(*batches, strict=True))
        return buffers, all_lengths

    def receive_batch(self) -> tuple[NDArray[np.uint8], NDArray[np.uint32]]:
        try:
            lengths = self._received.receive(self._socket.fileno())
        except OSError as error:
            raise UserError(f"cannot receive: {error.strerror}") from None
        self._all_wall_times_ns = None
        return self._received.buffer, lengths

    @property
    def times_ns(self) -> NDArray[np.int64]:
        several = self._all_wall_times_ns
        wall_times_ns = self._received.wall_times_ns if several is None else several
        return wall_times_ns + (time.monotonic_ns() - time.time_ns())

    def send(self, frames: NDArray[Any], lengths: NDArray[np.uint32] | None = None) -> int:
        sent, attempts = 0, 0
        while sent < len(frames):
            try:
                rest = None if lengths is None else lengths[sent:]
                sent += self._sent.send(self._socket.fileno(), frames[sent:], rest)
                attempts = 0
            except OSError as error:
                if error.errno not in _TRANSIENT:
                    raise UserError(f"cannot send: {error.strerror}") from None
                attempts += 1
                if attempts == SEND_ATTEMPTS:
                    break
                # ENOBUFS comes from the queueing discipline, which nothing announces room in: just wait.
                select.select([], [], [], SEND_RETRY_MS / 1000)
        return sent


def _silent_kernel(interface: str) -> AbstractContextManager[None]:
    # netlink's library takes a while to load; those who need it load it beforehand (NetworkSetup.preload).
    from gradbed.hosts.agents.kernel.namespace import silent_kernel

    return silent_kernel(interface)


def _hold_udp_port(port: int) -> socket.socket:
    """A bound socket that never receives: without it the kernel answers every packet with 'port unreachable'."""
    holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        attach_filter(holder, DROP_ALL)
        holder.bind(("0.0.0.0", port))
    except OSError:
        holder.close()
        raise
    return holder
