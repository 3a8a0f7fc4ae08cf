"""Conversions of types, implicit and by casts, unification for type arguments, and hints for what does not fit."""

from __future__ import annotations

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.checker.context import Context, check
from gradbed.switch.compiler.source import SourceManager
from gradbed.switch.compiler.symbols import Applicable, ExternInstanceType, Scope, Signature, substitute
from gradbed.switch.compiler.values import Constant, Symbolic, wrap

# ---- Implicit conversions ----


def check_as(expression: s.Expression, scope: Scope, target: t.Type, context: Context) -> s.Expression:
    """Check an expression and convert it to a type."""
    check(expression, scope, context)
    return coerce(expression, target, context)


def coerce(expression: s.Expression, target: t.Type, context: Context) -> s.Expression:
    """Convert an expression to `target` implicitly (P4_16 1.2.5, section 8.11.2); report if that is impossible."""
    source = expression.type
    assert source is not None
    if source == target or source is t.UNKNOWN or target is t.UNKNOWN:
        return expression
    converted = _try_coerce(expression, source, target, context)
    if converted is None:
        hint = conversion_hint(context.reporter.sources, expression, source, target)
        hint = hint or block_hint(target, source)
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
    """Wrap an expression in a conversion."""
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


def as_underlying(expression: s.Expression, context: Context) -> s.Expression:
    """Convert a serializable enum to its number; leave anything else as it is."""
    if isinstance(expression.type, t.Enum) and expression.type.underlying is not None:
        return coerce(expression, expression.type.underlying, context)
    return expression


def is_coercible(expression: s.Expression, target: t.Type) -> bool:
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
    """Return whether an integer literal can have this type: a number with a width, or a `type` made of one."""
    while isinstance(type_, t.NewType):
        type_ = type_.underlying
    return isinstance(type_, (t.Bit, t.Int))


def _is_header_like(type_: t.Type) -> bool:
    return isinstance(type_, t.Struct) and type_.kind != "struct"


# ---- Casts and unification ----


def is_castable(source: t.Type, target: t.Type, constant: bool) -> bool:
    """Return whether `(target) expression` is legal (P4_16 1.2.5, section 8.11.1). `constant`: its value is known."""
    if source == target or t.UNKNOWN in (source, target):
        return True
    if isinstance(source, t.NewType) and _unwrapped(source) == _unwrapped(target):
        return True
    if isinstance(target, t.NewType):
        return is_castable(source, target.underlying, constant)
    if isinstance(source, t.NewType):
        return is_castable(source.underlying, target, constant)
    if isinstance(source, t.Enum) and source.underlying is not None:
        return is_castable(source.underlying, target, constant)
    if isinstance(target, t.Enum) and target.underlying is not None:
        return is_castable(source, target.underlying, constant)
    if source is t.INTEGER:
        return isinstance(target, (t.Bit, t.Int)) or target is t.BOOL
    if target is t.INTEGER:
        return constant and isinstance(source, (t.Bit, t.Int))
    if source is t.BOOL:
        return target == t.bit(1)
    if target is t.BOOL:
        return source == t.bit(1)
    if isinstance(source, (t.Bit, t.Int)) and isinstance(target, (t.Bit, t.Int)):
        return type(source) is type(target) or source.width == target.width
    return False


def _unwrapped(type_: t.Type) -> t.Type:
    while isinstance(type_, t.NewType):
        type_ = type_.underlying
    return type_


def unify(pattern: t.Type, actual: t.Type, bindings: dict[t.Variable, t.Type]) -> bool:
    """Bind the variables of `pattern` so that it becomes `actual`; return False if that is impossible.

    A type of fixed width replaces `int`, which a literal has bound to a variable before.
    """
    if isinstance(pattern, t.Variable):
        if actual is t.UNKNOWN or actual is t.ANY:
            return True
        bound = bindings.get(pattern)
        if bound is None or bound == actual:
            bindings[pattern] = actual
            return True
        if bound is t.INTEGER and isinstance(t.representation(actual), (t.Bit, t.Int)):
            bindings[pattern] = actual
            return True
        if isinstance(bound, t.Enum) and bound.underlying == actual:
            bindings[pattern] = actual
            return True
        if isinstance(bound, (t.Struct, t.Tuple, t.Stack)) and isinstance(actual, (t.Tuple, t.NamedFields)):
            return True  # a list for a type that was written out
        return actual is t.INTEGER and isinstance(t.representation(bound), (t.Bit, t.Int))
    if isinstance(pattern, t.Tuple) and isinstance(actual, t.Tuple):
        return len(pattern.elements) == len(actual.elements) and all(
            unify(one, other, bindings) for one, other in zip(pattern.elements, actual.elements, strict=True)
        )
    if isinstance(pattern, t.Stack) and isinstance(actual, t.Stack):
        return pattern.size == actual.size and unify(pattern.element, actual.element, bindings)
    if isinstance(pattern, ExternInstanceType) and isinstance(actual, ExternInstanceType):
        return pattern.klass is actual.klass and all(
            unify(one, other, bindings) for one, other in zip(pattern.arguments, actual.arguments, strict=False)
        )
    if isinstance(pattern, Applicable) and isinstance(actual, Applicable):
        return unify_signatures(pattern, actual, bindings)
    return True  # what remains is compared after substitution, by coerce()


def unify_signatures(pattern: Applicable, actual: Applicable, bindings: dict[t.Variable, t.Type]) -> bool:
    """Match a parser or control with the type that a package wants."""
    wanted: Signature = pattern.signature
    given: Signature = actual.signature
    if type(wanted.node) is not type(given.node) or len(wanted.parameters) != len(given.parameters):
        return False
    inner = dict(zip(wanted.variables, pattern.arguments, strict=False))
    for one, other in zip(wanted.parameters, given.parameters, strict=True):
        if one.direction != other.direction:
            return False
        expected = substitute(one.type, inner)
        if not unify(expected, other.type, bindings):
            return False
        if substitute(expected, bindings) != other.type:
            return False
    return True


# ---- Hints ----


MAX_SHOWN = 40


def source_text(sources: SourceManager, node: s.Node) -> str:
    """Return a node as written, or "..." if that is long or comes from a macro."""
    if sources.is_expanded(node.loc) or sources.is_expanded(node.end):
        return "..."
    source, start = sources.file_at(node.loc)
    other, end = sources.file_at(node.end)
    text = source.text[start:end]
    return text if source is other and 0 < len(text) <= MAX_SHOWN and "\n" not in text else "..."


def conversion_hint(sources: SourceManager, node: s.Expression, source: t.Type, target: t.Type) -> str:
    """Return how to make a value of type `source` one of type `target`."""
    text = source_text(sources, node)
    if target is t.BOOL:
        if isinstance(source, t.Struct) and source.kind != "struct":
            return f"to ask whether a header is valid, write {text}.isValid()"
        if isinstance(source, (t.Bit, t.Int)) or source is t.INTEGER:
            return f"compare it, as in {text} != 0"
        return ""
    if source is t.BOOL and isinstance(target, t.Bit):
        return f"cast it: (bit<1>)({text})"
    if is_castable(source, target, node.value is not None):
        operand = text if isinstance(node, (s.Name, s.Member, s.Call, s.Index, s.Slice)) else f"({text})"
        return f"cast it: ({target}){operand}"
    return ""


def operand_hint(sources: SourceManager, node: s.Binary) -> str:
    """Return a hint for two operands with types that do not fit each other."""
    left, right = node.left.type, node.right.type
    if t.BOOL in (left, right):
        for part in s.walk([node.left, node.right]):
            if isinstance(part, s.Binary) and part.operator in ("&", "|"):
                return f"'and' and 'or' are written '&&' and '||'; '{part.operator}' binds tighter than a comparison"
    if isinstance(left, (t.Bit, t.Int)) and isinstance(right, (t.Bit, t.Int)):
        narrow, wide = (node.left, right) if left.width < right.width else (node.right, left)
        assert narrow.type is not None
        return conversion_hint(sources, narrow, narrow.type, wide)
    return ""


def block_hint(wanted: t.Type, given: t.Type | None) -> str:
    """Return the difference between a parser or control and what the architecture wants."""
    if not isinstance(wanted, Applicable) or not isinstance(given, Applicable):
        return ""
    name = given.signature.name
    if type(wanted.signature.node) is not type(given.signature.node):
        return "V1Switch takes parser, verify checksum, ingress, egress, compute checksum, deparser, in this order"
    expected, actual = wanted.signature.parameters, given.signature.parameters
    if len(expected) != len(actual):
        return f"{wanted} has {len(expected)} parameters, but {name} has {len(actual)}"
    for one, other in zip(expected, actual, strict=True):
        if one.direction != other.direction:
            return f"parameter '{other.name}' of {name} must be {one.direction or 'without a direction'}"
        if not isinstance(one.type, t.Variable) and one.type != other.type:
            return f"parameter '{other.name}' of {name} must be of type {one.type}, not {other.type}"
    return f"the headers and the metadata of {name} must have the same types as in the other blocks"
