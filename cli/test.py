"""gradbed test: style, types and every test, in namespaces of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).resolve().parent.parent
SHELL_VARIABLE = "GRADBED_P4RUNTIME_SHELL"


def test(
    context: typer.Context,
    slow: Annotated[bool, typer.Option("--slow", help="Also the tests that take long.")] = False,
) -> int:
    """Check style and types, then run the tests; further arguments go to pytest."""
    from topo.namespaces import require_root
    from topo.sandbox import run_in_sandbox

    require_root("gradbed test")
    arguments = list(context.args)
    _install_optional_programs(arguments)
    if not arguments:
        for command in (["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]):
            print(f"gradbed: {' '.join(command)}", flush=True)
            status = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode
            if status != 0:
                return 1
        # Files side by side, one process for each processor; those of tests/emulation make networks of their own.
        arguments += ["-n", str(len(os.sched_getaffinity(0))), "--dist", "worksteal"]
    if not slow:
        arguments += ["-m", "not slow"]
    command = [sys.executable, "-m", "pytest", "--rootdir", str(ROOT), *arguments]

    def pytest() -> int:
        os.chdir(ROOT)
        return subprocess.run(command, check=False).returncode

    # Whatever a test leaves behind (namespaces, interfaces, processes) ends with the sandbox.
    return run_in_sandbox(pytest)


def _install_optional_programs(arguments: list[str]) -> None:
    """PyTorch, and p4runtime-shell in an environment of its own, for the tests that use them: out here, where there
    is a network. Where they cannot be had those tests skip."""
    from hosts.torch_hook.torch_extra import install_torch
    from switch.errors import UserError
    from switch.p4runtime_shell import shell_python

    def wanted(*names: str) -> bool:
        return not arguments or any(name in argument for name in names for argument in arguments)

    try:
        if wanted("torch", "gloo"):
            install_torch()
        if wanted("p4runtime_shell") and SHELL_VARIABLE not in os.environ:
            os.environ[SHELL_VARIABLE] = str(shell_python())
    except UserError as error:
        print(f"gradbed: the tests that need it skip: {error}", file=sys.stderr)
