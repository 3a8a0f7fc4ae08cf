"""Frames that clang's libFuzzer looks for, to programs in C under sanitizers: what once was a finding, and a minute
of search. Random frames are in tests/fuzz/test_frames.py, and need no clang."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.fuzz.frames.search import SEPARATOR, TARGETS
from tests.fuzz.searching import NIGHTLY_S, search
from tests.sanitizers import fuzzer

FINDINGS = Path(__file__).parents[1] / "findings"
FOUND = [name for name in TARGETS if (FINDINGS / name).is_dir()]

pytestmark = pytest.mark.skipif(fuzzer() is None, reason="no clang with libFuzzer")


@pytest.mark.parametrize("name", FOUND)
def test_what_once_was_a_finding(name: str, tmp_path: Path) -> None:
    """And some of what the search starts from."""
    target = TARGETS[name]
    inputs = [path.read_bytes() for path in sorted((FINDINGS / name).glob("*"))] + target.seeds()[:20]
    files = [tmp_path / str(number) for number in range(len(inputs))]
    for file, content in zip(files, inputs, strict=True):
        assert SEPARATOR in content
        file.write_bytes(content)
    setup = tmp_path / "setup"
    setup.write_text(target.setup())
    done = subprocess.run(
        [str(target.build(tmp_path)), *map(str, files)],
        env={**os.environ, "GRADBED_FUZZ_SETUP": str(setup)},
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Executed ") == len(files)


@pytest.mark.nightly
@pytest.mark.parametrize("name", TARGETS)
def test_a_minute_of_search(name: str) -> None:
    search(name, NIGHTLY_S)
