"""gradbed test: style, types and tests, in namespaces of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from gradbed.cli.layers import require_checkout
from gradbed.common.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 600
"""Timeout of one test in seconds, unless --nightly. By a signal, since some tests fork, which they may not do beside
other threads."""
NO_TESTS = 5
"""Exit status of pytest where a path has no test of a tier."""
SHELL_VARIABLE = "GRADBED_P4RUNTIME_SHELL"


class Tier(Enum):
    """The tests that run at one time. The value is their marker; those without one run before each commit."""

    COMMIT = ""
    THOROUGH = "thorough"
    NIGHTLY = "nightly"

    @property
    def marked(self) -> str:
        """The expression by which pytest selects this tier alone (-m)."""
        later = list(Tier)[list(Tier).index(self) + 1 :]
        return " and ".join(filter(None, [self.value, *(f"not {tier.value}" for tier in later)]))

    @property
    def profile(self) -> str:
        """Hypothesis' profile (tests/conftest.py), which says how many examples a property gets."""
        return self.name.lower()


def test(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Also the tests that take longer.")] = False,
    nightly: Annotated[
        bool, typer.Option("--nightly", help="Also what takes hours: random search, chaos, long runs, mutants.")
    ] = False,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only tests that concern the files changed since the last commit.")
    ] = False,
) -> int:
    """Check style and types, and run the tests; further arguments go to pytest."""
    require_checkout("gradbed test")
    from gradbed.common.namespaces import require_root

    require_root("gradbed test")
    arguments = list(context.args)
    if changed:
        if everything or nightly or arguments:
            raise UserError("--changed chooses the tests itself: give no paths, and neither --all nor --nightly")
        arguments = _tests_of_changes()
        if not arguments:
            return 0
    _install_optional_programs(arguments)
    tiers = [tier for tier in Tier if tier is Tier.COMMIT or nightly or (everything and tier is Tier.THOROUGH)]
    if arguments:
        wanted = [Tier.COMMIT, Tier.THOROUGH] if changed else tiers
        return _pytest(" or ".join(f"({tier.marked})" for tier in wanted), wanted[-1], arguments)
    for command in (["ruff", "check"], ["ruff", "format", "--check"]):
        print(f"gradbed: {' '.join(command)}", flush=True)
        if subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode != 0:
            return 1
    # mypy keeps one processor busy for a minute: beside the tests, of which there is one process for each processor.
    with subprocess.Popen([sys.executable, "-m", "tools.types"], cwd=ROOT, stdout=subprocess.PIPE, text=True) as mypy:
        try:
            statuses = [_run_tier(tier, Tier.NIGHTLY if nightly else tier) for tier in tiers]
        except BaseException:
            mypy.kill()
            raise
        said, _ = mypy.communicate()
    print(f"gradbed: mypy\n{said}", end="", flush=True)
    if nightly:
        print("gradbed: mutants", flush=True)
        statuses.append(subprocess.run([sys.executable, "-m", "tests.mutants"], cwd=ROOT, check=False).returncode)
    return next((status for status in [*statuses, mypy.returncode] if status), 0)


def _run_tier(tier: Tier, effort: Tier) -> int:
    """Run a tier's tests on all processors with the bounds of the tier `effort`, and return their status."""
    start_s = time.monotonic()
    status = _pytest(tier.marked, effort, ["-n", str(len(os.sched_getaffinity(0))), "--dist", "worksteal"])
    print(f"gradbed: tests of the {tier.profile} tier took {time.monotonic() - start_s:.0f} s", flush=True)
    return status


def _pytest(marked: str, effort: Tier, arguments: list[str]) -> int:
    """Run the tests that are so marked in a sandbox, and return their status.

    Whatever they leave behind (namespaces, interfaces, processes) ends with the sandbox.

    Args:
        marked: What pytest selects by -m.
        effort: The tier that sets the number of random examples and the timeout of a test.
        arguments: For pytest.
    """
    from gradbed.common.sandbox import run_in_sandbox

    timeout = [] if effort is Tier.NIGHTLY else [f"--timeout={TIMEOUT_S}", "--timeout-method=signal"]
    # Ours first, so that those among the arguments count.
    given = ["--hypothesis-profile", effort.profile, *timeout, "-m", marked, *arguments]

    def run() -> int:
        os.chdir(ROOT)
        command = [sys.executable, "-m", "pytest", "--rootdir", str(ROOT), *given]
        status = subprocess.run(command, env=_keeping_bytecode(), check=False).returncode
        return 0 if status == NO_TESTS and effort is not Tier.COMMIT else status

    return run_in_sandbox(run)


def _tests_of_changes() -> list[str]:
    """Print and return the paths of the tests to run."""
    chosen = subprocess.run([sys.executable, "-m", "tests.changed"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if chosen.returncode != 0:
        raise UserError("--changed needs a git checkout, and git")
    paths = chosen.stdout.split()
    print(f"gradbed: tests of what has changed since the last commit: {' '.join(paths) or 'none'}", flush=True)
    return paths


def _keeping_bytecode() -> dict[str, str]:
    """Return the environment of the tests, with a folder for bytecode.

    They start hundreds of Pythons. Where PYTHONDONTWRITEBYTECODE is set each would compile all that it loads, so
    bytecode goes to the cache, and none appears beside the sources.
    """
    from gradbed.common.store import cache_dir

    environment = dict(os.environ)
    if environment.pop("PYTHONDONTWRITEBYTECODE", ""):
        environment.setdefault("PYTHONPYCACHEPREFIX", str(cache_dir() / "bytecode"))
    return environment


def _install_optional_programs(arguments: list[str]) -> None:
    """Install PyTorch, and p4runtime-shell in an environment of its own, for the tests that use them.

    This is done outside of the sandbox, where there is a network. If it fails those tests skip.
    """
    from gradbed.common.errors import UserError
    from gradbed.hosts.torch_hook.torch_extra import install_torch
    from gradbed.switch.p4lang.p4runtime_shell import shell_python

    def wanted(*names: str) -> bool:
        return not arguments or any(name in argument for name in names for argument in arguments)

    try:
        if wanted("torch", "gloo"):
            install_torch()
        if wanted("p4runtime_shell") and SHELL_VARIABLE not in os.environ:
            os.environ[SHELL_VARIABLE] = str(shell_python())
    except UserError as error:
        print(f"gradbed: the tests that need it skip: {error}", file=sys.stderr)
