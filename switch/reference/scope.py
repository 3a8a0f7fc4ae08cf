"""What names mean, and where values live.

A P4 program has no recursion, so every variable of an instance has one cell; expressions and statements of the tree
become functions of no arguments that read and write cells.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gradbed.switch.reference import syntax as x
from gradbed.switch.reference.tokens import Position, ProgramError
from gradbed.switch.reference.values import (
    BitsType,
    Composite,
    RuntimeHeader,
    RuntimeUnion,
    StackType,
    Value,
    ValueType,
    base_of,
    default,
)

Cell = list[Value]
"""One value, at index 0."""


class LValue:
    """An l-value, found once: evaluating it again changes nothing (section 6.7)."""

    def get(self) -> Value:
        raise NotImplementedError

    def set(self, value: Value) -> None:
        raise NotImplementedError


class CellLValue(LValue):
    """A cell, or a part of a composite value."""

    def __init__(self, parts: list[Value], index: int) -> None:
        self._parts = parts
        self._index = index

    def get(self) -> Value:
        return self._parts[self._index]

    def set(self, value: Value) -> None:
        held = self._parts[self._index]
        if isinstance(held, Composite):
            if held is not value:
                held.assign(value)
        else:
            self._parts[self._index] = value


class UnionMemberLValue(CellLValue):
    """A header of a header union: assigning a valid one makes the others invalid."""

    def __init__(self, union: RuntimeUnion, index: int) -> None:
        super().__init__(union.parts, index)
        self._union = union

    def set(self, value: RuntimeHeader) -> None:
        super().set(value)
        if value.valid:
            self._union.make_valid(self.get())


class SliceLValue(LValue):
    """x[high:low]"""

    def __init__(self, of: LValue, bits: BitsType, high: int, low: int) -> None:
        self._of = of
        self._bits = bits
        self._low = low
        self._mask = (1 << (high - low + 1)) - 1

    def get(self) -> int:
        return int(self._of.get()) >> self._low & self._mask

    def set(self, value: int) -> None:
        whole = self._of.get() & ~(self._mask << self._low) | (value & self._mask) << self._low
        self._of.set(self._bits.wrap(whole))


class DiscardedLValue(LValue):
    """`_` as an out argument: what is written is lost."""

    def __init__(self, type_: ValueType) -> None:
        self._type = type_

    def get(self) -> Value:
        return default(self._type)

    def set(self, value: Value) -> None:
        pass


@dataclass
class TypedExpression:
    """An expression with its type."""

    type: ValueType
    run: Callable[[], Value]
    """Evaluates it; a composite value is the variable itself, not a copy."""
    constant: bool = False
    """Whether it is known at compile time."""
    place: Callable[[], LValue] | None = None
    """Finds the l-value, if it is one."""


def constant(type_: ValueType, value: Value) -> TypedExpression:
    return TypedExpression(type_, lambda: value, constant=True)


@dataclass(frozen=True)
class TypedParameter:
    name: str
    direction: str
    type: ValueType
    default: TypedExpression | None = None


@dataclass
class Subroutine:
    """A function or an action."""

    name: str
    parameters: list[TypedParameter]
    result: ValueType
    cells: list[Cell] = field(default_factory=list)
    """Cells of the parameters, in order."""
    body: Callable[[], Value] = lambda: None
    """Runs it to its end."""
    is_action: bool = False

    @property
    def data(self) -> list[TypedParameter]:
        """Return what the control plane gives: parameters without a direction."""
        return [each for each in self.parameters if not each.direction]


@dataclass
class Generic:
    """A declaration with type parameters, and where it stands."""

    declaration: Any
    scope: Environment


@dataclass
class Overloads:
    """Functions of one name; which is meant is told by the number and names of arguments."""

    functions: list[Any]


class Environment:
    """Names of a block, and those around it."""

    def __init__(self, parent: Environment | None = None) -> None:
        self._parent = parent
        self._names: dict[str, Any] = {}

    def set(self, name: str, meaning: Any) -> None:
        self._names[name] = meaning

    def own(self, name: str) -> Any:
        return self._names.get(name)

    def find(self, name: str) -> Any:
        """Return the meaning of a name; None if there is no such name."""
        scope: Environment | None = self
        while scope is not None:
            if name in scope._names:
                return scope._names[name]
            scope = scope._parent
        return None

    def get(self, name: str, position: Position) -> Any:
        found = self.find(name)
        if found is None:
            raise ProgramError(position, f"there is no {name}")
        return found

    @property
    def outermost(self) -> Environment:
        scope = self
        while scope._parent is not None:
            scope = scope._parent
        return scope

    def variable(self, name: str, type_: ValueType, cell: Cell | None = None) -> Cell:
        """Declare a variable; returns its cell."""
        made = cell if cell is not None else [default(type_)]
        self.set(name, TypedExpression(type_, lambda: made[0], place=lambda: CellLValue(made, 0)))
        return made


def is_stack(type_: ValueType) -> bool:
    return isinstance(base_of(type_), StackType)


def argument_order(
    parameters: list[TypedParameter], arguments: list[x.ArgumentNode], position: Position
) -> list[tuple[int, x.ExpressionNode | None]]:
    """Return (index of the parameter, its argument) in the order of the call; defaults come last."""
    found: list[tuple[int, x.ExpressionNode | None]] = []
    names = [each.name for each in parameters]
    for index, argument in enumerate(arguments):
        if argument.name is None:
            if index >= len(parameters):
                raise ProgramError(position, f"{len(arguments)} arguments where {len(parameters)} are needed")
            found.append((index, argument.value))
        elif argument.name in names:
            found.append((names.index(argument.name), argument.value))
        else:
            raise ProgramError(position, f"there is no parameter {argument.name}")
    given = {index for index, _ in found}
    for index, parameter in enumerate(parameters):
        if index not in given:
            if parameter.default is None and parameter.direction != "out":
                raise ProgramError(position, f"parameter {parameter.name} has no argument")
            found.append((index, None))
    return found
