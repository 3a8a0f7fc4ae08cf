"""Which addresses a command listens at, as the kernel's tables have it (proc(5)): whatever its processes say."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LISTENS = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}
"""The state of a TCP socket that listens, and of a UDP socket that takes packets of anybody
(include/net/tcp_states.h)."""


@dataclass(frozen=True)
class Listening:
    """A socket. interfaces: of its network namespace, without lo."""

    protocol: str
    address: str
    port: int
    interfaces: frozenset[str]

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.address).is_loopback


def listening(pid: int) -> set[Listening]:
    """All TCP and UDP sockets at which the process or one below it listens, in whichever network namespace of theirs
    or of this process. Processes of others, and of networks on the real clock, can be looked into by root alone."""
    inodes: set[str] = set()
    namespaces = {_namespace(Path("/proc/self")): Path("/proc/self")}
    for process in descendants(pid):
        with contextlib.suppress(OSError):  # it has ended
            namespaces.setdefault(_namespace(process), process)
            inodes |= set(_sockets(process))
    found: set[Listening] = set()
    for process in namespaces.values():
        with contextlib.suppress(OSError):
            interfaces = _interfaces(process)
            found |= {
                Listening(protocol, _address(place), int(port, 16), interfaces)
                for protocol, state in _LISTENS.items()
                for place, _, port, is_in, inode in _table(process / "net" / protocol)
                if is_in == state and inode in inodes and int(port, 16)
            }
    return found


def _namespace(process: Path) -> str:
    return os.readlink(process / "ns" / "net")


def descendants(pid: int) -> list[Path]:
    """The folders in /proc of a process and all below it."""
    below: dict[int, list[int]] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                # After the name, which may hold anything: state, parent.
                parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
                below.setdefault(parent, []).append(int(process.name))
    found = [pid]
    for each in found:
        found += below.get(each, [])
    return [Path(f"/proc/{each}") for each in found]


def _sockets(process: Path) -> Iterator[str]:
    """The inodes of what it has open."""
    for descriptor in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            kind, _, inode = os.readlink(descriptor).partition(":")
            if kind == "socket":
                yield inode.strip("[]")


def _table(file: Path) -> Iterator[tuple[str, str, str, str, str]]:
    if file.exists():  # there may be no IPv6
        for line in file.read_text().splitlines()[1:]:
            fields = line.split()
            yield *fields[1].partition(":"), fields[3], fields[9]  # type: ignore[misc]


def _address(text: str) -> str:
    """Of words of 32 bits in this machine's order. IPv6's form of an IPv4 address is that address."""
    words = [bytes.fromhex(text[at : at + 8]) for at in range(0, len(text), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    address = ipaddress.ip_address(packed)
    return str(getattr(address, "ipv4_mapped", None) or address)


def _interfaces(process: Path) -> frozenset[str]:
    lines = (process / "net" / "dev").read_text().splitlines()[2:]
    return frozenset(line.partition(":")[0].strip() for line in lines) - {"lo"}
