"""Run a test's body in a sandbox of its own, in a process without threads: pytest's may have some by now.

Such processes are forked from one that has loaded what most of these tests use, which takes longer than many of them.
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPPED_STATUS = 77
TIMEOUT_S = 120
PRELOADED = [
    "tests.p4.switch_under_test",
    "tests.p4.aggregation.aggregation_packets",
    "gradbed.experiments.runtimes.real",
]

_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(PRELOADED)


def in_sandbox(test: Callable[..., None], timeout_s: float = TIMEOUT_S) -> Callable[..., None]:
    """Decorator. Arguments (parameters, tmp_path) are pickled; prints and tracebacks are shown on failure."""

    @functools.wraps(test)
    def wrapper(**arguments: object) -> None:
        if os.geteuid() != 0:
            pytest.skip("needs root")
        with tempfile.NamedTemporaryFile() as output:
            process = _processes.Process(
                target=_main, args=(test.__module__, test.__name__, arguments, dict(os.environ), output.name)
            )
            process.start()
            process.join(timeout_s)
            if process.is_alive():
                process.kill()
                process.join()
                pytest.fail(f"no end within {timeout_s:g} s:\n{_text(output.name)}", pytrace=False)
            said, status = _text(output.name), process.exitcode
        if status == SKIPPED_STATUS:
            pytest.skip(said.strip().splitlines()[-1])
        if status != 0:
            pytest.fail(f"status {status} in the sandbox:\n{said}", pytrace=False)

    return wrapper


def _text(path: str) -> str:
    return Path(path).read_text(errors="replace")


def _main(
    module: str, name: str, arguments: Mapping[str, object], environment: Mapping[str, str], output: str
) -> None:
    with open(output, "wb", buffering=0) as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    os.chdir(ROOT)
    os.environ.clear()
    os.environ.update(environment)
    from gradbed.common.sandbox import run_in_sandbox

    def body() -> int:
        test = getattr(importlib.import_module(module), name).__wrapped__
        try:
            test(**arguments)
        except pytest.skip.Exception as reason:
            print(reason, file=sys.stderr)
            return SKIPPED_STATUS
        return 0

    sys.exit(run_in_sandbox(body))
