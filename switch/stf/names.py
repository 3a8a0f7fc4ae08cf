"""What an STF file names, in the program: names may be cut short from the left, as p4c's runner allows."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from gradbed.switch.bmv2_json.model import Action, KeyField, ProgramModel, Table
from gradbed.switch.device import ActionCall, KeyMatch
from gradbed.switch.stf import statements as s


class NoFit(Exception):
    """The statement does not fit the program. The text says why, in one line."""


def find(wanted: str, names: Iterable[str], what: str) -> str:
    """Return the one name that is `wanted` or ends with its dotted parts."""
    known = list(names)
    if wanted in known:
        return wanted
    found = [name for name in known if name.endswith("." + wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NoFit(f"{what} {wanted} could be {' or '.join(found)}")
    raise NoFit(f"there is no {what} {wanted}{_hint(wanted, known)}")


def _hint(wanted: str, known: list[str]) -> str:
    if not known:
        return ": the program has none"
    last = {name.rsplit(".", 1)[-1]: name for name in known}
    close = difflib.get_close_matches(wanted.rsplit(".", 1)[-1], last, n=1)
    return f"; did you mean {last[close[0]]}?" if close else f": there {_are(known)}"


def _are(known: list[str]) -> str:
    shown = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
    return f"{'is' if len(known) == 1 else 'are'} {shown}"


def table(model: ProgramModel, name: str) -> Table:
    # The compiler's own, tbl_..., cannot be named.
    known = [known for known in model.tables if not known.startswith("tbl_")]
    try:
        return model.tables[find(name, known, "table")]
    except NoFit as error:
        raise NoFit(f"{error} (a table that is never applied is left out)") from None


def register(model: ProgramModel, name: str) -> str:
    return find(name, model.registers, "register")


def counter(model: ProgramModel, name: str) -> str:
    return find(name, model.indirect_counters, "indirect counter")


def meter(model: ProgramModel, name: str) -> str:
    return find(name, model.indirect_meters, "indirect meter")


def value_set(model: ProgramModel, name: str) -> str:
    return find(name, model.value_sets, "value set")


def action_call(of: Table, call: s.StfAction) -> ActionCall:
    """Return the action with its arguments in the order of its parameters."""
    action: Action = of.action(find(call.action, [a.name for a in of.actions], f"action of table {of.name} named"))
    given = dict(call.arguments)
    parameters = [p.name for p in action.parameters]
    for name in given:
        if name not in parameters:
            raise NoFit(f"action {action.name} has no parameter {name}{_hint(name, parameters)}")
    missing = [name for name in parameters if name not in given]
    if missing:
        raise NoFit(f"action {action.name} needs {', '.join(missing)}")
    for parameter in action.parameters:
        _check_fits(given[parameter.name], parameter.width, f"argument {parameter.name} of {action.name}")
    return ActionCall(action.name, tuple(given[name] for name in parameters))


def key_matches(of: Table, matches: Iterable[s.Match]) -> list[KeyMatch]:
    """Return the whole key of an entry. Fields that are not named match everything; exact ones must be named."""
    given: dict[int, s.MatchValue] = {}
    for match in matches:
        at = _key_index(of, match.key)
        if at in given:
            raise NoFit(f"key field {of.key[at].name} is there twice")
        given[at] = match.value
    return [
        _key_match(key_field, given[at]) if at in given else _anything(of, key_field)
        for at, key_field in enumerate(of.key)
    ]


def priority(of: Table, given: int | None) -> int:
    """Return the priority of the entry to add.

    Tables without ternary or range fields have none, and ignore one given.
    """
    if of.match not in ("ternary", "range"):
        return 0
    if given is None:
        raise NoFit(f"an entry of table {of.name} needs a priority: add {of.name} PRIORITY ...")
    _check_fits(given, 31, "the priority")
    return given


def _key_index(of: Table, wanted: str) -> int:
    names = [_plain(field.name) for field in of.key]
    return names.index(find(_plain(wanted), names, f"key field of table {of.name} named"))


def _plain(name: str) -> str:
    """Return a name as the program has it: elements of stacks are written [n] or $n, validity valid or $valid$."""
    return re.sub(r"(^|\.)\$?valid\$?$", r"\1$valid$", re.sub(r"\$(\d+)", r"[\1]", name))


def _anything(of: Table, field: KeyField) -> KeyMatch:
    if field.match == "exact":
        raise NoFit(f"key field {field.name} of table {of.name} is matched exactly: give it a value")
    return KeyMatch(0, mask=0, prefix_bits=0, high=(1 << field.width) - 1)


def _key_match(field: KeyField, value: s.MatchValue) -> KeyMatch:
    kinds: dict[type, tuple[str, ...]] = {
        s.Pattern: ("exact", "lpm", "ternary", "range"),
        s.Prefix: ("lpm",),
        s.Masked: ("ternary",),
        s.Range: ("range",),
    }
    what = f"key field {field.name}"
    if field.match not in kinds[type(value)]:
        written = {s.Prefix: "VALUE/BITS", s.Masked: "VALUE&&&MASK", s.Range: "LOW..HIGH"}[type(value)]
        raise NoFit(f"{what} is matched by {field.match}, so it cannot be {written}")
    if isinstance(value, s.Prefix):
        _check_fits(value.value, field.width, what)
        if value.bits > field.width:
            raise NoFit(f"{what} has {field.width} bits, so no prefix of {value.bits}")
        return KeyMatch(value.value, prefix_bits=value.bits)
    if isinstance(value, s.Masked):
        _check_fits(value.value, field.width, what)
        _check_fits(value.mask, field.width, f"the mask of {what}")
        return KeyMatch(value.value & value.mask, mask=value.mask)
    if isinstance(value, s.Range):
        _check_fits(value.high, field.width, what)
        if value.low > value.high:
            raise NoFit(f"{what}: the low end {value.low} is above the high end {value.high}")
        return KeyMatch(value.low, high=value.high)
    return _pattern_match(field, value, what)


def _pattern_match(field: KeyField, pattern: s.Pattern, what: str) -> KeyMatch:
    _check_fits(pattern.value, field.width, what)
    whole = (1 << field.width) - 1
    if field.match == "ternary":
        # As with p4c's runner, digits that are not written match anything.
        return KeyMatch(pattern.value, mask=whole if pattern.mask is None else pattern.mask & whole)
    if not pattern.has_wildcards:
        return KeyMatch(pattern.value, prefix_bits=field.width, high=pattern.value)
    if field.match != "lpm" or pattern.mask is None or pattern.written is None:
        raise NoFit(f"{what} is matched by {field.match}, so it cannot have wildcards")
    free = pattern.written & ~pattern.mask & whole
    if free & (free + 1):
        raise NoFit(f"{what} is matched by lpm, so its wildcards stand at the end")
    return KeyMatch(pattern.value, prefix_bits=field.width - free.bit_length())


def _check_fits(value: int, width: int, what: str) -> None:
    if value >> width:
        raise NoFit(f"{what}: {value:#x} does not fit {width} bits")
