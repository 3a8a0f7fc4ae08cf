"""Where trials run: processes of their own, one beside a sandbox, or the workers of a Dask scheduler."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, create_autospec

import pytest

from gradbed.common.errors import UserError
from gradbed.experiments.engine.observer import TrialObserver
from gradbed.experiments.runtimes.virtual import VirtualRuntime
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.running import concurrent_trials, distributed, sandboxed
from gradbed.experiments.study.running.distributed import DaskExecutor, dask_client
from gradbed.experiments.study.running.executors import ParallelExecutor, RunOptions, open_executor
from gradbed.experiments.study.running.sandboxed import resources
from gradbed.experiments.study.running.worker import BrokenTrial, Outcome
from tests.unit.experiments.virtual_trials import configuration

ROOT = Path(__file__).resolve().parents[4]

LONG_STUDY = """
import sys, threading, time
from pathlib import Path
from gradbed.experiments.study.running.executors import ParallelExecutor
from tests.unit.experiments.study.test_execution import tasks

if __name__ == "__main__":
    for _ in ParallelExecutor(tasks(Path(sys.argv[1]), (1, 2), rounds=1_000_000), 2).results(lambda task: None):
        pass
"""


def tasks(folder: Path, seeds: tuple[int, ...], **workload: int) -> list[TrialTask]:
    configured = configuration(workload=workload)
    return [
        TrialTask(configured, seed, Scale(), folder / str(seed), system="aggregation", digest=str(seed))
        for seed in seeds
    ]


def of_both_clocks(folder: Path) -> list[TrialTask]:
    virtual, real = tasks(folder, (1, 2))
    return [replace(real, configuration=real.configuration.model_copy(update={"clock": "real"})), virtual]


def looked_at(observer: TrialObserver) -> Callable[[], None]:
    """What is called while the time of a network goes on."""
    looks: list[Callable[[], None]] = []
    runtime = create_autospec(VirtualRuntime, instance=True)
    runtime.add_step_hook = looks.append
    observer.on_network_up(runtime, Mock(), Mock(), "")
    return looks[0]


def counting(counted: Path) -> Callable[..., Outcome]:
    """A trial whose time goes on, and each time it adds a byte to a file, until the file is removed. Not for long:
    a test ends in which it gives no way."""

    def trial(task: TrialTask, observer: TrialObserver) -> Outcome:
        look = looked_at(observer)
        end_s = time.monotonic() + 90
        while counted.exists() and time.monotonic() < end_s:
            with counted.open("ab") as file:
                file.write(b".")
            look()
        return BrokenTrial(f"seed {task.seed}", "")

    return trial


@pytest.mark.thorough
def test_a_trial_on_the_virtual_clock_stands_still_while_the_other_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = tmp_path / "counted"
    counted.touch()
    loaded: list[int] = []

    def goes_on(within_s: float = 20) -> bool:
        """Whether the file grows. It takes a while where others keep the processors busy: the trial comes last."""
        size, end_s = counted.stat().st_size, time.monotonic() + within_s
        while time.monotonic() < end_s and counted.stat().st_size == size:
            time.sleep(0.01)
        return counted.stat().st_size > size

    def real(
        task: TrialTask, bars: bool, observer: TrialObserver, ignored_pid: int, meanwhile: Callable[[], None]
    ) -> Outcome:
        meanwhile()
        found = [goes_on()]
        for _ in range(2):
            with observer.measuring():
                found.append(goes_on(0.3))
            found.append(goes_on())
        niceness = os.getpriority(os.PRIO_PROCESS, ignored_pid)
        session = Path(f"/proc/{ignored_pid}/autogroup")
        if session.exists():
            assert session.read_text().endswith(f"nice {niceness}\n")
        assert os.getsid(ignored_pid) == ignored_pid
        counted.unlink()
        return BrokenTrial(f"{found} {niceness}", "")

    monkeypatch.setattr(concurrent_trials, "run_task", counting(counted))
    monkeypatch.setattr(concurrent_trials, "load_drawing", lambda: loaded.append(os.getpriority(os.PRIO_PROCESS, 0)))
    outcomes = both(tmp_path, monkeypatch, real)
    assert outcomes == [BrokenTrial("[True, False, True, False, True] 19", ""), BrokenTrial("seed 1", "")]
    assert loaded == [19]


def both(folder: Path, monkeypatch: pytest.MonkeyPatch, real: Callable[..., Outcome]) -> list[Outcome]:
    """Outcomes of the real clock's trial and the virtual one's."""

    def aside(*arguments: Any, **options: Any) -> Outcome:
        # In a thread of its own, as in run_in_sandbox.
        with ThreadPoolExecutor(1) as pool:
            meanwhile = options.pop("meanwhile")
            return real(*arguments, **options, meanwhile=lambda: pool.submit(meanwhile).result())

    monkeypatch.setattr(sandboxed, "run_sandboxed", aside)
    with open_executor(of_both_clocks(folder), RunOptions()) as running:
        return [outcome for _, outcome in running.results(lambda _: None)]


@pytest.mark.thorough
def test_what_the_other_of_two_trials_starts_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"

    def virtual(task: TrialTask, observer: TrialObserver) -> Outcome:
        wait_for(lambda: [begun] * begun.exists(), 1)
        with subprocess.Popen(["sleep", "60"]) as compiler:
            started.touch()
            wait_for(lambda: [looked] * looked.exists(), 1)
            compiler.kill()
        return BrokenTrial("ended", "")

    def real(task: TrialTask, bars: bool, observer: Any, ignored_pid: int, meanwhile: Any) -> Outcome:
        before = resources(ignored_pid=ignored_pid)
        begun.touch()
        wait_for(lambda: [started] * started.exists(), 1)
        found = resources(ignored_pid=ignored_pid) - before, bool(resources() - before)
        looked.touch()
        return BrokenTrial(str(found), "")

    begun, looked = tmp_path / "begun", tmp_path / "looked"
    monkeypatch.setattr(concurrent_trials, "run_task", virtual)
    assert both(tmp_path, monkeypatch, real) == [BrokenTrial(str((frozenset(), True)), ""), BrokenTrial("ended", "")]


@pytest.mark.parametrize("is_measuring", [False, True])
def test_ctrl_c_ends_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], is_measuring: bool
) -> None:
    begun, tidied = tmp_path / "begun", tmp_path / "tidied"

    def virtual(task: TrialTask, observer: TrialObserver) -> Outcome:
        look = looked_at(observer)
        begun.touch()
        try:
            while True:
                time.sleep(0.01)
                look()
        finally:
            tidied.touch()

    def real(task: TrialTask, bars: bool, observer: TrialObserver, ignored_pid: int, meanwhile: Any) -> Outcome:
        wait_for(lambda: [begun] * begun.exists(), 1)
        if not is_measuring:
            raise KeyboardInterrupt
        with observer.measuring():
            raise KeyboardInterrupt

    monkeypatch.setattr(concurrent_trials, "run_task", virtual)
    with pytest.raises(KeyboardInterrupt):
        both(tmp_path, monkeypatch, real)
    assert tidied.exists()
    assert capfd.readouterr() == ("", "")


@pytest.mark.thorough
def test_workers_of_dask_find_what_this_process_does(tmp_path: Path) -> None:
    here = {
        task.digest: outcome for task, outcome in ParallelExecutor(tasks(tmp_path, (1,)), 1).results(lambda _: None)
    }
    with dask_client("local") as client:
        there = {
            task.digest: outcome
            for task, outcome in DaskExecutor(tasks(tmp_path, (1, 2)), client).results(lambda _: None)
        }
        wrong = tasks(tmp_path, (3,), workers=40)
        ((_, broken),) = DaskExecutor(wrong, client).results(lambda _: None)
    assert set(there) == {"1", "2"}
    assert not isinstance(there["1"], BrokenTrial) and not isinstance(here["1"], BrokenTrial)
    assert asdict(there["1"]) == asdict(here["1"])
    assert isinstance(broken, BrokenTrial) and "workers" in broken.reason


def test_a_scheduler_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributed, "SCHEDULER_TIMEOUT", "1s")
    with (
        pytest.raises(UserError, match=r"--scheduler: no Dask scheduler answers at tcp://127.0.0.1:1 \("),
        dask_client("tcp://127.0.0.1:1"),
    ):
        pass


@pytest.mark.nightly
def test_a_scheduler_that_goes_is_one_line(tmp_path: Path) -> None:
    told = tmp_path / "scheduler.json"
    scheduler = dask("scheduler", "--port", "0", "--scheduler-file", str(told))
    worker = dask("worker", "--no-nanny", "--nthreads", "1", "--scheduler-file", str(told))

    class AndGone(DaskExecutor):
        def _ended(self) -> list[Any]:
            if self._running:
                scheduler.kill()
            return super()._ended()

    try:
        wait_for(lambda: [told] * told.exists(), 1, patience_s=300)
        address = json.loads(told.read_text())["address"]
        long_trial = tasks(tmp_path, (1,), rounds=1_000_000)
        with (
            pytest.raises(UserError, match="the Dask scheduler is gone; every trial that was done is kept"),
            dask_client(address) as client,
        ):
            list(AndGone(long_trial, client).results(lambda _: None))
    finally:
        scheduler.kill()
        worker.kill()


def dask(what: str, *options: str) -> subprocess.Popen[bytes]:
    module = f"distributed.cli.dask_{what}"
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", module, "--host", "127.0.0.1", "--no-dashboard", *options], env=here
    )


@pytest.mark.thorough
def test_a_study_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    script = tmp_path / "long_study.py"
    script.write_text(LONG_STUDY)
    study = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)], env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path
    )
    try:
        workers = wait_for(lambda: [pid for pid in children(study.pid) if is_worker(pid)], 2)
        study.send_signal(signal.SIGTERM)
        assert study.wait(10) == -signal.SIGTERM
        wait_for(lambda: [pid for pid in workers if not is_worker(pid)], 2)
    finally:
        study.kill()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_worker(pid: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def wait_for(found, count: int, patience_s: float = 30.0):  # type: ignore[no-untyped-def]
    end = time.monotonic() + patience_s
    while len(values := found()) < count:
        assert time.monotonic() < end, values
        time.sleep(0.05)
    return values
