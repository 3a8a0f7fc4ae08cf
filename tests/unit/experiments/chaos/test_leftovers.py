"""What a process has left behind is named, and what it had before or gave back is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gradbed.experiments.study.running import sandboxed
from gradbed.experiments.study.running.sandboxed import leaked_since, own_orphans, resources

ORPHAN = "import os, subprocess; print(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL).pid)"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxed, "TIMEOUT_S", 0.1)


def test_nothing_is_left_of_what_is_given_back(tmp_path: Path) -> None:
    before = resources(tmp_path)
    subprocess.run(["true"], check=True)
    with (tmp_path / "gradbed-file").open("w"):
        pass
    (tmp_path / "gradbed-file").unlink()
    assert leaked_since(before, tmp_path) == []


def test_descriptors_and_files_are_told(tmp_path: Path) -> None:
    before = resources(tmp_path)
    with (tmp_path / "gradbed-file").open("w") as file:
        told = leaked_since(before, tmp_path)
        assert told == [f"descriptor {file.fileno()} ({file.name})", f"file {file.name}"]


@pytest.mark.thorough
def test_processes_are_told_orphans_too() -> None:
    with own_orphans():
        before = resources()
        orphan = int(subprocess.run([sys.executable, "-c", ORPHAN], stdout=subprocess.PIPE, check=True).stdout)
        try:
            assert leaked_since(before) == [f"process {orphan} (sleep)"]
        finally:
            os.kill(orphan, signal.SIGKILL)
        assert leaked_since(before) == []  # ended, though nobody has waited for it yet
        os.waitpid(orphan, 0)
