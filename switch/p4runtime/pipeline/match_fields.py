"""Fields of a match key between P4Runtime messages, canonical values, the program's own entries and the device.

The canonical value of a field, the one that entries are compared and stored by, is
    exact: value  lpm: (value, prefix_bits)  ternary: (value, mask)  range: (low, high)  optional: value or None
and "don't care" is (0, 0), (0, 0), (0, greatest) and None. P4Runtime specification 1.4, section "Match Format".

A field has two widths where @p4runtime_translation gives the controller another type than the data plane: values are
then the same number in either, and have to fit in both. Where the controller's type is a string, the field is exact
or optional, and the canonical value is the data plane's number.
"""

from __future__ import annotations

from typing import Any, ClassVar

from finsy.proto import p4i

from gradbed.switch.bmv2_json.model import EntryField
from gradbed.switch.device import KeyMatch
from gradbed.switch.p4runtime.values import bytestrings
from gradbed.switch.p4runtime.values.p4_types import Number, ValueCodec
from gradbed.switch.p4runtime.values.status import invalid


class MatchField:
    """One field of a key. Subclasses: one per match kind."""

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
        """`values`: of fields that controllers name by strings."""
        self.field_id = field_id
        self.name = name
        self.width_bits = width_bits
        self.device_width_bits = min(width_bits, device_width_bits)
        self.device_greatest = (1 << self.device_width_bits) - 1
        self.values = values or Number(self.device_width_bits)

    def decode(self, match: Any) -> Any:
        """Canonical value of a FieldMatch whose oneof is of this kind. Raises RequestError."""
        raise NotImplementedError

    def encode(self, value: Any, match: Any) -> None:
        """Fill the oneof of a FieldMatch. Never called for an absent value."""
        raise NotImplementedError

    def to_device(self, value: Any) -> KeyMatch:
        raise NotImplementedError

    def of_program(self, key: EntryField) -> Any:
        """Canonical value of this field in an entry that is part of the program."""
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
        value = bytestrings.decode(lpm.value, self.device_width_bits)
        if value & ((1 << (self.width_bits - prefix_bits)) - 1):
            raise invalid("bits beyond the prefix are not zero")
        return value, prefix_bits

    def encode(self, value: tuple[int, int], match: Any) -> None:
        match.lpm.value = bytestrings.encode(value[0])
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
        mask = bytestrings.decode(ternary.mask, self.width_bits)
        value = bytestrings.decode(ternary.value, self.device_width_bits)
        if mask == 0:
            raise invalid("the mask is zero (leave the field out to match anything)")
        if value & ~mask:
            raise invalid("the value has bits outside its mask")
        return value, mask

    def encode(self, value: tuple[int, int], match: Any) -> None:
        match.ternary.value = bytestrings.encode(value[0])
        match.ternary.mask = bytestrings.encode(value[1])

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
        low = bytestrings.decode(match.range.low, self.device_width_bits)
        high = bytestrings.decode(match.range.high, self.width_bits)
        if low > high:
            raise invalid(f"the range is empty, {low} > {high}")
        if (low, high) == self.absent:
            raise invalid("the range holds every value (leave the field out to match anything)")
        return low, high

    def encode(self, value: tuple[int, int], match: Any) -> None:
        match.range.low = bytestrings.encode(value[0])
        match.range.high = bytestrings.encode(value[1])

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
