"""Which types convert into which, by themselves or by a cast, and inference of type arguments."""

from __future__ import annotations

from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.symbols import Applicable, ExternInstanceType, Signature, substitute


def castable(source: t.Type, target: t.Type, constant: bool) -> bool:
    """Return whether `(target) expression` is allowed. `constant`: the value is known at compile time."""
    if source == target or t.UNKNOWN in (source, target):
        return True
    if isinstance(source, t.NewType) and _unwrapped(source) == _unwrapped(target):
        return True
    if isinstance(target, t.NewType):
        return castable(source, target.underlying, constant)
    if isinstance(source, t.NewType):
        return castable(source.underlying, target, constant)
    if isinstance(source, t.Enum) and source.underlying is not None:
        return castable(source.underlying, target, constant)
    if isinstance(target, t.Enum) and target.underlying is not None:
        return castable(source, target.underlying, constant)
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
    """Bind the variables of `pattern` so that it becomes `actual`; False if they cannot be the same.

    A variable bound to `int` by a literal is bound anew by a type of fixed width.
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
    """Match a parser or control against the type that a package wants."""
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
