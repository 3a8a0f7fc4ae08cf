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
    """Of a parser state. op: extract, set, verify, advance or a primitive's name. data: the bytes that were taken.

    failed: it ended parsing with the state's error.
    """

    op: str
    text: str
    source: Source | None
    header: str | None = None
    data: bytes = b""
    fields: tuple[FieldValue, ...] = ()
    changes: tuple[Change, ...] = ()
    failed: bool = False


@dataclass
class ParserState:
    """select: what the transition looks at. case: "0x0800", "default" or a value set's name; None without select.

    following: the next state, "accept", or "reject" with `error`. transition_source: of the case that was taken.
    """

    name: str
    source: Source | None
    at_byte: int
    operations: list[ExecutedOperation] = field(default_factory=list)
    select: tuple[FieldValue, ...] = ()
    case: str | None = None
    following: str = ""
    error: str | None = None
    transition_source: Source | None = None


@dataclass(frozen=True)
class CellUse:
    """array: "register", "counter" or "meter". old, new: a register's value, or a counter's packets and bytes.

    new: None for what only reads; both None for a meter. width: bits of a register's cell, else 0.
    """

    array: str
    name: str
    index: int
    width: int
    old: int | tuple[int, int] | None
    new: int | tuple[int, int] | None


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
    """priority: None where the table has none. member, group: of an action profile."""

    match: tuple[EntryPart, ...]
    priority: int | None
    member: int | None = None
    group: int | None = None


@dataclass
class TableApplication:
    """entry: None is the default entry. action: None is none at all. counted: packets and bytes of the entry's direct
    counter, with this packet. changes: what a direct meter wrote."""

    name: str
    source: Source | None
    key: tuple[KeyPart, ...]
    hit: bool
    entry: MatchedEntry | None
    action: str | None
    action_source: Source | None
    arguments: tuple[FieldValue, ...] = ()
    counted: tuple[int, int] | None = None
    changes: tuple[Change, ...] = ()
    statements: list[ExecutedStatement] = field(default_factory=list)


@dataclass(frozen=True)
class Branch:
    """operands: the fields and validities (width 0) that the condition looks at."""

    source: Source | None
    text: str
    outcome: bool
    operands: tuple[FieldValue, ...]


@dataclass(frozen=True)
class ChecksumStep:
    """task: verify or update."""

    task: str
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
    """What the switch did with the packet after a stage.

    kind: "to_port" (number), "to_group" (number, copies), "clone" (number: the session, copies), "resubmit",
    "recirculate", "drop" (reason, source: the statement that asked for it), "sent" (number: the port, frame).
    """

    kind: str
    number: int | None = None
    copies: int | None = None
    reason: str = ""
    source: Source | None = None
    frame: bytes = b""


@dataclass
class TraceStage:
    """name: parse, ingress, egress or deparse. parent: number of the stage that the packet comes from.

    cause: arrived, continued, unicast, multicast, clone, resubmit or recirculate. port: of arrival, or of departure.
    frame: what a parser gets and a deparser makes.
    """

    number: int
    name: str
    parent: int | None
    cause: str
    port: int
    instance: int = 0
    frame: bytes = b""
    events: list[Event] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)


@dataclass(frozen=True)
class Trace:
    """outputs: (port, frame) of all that left the switch, in order."""

    program: str
    port: int
    frame: bytes
    stages: tuple[TraceStage, ...]
    outputs: tuple[tuple[int, bytes], ...]

    def to_json(self) -> dict[str, Any]:
        """Bytes in hexadecimal; events with their kind."""
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
    """name: of the field, the last part of which decides among the forms. width: bits; 0 is a Boolean."""
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
