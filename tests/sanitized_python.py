"""Tests in a Python whose C compiler adds a sanitizer to whatever it builds, and which has that sanitizer itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from gradbed.common.c_library import compiler
from tests.command import ROOT

CXX = "libstdc++.so.6"
"""Sanitizers look for its way to throw when they start, and libraries such as matplotlib throw."""
_BUILD = """
import json, sys
from pathlib import Path
from gradbed.switch.codegen import build_program
from gradbed.switch.compiler import compile_p4
from gradbed.switch.runtime.library import build_runtime
build_runtime()
for program in sys.argv[1:]:
    build_program(json.loads(compile_p4(Path(program)).json_text))
"""
_RUN = """
import os, sys, pytest
del os.environ["LD_PRELOAD"]
sys.exit(pytest.main(sys.argv[1:]))
"""


class SanitizedPython:
    """Skips the test if this compiler has no such library."""

    def __init__(self, scratch: Path, library: str, flags: str, options: dict[str, str]) -> None:
        cc, _ = compiler()
        found = [
            subprocess.run(
                [cc, f"-print-file-name={name}"], capture_output=True, text=True, check=True
            ).stdout.strip()
            for name in (library, CXX)
        ]
        if not os.path.isabs(found[0]):
            pytest.skip(f"{cc} has no {library}")
        wrapper = scratch / "cc"
        wrapper.write_text(f'#!/bin/sh\nexec {cc} "$@" -g -O1 {flags}\n')
        wrapper.chmod(0o755)
        self._environment = {**os.environ, "CC": str(wrapper), "GRADBED_CACHE": str(scratch / "cache"), **options}
        self._preload = {"LD_PRELOAD": " ".join(filter(os.path.isabs, found))}

    def build(self, programs: Iterable[Path]) -> None:
        """Of P4. Ahead of the tests where a process with sanitizers and threads cannot start others."""
        self._python(_BUILD, *map(str, programs), environment=self._environment).check_returncode()

    def run_tests(self, tests: Iterable[Path], options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        arguments = ("-q", "-s", "-p", "no:cacheprovider", *options, *map(str, tests))
        return self._python(_RUN, *arguments, environment={**self._environment, **self._preload})

    def _python(self, code: str, *arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        # Without address randomisation, which older thread sanitizers cannot cope with.
        command = ["setarch", "-R", sys.executable, "-c", code, *arguments]
        return subprocess.run(
            command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False
        )


def no_data_race(scratch: Path, tests: Iterable[Path], programs: Iterable[Path], options: Sequence[str] = ()) -> None:
    """Runs the tests under the thread sanitizer, and fails for a race that it sees."""
    # Only what was built with the sanitizer is looked at, not the interpreter and its libraries. What tests start,
    # such as compilers, is no business of the sanitizer's.
    told = {"TSAN_OPTIONS": "ignore_noninstrumented_modules=1 die_after_fork=0"}
    python = SanitizedPython(scratch, "libtsan.so", "-fsanitize=thread", told)
    python.build(programs)
    outcome = python.run_tests(tests, options)
    output = outcome.stdout[-3000:] + outcome.stderr
    assert "WARNING: ThreadSanitizer" not in output, output[:6000]
    assert outcome.returncode == 0, output[-6000:]
