"""The headers and metadata of a packet as the records of one stage have them, and what a change of words means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradbed.switch.bmv2_json import expressions as ex
from gradbed.switch.bmv2_json.model import FieldType, ProgramModel
from gradbed.switch.codegen.layout import REQUEST_FIELDS, STANDARD_FIELDS, Layout
from gradbed.switch.insight.recorder import REQUEST_WORDS, STANDARD_WORDS, Changes

_PHV = STANDARD_WORDS + REQUEST_WORDS

Value = int | bytes
"""Of a field; bytes of one of variable length."""


@dataclass(frozen=True)
class FieldChange:
    name: str
    width: int
    old: Value
    new: Value


@dataclass(frozen=True)
class ValidityChange:
    """A header that appears or goes."""

    header: str
    valid: bool


@dataclass(frozen=True)
class Request:
    """A request of a control: "clone", "resubmit", "recirculate" or "truncate"."""

    request: str
    argument: int | None
    """Session or length."""


Change = FieldChange | ValidityChange | Request


class Places:
    """The meaning of each word of a program's packets, computed once for each program."""

    def __init__(self, model: ProgramModel, layout: Layout) -> None:
        self.model = model
        self.layout = layout
        self.validity = {word: header for header, word in layout.validity.items()}
        self.fields: dict[int, tuple[str, int]] = {}
        self.first_words: dict[tuple[str, int], int] = {}
        for name, first in layout.first.items():
            kind = model.headers[name].type
            for index, (field, offset) in enumerate(zip(kind.fields, kind.offsets, strict=True)):
                self.first_words[name, index] = first + offset
                for word in range(first + offset, first + offset + field.words):
                    self.fields[word] = name, index
        self.standard_of = {
            (header, index): member
            for header in layout.first
            for index in range(len(model.headers[header].type.fields))
            if (member := layout.standard(ex.FieldReference(ex.NamedHeader(header), index)))
        }
        self.standard_widths = {
            member: model.headers[header].type.fields[index].width
            for (header, index), member in self.standard_of.items()
        }

    def field_type(self, header: str, index: int) -> FieldType:
        return self.model.headers[header].type.fields[index]

    def field_name(self, header: str, index: int) -> str:
        """Return a field's name as in the source: locals and user metadata without the compiler's `scalars`
        around."""
        member = self.standard_of.get((header, index))
        if member:
            return f"standard_metadata.{member}"
        name = self.field_type(header, index).name
        return name if header == "scalars" else f"{header}.{name}"


class PacketState:
    """Words of one packet; `update` brings it from one record to the next."""

    def __init__(self, places: Places, words: Sequence[int]) -> None:
        self.places = places
        self._words = list(words)

    def standard(self, name: str) -> int:
        return self._words[STANDARD_FIELDS.index(name)]

    def request(self, name: str) -> int:
        return self._words[STANDARD_WORDS + REQUEST_FIELDS.index(name)]

    def is_valid(self, header: str) -> bool:
        word = self.places.layout.validity.get(header)
        return word is None or self._words[_PHV + word] != 0

    def field(self, header: str, index: int) -> Value:
        member = self.places.standard_of.get((header, index))
        if member:
            return self.standard(member)
        first = _PHV + self.places.first_words[header, index]
        kind = self.places.field_type(header, index)
        words = self._words[first : first + kind.words]
        if kind.variable:
            return b"".join(word.to_bytes(8, "little") for word in words[1:])[: words[0] // 8]
        number = sum(word << 64 * i for i, word in enumerate(words))
        return number - (1 << kind.width) if kind.signed and kind.width and number >> (kind.width - 1) else number

    def element(self, stack: str, index: int | None) -> str | None:
        """Return the header that an element of a stack is; index None: the last one that was extracted or pushed."""
        elements = self.places.model.stacks[stack].elements
        if index is None:
            index = self._words[_PHV + self.places.layout.stacks[stack].counter] - 1
        return elements[index] if 0 <= index < len(elements) else None

    def update(self, changes: Changes) -> list[Change]:
        """Apply changed words; what that means, headers first, fields in their order."""
        old = dict.fromkeys((place for place, _ in changes), 0)
        before = PacketState(self.places, self._words)
        for place, word in changes:
            self._words[place] = word
        appeared: list[Change] = []
        fields: list[Change] = []
        requests: set[str] = set()
        seen: set[tuple[str, int]] = set()
        appearing = {self.places.validity[p - _PHV] for p in old if p - _PHV in self.places.validity}
        for place in sorted(old):
            if place < STANDARD_WORDS:
                fields.append(self._standard_change(before, STANDARD_FIELDS[place]))
            elif place < _PHV:
                requests.add(REQUEST_FIELDS[place - STANDARD_WORDS].split("_")[0])
            elif place - _PHV in self.places.validity:
                header = self.places.validity[place - _PHV]
                appeared.append(ValidityChange(header, self.is_valid(header)))
            elif place - _PHV in self.places.fields:
                key = self.places.fields[place - _PHV]
                # Fields of a header that has just been made valid or invalid are reported with it, if at all.
                hidden = key[0] in appearing and not self.is_valid(key[0])
                if key not in seen and not hidden:
                    seen.add(key)
                    fields.append(self._field_change(before, *key))
        return [*appeared, *fields, *(self._request(kind) for kind in sorted(requests))]

    def _standard_change(self, before: PacketState, name: str) -> FieldChange:
        width = self.places.standard_widths.get(name, 64)
        return FieldChange(f"standard_metadata.{name}", width, before.standard(name), self.standard(name))

    def _field_change(self, before: PacketState, header: str, index: int) -> FieldChange:
        name, width = self.places.field_name(header, index), self.places.field_type(header, index).width
        return FieldChange(name, width, before.field(header, index), self.field(header, index))

    def _request(self, kind: str) -> Request:
        argument = {"clone": "clone_session", "truncate": "truncate_length_bytes"}.get(kind)
        return Request(kind, self.request(argument) if argument else None)

    def value(self, expression: Any) -> tuple[str, int, Value] | None:
        """Name, width and value of a field; None where it is no field of a header that is known now."""
        if not isinstance(expression, ex.FieldReference):
            return None
        header = self._header(expression.header)
        if header is None:
            return None
        kind = self.places.field_type(header, expression.index)
        return self.places.field_name(header, expression.index), kind.width, self.field(header, expression.index)

    def _header(self, reference: ex.HeaderReference) -> str | None:
        if isinstance(reference, ex.NamedHeader):
            return reference.name
        if isinstance(reference, ex.StackElement):
            index = reference.index
            if index is not None and not isinstance(index, ex.Constant):
                return None
            return self.element(reference.stack, index.value if index is not None else None)
        return None
