"""The C of workers and interfaces under sanitizers: tests run again in a process whose C compiler adds them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sanitized_python import SanitizedPython

pytestmark = pytest.mark.nightly

HERE = Path(__file__).resolve().parent
TESTS = [HERE / f"test_{name}.py" for name in ("sender", "sender_reference", "round_frames")] + [
    HERE.parent / "test_virtual_agents.py",
    *(HERE.parents[1] / "transport" / f"test_{name}.py" for name in ("streams", "stream_sender_reference")),
]


def test_no_bad_memory_access_and_no_undefined_behaviour(tmp_path: Path) -> None:
    # The interpreter itself leaves memory to its end.
    options = {"ASAN_OPTIONS": "detect_leaks=0"}
    python = SanitizedPython(
        tmp_path, "libasan.so", "-fsanitize=address,undefined -fno-sanitize-recover=all", options
    )
    outcome = python.run_tests(TESTS, ["-m", "not nightly"])
    assert outcome.returncode == 0, outcome.stdout[-3000:] + outcome.stderr[-3000:]
