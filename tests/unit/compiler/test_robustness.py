"""Whatever stands in a file, the compiler gives a result or a CompileError."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradbed.switch.compiler import CompileError, compile_p4
from tests.examples import examples
from tests.unit.compiler.programs import control

PROGRAMS = Path(__file__).parents[2] / "p4" / "programs"
TEXTS = [path.read_text() for path in sorted(PROGRAMS.glob("*.p4"))]
PIECES = sorted({piece for text in TEXTS for piece in re.findall(r"\w+|\s+|.", text)})
STRANGE = [
    "-1",
    "99999999999999999999",
    "#",
    "##",
    "{#}",
    "...",
    "next",
    ".apply()",
    "[0]",
    "8s255",
    "\\",
    "é",
    "\x00",
]


def compiles_or_complains(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "test.p4"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        try:
            compile_p4(path)
        except CompileError as error:
            assert error.diagnostics
            assert re.search(r":\d+:\d+: error: \S", str(error))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    parts = re.findall(r"\w+|\s+|.", draw(st.sampled_from(TEXTS)), re.DOTALL)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(parts) - 1))
        kind = draw(st.sampled_from(["delete", "insert", "replace", "cut", "swap"]))
        piece = draw(st.sampled_from(PIECES) | st.sampled_from(STRANGE))
        if kind == "delete":
            parts[at] = ""
        elif kind == "insert":
            parts.insert(at, piece)
        elif kind == "replace":
            parts[at] = piece
        elif kind == "cut":
            del parts[at + 1 : at + draw(st.integers(1, 60))]
        else:
            other = draw(st.integers(0, len(parts) - 1))
            parts[at], parts[other] = parts[other], parts[at]
    return "".join(parts)


@pytest.mark.thorough
@settings(max_examples=examples(250), deadline=None)
@given(mutated())
def test_mutated_programs(text: str) -> None:
    compiles_or_complains(text)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join))
def test_soup_of_tokens_in_a_control(text: str) -> None:
    compiles_or_complains(control(text))


@pytest.mark.thorough
@settings(max_examples=examples(50), deadline=None)
@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    compiles_or_complains(text)
