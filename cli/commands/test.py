"""gradbed test: style, types and every test, in namespaces of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.layers import require_checkout

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 600
"""For one test, unless --slow: one that hangs has failed then, and shows where. By a signal, since some tests fork,
which they may not do beside other threads."""
SHELL_VARIABLE = "GRADBED_P4RUNTIME_SHELL"


def test(
    context: typer.Context,
    slow: Annotated[bool, typer.Option("--slow", help="Also the tests that take long.")] = False,
) -> int:
    """Check style and types, and run the tests; further arguments go to pytest."""
    require_checkout("gradbed test")
    from common.namespaces import require_root
    from common.sandbox import run_in_sandbox

    require_root("gradbed test")
    arguments = list(context.args)
    _install_optional_programs(arguments)
    marked = [] if slow else ["-m", "not slow"]
    patience = [] if slow else [f"--timeout={PATIENCE_S}", "--timeout-method=signal"]

    def pytest(*more: str) -> int:
        def run() -> int:
            os.chdir(ROOT)
            # Patience first, so that --timeout among the arguments counts.
            command = [sys.executable, "-m", "pytest", "--rootdir", str(ROOT), *patience, *arguments, *more, *marked]
            return subprocess.run(command, env=_keeping_bytecode(), check=False).returncode

        # Whatever a test leaves behind (namespaces, interfaces, processes) ends with the sandbox.
        return run_in_sandbox(run)

    if arguments:
        return pytest()
    for command in (["ruff", "check"], ["ruff", "format", "--check"]):
        print(f"gradbed: {' '.join(command)}", flush=True)
        if subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode != 0:
            return 1
    # mypy keeps one processor busy for a minute: beside the tests, of which there is one process for each processor.
    with subprocess.Popen([sys.executable, "-m", "mypy"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as mypy:
        try:
            status = pytest("-n", str(len(os.sched_getaffinity(0))), "--dist", "worksteal")
        except BaseException:
            mypy.kill()
            raise
        said, _ = mypy.communicate()
    print(f"gradbed: mypy\n{said}", end="", flush=True)
    return status or mypy.returncode


def _keeping_bytecode() -> dict[str, str]:
    """The environment of the tests. They start hundreds of Pythons; where PYTHONDONTWRITEBYTECODE is set each would
    compile all that it loads. Bytecode goes to the cache then, so that none appears beside the sources."""
    from common.compiled.store import cache_dir

    environment = dict(os.environ)
    if environment.pop("PYTHONDONTWRITEBYTECODE", ""):
        environment.setdefault("PYTHONPYCACHEPREFIX", str(cache_dir() / "bytecode"))
    return environment


def _install_optional_programs(arguments: list[str]) -> None:
    """PyTorch, and p4runtime-shell in an environment of its own, for the tests that use them: out here, where there
    is a network. Where they cannot be had those tests skip."""
    from common.errors import UserError
    from hosts.torch_hook.torch_extra import install_torch
    from switch.p4lang.p4runtime_shell import shell_python

    def wanted(*names: str) -> bool:
        return not arguments or any(name in argument for name in names for argument in arguments)

    try:
        if wanted("torch", "gloo"):
            install_torch()
        if wanted("p4runtime_shell") and SHELL_VARIABLE not in os.environ:
            os.environ[SHELL_VARIABLE] = str(shell_python())
    except UserError as error:
        print(f"gradbed: the tests that need it skip: {error}", file=sys.stderr)
