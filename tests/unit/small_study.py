"""A study as a user runs it, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 600
"""No measure of speed: other programs may keep the machine busy."""


def run_study_named_small(study: str, place: Path) -> tuple[Path, str]:
    """Run a study (YAML text) whose name is "small" in a folder. The folder of its results, and what was printed."""
    (place / "small.yaml").write_text(study)
    ended = subprocess.run(
        [sys.executable, "-m", "cli", "run", str(place / "small.yaml"), "-j", "1", "--output", str(place)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return (place / "small" / "latest").resolve(), ended.stdout
