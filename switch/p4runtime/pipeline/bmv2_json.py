"""The parts of BMv2 JSON that the control plane needs: names, widths, sizes, const entries.

Reading follows behavioral-model's docs/JSON_format.md. Every lookup that finds something else than the format
promises raises ValueError with one clear line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from switch.p4runtime.pipeline.device_config import bmv2_json_text

_WORD_BITS = 64


class Bmv2Json:
    """A parsed program."""

    def __init__(self, text: bytes) -> None:
        self.document = _parse(text)
        self.tables = {
            _text(table, "name"): table
            for pipeline in _objects(self.document, "pipelines")
            for table in _objects(pipeline, "tables")
        }
        actions = _objects(self.document, "actions")
        self.action_names = {_integer(action, "id"): _text(action, "name") for action in actions}
        # An action that is also called from a control is there a second time, with its arguments built in.
        self.parameter_widths_bits: dict[str, list[list[int]]] = {}
        for action in actions:
            widths_bits = [_integer(parameter, "bitwidth") for parameter in _objects(action, "runtime_data")]
            self.parameter_widths_bits.setdefault(_text(action, "name"), []).append(widths_bits)
        self.counter_sizes = {
            _text(counter, "name"): _integer(counter, "size")
            for counter in _objects(self.document, "counter_arrays")
            if not counter.get("is_direct")
        }
        self.meter_sizes = {
            _text(meter, "name"): _integer(meter, "size")
            for meter in _objects(self.document, "meter_arrays")
            if not meter.get("is_direct")
        }
        self.profile_sizes = {
            _text(profile, "name"): _integer(profile, "max_size")
            for pipeline in _objects(self.document, "pipelines")
            for profile in _objects(pipeline, "action_profiles")
        }
        self.value_set_widths_bits = {
            _text(value_set, "name"): _integer(value_set, "compressed_bitwidth")
            for value_set in _objects(self.document, "parse_vsets")
        }
        self.registers = {
            _text(register, "name"): (_integer(register, "size"), _integer(register, "bitwidth"))
            for register in _objects(self.document, "register_arrays")
        }
        self.header_types = {_text(kind, "name"): _fields(kind) for kind in _objects(self.document, "header_types")}
        self._headers = {
            _text(header, "name"): self.header_types.get(_text(header, "header_type"), {})
            for header in _objects(self.document, "headers")
        }

        self.digest_lists = {
            _text(digest, "name"): (
                _integer(digest, "id"),
                [self._element_width_bits(element) for element in _objects(digest, "elements")],
            )
            for digest in _objects(self.document, "learn_lists")
        }

    @property
    def can_be_described(self) -> bool:
        """Whether it has something that controllers write or read: compilers put that into P4Info."""
        of_arrays = (
            self.counter_sizes,
            self.meter_sizes,
            self.registers,
            self.value_set_widths_bits,
            self.digest_lists,
        )
        return any(of_arrays) or any(map(self.key, self.tables))

    def _element_width_bits(self, element: Mapping[str, Any]) -> int:
        """Of what a digest sends; values that are no fields have one word."""
        value = element.get("value")
        if element.get("type") == "field" and isinstance(value, list) and len(value) == 2:
            return self.field_width_bits(*value) or _WORD_BITS
        return _WORD_BITS

    def field_width_bits(self, header: object, field: object) -> int | None:
        """Width of a header's field, None if it has no field of that name."""
        if field == "$valid$":
            return 1
        return self._headers.get(str(header), {}).get(str(field))

    def key(self, table: str) -> list[dict[str, Any]]:
        return _objects(self.tables[table], "key")

    def key_width_bits(self, key_field: dict[str, Any]) -> int | None:
        target = key_field.get("target")
        if isinstance(target, list) and len(target) == 2:
            return self.field_width_bits(*target)
        return None

    def entries(self, table: str) -> list[dict[str, Any]]:
        return _objects(self.tables[table], "entries")

    def action_call(self, call: object) -> tuple[str, tuple[int, ...]]:
        """Name and arguments of an action_entry or default_entry."""
        if not isinstance(call, dict):
            raise ValueError("BMv2 JSON: an action entry is not an object")
        action_id = _integer(call, "action_id")
        if action_id not in self.action_names:
            raise ValueError(f"BMv2 JSON: there is no action {action_id}")
        return self.action_names[action_id], tuple(number(v) for v in call.get("action_data") or ())


def number(value: object) -> int:
    """A constant of the format: a hexadecimal string or a plain integer. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"BMv2 JSON: {value!r} is not a number")
    result = value if isinstance(value, int) else int(value, 16)
    if result < 0:
        raise ValueError(f"BMv2 JSON: {value!r} is negative")
    return result


def _parse(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(bmv2_json_text(text))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the device config is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ValueError("the device config is not a BMv2 JSON object")
    return document


def _objects(holder: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    items = holder.get(name)
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ValueError(f"BMv2 JSON: {name!r} is not a list of objects")
    return items


def _text(holder: Mapping[str, Any], name: str) -> str:
    value = holder.get(name)
    if not isinstance(value, str):
        raise ValueError(f"BMv2 JSON: {name!r} is missing or no string")
    return value


def _integer(holder: Mapping[str, Any], name: str) -> int:
    value = holder.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"BMv2 JSON: {name!r} is missing or no integer")
    return value


def _fields(header_type: Mapping[str, Any]) -> dict[str, int]:
    """Field widths in bits, in order. Fields of varying width ("*") have none and are left out."""
    widths = {}
    for field in header_type.get("fields") or ():
        if not isinstance(field, list) or len(field) < 2 or not isinstance(field[0], str):
            raise ValueError("BMv2 JSON: a field of a header type is not [name, width, ...]")
        if isinstance(field[1], int):
            widths[field[0]] = field[1]
    return widths
