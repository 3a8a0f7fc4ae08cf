"""Where points run: processes of their own, one beside a sandbox, or the workers of a Dask scheduler."""

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
from gradbed.experiments.engine.onlooker import Onlooker
from gradbed.experiments.study.running import beside, on_dask, sandboxed
from gradbed.experiments.study.running.attempt import Broken, Outcome
from gradbed.experiments.study.running.execution import SideBySide, executor
from gradbed.experiments.study.running.measure import PointOrder
from gradbed.experiments.study.running.on_dask import OnDask, dask_client
from gradbed.experiments.study.running.sandboxed import belongings
from gradbed.experiments.testbeds.virtual_testbed import VirtualTestbed
from tests.unit.experiments.virtual_points import configuration

ROOT = Path(__file__).resolve().parents[4]

LONG_STUDY = """
import sys, threading, time
from pathlib import Path
from gradbed.experiments.study.running import execution
from gradbed.experiments.study.running.execution import SideBySide
from tests.unit.experiments.study.test_execution import orders

if __name__ == "__main__":
    for _ in SideBySide(orders(Path(sys.argv[1]), (1, 2), rounds=1_000_000), 2).results(lambda order: None):
        pass
"""


def orders(folder: Path, seeds: tuple[int, ...], **workload: int) -> list[PointOrder]:
    plain = configuration(workload=workload).model_dump(mode="json")
    return [PointOrder(str(seed), "aggregation", plain, seed, 1.0, folder / str(seed)) for seed in seeds]


def of_both_clocks(folder: Path) -> list[PointOrder]:
    virtual, real = orders(folder, (1, 2))
    return [replace(real, configuration={**real.configuration, "clock": "real"}), virtual]


def looked_at(onlooker: Onlooker) -> Callable[[], None]:
    """What is called while the time of a network goes on."""
    looks: list[Callable[[], None]] = []
    testbed = create_autospec(VirtualTestbed, instance=True)
    testbed.look_often = looks.append
    onlooker.network_is_up(testbed, Mock(), Mock(), "")
    return looks[0]


def counting(counted: Path) -> Callable[..., Outcome]:
    """A point whose time goes on, and each time it adds a byte to a file, until the file is removed. Not for long:
    a test ends in which it gives no way."""

    def point(order: PointOrder, onlooker: Onlooker) -> Outcome:
        look = looked_at(onlooker)
        end_s = time.monotonic() + 90
        while counted.exists() and time.monotonic() < end_s:
            with counted.open("ab") as file:
                file.write(b".")
            look()
        return Broken(f"seed {order.seed}", "")

    return point


@pytest.mark.thorough
def test_a_point_on_the_virtual_clock_stands_still_while_the_other_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = tmp_path / "counted"
    counted.touch()
    loaded: list[int] = []

    def goes_on(within_s: float = 20) -> bool:
        """Whether the file grows. It takes a while where others keep the processors busy: the point comes last."""
        size, end_s = counted.stat().st_size, time.monotonic() + within_s
        while time.monotonic() < end_s and counted.stat().st_size == size:
            time.sleep(0.01)
        return counted.stat().st_size > size

    def real(order: PointOrder, bars: bool, onlooker: Onlooker, aside: int, meanwhile: Callable[[], None]) -> Outcome:
        meanwhile()
        found = [goes_on()]
        for _ in range(2):
            with onlooker.measuring():
                found.append(goes_on(0.3))
            found.append(goes_on())
        niceness = os.getpriority(os.PRIO_PROCESS, aside)
        session = Path(f"/proc/{aside}/autogroup")
        if session.exists():
            assert session.read_text().endswith(f"nice {niceness}\n")
        assert os.getsid(aside) == aside
        counted.unlink()
        return Broken(f"{found} {niceness}", "")

    monkeypatch.setattr(beside, "attempt", counting(counted))
    monkeypatch.setattr(beside, "load_drawing", lambda: loaded.append(os.getpriority(os.PRIO_PROCESS, 0)))
    outcomes = both(tmp_path, monkeypatch, real)
    assert outcomes == [Broken("[True, False, True, False, True] 19", ""), Broken("seed 1", "")]
    assert loaded == [19]


def both(folder: Path, monkeypatch: pytest.MonkeyPatch, real: Callable[..., Outcome]) -> list[Outcome]:
    """Outcomes of the real clock's point and the virtual one's."""

    def aside(*arguments: Any, **options: Any) -> Outcome:
        # In a thread of its own, as in run_in_sandbox.
        with ThreadPoolExecutor(1) as pool:
            meanwhile = options.pop("meanwhile")
            return real(*arguments, **options, meanwhile=lambda: pool.submit(meanwhile).result())

    monkeypatch.setattr(sandboxed, "run_sandboxed", aside)
    with executor(of_both_clocks(folder), None, None) as running:
        return [outcome for _, outcome in running.results(lambda _: None)]


@pytest.mark.thorough
def test_what_the_other_of_two_points_starts_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"

    def virtual(order: PointOrder, onlooker: Onlooker) -> Outcome:
        wait_for(lambda: [begun] * begun.exists(), 1)
        with subprocess.Popen(["sleep", "60"]) as compiler:
            started.touch()
            wait_for(lambda: [looked] * looked.exists(), 1)
            compiler.kill()
        return Broken("ended", "")

    def real(order: PointOrder, bars: bool, onlooker: Any, aside: int, meanwhile: Any) -> Outcome:
        before = belongings(aside=aside)
        begun.touch()
        wait_for(lambda: [started] * started.exists(), 1)
        found = belongings(aside=aside) - before, bool(belongings() - before)
        looked.touch()
        return Broken(str(found), "")

    begun, looked = tmp_path / "begun", tmp_path / "looked"
    monkeypatch.setattr(beside, "attempt", virtual)
    assert both(tmp_path, monkeypatch, real) == [Broken(str((frozenset(), True)), ""), Broken("ended", "")]


@pytest.mark.parametrize("is_measuring", [False, True])
def test_ctrl_c_ends_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], is_measuring: bool
) -> None:
    begun, tidied = tmp_path / "begun", tmp_path / "tidied"

    def virtual(order: PointOrder, onlooker: Onlooker) -> Outcome:
        look = looked_at(onlooker)
        begun.touch()
        try:
            while True:
                time.sleep(0.01)
                look()
        finally:
            tidied.touch()

    def real(order: PointOrder, bars: bool, onlooker: Onlooker, aside: int, meanwhile: Any) -> Outcome:
        wait_for(lambda: [begun] * begun.exists(), 1)
        if not is_measuring:
            raise KeyboardInterrupt
        with onlooker.measuring():
            raise KeyboardInterrupt

    monkeypatch.setattr(beside, "attempt", virtual)
    with pytest.raises(KeyboardInterrupt):
        both(tmp_path, monkeypatch, real)
    assert tidied.exists()
    assert capfd.readouterr() == ("", "")


@pytest.mark.thorough
def test_workers_of_dask_find_what_this_process_does(tmp_path: Path) -> None:
    here = {order.digest: outcome for order, outcome in SideBySide(orders(tmp_path, (1,)), 1).results(lambda _: None)}
    with dask_client("local") as client:
        there = {
            order.digest: outcome
            for order, outcome in OnDask(orders(tmp_path, (1, 2)), client).results(lambda _: None)
        }
        wrong = orders(tmp_path, (3,), workers=40)
        ((_, broken),) = OnDask(wrong, client).results(lambda _: None)
    assert set(there) == {"1", "2"}
    assert not isinstance(there["1"], Broken) and not isinstance(here["1"], Broken)
    assert asdict(there["1"]) == asdict(here["1"])
    assert isinstance(broken, Broken) and "workers" in broken.reason


def test_a_scheduler_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_dask, "SCHEDULER_TIMEOUT", "1s")
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

    class AndGone(OnDask):
        def _ended(self) -> list[Any]:
            if self._running:
                scheduler.kill()
            return super()._ended()

    try:
        wait_for(lambda: [told] * told.exists(), 1, patience_s=300)
        address = json.loads(told.read_text())["address"]
        long_point = orders(tmp_path, (1,), rounds=1_000_000)
        with (
            pytest.raises(UserError, match="the Dask scheduler is gone; every point that was done is kept"),
            dask_client(address) as client,
        ):
            list(AndGone(long_point, client).results(lambda _: None))
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
