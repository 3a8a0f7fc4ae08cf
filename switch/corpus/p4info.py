"""Where two P4Info messages differ, one line for each thing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from finsy.proto import p4i

_UNTOLD = p4i.Table()
_PAIR = re.compile(r"(\w+) = (\d+)")
_NUMBER = re.compile(r"\d+")


def p4info_differences(ours: Any, theirs: Any) -> list[str]:
    """Objects that only one message has, other identifiers, and fields that are not the same; by kind and name.

    What P4Info came to have later than p4c's version is taken from the annotations in which that left it: properties
    of the platform, the meaning of a selector's size. Of initial actions and entries it may not tell at all.
    """
    ours, theirs = _copy(ours), _copy(theirs)
    for name in ("initial_default_action", "has_initial_entries"):
        if not any(getattr(table, name) != getattr(_UNTOLD, name) for table in theirs.tables):
            for table in ours.tables:
                table.ClearField(name)
    _annotations_to_fields(theirs)
    lines: list[str] = []
    for field in ours.DESCRIPTOR.fields:
        one, other = getattr(ours, field.name), getattr(theirs, field.name)
        if one == other:
            continue
        if field.message_type is not None and "preamble" in field.message_type.fields_by_name:
            lines += _objects(field.name, _by_name(one), _by_name(other))
        else:
            lines += [f"{field.name}: {name} differs" for name in _different_fields(one, other)]
    return lines


def _copy(info: Any) -> Any:
    copy = type(info)()
    copy.CopyFrom(info)
    return copy


def _annotations_to_fields(info: Any) -> None:
    for text in _taken(info.pkg_info.annotations, "@platform_property("):
        for name, value in _PAIR.findall(text):
            setattr(info.pkg_info.platform_properties, name, int(value))
    for profile in info.action_profiles:
        semantics = _taken(profile.preamble.annotations, "@selector_size_semantics(")
        weights = _taken(profile.preamble.annotations, "@max_member_weight(")
        if not (semantics and profile.with_selector):
            continue
        if "sum_of_weights" in semantics[0]:
            profile.sum_of_weights.SetInParent()
        else:
            weight = int(_NUMBER.findall(weights[0])[0]) if weights else 0
            profile.sum_of_members.max_member_weight = weight


def _taken(annotations: Any, start: str) -> list[str]:
    """The annotations that begin so, which are there no more."""
    found = [text for text in annotations if text.startswith(start)]
    for text in found:
        annotations.remove(text)
    return found


def _by_name(objects: Any) -> dict[str, Any]:
    return {item.preamble.name: item for item in objects}


def _objects(kind: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[str]:
    for name in ours.keys() | theirs.keys():
        if name not in theirs:
            yield f"{kind}: only ours has {name}"
        elif name not in ours:
            yield f"{kind}: only p4c's has {name}"
        elif ours[name].preamble.id != theirs[name].preamble.id:
            one, other = ours[name].preamble.id, theirs[name].preamble.id
            yield f"{kind}: {name} has id {one:#x}, with p4c {other:#x}"
        else:
            for field in _different_fields(ours[name], theirs[name]):
                yield f"{kind}: {name}: {field} differs"


def _different_fields(one: Any, other: Any) -> Iterator[str]:
    """Names of fields, with dots into messages that both have."""
    for field in one.DESCRIPTOR.fields:
        first, second = getattr(one, field.name), getattr(other, field.name)
        if first == second:
            continue
        # A map or a list is named as a whole.
        if hasattr(first, "DESCRIPTOR") and not hasattr(first, "__len__"):
            yield from (f"{field.name}.{inner}" for inner in _different_fields(first, second))
        else:
            yield field.name
