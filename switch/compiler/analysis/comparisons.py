"""Comparisons with a constant that have the same result for every packet."""

from __future__ import annotations

from collections.abc import Sequence

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.source import SourceManager
from gradbed.switch.compiler.values import limits

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def warn_of_constant_comparisons(declarations: Sequence[s.Declaration], reporter: Reporter) -> None:
    for declaration in declarations:
        for node in s.walk(declaration):
            if not isinstance(node, s.Binary) or node.operator not in _MIRRORED:
                continue
            if not _is_written_out(node, reporter.sources):
                continue  # a macro serves widths and values that differ
            result = _result(node)
            if result is not None:
                message = f"this comparison is always {str(result).lower()}"
                reporter.warning(node.loc, message, node.end, category="mismatch")


def _is_written_out(node: s.Binary, sources: SourceManager) -> bool:
    """Return whether the operator stands between its operands in the file, none of them from a macro."""
    if any(map(sources.is_expanded, (node.loc, node.left.end, node.right.loc, node.end))):
        return False
    source, start = sources.file_at(node.left.end)
    return node.operator in source.text[start : sources.file_at(node.right.loc)[1]]


def _result(node: s.Binary) -> bool | None:
    """Return what the comparison gives if that follows from the range of its variable side alone."""
    operator, variable, constant = node.operator, node.left, node.right
    if _number(variable) is not None:
        operator, variable, constant = _MIRRORED[operator], constant, variable
    number = _number(constant)
    if number is None or _number(variable) is not None:
        return None
    values = _range(variable)
    if values is None:
        return None
    least, greatest = values
    if operator in ("==", "!="):
        return None if least <= number <= greatest else operator == "!="
    always, never = {
        "<": (greatest < number, least >= number),
        "<=": (greatest <= number, least > number),
        ">": (least > number, greatest <= number),
        ">=": (least >= number, greatest < number),
    }[operator]
    return True if always else False if never else None


def _number(node: s.Expression) -> int | None:
    value = node.value
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _range(node: s.Expression) -> tuple[int, int] | None:
    """Least and greatest value that an expression can have."""
    type_ = node.type
    if not isinstance(type_, (t.Bit, t.Int)):
        return None
    if isinstance(node, (s.Cast, s.Convert)) and isinstance(type_, t.Bit):
        inner = node.operand.type
        if isinstance(inner, t.Bit) and inner.width <= type_.width:
            return _range(node.operand)
    if isinstance(type_, t.Bit) and isinstance(node, s.Binary) and node.operator == "&":
        masks = [mask for mask in (_number(node.left), _number(node.right)) if mask is not None]
        if masks:
            return 0, min(masks)
    return limits(type_)
