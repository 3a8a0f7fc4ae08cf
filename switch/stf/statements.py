"""An STF file as values. The language is that of p4c's tools/stf and backends/bmv2, with a few commands more."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gradbed.common.errors import UserError


class StfError(UserError):
    """Something is wrong with an STF file, or does not fit the program that it tests. Text: `file:line: what`."""

    def __init__(self, path: Path, line: int, what: str) -> None:
        super().__init__(f"{path}:{line}: {what}")


# ---- Values ----


@dataclass(frozen=True)
class Pattern:
    """A number. Of 0x and 0b literals `written` covers the digits that are there, `mask` those that are not `*`.

    Both are None for decimal numbers, which have no wildcards.
    """

    value: int
    mask: int | None = None
    written: int | None = None

    @property
    def has_wildcards(self) -> bool:
        return self.mask != self.written


@dataclass(frozen=True)
class Prefix:
    """VALUE/BITS"""

    value: int
    bits: int


@dataclass(frozen=True)
class Masked:
    """VALUE&&&MASK"""

    value: int
    mask: int


@dataclass(frozen=True)
class Range:
    """LOW..HIGH or LOW->HIGH, both inclusive."""

    low: int
    high: int


MatchValue = Pattern | Prefix | Masked | Range


@dataclass(frozen=True)
class Match:
    key: str
    value: MatchValue


@dataclass(frozen=True)
class StfAction:
    """An action with its arguments by name."""

    action: str
    arguments: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class StfCondition:
    operator: Literal["==", "!=", "<", "<=", ">", ">="]
    value: int

    def holds(self, value: int) -> bool:
        if self.operator in ("==", "!="):
            return (value == self.value) == (self.operator == "==")
        if value == self.value:
            return "=" in self.operator
        return (value < self.value) == (self.operator[0] == "<")


@dataclass(frozen=True)
class Rate:
    """Rate of a meter."""

    rate_per_us: float
    """Packets or bytes per microsecond."""
    burst: int
    """Burst in packets or bytes."""


# ---- Statements ----


@dataclass(frozen=True)
class StfStatement:
    """A statement of an STF file."""

    line: int = field(compare=False)
    """Line of the file, from 1; not compared."""


@dataclass(frozen=True)
class Packet(StfStatement):
    """A frame arrives at a port."""

    port: int
    frame: bytes


@dataclass(frozen=True)
class Expect(StfStatement):
    """Check that a frame leaves through a port."""

    port: int
    digits: str | None = None
    """Hex digits in lower case or `*`, of the beginning of the frame; None: any frame."""
    exact: bool = False
    """The frame ends with the digits."""

    def describes(self, frame: bytes) -> bool:
        if self.digits is None:
            return True
        got = frame.hex()
        if len(got) < len(self.digits) or (self.exact and len(got) > len(self.digits)):
            return False
        return all(want in ("*", digit) for want, digit in zip(self.digits, got))  # noqa: B905


@dataclass(frozen=True)
class NoPacket(StfStatement):
    """Check that nothing has left, by any port, but what `expect` named so far."""


@dataclass(frozen=True)
class Wait(StfStatement):
    """Let all packets come to rest."""


@dataclass(frozen=True)
class Add(StfStatement):
    """Add a table entry."""

    table: str
    matches: tuple[Match, ...]
    call: StfAction
    priority: int | None = None
    """Priority in ternary and range tables; the larger wins."""
    entry: str | None = None
    """Name for later statements."""
    others: tuple[StfAction, ...] = ()
    """Further members of the entry's group, in order, of a table with an action selector."""


@dataclass(frozen=True)
class SetDefault(StfStatement):
    table: str
    call: StfAction


@dataclass(frozen=True)
class Remove(StfStatement):
    """Remove the entry that `add` gave this name; None: all that were added."""

    entry: str | None


@dataclass(frozen=True)
class CheckCounter(StfStatement):
    """index: of an indirect counter; or the name of an entry of the table that has the direct counter."""

    counter: str
    index: int | str
    unit: Literal["packets", "bytes"]
    condition: StfCondition


@dataclass(frozen=True)
class CounterRead(StfStatement):
    counter: str
    index: int


@dataclass(frozen=True)
class CounterWrite(StfStatement):
    counter: str
    index: int
    packets: int
    bytes: int


@dataclass(frozen=True)
class RegisterRead(StfStatement):
    """condition: what the value must be, if anything."""

    register: str
    index: int
    condition: StfCondition | None = None


@dataclass(frozen=True)
class RegisterWrite(StfStatement):
    register: str
    index: int
    value: int


@dataclass(frozen=True)
class RegisterReset(StfStatement):
    register: str


@dataclass(frozen=True)
class MeterGetRates(StfStatement):
    meter: str
    index: int


@dataclass(frozen=True)
class MeterSetRates(StfStatement):
    """rates: committed, peak. index: None for every cell; of a direct meter, the name of an entry."""

    meter: str
    index: int | str | None
    rates: tuple[Rate, Rate]


@dataclass(frozen=True)
class MirroringAdd(StfStatement):
    session: int
    port: int


@dataclass(frozen=True)
class MirroringAddMulticast(StfStatement):
    session: int
    group: int


@dataclass(frozen=True)
class MirroringDelete(StfStatement):
    session: int


@dataclass(frozen=True)
class MirroringGet(StfStatement):
    session: int


@dataclass(frozen=True)
class GroupCreate(StfStatement):
    group: int


@dataclass(frozen=True)
class NodeCreate(StfStatement):
    """Nodes are numbered from 0 in the order of their creation; that number is their handle."""

    instance: int
    ports: tuple[int, ...]


@dataclass(frozen=True)
class NodeUpdate(StfStatement):
    node: int
    ports: tuple[int, ...]


@dataclass(frozen=True)
class NodeAssociate(StfStatement):
    group: int
    node: int


@dataclass(frozen=True)
class ValueSetAdd(StfStatement):
    value_set: str
    value: int


@dataclass(frozen=True)
class ValueSetClear(StfStatement):
    value_set: str


@dataclass(frozen=True)
class Script:
    """A whole file."""

    path: Path
    statements: tuple[StfStatement, ...]

    @property
    def ports(self) -> frozenset[int]:
        """Return those that packets are sent to or expected from: as with p4c, the switch has no others."""
        return frozenset(s.port for s in self.statements if isinstance(s, Packet | Expect))
