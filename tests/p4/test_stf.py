"""The STF files of tests/p4/stf: one program for each group of features, and router.stf for p4src/router.p4.

On this switch with this compiler and with p4c, and on BMv2; p4c and BMv2 where they are installed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from switch.codegen import build_program
from switch.compiler import compile_p4
from switch.p4c import compile_with_p4c, find_p4c, version_number
from switch.stf import read_stf, run_script
from switch.stf.bmv2_processes import find_simple_switch
from switch.stf.bmv2_target import run_script_on_bmv2

HERE = Path(__file__).parent / "stf"
P4_SOURCES = Path(__file__).resolve().parents[2] / "p4src"
NAMES = sorted(path.stem for path in HERE.glob("*.stf"))
# p4c drops loops in a control, and refuses those over a range.
NOT_FOR_P4C = {"loops"}
# Programs with loops, and the first p4c that knows them.
FOR_LOOPS = {"header_stack": (1, 2, 4, 12)}
# simple_switch_CLI's pvs_add sends a byte too many, and ends.
NOT_FOR_BMV2 = {"value_set"}


def source(name: str) -> Path:
    own = HERE / f"{name}.p4"
    return own if own.exists() else P4_SOURCES / f"{name}.p4"


def compiled(name: str, compiler: str, folder: Path) -> Mapping[str, Any]:
    if compiler == "gradbed":
        return compile_p4(source(name)).json
    p4c = find_p4c()
    if p4c is None:
        pytest.skip("p4c's p4c-bm2-ss is not installed")
    if version_number(p4c) < FOR_LOOPS.get(name, ()):
        pytest.skip("this p4c is older than P4's loops")
    output = folder / f"{name}.json"
    compile_with_p4c(p4c, source(name), {}, output, folder / f"{name}.p4info.txt")
    program: dict[str, Any] = json.loads(output.read_text())
    return program


def test_every_program_has_a_test() -> None:
    assert {path.stem for path in HERE.glob("*.p4")} - {"unused"} <= set(NAMES)
    assert all(source(name).exists() for name in NAMES)


@pytest.mark.parametrize(
    ("name", "compiler"),
    [(n, c) for n in NAMES for c in ("gradbed", "p4c") if c == "gradbed" or n not in NOT_FOR_P4C],
)
def test_on_this_switch(name: str, compiler: str, tmp_path: Path) -> None:
    program = build_program(compiled(name, compiler, tmp_path))
    assert not run_script(program, read_stf(HERE / f"{name}.stf")).failures


@pytest.mark.parametrize("name", sorted(set(NAMES) - NOT_FOR_BMV2))
def test_on_bmv2(name: str) -> None:
    if find_simple_switch() is None:
        pytest.skip("BMv2's simple_switch (with Thrift) is not installed")
    script = read_stf(HERE / f"{name}.stf")
    assert not run_script_on_bmv2(compile_p4(source(name)).json, script).failures
