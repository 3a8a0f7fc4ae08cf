"""Types of P4_16 as values. Typedefs are seen through; what `type` makes is a type of its own (section 7.2.9)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property


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
    """annotations: the tokens of each, by name."""

    name: str
    type: ValueType
    annotations: dict[str, object] = field(default_factory=dict, compare=False, hash=False)


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
    """underlying: of a serializable enum, whose values are numbers; those of others are their members' names."""

    name: str
    underlying: ValueType | None
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
    """What a table's apply() returns."""

    table: str

    def __str__(self) -> str:
        return f"the result of {self.table}.apply()"


def tuple_of(types: list[ValueType]) -> RecordType:
    """tuple<...>, and the type of a list expression."""
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
    """The fixed-width number that a value of this type is when it is written to a packet or a key."""
    base = base_of(type_)
    if base == BOOLEAN:
        return BitsType(1)
    return base if isinstance(base, BitsType) else None


def size_in_bits(type_: ValueType, greatest: bool) -> int:
    """minSizeInBits() and maxSizeInBits() (section 9.7)."""
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
