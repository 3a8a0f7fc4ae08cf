"""The C of the data plane under sanitizers while the server writes to it: action profiles, meters, digests, clones.

Other tests of this directory run again, in a process whose C compiler adds the sanitizers to whatever it builds.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sanitized_python import SanitizedPython, no_data_race

pytestmark = pytest.mark.nightly

HERE = Path(__file__).resolve().parents[1]
NAMES = ("profiles_on_the_engine", "end_to_end", "end_to_end_state")
TESTS = [HERE / "entities" / f"test_{name}.py" for name in NAMES]
PROGRAMS = sorted(HERE.glob("*.p4"))


def test_no_bad_memory_access_and_no_undefined_behaviour(tmp_path: Path) -> None:
    # The interpreter itself leaves memory to its end.
    options = {"ASAN_OPTIONS": "detect_leaks=0"}
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=all"
    python = SanitizedPython(tmp_path, "libasan.so", flags, options)
    python.build(PROGRAMS)
    outcome = python.run_tests(TESTS)
    assert outcome.returncode == 0, outcome.stdout[-3000:] + outcome.stderr[-3000:]


def test_no_data_race(tmp_path: Path) -> None:
    no_data_race(tmp_path, TESTS, PROGRAMS)
