"""The p4_device_config of a pipeline: BMv2 JSON, bare or in the message in which older controllers wrap it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

# p4.tmp.P4DeviceConfig of p4lang/PI: bool reassign = 1, Extras extras = 2, bytes device_data = 3.
_DEVICE_DATA = 3
_VARINT, _BYTES = 0, 2


def bmv2_json(device_config: bytes) -> dict[str, Any]:
    """Return the BMv2 JSON of a device config. Raises ValueError."""
    try:
        document = json.loads(bmv2_json_text(device_config))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the device config is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ValueError("the device config is not a BMv2 JSON object")
    return document


def bmv2_json_text(device_config: bytes) -> bytes:
    """Return the text of the JSON; of what is neither JSON nor such a message, all bytes."""
    if device_config[:1] not in (b"\x08", b"\x12", b"\x1a"):
        return device_config
    try:
        data = [value for field, value in _fields(device_config) if field == _DEVICE_DATA]
    except (IndexError, ValueError):
        return device_config
    return data[-1] if data else device_config


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the numbers and contents of the fields (Protocol Buffers, "Encoding"); varints are skipped."""
    position = 0
    while position < len(message):
        tag, position = _varint(message, position)
        length, position = _varint(message, position)
        if tag & 7 == _VARINT:
            continue
        if tag & 7 != _BYTES or position + length > len(message):
            raise ValueError("not a P4DeviceConfig")
        yield tag >> 3, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Return a number, and the position behind it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = message[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("not a varint")
