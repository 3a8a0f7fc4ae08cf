"""Symbols, scopes, and the types that declarations introduce."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.nodes import Annotation, Declaration, Node
from gradbed.switch.compiler.values import Constant


@dataclass(eq=False, slots=True)
class Symbol:
    """A declared name."""

    name: str
    kind: str
    """variable, parameter, constant, constructor_parameter, instance, value_set, table, action, function, type,
    state, or namespace (of error)."""
    loc: int
    type: t.Type
    value: Constant | None = None
    node: Node | None = None
    """The declaration."""
    direction: str = ""
    """in, out or inout for a parameter; empty for others."""
    functions: list[Signature] = field(default_factory=list)
    """Overloads of a function."""
    used: bool = False

    @property
    def writable(self) -> bool:
        return self.kind == "variable" or (self.kind == "parameter" and self.direction in ("out", "inout"))


@dataclass(slots=True, eq=False)
class ParameterType(Node):
    """A parameter with its resolved type."""

    name: str
    direction: str
    """in, out, inout, or empty for a directionless one."""
    type: t.Type
    default: Node | None
    symbol: Symbol
    annotations: list[Annotation]


@dataclass(eq=False, slots=True)
class Signature:
    """A function, method, constructor, action, parser, control or package."""

    name: str
    variables: tuple[t.Variable, ...]
    """Type parameters."""
    parameters: list[ParameterType]
    return_type: t.Type
    node: Declaration
    scope: Scope
    """Scope in which its types are resolved."""
    constructor: list[ParameterType] = field(default_factory=list)
    """Parameters of the constructor of a parser or control."""
    instances: dict[tuple[t.Type, ...], Signature] = field(default_factory=dict)
    """Specializations of a generic one, by type arguments."""
    body_scope: Scope | None = None
    """Scope of the locals of a parser or control."""

    @property
    def loc(self) -> int:
        return self.node.name_loc


class Scope:
    """Names declared in one block (P4_16 1.2.5, section 6.9)."""

    __slots__ = ("names", "parent")

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.names: dict[str, Symbol] = {}

    def lookup(self, name: str) -> Symbol | None:
        """Return the symbol in the innermost scope that has it."""
        scope: Scope | None = self
        while scope is not None:
            symbol = scope.names.get(name)
            if symbol is not None:
                return symbol
            scope = scope.parent
        return None

    def all_names(self, *kinds: str) -> set[str]:
        """Return the names that are visible here, of symbols of these kinds or, without any, of all."""
        names: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            names.update(name for name, symbol in scope.names.items() if not kinds or symbol.kind in kinds)
            scope = scope.parent
        return names

    @property
    def root(self) -> Scope:
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


# ---- Types with signatures or declarations of their own ----


@dataclass(eq=False, slots=True)
class ExternClass:
    """An extern object type."""

    name: str
    variables: tuple[t.Variable, ...]
    methods: dict[str, list[Signature]]
    """Overloads by name, in order."""
    constructors: list[Signature]
    node: Declaration


@dataclass(frozen=True, slots=True)
class ExternInstanceType(t.Type):
    """The type of an extern instance."""

    klass: ExternClass
    arguments: tuple[t.Type, ...]

    def __str__(self) -> str:
        if not self.arguments:
            return self.klass.name
        return f"{self.klass.name}<{', '.join(map(str, self.arguments))}>"


@dataclass(frozen=True, slots=True)
class Applicable(t.Type):
    """A parser or control, or the type of one."""

    signature: Signature
    arguments: tuple[t.Type, ...] = ()
    """Arguments of its type parameters."""

    def __str__(self) -> str:
        return self.signature.name


@dataclass(frozen=True, slots=True)
class PackageType(t.Type):
    """The type of a package."""

    signature: Signature
    arguments: tuple[t.Type, ...] = ()

    def __str__(self) -> str:
        return self.signature.name


@dataclass(eq=False, slots=True)
class TableType(t.Type):
    """The type of a table."""

    node: Declaration

    def __str__(self) -> str:
        return f"table {self.node.name}"


@dataclass(eq=False, slots=True)
class ApplyResult(t.Type):
    """The result of applying a table."""

    node: Declaration

    def __str__(self) -> str:
        return f"the result of {self.node.name}.apply()"


def substitute(type_: t.Type, bindings: Mapping[t.Variable, t.Type]) -> t.Type:
    """Replace the type variables that are bound."""
    if not bindings:
        return type_
    if isinstance(type_, t.Variable):
        return bindings.get(type_, type_)
    if isinstance(type_, t.Tuple):
        return t.Tuple(_substitute_all(type_.elements, bindings))
    if isinstance(type_, t.Stack):
        return t.Stack(substitute(type_.element, bindings), type_.size)
    if isinstance(type_, t.ListOf):
        return t.ListOf(substitute(type_.element, bindings))
    if isinstance(type_, ExternInstanceType) and type_.arguments:
        return ExternInstanceType(type_.klass, _substitute_all(type_.arguments, bindings))
    if isinstance(type_, Applicable) and type_.arguments:
        return Applicable(type_.signature, _substitute_all(type_.arguments, bindings))
    return type_


def _substitute_all(types: Sequence[t.Type], bindings: Mapping[t.Variable, t.Type]) -> tuple[t.Type, ...]:
    return tuple(substitute(type_, bindings) for type_ in types)
