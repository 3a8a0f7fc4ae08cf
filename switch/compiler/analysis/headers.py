"""Fields of headers that nothing in the program ever makes valid.

A header is named by the struct it is a field of, whatever parameter that struct is passed by. It can become valid
where it is extracted, assigned, set valid or passed to be written, or where its whole struct is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.diagnostics import Reporter

# The struct by identity, and the name of its field.
_Header = tuple[int, str]


def warn_of_invalid_headers(declarations: Sequence[s.Declaration], reporter: Reporter) -> None:
    made: set[_Header] = set()
    whole: set[int] = set()
    reads: list[tuple[s.Member, s.Member, _Header]] = []
    places: set[int] = set()
    for declaration in declarations:
        for node in s.walk(declaration):
            for place in _written(node):
                places.update(id(part) for part in _chain(place))
                made.update(header for part in _chain(place) if (header := _header(part)) is not None)
                if isinstance(place.type, t.Struct) and not _is_passed_on(node):
                    whole.add(id(place.type.node))
            if isinstance(node, s.Member) and isinstance(node.base, s.Member):
                header = _header(node.base)
                if header is not None and node.type is not None and t.is_scalar(node.type):
                    reads.append((node, node.base, header))
    reported: set[_Header] = set()
    for member, base, header in sorted(reads, key=lambda item: item[0].loc):
        if header in made or header[0] in whole or header in reported or id(member) in places:
            continue
        reported.add(header)
        message = f"header '{base.name}' is never valid: it is never extracted, assigned or set valid"
        reporter.warning(member.loc, message, member.end, category="invalid_header")


def _header(node: s.Expression) -> _Header | None:
    """The header that `struct.header` is."""
    if not isinstance(node, s.Member):
        return None
    base, type_ = node.base.type, node.type
    if isinstance(base, t.Struct) and base.kind == "struct" and isinstance(type_, t.Struct) and type_.is_header:
        return id(base.node), node.name
    return None


def _chain(place: s.Expression) -> Iterator[s.Expression]:
    """A place and all that it is a part of."""
    current: s.Expression | None = place
    while current is not None:
        yield current
        current = current.base if isinstance(current, (s.Member, s.Index, s.Slice)) else None


def _written(node: s.Node) -> Iterator[s.Expression]:
    """The places that a node by itself may write."""
    if isinstance(node, s.Assignment):
        yield node.target
    elif isinstance(node, s.VariableDeclaration) and node.initial is not None:
        yield node.initial
    elif isinstance(node, s.Return) and node.value is not None:
        yield node.value
    elif isinstance(node, s.Call) and node.target is not None:
        if node.target.receiver is not None and node.target.name != "isValid":
            yield node.target.receiver
        for parameter, argument in zip(node.target.parameters, node.target.bound, strict=False):
            if parameter.direction in ("out", "inout") and argument is not None:
                yield argument


def _is_passed_on(node: s.Node) -> bool:
    """Return whether what is written is an argument of something whose own statements are looked at."""
    target = node.target if isinstance(node, s.Call) else None
    return target is not None and target.kind in ("apply", "apply_type", "action", "function")
