"""Preambles of P4Info objects: identifiers and aliases, annotations and documentation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gradbed.switch.compiler import syntax as s
from gradbed.switch.compiler.conditions import ConditionError, evaluate_condition
from gradbed.switch.compiler.diagnostics import Reporter
from gradbed.switch.compiler.lexer import NAME, tokenize_fragment
from gradbed.switch.state.externs import EXTERNS

# ---- Identifiers and aliases ----


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
    """Return Bob Jenkins' one-at-a-time hash of 32 bits, which p4c uses too, so that identifiers agree."""
    value = 0
    for byte in name.encode():
        value = (value + byte) & 0xFFFFFFFF
        value = (value + (value << 10)) & 0xFFFFFFFF
        value ^= value >> 6
    value = (value + (value << 3)) & 0xFFFFFFFF
    value ^= value >> 11
    return (value + (value << 15)) & 0xFFFFFFFF


def explicit_id(annotations: Sequence[s.Annotation]) -> int | None:
    """Return the number in @id(...)."""
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
    """Return the identifier of each object by its name (P4Runtime specification, "ID Allocation for P4Info Objects").

    Objects are (name, annotations, position in the source). @id decides where it is given; the others follow from
    their names, in the order of the names, with the next free number where two collide.
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


# ---- Annotations and documentation ----


_LITERAL_WIDTH = re.compile(r"^\d+[ws](?=\d)")
_OF_TRUTH = frozenset(("true", "false", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "!"))
# Represented elsewhere in P4Info.
_ELSEWHERE = frozenset(("name", "id", "brief", "description", "p4runtime_translation"))


def add_annotations(message: Any, annotations: Sequence[s.Annotation], skip: frozenset[str] = _ELSEWHERE) -> None:
    for annotation in annotations:
        if annotation.structured and _add_structured(message, annotation):
            continue
        if annotation.name not in skip:
            message.annotations.append(str(annotation))


def add_documentation(message: Any, annotations: Sequence[s.Annotation]) -> None:
    for annotation in annotations:
        text = annotation.string()
        if text is not None and annotation.name in ("brief", "description"):
            setattr(message.doc, annotation.name, text)


def fill_preamble(preamble: Any, number: int, name: str, alias: str, annotations: Sequence[s.Annotation]) -> None:
    preamble.id = number
    preamble.name = name
    preamble.alias = alias
    add_annotations(preamble, annotations)
    add_documentation(preamble, annotations)


def number_in(annotations: Sequence[s.Annotation], name: str) -> int:
    """Return the number in @name(...); 0 without one."""
    annotation = s.find_annotation(list(annotations), name)
    value = _value(annotation.body) if annotation is not None and annotation.body else None
    return value if isinstance(value, int) else 0


def values_in(annotations: Sequence[s.Annotation], name: str) -> dict[str, str]:
    """Return the key = value pairs of @name(...), with values as written."""
    result: dict[str, str] = {}
    for annotation in annotations:
        if annotation.name == name:
            for part in _parts(annotation.body or []):
                if len(part) == 3 and part[1] == "=":
                    result[part[0]] = part[2]
    return result


def _add_structured(message: Any, annotation: s.Annotation) -> bool:
    """Add a structured annotation; return False and add nothing if a value is not known here."""
    parts = _parts(annotation.body or [])
    keys = [part[0] if len(part) > 2 and part[1] == "=" else None for part in parts]
    values = [_value(part if key is None else part[2:]) for part, key in zip(parts, keys, strict=True)]
    if None in values or len({key is None for key in keys}) > 1:
        return False
    structured = message.structured_annotations.add(name=annotation.name)
    for key, value in zip(keys, values, strict=True):
        if key is None:
            expression = structured.expression_list.expressions.add()
        else:
            expression = structured.kv_pair_list.kv_pairs.add(key=key).value
        if isinstance(value, str):
            expression.string_value = value
        elif isinstance(value, bool):
            expression.bool_value = value
        else:
            expression.int64_value = value
    return True


def _parts(body: Sequence[str]) -> list[list[str]]:
    """Split tokens at the commas."""
    parts: list[list[str]] = [[]]
    for text in body:
        if text == ",":
            parts.append([])
        else:
            parts[-1].append(text)
    return [part for part in parts if part]


def _value(words: Sequence[str]) -> str | bool | int | None:
    """Evaluate a constant expression of literals; None for others."""
    if all(word.startswith('"') for word in words):
        return "".join(map(s.unquote, words))
    tokens = [
        token for word in words for token in tokenize_fragment(_LITERAL_WIDTH.sub("", word).replace("_", ""), 0)
    ]
    if any(token.kind == NAME and token.text not in ("true", "false") for token in tokens):
        return None
    try:
        number = evaluate_condition(tokens, 0)
    except ConditionError:
        return None
    return bool(number) if _OF_TRUTH.intersection(words) else number
