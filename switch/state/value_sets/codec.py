"""Parser value sets of one program: members between messages and (value, mask) pairs.

P4Runtime specification 1.4, sections "ValueSet" and "ValueSetEntry".
"""

from __future__ import annotations

import itertools
from typing import Any

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.device import KeyMatch
from gradbed.switch.p4runtime.pipeline.keys import Key, KeyCodec, match_fields
from gradbed.switch.p4runtime.pipeline.match_fields import LpmField, MatchField, RangeField, TernaryField
from gradbed.switch.p4runtime.values.status import exhausted
from gradbed.switch.p4runtime.values.translation import Translations

# The parser tries them one after the other; a member with several ranges takes the product of their prefixes.
GREATEST_PAIR_COUNT = 4096


class ValueSetCodec:
    """One value set. `size`: members that it holds."""

    def __init__(self, value_set: Any, info: Any, program: ProgramModel, translations: Translations) -> None:
        """From a p4.config.v1.ValueSet. Raises ValueError where P4Info and BMv2 JSON do not fit together."""
        self.value_set_id: int = value_set.preamble.id
        self.name: str = value_set.preamble.name
        self.size: int = value_set.size
        if self.name not in program.value_sets:
            raise ValueError(f"value set {self.name!r} of the P4Info is not in the BMv2 JSON")
        where = f"value set {self.name}"
        width_bits = program.value_sets[self.name].width
        # P4Info has no width for what controllers name by strings; of a single field, the JSON tells it.
        alone = width_bits if len(value_set.match) == 1 else None
        keys = [(None, described.bitwidth or alone) for described in value_set.match]
        self._fields = match_fields(value_set.match, keys, where, info.type_info, translations)
        self._keys = KeyCodec(self._fields, where)
        if sum(field.device_width_bits for field in self._fields) != width_bits:
            raise ValueError(
                f"{where}: its fields do not add up to the {width_bits} bits that it has in the BMv2 JSON"
            )

    def decode(self, member: Any) -> Key:
        """Canonical key of a ValueSetMember. Raises RequestError."""
        return self._keys.decode(member.match)

    def encode(self, key: Key, member: Any) -> None:
        self._keys.encode(key, member.match)

    def device_members(self, keys: list[Key]) -> list[tuple[int, int]]:
        """(value, mask) pairs over the fields put together. Raises RESOURCE_EXHAUSTED if there are too many."""
        pairs: list[tuple[int, int]] = []
        for key in keys:
            choices = [_pairs(field, value) for field, value in zip(self._fields, key, strict=True)]
            for choice in itertools.product(*choices):
                if len(pairs) >= GREATEST_PAIR_COUNT:
                    raise exhausted(
                        f"value set {self.name}: the ranges come to more than {GREATEST_PAIR_COUNT} prefixes"
                    )
                pairs.append(self._joined(choice))
        return pairs

    def _joined(self, choice: tuple[tuple[int, int], ...]) -> tuple[int, int]:
        value = mask = 0
        for field, (field_value, field_mask) in zip(self._fields, choice, strict=True):
            value = value << field.device_width_bits | field_value
            mask = mask << field.device_width_bits | field_mask
        return value, mask


def _pairs(field: MatchField, value: Any) -> list[tuple[int, int]]:
    """(value, mask) pairs that together match what a field's canonical value does."""
    match: KeyMatch = field.to_device(value)
    full = field.device_greatest
    if isinstance(field, RangeField):
        assert match.high is not None
        return range_prefixes(match.value, match.high, field.device_width_bits)
    if isinstance(field, LpmField):
        mask = full ^ (full >> (match.prefix_bits or 0))
    elif isinstance(field, TernaryField):
        mask = match.mask or 0
    else:
        mask = full if match.mask is None else match.mask
    return [(match.value & mask, mask)]


def range_prefixes(low: int, high: int, width_bits: int) -> list[tuple[int, int]]:
    """The fewest (value, mask) prefixes that cover low..high: 2 * width_bits - 2 at most."""
    full = (1 << width_bits) - 1
    prefixes = []
    while low <= high:
        # The largest block that begins at low and ends no later than high.
        size = low & -low or 1 << width_bits
        while low + size - 1 > high:
            size >>= 1
        prefixes.append((low, full & ~(size - 1)))
        low += size
    return prefixes
