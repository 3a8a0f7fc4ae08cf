"""Values that are written to and read from a switch: entries, rates, counts, replicas.

Actions are named as in BMv2 JSON (fully qualified). Values are plain non-negative integers; widths are the program's
business.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from gradbed.switch.bmv2_json.model import ProgramModel


class KeyMatch(NamedTuple):
    """Match of one key field of a table entry, in the order of the table's key."""

    value: int
    mask: int | None = None
    """Mask of ternary and optional fields, 0 for an omitted field; None for others."""
    prefix_bits: int | None = None
    """Prefix length of lpm fields, in bits."""
    high: int | None = None
    """High end of range fields, inclusive, where `value` is the low one."""


class ActionCall(NamedTuple):
    """An action of the table, by name, with its arguments in declaration order."""

    action: str
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True)
class MemberReference:
    """A member of the table's action profile, in place of an action."""

    member: int


@dataclass(frozen=True)
class GroupReference:
    """A group of the table's action selector, in place of an action."""

    group: int


EntryCall = ActionCall | MemberReference | GroupReference


@dataclass(frozen=True)
class MeterRates:
    """Rates of a meter in packets or bytes per second, and bursts in packets or bytes.

    A two-rate three-colour marker (RFC 2698), unless there is an excess burst: then a single-rate three-colour marker
    (RFC 2697), which uses the committed rate and burst alone.
    """

    committed_per_s: float
    committed_burst: float
    peak_per_s: float
    peak_burst: float
    excess_burst: float | None = None


Counts = tuple[int, int]
"""Packets and bytes."""


class MeterCounts(NamedTuple):
    """Packets and bytes that a meter has marked, by colour."""

    green: Counts
    yellow: Counts
    red: Counts


@dataclass(frozen=True)
class Replica:
    """A copy that a multicast group or clone session makes."""

    egress_port: int
    instance: int = 0


class Program(Protocol):
    """A compiled program, ready to be loaded into any number of switches."""

    @property
    def json(self) -> dict[str, Any]:
        """The BMv2 JSON it came from."""

    @property
    def model(self) -> ProgramModel:
        """Return the JSON as values."""

    @property
    def library(self) -> Path:
        """The shared library that holds its code."""


class EntryExists(ValueError):
    """The table has an entry with this key and priority."""


class StateFull(ValueError):
    """A table or action profile has as many entries or members as it has room for."""


class StillReferenced(ValueError):
    """Entries or groups refer to what was to be deleted."""
