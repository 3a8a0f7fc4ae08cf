"""Parser value sets: their members in the runtime library, and as P4Runtime messages.

P4Runtime specification 1.4, sections "ValueSet" and "ValueSetEntry".
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from finsy.proto import p4r

from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.device import KeyMatch
from gradbed.switch.p4runtime.match_keys import (
    Key,
    KeyCodec,
    LpmField,
    MatchField,
    RangeField,
    TernaryField,
    match_fields,
)
from gradbed.switch.p4runtime.roles import Role
from gradbed.switch.p4runtime.status import exhausted, exists_already
from gradbed.switch.p4runtime.values import Translations
from gradbed.switch.state import abi
from gradbed.switch.state.abi import StateAccessor, SwitchRecord, check, number_of
from gradbed.switch.state.base import EntityKind, known

# ---- Members in the runtime library ----


class ValueSets(StateAccessor):
    def __init__(self, switch: SwitchRecord) -> None:
        super().__init__(switch)
        self._widths_bits = {name: value_set.width for name, value_set in switch.model.value_sets.items()}
        self._numbers = {name: i for i, name in enumerate(self._widths_bits)}

    def write(self, value_set: str, members: Sequence[tuple[int, int]]) -> None:
        """Replace the members: (value, mask) pairs over the select expression's fields put together."""
        number = number_of(self._numbers, value_set, "value set")
        width, what = self._widths_bits[value_set], f"value set {value_set}"
        values = abi.packed((abi.fits(value, width, what), width) for value, _ in members)
        masks = abi.packed((abi.fits(mask, width, what), width) for _, mask in members)
        with self._guard:
            pointer = self._contents.value_sets[number]
            check(self._library.gb_value_set_replace(pointer, len(members), values, masks), IndexError())


# ---- P4Info and BMv2 JSON: members between messages and (value, mask) pairs ----


# The parser tries them one after the other; a member with several ranges takes the product of their prefixes.
GREATEST_PAIR_COUNT = 4096


class ValueSetCodec:
    """Codec of one value set, which holds `size` members."""

    def __init__(self, value_set: Any, info: Any, program: ProgramModel, translations: Translations) -> None:
        """Read a p4.config.v1.ValueSet. Raises ValueError where P4Info and BMv2 JSON do not fit together."""
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
        """Return the canonical key of a ValueSetMember. Raises RequestError."""
        return self._keys.decode(member.match)

    def encode(self, key: Key, member: Any) -> None:
        self._keys.encode(key, member.match)

    def device_members(self, keys: list[Key]) -> list[tuple[int, int]]:
        """Return (value, mask) pairs over the fields put together.

        Raises RESOURCE_EXHAUSTED if there are too many.
        """
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
    """Return (value, mask) pairs that together match what a field's canonical value does."""
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
    """Return the fewest (value, mask) prefixes that cover low..high: 2 * width_bits - 2 at most."""
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


# ---- ValueSetEntry ----


class ValueSetEntries(EntityKind):
    oneof = "value_set_entry"

    def __init__(self, value_sets: ValueSets, codecs: Mapping[int, ValueSetCodec]) -> None:
        self._value_sets = value_sets
        self._codecs = codecs
        self._members: dict[int, list[Key]] = {value_set_id: [] for value_set_id in codecs}

    def p4_id(self, message: Any) -> int:
        value_set_id: int = message.value_set_id
        return value_set_id

    def modify(self, message: Any) -> None:
        codec = known(self._codecs, message.value_set_id, "value set")
        if len(message.members) > codec.size:
            raise exhausted(f"value set {codec.name} holds {codec.size} members, got {len(message.members)}")
        keys = [codec.decode(member) for member in message.members]
        if len(set(keys)) != len(keys):
            raise exists_already(f"value set {codec.name}: two members are the same")
        self._value_sets.write(codec.name, codec.device_members(keys))
        self._members[codec.value_set_id] = keys

    def read(self, message: Any, role: Role) -> Iterable[Any]:
        if message.value_set_id:
            wanted = [known(self._codecs, message.value_set_id, "value set")]
        else:
            wanted = list(self._codecs.values())
        found = [(codec, self._members[codec.value_set_id]) for codec in wanted if role.reads(codec.value_set_id)]
        return (_entity(*one) for one in found)

    def export(self) -> Iterator[Any]:
        for value_set_id, keys in self._members.items():
            if keys:
                entity = _entity(self._codecs[value_set_id], keys)
                yield p4r.Update(type=p4r.Update.MODIFY, entity=entity)


def _entity(codec: ValueSetCodec, keys: list[Key]) -> Any:
    entity = p4r.Entity()
    entity.value_set_entry.value_set_id = codec.value_set_id
    for key in keys:
        codec.encode(key, entity.value_set_entry.members.add())
    return entity
