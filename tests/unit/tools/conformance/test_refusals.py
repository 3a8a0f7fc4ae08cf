"""python -m tools.conformance --errors: wrong programs, and the lines at which p4c refuses them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ToolHere
from tests.unit.compiler.programs import control
from tools.conformance.refusals import OUTCOMES, Outcome, error_samples, refusal

WRONG = control("hdr.h.a = 1;\nhdr.h.b = nowhere;")
LINE = WRONG.splitlines().index("hdr.h.b = nowhere;") + 1
HEADLESS = "#include <core.p4>\ncontrol C() { apply { } }\n"

# By name: program, and what p4c writes.
SAMPLES: dict[str, tuple[str, str, Outcome]] = {
    "same": (WRONG, f"same.p4({LINE}): [--Werror=x] error: nowhere\nhdr.h.b = nowhere;\n", "same line"),
    "syntax": ("header h {\n bit<8> 5;\n}\n", "syntax.p4(2):syntax error, unexpected 5\nerror: 1\n", "same line"),
    "beside": (WRONG, f"beside.p4(1): [--Werror=x] error: nowhere\nx\nbeside.p4({LINE})\nx\n", "related line"),
    "elsewhere": (WRONG, "elsewhere.p4(2): [--Werror=x] error: nowhere\n", "other line"),
    "unplaced": (WRONG, "[--Werror=x] error: nowhere\n", "no line"),
    "headless": (HEADLESS, "headless.p4(2): [--Werror=x] error: something\n", "not found"),
    "right": (control("hdr.h.a = 1;"), "right.p4(9): [--Werror=x] error: something\n", "accepted"),
}
LEFT_OUT = {
    "warned": (WRONG, "warned.p4(2): [--Wwarn=x] warning: something\n"),
    "psa": (f"#include <psa.p4>\n{WRONG}", "psa.p4(2): [--Werror=x] error: something\n"),
    "unknown": (WRONG, ""),
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    programs, outputs = tmp_path / "testdata/p4_16_errors", tmp_path / "testdata/p4_16_errors_outputs"
    programs.mkdir(parents=True)
    outputs.mkdir()
    for name, (program, output, *_) in {**SAMPLES, **LEFT_OUT}.items():
        (programs / f"{name}.p4").write_text(program)
        if output:
            (outputs / f"{name}.p4-stderr").write_text(output)
    return tmp_path


def test_where_each_is_refused(corpus: Path) -> None:
    found = {path.stem: refusal(path).outcome for path in error_samples(corpus)}
    assert found == {name: outcome for name, (_, _, outcome) in SAMPLES.items()}
    assert {*found.values(), "stopped"} == set(OUTCOMES)


def test_what_is_printed(corpus: Path, tool_here: ToolHere) -> None:
    ended = tool_here("conformance", str(corpus), "--errors")
    assert ended.status == 1
    lines = ended.out.splitlines()
    assert "5 of 7 refused" in lines and len(SAMPLES) == 7
    assert f"elsewhere  other line (p4c: 2): elsewhere.p4:{LINE}: 'nowhere' is not declared" in lines
    assert "right  accepted (p4c: 9)" in lines
    assert not any(line.startswith("same ") for line in lines)


def test_status_0_if_all_are_refused(corpus: Path, tool_here: ToolHere) -> None:
    ended = tool_here("conformance", str(corpus), "--errors", "--only", "same", "--only", "elsewhere")
    assert ended.status == 0 and "2 of 2 refused" in ended.out


@pytest.mark.parametrize("more", [["--only", "psa"], ["--compiler", "p4c"], ["--expect", "x"]])
def test_what_cannot_be_asked(corpus: Path, more: list[str], tool_here: ToolHere) -> None:
    ended = tool_here("conformance", str(corpus), "--errors", *more)
    assert ended.status == 2 and ended.err.count("\n") == 1


def test_no_corpus(tmp_path: Path, tool_here: ToolHere) -> None:
    ended = tool_here("conformance", str(tmp_path), "--errors")
    assert ended.status == 2 and "no checkout of p4c" in ended.err
