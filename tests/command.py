"""The command line as processes of its own, and the tables that its runs leave."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def gradbed(
    *arguments: object, cwd: Path = ROOT, input: str | None = None, timeout_s: float = 600, **environment: object
) -> subprocess.CompletedProcess[str]:
    """`gradbed ARGUMENTS`, however it ends."""
    return _run(["-m", "gradbed", *map(str, arguments)], cwd=cwd, input=input, timeout_s=timeout_s, **environment)


def _run(
    arguments: list[str],
    *,
    cwd: Path = ROOT,
    input: str | None = None,
    timeout_s: float = 600,
    **environment: object,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        input=input,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def tool(name: str, *arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """`python -m tools.NAME ARGUMENTS`, however it ends."""
    return _run(["-m", f"tools.{name}", *map(str, arguments)], **options)  # type: ignore[arg-type]


def run_well(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """The same, which has to end well."""
    ended = gradbed(*arguments, **options)  # type: ignore[arg-type]
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended


def rows(table: Path) -> list[dict[str, str]]:
    """Of a CSV file."""
    with table.open() as file:
        return list(csv.DictReader(file))
