"""Values and matches as people write them: numbers, addresses, prefixes, masks, ranges."""

from __future__ import annotations

import functools
import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from gradbed.controller.entries.document import Element
from gradbed.controller.entries.variables import Variables
from gradbed.controller.planning.plan import Lpm, Match, Range, Ternary
from gradbed.controller.southbound.p4runtime.schema import FieldSchema, MatchType

_MAC = re.compile(r"[0-9a-fA-F]{2}([:-])(?:[0-9a-fA-F]{2}\1){4}[0-9a-fA-F]{2}")
_NUMBERS = re.compile(r"(\d+) *- *(\d+)")
_WORDS = {"true": 1, "false": 0}
_ANY = ("*", "any")


def parse_param(element: Element, field: FieldSchema, variables: Variables) -> int:
    """An argument of an action, or what a register keeps."""
    if element.is_list and len(element.items()) == 1:  # as p4lang/tutorials may write it
        (element,) = element.items()
    return _number(variables.filled_in(element), field, element)


def parse_match(element: Element, field: FieldSchema, variables: Variables) -> Match | None:
    """What a field has to be; None: anything.

    As text, such as 10.0.0.0/8, 0x10 &&& 0xf0, 80..443, or as a list of two: value and prefix length, value and mask,
    low and high."""
    if element.is_list:
        parts = [variables.filled_in(part) for part in element.items()]
        if len(parts) > 2 or not parts:
            raise element.error("a match is one value, or a list of two")
        pair = (parts[0], parts[1]) if len(parts) == 2 else None
        text = parts[0]
    else:
        text = variables.filled_in(element)
        pair = _pair(text, field.match_type)
    kind = field.match_type
    if pair is None and text in _ANY:
        if kind == MatchType.EXACT:
            raise element.error(f"{field.name} is matched exactly: it needs a value")
        return None
    if kind in (MatchType.EXACT, MatchType.OPTIONAL):
        if pair is not None:
            raise element.error(f"{field.name} is matched exactly: write one value")
        return _number(text, field, element)
    if kind == MatchType.LPM:
        return _prefix(text, pair, field, element)
    if kind == MatchType.RANGE:
        low, high = (_number(part, field, element) for part in pair or (text, text))
        if low > high:
            raise element.error(f"the range {text} is empty: its low end is above its high end")
        return Range(low=low, high=high)
    if kind == MatchType.TERNARY:
        return _masked(text, pair, field, element)
    raise element.error(f"{field.name} has a kind of match that entries cannot be written for")


_SEPARATORS = {
    MatchType.LPM: ("/",),
    MatchType.TERNARY: ("&&&", "/"),
    MatchType.RANGE: ("..", "->"),
    MatchType.OPTIONAL: ("/", "&&&"),
    MatchType.EXACT: ("/", "&&&", ".."),
}


def _pair(text: str, kind: int) -> tuple[str, str] | None:
    if kind == MatchType.RANGE and (numbers := _NUMBERS.fullmatch(text)):
        return numbers[1], numbers[2]
    for separator in _SEPARATORS.get(kind, ()):
        first, found, second = text.partition(separator)
        if found:
            return first.strip(), second.strip()
    return None


def _prefix(text: str, pair: tuple[str, str] | None, field: FieldSchema, element: Element) -> Lpm | None:
    value_text, length_text = pair or (text, str(field.bits))
    value = _number(value_text, field, element)
    bits = _prefix_bits(length_text, field, element)
    inside = value >> (field.bits - bits) << (field.bits - bits)
    if value != inside:
        raise element.error(f"{text} has bits beyond the first {bits}: the prefix is {_shown(inside, field)}/{bits}")
    return Lpm(value=value, prefix_bits=bits) if bits else None


def _masked(text: str, pair: tuple[str, str] | None, field: FieldSchema, element: Element) -> Ternary | None:
    every_bit = (1 << field.bits) - 1
    if pair is None:
        value, mask = _number(text, field, element), every_bit
    elif "/" in text and not element.is_list:
        value, bits = _number(pair[0], field, element), _prefix_bits(pair[1], field, element)
        mask = every_bit >> (field.bits - bits) << (field.bits - bits)
    else:
        value, mask = (_number(part, field, element) for part in pair)
    if value & ~mask:
        raise element.error(f"{text} has bits outside its mask: the value is {_shown(value & mask, field)}")
    return Ternary(value=value, mask=mask) if mask else None


def _prefix_bits(text: str, field: FieldSchema, element: Element) -> int:
    if not text.isdigit() or int(text) > field.bits:
        raise element.error(f"the prefix length {text} is no number from 0 to {field.bits}, the bits of {field.name}")
    return int(text)


def _number(text: str, field: FieldSchema, element: Element) -> int:
    if not field.bits:
        raise element.error(f"{field.name} is named by strings (@p4runtime_translation), which is not supported here")
    value = _read(text)
    if value is None:
        raise element.error(f"{field.name}: {text!r} is no number and no address")
    if value < 0 and -value <= 1 << field.bits - 1:
        value += 1 << field.bits  # two's complement, as int<N> has it
    if value < 0 or value.bit_length() > field.bits:
        raise element.error(f"{text} does not fit {field.name}, which has {field.bits} bits")
    return value


@functools.lru_cache(maxsize=1 << 16)
def _read(text: str) -> int | None:
    """The number that a text is; None: it is none. Kept, as each switch has entries for the same addresses."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _MAC.fullmatch(text):
        return int(re.sub("[:-]", "", text), 16)
    try:
        if text.count(".") == 3:
            return int(IPv4Address(text))
        if ":" in text:
            return int(IPv6Address(text))
        return int(text, 0)
    except (AddressValueError, ValueError):
        return None


def _shown(value: int, field: FieldSchema) -> str:
    if field.bits == 32:
        return str(IPv4Address(value))
    return str(IPv6Address(value)) if field.bits == 128 else hex(value)
