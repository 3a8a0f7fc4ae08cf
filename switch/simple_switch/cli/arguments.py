"""Arguments of commands: numbers, names of a program's objects, and values as BMv2's command line writes them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from typing import Any

from finsy.proto import p4i, p4r


class CommandError(Exception):
    """An error of a command, in one line."""


def integer(text: str, what: str) -> int:
    """Return a number, decimal or hexadecimal with 0x. Raises CommandError if it is neither, or negative."""
    try:
        number = int(text, 0)
    except ValueError:
        raise CommandError(f"{what} is a number, not {text!r}") from None
    if number < 0:
        raise CommandError(f"{what} is not negative, but {number} is")
    return number


def expect(arguments: list[str], least: int, usage: str, most: int | None = None) -> None:
    """Raise CommandError unless there are that many arguments; `most` None means exactly `least`."""
    if not least <= len(arguments) <= (least if most is None else most):
        raise CommandError(f"usage: {usage}")


# ---- Objects by name, or by any end of it that only one of them has ----


class Catalogue:
    """Objects of one kind. `what` is the kind in messages."""

    def __init__(self, what: str, objects: Iterable[Any]) -> None:
        self._what = what
        self.all = sorted(objects, key=lambda item: item.preamble.name)
        self._by_end: dict[str, list[Any]] = {}
        for item in self.all:
            parts = item.preamble.name.split(".")
            for first in range(len(parts)):
                self._by_end.setdefault(".".join(parts[first:]), []).append(item)

    def find(self, name: str) -> Any:
        """Return the object of this name. Raises CommandError if there is none, or several."""
        exact = [item for item in self.all if item.preamble.name == name]
        found = exact or self._by_end.get(name, [])
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(item.preamble.name for item in found)
            raise CommandError(f"{self._what} {name!r} could be any of {names}")
        raise CommandError(f"there is no {self._what} {name!r}")

    def get(self, object_id: int) -> Any:
        """Return the object of this id; None if there is none."""
        return next((item for item in self.all if item.preamble.id == object_id), None)

    def names(self) -> list[str]:
        return [item.preamble.name for item in self.all]


class ProgramCatalogue:
    """The objects of a P4Info by name."""

    def __init__(self, p4info: Any) -> None:
        self.tables = Catalogue("table", p4info.tables)
        self.actions = Catalogue("action", p4info.actions)
        self.profiles = Catalogue("action profile", p4info.action_profiles)
        self.counters = Catalogue("counter", [*p4info.counters, *p4info.direct_counters])
        self.meters = Catalogue("meter", [*p4info.meters, *p4info.direct_meters])
        self.registers = Catalogue("register", p4info.registers)
        self.value_sets = Catalogue("parser value set", p4info.value_sets)

    def action_of(self, owner: Any, name: str) -> Any:
        """Return an action of a table or action profile. For the latter, of any table that uses it."""
        action = self.actions.find(name)
        references = getattr(owner, "action_refs", None)
        if references is None:
            references = [
                reference
                for table in self.tables.all
                if table.preamble.id in owner.table_ids
                for reference in table.action_refs
            ]
        if action.preamble.id not in {reference.id for reference in references}:
            raise CommandError(f"{owner.preamble.name} has no action {name}")
        return action


# ---- Values and match keys ----


_MATCH = p4i.MatchField
_NAMES = {
    _MATCH.EXACT: "exact",
    _MATCH.LPM: "lpm",
    _MATCH.TERNARY: "ternary",
    _MATCH.RANGE: "range",
    _MATCH.OPTIONAL: "optional",
}
WITH_PRIORITY = {_MATCH.TERNARY, _MATCH.RANGE, _MATCH.OPTIONAL}


def parse_value(text: str, width: int, what: str) -> int:
    """Return a number: also an IPv4 address of 32 bits, a MAC address of 48, an IPv6 address of 128."""
    value = None
    try:
        if width == 32 and "." in text:
            value = int(ipaddress.IPv4Address(text))
        elif width == 48 and ":" in text:
            parts = text.split(":")
            value = int("".join(f"{int(part, 16):02x}" for part in parts), 16) if len(parts) == 6 else None
        elif width == 128 and ":" in text:
            value = int(ipaddress.IPv6Address(text))
        else:
            value = integer(text, what)
    except ValueError:
        value = None
    if value is None:
        raise CommandError(f"{what}: {text!r} is not an address")
    if value >> width:
        raise CommandError(f"{what}: {text} does not fit {width} bits")
    return value


def encode(value: int) -> bytes:
    """Return the canonical byte string (P4Runtime specification, "Bytestrings")."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


def encode_text(text: str, width: int, what: str) -> bytes:
    """Return the byte string of a field or parameter; width 0 means that the controller's type is a string."""
    return text.encode() if width == 0 else encode(parse_value(text, width, what))


def digits(data: bytes, width: int) -> str:
    """Return hexadecimal digits, as many as the width takes."""
    if width == 0:
        return data.decode(errors="replace")
    return f"{int.from_bytes(data, 'big'):0{(width + 7) // 8 * 2}x}"


def with_colons(data: bytes, width: int) -> str:
    text = digits(data, width)
    return text if width == 0 else ":".join(text[i : i + 2] for i in range(0, len(text), 2))


def kind_name(field: Any) -> str:
    return _NAMES.get(field.match_type, "other")


def table_kind(table: Any) -> str:
    """Return the most general kind of match among the table's fields, as BMv2 calls the table."""
    kinds = {field.match_type for field in table.match_fields}
    for kind in (_MATCH.RANGE, _MATCH.TERNARY, _MATCH.OPTIONAL, _MATCH.LPM):
        if kind in kinds:
            return "ternary" if kind == _MATCH.OPTIONAL else _NAMES[kind]
    return "exact"


def needs_priority(table: Any) -> bool:
    return any(field.match_type in WITH_PRIORITY for field in table.match_fields)


def parse_key(table: Any, texts: Sequence[str]) -> list[Any]:
    """Return FieldMatch messages: value, prefix/length, value&&&mask, low->high.

    Fields that match anything are left out.
    """
    name = table.preamble.name
    if len(texts) != len(table.match_fields):
        raise CommandError(f"table {name} has {len(table.match_fields)} key fields, not {len(texts)}")
    parsed = (_parse_field(field, text) for field, text in zip(table.match_fields, texts, strict=True))
    return [match for match in parsed if match is not None]


def _parse_field(field: Any, text: str) -> Any:
    width, name, kind = field.bitwidth, f"field {field.name}", field.match_type
    match = p4r.FieldMatch(field_id=field.id)
    if kind == _MATCH.EXACT:
        match.exact.value = encode_text(text, width, name)
    elif kind == _MATCH.LPM:
        address, length = _two(text, "/", name, "PREFIX/LENGTH")
        bits = integer(length, f"prefix length of {name}")
        if bits > width:
            raise CommandError(f"{name}: a prefix has at most {width} bits, not {bits}")
        if bits == 0:
            return None
        mask = (1 << width) - (1 << width - bits)
        match.lpm.value, match.lpm.prefix_len = encode(parse_value(address, width, name) & mask), bits
    elif kind == _MATCH.TERNARY:
        value, mask = (parse_value(part, width, name) for part in _two(text, "&&&", name, "VALUE&&&MASK"))
        if mask == 0:
            return None
        match.ternary.value, match.ternary.mask = encode(value & mask), encode(mask)
    elif kind == _MATCH.RANGE:
        low, high = (parse_value(part, width, name) for part in _two(text, "->", name, "LOW->HIGH"))
        if low > high:
            raise CommandError(f"{name}: the range's low end {low} is above its high end {high}")
        if low == 0 and high == (1 << width) - 1:
            return None
        match.range.low, match.range.high = encode(low), encode(high)
    elif kind == _MATCH.OPTIONAL:
        value_text, separator, mask_text = text.partition("&&&")
        if separator and parse_value(mask_text, width, name) == 0:
            return None
        match.optional.value = encode_text(value_text, width, name)
    else:
        raise CommandError(f"{name} has a kind of match that this command does not know")
    return match


def _two(text: str, separator: str, name: str, form: str) -> tuple[str, str]:
    first, found, second = text.partition(separator)
    if not found:
        raise CommandError(f"{name}: write {form}, not {text!r}")
    return first.strip(), second.strip()


def show_field(field: Any, match: Any, colons: bool) -> str:
    """Return the text of one field of an entry; a `match` of None means that the entry leaves it out."""
    show = with_colons if colons else digits
    width, kind = field.bitwidth, field.match_type
    empty = b"\0"
    if kind == _MATCH.EXACT:
        return show(match.exact.value if match is not None else empty, width)
    if kind == _MATCH.LPM:
        return f"{show(match.lpm.value if match else empty, width)}/{match.lpm.prefix_len if match else 0}"
    if kind == _MATCH.RANGE:
        low, high = (match.range.low, match.range.high) if match else (empty, encode((1 << width) - 1))
        return f"{show(low, width)} -> {show(high, width)}"
    if kind == _MATCH.OPTIONAL:
        value, mask = (match.optional.value, encode((1 << width) - 1)) if match else (empty, empty)
    else:
        value, mask = (match.ternary.value, match.ternary.mask) if match else (empty, empty)
    return f"{show(value, width)} &&& {show(mask, width)}"


def show_data(data: Any) -> str:
    """Return the text of a P4Data message: a number, or the numbers of a struct, tuple or header."""
    kind = data.WhichOneof("data")
    if kind == "bitstring":
        return str(int.from_bytes(data.bitstring, "big"))
    if kind == "bool":
        return str(int(data.bool))
    if kind in ("tuple", "struct"):
        return f"<{', '.join(map(show_data, getattr(data, kind).members))}>"
    if kind == "header":
        return f"<{', '.join(str(int.from_bytes(part, 'big')) for part in data.header.bitstrings)}>"
    return str(getattr(data, kind)) if kind else ""
