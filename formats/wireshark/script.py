"""The dissector as one Lua script.

It is core.lua, then for each module of formats with packets of its own its tables and NAME.lua of this folder, which
dissects them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from enum import IntFlag
from pathlib import Path
from typing import Any

import gradbed.formats as formats_room
from gradbed.common.version import VERSION
from gradbed.formats.header import Field, Header
from gradbed.formats.lanes import LANE_BYTES

HERE = Path(__file__).parent
SETS_OF_BITS = ("selective", "worker_bitmap", "tag")
"""Fields that are shown in hexadecimal."""
MOST_COLUMNS = 100


def script() -> str:
    """Return the whole script."""
    parts = [
        f"-- Dissector of gradbed's packets for Wireshark, made by gradbed {VERSION} (gradbed p4 dissector).",
        f"local LANE_BYTES = {LANE_BYTES}",
        _lua_file("core"),
    ]
    for info in pkgutil.iter_modules(formats_room.__path__):
        if (HERE / f"{info.name}.lua").exists():
            parts.append(_block(info.name))
    return "\n".join([*parts, "register_ports()", ""])


def headers_of(name: str) -> dict[str, Header]:
    """Return the headers of a module of formats, by the names that filters have behind "gradbed."."""
    module = importlib.import_module(f"gradbed.formats.{name}")
    found = [each for each in vars(module).values() if isinstance(each, Header)]
    return {each.name.lower(): each for each in found}


def _block(name: str) -> str:
    module = importlib.import_module(f"gradbed.formats.{name}")
    headers = {key: _header(header) for key, header in headers_of(name).items()}
    return "\n".join(
        [
            f"do -- formats/{name}.py",
            f"local HEADERS = {_lua(headers)}",
            f"local NUMBERS = {_lua(getattr(module, 'DISSECTED', {}))}",
            "",
            _lua_file(name),
            "end",
        ]
    )


def _lua_file(name: str) -> str:
    return (HERE / f"{name}.lua").read_text(encoding="utf-8")


def _header(header: Header) -> dict[str, Any]:
    return {
        "title": header.name,
        "port": header.udp_port,
        "bytes": header.size_bytes,
        "fields": [_field(each) for each in header.fields],
    }


def _field(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {"name": field.name, "bits": field.bits}
    if field.constant:
        found["constant"] = field.default
    if field.name in SETS_OF_BITS:
        found["hex"] = True
    if field.words is not None and issubclass(field.words, IntFlag):
        found["flags"] = [[word.name, word.value] for word in field.words]
    elif field.words is not None:
        found["values"] = {word.value: word.name for word in field.words}
    return found


def _lua(value: Any, indent: str = "") -> str:
    """Write a table constructor, in one line if it is short."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    inner = indent + "  "
    if isinstance(value, Mapping):
        keys = {key: key if isinstance(key, str) else f"[{key}]" for key in value}
        parts = [f"{keys[key]} = {_lua(each, inner)}" for key, each in value.items()]
    else:
        parts = [_lua(each, inner) for each in value]
    text = "{ " + ", ".join(parts) + " }" if parts else "{}"
    if len(indent) + len(text) < MOST_COLUMNS and "\n" not in text:
        return text
    return "{\n" + "".join(f"{inner}{part},\n" for part in parts) + indent + "}"
