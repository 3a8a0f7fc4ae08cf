"""Annotations and documentation as P4Info carries them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from switch.compiler import syntax as s

# Represented elsewhere in P4Info.
_ELSEWHERE = frozenset(("name", "id", "brief", "description", "p4runtime_translation"))


def add_annotations(message: Any, annotations: Sequence[s.Annotation], skip: frozenset[str] = _ELSEWHERE) -> None:
    for annotation in annotations:
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


def package_values(annotations: Sequence[s.Annotation]) -> dict[str, str]:
    """name = "value" pairs of @pkginfo(...)."""
    result: dict[str, str] = {}
    for annotation in annotations:
        body = annotation.body or []
        if annotation.name != "pkginfo":
            continue
        for index in range(len(body) - 2):
            if body[index + 1] == "=" and body[index + 2].startswith('"'):
                result[body[index]] = s.unquote(body[index + 2])
    return result
