"""Run a test's body in a sandbox of its own, in a fresh interpreter: pytest's process may have threads by now."""

from __future__ import annotations

import functools
import importlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPPED_STATUS = 77
TIMEOUT_S = 120


def in_sandbox(test: Callable[..., None]) -> Callable[..., None]:
    """Decorator. Arguments (parameters, tmp_path) are pickled; prints and tracebacks are shown on failure."""

    @functools.wraps(test)
    def wrapper(**arguments: object) -> None:
        if os.geteuid() != 0:
            pytest.skip("needs root")
        outcome = subprocess.run(
            [sys.executable, "-m", __name__, test.__module__, test.__name__],
            input=pickle.dumps(arguments),
            capture_output=True,
            cwd=ROOT,
            timeout=TIMEOUT_S,
            check=False,
        )
        said = (outcome.stdout + outcome.stderr).decode(errors="replace")
        if outcome.returncode == SKIPPED_STATUS:
            pytest.skip(said.strip().splitlines()[-1])
        if outcome.returncode != 0:
            pytest.fail(f"status {outcome.returncode} in the sandbox:\n{said}", pytrace=False)

    return wrapper


def _main(module: str, name: str) -> int:
    from topo.sandbox import run_in_sandbox

    arguments = pickle.load(sys.stdin.buffer)

    def body() -> int:
        test = getattr(importlib.import_module(module), name).__wrapped__
        try:
            test(**arguments)
        except pytest.skip.Exception as reason:
            print(reason, file=sys.stderr)
            return SKIPPED_STATUS
        return 0

    return run_in_sandbox(body)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
