"""Frames for a random program: such as its parser takes apart, and damaged ones."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.programs.program import PORTS, Program
from tools.recordings.random_inputs import parser_frames

Frame = tuple[int, bytes]
"""Port and bytes."""


def draw_frame(program: Program, bmv2_json: dict[str, Any], seed: str) -> Frame:
    rng = random.Random(seed)
    [frame] = parser_frames(bmv2_json, rng, 1)
    data = bytearray(frame[: rng.choice([1500, 300])] or b"\0")
    if rng.random() < 0.2:
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.1:
        del data[rng.randint(1, len(data)) :]
    if program.summed is not None and rng.random() < 0.5:
        _set_sum(data, *program.summed)
    return rng.randrange(PORTS), bytes(data)


def _set_sum(data: bytearray, before: int, behind: int, constant: bool) -> None:
    """RFC 1071 over the header but its sum."""
    if len(data) < before + 2 + behind:
        return
    summed = bytes(data[:before] + data[before + 2 : before + 2 + behind]) + (b"\0\7" if constant else b"")
    summed += bytes(len(summed) % 2)
    total = sum(int.from_bytes(summed[at : at + 2], "big") for at in range(0, len(summed), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    data[before : before + 2] = (~total & 0xFFFF).to_bytes(2, "big")
