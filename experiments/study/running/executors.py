"""Where trials run: one by one in sandboxes of this machine (real clock), in parallel processes, or on the workers of
a Dask scheduler (virtual clock).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gradbed.common.errors import ProcessLost, UserError
from gradbed.common.resources import scratch_folder
from gradbed.common.signals import die_with_parent
from gradbed.experiments.configuration.trial import TrialConfiguration
from gradbed.experiments.engine.observer import NO_OBSERVER, TrialObserver
from gradbed.experiments.results.run_folder import TrialRecord
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.running.concurrent_trials import ConcurrentExecutor
from gradbed.experiments.study.running.distributed import DaskExecutor, dask_client
from gradbed.experiments.study.running.sandboxed import SandboxedExecutor, run_sandboxed
from gradbed.experiments.study.running.worker import BrokenTrial, Outcome, outcome_of, run_task, run_task_as_json


def run_single_trial(
    system: str,
    configuration: TrialConfiguration,
    scale: Scale,
    seed: int = 1,
    observer: TrialObserver = NO_OBSERVER,
    threads: int = 1,
) -> TrialRecord:
    """Run one trial outside any study.

    Args:
        system: Name of the system.
        configuration: What the trial runs on.
        scale: Scale of the network.
        seed: Seed of all that is random.
        observer: Receives callbacks while the trial runs.
        threads: As of TrialTask.

    Raises:
        UserError: The trial broke.
    """
    with scratch_folder("trial") as folder:
        task = TrialTask(configuration, seed, scale, folder, threads=threads, system=system, digest="trial")
        run = run_sandboxed if configuration.clock == "real" else run_task
        outcome = run(task, observer=observer)
    if isinstance(outcome, BrokenTrial):
        raise (ProcessLost if outcome.is_lost else UserError)(outcome.reason)
    return outcome


class Executor(Protocol):
    """Runs tasks and yields each with its outcome, as they end."""

    def results(self, on_start: Callable[[TrialTask], None]) -> Iterator[tuple[TrialTask, Outcome]]: ...


@dataclass(frozen=True)
class RunOptions:
    """Options of a run of any study."""

    output: Path = Path("results")
    resume: bool = False
    """Go on in the folder of the newest run that was to make these trials, with those that failed or were invalid
    once more and last."""
    factor: float | None = None
    """Scale to use instead of this machine's (gradbed.experiments.scale)."""
    jobs: int | None = None
    """Trials in parallel on the virtual clock; None: as many as there are processors."""
    scheduler: str | None = None
    """Address of a Dask scheduler whose workers run the trials on the virtual clock."""
    pcap: tuple[str, ...] = ()
    """Links and hosts to be captured, in place of what the study says."""
    observer: TrialObserver | None = None
    """With one, trials run one after the other."""
    threads: int = 1
    """Of each trial, as of TrialTask."""
    prepare_network: Callable[[], None] = lambda: None
    """Called before anything is begun where a trial runs on the real clock, so that the command line installs what
    that takes."""


@contextlib.contextmanager
def open_executor(tasks: Sequence[TrialTask], options: RunOptions) -> Iterator[Executor]:
    """Yield the executor for these tasks.

    Those on the virtual clock come first: nothing else may run on the machine while others run in real time. Of two,
    one runs concurrently with the other, and stands still while that measures.
    """
    real = [task for task in tasks if task.configuration.clock == "real"]
    virtual = [task for task in tasks if task.configuration.clock != "real"]
    observer, scheduler = options.observer, options.scheduler
    if real and (scheduler is not None or (options.jobs or 1) > 1):
        print("gradbed: with the real clock trials run one by one on this machine", file=sys.stderr)
    with contextlib.ExitStack() as stack:
        executors: list[Executor] = []
        if len(real) == len(virtual) == 1 and scheduler is None and observer is None:
            yield ConcurrentExecutor(*virtual, *real)
            return
        if virtual and scheduler is not None:
            executors.append(DaskExecutor(virtual, stack.enter_context(dask_client(scheduler))))
        elif virtual and observer is not None:
            executors.append(SequentialExecutor(virtual, observer))
        elif virtual:
            executors.append(ParallelExecutor(virtual, options.jobs or len(os.sched_getaffinity(0))))
        if real:
            executors.append(SandboxedExecutor(real, observer or NO_OBSERVER))
        yield executors[0] if len(executors) == 1 else ChainedExecutor(executors)


class ChainedExecutor:
    """Several executors, one after the other."""

    def __init__(self, executors: Sequence[Executor]) -> None:
        self._executors = executors

    def results(self, on_start: Callable[[TrialTask], None]) -> Iterator[tuple[TrialTask, Outcome]]:
        for each in self._executors:
            yield from each.results(on_start)


class SequentialExecutor:
    """Trials one after the other in this process, with an observer (virtual clock)."""

    def __init__(self, tasks: Sequence[TrialTask], observer: TrialObserver) -> None:
        self._tasks = tasks
        self._observer = observer

    def results(self, on_start: Callable[[TrialTask], None]) -> Iterator[tuple[TrialTask, Outcome]]:
        for task in self._tasks:
            if len(self._tasks) > 1:
                on_start(task)
            yield task, run_task(task, len(self._tasks) == 1, self._observer)


class ParallelExecutor:
    """Trials in a pool of processes of this machine, which need no root."""

    def __init__(self, tasks: Sequence[TrialTask], jobs: int) -> None:
        self._tasks = tasks
        self._jobs = jobs

    def results(self, on_start: Callable[[TrialTask], None]) -> Iterator[tuple[TrialTask, Outcome]]:
        if len(self._tasks) == 1:
            yield self._tasks[0], run_task(self._tasks[0], bars=True)
            return
        # Spawned, not forked: nothing of this process's threads and caches goes along.
        context = multiprocessing.get_context("spawn")
        jobs = max(1, min(self._jobs, len(self._tasks)))
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare_process, initargs=(os.getpid(),))
        try:
            with _without_main_module():
                futures: dict[Future[dict[str, Any]], TrialTask] = {
                    pool.submit(run_task_as_json, task): task for task in self._tasks
                }
            for future in as_completed(futures):
                yield futures[future], outcome_of(future)
        finally:
            # Interrupted, or told to stop: what runs is of no use any more.
            for process in list((pool._processes or {}).values()):
                process.terminate()
            pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _without_main_module() -> Iterator[None]:
    """Keep processes that are spawned inside from loading this one's script, as they otherwise do.

    Nothing in it is theirs, and a user's script without `if __name__ == "__main__"` would run its studies again in
    each of them.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _prepare_process(parent_pid: int) -> None:
    """Leave Ctrl-C to the parent, and end when the parent is killed."""
    die_with_parent(parent_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
