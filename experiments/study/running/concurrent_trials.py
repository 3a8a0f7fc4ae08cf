"""A trial in real time and one on the virtual clock at the same time: the latter runs in a process of its own, which
yields the machine while the other is measured.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradbed.common.resources import scratch_folder
from gradbed.common.signals import die_with_parent
from gradbed.experiments.engine.observer import TrialObserver
from gradbed.experiments.plotting.style import load_drawing
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.running.sandboxed import INTERRUPTED, SandboxedExecutor, read_outcome
from gradbed.experiments.study.running.worker import Outcome, outcome_to_json, run_task
from gradbed.experiments.validity.processes import LAST, catch_up, go_last

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

    from gradbed.experiments.runtimes.interface import Runtime
    from gradbed.experiments.setup import NetworkSetup


# ---- Measurement lock ----


class MeasurementLock:
    """A readers-writer lock of the machine, shared by processes that are given the same folder.

    The process that measures has the machine alone (`measuring`); any number of others work at the same time
    (`working`). A process that waits to measure takes the entrance first, which no other passes from then on, and
    then waits for those that still work. These are file locks: the kernel releases those of a process that is killed.
    """

    def __init__(self, folder: Path) -> None:
        self._entrance = folder / "entrance"
        self._machine = folder / "machine"

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Wait until no process works, and keep them all out."""
        with self._entrance.open("a+") as entrance, self._machine.open("a+") as machine:
            fcntl.lockf(entrance, fcntl.LOCK_EX)
            fcntl.lockf(machine, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def working(self) -> Iterator[Callable[[], None]]:
        """Wait while a process measures; yield a function, to be called often, that lets one in that waits."""
        with self._entrance.open("a+") as entrance, self._machine.open("a+") as machine:

            def yield_lock() -> None:
                fcntl.lockf(machine, fcntl.LOCK_UN)
                fcntl.lockf(entrance, fcntl.LOCK_SH)
                fcntl.lockf(machine, fcntl.LOCK_SH)
                fcntl.lockf(entrance, fcntl.LOCK_UN)

            yield_lock()
            yield yield_lock


# ---- Two trials at the same time ----


_FORKING = multiprocessing.get_context("fork")

_YIELD_INTERVAL_S = 0.01
"""Yielding takes some system calls, and in small networks time advances a hundred thousand times a second."""


class ConcurrentExecutor:
    """Run a trial in real time and one on the virtual clock.

    The latter, and the loading of what a figure needs, take what time the processors have left while the network
    comes up, between measurements, and while the network is torn down.
    """

    def __init__(self, virtual: TrialTask, real: TrialTask) -> None:
        self._virtual = virtual
        self._real = real

    def results(self, on_start: Callable[[TrialTask], None]) -> Iterator[tuple[TrialTask, Outcome]]:
        with scratch_folder("trial") as folder:
            lock, file = MeasurementLock(folder), folder / "outcome.json"
            with _forked(self._virtual, file, lock) as process:
                real = SandboxedExecutor(
                    [self._real], _Measuring(lock), ignored_pid=process.pid, meanwhile=lambda: _load_drawing(lock)
                )
                yield from real.results(on_start)
                if process.pid is not None:
                    # No one has waited for it yet: the pid is its own.
                    catch_up(process.pid)
                process.join()
                yield self._virtual, read_outcome(file, process.exitcode)


def _load_drawing(lock: MeasurementLock) -> None:
    """Load the drawing library, in a thread of its own."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LAST)
    with lock.working():
        load_drawing()


class _Measuring(TrialObserver):
    """Holds the lock while a phase is measured."""

    def __init__(self, lock: MeasurementLock) -> None:
        self._lock = lock

    def measuring(self) -> AbstractContextManager[None]:
        return self._lock.measuring()


class _Yielding(TrialObserver):
    """Yields the lock while time advances in the network. Elsewhere it may hold what the other trial waits for, such
    as the lock of a program that is being built."""

    def __init__(self, yield_lock: Callable[[], None]) -> None:
        self._yield_lock = yield_lock
        self._last_s = 0.0

    def on_network_up(self, runtime: Runtime, network: NetworkSetup, task: TrialTask[Any], system: str) -> None:
        from gradbed.experiments.runtimes.virtual import VirtualRuntime

        assert isinstance(runtime, VirtualRuntime)
        runtime.add_step_hook(self._on_step)

    def _on_step(self) -> None:
        if (now_s := time.monotonic()) >= self._last_s + _YIELD_INTERVAL_S:
            self._yield_lock()
            self._last_s = now_s


@contextlib.contextmanager
def _forked(task: TrialTask, file: Path, lock: MeasurementLock) -> Iterator[ForkProcess]:
    """Yield a process that runs a trial and writes the outcome to a file. Forked: what it needs is loaded here."""
    # Ctrl-C waits until both know how to deal with it.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    process = _FORKING.Process(target=_run_forked, args=(task, file, lock, mask, os.getpid()))
    try:
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        yield process
    finally:
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGINT)
            process.join()


def _run_forked(
    task: TrialTask, file: Path, lock: MeasurementLock, mask: set[signal.Signals], parent_pid: int
) -> None:
    die_with_parent(parent_pid)
    gc.freeze()
    go_last()
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        with lock.working() as yield_lock:
            outcome = run_task(task, observer=_Yielding(yield_lock))
        file.write_text(json.dumps(outcome_to_json(outcome)), encoding="utf-8")
    except KeyboardInterrupt:
        # It may come twice: from the terminal, and from the parent.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(INTERRUPTED)
