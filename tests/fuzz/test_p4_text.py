"""Programs of p4src/ with pieces cut out, put in, exchanged: a result or errors with a place, never anything else.

The ordinary tests of the compiler do the same with smaller programs (tests/unit/compiler/test_robustness.py).
"""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from gradbed.switch.compiler import CompileError, compile_p4
from tests.fuzz.parsers.mutation import changed_text
from tests.fuzz.sources import FEW_LANES, ROOT, SOURCES

MUTANTS = 10
NIGHTLY_MUTANTS = 1_000


def compile_mutants(source: Path, folder: Path, seed: int, count: int) -> None:
    """One of the program's files is changed in each."""
    rng = random.Random(seed)
    copy = folder / "p4src"
    shutil.copytree(source.parent, copy)
    files = [copy / source.name]
    if source.parent == ROOT / "p4src":
        named = re.findall(r'#include "(\S+)"', source.read_text())
        files += [copy / name for name in named]
    for _ in range(count):
        victim = rng.choice(files)
        original = victim.read_text()
        victim.write_text(changed_text(original, rng))
        try:
            compile_p4(copy / source.name, defines=FEW_LANES)
        except CompileError as error:
            assert error.diagnostics
            assert re.search(r":\d+:\d+: error: \S", str(error)), error
        victim.write_text(original)


@pytest.mark.commit_cases(3)
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_mutants(source: Path, tmp_path: Path) -> None:
    compile_mutants(source, tmp_path, 1, MUTANTS)


@pytest.mark.nightly
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_many_mutants(source: Path, tmp_path: Path) -> None:
    compile_mutants(source, tmp_path, 2, NIGHTLY_MUTANTS)
