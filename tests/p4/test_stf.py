"""The STF files of tests/p4/stf: one program for each group of features, and router.stf for p4src/router.p4.

On this switch with this compiler and with p4c, and on BMv2; p4c and BMv2 where they are installed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gradbed.switch.codegen import build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.p4lang.bmv2 import find_simple_switch
from gradbed.switch.p4lang.p4c import find_p4c, version_number
from gradbed.switch.program_cache import compiled_files
from gradbed.switch.stf import read_stf, run_script
from gradbed.switch.stf.bmv2_target import run_script_on_bmv2

HERE = Path(__file__).parent / "stf"
P4_SOURCES = Path(__file__).resolve().parents[2] / "p4src"
SCRIPTS = {path.stem: path for path in HERE.rglob("*.stf")}
NAMES = sorted(SCRIPTS)
# p4c drops loops in a control, and refuses those over a range; lists in loops are for p4c 1.2.5.
# It has no gradbed.p4.
# It leaves headers with a varbit to BMv2, which says that two are not equal if neither is valid.
# It refuses a table that is applied in several places and left differently.
# It wants all reads of a direct meter to write the same field.
# It leaves default actions of tables with an action profile out of its JSON, as BMv2 wants.
NOT_FOR_P4C = {
    "applied_twice",
    "direct_meter",
    "lists",
    "loops",
    "count_min_sketch",
    "header_equality",
    "profile_default",
}
# Programs with loops, and the first p4c that knows them.
FOR_LOOPS = {"header_stack": (1, 2, 4, 12)}
# Files for a program of another name.
PROGRAMS = {"out_of_range": "state", "wide_registers": "state"}
NOT_FOR_BMV2 = {
    "out_of_range": "BMv2's release build reads and writes other memory beyond a register's end",
    "count_min_sketch": "BMv2 has v1model's externs only",
    "profile_default": "BMv2 takes no default action of a table with an action profile",
}
# Lines that BMv2 cannot do, and why.
NOT_POSSIBLE = {
    "value_set": ["3: BMv2's simple_switch_CLI sends members of value sets with a byte too many"],
    "wide_registers": [
        "4: BMv2's Thrift reads no number as large as 0x7fffffffffffffff",
        "5: BMv2's Thrift writes numbers up to 0x7fffffffffffffff, not 0x123456789abcdef00000000000000000",
    ],
}


def source(name: str) -> Path:
    own = SCRIPTS[name].with_name(f"{PROGRAMS.get(name, name)}.p4")
    return own if own.exists() else P4_SOURCES / f"{name}.p4"


def compiled(name: str, compiler: str) -> Mapping[str, Any]:
    if compiler == "gradbed":
        return compile_p4(source(name)).json
    p4c = find_p4c()
    if p4c is None:
        pytest.skip("p4c's p4c-bm2-ss is not installed")
    if version_number(p4c) < FOR_LOOPS.get(name, ()):
        pytest.skip("this p4c is older than P4's loops")
    program: dict[str, Any] = json.loads(compiled_files(source(name), {}, p4c).json.read_text())
    return program


def test_every_program_has_a_test() -> None:
    assert {path.stem for path in HERE.rglob("*.p4")} - {"unused"} <= set(NAMES)
    assert {*NOT_FOR_BMV2, *NOT_POSSIBLE, *PROGRAMS} <= set(NAMES)
    assert all(source(name).exists() for name in NAMES)


@pytest.mark.parametrize(
    ("name", "compiler"),
    [(n, c) for n in NAMES for c in ("gradbed", "p4c") if c == "gradbed" or n not in NOT_FOR_P4C],
)
def test_on_this_switch(name: str, compiler: str) -> None:
    program = build_program(compiled(name, compiler))
    assert not run_script(program, read_stf(SCRIPTS[name])).failures


@pytest.mark.parametrize(
    ("name", "compiler"),
    [
        *((name, "gradbed") for name in NAMES),
        # Nothing of it is ours but the program, which the other tests have each with one of them.
        *(pytest.param(name, "p4c", marks=pytest.mark.nightly) for name in NAMES if name not in NOT_FOR_P4C),
    ],
)
def test_on_bmv2(name: str, compiler: str) -> None:
    if name in NOT_FOR_BMV2:
        pytest.skip(NOT_FOR_BMV2[name])
    if find_simple_switch() is None:
        pytest.skip("BMv2's simple_switch (with Thrift) is not installed")
    script = read_stf(SCRIPTS[name])
    outcome = run_script_on_bmv2(compiled(name, compiler), script)
    assert not outcome.failures
    assert list(outcome.not_possible) == [f"{script.path}:{line}" for line in NOT_POSSIBLE.get(name, [])]
