"""What names stand for, and the scopes they are looked up in."""

from __future__ import annotations

from dataclasses import dataclass, field

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.values import Constant


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
    node: s.Node | None = None
    direction: str = ""
    functions: list[Signature] = field(default_factory=list)
    used: bool = False

    @property
    def writable(self) -> bool:
        return self.kind == "variable" or (self.kind == "parameter" and self.direction in ("out", "inout"))


@dataclass(eq=False, slots=True)
class Signature:
    """A function, method, constructor, action, parser, control or package.

    `scope` is where its types are resolved, `body_scope` where the locals of a parser or control are declared.
    """

    name: str
    variables: tuple[t.Variable, ...]
    parameters: list[s.ParameterType]
    return_type: t.Type
    node: s.FunctionDeclaration | s.ParserDeclaration | s.ControlDeclaration | s.PackageDeclaration
    scope: Scope
    constructor: list[s.ParameterType] = field(default_factory=list)
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
