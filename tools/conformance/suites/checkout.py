"""Which repository a folder is a checkout of, and at which commit."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Suite:
    """A repository whose tests can be run."""

    name: str
    files: tuple[str, ...]
    """Paths by which a checkout is recognised."""
    modules: tuple[str, ...]
    """What its tests import from PyPI."""


SUITES = (
    Suite("PI", ("proto/ptf/base_test.py", "proto/ptf/bmv2/port_map.json"), ("ptf", "p4.v1", "google.rpc")),
    Suite("p4-guide", ("ptf-tests", "testlib"), ("ptf", "p4runtime_sh")),
    Suite(
        "finsy",
        ("finsy/__init__.py", "tests/conftest.py", "examples/tests/conftest.py"),
        ("grpc", "parsy", "pyee", "pytest", "pytest_asyncio", "shellous"),
    ),
    Suite(
        "p4runtime-shell", ("p4runtime_sh/shell.py", "p4runtime_sh/test.py"), ("p4.v1", "IPython", "nose2", "callee")
    ),
    Suite("tutorials", ("utils/run_exercise.py", "exercises"), ("ptf", "p4.v1")),
)


@dataclass(frozen=True)
class Checkout:
    """A checkout of a repository."""

    folder: Path
    """Its absolute path."""
    suite: Suite


def find_checkout(folder: Path) -> Checkout | None:
    """Return the checkout that `folder` is, of a repository in SUITES; None if it is none."""
    for suite in SUITES:
        if all((folder / name).exists() for name in suite.files):
            return Checkout(folder.resolve(), suite)
    return None


def read_version(folder: Path) -> str | None:
    """Return commit and date of a checkout, as in "34b86e9 of 2026-08-07"; None if it is none."""
    git = shutil.which("git")
    if git is None or not (folder / ".git").exists():
        return None
    # As root, git trusts no folder of another account unless it is told to.
    command = [git, "-c", "safe.directory=*", "-C", str(folder), "log", "-1", "--abbrev=7", "--format=%h of %cs"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.stdout.strip() or None
