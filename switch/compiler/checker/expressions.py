"""Types and compile-time values of expressions (P4_16 1.2.5, section 8)."""

from __future__ import annotations

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker.context import Context, check, constant_int, type_of
from gradbed.switch.compiler.checker.conversions import coerce
from gradbed.switch.compiler.diagnostics import suggestion
from gradbed.switch.compiler.symbols import Applicable, ApplyResult, Scope, Symbol
from gradbed.switch.compiler.values import (
    Symbolic,
    slice_bits,
    stored,
    wrap,
)

VALUE_KINDS = (
    *("variable", "parameter", "constant", "constructor_parameter", "instance", "value_set", "table"),
    *("function", "action"),
)


# ---- Leaves ----


@type_of.register(s.IntLiteral)
def _int_literal(node: s.IntLiteral, scope: Scope, context: Context) -> t.Type:
    if node.width is None:
        node.value = node.number
        return t.INTEGER
    if not 0 < node.width <= t.MAX_WIDTH_BITS:
        context.error(node, f"a width of {node.width} is outside 1 to {t.MAX_WIDTH_BITS}")
        return t.UNKNOWN
    type_ = t.int_(node.width) if node.signed else t.bit(node.width)
    node.value = wrap(node.number, type_)
    if node.number >> node.width:
        message = f"{node.number} does not fit into {type_}, it becomes {node.value}"
        context.reporter.warning(node.loc, message, node.end, category="overflow")
    return type_


@type_of.register(s.BoolLiteral)
def _bool_literal(node: s.BoolLiteral, scope: Scope, context: Context) -> t.Type:
    node.value = node.flag
    return t.BOOL


@type_of.register(s.StringLiteral)
def _string_literal(node: s.StringLiteral, scope: Scope, context: Context) -> t.Type:
    node.value = node.text
    return t.STRING


@type_of.register(s.InvalidHeader)
def _invalid_header(node: s.InvalidHeader, scope: Scope, context: Context) -> t.Type:
    return t.INVALID_HEADER


@type_of.register(s.DefaultValue)
def _default_value(node: s.DefaultValue, scope: Scope, context: Context) -> t.Type:
    return t.DEFAULT_VALUE


@type_of.register(s.Wildcard)
def _wildcard(node: s.Wildcard, scope: Scope, context: Context) -> t.Type:
    return t.ANY


@type_of.register(s.Convert)
def _convert(node: s.Convert, scope: Scope, context: Context) -> t.Type:
    assert node.type is not None
    return node.type


@type_of.register(s.TypeName)
def _type_name(node: s.TypeName, scope: Scope, context: Context) -> t.Type:
    context.error(node, "expected a value, but this is a type")
    return t.UNKNOWN


@type_of.register(s.Name)
def _name(node: s.Name, scope: Scope, context: Context) -> t.Type:
    symbol = (scope.root if node.absolute else scope).lookup(node.name)
    if symbol is None:
        known = scope.all_names(*VALUE_KINDS) | _types_with_members(scope)
        context.not_declared(node, node.name, f"'{node.name}'", known)
        return t.UNKNOWN
    node.symbol = symbol
    symbol.used = True
    if symbol.kind in ("type", "namespace"):
        is_block = isinstance(symbol.type, Applicable)
        hint = f"to make one, write {node.name}()" if is_block else ""
        context.error(node, f"expected a value, but '{node.name}' is a type", hint=hint)
        return t.UNKNOWN
    if symbol.kind in ("function", "action"):
        context.error(node, f"'{node.name}' is a {symbol.kind}: expected '(' after it")
        return t.UNKNOWN
    node.value = symbol.value
    return symbol.type


# ---- Parts ----


@type_of.register(s.Member)
def _member(node: s.Member, scope: Scope, context: Context) -> t.Type:
    namespace = _namespace(node.base, scope)
    if namespace is not None:
        return _static_member(node, namespace, context)
    base = check(node.base, scope, context)
    if base is t.UNKNOWN:
        return t.UNKNOWN
    if isinstance(base, t.Struct):
        type_ = base.fields.get(node.name)
        if type_ is None:
            if node.name in ("isValid", "setValid", "setInvalid"):
                context.error(node, f"'{node.name}' is a method: expected '(' after it")
            else:
                hint = suggestion(node.name, base.fields)
                context.error(node, f"{base.kind} '{base}' has no field '{node.name}'{hint}")
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
    context.error(node, f"{base} has no member '{node.name}'")
    return t.UNKNOWN


def _namespace(base: s.Expression, scope: Scope) -> Symbol | None:
    """Return the enum or `error` before a dot."""
    if isinstance(base, s.Name):
        symbol = (scope.root if base.absolute else scope).lookup(base.name)
        if symbol is not None and symbol.kind in ("type", "namespace"):
            return symbol
    return None


def _static_member(node: s.Member, namespace: Symbol, context: Context) -> t.Type:
    if namespace.kind == "namespace":
        value = context.errors.get(node.name)
        if value is None:
            hint = suggestion(node.name, context.errors)
            context.error(node, f"error '{node.name}' is not declared{hint}")
            return t.UNKNOWN
        node.value = value
        return t.ERROR
    type_ = namespace.type
    hint = suggestion(node.name, type_.members) if isinstance(type_, t.Enum) else ""
    if isinstance(type_, t.Enum) and node.name in type_.members:
        number = type_.values[node.name]
        node.value = Symbolic(type_, node.name, number)
        return type_
    context.error(node, f"type '{namespace.name}' has no member '{node.name}'{hint}")
    return t.UNKNOWN


@type_of.register(s.Index)
def _index(node: s.Index, scope: Scope, context: Context) -> t.Type:
    base = check(node.base, scope, context)
    index = check(node.index, scope, context)
    if base is t.UNKNOWN or index is t.UNKNOWN:
        return t.UNKNOWN
    if isinstance(base, t.Tuple):
        if not isinstance(node.index.value, int) or not 0 <= node.index.value < len(base.elements):
            context.error(node.index, f"the index of {base} must be a constant inside it")
            return t.UNKNOWN
        return base.elements[node.index.value]
    if not isinstance(base, t.Stack):
        context.error(node, f"only header stacks and tuples have elements, this is {base}")
        return t.UNKNOWN
    if index is t.INTEGER:
        if isinstance(node.index.value, int) and not 0 <= node.index.value < base.size:
            context.error(node.index, f"index {node.index.value} is outside the {base.size} elements of the stack")
            return t.UNKNOWN
        node.index = coerce(node.index, t.bit(32), context)
    elif not isinstance(t.representation(index), (t.Bit, t.Int)):
        context.error(node.index, f"an index must be an integer, this is {index}")
        return t.UNKNOWN
    return base.element


@type_of.register(s.Slice)
def _slice(node: s.Slice, scope: Scope, context: Context) -> t.Type:
    base = check(node.base, scope, context)
    what = "the width of a slice" if node.counts_up else "a bit number of a slice"
    high = constant_int(node.high, scope, what, context)
    low = constant_int(node.low, scope, "a bit number of a slice", context)
    if base is t.UNKNOWN or high is None or low is None:
        return t.UNKNOWN
    if node.counts_up:
        if high < 1:
            context.error(node.high, f"a slice has one bit or more, not {high}")
            return t.UNKNOWN
        high += low - 1
    stored_type = base if base is t.INTEGER else t.representation(base)
    if not (stored_type is t.INTEGER or isinstance(stored_type, (t.Bit, t.Int))):
        context.error(node, f"only numbers have slices, this is {base}")
        return t.UNKNOWN
    width = stored_type.width if isinstance(stored_type, (t.Bit, t.Int)) else t.MAX_WIDTH_BITS
    if not 0 <= low <= high < width:
        hint = "the higher bit comes first" if high < low else ""
        context.error(node, f"slice [{high}:{low}] is outside the bits of {base}", hint=hint)
        return t.UNKNOWN
    node.high_bit, node.low_bit = high, low
    if node.base.value is not None:
        node.value = slice_bits(stored(node.base.value), high, low)
    return t.bit(high - low + 1)


# ---- Aggregates ----


@type_of.register(s.ListExpression)
def _list(node: s.ListExpression, scope: Scope, context: Context) -> t.Type:
    elements = tuple(check(item, scope, context) for item in node.items)
    return t.UNKNOWN if t.UNKNOWN in elements else t.Tuple(elements)


@type_of.register(s.StructExpression)
def _struct(node: s.StructExpression, scope: Scope, context: Context) -> t.Type:
    elements = tuple(check(item, scope, context) for _, item in node.fields)
    if t.UNKNOWN in elements:
        return t.UNKNOWN
    return t.NamedFields(tuple(name for name, _ in node.fields), elements)


# ---- Assignable expressions ----


def require_writable(expression: s.Expression, what: str, context: Context) -> bool:
    """Report an expression, checked already, that is not an l-value (P4_16 1.2.5, section 6.7)."""
    if expression.type is t.UNKNOWN:
        return False
    if isinstance(expression, s.Name) and expression.symbol is not None:
        if expression.symbol.writable:
            return True
        hint = ""
        if expression.symbol.kind == "parameter":
            direction = expression.symbol.direction
            hint = "give the parameter the direction inout" if direction == "in" else "change a copy of it"
        context.error(
            expression,
            f"'{expression.name}' cannot be changed {what}",
            (expression.symbol.loc, f"it is declared here as {_described(expression.symbol)}"),
            hint,
        )
        return False
    if isinstance(expression, s.Member) and isinstance(expression.base.type, (t.Struct, t.Stack)):
        if isinstance(expression.base.type, t.Stack) and expression.name not in ("next", "last"):
            context.error(expression, f"'{expression.name}' of a stack cannot be changed")
            return False
        return require_writable(expression.base, what, context)
    if isinstance(expression, (s.Index, s.Slice)):
        return require_writable(expression.base, what, context)
    context.error(expression, f"this expression cannot be changed {what}")
    return False


def _types_with_members(scope: Scope) -> set[str]:
    """Return the enums and `error`, which may be part of expressions."""
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
