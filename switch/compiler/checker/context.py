"""What the parts of the checker share."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.checker import hints
from switch.compiler.diagnostics import Reporter, suggestion
from switch.compiler.symbols import ParameterType, Scope, Signature, Symbol
from switch.compiler.values import Symbolic

if TYPE_CHECKING:
    from switch.compiler.checker.calls import CallChecker
    from switch.compiler.checker.expressions import ExpressionChecker
    from switch.compiler.checker.statements import StatementChecker
    from switch.compiler.checker.type_resolver import TypeResolver


class Context:
    """One compilation's global names, and the checkers for types, expressions, calls and statements."""

    types: TypeResolver
    expressions: ExpressionChecker
    calls: CallChecker
    statements: StatementChecker

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.globals = Scope()
        self.errors: dict[str, Symbolic] = {}
        self.match_kinds: set[str] = set()
        self._owners = itertools.count(1)
        # Bodies of generic functions, parsers and controls are checked once per set of type arguments.
        self.pending: list[Signature] = []
        # Functions, actions, parsers and controls whose bodies are being checked; their names do not count yet.
        self.unfinished: list[str] = []

    def error(self, node: s.Node, message: str, note: tuple[int, str] | None = None, hint: str = "") -> None:
        self.reporter.error(node.loc, message, node.end, note, hint)

    def declare(self, scope: Scope, symbol: Symbol) -> None:
        previous = scope.names.get(symbol.name)
        if previous is None:
            scope.names[symbol.name] = symbol
            return
        sources = self.reporter.sources
        hint = ""
        if sources.is_standard(previous.loc) and not sources.is_standard(symbol.loc):
            hint = f"the name is taken by {sources.file_at(previous.loc)[0].name}: choose another one"
            scope.names[symbol.name] = symbol  # what follows means this one
        end = symbol.loc + len(symbol.name)
        note = (previous.loc, "the first declaration is here")
        self.reporter.error(symbol.loc, f"'{symbol.name}' is declared twice", end, note, hint)

    def not_declared(self, node: s.Node, name: str, what: str, known: set[str]) -> None:
        """Report a name that means nothing here. known: names that may have been meant."""
        if name in self.unfinished:
            self.error(node, f"'{name}' cannot be used in itself: P4 has no recursion")
            return
        hint = hints.of_unknown_name(name)
        near = "" if hint else suggestion(name, known)
        self.error(node, f"{what} is not declared{near}", hint=hint)

    def type_variables(self, scope: Scope, names: list[str], loc: int) -> tuple[t.Variable, ...]:
        """Declare type parameters in a scope."""
        variables = []
        for name in names:
            variable = t.Variable(name, next(self._owners))
            scope.names[name] = Symbol(name, "type", loc, variable)
            variables.append(variable)
        return tuple(variables)

    def parameters(self, nodes: list[s.Parameter], scope: Scope, kind: str) -> list[ParameterType]:
        """Resolve and declare parameters. kind: parameter or constructor_parameter."""
        result: list[ParameterType] = []
        for node in nodes:
            type_ = self.types.resolve(node.type, scope)
            symbol = Symbol(node.name, kind, node.loc, type_, node=node, direction=node.direction)
            self.declare(scope, symbol)
            default = node.default
            if default is not None:
                self.expressions.check(default, scope)
                default = self.expressions.coerce(default, type_)
            result.append(
                ParameterType(node.loc, node.end, node.name, node.direction, type_, default, symbol, node.annotations)
            )
        return result
