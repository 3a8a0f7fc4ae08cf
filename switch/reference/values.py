"""Types and values of P4_16.

Typedefs are seen through; what `type` makes is a type of its own (section 7.2.9). Numbers are Python's, in the range
of their type; enums and errors are the names of members. Choices where the specification leaves a value undefined are
those of BMv2: what was never assigned is 0, a field of a header that is not valid keeps what it had, and setValid()
makes all its fields 0. docs/conformance.md lists them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True)
class ValueType:
    """Any type."""


@dataclass(frozen=True)
class BitsType(ValueType):
    """bit<W> and int<W>."""

    width: int
    signed: bool = False

    def __str__(self) -> str:
        return f"{'int' if self.signed else 'bit'}<{self.width}>"

    @cached_property
    def mask(self) -> int:
        return (1 << self.width) - 1

    def wrap(self, value: int) -> int:
        """Return the value of this type with the same low bits (two's complement)."""
        value &= self.mask
        if self.signed and self.width and value >> (self.width - 1):
            value -= 1 << self.width
        return value

    @property
    def least(self) -> int:
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def greatest(self) -> int:
        return (1 << (self.width - 1)) - 1 if self.signed else self.mask

    def saturate(self, value: int) -> int:
        return min(max(value, self.least), self.greatest)


@dataclass(frozen=True)
class PlainType(ValueType):
    """int, bool, error, string, void, match_kind, packet_in, packet_out, and what has no type."""

    name: str

    def __str__(self) -> str:
        return self.name


INTEGER = PlainType("int")
BOOLEAN = PlainType("bool")
ERROR = PlainType("error")
STRING = PlainType("string")
VOID = PlainType("void")
MATCH_KIND = PlainType("match_kind")
ANYTHING = PlainType("_")
INVALID_HEADER = PlainType("{#}")
DEFAULT = PlainType("...")


@dataclass(frozen=True)
class VarbitType(ValueType):
    """varbit<W>: at most `width` bits."""

    width: int

    def __str__(self) -> str:
        return f"varbit<{self.width}>"


@dataclass(frozen=True)
class RecordField:
    """A field of a struct, header, union or tuple."""

    name: str
    type: ValueType
    annotations: dict[str, object] = field(default_factory=dict, compare=False, hash=False)
    """Tokens of each annotation, by name."""


@dataclass(frozen=True)
class RecordType(ValueType):
    """struct, header, header_union or tuple. Two of one name are the same type; tuples are by their fields."""

    kind: str
    name: str
    fields: tuple[RecordField, ...]

    def __str__(self) -> str:
        return self.name

    @cached_property
    def indices(self) -> dict[str, int]:
        return {each.name: index for index, each in enumerate(self.fields)}


@dataclass(frozen=True)
class StackType(ValueType):
    element: ValueType
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


@dataclass(frozen=True)
class ListType(ValueType):
    """list<T>"""

    element: ValueType

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True)
class EnumType(ValueType):
    """An enum."""

    name: str
    underlying: ValueType | None
    """Type of a serializable enum, whose values are numbers; those of others are their members' names."""
    members: tuple[tuple[str, int | str], ...]

    def __str__(self) -> str:
        return self.name

    @cached_property
    def values(self) -> dict[str, int | str]:
        return dict(self.members)


@dataclass(frozen=True)
class IntroducedType(ValueType):
    name: str
    base: ValueType

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ExternType(ValueType):
    """An object of an extern, with its type arguments."""

    name: str
    arguments: tuple[ValueType, ...] = ()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class BlockType(ValueType):
    """A parser, control, package or table, which is applied and never copied."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ApplyResultType(ValueType):
    """Type of a table's apply()."""

    table: str

    def __str__(self) -> str:
        return f"the result of {self.table}.apply()"


def tuple_of(types: list[ValueType]) -> RecordType:
    """Return the type tuple<...>, which list expressions have too."""
    fields = tuple(RecordField(f"f{index}", type_) for index, type_ in enumerate(types))
    return RecordType("tuple", f"tuple<{', '.join(map(str, types))}>", fields)


def base_of(type_: ValueType) -> ValueType:
    """See through `type` and serializable enums."""
    while True:
        if isinstance(type_, IntroducedType):
            type_ = type_.base
        elif isinstance(type_, EnumType) and type_.underlying is not None:
            type_ = type_.underlying
        else:
            return type_


def bits_of(type_: ValueType) -> BitsType | None:
    """Return the fixed-width number that a value of this type is in a packet or a key; None if it is none."""
    base = base_of(type_)
    if base == BOOLEAN:
        return BitsType(1)
    return base if isinstance(base, BitsType) else None


def size_in_bits(type_: ValueType, greatest: bool) -> int:
    """Return minSizeInBits() or maxSizeInBits() (section 9.7)."""
    base = base_of(type_)
    if isinstance(base, VarbitType):
        return base.width if greatest else 0
    if isinstance(base, StackType):
        return base.size * size_in_bits(base.element, greatest)
    if isinstance(base, RecordType):
        sizes = [size_in_bits(each.type, greatest) for each in base.fields]
        if base.kind == "header_union":
            return max(sizes) if greatest else min(sizes)
        return sum(sizes)
    bits = bits_of(base)
    if bits is None:
        raise ValueError(f"{type_} has no size in bits")
    return bits.width


# ---- Values ----


Value = Any
"""int, bool, str, VarbitValue, or a composite of this module."""


@dataclass(frozen=True)
class VarbitValue:
    """A value of type varbit."""

    width: int = 0
    """Width that it has now, in bits."""
    value: int = 0


class Composite:
    """A value with parts. It is changed in place, so that saved l-values stay what they were."""

    __slots__ = ("parts", "type")

    def __init__(self, type_: ValueType, parts: list[Value]) -> None:
        self.type = type_
        self.parts = parts

    def copy(self) -> Self:
        made = self.__class__.__new__(self.__class__)
        made.type = self.type
        made.parts = [part.copy() if isinstance(part, Composite) else part for part in self.parts]
        return made

    def assign(self, other: Self) -> None:
        """Take over all that the other one holds."""
        for index, part in enumerate(other.parts):
            mine = self.parts[index]
            if isinstance(mine, Composite):
                mine.assign(part)
            else:
                self.parts[index] = part

    def equals(self, other: Self) -> bool:
        return all(equal(a, b) for a, b in zip(self.parts, other.parts, strict=True))


class RuntimeHeader(Composite):
    __slots__ = ("valid",)

    def __init__(self, type_: ValueType, parts: list[Value], valid: bool = False) -> None:
        super().__init__(type_, parts)
        self.valid = valid

    def copy(self) -> Self:
        made = super().copy()
        made.valid = self.valid
        return made

    def assign(self, other: Self) -> None:
        """Assign another header; one that is not valid makes this one invalid (section 8.17), with undefined
        fields."""
        self.valid = other.valid
        super().assign(other)

    def equals(self, other: Self) -> bool:
        """Return whether both are invalid, or both valid with all fields the same (section 8.17)."""
        if not self.valid or not other.valid:
            return self.valid == other.valid
        return super().equals(other)


class RuntimeUnion(Composite):
    """A header union: at most one of its headers is valid (section 8.20)."""

    __slots__ = ()

    def make_valid(self, header: RuntimeHeader) -> None:
        for part in self.parts:
            part.valid = part is header


class RuntimeStack(Composite):
    """next: where .next writes."""

    __slots__ = ("next",)

    def __init__(self, type_: ValueType, parts: list[Value]) -> None:
        super().__init__(type_, parts)
        self.next = 0

    def copy(self) -> Self:
        made = super().copy()
        made.next = self.next
        return made

    def assign(self, other: Self) -> None:
        super().assign(other)
        self.next = other.next

    def push(self, count: int) -> None:
        """Move elements back by `count` (push_front, section 8.18): the first `count` elements become invalid."""
        size = len(self.parts)
        for index in range(size - 1, -1, -1):
            if index >= count:
                self.parts[index].assign(self.parts[index - count])
            else:
                invalidate(self.parts[index])
        self.next = min(self.next + count, size)

    def pop(self, count: int) -> None:
        """Move elements forward by `count` (pop_front, section 8.18): the last `count` elements become invalid."""
        size = len(self.parts)
        for index in range(size):
            if index + count < size:
                self.parts[index].assign(self.parts[index + count])
            else:
                invalidate(self.parts[index])
        self.next = max(self.next - count, 0)


def invalidate(value: Composite) -> None:
    """Make a header, or every header of a union, invalid."""
    if isinstance(value, RuntimeHeader):
        value.valid = False
    else:
        for part in value.parts:
            invalidate(part)


def equal(a: Value, b: Value) -> bool:
    return a.equals(b) if isinstance(a, Composite) else a == b


def copied(value: Value) -> Value:
    return value.copy() if isinstance(value, Composite) else value


def default(type_: ValueType) -> Value:
    """Return what a variable of this type holds before anything is assigned."""
    base = base_of(type_)
    if isinstance(base, BitsType):
        return 0
    if base == BOOLEAN:
        return False
    if base == ERROR:
        return "NoError"
    if isinstance(base, VarbitType):
        return VarbitValue()
    if isinstance(base, EnumType):
        return base.members[0][1]
    if isinstance(base, RecordType):
        parts = [default(each.type) for each in base.fields]
        if base.kind == "header":
            return RuntimeHeader(base, parts)
        return RuntimeUnion(base, parts) if base.kind == "header_union" else Composite(base, parts)
    if isinstance(base, StackType):
        return RuntimeStack(base, [default(base.element) for _ in range(base.size)])
    if isinstance(base, ListType):
        return Composite(base, [])
    return 0


def bit_parts(type_: ValueType, value: Value) -> Iterator[tuple[int, int]]:
    """Yield (width, number) of every bit field in a value, in order: checksums and digests are made of these."""
    if isinstance(value, VarbitValue):
        yield value.width, value.value
    elif isinstance(value, Composite):
        types = (
            [each.type for each in value.type.fields]
            if isinstance(value.type, RecordType)
            else [value.type.element] * len(value.parts)  # type: ignore[attr-defined]
        )
        for part_type, part in zip(types, value.parts, strict=True):
            yield from bit_parts(part_type, part)
    else:
        bits = bits_of(type_)
        if bits is None:
            raise ValueError(f"a value of type {type_} has no bits")
        yield bits.width, int(value) & bits.mask


def joined(parts: Iterator[tuple[int, int]]) -> tuple[int, int]:
    """Return (width, number) of bit fields side by side."""
    width = number = 0
    for each, value in parts:
        width += each
        number = number << each | value
    return width, number
