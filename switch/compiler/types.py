"""Types of P4_16 (1.2.5, section 7).

Types without a name are equal when their parts are, named ones only to themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

from gradbed.switch.compiler.nodes import Annotation, Declaration

MAX_WIDTH_BITS = 2048
MAX_VARBIT_BITS = 1 << 16
MAX_STACK_SIZE = 1024
MAX_FIELDS = 20_000


class Type:
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Bit(Type):
    """bit<N>."""

    width: int

    def __str__(self) -> str:
        return f"bit<{self.width}>"


@dataclass(frozen=True, slots=True)
class Int(Type):
    """int<N>."""

    width: int

    def __str__(self) -> str:
        return f"int<{self.width}>"


@dataclass(frozen=True, slots=True)
class Varbit(Type):
    """varbit<N>."""

    width: int

    def __str__(self) -> str:
        return f"varbit<{self.width}>"


@dataclass(frozen=True, slots=True)
class Simple(Type):
    """A type that is nothing but its name."""

    name: str

    def __str__(self) -> str:
        return self.name


BOOL = Simple("bool")
INTEGER = Simple("int")  # integers of any size; compile-time only
STRING = Simple("string")
VOID = Simple("void")
ERROR = Simple("error")
MATCH_KIND = Simple("match_kind")
ACTION_RUN = Simple("the action_run of a table")
ANY = Simple("_")  # don't care
INVALID_HEADER = Simple("{#}")
DEFAULT_VALUE = Simple("...")
UNKNOWN = Simple("<unknown>")  # of an expression with an error, fits everything


@functools.lru_cache(maxsize=4096)
def bit(width: int) -> Bit:
    return Bit(width)


@functools.lru_cache(maxsize=4096)
def int_(width: int) -> Int:
    return Int(width)


@dataclass(eq=False, slots=True)
class Struct(Type):
    """A struct, header or header union."""

    kind: str
    """struct, header or header_union."""
    name: str
    fields: dict[str, Type]
    node: Declaration
    annotations: dict[str, list[Annotation]] = field(default_factory=dict)
    """Annotations of the fields by name."""
    arguments: tuple[Type, ...] = ()
    """Type arguments of a generic struct."""
    field_count: int = 0  # with those of inner structs

    def __str__(self) -> str:
        return self.name

    @property
    def is_header(self) -> bool:
        return self.kind == "header"

    @property
    def is_union(self) -> bool:
        return self.kind == "header_union"


@dataclass(frozen=True, slots=True)
class Stack(Type):
    """A header stack."""

    element: Type
    size: int

    def __str__(self) -> str:
        return f"{self.element}[{self.size}]"


@dataclass(frozen=True, slots=True)
class Tuple(Type):
    """A tuple."""

    elements: tuple[Type, ...]

    def __str__(self) -> str:
        return f"tuple<{', '.join(map(str, self.elements))}>"


@dataclass(frozen=True, slots=True)
class ListOf(Type):
    """list<T>."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class NamedFields(Type):
    """The type of {a = 1, b = 2} before the struct is known."""

    names: tuple[str, ...]
    elements: tuple[Type, ...]

    def __str__(self) -> str:
        fields = zip(self.names, self.elements, strict=True)
        return "{" + ", ".join(f"{name} = {type_}" for name, type_ in fields) + "}"


@dataclass(eq=False, slots=True)
class Enum(Type):
    """An enum."""

    name: str
    members: tuple[str, ...]
    """Names in order."""
    node: Declaration
    underlying: Type | None = None
    """Underlying type of a serializable enum."""
    values: dict[str, int] = field(default_factory=dict)
    """Numbers of the members of a serializable enum."""

    def __str__(self) -> str:
        return self.name


@dataclass(eq=False, slots=True)
class NewType(Type):
    """A type introduced by `type` (section 7.6)."""

    name: str
    underlying: Type
    node: Declaration

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Variable(Type):
    """A type parameter."""

    name: str
    owner: int
    """Number of its declaration, which distinguishes parameters of the same name."""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class SetOf(Type):
    """The type of &&&, .. and value sets."""

    element: Type

    def __str__(self) -> str:
        return f"set<{self.element}>"


def representation(type_: Type) -> Type:
    """Return the type that stores a value: bit, int, bool or varbit for everything scalar."""
    while True:
        if isinstance(type_, NewType):
            type_ = type_.underlying
        elif isinstance(type_, Enum):
            if type_.underlying is None:
                return bit(32)
            type_ = type_.underlying
        elif type_ is ERROR or type_ is INTEGER:
            return bit(32)
        else:
            return type_


def field_count(type_: Type) -> int:
    """Count the fields of a type, with those of its parts; 1 for a type without parts."""
    if isinstance(type_, Struct):
        return type_.field_count
    if isinstance(type_, Stack):
        return type_.size * field_count(type_.element)
    if isinstance(type_, Tuple):
        return sum(map(field_count, type_.elements))
    return 1


def is_scalar(type_: Type) -> bool:
    """Return whether a value of this type is stored in one field."""
    return isinstance(representation(type_), (Bit, Int)) or type_ is BOOL


def width_bits(type_: Type) -> int | None:
    """Return the size of a type, with the greatest width of a varbit; None if it has no size."""
    stored = representation(type_)
    if isinstance(stored, (Bit, Int, Varbit)):
        return stored.width
    if stored is BOOL:
        return 1
    parts: Sequence[Type]
    if isinstance(stored, Struct):
        parts = list(stored.fields.values())
    elif isinstance(stored, Tuple):
        parts = stored.elements
    elif isinstance(stored, Stack):
        element = width_bits(stored.element)
        return None if element is None else element * stored.size
    else:
        return None
    widths = [width_bits(part) for part in parts]
    known = [width for width in widths if width is not None]
    if len(known) != len(widths):
        return None
    if isinstance(stored, Struct) and stored.is_union:
        return max(known, default=0)
    return sum(known)
