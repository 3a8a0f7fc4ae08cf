"""Linux namespaces and mounts through libc: what Python's os module offers only from 3.12, or not at all."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable
from typing import TypeVar

from gradbed.common.errors import UserError

# <linux/sched.h>
CLONE_NEWNS = 0x0002_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWNET = 0x4000_0000

# <sys/mount.h>
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x4_0000

_SIOCGSKNS = 0x894C  # <linux/sockios.h>
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1  # <linux/sockios.h>, <linux/if.h>

Result = TypeVar("Result")

_libc = ctypes.CDLL(None, use_errno=True)


def _check(outcome: int, what: str) -> None:
    if outcome < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def require_root(what: str) -> None:
    """Raise UserError unless the effective user is root; `what` is the subject of the sentence."""
    if os.geteuid() != 0:
        raise UserError(f"{what} needs root: run with sudo")


def unshare(flags: int) -> None:
    """Give the calling thread new namespaces (unshare(2)). OSError."""
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, filesystem: str | None, flags: int, options: str | None = None) -> None:
    """Mount a file system. OSError.

    Args:
        source: A device, or a name for file systems without one.
        target: The mount point.
        filesystem: Its type; None to change an existing mount.
        flags: MS_* of mount(2).
        options: Of the file system, as mount -o takes them.
    """
    encoded = (text.encode() if text is not None else None for text in (source, target, filesystem))
    data = options.encode() if options is not None else None
    _check(_libc.mount(*encoded, ctypes.c_ulong(flags), data), f"mount {target}")


def loopback_up() -> None:
    """Bring up `lo` in the calling thread's network namespace. OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(control, _SIOCGIFFLAGS, request), 16)
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def in_network_namespace(pid: int, function: Callable[[], Result]) -> Result:
    """Call `function` in the network namespace of a process and return what it returns.

    It runs in a thread of its own, which alone changes namespace, so the caller is never left in the wrong
    one, whatever interrupts it. Sockets and processes that the function makes stay in that namespace.
    """

    def enter() -> None:
        with open(f"/proc/{pid}/ns/net", "rb") as namespace:
            _check(_libc.setns(namespace.fileno(), CLONE_NEWNET), f"setns to process {pid}")

    return _call_in_thread(enter, function)


def in_namespace_of_socket(made: socket.socket, function: Callable[[], Result]) -> Result:
    """Call `function` in the network namespace of a socket. Without root, which alone can have a socket of another
    one, it is this thread's."""
    try:
        namespace = fcntl.ioctl(made, _SIOCGSKNS)
    except OSError:
        return function()

    def enter() -> None:
        _check(_libc.setns(namespace, CLONE_NEWNET), "setns")

    try:
        return _call_in_thread(enter, function)
    finally:
        os.close(namespace)


def in_new_network_namespace(function: Callable[[], Result]) -> Result:
    """Call `function` in a network namespace of its own, which goes when it returns."""
    return _call_in_thread(lambda: unshare(CLONE_NEWNET), function)


def _call_in_thread(enter: Callable[[], None], function: Callable[[], Result]) -> Result:
    outcome: list[Result] = []
    failure: list[BaseException] = []

    def visit() -> None:
        try:
            enter()
            outcome.append(function())
        except BaseException as error:
            failure.append(error)

    visitor = threading.Thread(target=visit, name="network-namespace", daemon=True)
    visitor.start()
    visitor.join()
    if failure:
        raise failure[0]
    return outcome[0]
