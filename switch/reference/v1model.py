"""The externs of v1model.p4 and core.p4: what their comments and BMv2's documentation of simple_switch say."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from gradbed.switch.reference.checksums import ALGORITHMS, to_bytes
from gradbed.switch.reference.expressions import ParserFailure, UndefinedOperation
from gradbed.switch.reference.tables import RuntimeActionCall, RuntimeEntry, RuntimeTable, SelectorGroup
from gradbed.switch.reference.values import (
    BOOLEAN,
    BitsType,
    Composite,
    ExternType,
    RecordType,
    RuntimeHeader,
    Value,
    ValueType,
    VarbitType,
    VarbitValue,
    base_of,
    bit_parts,
    bits_of,
    default,
    joined,
    size_in_bits,
)

DROP_PORT = 511
GREEN, YELLOW, RED = 0, 1, 2


class AssertionFailed(Exception):
    """assert() or assume() of something that is not so: BMv2 ends there."""


class PacketIn:
    """The bits of a packet and the parser's cursor."""

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self._bits = int.from_bytes(frame, "big")
        self._size = 8 * len(frame)
        self.cursor = 0

    def peek(self, width: int) -> int:
        if self.cursor + width > self._size:
            raise ParserFailure("PacketTooShort")
        return self._bits >> (self._size - self.cursor - width) & ((1 << width) - 1)

    def advance(self, width: int) -> None:
        if self.cursor + width > self._size:
            raise ParserFailure("PacketTooShort")
        self.cursor += width

    @property
    def payload(self) -> bytes:
        """Return what was not parsed."""
        return self.frame[-(-self.cursor // 8) :]

    def extract(self, header: RuntimeHeader, variable_bits: int | None = None) -> None:
        """Extract a header (section 13.8.2): the packet's length is checked first, then the varbit's."""
        record = header.type
        assert isinstance(record, RecordType)
        widths = []
        too_long = False
        for each in record.fields:
            base = base_of(each.type)
            if isinstance(base, VarbitType):
                widths.append(variable_bits or 0)
                too_long = (variable_bits or 0) > base.width
            else:
                widths.append(size_in_bits(each.type, greatest=True))
        if variable_bits is not None and variable_bits % 8:
            raise ParserFailure("ParserInvalidArgument")
        total = sum(widths)
        whole = self.peek(total)
        if too_long:
            raise ParserFailure("HeaderTooShort")
        self.cursor += total
        left = total
        for index, (each, width) in enumerate(zip(record.fields, widths, strict=True)):
            left -= width
            header.parts[index] = _from_bits(each.type, whole >> left & ((1 << width) - 1), width)
        header.valid = True


def _from_bits(type_: ValueType, number: int, width: int) -> Value:
    """Return the value of a type from its bits in a packet."""
    base = base_of(type_)
    if isinstance(base, VarbitType):
        return VarbitValue(width, number)
    if base == BOOLEAN:
        return bool(number)
    if isinstance(base, BitsType):
        return base.wrap(number)
    if isinstance(base, RecordType):
        made = default(base)
        left = width
        for index, each in enumerate(base.fields):
            size = size_in_bits(each.type, greatest=True)
            left -= size
            made.parts[index] = _from_bits(each.type, number >> left & ((1 << size) - 1), size)
        if isinstance(made, RuntimeHeader):
            made.valid = True
        return made
    raise UndefinedOperation(f"{type_} cannot stand in a packet")


class PacketOut:
    """The headers that a deparser emits, joined."""

    def __init__(self) -> None:
        self._width = 0
        self._number = 0

    def emit(self, value: Value) -> None:
        """Append a header if it is valid; of a stack, a union or a struct all that are (section 16)."""
        if isinstance(value, RuntimeHeader):
            if value.valid:
                width, number = joined(bit_parts(value.type, value))
                self._width += width
                self._number = self._number << width | number
        elif isinstance(value, Composite):
            for part in value.parts:
                self.emit(part)

    @property
    def frame(self) -> bytes:
        return to_bytes(self._width, self._number)


# ---- Objects ----


class RuntimeRegister:
    """size cells; reading behind the end gives 0, writing there does nothing (v1model.p4)."""

    def __init__(self, size: int, type_: ValueType) -> None:
        self.type = type_
        self.cells: list[Value] = [default(type_) for _ in range(size)]


class RuntimeCounter:
    def __init__(self, size: int) -> None:
        self.cells: list[tuple[int, int]] = [(0, 0)] * size

    def count(self, index: int, length: int) -> None:
        if index < len(self.cells):
            packets, bytes_ = self.cells[index]
            self.cells[index] = (packets + 1, bytes_ + length)


@dataclass
class TwoRateMarker:
    """A two-rate three-colour marker, colour-blind (RFC 2698). Rates in units per microsecond."""

    committed_rate: float
    committed_burst: float
    peak_rate: float
    peak_burst: float
    committed: float = field(init=False)
    peak: float = field(init=False)
    at_us: int = 0

    def __post_init__(self) -> None:
        self.committed, self.peak = self.committed_burst, self.peak_burst

    def mark(self, units: int, now_us: int) -> int:
        elapsed, self.at_us = now_us - self.at_us, now_us
        self.committed = min(self.committed + elapsed * self.committed_rate, self.committed_burst)
        self.peak = min(self.peak + elapsed * self.peak_rate, self.peak_burst)
        if self.peak < units:
            return RED
        self.peak -= units
        if self.committed < units:
            return YELLOW
        self.committed -= units
        return GREEN


class RuntimeMeter:
    """Meters; without rates all is green."""

    def __init__(self, size: int, by_bytes: bool) -> None:
        self.by_bytes = by_bytes
        self.cells: list[TwoRateMarker | None] = [None] * size


@dataclass
class DirectResource:
    """A direct counter or meter, whose state is that of its table's entries."""

    by_bytes: bool = False
    tables: list[RuntimeTable] = field(default_factory=list)
    colour: int = GREEN
    """Colour of the last hit."""


@dataclass
class RuntimeProfile:
    """An action profile or selector."""

    algorithm: str | None
    """Hash algorithm of a selector; None for a profile."""
    tables: list[RuntimeTable] = field(default_factory=list)


# ---- What a packet asked for ----


@dataclass
class Requests:
    """Requests of a control. Of several calls of one kind the last one counts."""

    clone: tuple[int, int | None] | None = None
    """Session and field list (None: keep nothing)."""
    resubmit: tuple[int | None] | None = None
    """Field list (None: keep nothing)."""
    recirculate: tuple[int | None] | None = None
    """Field list (None: keep nothing)."""
    truncate: int | None = None
    checksum_error: bool = False
    digest: tuple[int, tuple[Value, ...]] | None = None
    """Receiver and values."""


class V1Model:
    """The architecture's functions and objects; `packet`, `requests` and `length` are those of the packet at work."""

    def __init__(self, seed: int = 1) -> None:
        self.packet = PacketIn(b"")
        self.requests = Requests()
        self.length = 0
        self.now_us = 0
        self.digests: list[tuple[int, tuple[Value, ...]]] = []
        self.log: list[str] = []
        self._random = random.Random(seed)

    # ---- Objects ----

    def construct(self, type_: ExternType, name: str, values: Sequence[Value], types: Sequence[ValueType]) -> Any:
        if type_.name == "register":
            return RuntimeRegister(int(values[0]), type_.arguments[0])
        if type_.name == "counter":
            return RuntimeCounter(int(values[0]))
        if type_.name == "meter":
            return RuntimeMeter(int(values[0]), values[1] == "bytes")
        if type_.name in ("direct_counter", "direct_meter"):
            return DirectResource(values[0] == "bytes")
        if type_.name == "action_profile":
            return RuntimeProfile(None)
        if type_.name == "action_selector":
            return RuntimeProfile(str(values[0]))
        return None

    def method(
        self, of: ExternType, name: str, types: Sequence[ValueType], result: ValueType
    ) -> Callable[[Any, list[Value]], Value] | None:
        found: Callable[[Any, list[Value]], Value] | None = getattr(self, f"_{of.name}_{name}", None)
        if found is None and (of.name, name) == ("packet_in", "lookahead"):
            width = size_in_bits(result, greatest=True)
            return lambda packet, values: _from_bits(result, packet.peek(width), width)
        return found

    def _packet_in_extract(self, packet: PacketIn, values: list[Value]) -> None:
        packet.extract(*values)

    def _packet_in_advance(self, packet: PacketIn, values: list[Value]) -> None:
        packet.advance(values[0])

    def _packet_in_length(self, packet: PacketIn, values: list[Value]) -> int:
        return len(packet.frame)

    def _packet_out_emit(self, packet: PacketOut, values: list[Value]) -> None:
        packet.emit(values[0])

    def _register_read(self, register: RuntimeRegister, values: list[Value]) -> None:
        index = values[1]
        values[0] = register.cells[index] if index < len(register.cells) else default(register.type)

    def _register_write(self, register: RuntimeRegister, values: list[Value]) -> None:
        index, value = values
        if index < len(register.cells):
            bits = bits_of(register.type)
            register.cells[index] = bits.wrap(value) if bits is not None else value

    def _counter_count(self, counter: RuntimeCounter, values: list[Value]) -> None:
        counter.count(values[0], self.length)

    def _direct_counter_count(self, counter: DirectResource, values: list[Value]) -> None:
        """Do nothing: entries with a direct counter count every hit (table_applied), as in BMv2."""

    def _meter_execute_meter(self, meter: RuntimeMeter, values: list[Value]) -> None:
        index = values[0]
        marker = meter.cells[index] if index < len(meter.cells) else None
        values[1] = self._mark(marker, meter.by_bytes)

    def _direct_meter_read(self, meter: DirectResource, values: list[Value]) -> None:
        """Return the colour of the hit: it was marked then, whether the action reads it or not (table_applied)."""
        values[0] = meter.colour

    def _mark(self, marker: TwoRateMarker | None, by_bytes: bool) -> int:
        return GREEN if marker is None else marker.mark(self.length if by_bytes else 1, self.now_us)

    def table_applied(self, table: RuntimeTable, entry: RuntimeEntry | None) -> None:
        if entry is not None and table.counter is not None:
            entry.packets += 1
            entry.bytes += self.length
        if entry is not None and table.meter is not None:
            table.meter.colour = self._mark(entry.meter, table.meter.by_bytes)

    def choose(self, table: RuntimeTable, entry: RuntimeEntry, values: Sequence[Value]) -> RuntimeActionCall:
        """Return the action of the group's member that the hash of the selector's fields chooses, members in
        order."""
        assert isinstance(entry.call, SelectorGroup)
        chosen = [
            (key.width or 0, int(value) & ((1 << (key.width or 0)) - 1))
            for key, value in zip(table.keys, values, strict=True)
            if key.match == "selector"
        ]
        number = ALGORITHMS[table.profile.algorithm or "crc16"](to_bytes(*joined(iter(chosen))))
        return entry.call.members[number % len(entry.call.members)]

    # ---- Functions ----

    def function(self, name: str, types: Sequence[ValueType]) -> Callable[[list[Value]], Value] | None:
        made: Callable[[Sequence[ValueType], list[Value]], Value] | None = getattr(self, f"_do_{name}", None)
        if made is None:
            return None
        kept = list(types)
        return lambda values: made(kept, values)

    def _do_verify(self, types: Sequence[ValueType], values: list[Value]) -> None:
        if not values[0]:
            raise ParserFailure(values[1])

    def _do_static_assert(self, types: Sequence[ValueType], values: list[Value]) -> bool:
        return bool(values[0])

    def _do_random(self, types: Sequence[ValueType], values: list[Value]) -> None:
        values[0] = self._random.randint(values[1], max(values[1], values[2]))

    def _do_hash(self, types: Sequence[ValueType], values: list[Value]) -> None:
        _, algorithm, base, data, greatest = values
        number = self._computed(algorithm, types[3], data)
        values[0] = base + (number % greatest if greatest else 0)

    def _computed(self, algorithm: str, type_: ValueType, data: Value, payload: bytes = b"") -> int:
        if algorithm not in ALGORITHMS:
            raise UndefinedOperation(f"hash algorithm {algorithm} is not in the reference")
        width, number = joined(bit_parts(type_, data))
        return ALGORITHMS[algorithm](to_bytes(width, number) + payload)

    def _do_digest(self, types: Sequence[ValueType], values: list[Value]) -> None:
        """Take the values as they are now; the message leaves when ingress ends (simple_switch)."""
        self.requests.digest = values[0], tuple(_flattened(values[1]))

    def _do_mark_to_drop(self, types: Sequence[ValueType], values: list[Value]) -> None:
        if values:
            put(values[0], "egress_spec", DROP_PORT)
            put(values[0], "mcast_grp", 0)

    def _do_verify_checksum(self, types: Sequence[ValueType], values: list[Value], payload: bytes = b"") -> None:
        condition, data, checksum, algorithm = values
        bits = bits_of(types[2])
        if condition and bits is not None:
            computed = self._computed(algorithm, types[1], data, payload)
            self.requests.checksum_error |= bits.wrap(computed) != checksum

    def _do_update_checksum(self, types: Sequence[ValueType], values: list[Value], payload: bytes = b"") -> None:
        condition, data, _, algorithm = values
        if condition:
            values[2] = self._computed(algorithm, types[1], data, payload)

    def _do_verify_checksum_with_payload(self, types: Sequence[ValueType], values: list[Value]) -> None:
        self._do_verify_checksum(types, values, self.packet.payload)

    def _do_update_checksum_with_payload(self, types: Sequence[ValueType], values: list[Value]) -> None:
        self._do_update_checksum(types, values, self.packet.payload)

    def _do_clone(self, types: Sequence[ValueType], values: list[Value]) -> None:
        self.requests.clone = (values[1], None)

    def _do_clone_preserving_field_list(self, types: Sequence[ValueType], values: list[Value]) -> None:
        self.requests.clone = (values[1], values[2])

    def _do_resubmit_preserving_field_list(self, types: Sequence[ValueType], values: list[Value]) -> None:
        self.requests.resubmit = (values[0],)

    def _do_recirculate_preserving_field_list(self, types: Sequence[ValueType], values: list[Value]) -> None:
        self.requests.recirculate = (values[0],)

    def _do_truncate(self, types: Sequence[ValueType], values: list[Value]) -> None:
        """Truncate the packet; the smallest of several lengths counts."""
        before = self.requests.truncate
        self.requests.truncate = values[0] if before is None else min(before, values[0])

    def _do_assert(self, types: Sequence[ValueType], values: list[Value]) -> None:
        if not values[0]:
            raise AssertionFailed

    _do_assume = _do_assert

    def _do_log_msg(self, types: Sequence[ValueType], values: list[Value]) -> None:
        text = values[0]
        for _, value in bit_parts(types[1], values[1]) if len(values) > 1 else ():
            text = text.replace("{}", str(value), 1)
        self.log.append(text)


def _flattened(value: Value) -> Iterator[Value]:
    """Yield the numbers, and the names of errors and enum members, in a value."""
    if isinstance(value, Composite):
        for part in value.parts:
            yield from _flattened(part)
    else:
        yield value


def get(record: Composite, name: str) -> Value:
    """Return a field of standard metadata."""
    assert isinstance(record.type, RecordType)
    return record.parts[record.type.indices[name]]


def put(record: Composite, name: str, value: Value) -> None:
    assert isinstance(record.type, RecordType)
    record.parts[record.type.indices[name]] = value
