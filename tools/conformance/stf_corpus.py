"""A corpus of P4 programs with STF files, such as p4c's testdata/p4_16_samples: which pass, which do not, why."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from gradbed.cli.p4.stf import compile_program, read_json
from gradbed.common.errors import UserError, unforeseen
from gradbed.switch.p4lang.p4c import compile_with_p4c, require_p4c
from gradbed.switch.stf.isolated import each_in_own_process
from gradbed.switch.stf.parser import read_stf
from gradbed.switch.stf.runner import Outcome
from gradbed.switch.stf.statements import Script

Stage = Literal["passed", "compile", "load", "packet", "stopped", "not possible"]
# Program to BMv2 JSON; UserError if it is refused.
Compile = Callable[[Path], dict[str, Any]]
# JSON and file to outcome; ValueError if the switch refuses the JSON.
Run = Callable[[dict[str, Any], Script], Outcome]

SAMPLES = Path("testdata/p4_16_samples")
TIME_LIMIT_S = 120.0
_V1MODEL = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">\n]*/)?v1model\.p4[">]', re.MULTILINE)


@dataclass(frozen=True)
class CorpusResult:
    """What became of one program and its STF file."""

    name: str
    stage: Stage
    """Where it failed, or passed."""
    reason: str = ""
    """One line."""


def corpus_programs(corpus: Path, only: Sequence[str] = ()) -> list[Path]:
    """Return the v1model programs that have an STF file beside them, by name.

    Args:
        corpus: A checkout of p4c, or a folder of programs.
        only: Names without .p4; UserError if one is not there.
    """
    folder = corpus / SAMPLES if (corpus / SAMPLES).is_dir() else corpus
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    files = [p for p in sorted(folder.glob("*.p4")) if p.is_file() and p.with_suffix(".stf").is_file()]
    programs = {p.stem: p for p in files if _is_v1model(p)}
    if not programs:
        raise UserError(f"{folder} has no v1model program with an STF file")
    unknown = [name for name in only if name not in programs]
    if unknown:
        raise UserError(f"{folder} has no v1model program {unknown[0]} with an STF file")
    return [programs[name] for name in only or programs]


def _is_v1model(program: Path) -> bool:
    return _V1MODEL.search(program.read_text(encoding="utf-8", errors="replace")) is not None


def compiler_named(name: str) -> Compile:
    """Return the compiler that --compiler names; UserError for an unknown one, and for p4c where it is missing."""
    if name == "gradbed":
        return compile_program
    if name != "p4c":
        raise UserError(f"--compiler: gradbed or p4c, not {name}")
    return partial(_compile_with_p4c, require_p4c())


def _compile_with_p4c(p4c: str, program: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        bmv2_json = Path(folder) / "program.json"
        compile_with_p4c(p4c, program, {}, bmv2_json, Path(folder) / "program.p4info.txt")
        return read_json(bmv2_json)


def read_names(path: Path) -> frozenset[str]:
    """Read names, one on each line; `#` begins a comment."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    return frozenset(name for line in text.splitlines() if (name := line.split("#", 1)[0].strip()))


def run_corpus(programs: Sequence[Path], compile_: Compile, run: Run, *, jobs: int) -> Iterator[CorpusResult]:
    """Yield results in the order in which they come, each from a process of its own."""
    one = partial(_one, compile_, run)
    for ended in each_in_own_process(one, programs, jobs=jobs, time_limit_s=TIME_LIMIT_S):
        yield ended.value or CorpusResult(ended.argument.stem, "stopped", ended.how)


def _one(compile_: Compile, run: Run, program: Path) -> CorpusResult:
    name = program.stem
    try:
        script = read_stf(program.with_suffix(".stf"))
        json = compile_(program)
    except UserError as error:
        return CorpusResult(name, "compile", _first_line(error))
    except Exception as error:
        return CorpusResult(name, "compile", f"defect: {unforeseen(error)}")
    try:
        outcome = run(json, script)
    except (UserError, ValueError, RuntimeError) as error:
        return CorpusResult(name, "load", _first_line(error))
    if outcome.failures:
        return CorpusResult(name, "packet", outcome.failures[0])
    return (
        CorpusResult(name, "not possible", outcome.not_possible[0])
        if outcome.not_possible
        else CorpusResult(name, "passed")
    )


def _first_line(error: Exception) -> str:
    """Return the first line of the message, with the next one if it only introduces that."""
    lines = str(error).splitlines() or [type(error).__name__]
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
