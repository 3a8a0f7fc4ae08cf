"""One point of a system in Mininet, as a user runs it."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def real_point(system: str, options: str, folder: Path) -> dict[str, str]:
    """`gradbed run SYSTEM --clock real OPTIONS`: the row of the points table. It has to end well."""
    ended = subprocess.run(
        [sys.executable, "-m", "cli", "run", system, "--clock", "real", *options.split(), "--output", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    with (folder / system / "latest" / "points.csv").open() as file:
        (point,) = csv.DictReader(file)
    assert point["clock"] == "real"
    return point
