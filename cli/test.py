"""gradbed test: style, types and every test, in namespaces of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).resolve().parent.parent


def test(
    context: typer.Context,
    slow: Annotated[bool, typer.Option("--slow", help="Also the tests that take long.")] = False,
) -> int:
    """Check style and types, then run the tests; further arguments go to pytest."""
    from topo.namespaces import require_root
    from topo.sandbox import run_in_sandbox

    require_root("gradbed test")
    arguments = list(context.args)
    if not arguments:
        for command in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]):
            print(f"gradbed: {' '.join(command)}", flush=True)
            status = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode
            if status != 0:
                return 1
    if not slow:
        arguments += ["-m", "not slow"]
    command = [sys.executable, "-m", "pytest", "--rootdir", str(ROOT), *arguments]

    def pytest() -> int:
        os.chdir(ROOT)
        return subprocess.run(command, check=False).returncode

    # Whatever a test leaves behind (namespaces, interfaces, processes) ends with the sandbox.
    return run_in_sandbox(pytest)
