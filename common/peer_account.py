"""The account of this machine at the other end of a TCP connection over loopback."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

from gradbed.common.caller import trusted_uids

Address = tuple[str, int]
"""A numeric address and a port."""

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST = 4, 20, 1
_HEADER = struct.Struct("=IHHII")
_SOCKET_ID = ">HH16s16s12s"
_REQUEST = struct.Struct("=BBBBI")
_ANSWER_STATE = _HEADER.size + 1
_ANSWER_ID = _HEADER.size + 4
_ANSWER_OWNER = struct.Struct("=II")
_ANSWER_OWNER_AT = _ANSWER_ID + struct.calcsize(_SOCKET_ID) + 12
"""Where struct inet_diag_msg of <linux/inet_diag.h> has the owner's user id and the inode."""
_LISTENS = 10
_NO_COOKIE = b"\0\0\0\0" + b"\xff" * 8
"""Of any interface."""


class LoopbackPeers:
    """Find the owners of TCP connections in one network namespace: that of the thread that makes the object.

    After a socket is closed the kernel names root as the owner of the rest of its connection; here such a connection
    has no owner.
    """

    def __init__(self) -> None:
        self._netlink: socket.socket | None = None
        with contextlib.suppress(OSError):
            self._netlink = socket.socket(
                socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG
            )
            self._netlink.settimeout(1)
        table = Path("/proc/thread-self/net").resolve()
        self._tables = [os.open(path, os.O_RDONLY) for name in ("tcp", "tcp6") if (path := table / name).exists()]

    def close(self) -> None:
        if self._netlink is not None:
            self._netlink.close()
        for table in self._tables:
            os.close(table)

    def owner(self, client: Address, server: Address) -> int | None:
        """Return the user id of the process that has the client's end; None if no process has it."""
        try:
            ends = (_plain(client), _plain(server))
        except ValueError:
            return None
        found = self._asked(*ends)
        return found if found is not None else self._looked_up(*ends)

    def refuses(self, client: Address, server: Address) -> str | None:
        """Return why a client of this address is refused, in one line; None if it is accepted.

        Over loopback the account of this process, root, and the caller of sudo are accepted. Other addresses are
        accepted: that they can connect was decided by the address to listen at.
        """
        if not is_loopback(client[0]):
            return None
        uid = self.owner(client, server)
        if uid in trusted_uids():
            return None
        return refused(uid)

    def _asked(self, client: tuple[bytes, int], server: tuple[bytes, int]) -> int | None:
        if self._netlink is None:
            return None
        family = socket.AF_INET if len(client[0]) == 4 else socket.AF_INET6
        place = struct.pack(_SOCKET_ID, client[1], server[1], client[0], server[0], _NO_COOKIE)
        request = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + place
        header = _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
        try:
            self._netlink.send(header + request)
            answer = self._netlink.recv(4096)
        except OSError:
            return None
        if _HEADER.unpack_from(answer)[1] != _SOCK_DIAG_BY_FAMILY or answer[_ANSWER_STATE] == _LISTENS:
            return None
        if struct.unpack_from(">HH", answer, _ANSWER_ID) != (client[1], server[1]):
            return None
        uid, inode = _ANSWER_OWNER.unpack_from(answer, _ANSWER_OWNER_AT)
        return int(uid) if inode else None

    def _looked_up(self, client: tuple[bytes, int], server: tuple[bytes, int]) -> int | None:
        for table in self._tables:
            for ends, uid, inode in _rows(table):
                if ends == (client, server) and inode:
                    return uid
        return None


def refused(uid: int | None) -> str:
    """Return the line for a client of this account, or of a process that has gone."""
    who = "a process that has gone" if uid is None else f"the account with user id {uid}"
    return f"refused to {who}: only the account that started this, and root, may use it over loopback"


def is_loopback(host: str) -> bool:
    """Return whether a numeric address is a loopback one; a name is not."""
    try:
        packed, _ = _plain((host, 0))
    except ValueError:
        return False
    return ipaddress.ip_address(packed).is_loopback


def _plain(place: Address) -> tuple[bytes, int]:
    """Return a packed address and its port; an IPv4-mapped IPv6 address becomes the IPv4 address."""
    address = ipaddress.ip_address(place[0].partition("%")[0])
    return (getattr(address, "ipv4_mapped", None) or address).packed, place[1]


def _rows(table: int) -> Iterator[tuple[tuple[tuple[bytes, int], tuple[bytes, int]], int, int]]:
    """Yield both ends of each socket, its owner's user id, and its inode."""
    os.lseek(table, 0, os.SEEK_SET)
    parts = []
    while part := os.read(table, 1 << 16):
        parts.append(part)
    for line in b"".join(parts).decode().splitlines()[1:]:
        fields = line.split()
        yield (_end(fields[1]), _end(fields[2])), int(fields[7]), int(fields[9])


def _end(text: str) -> tuple[bytes, int]:
    """Read an end of a connection in /proc/net/tcp: words of 32 bits in this machine's byte order, and the port."""
    place, _, port = text.partition(":")
    words = [bytes.fromhex(place[at : at + 8]) for at in range(0, len(place), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    return _plain((str(ipaddress.ip_address(packed)), int(port, 16)))
