"""Walking over the tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from gradbed.switch.compiler.nodes import Node
from gradbed.switch.compiler.symbols import ParameterType
from gradbed.switch.compiler.syntax.expressions import CallTarget


def walk(node: object) -> Iterator[Node]:
    """The node and everything below it that the parser read, in no particular order."""
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, (list, tuple)):
            pending.extend(current)
        elif isinstance(current, Node):
            yield current
            if not isinstance(current, (CallTarget, ParameterType)):
                pending.extend(getattr(current, name) for name in _CHILDREN.get(type(current), ()))


def _child_fields() -> dict[type, tuple[str, ...]]:
    """Return for each kind of node the fields that hold nodes the parser read."""
    found: dict[type, tuple[str, ...]] = {}
    pending: list[type] = [Node]
    while pending:
        kind = pending.pop()
        pending.extend(kind.__subclasses__())
        found[kind] = tuple(
            item.name for item in dataclasses.fields(kind) if item.init and item.name not in ("loc", "end")
        )
    return found


_CHILDREN = _child_fields()
