"""The program's variables: fields of `scalars`, header instances, stacks and unions, with names of their own."""

from __future__ import annotations

from dataclasses import dataclass, field

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir.places import HeaderPlace, Place, StackPlace, StructValue, UnionPlace
from gradbed.switch.compiler.names import NameSet

MAX_INSTANCES = 20_000
SCALARS = "scalars"
STANDARD_METADATA = "standard_metadata"


class StorageExhausted(Exception):
    """The program declares more variables than any switch holds."""


@dataclass
class Storage:
    """`scalars`: (name, type) in order. Headers in order of their ids in BMv2 JSON."""

    scalars: list[tuple[str, t.Type]] = field(default_factory=list)
    headers: list[HeaderPlace] = field(default_factory=list)
    stacks: list[StackPlace] = field(default_factory=list)
    unions: list[UnionPlace] = field(default_factory=list)
    union_stacks: list[StackPlace] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._scalar_names = NameSet()
        self._names = NameSet((SCALARS, STANDARD_METADATA))

    def scalar(self, type_: t.Type, name: str) -> ir.FieldRef:
        """A new scalar variable, of a type that t.is_scalar accepts."""
        if len(self.scalars) > MAX_INSTANCES:
            raise StorageExhausted
        stored = t.representation(type_)
        unique = self._scalar_names.unique(name)
        self.scalars.append((unique, stored))
        return ir.FieldRef(stored, SCALARS, unique)

    def variable(self, type_: t.Type, name: str) -> Place:
        """A new variable of any type that a variable can have."""
        if isinstance(type_, t.Struct):
            if type_.is_header:
                return self.header(type_, name)
            if type_.is_union:
                return self.union(type_, name)
            parts = {part: self.variable(inner, f"{name}.{part}") for part, inner in type_.fields.items()}
            return StructValue(type_, dict(parts))
        if isinstance(type_, t.Tuple):
            return StructValue(
                type_,
                {str(index): self.variable(inner, f"{name}.{index}") for index, inner in enumerate(type_.elements)},
            )
        if isinstance(type_, t.Stack):
            return self.stack(type_, name)
        if isinstance(type_, t.Varbit):
            return self._varbit(type_, name)
        return self.scalar(type_, name)

    def _varbit(self, type_: t.Varbit, name: str) -> ir.FieldRef:
        """A header type holds one varbit field, so each varbit variable is a header by itself."""
        node = s.StructDeclaration(0, 0, [], "varbit", 0, "header", [], [])
        holder = t.Struct("header", "varbit", {"value": type_}, node, {"value": []})
        return ir.FieldRef(type_, self.header(holder, name).name, "value")

    def packet_part(self, type_: t.Type, name: str) -> Place:
        """A part of the packet's headers: its name is the path to it in the program's headers struct."""
        if isinstance(type_, t.Struct) and type_.kind == "struct":
            prefix = f"{name}." if name else ""
            return StructValue(
                type_, {part: self.packet_part(inner, prefix + part) for part, inner in type_.fields.items()}
            )
        return self.variable(type_, name)

    def header(self, type_: t.Struct, name: str, unique: bool = True) -> HeaderPlace:
        if len(self.headers) > MAX_INSTANCES:
            raise StorageExhausted
        place = HeaderPlace(type_, self._names.unique(name) if unique else name)
        self.headers.append(place)
        return place

    def union(self, type_: t.Struct, name: str, unique: bool = True) -> UnionPlace:
        name = self._names.unique(name) if unique else name
        place = UnionPlace(type_, name, {})
        for member, inner in type_.fields.items():
            assert isinstance(inner, t.Struct)
            place.members[member] = self.header(inner, f"{name}.{member}")
            place.members[member].union = place
        self.unions.append(place)
        return place

    def stack(self, type_: t.Stack, name: str) -> StackPlace:
        name = self._names.unique(name)
        place = StackPlace(type_, name, [])
        element = type_.element
        assert isinstance(element, t.Struct)
        for index in range(type_.size):
            if element.is_header:
                place.elements.append(self.header(element, f"{name}[{index}]", unique=False))
            else:
                place.elements.append(self.union(element, f"{name}[{index}]", unique=False))
        (self.stacks if element.is_header else self.union_stacks).append(place)
        return place


def standard_metadata(type_: t.Struct) -> StructValue:
    """v1model's standard_metadata_t as the header instance that BMv2 knows."""
    parts = {
        name: ir.FieldRef(t.representation(inner), STANDARD_METADATA, name) for name, inner in type_.fields.items()
    }
    return StructValue(type_, dict(parts))
