"""What crosses each link, packet by packet: captures of every port, read without the project's own readers."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from gradbed.experiments.runtimes.virtual import VirtualRuntime

INTEREST, DATA = 5, 6
_PCAP_HEAD, _RECORD_HEAD = 24, struct.Struct("<IIII")
_ETHERNET_BYTES = 14
Direction = tuple[str, str]
Name = tuple[bytes, ...]


@dataclass
class Crossings:
    """Packets by kind (INTEREST, DATA), direction of a link and name (components with type and length)."""

    packets: Counter[tuple[int, Direction, Name]] = field(default_factory=Counter)

    def pushes(self) -> Iterator[tuple[Direction, Name, int]]:
        """Of fragments of gradients under the name that they are pushed with."""
        for (kind, direction, name), count in self.packets.items():
            if kind == DATA and len(name) == 5 and name[0][2:] == b"distribute":
                yield direction, name, count

    def worst_push(self) -> int:
        """So often a fragment crossed a link in one direction at most."""
        return max((count for _, _, count in self.pushes()), default=0)

    def by_link(self) -> Mapping[tuple[frozenset[str], Name], int]:
        """The same, of both directions together."""
        found: Counter[tuple[frozenset[str], Name]] = Counter()
        for direction, name, count in self.pushes():
            found[frozenset(direction), name] += count
        return found


class Captured:
    """While it is entered, testbeds on the virtual clock capture all that leaves ports; read it after the run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Direction, Path] = {}

    def __enter__(self) -> Captured:
        enter = VirtualRuntime.__enter__

        def entered(runtime: VirtualRuntime) -> VirtualRuntime:
            enter(runtime)
            for link in runtime.topology.links:
                for here, there in ((link.a, link.b), (link.b, link.a)):
                    inwards = runtime.topology.is_host(here.node)
                    end = there if inwards else here
                    file = self._folder / f"{here.node}-{there.node}.pcap"
                    number = runtime.topology.switch(end.node).number
                    runtime._switches.engine.capture(file, [(number, end.port, "in" if inwards else "out")])
                    self._files[here.node, there.node] = file
            return runtime

        self._patch = mock.patch.object(VirtualRuntime, "__enter__", entered)
        self._patch.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._patch.stop()

    def crossings(self) -> Crossings:
        found = Crossings()
        for direction, file in self._files.items():
            for frame in _frames(file.read_bytes()):
                if frame[12:14] == b"\x86\x24":
                    found.packets[frame[_ETHERNET_BYTES], direction, _name(frame)] += 1
        return found


def _frames(data: bytes) -> Iterator[bytes]:
    at = _PCAP_HEAD
    while at < len(data):
        _, _, length, _ = _RECORD_HEAD.unpack_from(data, at)
        at += _RECORD_HEAD.size
        yield data[at : at + length]
        at += length


def _name(frame: bytes) -> Name:
    _, at, _ = _tlv(frame, _ETHERNET_BYTES)
    _, at, end = _tlv(frame, at)
    parts = []
    while at < end:
        _, _, after = _tlv(frame, at)
        parts.append(frame[at:after])
        at = after
    return tuple(parts)


def _tlv(frame: bytes, at: int) -> tuple[int, int, int]:
    """Type, and where the value begins and ends; lengths of one byte or three."""
    if frame[at + 1] < 253:
        return frame[at], at + 2, at + 2 + frame[at + 1]
    return frame[at], at + 4, at + 4 + int.from_bytes(frame[at + 2 : at + 4], "big")
