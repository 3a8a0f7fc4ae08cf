"""Warnings on the command line: of gradbed p4 compile, and of the stand-in for p4c."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradbed.cli.p4.commands import compile_
from gradbed.common.errors import UserError
from gradbed.switch.shims.p4c import driver
from tests.unit.compiler.programs import control

TEXT = control("hdr.h.a = 300;", "action spare() { }")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "main.p4"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(
    ("left_out", "shown"),
    [
        (None, ["unused", "overflow"]),
        (["unused"], ["overflow"]),
        (["unused", "overflow"], []),
        (["all"], []),
    ],
)
def test_compile_prints_warnings_and_succeeds(
    program: Path, capsys: pytest.CaptureFixture[str], left_out: list[str] | None, shown: list[str]
) -> None:
    json, p4info = program.with_suffix(".json"), program.with_suffix(".txt")
    assert compile_(program, json, p4info, None, None, left_out) == 0
    assert json.is_file() and p4info.is_file()
    errors = capsys.readouterr().err
    assert [line.rpartition("[")[2] for line in errors.splitlines() if "warning:" in line] == [
        f"{name}]" for name in shown
    ]


def test_compile_knows_the_names_of_warnings(program: Path) -> None:
    with pytest.raises(UserError, match="no warning is called 'unusd'; there are: all, backslash, bmv2, "):
        compile_(program, None, None, None, None, ["unusd"])


@pytest.mark.parametrize(
    ("options", "status", "shown"),
    [
        ([], 0, 2),
        (["--Wdisable"], 0, 0),
        (["--Wdisable=unused"], 0, 1),
        (["--Werror"], 1, 2),
        (["--Werror=overflow"], 1, 2),
        (["--Werror=mismatch"], 0, 2),
        (["--Werror", "--Wdisable"], 0, 0),
    ],
)
def test_p4c_options(
    program: Path, capsys: pytest.CaptureFixture[str], options: list[str], status: int, shown: int
) -> None:
    assert driver([*options, "-o", str(program.parent / "out"), str(program)]) == status
    assert capsys.readouterr().err.count("warning:") == shown
    assert (program.parent / "out" / "main.json").is_file() == (status == 0)
