"""Processes that stand still while another one measures."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from gradbed.experiments.study.running.concurrent_trials import MeasurementLock

FORKING = multiprocessing.get_context("fork")


def work(folder: Path, told: Connection) -> None:
    with MeasurementLock(folder).working() as yield_lock:
        while True:
            told.send("works")
            time.sleep(0.02)
            yield_lock()


def measure(folder: Path, told: Connection) -> None:
    with MeasurementLock(folder).measuring():
        told.send("measures")
        told.recv()
    told.send("done")
    time.sleep(60)


class Started:
    """A process, and what it tells."""

    def __init__(self, target, folder: Path) -> None:  # type: ignore[no-untyped-def]
        self.own, other = FORKING.Pipe()
        self.process = FORKING.Process(target=target, args=(folder, other), daemon=True)
        self.process.start()

    def tells(self, within_s: float = 5.0) -> str | None:
        return self.own.recv() if self.own.poll(within_s) else None

    def is_quiet(self) -> bool:
        """It tells nothing any more; what it told before is dropped."""
        while self.own.poll(0):
            self.own.recv()
        return self.tells(0.3) is None

    def kill(self) -> None:
        assert self.process.pid is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.join()


@pytest.mark.parametrize("is_killed", [False, True])
def test_who_works_stands_still_until_what_is_measured_has_ended(tmp_path: Path, is_killed: bool) -> None:
    workers = [Started(work, tmp_path) for _ in range(2)]
    assert all(each.tells() == "works" for each in workers)
    measurer = Started(measure, tmp_path)
    assert measurer.tells() == "measures"
    late = Started(work, tmp_path)
    assert all(each.is_quiet() for each in (*workers, late))
    if is_killed:
        measurer.kill()
    else:
        measurer.own.send("enough")
        assert measurer.tells() == "done"
    assert all(each.tells() == "works" for each in (*workers, late))


def test_who_measures_waits_for_all_that_work_and_for_none_that_was_killed(tmp_path: Path) -> None:
    lock = MeasurementLock(tmp_path)
    killed = Started(work, tmp_path)
    assert killed.tells() == "works"
    with lock.working() as yield_lock:
        measurer = Started(measure, tmp_path)
        killed.kill()
        assert measurer.tells(0.3) is None
    assert measurer.tells() == "measures"
    measurer.own.send("enough")
    assert measurer.tells() == "done"
    with lock.working() as yield_lock:
        yield_lock()


def test_who_comes_after_one_that_waits_to_measure_waits_for_it(tmp_path: Path) -> None:
    def is_taken(name: str) -> bool:
        with (tmp_path / name).open("a+") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
            return False

    with MeasurementLock(tmp_path).working():
        measurer = Started(measure, tmp_path)
        while not is_taken("entrance"):
            time.sleep(0.01)
        late = Started(work, tmp_path)
        assert late.is_quiet()
    assert measurer.tells() == "measures"
    assert late.is_quiet()
    measurer.own.send("enough")
    assert late.tells() == "works"


def test_one_measures_at_a_time(tmp_path: Path) -> None:
    first, second = Started(measure, tmp_path), Started(measure, tmp_path)
    told = [each.tells(0.5) for each in (first, second)]
    assert sorted(told, key=str) == [None, "measures"]
    running, waiting = (first, second) if told[0] else (second, first)
    running.own.send("enough")
    assert running.tells() == "done"
    assert waiting.tells() == "measures"
