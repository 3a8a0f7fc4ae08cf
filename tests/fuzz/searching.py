"""A search as nightly tests make it: no finding (`python -m tests.fuzz`)."""

from __future__ import annotations

import subprocess
import sys

from tests.fuzz.parsers.target import ROOT

NIGHTLY_S = 60


def search(target: str, seconds: int) -> None:
    command = [sys.executable, "-m", "tests.fuzz", str(seconds), target]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
