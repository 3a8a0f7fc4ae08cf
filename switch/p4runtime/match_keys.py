"""Match keys of table entries and of value set members, field by field and as a whole.

They are read from and written to P4Runtime messages, the program's own entries and the device.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from finsy.proto import p4i

from gradbed.switch.bmv2_json.model import EntryField
from gradbed.switch.device import KeyMatch
from gradbed.switch.p4runtime.status import RequestError, invalid
from gradbed.switch.p4runtime.values import (
    NumberCodec,
    Translations,
    ValueCodec,
    controller_width_bits,
    decode_unsigned,
    encode_unsigned,
    is_string,
    value_codec,
)

# ---- Fields ----


class MatchField:
    """A field of a key. There is a subclass for each match kind."""

    kind: ClassVar[str]
    needs_priority: ClassVar[bool] = False
    absent: Any = None
    required = False
    takes_names: ClassVar[bool] = False

    def __init__(
        self,
        field_id: int,
        name: str,
        width_bits: int,
        device_width_bits: int,
        values: ValueCodec | None = None,
    ) -> None:
        """Create the codec of a field; `values` is that of fields that controllers name by strings."""
        self.field_id = field_id
        self.name = name
        self.width_bits = width_bits
        self.device_width_bits = min(width_bits, device_width_bits)
        self.device_greatest = (1 << self.device_width_bits) - 1
        self.values = values or NumberCodec(self.device_width_bits)

    def decode(self, match: Any) -> Any:
        """Return the canonical value of a FieldMatch whose oneof is of this kind. Raises RequestError."""
        raise NotImplementedError

    def encode(self, value: Any, match: Any) -> None:
        """Fill the oneof of a FieldMatch. Never called for an absent value."""
        raise NotImplementedError

    def to_device(self, value: Any) -> KeyMatch:
        raise NotImplementedError

    def of_program(self, key: EntryField) -> Any:
        """Return the canonical value of this field in an entry that is part of the program."""
        raise NotImplementedError


class ExactField(MatchField):
    kind = "exact"
    required = True
    takes_names = True

    def decode(self, match: Any) -> int:
        return self.values.decode(match.exact.value)

    def encode(self, value: int, match: Any) -> None:
        match.exact.value = self.values.encode(value)

    def to_device(self, value: int) -> KeyMatch:
        return KeyMatch(value)

    def of_program(self, key: EntryField) -> int:
        return key.value


class LpmField(MatchField):
    kind = "lpm"
    absent = (0, 0)

    def decode(self, match: Any) -> tuple[int, int]:
        lpm = match.lpm
        prefix_bits: int = lpm.prefix_len
        if not 0 < prefix_bits <= self.width_bits:
            hint = " (leave the field out to match anything)" if prefix_bits == 0 else ""
            raise invalid(f"prefix length {prefix_bits} is not in 1..{self.width_bits}{hint}")
        value = decode_unsigned(lpm.value, self.device_width_bits)
        if value & ((1 << (self.width_bits - prefix_bits)) - 1):
            raise invalid("bits beyond the prefix are not zero")
        return value, prefix_bits

    def encode(self, value: tuple[int, int], match: Any) -> None:
        match.lpm.value = encode_unsigned(value[0])
        match.lpm.prefix_len = value[1]

    def to_device(self, value: tuple[int, int]) -> KeyMatch:
        narrower_bits = self.width_bits - self.device_width_bits
        return KeyMatch(value[0], prefix_bits=max(0, value[1] - narrower_bits))

    def of_program(self, key: EntryField) -> tuple[int, int]:
        if not key.prefix_bits:
            return self.absent
        return key.value, key.prefix_bits + self.width_bits - self.device_width_bits


class TernaryField(MatchField):
    kind = "ternary"
    needs_priority = True
    absent = (0, 0)

    def decode(self, match: Any) -> tuple[int, int]:
        ternary = match.ternary
        mask = decode_unsigned(ternary.mask, self.width_bits)
        value = decode_unsigned(ternary.value, self.device_width_bits)
        if mask == 0:
            raise invalid("the mask is zero (leave the field out to match anything)")
        if value & ~mask:
            raise invalid("the value has bits outside its mask")
        return value, mask

    def encode(self, value: tuple[int, int], match: Any) -> None:
        match.ternary.value = encode_unsigned(value[0])
        match.ternary.mask = encode_unsigned(value[1])

    def to_device(self, value: tuple[int, int]) -> KeyMatch:
        return KeyMatch(value[0], mask=value[1] & self.device_greatest)

    def of_program(self, key: EntryField) -> tuple[int, int]:
        assert key.mask is not None
        return key.value & key.mask, key.mask


class RangeField(MatchField):
    kind = "range"
    needs_priority = True

    def __init__(
        self,
        field_id: int,
        name: str,
        width_bits: int,
        device_width_bits: int,
        values: ValueCodec | None = None,
    ) -> None:
        super().__init__(field_id, name, width_bits, device_width_bits, values)
        self.absent = (0, (1 << width_bits) - 1)

    def decode(self, match: Any) -> tuple[int, int]:
        low = decode_unsigned(match.range.low, self.device_width_bits)
        high = decode_unsigned(match.range.high, self.width_bits)
        if low > high:
            raise invalid(f"the range is empty, {low} > {high}")
        if (low, high) == self.absent:
            raise invalid("the range holds every value (leave the field out to match anything)")
        return low, high

    def encode(self, value: tuple[int, int], match: Any) -> None:
        match.range.low = encode_unsigned(value[0])
        match.range.high = encode_unsigned(value[1])

    def to_device(self, value: tuple[int, int]) -> KeyMatch:
        return KeyMatch(value[0], high=min(value[1], self.device_greatest))

    def of_program(self, key: EntryField) -> tuple[int, int]:
        assert key.high is not None
        everything: tuple[int, int] = self.absent
        return everything if (key.value, key.high) == (0, self.device_greatest) else (key.value, key.high)


class OptionalField(MatchField):
    kind = "optional"
    needs_priority = True
    takes_names = True

    def decode(self, match: Any) -> int:
        return self.values.decode(match.optional.value)

    def encode(self, value: int, match: Any) -> None:
        match.optional.value = self.values.encode(value)

    def to_device(self, value: int | None) -> KeyMatch:
        return KeyMatch(0, mask=0) if value is None else KeyMatch(value, mask=self.device_greatest)

    def of_program(self, key: EntryField) -> int | None:
        # BMv2 has no optional match: such a field is ternary there, with all bits of the mask set or none.
        return None if key.mask == 0 else key.value


KINDS: dict[int, type[MatchField]] = {
    p4i.MatchField.EXACT: ExactField,
    p4i.MatchField.LPM: LpmField,
    p4i.MatchField.TERNARY: TernaryField,
    p4i.MatchField.RANGE: RangeField,
    p4i.MatchField.OPTIONAL: OptionalField,
}


# ---- Keys ----


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
    """Return the fields of a key from p4.config.v1.MatchField messages.

    Raises ValueError where P4Info and BMv2 JSON do not fit together.

    `keys`: match kind (None: any) and width in bits of each field in the BMv2 JSON. `where`: how the errors begin.
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
                raise ValueError(f"{what}: the BMv2 JSON has no width for the field")
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
        """Create the codec of these fields; `where` is how errors begin."""
        self.fields = list(fields)
        self.needs_priority = any(field.needs_priority for field in fields)
        self._where = where
        self._by_id = {field.field_id: (i, field) for i, field in enumerate(fields)}
        self._absent = [field.absent for field in fields]
        self._required = [i for i, field in enumerate(fields) if field.required]

    def decode(self, matches: Iterable[Any]) -> Key:
        """Return the canonical key of FieldMatch messages. Raises RequestError."""
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
