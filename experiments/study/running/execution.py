"""Where points run: one by one in sandboxes of this machine (real clock), side by side in processes of their own, or
on the workers of a Dask scheduler (virtual clock)."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import Any, Protocol

from gradbed.common.errors import ProcessLost, UserError
from gradbed.common.scratch import scratch_folder
from gradbed.common.signals import die_with_parent
from gradbed.experiments.configuration.point import PointConfiguration
from gradbed.experiments.engine.onlooker import NOBODY, Onlooker
from gradbed.experiments.records.run_folder import StoredPoint
from gradbed.experiments.scale import Scale
from gradbed.experiments.study.running.attempt import Broken, Outcome, attempt, attempt_plain, outcome_of
from gradbed.experiments.study.running.beside import Beside
from gradbed.experiments.study.running.measure import PointOrder
from gradbed.experiments.study.running.on_dask import OnDask, dask_client
from gradbed.experiments.study.running.sandboxed import OneByOne, run_sandboxed


def run_now(
    system: str,
    configuration: PointConfiguration,
    scale: Scale,
    seed: int = 1,
    onlooker: Onlooker = NOBODY,
    threads: int = 1,
) -> StoredPoint:
    """One point, outside any study; UserError if it breaks. threads: as of PointTask."""
    with scratch_folder("point") as folder:
        plain = configuration.model_dump(mode="json")
        order = PointOrder("point", system, plain, seed, scale.factor, folder, threads=threads)
        run = run_sandboxed if configuration.clock == "real" else attempt
        outcome = run(order, onlooker=onlooker)
    if isinstance(outcome, Broken):
        raise (ProcessLost if outcome.is_lost else UserError)(outcome.reason)
    return outcome


class Executor(Protocol):
    """Runs orders and yields each with its outcome, as they end."""

    def results(self, on_start: Callable[[PointOrder], None]) -> Iterator[tuple[PointOrder, Outcome]]: ...


@contextlib.contextmanager
def executor(
    orders: Sequence[PointOrder], jobs: int | None, scheduler: str | None, onlooker: Onlooker | None = None
) -> Iterator[Executor]:
    """The executor for these orders. onlooker: somebody before whom points run one after the other.

    Those on the virtual clock come first: nothing else may run on the machine while others run in real time. Of two,
    one runs beside the other, and stands still while that measures."""
    real = [order for order in orders if order.configuration["clock"] == "real"]
    virtual = [order for order in orders if order.configuration["clock"] != "real"]
    if real and (scheduler is not None or (jobs or 1) > 1):
        print("gradbed: with the real clock points run one by one on this machine", file=sys.stderr)
    with contextlib.ExitStack() as stack:
        executors: list[Executor] = []
        if len(real) == len(virtual) == 1 and scheduler is None and onlooker is None:
            yield Beside(*virtual, *real)
            return
        if virtual and scheduler is not None:
            executors.append(OnDask(virtual, stack.enter_context(dask_client(scheduler))))
        elif virtual and onlooker is not None:
            executors.append(OneAfterTheOther(virtual, onlooker))
        elif virtual:
            executors.append(SideBySide(virtual, jobs or len(os.sched_getaffinity(0))))
        if real:
            executors.append(OneByOne(real, onlooker or NOBODY))
        yield executors[0] if len(executors) == 1 else InTurn(executors)


class InTurn:
    """One executor after the other; none where there is nothing to do."""

    def __init__(self, executors: Sequence[Executor]) -> None:
        self._executors = executors

    def results(self, on_start: Callable[[PointOrder], None]) -> Iterator[tuple[PointOrder, Outcome]]:
        for each in self._executors:
            yield from each.results(on_start)


class OneAfterTheOther:
    """In this process, before somebody who looks on (virtual clock)."""

    def __init__(self, orders: Sequence[PointOrder], onlooker: Onlooker) -> None:
        self._orders = orders
        self._onlooker = onlooker

    def results(self, on_start: Callable[[PointOrder], None]) -> Iterator[tuple[PointOrder, Outcome]]:
        for order in self._orders:
            if len(self._orders) > 1:
                on_start(order)
            yield order, attempt(order, len(self._orders) == 1, self._onlooker)


class SideBySide:
    """So many processes of this machine, which need not be root's."""

    def __init__(self, orders: Sequence[PointOrder], jobs: int) -> None:
        self._orders = orders
        self._jobs = jobs

    def results(self, on_start: Callable[[PointOrder], None]) -> Iterator[tuple[PointOrder, Outcome]]:
        if len(self._orders) == 1:
            yield self._orders[0], attempt(self._orders[0], bars=True)
            return
        # Spawned, not forked: nothing of this process's threads and caches goes along.
        context = multiprocessing.get_context("spawn")
        jobs = max(1, min(self._jobs, len(self._orders)))
        pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_prepare_process, initargs=(os.getpid(),))
        try:
            with _without_main_module():
                futures: dict[Future[dict[str, Any]], PointOrder] = {
                    pool.submit(attempt_plain, order): order for order in self._orders
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
    """Processes that are spawned inside do not load this one's script, as they otherwise do: nothing in it is theirs,
    and a user's script without `if __name__ == "__main__"` would run its studies again in each of them."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _prepare_process(parent_pid: int) -> None:
    """Ctrl-C is the parent's to deal with; when the parent is killed, there is nobody to work for."""
    die_with_parent(parent_pid)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
