"""What names stand for, the scopes they are looked up in, and the types that declarations make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.nodes import Annotation, Declaration, Node
from gradbed.switch.compiler.values import Constant


@dataclass(eq=False, slots=True)
class Symbol:
    """kind: variable, parameter, constant, constructor_parameter, instance, value_set, table, action, function,
    type, namespace (error) or state.

    `functions` are the overloads of a function; `node` is the declaration.
    """

    name: str
    kind: str
    loc: int
    type: t.Type
    value: Constant | None = None
    node: Node | None = None
    direction: str = ""
    functions: list[Signature] = field(default_factory=list)
    used: bool = False

    @property
    def writable(self) -> bool:
        return self.kind == "variable" or (self.kind == "parameter" and self.direction in ("out", "inout"))


@dataclass(slots=True, eq=False)
class ParameterType(Node):
    """A parameter with its resolved type. `direction`: in, out, inout or "" (directionless)."""

    name: str
    direction: str
    type: t.Type
    default: Node | None
    symbol: Symbol
    annotations: list[Annotation]


@dataclass(eq=False, slots=True)
class Signature:
    """A function, method, constructor, action, parser, control or package.

    `scope` is where its types are resolved, `body_scope` where the locals of a parser or control are declared.
    """

    name: str
    variables: tuple[t.Variable, ...]
    parameters: list[ParameterType]
    return_type: t.Type
    node: Declaration
    scope: Scope
    constructor: list[ParameterType] = field(default_factory=list)
    instances: dict[tuple[t.Type, ...], Signature] = field(default_factory=dict)
    body_scope: Scope | None = None

    @property
    def loc(self) -> int:
        return self.node.name_loc


class Scope:
    __slots__ = ("names", "parent")

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.names: dict[str, Symbol] = {}

    def lookup(self, name: str) -> Symbol | None:
        scope: Scope | None = self
        while scope is not None:
            symbol = scope.names.get(name)
            if symbol is not None:
                return symbol
            scope = scope.parent
        return None

    def all_names(self, *kinds: str) -> set[str]:
        """The names that can be seen from here; `kinds`: of symbols of these kinds only."""
        names: set[str] = set()
        scope: Scope | None = self
        while scope is not None:
            names.update(name for name, symbol in scope.names.items() if not kinds or symbol.kind in kinds)
            scope = scope.parent
        return names

    @property
    def root(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


# ---- Types with signatures or declarations of their own ----


@dataclass(eq=False, slots=True)
class ExternClass:
    """What an extern declaration declares: its methods by name, overloads in order."""

    name: str
    variables: tuple[t.Variable, ...]
    methods: dict[str, list[Signature]]
    constructors: list[Signature]
    node: Declaration


@dataclass(frozen=True, slots=True)
class ExternInstanceType(t.Type):
    klass: ExternClass
    arguments: tuple[t.Type, ...]

    def __str__(self) -> str:
        if not self.arguments:
            return self.klass.name
        return f"{self.klass.name}<{', '.join(map(str, self.arguments))}>"


@dataclass(frozen=True, slots=True)
class Applicable(t.Type):
    """A parser or control, or the type of one; `arguments` for its type parameters."""

    signature: Signature
    arguments: tuple[t.Type, ...] = ()

    def __str__(self) -> str:
        return self.signature.name


@dataclass(frozen=True, slots=True)
class PackageType(t.Type):
    signature: Signature
    arguments: tuple[t.Type, ...] = ()

    def __str__(self) -> str:
        return self.signature.name


@dataclass(eq=False, slots=True)
class TableType(t.Type):
    node: Declaration

    def __str__(self) -> str:
        return f"table {self.node.name}"


@dataclass(eq=False, slots=True)
class ApplyResult(t.Type):
    node: Declaration

    def __str__(self) -> str:
        return f"the result of {self.node.name}.apply()"


def substitute(type_: t.Type, bindings: Mapping[t.Variable, t.Type]) -> t.Type:
    """The type with its variables replaced where they are bound."""
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
