"""State that all parts of the checker share, and the check of an expression."""

from __future__ import annotations

import itertools
from functools import singledispatch

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.diagnostics import Reporter, suggestion
from gradbed.switch.compiler.symbols import Scope, Signature, Symbol
from gradbed.switch.compiler.values import Symbolic
from gradbed.switch.state.externs import EXTERNS

_CORE_NAMES = frozenset(("packet_in", "packet_out", "NoAction", "verify"))
_V1MODEL_NAMES = frozenset(
    (
        *("standard_metadata_t", "V1Switch", "CounterType", "MeterType", "HashAlgorithm", "CloneType"),
        *("counter", "direct_counter", "meter", "direct_meter", "register", "action_profile"),
        *("action_selector", "random", "hash", "digest", "mark_to_drop", "truncate", "verify_checksum"),
        *("update_checksum", "clone", "clone_preserving_field_list", "resubmit_preserving_field_list"),
        *("recirculate_preserving_field_list", "log_msg"),
    )
)
_FOREIGN_TYPES = frozenset(
    (
        *("uint8", "uint16", "uint32", "uint64", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "int8"),
        *("int16", "int32", "int64", "int8_t", "int16_t", "int32_t", "int64_t", "unsigned", "short"),
        *("long", "char", "byte", "float", "double"),
    )
)


class Context:
    """The global names of one compilation, and the bodies that are still to be checked."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.globals = Scope()
        self.errors: dict[str, Symbolic] = {}
        self.match_kinds: set[str] = set()
        self.generic_structs: dict[tuple[int, tuple[t.Type, ...]], t.Struct] = {}
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
        """Report an unknown name. `known` has the names that may have been meant."""
        if name in self.unfinished:
            self.error(node, f"'{name}' cannot be used in itself: P4 has no recursion")
            return
        hint = _unknown_name_hint(name)
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


def _unknown_name_hint(name: str) -> str:
    """Return a hint for a name that is declared nowhere."""
    if name in _CORE_NAMES:
        return "write #include <core.p4> and #include <v1model.p4> at the top of the program"
    if name in _V1MODEL_NAMES:
        return "write #include <v1model.p4> at the top of the program"
    if name in EXTERNS:
        return "write #include <gradbed.p4> at the top of the program"
    if name in _FOREIGN_TYPES:
        return "numbers have types like bit<32> (without sign) and int<32> (with sign)"
    return ""


# ---- Expressions ----


def check(expression: s.Expression, scope: Scope, context: Context) -> t.Type:
    """Determine the type of an expression; set its `type` and, if it is known, `value`."""
    expression.type = type_of(expression, scope, context)
    return expression.type


@singledispatch
def type_of(node: s.Expression, scope: Scope, context: Context) -> t.Type:
    """Return the type of an expression by its kind: the rules are in expressions.py, operators.py and calls.py."""
    raise AssertionError(f"{type(node).__name__} has no rule")


def constant_int(expression: s.Expression, scope: Scope, what: str, context: Context) -> int | None:
    """Return the value of an expression that must be an integer known at compile time."""
    if check(expression, scope, context) is t.UNKNOWN:
        return None
    value = expression.value
    if isinstance(value, Symbolic) and isinstance(value.type, t.Enum) and value.type.underlying:
        value = value.number
    if isinstance(value, bool) or not isinstance(value, int):
        context.error(expression, f"{what} must be an integer known at compile time")
        return None
    return value
