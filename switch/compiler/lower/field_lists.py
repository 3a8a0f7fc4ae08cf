"""Field lists: what a copy of a packet keeps, by @field_list(N, ...) of fields and of structs, or field by field."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gradbed.switch.compiler import ir
from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler import types as t
from gradbed.switch.compiler.ir.places import StructValue
from gradbed.switch.compiler.symbols import Scope

_LITERAL = re.compile(r"(?:\d+w)?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|\d[\d_]*)")


class FieldLists:
    """Their numbers in BMv2 JSON."""

    def __init__(self) -> None:
        self._annotated: dict[int, int] = {}
        self._others: dict[int, list[ir.FieldRef]] = {}

    def annotated(self, index: int) -> int:
        """The number of the fields annotated @field_list(index)."""
        return self._annotated.setdefault(index, self._next())

    def add(self, fields: list[ir.FieldRef]) -> int:
        """The number of a list of just these fields."""
        number = self._next()
        self._others[number] = fields
        return number

    def empty(self) -> int:
        """The number of a list without fields: BMv2 looks every list up that an action names."""
        known = next((number for number, fields in self._others.items() if not fields), None)
        return self.add([]) if known is None else known

    def _next(self) -> int:
        return len(self._annotated) + len(self._others) + 1

    def all(self, metadata: StructValue | None, scope: Scope) -> list[tuple[int, str, list[ir.FieldRef]]]:
        """(number, name, fields). metadata: where annotated fields are. scope: of the names in annotations."""
        annotated = [
            (number, f"field_list{index}", list(_fields(metadata, index, scope, False)) if metadata else [])
            for index, number in self._annotated.items()
        ]
        others = [(number, f"kept_fields{number}", fields) for number, fields in self._others.items()]
        return sorted([*annotated, *others], key=lambda item: item[0])


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
