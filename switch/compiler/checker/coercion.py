"""Implicit conversions: literals to widths, lists to structs, enums to the numbers they are."""

from __future__ import annotations

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.checker import hints
from switch.compiler.diagnostics import Reporter
from switch.compiler.values import Constant, Symbolic, wrap


class Coercion:
    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter

    def _error(self, node: s.Node, message: str, hint: str = "") -> None:
        self._reporter.error(node.loc, message, node.end, hint=hint)

    def coerce(self, expression: s.Expression, target: t.Type) -> s.Expression:
        """The expression as a value of `target`, by the implicit conversions; reports if there is none."""
        source = expression.type
        assert source is not None
        if source == target or source is t.UNKNOWN or target is t.UNKNOWN:
            return expression
        converted = self._try_coerce(expression, source, target)
        if converted is None:
            hint = hints.of_conversion(self._reporter.sources, expression, source, target)
            hint = hint or hints.of_block(target, source)
            self._error(expression, f"expected {target}, but this is {source}", hint)
            expression.type = t.UNKNOWN
            return expression
        return converted

    def _try_coerce(self, expression: s.Expression, source: t.Type, target: t.Type) -> s.Expression | None:
        if source is t.INTEGER and _is_numeric(target):
            return self._literal_to_width(expression, target)
        if isinstance(source, t.Enum) and source.underlying is not None:
            if source.underlying == target:
                value = expression.value
                return self.converted(expression, target, value.number if isinstance(value, Symbolic) else value)
            return None
        if source is t.DEFAULT_VALUE or (source is t.INVALID_HEADER and _is_header_like(target)):
            return self.converted(expression, target, None)
        if isinstance(expression, s.ListExpression):
            return self._list_as(expression, target)
        if isinstance(expression, s.StructExpression):
            return self._struct_as(expression, target)
        if isinstance(expression, s.Conditional) and isinstance(source, t.Tuple):
            expression.if_true = self.coerce(expression.if_true, target)
            expression.if_false = self.coerce(expression.if_false, target)
            expression.type = target
            return expression
        if not (isinstance(source, t.Tuple) and isinstance(target, t.Struct) and target.kind == "struct"):
            return None
        same = source.elements == tuple(target.fields.values())
        return self.converted(expression, target, None) if same else None

    def converted(self, expression: s.Expression, target: t.Type, value: Constant | None) -> s.Expression:
        result = s.Convert(expression.loc, expression.end, expression)
        result.type = target
        result.value = value
        return result

    def _literal_to_width(self, expression: s.Expression, target: t.Type) -> s.Expression:
        value = expression.value
        stored = t.representation(target)
        assert isinstance(stored, (t.Bit, t.Int))
        if not isinstance(value, int):
            # A constructor parameter of type int: known when the program is put together.
            return self.converted(expression, target, None)
        wrapped = wrap(value, stored)
        fits = wrapped == value or (isinstance(stored, t.Int) and value == wrapped & ((1 << stored.width) - 1))
        if not fits:
            self._reporter.warning(
                expression.loc,
                f"{value} does not fit into {target}, it becomes {wrapped}",
                expression.end,
                category="overflow",
            )
        return self.converted(expression, target, wrapped)

    def _list_as(self, expression: s.ListExpression, target: t.Type) -> s.Expression | None:
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
            self._error(expression, f"{target} has {len(wanted)} parts, but {given} values are given")
            expression.type = t.UNKNOWN
            return expression
        expression.items = [self.coerce(item, type_) for item, type_ in zip(expression.items, wanted, strict=False)]
        expression.type = target
        return expression

    def _struct_as(self, expression: s.StructExpression, target: t.Type) -> s.Expression | None:
        if not (isinstance(target, t.Struct) and not target.is_union):
            return None
        seen: set[str] = set()
        fields: list[tuple[str, s.Expression]] = []
        for name, item in expression.fields:
            if name not in target.fields:
                self._error(item, f"{target.kind} '{target}' has no field '{name}'")
                continue
            if name in seen:
                self._error(item, f"field '{name}' is given twice")
            seen.add(name)
            fields.append((name, self.coerce(item, target.fields[name])))
        missing = [name for name in target.fields if name not in seen]
        if missing and not expression.with_defaults:
            self._error(expression, f"no value is given for field '{missing[0]}'")
        expression.fields = fields
        expression.type = target
        return expression

    def plain(self, expression: s.Expression) -> s.Expression:
        """A serialisable enum as the number that it is; anything else as it was."""
        if isinstance(expression.type, t.Enum) and expression.type.underlying is not None:
            return self.coerce(expression, expression.type.underlying)
        return expression

    def converts(self, expression: s.Expression, target: t.Type) -> bool:
        """Whether coerce() would succeed where the type of `expression` leaves a choice."""
        source = expression.type
        if source is t.INTEGER:
            return _is_numeric(target)
        if source is t.INVALID_HEADER:
            return _is_header_like(target)
        if isinstance(expression, (s.ListExpression, s.StructExpression)):
            return isinstance(target, (t.Struct, t.Tuple, t.Stack, t.ListOf))
        return False


def _is_numeric(type_: t.Type) -> bool:
    """Whether an integer literal can be of this type: a number with a width, or a `type` made of one."""
    while isinstance(type_, t.NewType):
        type_ = type_.underlying
    return isinstance(type_, (t.Bit, t.Int))


def _is_header_like(type_: t.Type) -> bool:
    return isinstance(type_, t.Struct) and type_.kind != "struct"
