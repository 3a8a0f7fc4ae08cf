"""The C of the data plane under sanitizers while the server writes to it: action profiles, meters, digests, clones.

Other tests of this directory run again, in a process whose C compiler adds the sanitizers to whatever it builds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from switch.build import compiler

pytestmark = pytest.mark.slow

HERE = Path(__file__).resolve().parents[1]
ROOT = HERE.parents[2]
TESTS = tuple(f"entities/test_{name}.py" for name in ("profiles_on_the_engine", "end_to_end", "end_to_end_state"))
BUILD = """
import json, sys
from pathlib import Path
from switch.codegen import build_program
from switch.compiler import compile_p4
from switch.runtime.library import build_runtime
build_runtime()
for program in sys.argv[1:]:
    build_program(json.loads(compile_p4(Path(program)).json_text))
"""
RUN = """
import os, sys, pytest
del os.environ["LD_PRELOAD"]
sys.exit(pytest.main(sys.argv[1:]))
"""


class Sanitized:
    """Python with a sanitizer in its process. Skips the test if this compiler has none."""

    def __init__(self, scratch: Path, library: str, flags: str, options: dict[str, str]) -> None:
        cc, _ = compiler()
        found = subprocess.run(
            [cc, f"-print-file-name={library}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        if not os.path.isabs(found):
            pytest.skip(f"{cc} has no {library}")
        wrapper = scratch / "cc"
        wrapper.write_text(f'#!/bin/sh\nexec {cc} "$@" -g -O1 {flags}\n')
        wrapper.chmod(0o755)
        self._environment = {**os.environ, "CC": str(wrapper), "GRADBED_CACHE": str(scratch / "cache"), **options}
        self._preload = {"LD_PRELOAD": found}
        # Here, since processes that have sanitizers and threads cannot start others.
        self._python(BUILD, *map(str, HERE.glob("*.p4")), environment=self._environment).check_returncode()

    def run_tests(self) -> subprocess.CompletedProcess[str]:
        arguments = ("-q", "-s", "-p", "no:cacheprovider", *(str(HERE / name) for name in TESTS))
        return self._python(RUN, *arguments, environment={**self._environment, **self._preload})

    def _python(self, code: str, *arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        # Without address randomisation, which older thread sanitizers cannot cope with.
        command = ["setarch", "-R", sys.executable, "-c", code, *arguments]
        return subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
        )


def test_no_bad_memory_access_and_no_undefined_behaviour(tmp_path: Path) -> None:
    # The interpreter itself leaves memory to its end.
    options = {"ASAN_OPTIONS": "detect_leaks=0"}
    flags = "-fsanitize=address,undefined -fno-sanitize-recover=all"
    outcome = Sanitized(tmp_path, "libasan.so", flags, options).run_tests()
    assert outcome.returncode == 0, outcome.stdout[-3000:] + outcome.stderr[-3000:]


def test_no_data_race(tmp_path: Path) -> None:
    # Only what was built with the sanitizer is looked at, not the interpreter and its libraries.
    options = {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1"}
    outcome = Sanitized(tmp_path, "libtsan.so", "-fsanitize=thread", options).run_tests()
    output = outcome.stdout[-3000:] + outcome.stderr
    assert "WARNING: ThreadSanitizer" not in output, output[:6000]
    assert outcome.returncode == 0, output[-6000:]
