"""Random and mutated frames through programs built with the address and undefined-behaviour sanitizers."""

from __future__ import annotations

import json
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gradbed.switch.bmv2_json.load import load_program
from gradbed.switch.codegen.program import generate
from gradbed.switch.runtime.library import RUNTIME_DIR
from tests.sanitizers import sanitized
from tests.unit.codegen.lanes import lane_program
from tests.unit.codegen.test_p4c_programs import HOST_A, HOST_B, PROGRAMS, frame, ipv4, label, value

FRAMES = 20_000


def programs() -> dict[str, tuple[dict[str, Any], list[bytes]]]:
    router, stateful = (json.loads((PROGRAMS / f"{n}.json").read_text()) for n in ("router", "stateful"))
    option = bytes([2, 4]) + bytes(16)
    return {
        "router": (router, [frame(ipv4(HOST_A, HOST_B)), frame(ipv4(HOST_B, HOST_A, protocol=6))]),
        "stateful": (
            stateful,
            [
                label(5, False) + label(6, True) + value(1, 77, 5) + b"rest",
                label(5, True) + option + value(2, 77, 5),
                b"\0\0" + label(5, True) + value(3, 77, 5),
            ],
        ),
        "lanes": (lane_program(64), [struct.pack(">HIH64i", 3, 7, 9, *range(64)) + b"tail"]),
    }


@pytest.mark.parametrize("name", ["router", "stateful", "lanes"])
def test_no_frame_reaches_outside_its_memory(name: str, tmp_path: Path) -> None:
    program, seeds = programs()[name]
    sources = [Path(__file__).parent / "sanitized_driver.c", *sorted(RUNTIME_DIR.glob("state/*.c"))]
    driver = sanitized(tmp_path / "driver", sources, generate(load_program(program)))
    rng = random.Random(6)
    lines = "\n".join(data.hex() for data in [*seeds, rng.randbytes(200), b""])
    outcome = subprocess.run([driver, "1", str(FRAMES)], input=lines, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.strip().isdigit()
