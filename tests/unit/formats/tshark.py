"""Frames as Wireshark's tshark takes them apart with the project's dissector."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gradbed.formats.wireshark.script import script

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")

Layers = dict[str, Any]


def dissected(frames: Sequence[bytes], folder: Path, *preferences: str) -> list[Layers]:
    """The layers of each, as of `tshark -T json`. AssertionError if the dissector says anything."""
    lua, capture = folder / "gradbed.lua", folder / "frames.pcap"
    lua.write_text(script())
    records = (struct.pack("=IIII", number, 0, len(frame), len(frame)) + frame for number, frame in enumerate(frames))
    capture.write_bytes(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(records))
    options = [word for each in preferences for word in ("-o", each)]
    done = subprocess.run(
        ["tshark", "-n", "-X", f"lua_script:{lua}", *options, "-r", capture, "-T", "json", "--no-duplicate-keys"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    said = [line for line in done.stderr.splitlines() if not line.startswith("Running as user")]
    assert (done.returncode, said) == (0, [])
    return [each["_source"]["layers"] for each in json.loads(done.stdout)]


def found(layers: Any, name: str) -> list[str]:
    """All values of a field, wherever it is, in order."""
    values = []
    for key, value in layers.items() if isinstance(layers, dict) else ():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                values += found(each, name)
            elif key == name:
                values.append(each)
    return values


def numbers(layers: Layers, name: str) -> list[int]:
    return [int(value, 0) for value in found(layers, name)]
