"""Match keys as a whole: of table entries and of value set members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gradbed.switch.device import KeyMatch
from gradbed.switch.p4runtime.pipeline.match_fields import KINDS, MatchField
from gradbed.switch.p4runtime.values.p4_types import controller_width_bits, is_string, value_codec
from gradbed.switch.p4runtime.values.status import RequestError, invalid
from gradbed.switch.p4runtime.values.translation import Translations

Key = tuple[Any, ...]
"""The canonical values of a key's fields, in the order of the fields."""

# What a match kind may be called in BMv2 JSON, other than by its name.
_ALSO_IN_JSON = {"optional": ("ternary",)}


def match_fields(
    described_fields: Sequence[Any],
    keys: Sequence[tuple[str | None, int | None]],
    where: str,
    type_info: Any,
    translations: Translations,
) -> list[MatchField]:
    """The fields of a key from p4.config.v1.MatchField messages.

    `keys`: match kind (None: any) and width in bits of each in the BMv2 JSON. `where` begins the errors.
    Raises ValueError where P4Info and BMv2 JSON do not fit together.
    """
    if len(keys) != len(described_fields):
        raise ValueError(
            f"{where} has {len(described_fields)} key fields in the P4Info, {len(keys)} in the BMv2 JSON"
        )
    fields = []
    for described, (json_kind, json_width_bits) in zip(described_fields, keys, strict=True):
        what = f"{where}, field {described.name!r}"
        kind = KINDS.get(described.match_type) if described.WhichOneof("match") == "match_type" else None
        if kind is None:
            raise ValueError(f"{what}: this match kind is not supported")
        if json_kind not in (None, kind.kind, *_ALSO_IN_JSON.get(kind.kind, ())):
            raise ValueError(f"{what}: match kind is {kind.kind} in the P4Info, {json_kind} in the BMv2 JSON")
        if is_string(described, type_info):
            if not kind.takes_names:
                raise ValueError(f"{what}: a type that is named by strings can be matched exact or optional only")
            if json_width_bits is None:
                raise ValueError(f"{what}: the BMv2 JSON does not tell the width of the field")
            values = value_codec(described, type_info, json_width_bits, translations)
            fields.append(kind(described.id, described.name, json_width_bits, json_width_bits, values))
            continue
        # P4Info has no width for keys of type error.
        width_bits = controller_width_bits(described, type_info, json_width_bits)
        fields.append(kind(described.id, described.name, width_bits, json_width_bits or width_bits))
    return fields


class KeyCodec:
    """A key as a whole: fields by id, in any order, left out where they match anything."""

    def __init__(self, fields: Sequence[MatchField], where: str) -> None:
        """`where` begins the errors."""
        self.fields = list(fields)
        self.needs_priority = any(field.needs_priority for field in fields)
        self._where = where
        self._by_id = {field.field_id: (i, field) for i, field in enumerate(fields)}
        self._absent = [field.absent for field in fields]
        self._required = [i for i, field in enumerate(fields) if field.required]

    def decode(self, matches: Iterable[Any]) -> Key:
        """Canonical key from FieldMatch messages. Raises RequestError."""
        values = self._absent.copy()
        seen = 0
        for match in matches:
            known = self._by_id.get(match.field_id)
            if known is None:
                raise invalid(f"{self._where} has no match field {match.field_id}")
            index, field = known
            if seen >> index & 1:
                raise invalid(f"{self._where}, field {field.name}: given twice")
            seen |= 1 << index
            kind = match.WhichOneof("field_match_type")
            if kind != field.kind:
                raise invalid(f"{self._where}, field {field.name}: match kind is {field.kind}, got {kind or 'none'}")
            try:
                values[index] = field.decode(match)
            except RequestError as error:
                raise RequestError(error.code, f"{self._where}, field {field.name}: {error.message}") from None
        for index in self._required:
            if not seen >> index & 1:
                raise invalid(f"{self._where}, field {self.fields[index].name}: an exact field cannot be left out")
        return tuple(values)

    def encode(self, key: Key, matches: Any) -> None:
        """Add the FieldMatch messages of a key to a repeated field."""
        for field, value in zip(self.fields, key, strict=True):
            if field.required or value != field.absent:
                field.encode(value, matches.add(field_id=field.field_id))

    def to_device(self, key: Key) -> list[KeyMatch]:
        return [field.to_device(value) for field, value in zip(self.fields, key, strict=True)]
