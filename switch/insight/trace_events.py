"""What happened to one packet, as values: stages (parser, ingress, egress, deparser), each with its events."""

from __future__ import annotations

import dataclasses
import ipaddress
import re
from dataclasses import dataclass, field
from typing import Any

from gradbed.switch.bmv2_json.model import Source
from gradbed.switch.insight.packet_state import Change, FieldChange, Request, ValidityChange, Value


@dataclass(frozen=True)
class FieldValue:
    name: str
    width: int
    value: Value


@dataclass
class ExecutedOperation:
    """An operation of a parser state."""

    op: str
    """Kind: extract, set, verify, advance or a primitive's name."""
    text: str
    source: Source | None
    header: str | None = None
    data: bytes = b""
    """Bytes that were taken."""
    fields: tuple[FieldValue, ...] = ()
    changes: tuple[Change, ...] = ()
    failed: bool = False
    """Whether it ended parsing with the state's error."""


@dataclass
class ParserState:
    """A parser state that the packet was in."""

    name: str
    source: Source | None
    at_byte: int
    operations: list[ExecutedOperation] = field(default_factory=list)
    select: tuple[FieldValue, ...] = ()
    """Values that the transition selects on."""
    case: str | None = None
    """Such as "0x0800", "default" or a value set's name; None without select."""
    following: str = ""
    """Next state, "accept", or "reject" with `error`."""
    error: str | None = None
    transition_source: Source | None = None
    """Source of the case that was taken."""


@dataclass(frozen=True)
class CellUse:
    """Use of a cell of a register, counter or meter."""

    array: str
    """Kind: "register", "counter" or "meter"."""
    name: str
    index: int
    width: int
    """Width of a register's cell in bits, else 0."""
    old: int | tuple[int, int] | None
    """Value of a register, or packets and bytes of a counter; None for a meter."""
    new: int | tuple[int, int] | None
    """Value afterwards, likewise; None for what only reads."""


@dataclass(frozen=True)
class ExecutedStatement:
    source: Source | None
    text: str
    changes: tuple[Change, ...] = ()
    cells: tuple[CellUse, ...] = ()


@dataclass(frozen=True)
class KeyPart:
    """A key field: what the packet has."""

    name: str
    match: str
    width: int
    value: int


@dataclass(frozen=True)
class EntryPart:
    """An entry's match of the key field of the same position: by the kind's own members alone."""

    match: str
    width: int
    value: int
    mask: int | None = None
    prefix_bits: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class MatchedEntry:
    """A table entry that matched."""

    match: tuple[EntryPart, ...]
    priority: int | None
    """Priority; None where the table has none."""
    member: int | None = None
    """Member of an action profile."""
    group: int | None = None
    """Group of an action profile."""


@dataclass
class TableApplication:
    """A table that was applied."""

    name: str
    source: Source | None
    key: tuple[KeyPart, ...]
    hit: bool
    entry: MatchedEntry | None
    """Entry that matched; None for the default entry."""
    action: str | None
    """Action that was run, if any."""
    action_source: Source | None
    arguments: tuple[FieldValue, ...] = ()
    counted: tuple[int, int] | None = None
    """Packets and bytes of the entry's direct counter, with this packet."""
    changes: tuple[Change, ...] = ()
    """Changes by a direct meter."""
    statements: list[ExecutedStatement] = field(default_factory=list)


@dataclass(frozen=True)
class Branch:
    """A condition that was evaluated."""

    source: Source | None
    text: str
    outcome: bool
    operands: tuple[FieldValue, ...]
    """Fields and validities (width 0) that the condition reads."""


@dataclass(frozen=True)
class ChecksumStep:
    """A checksum that was verified or updated."""

    task: str
    """Either "verify" or "update"."""
    target: str
    source: Source | None
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Emitted:
    """The deparser wrote a header."""

    header: str


@dataclass(frozen=True)
class DigestMade:
    name: str


Event = ParserState | TableApplication | ExecutedStatement | Branch | ChecksumStep | Emitted | DigestMade


@dataclass(frozen=True)
class Decision:
    """A decision about the packet after a stage."""

    kind: str
    """One of "to_port" (number), "to_group" (number, copies), "clone" (number: the session, copies), "resubmit",
    "recirculate", "drop" (reason, source: the statement that asked for it), and "sent" (number: the port,
    frame)."""
    number: int | None = None
    copies: int | None = None
    reason: str = ""
    source: Source | None = None
    frame: bytes = b""


@dataclass
class TraceStage:
    """A pass of the packet through a parser, pipeline or deparser."""

    number: int
    name: str
    """One of parse, ingress, egress and deparse."""
    parent: int | None
    """Number of the stage that the packet comes from."""
    cause: str
    """One of arrived, continued, unicast, multicast, clone, resubmit and recirculate."""
    port: int
    """Port of arrival, or of departure."""
    instance: int = 0
    frame: bytes = b""
    """Frame that a parser gets or a deparser makes."""
    events: list[Event] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


@dataclass(frozen=True)
class Trace:
    """A packet's way through one switch."""

    program: str
    port: int
    frame: bytes
    stages: tuple[TraceStage, ...]
    outputs: tuple[tuple[int, bytes], ...]
    """Port and frame of all that left the switch, in order."""

    def to_json(self) -> dict[str, Any]:
        """Return the trace as JSON: bytes in hexadecimal, and events with their kind."""
        result: dict[str, Any] = _json(self)
        result["outputs"] = [{"port": port, "frame": frame.hex()} for port, frame in self.outputs]
        return result


_KINDS: dict[type, str] = {
    ParserState: "state",
    TableApplication: "table",
    ExecutedStatement: "statement",
    Branch: "condition",
    ChecksumStep: "checksum",
    Emitted: "emit",
    DigestMade: "digest",
    FieldChange: "field",
    ValidityChange: "header",
    Request: "request",
}


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return [_json(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    members = {f.name: _json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    kind = _KINDS.get(type(value))
    return members if kind is None else {"kind": kind, **members}


# ---- Field values as people write them: addresses as addresses, identifiers in hexadecimal ----


_MAC_BITS, _IPV4_BITS, _IPV6_BITS = 48, 32, 128
_ADDRESS = re.compile(r"(addr|address|ip|ipv4|ipv6|src|dst)\d*$", re.IGNORECASE)
_IDENTIFIER = re.compile(r"(type|checksum|csum|flags|mask|bitmap|magic|owner|hash)\w*$", re.IGNORECASE)
_LONG_BITS = 32


def value_text(value: Value, width: int, name: str) -> str:
    """Return the text of a field's value.

    `name` is the field's, the last part of which decides among the forms; a `width` of 0 bits is a Boolean.
    """
    if isinstance(value, bytes):
        return value.hex() or "(empty)"
    if width == 0:
        return "true" if value else "false"
    last = name.rsplit(".", 1)[-1]
    if width == _MAC_BITS:
        return value.to_bytes(6, "big").hex(":")
    if width == _IPV4_BITS and value >= 0 and _ADDRESS.search(last):
        return str(ipaddress.IPv4Address(value))
    if width == _IPV6_BITS and value >= 0 and _ADDRESS.search(last):
        return str(ipaddress.IPv6Address(value))
    if width > 1 and value > 9 and (width > _LONG_BITS or _IDENTIFIER.search(last)):
        return f"0x{value:0{(width + 3) // 4}x}"
    return str(value)


def match_text(part: EntryPart, name: str) -> str:
    """Return how an entry matches a field: VALUE, VALUE/BITS, VALUE &&& MASK, LOW..HIGH, or _ for whatever."""
    value = value_text(part.value, part.width, name)
    if part.prefix_bits is not None:
        return f"{value}/{part.prefix_bits}"
    if part.mask is not None:
        if part.mask == 0:
            return "_"
        full = part.mask == (1 << part.width) - 1
        return value if full else f"{value} &&& 0x{part.mask:0{(part.width + 3) // 4}x}"
    return value if part.high is None else f"{value}..{value_text(part.high, part.width, name)}"
