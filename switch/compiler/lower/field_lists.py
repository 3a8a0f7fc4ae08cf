"""Which metadata fields are in a list: @field_list(N, ...), of fields and of structs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from switch.compiler import syntax as s
from switch.compiler import types as t
from switch.compiler.lower import ir
from switch.compiler.lower.places import StructValue
from switch.compiler.symbols import Scope

_LITERAL = re.compile(r"(?:\d+w)?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|\d[\d_]*)")


def listed_fields(metadata: StructValue | None, index: int, scope: Scope) -> list[ir.FieldRef]:
    """The fields that are annotated with this index, or that are inside a struct that is."""
    return list(_fields(metadata, index, scope, False)) if metadata is not None else []


def _fields(value: StructValue, index: int, scope: Scope, listed: bool) -> Iterator[ir.FieldRef]:
    type_ = value.type
    for name, part in value.parts.items():
        annotations = type_.annotations.get(name, []) if isinstance(type_, t.Struct) else []
        here = listed or any(index in _indices(annotation, scope) for annotation in annotations)
        if isinstance(part, StructValue):
            yield from _fields(part, index, scope, here)
        elif here and isinstance(part, ir.FieldRef):
            yield part


def _indices(annotation: s.Annotation, scope: Scope) -> set[int]:
    """Numbers, constants and members of serialisable enums, with commas between them."""
    if annotation.name != "field_list" or not annotation.body:
        return set()
    parts = "".join(annotation.body).split(",")
    return {number for part in parts if (number := _number(part, scope)) is not None}


def _number(text: str, scope: Scope) -> int | None:
    literal = _LITERAL.fullmatch(text)
    if literal:
        digits = literal[1].replace("_", "")
        return int(digits, 10 if digits.isdecimal() else 0)
    name, _, member = text.partition(".")
    symbol = scope.lookup(name)
    if symbol is None:
        return None
    if member and isinstance(symbol.type, t.Enum):
        return symbol.type.values.get(member)
    return symbol.value if isinstance(symbol.value, int) else None
