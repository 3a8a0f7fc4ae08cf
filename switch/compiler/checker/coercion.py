"""Implicit conversions: literals to widths, lists to structs, enums to the numbers they are."""

from __future__ import annotations

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker import hints
from gradbed.switch.compiler.checker.context import Context, check
from gradbed.switch.compiler.symbols import Scope
from gradbed.switch.compiler.values import Constant, Symbolic, wrap


def check_as(expression: s.Expression, scope: Scope, target: t.Type, context: Context) -> s.Expression:
    """Check and convert to a type."""
    check(expression, scope, context)
    return coerce(expression, target, context)


def coerce(expression: s.Expression, target: t.Type, context: Context) -> s.Expression:
    """The expression as a value of `target`, by the implicit conversions; reports if there is none."""
    source = expression.type
    assert source is not None
    if source == target or source is t.UNKNOWN or target is t.UNKNOWN:
        return expression
    converted = _try_coerce(expression, source, target, context)
    if converted is None:
        hint = hints.of_conversion(context.reporter.sources, expression, source, target)
        hint = hint or hints.of_block(target, source)
        context.error(expression, f"expected {target}, but this is {source}", hint=hint)
        expression.type = t.UNKNOWN
        return expression
    return converted


def _try_coerce(expression: s.Expression, source: t.Type, target: t.Type, context: Context) -> s.Expression | None:
    if source is t.INTEGER and _is_numeric(target):
        return _literal_to_width(expression, target, context)
    if isinstance(source, t.Enum) and source.underlying is not None:
        if source.underlying == target:
            value = expression.value
            return converted(expression, target, value.number if isinstance(value, Symbolic) else value)
        return None
    if source is t.DEFAULT_VALUE or (source is t.INVALID_HEADER and _is_header_like(target)):
        return converted(expression, target, None)
    if isinstance(expression, s.ListExpression):
        return _list_as(expression, target, context)
    if isinstance(expression, s.StructExpression):
        return _struct_as(expression, target, context)
    if isinstance(expression, s.Conditional) and isinstance(source, t.Tuple):
        expression.if_true = coerce(expression.if_true, target, context)
        expression.if_false = coerce(expression.if_false, target, context)
        expression.type = target
        return expression
    if not (isinstance(source, t.Tuple) and isinstance(target, t.Struct) and target.kind == "struct"):
        return None
    same = source.elements == tuple(target.fields.values())
    return converted(expression, target, None) if same else None


def converted(expression: s.Expression, target: t.Type, value: Constant | None) -> s.Expression:
    result = s.Convert(expression.loc, expression.end, expression)
    result.type = target
    result.value = value
    return result


def _literal_to_width(expression: s.Expression, target: t.Type, context: Context) -> s.Expression:
    value = expression.value
    stored = t.representation(target)
    assert isinstance(stored, (t.Bit, t.Int))
    if not isinstance(value, int):
        # A constructor parameter of type int: known when the program is put together.
        return converted(expression, target, None)
    wrapped = wrap(value, stored)
    fits = wrapped == value or (isinstance(stored, t.Int) and value == wrapped & ((1 << stored.width) - 1))
    if not fits:
        context.reporter.warning(
            expression.loc,
            f"{value} does not fit into {target}, it becomes {wrapped}",
            expression.end,
            category="overflow",
        )
    return converted(expression, target, wrapped)


def _list_as(expression: s.ListExpression, target: t.Type, context: Context) -> s.Expression | None:
    if isinstance(target, t.Struct) and not target.is_union:
        wanted = list(target.fields.values())
    elif isinstance(target, t.Tuple):
        wanted = list(target.elements)
    elif isinstance(target, t.Stack):
        wanted = [target.element] * target.size
        if len(expression.items) < target.size and not expression.with_defaults:
            wanted = wanted[: len(expression.items)]
    elif isinstance(target, t.ListOf):
        wanted = [target.element] * len(expression.items)
    else:
        return None
    given = len(expression.items)
    if given > len(wanted) or (given < len(wanted) and not expression.with_defaults):
        context.error(expression, f"{target} has {len(wanted)} parts, but {given} values are given")
        expression.type = t.UNKNOWN
        return expression
    expression.items = [coerce(item, type_, context) for item, type_ in zip(expression.items, wanted, strict=False)]
    expression.type = target
    return expression


def _struct_as(expression: s.StructExpression, target: t.Type, context: Context) -> s.Expression | None:
    if not (isinstance(target, t.Struct) and not target.is_union):
        return None
    seen: set[str] = set()
    fields: list[tuple[str, s.Expression]] = []
    for name, item in expression.fields:
        if name not in target.fields:
            context.error(item, f"{target.kind} '{target}' has no field '{name}'")
            continue
        if name in seen:
            context.error(item, f"field '{name}' is given twice")
        seen.add(name)
        fields.append((name, coerce(item, target.fields[name], context)))
    missing = [name for name in target.fields if name not in seen]
    if missing and not expression.with_defaults:
        context.error(expression, f"no value is given for field '{missing[0]}'")
    expression.fields = fields
    expression.type = target
    return expression


def plain(expression: s.Expression, context: Context) -> s.Expression:
    """A serialisable enum as the number that it is; anything else as it was."""
    if isinstance(expression.type, t.Enum) and expression.type.underlying is not None:
        return coerce(expression, expression.type.underlying, context)
    return expression


def converts(expression: s.Expression, target: t.Type) -> bool:
    """Return whether coerce() would succeed where the type of `expression` leaves a choice."""
    source = expression.type
    if source is t.INTEGER:
        return _is_numeric(target)
    if source is t.INVALID_HEADER:
        return _is_header_like(target)
    if isinstance(expression, (s.ListExpression, s.StructExpression)):
        return isinstance(target, (t.Struct, t.Tuple, t.Stack, t.ListOf))
    return False


def _is_numeric(type_: t.Type) -> bool:
    """Return whether an integer literal can be of this type: a number with a width, or a `type` made of one."""
    while isinstance(type_, t.NewType):
        type_ = type_.underlying
    return isinstance(type_, (t.Bit, t.Int))


def _is_header_like(type_: t.Type) -> bool:
    return isinstance(type_, t.Struct) and type_.kind != "struct"
