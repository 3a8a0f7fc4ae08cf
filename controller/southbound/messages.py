"""What P4 switches tell the controller of their own accord."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Digest:
    """A list of digest messages of one kind.

    name: the digest's in P4Info, which is that of its struct ("learn_t"). entries: the fields of each message by
    name; those of a tuple are named "0", "1" and so on.
    """

    name: str
    entries: tuple[Mapping[str, int], ...]


@dataclass(frozen=True)
class PacketIn:
    """A packet that a switch sent to the controller. metadata: the fields of the program's header
    @controller_header("packet_in") by name."""

    payload: bytes
    metadata: Mapping[str, int]


Message = Digest | PacketIn
