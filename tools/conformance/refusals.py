"""p4c's samples of wrong programs (testdata/p4_16_errors): are they refused, and at the line that p4c names?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gradbed.common.errors import UserError, unforeseen
from gradbed.switch.compiler import compile_p4
from gradbed.switch.compiler.diagnostics import CompileError, Diagnostic
from gradbed.switch.compiler.lower.program import NO_MAIN, OTHER_PACKAGE

ERRORS, OUTPUTS = Path("testdata/p4_16_errors"), Path("testdata/p4_16_errors_outputs")

Outcome = Literal["same line", "related line", "other line", "no line", "not found", "accepted", "stopped"]
OUTCOMES: dict[Outcome, str] = {
    "same line": "refused at a line at which p4c has an error",
    "related line": "refused at a line that p4c's message shows beside its error",
    "other line": "refused at another line",
    "no line": "refused; p4c names no line",
    "not found": "the error is not found: only `main` is refused, which is not V1Switch's",
    "accepted": "accepted",
    "stopped": "the compiler crashed",
}
REFUSED: frozenset[Outcome] = frozenset(("same line", "related line", "other line", "no line"))

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">\n]+)[">]', re.MULTILINE)
_KNOWN_INCLUDES = {"core.p4", "v1model.p4"}


@dataclass(frozen=True)
class Refusal:
    """How our compiler and p4c refuse a program."""

    name: str
    outcome: Outcome
    ours: str = ""
    """Our first message."""
    lines: tuple[int, ...] = ()
    """The lines of p4c's errors."""


@dataclass(frozen=True)
class _Expected:
    """Lines of p4c's errors, and all lines that it names."""

    errors: frozenset[int]
    named: frozenset[int]


def error_samples(corpus: Path, only: Sequence[str] = ()) -> list[Path]:
    """Return the programs that p4c refuses, for v1model or no architecture. UserError if there are none.

    Args:
        corpus: A checkout of p4c.
        only: Names without .p4; UserError if one is not among them.
    """
    folder = corpus / ERRORS
    programs = {path.stem: path for path in sorted(folder.glob("*.p4")) if path.is_file() and _is_ours(path)}
    if not programs:
        raise UserError(f"{folder} has no program that p4c refuses: {corpus} is no checkout of p4c")
    unknown = [name for name in only if name not in programs]
    if unknown:
        raise UserError(f"{folder} has no program {unknown[0]} that p4c refuses")
    return [programs[name] for name in only or programs]


def _is_ours(program: Path) -> bool:
    included = set(_INCLUDE.findall(program.read_text(encoding="utf-8", errors="replace")))
    return included <= _KNOWN_INCLUDES and re.search(r"\berror:", _output_of(program)) is not None


def _output_of(program: Path) -> str:
    """Return what p4c writes, as the corpus has it."""
    path = program.parents[1] / OUTPUTS.name / f"{program.name}-stderr"
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _expected(program: Path) -> _Expected:
    at = rf"^{re.escape(program.name)}\((\d+)\)"
    output = _output_of(program)
    errors = re.findall(rf"{at}:.*\berror:|{at}:syntax error", output, re.MULTILINE)
    named = re.findall(at, output, re.MULTILINE)
    return _Expected(frozenset(int(one or other) for one, other in errors), frozenset(map(int, named)))


def refusal(program: Path) -> Refusal:
    """Compile one of the samples, and compare the line of the error with p4c's."""
    expected = _expected(program)
    lines = tuple(sorted(expected.errors))
    try:
        compile_p4(program)
    except CompileError as error:
        errors = [each for each in error.diagnostics if each.severity == "error"]
        first = errors[0]
        said = f"{Path(first.file).name}:{first.line}: {first.message}"
        return Refusal(program.stem, _outcome(program, errors, expected), said, lines)
    except UserError as error:
        return Refusal(program.stem, "other line", str(error).splitlines()[0], lines)
    except Exception as error:
        return Refusal(program.stem, "stopped", unforeseen(error), lines)
    return Refusal(program.stem, "accepted", "", lines)


def _outcome(program: Path, errors: Sequence[Diagnostic], expected: _Expected) -> Outcome:
    if all(each.message.startswith((NO_MAIN, OTHER_PACKAGE)) for each in errors):
        return "not found"
    if not expected.errors:
        return "no line"
    ours = {each.line for each in errors if Path(each.file).name == program.name}
    if ours & expected.errors:
        return "same line"
    return "related line" if ours & expected.named else "other line"
