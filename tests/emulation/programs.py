"""Functions of test modules as programs of their own, to be sent signals and looked at from outside."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.emulation.sandboxed import ROOT

PATIENCE_S = 20.0
"""How long to wait for what should come at once; only a failure waits that long."""


@contextlib.contextmanager
def started(program: Callable[[], object], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A module's function in a fresh interpreter and a process group of its own, killed at the end of the block.

    `options` are Popen's; without any, standard output and error are pipes.
    """
    # What runs in the background of a shell script starts with SIGINT ignored, and passes that on.
    prelude = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    defaults = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(
        [sys.executable, "-c", f"{prelude} from {program.__module__} import {program.__name__} as p; p()"],
        text=True,
        cwd=ROOT,
        start_new_session=True,
        **{**defaults, **options},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def run_program(program: Callable[[], object]) -> subprocess.CompletedProcess[str]:
    """The same until it ends."""
    with started(program) as process:
        out, err = process.communicate(timeout=PATIENCE_S)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def descendants(pid: int) -> list[int]:
    """Children, their children, and so on, each before its own."""
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [found for child in children for found in (child, *descendants(child))]


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether the condition comes true while anybody would wait for it."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
