"""Storage: the variables of a program, with unique names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir import values as ir
from gradbed.switch.compiler.ir.values import HeaderVariable, LValue, StackVariable, StructValue, UnionVariable

# ---- Unique names ----


class NameSet:
    """A set of unique names."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._next: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """Return `name`, with a number after it if it is taken: x, x_0, x_1."""
        if name not in self._taken:
            self._taken.add(name)
            return name
        number = self._next.get(name, 0)
        while f"{name}_{number}" in self._taken:
            number += 1
        self._next[name] = number + 1
        self._taken.add(f"{name}_{number}")
        return f"{name}_{number}"


# ---- Variables of a program ----


MAX_INSTANCES = 20_000
SCALARS = "scalars"
STANDARD_METADATA = "standard_metadata"


class StorageExhausted(Exception):
    """The program declares more variables than any switch holds."""


@dataclass
class Storage:
    """The variables of a program."""

    scalars: list[tuple[str, t.Type]] = field(default_factory=list)
    """Name and type of each scalar, in order."""
    headers: list[HeaderVariable] = field(default_factory=list)
    """Header instances in the order of their ids in BMv2 JSON."""
    stacks: list[StackVariable] = field(default_factory=list)
    unions: list[UnionVariable] = field(default_factory=list)
    union_stacks: list[StackVariable] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._scalar_names = NameSet()
        self._names = NameSet((SCALARS, STANDARD_METADATA))

    def scalar(self, type_: t.Type, name: str) -> ir.FieldRef:
        """Add a scalar variable, of a type that types.is_scalar accepts."""
        if len(self.scalars) > MAX_INSTANCES:
            raise StorageExhausted
        stored = t.representation(type_)
        unique = self._scalar_names.unique(name)
        self.scalars.append((unique, stored))
        return ir.FieldRef(stored, SCALARS, unique)

    def variable(self, type_: t.Type, name: str) -> LValue:
        """Add a variable of any type."""
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
        """Add a header for a varbit variable, since a header type has at most one varbit field."""
        node = s.StructDeclaration(0, 0, [], "varbit", 0, "header", [], [])
        holder = t.Struct("header", "varbit", {"value": type_}, node, {"value": []})
        return ir.FieldRef(type_, self.header(holder, name).name, "value")

    def packet_part(self, type_: t.Type, name: str) -> LValue:
        """Add a part of the packet's headers, named by its path in the headers struct of the program."""
        if isinstance(type_, t.Struct) and type_.kind == "struct":
            prefix = f"{name}." if name else ""
            return StructValue(
                type_, {part: self.packet_part(inner, prefix + part) for part, inner in type_.fields.items()}
            )
        return self.variable(type_, name)

    def header(self, type_: t.Struct, name: str, unique: bool = True) -> HeaderVariable:
        if len(self.headers) > MAX_INSTANCES:
            raise StorageExhausted
        lvalue = HeaderVariable(type_, self._names.unique(name) if unique else name)
        self.headers.append(lvalue)
        return lvalue

    def union(self, type_: t.Struct, name: str, unique: bool = True) -> UnionVariable:
        name = self._names.unique(name) if unique else name
        lvalue = UnionVariable(type_, name, {})
        for member, inner in type_.fields.items():
            assert isinstance(inner, t.Struct)
            lvalue.members[member] = self.header(inner, f"{name}.{member}")
            lvalue.members[member].union = lvalue
        self.unions.append(lvalue)
        return lvalue

    def stack(self, type_: t.Stack, name: str) -> StackVariable:
        name = self._names.unique(name)
        lvalue = StackVariable(type_, name, [])
        element = type_.element
        assert isinstance(element, t.Struct)
        for index in range(type_.size):
            if element.is_header:
                lvalue.elements.append(self.header(element, f"{name}[{index}]", unique=False))
            else:
                lvalue.elements.append(self.union(element, f"{name}[{index}]", unique=False))
        (self.stacks if element.is_header else self.union_stacks).append(lvalue)
        return lvalue


def standard_metadata(type_: t.Struct) -> StructValue:
    """Return standard_metadata_t of v1model as the header instance that BMv2 knows."""
    parts = {
        name: ir.FieldRef(t.representation(inner), STANDARD_METADATA, name) for name, inner in type_.fields.items()
    }
    return StructValue(type_, dict(parts))
