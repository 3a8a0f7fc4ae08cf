"""Random P4 programs with this compiler on this switch: every packet leaves as p4c and BMv2 had it.

tests/p4/recorded/random_programs/README.md says how the recordings were made. They share nothing with this compiler.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from gradbed.switch.codegen import build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.stf.engine_target import EngineTarget
from gradbed.switch.stf.parser import parse_stf
from gradbed.switch.stf.statements import Packet

RECORDED = Path(__file__).parent / "recorded" / "random_programs"
SEEDS = sorted(path.name.removesuffix(".json.gz") for path in RECORDED.glob("*.json.gz"))


def recording(seed: str) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(gzip.decompress((RECORDED / f"{seed}.json.gz").read_bytes()))
    return recorded


def test_the_recordings_are_there() -> None:
    assert len(SEEDS) == 37
    assert all(recording(seed)["packets"] and recording(seed)["out"] for seed in SEEDS)


@pytest.mark.commit_cases(5)
@pytest.mark.parametrize("seed", SEEDS)
def test_packets_leave_as_recorded(seed: str, tmp_path: Path) -> None:
    recorded = recording(seed)
    source = tmp_path / f"random_{seed}.p4"
    source.write_text(recorded["program"])
    program = build_program(compile_p4(source).json, optimise="-O1")
    script = parse_stf("\n".join(recorded["commands"]), source.with_suffix(".stf"))
    received: dict[str, list[str]] = {}
    with EngineTarget(program, frozenset((0, 1))) as switch:
        for statement in script.statements:
            switch.apply(statement)
        for port, frame in recorded["packets"]:
            switch.send(Packet(0, port, bytes.fromhex(frame)))
        for port, frame in switch.drain():
            received.setdefault(str(port), []).append(frame.hex())
    assert received == recorded["out"]
