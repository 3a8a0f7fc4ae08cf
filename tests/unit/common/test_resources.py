"""Temporary folders are removed by the process that made them, or by the next one."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

import pytest

from gradbed.common.resources import LOCK, scratch_folder, sweep

KEEPS_ONE = """
import time
from gradbed.common.resources import scratch_folder
with scratch_folder("trial") as folder:
    (folder / "links.csv").write_text("1")
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_what_is_in_it_ends_with_it() -> None:
    with scratch_folder("bench") as folder:
        (folder / "programs").mkdir()
        assert folder.name.startswith("gradbed-bench-")
    assert not folder.exists()


def test_it_is_never_there_with_a_lock_that_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between making the folder and locking it another process sweeps."""
    locked = fcntl.flock

    def swept_first(lock: IO[str], operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", locked)
        sweep()
        locked(lock, operation)

    monkeypatch.setattr(fcntl, "flock", swept_first)
    monkeypatch.setattr("gradbed.common.resources.sweep", lambda *_: None)
    with scratch_folder() as folder:
        assert (folder / LOCK).exists()


def test_the_next_one_sweeps_what_a_killed_process_left(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KEEPS_ONE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        left = Path(process.stdout.readline().strip())
        sweep()
        assert (left / "links.csv").exists(), "its process lives"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert left.exists()
    with scratch_folder() as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_in_a_folder_of_the_users_those_of_its_purpose_alone_are_swept(tmp_path: Path) -> None:
    """Their own folder may be called gradbed-2, and have a lock."""
    for name in ("gradbed-2", "gradbed-docs-1"):
        (tmp_path / "mine" / name).mkdir(parents=True)
        (tmp_path / "mine" / name / LOCK).touch()
    with scratch_folder("docs", tmp_path / "mine") as folder:
        assert {path.name for path in (tmp_path / "mine").iterdir()} == {"gradbed-2", folder.name}


def test_other_things_of_that_name_stay(tmp_path: Path) -> None:
    (tmp_path / "gradbed-notes").mkdir()
    (tmp_path / "gradbed-1.txt").write_text("mine")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / LOCK).touch()
    (tmp_path / "gradbed-link").symlink_to(outside)
    sweep()
    assert {path.name for path in tmp_path.iterdir()} == {"gradbed-notes", "gradbed-1.txt", "gradbed-link", "outside"}
    assert (outside / LOCK).exists()
