"""Identifiers and aliases of P4 objects (P4Runtime specification, "ID Allocation for P4Info Objects")."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.state.externs import EXTERNS

PREFIX = {
    "action": 0x01,
    "table": 0x02,
    "value_set": 0x03,
    "controller_header": 0x04,
    "action_profile": 0x11,
    "counter": 0x12,
    "direct_counter": 0x13,
    "meter": 0x14,
    "direct_meter": 0x15,
    "register": 0x16,
    "digest": 0x17,
    **{kind.name: kind.type_id for kind in EXTERNS.values()},
}


def one_at_a_time(name: str) -> int:
    """Bob Jenkins' one-at-a-time hash, 32 bits: p4c's choice, so that both compilers give the same identifiers."""
    value = 0
    for byte in name.encode():
        value = (value + byte) & 0xFFFFFFFF
        value = (value + (value << 10)) & 0xFFFFFFFF
        value ^= value >> 6
    value = (value + (value << 3)) & 0xFFFFFFFF
    value ^= value >> 11
    return (value + (value << 15)) & 0xFFFFFFFF


def explicit_id(annotations: Sequence[s.Annotation]) -> int | None:
    """The number in @id(...)."""
    annotation = s.find_annotation(list(annotations), "id")
    if annotation is None or not annotation.body:
        return None
    try:
        number = int(annotation.body[0].replace("_", ""), 0)
    except ValueError:
        return None
    return number if 0 < number < 1 << 32 else None


def assign_ids(
    kind: str, objects: Iterable[tuple[str, Sequence[s.Annotation], int]], reporter: Reporter
) -> dict[str, int]:
    """Identifiers by name. objects: (name, annotations, position in the source).

    @id decides where it is given; the rest follow from their names, in the order of the names, moving on to the
    next free number where two names collide.
    """
    prefix = PREFIX[kind]
    ids: dict[str, int] = {}
    unassigned: list[str] = []
    taken: set[int] = set()
    for name, given, loc in objects:
        if name in ids or name in unassigned:
            continue
        wanted = explicit_id(given)
        if wanted is None:
            unassigned.append(name)
            continue
        number = wanted if wanted >> 24 else (prefix << 24) | wanted
        if number >> 24 != prefix or number in taken:
            problem = "is taken" if number in taken else f"does not start with {prefix:#04x}"
            reporter.error(loc, f"the identifier {wanted:#x} of '{name}' {problem}")
        ids[name] = number
        taken.add(number)
    for name in sorted(unassigned):
        suffix = one_at_a_time(name) & 0xFFFFFF
        while (prefix << 24) | suffix in taken:
            suffix = (suffix + 1) & 0xFFFFFF
        ids[name] = (prefix << 24) | suffix
        taken.add(ids[name])
    return ids


def shortest_suffixes(names: Iterable[str]) -> Mapping[str, str]:
    """Return for each dotted name its shortest suffix that no other name ends in."""
    unique = set(names)
    uses: Counter[tuple[str, ...]] = Counter()
    for name in unique:
        parts = name.split(".")
        for start in range(len(parts)):
            uses[tuple(parts[start:])] += 1
    aliases: dict[str, str] = {}
    for name in unique:
        parts = name.split(".")
        start = len(parts) - 1
        while start > 0 and uses[tuple(parts[start:])] > 1:
            start -= 1
        aliases[name] = ".".join(parts[start:])
    return aliases
