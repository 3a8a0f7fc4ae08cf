"""A reader of BMv2 JSON that knows the path of each value, to name it in errors."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from gradbed.switch.bmv2_json.model import Source

_HEXADECIMAL = re.compile(r"-?(0x)?[0-9a-fA-F]+")


class MalformedProgram(ValueError):
    """The JSON is not a program that can be run; the text says where and why, in one line."""


class JsonNode:
    """A value inside the JSON and its path, such as pipelines[0].tables[3].key."""

    def __init__(self, value: Any, path: str = "") -> None:
        self.value = value
        self.path = path

    def error(self, problem: str) -> MalformedProgram:
        return MalformedProgram(f"BMv2 JSON: {self.path or 'top level'}: {problem}")

    def get(self, key: str) -> JsonNode | None:
        """Return the member of this object, or None where it is missing or null."""
        if not isinstance(self.value, dict):
            raise self.error("expected an object")
        value = self.value.get(key)
        return None if value is None else JsonNode(value, f"{self.path}.{key}" if self.path else key)

    def __getitem__(self, key: str) -> JsonNode:
        node = self.get(key)
        if node is None:
            raise self.error(f"'{key}' is missing")
        return node

    def has(self, key: str) -> bool:
        """Return whether there is such a member, possibly null."""
        return isinstance(self.value, dict) and key in self.value

    def __iter__(self) -> Iterator[JsonNode]:
        if not isinstance(self.value, list):
            raise self.error("expected an array")
        for index, value in enumerate(self.value):
            yield JsonNode(value, f"{self.path}[{index}]")

    def list(self, key: str) -> list[JsonNode]:
        """Return the elements of a member array; none if it is missing."""
        node = self.get(key)
        return [] if node is None else list(node)

    def pair(self) -> tuple[JsonNode, JsonNode]:
        items = list(self)
        if len(items) != 2:
            raise self.error(f"expected two elements, got {len(items)}")
        return items[0], items[1]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.error("expected a string")
        return self.value

    def integer(self, low: int = 0, high: int = 2**31 - 1) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self.error("expected an integer")
        if not low <= self.value <= high:
            raise self.error(f"expected an integer in {low}..{high}, got {self.value}")
        return self.value

    def boolean(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.error("expected true or false")
        return self.value

    def source(self) -> Source | None:
        """Return the position of this object in the P4 source, if it has a valid one."""
        info = self.value.get("source_info") if isinstance(self.value, dict) else None
        if not isinstance(info, dict) or not isinstance(info.get("line"), int):
            return None
        # One string for all of a file keeps saved models small.
        file = sys.intern(str(info.get("filename", "")))
        return Source(file, info["line"], str(info.get("source_fragment", "")))

    def hexadecimal(self) -> int:
        """Return the value of a hexstr; a negative sign is allowed."""
        text = self.text()
        if not _HEXADECIMAL.fullmatch(text):
            raise self.error(f"expected a hexadecimal number, got '{text[:40]}'")
        return int(text, 16)
