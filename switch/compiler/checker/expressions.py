"""Types and compile-time values of expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.checker.coercion import Coercion
from switch.compiler.checker.context import Context
from switch.compiler.checker.operators import OperatorChecker
from switch.compiler.diagnostics import suggestion
from switch.compiler.symbols import Applicable, ApplyResult, Scope, Symbol
from switch.compiler.values import (
    Symbolic,
    slice_bits,
    stored,
    wrap,
)

VALUE_KINDS = (
    *("variable", "parameter", "constant", "constructor_parameter", "instance", "value_set", "table"),
    *("function", "action"),
)


class ExpressionChecker:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._coercion = Coercion(context.reporter)
        operators = OperatorChecker(context, self, self._coercion)
        self._dispatch: dict[type, Callable[[Any, Scope], t.Type]] = {
            s.IntLiteral: self._int_literal,
            s.BoolLiteral: self._bool_literal,
            s.StringLiteral: self._string_literal,
            s.Name: self._name,
            s.Member: self._member,
            s.Index: self._index,
            s.Slice: self._slice,
            s.Unary: operators.unary,
            s.Binary: operators.binary,
            s.Conditional: operators.conditional,
            s.Cast: operators.cast,
            s.Convert: self._convert,
            s.Call: self._call,
            s.TypeName: self._type_name,
            s.ListExpression: self._list,
            s.StructExpression: self._struct,
            s.InvalidHeader: self._invalid_header,
            s.DefaultValue: self._default_value,
            s.Wildcard: self._wildcard,
        }

    def check(self, expression: s.Expression, scope: Scope) -> t.Type:
        """Find the expression's type; sets its `type` and, if it is known, `value`."""
        type_ = self._dispatch[type(expression)](expression, scope)
        expression.type = type_
        return type_

    def check_as(self, expression: s.Expression, scope: Scope, target: t.Type) -> s.Expression:
        """Check and convert to a type."""
        self.check(expression, scope)
        return self.coerce(expression, target)

    def constant_int(self, expression: s.Expression, scope: Scope, what: str) -> int | None:
        """Value of an expression that must be an integer known at compile time."""
        if self.check(expression, scope) is t.UNKNOWN:
            return None
        value = expression.value
        if isinstance(value, Symbolic) and isinstance(value.type, t.Enum) and value.type.underlying:
            value = value.number
        if isinstance(value, bool) or not isinstance(value, int):
            self._context.error(expression, f"{what} must be an integer known at compile time")
            return None
        return value

    def coerce(self, expression: s.Expression, target: t.Type) -> s.Expression:
        """The expression as a value of `target`, by the implicit conversions; reports if there is none."""
        return self._coercion.coerce(expression, target)

    # --- leaves ---

    def _int_literal(self, node: s.IntLiteral, scope: Scope) -> t.Type:
        if node.width is None:
            node.value = node.number
            return t.INTEGER
        if not 0 < node.width <= t.MAX_WIDTH_BITS:
            self._context.error(node, f"a width of {node.width} is outside 1 to {t.MAX_WIDTH_BITS}")
            return t.UNKNOWN
        type_ = t.int_(node.width) if node.signed else t.bit(node.width)
        node.value = wrap(node.number, type_)
        if node.number >> node.width:
            message = f"{node.number} does not fit into {type_}, it becomes {node.value}"
            self._context.reporter.warning(node.loc, message, node.end, category="overflow")
        return type_

    def _bool_literal(self, node: s.BoolLiteral, scope: Scope) -> t.Type:
        node.value = node.flag
        return t.BOOL

    def _string_literal(self, node: s.StringLiteral, scope: Scope) -> t.Type:
        node.value = node.text
        return t.STRING

    def _invalid_header(self, node: s.InvalidHeader, scope: Scope) -> t.Type:
        return t.INVALID_HEADER

    def _default_value(self, node: s.DefaultValue, scope: Scope) -> t.Type:
        return t.DEFAULT_VALUE

    def _wildcard(self, node: s.Wildcard, scope: Scope) -> t.Type:
        return t.ANY

    def _convert(self, node: s.Convert, scope: Scope) -> t.Type:
        assert node.type is not None
        return node.type

    def _type_name(self, node: s.TypeName, scope: Scope) -> t.Type:
        self._context.error(node, "expected a value, but this is a type")
        return t.UNKNOWN

    def _name(self, node: s.Name, scope: Scope) -> t.Type:
        symbol = (scope.root if node.absolute else scope).lookup(node.name)
        if symbol is None:
            known = scope.all_names(*VALUE_KINDS) | _types_with_members(scope)
            self._context.not_declared(node, node.name, f"'{node.name}'", known)
            return t.UNKNOWN
        node.symbol = symbol
        symbol.used = True
        if symbol.kind in ("type", "namespace"):
            is_block = isinstance(symbol.type, Applicable)
            hint = f"to make one, write {node.name}()" if is_block else ""
            self._context.error(node, f"expected a value, but '{node.name}' is a type", hint=hint)
            return t.UNKNOWN
        if symbol.kind in ("function", "action"):
            self._context.error(node, f"'{node.name}' is a {symbol.kind}: expected '(' behind it")
            return t.UNKNOWN
        node.value = symbol.value
        return symbol.type

    def _call(self, node: s.Call, scope: Scope) -> t.Type:
        return self._context.calls.check(node, scope)

    # --- parts ---

    def _member(self, node: s.Member, scope: Scope) -> t.Type:
        namespace = self._namespace(node.base, scope)
        if namespace is not None:
            return self._static_member(node, namespace)
        base = self.check(node.base, scope)
        if base is t.UNKNOWN:
            return t.UNKNOWN
        if isinstance(base, t.Struct):
            type_ = base.fields.get(node.name)
            if type_ is None:
                if node.name in ("isValid", "setValid", "setInvalid"):
                    self._context.error(node, f"'{node.name}' is a method: expected '(' behind it")
                else:
                    hint = suggestion(node.name, base.fields)
                    self._context.error(node, f"{base.kind} '{base}' has no field '{node.name}'{hint}")
                return t.UNKNOWN
            return type_
        if isinstance(base, t.Stack):
            if node.name in ("next", "last"):
                return base.element
            if node.name in ("lastIndex", "size"):
                if node.name == "size":
                    node.value = base.size
                return t.bit(32)
        if isinstance(base, ApplyResult):
            if node.name in ("hit", "miss"):
                return t.BOOL
            if node.name == "action_run":
                return t.ACTION_RUN
        if isinstance(base, t.NamedFields) and node.name in base.names:
            return base.elements[base.names.index(node.name)]
        self._context.error(node, f"{base} has no member '{node.name}'")
        return t.UNKNOWN

    def _namespace(self, base: s.Expression, scope: Scope) -> Symbol | None:
        """The enum or `error` in front of a dot."""
        if isinstance(base, s.Name):
            symbol = (scope.root if base.absolute else scope).lookup(base.name)
            if symbol is not None and symbol.kind in ("type", "namespace"):
                return symbol
        return None

    def _static_member(self, node: s.Member, namespace: Symbol) -> t.Type:
        if namespace.kind == "namespace":
            value = self._context.errors.get(node.name)
            if value is None:
                hint = suggestion(node.name, self._context.errors)
                self._context.error(node, f"error '{node.name}' is not declared{hint}")
                return t.UNKNOWN
            node.value = value
            return t.ERROR
        type_ = namespace.type
        hint = suggestion(node.name, type_.members) if isinstance(type_, t.Enum) else ""
        if isinstance(type_, t.Enum) and node.name in type_.members:
            number = type_.values[node.name]
            node.value = Symbolic(type_, node.name, number)
            return type_
        self._context.error(node, f"type '{namespace.name}' has no member '{node.name}'{hint}")
        return t.UNKNOWN

    def _index(self, node: s.Index, scope: Scope) -> t.Type:
        base = self.check(node.base, scope)
        index = self.check(node.index, scope)
        if base is t.UNKNOWN or index is t.UNKNOWN:
            return t.UNKNOWN
        if isinstance(base, t.Tuple):
            if not isinstance(node.index.value, int) or not 0 <= node.index.value < len(base.elements):
                self._context.error(node.index, f"the index of {base} must be a constant inside it")
                return t.UNKNOWN
            return base.elements[node.index.value]
        if not isinstance(base, t.Stack):
            self._context.error(node, f"only header stacks and tuples have elements, this is {base}")
            return t.UNKNOWN
        if index is t.INTEGER:
            if isinstance(node.index.value, int) and not 0 <= node.index.value < base.size:
                self._context.error(
                    node.index, f"index {node.index.value} is outside the {base.size} elements of the stack"
                )
                return t.UNKNOWN
            node.index = self.coerce(node.index, t.bit(32))
        elif not isinstance(t.representation(index), (t.Bit, t.Int)):
            self._context.error(node.index, f"an index must be an integer, this is {index}")
            return t.UNKNOWN
        return base.element

    def _slice(self, node: s.Slice, scope: Scope) -> t.Type:
        base = self.check(node.base, scope)
        what = "the width of a slice" if node.counts_up else "a bit number of a slice"
        high = self.constant_int(node.high, scope, what)
        low = self.constant_int(node.low, scope, "a bit number of a slice")
        if base is t.UNKNOWN or high is None or low is None:
            return t.UNKNOWN
        if node.counts_up:
            if high < 1:
                self._context.error(node.high, f"a slice has one bit or more, not {high}")
                return t.UNKNOWN
            high += low - 1
        stored_type = base if base is t.INTEGER else t.representation(base)
        if not (stored_type is t.INTEGER or isinstance(stored_type, (t.Bit, t.Int))):
            self._context.error(node, f"only numbers have slices, this is {base}")
            return t.UNKNOWN
        width = stored_type.width if isinstance(stored_type, (t.Bit, t.Int)) else t.MAX_WIDTH_BITS
        if not 0 <= low <= high < width:
            hint = "the higher bit comes first" if high < low else ""
            self._context.error(node, f"slice [{high}:{low}] is outside the bits of {base}", hint=hint)
            return t.UNKNOWN
        node.high_bit, node.low_bit = high, low
        if node.base.value is not None:
            node.value = slice_bits(stored(node.base.value), high, low)
        return t.bit(high - low + 1)

    # --- aggregates ---

    def _list(self, node: s.ListExpression, scope: Scope) -> t.Type:
        elements = tuple(self.check(item, scope) for item in node.items)
        return t.UNKNOWN if t.UNKNOWN in elements else t.Tuple(elements)

    def _struct(self, node: s.StructExpression, scope: Scope) -> t.Type:
        elements = tuple(self.check(item, scope) for _, item in node.fields)
        if t.UNKNOWN in elements:
            return t.UNKNOWN
        return t.NamedFields(tuple(name for name, _ in node.fields), elements)

    # --- places that can be written ---

    def require_writable(self, expression: s.Expression, what: str) -> bool:
        """Report unless the (checked) expression is a place that can be assigned to."""
        if expression.type is t.UNKNOWN:
            return False
        if isinstance(expression, s.Name) and expression.symbol is not None:
            if expression.symbol.writable:
                return True
            hint = ""
            if expression.symbol.kind == "parameter":
                direction = expression.symbol.direction
                hint = "give the parameter the direction inout" if direction == "in" else "change a copy of it"
            self._context.error(
                expression,
                f"'{expression.name}' cannot be changed {what}",
                (expression.symbol.loc, f"it is declared here as {_described(expression.symbol)}"),
                hint,
            )
            return False
        if isinstance(expression, s.Member) and isinstance(expression.base.type, (t.Struct, t.Stack)):
            if isinstance(expression.base.type, t.Stack) and expression.name not in ("next", "last"):
                self._context.error(expression, f"'{expression.name}' of a stack cannot be changed")
                return False
            return self.require_writable(expression.base, what)
        if isinstance(expression, (s.Index, s.Slice)):
            return self.require_writable(expression.base, what)
        self._context.error(expression, f"this expression cannot be changed {what}")
        return False


def _types_with_members(scope: Scope) -> set[str]:
    """Enums and `error`, which stand in expressions as well."""
    return {
        name
        for name in scope.all_names("type", "namespace")
        if (symbol := scope.lookup(name)) is not None
        and (symbol.kind == "namespace" or isinstance(symbol.type, t.Enum))
    }


def _described(symbol: Symbol) -> str:
    if symbol.kind == "parameter":
        return f"a parameter with direction '{symbol.direction}'" if symbol.direction else "action data"
    return symbol.kind.replace("_", " ")
