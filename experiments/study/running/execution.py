"""Where points run: one by one in sandboxes of this machine (real clock), side by side in processes of their own, or
on the workers of a Dask scheduler (virtual clock)."""

from __future__ import annotations

import contextlib
import gc
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from common.errors import UserError
from common.scratch import scratch_folder
from common.signals import die_with_parent
from experiments.configuration.point import PointConfiguration
from experiments.engine.onlooker import NOBODY, Onlooker
from experiments.plotting.style import load_drawing
from experiments.records.run_files import StoredPoint
from experiments.scale import Scale
from experiments.study.running.attempt import (
    Broken,
    Outcome,
    as_plain,
    attempt,
    attempt_plain,
    from_plain,
    outcome_of,
)
from experiments.study.running.leftovers import belongings, left_since, own_orphans
from experiments.study.running.measure import PointOrder
from experiments.study.running.on_dask import OnDask, dask_client

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess
    from multiprocessing.synchronize import Event

INTERRUPTED = 130
TERMINATED = 128 + 15
USER_ERROR = 2

_FORKING = multiprocessing.get_context("fork")


def run_now(
    system: str, configuration: PointConfiguration, scale: Scale, seed: int = 1, onlooker: Onlooker = NOBODY
) -> StoredPoint:
    """One point, outside any study; UserError if it breaks."""
    with scratch_folder("point") as folder:
        plain = configuration.model_dump(mode="json")
        order = PointOrder("point", system, plain, seed, scale.factor, folder)
        run = run_sandboxed if configuration.clock == "real" else attempt
        outcome = run(order, onlooker=onlooker)
    if isinstance(outcome, Broken):
        raise UserError(outcome.reason)
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
    one runs while the other's network is taken down."""
    real = [order for order in orders if order.configuration["clock"] == "real"]
    virtual = [order for order in orders if order.configuration["clock"] != "real"]
    if real and (scheduler is not None or (jobs or 1) > 1):
        print("gradbed: with the real clock points run one by one on this machine", file=sys.stderr)
    with contextlib.ExitStack() as stack:
        executors: list[Executor] = []
        if len(real) == len(virtual) == 1 and scheduler is None and onlooker is None:
            yield WhileTakingDown(*virtual, *real)
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


class WhileTakingDown:
    """A point in real time, and one on the virtual clock in a process of its own, which begins when the other has
    measured all and its network goes: while rounds of the real clock run, nothing else may."""

    def __init__(self, virtual: PointOrder, real: PointOrder) -> None:
        self._virtual = virtual
        self._real = real

    def results(self, on_start: Callable[[PointOrder], None]) -> Iterator[tuple[PointOrder, Outcome]]:
        begin = _FORKING.Event()
        with (
            scratch_folder("point") as folder,
            _forked(self._virtual, folder / "outcome.json", begin) as process,
        ):
            # Of several attempts none is known to be the last while its network goes.
            onlooker = _NetworkGoes(begin) if self._real.attempts == 1 else NOBODY
            yield from OneByOne([self._real], onlooker, aside=process.pid).results(on_start)
            begin.set()
            load_drawing()
            process.join()
            yield self._virtual, _told(folder / "outcome.json", process.exitcode)


class _NetworkGoes(Onlooker):
    def __init__(self, begin: Event) -> None:
        self._begin = begin

    def network_goes(self) -> None:
        self._begin.set()


@contextlib.contextmanager
def _forked(order: PointOrder, told: Path, begin: Event) -> Iterator[ForkProcess]:
    """A process that runs a point once it is to begin, and writes the outcome to a file. Forked: what it needs is
    loaded here."""
    # Ctrl-C waits until both know how to deal with it.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    process = _FORKING.Process(target=_tell, args=(order, told, begin, mask, os.getpid()))
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


def _tell(order: PointOrder, told: Path, begin: Event, mask: set[signal.Signals], parent_pid: int) -> None:
    die_with_parent(parent_pid)
    gc.freeze()
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        begin.wait()
        told.write_text(json.dumps(attempt_plain(order)), encoding="utf-8")
    except KeyboardInterrupt:
        # It may come twice: from the terminal, and from the parent.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(INTERRUPTED)


def _told(told: Path, status: int | None) -> Outcome:
    if not told.exists():
        return Broken(f"the run ended with status {status}", f"status {status}")
    return from_plain(json.loads(told.read_text(encoding="utf-8")))


class OneByOne:
    """Each point in a sandbox of its own, as root, as often as its order says. A single one shows how far it is."""

    def __init__(self, orders: Sequence[PointOrder], onlooker: Onlooker = NOBODY, aside: int | None = None) -> None:
        self._orders = orders
        self._onlooker = onlooker
        self._aside = aside

    def results(self, on_start: Callable[[PointOrder], None]) -> Iterator[tuple[PointOrder, Outcome]]:
        alone = len(self._orders) == 1
        for order in self._orders:
            if not alone:
                on_start(order)
            for _ in range(order.attempts):
                outcome = run_sandboxed(order, alone, self._onlooker, self._aside)
                if isinstance(outcome, Broken) or outcome.row["verdict"] == "valid":
                    break
            yield order, outcome


def run_sandboxed(
    order: PointOrder, bars: bool = False, onlooker: Onlooker = NOBODY, aside: int | None = None
) -> Outcome:
    """One point in a sandbox of its own. KeyboardInterrupt if it was interrupted. It fails if anything is left
    behind, in the sandbox, which would take it away, or outside. aside: a process that does something else."""
    from common.sandbox import run_in_sandbox

    with scratch_folder("point") as folder, own_orphans(), _frozen():
        told, temporary = folder / "outcome.json", folder / "tmp"
        temporary.mkdir()
        before = belongings(aside=aside)

        def body() -> int:
            tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
            with own_orphans():
                at_first = belongings(temporary)
                outcome = _tidy(attempt(order, bars, onlooker), left_since(at_first, temporary))
            onlooker.point_ended()
            told.write_text(json.dumps(as_plain(outcome)), encoding="utf-8")
            return 0

        status = run_in_sandbox(body, "gradbed run")
        if status in (INTERRUPTED, TERMINATED):
            raise KeyboardInterrupt
        return _tidy(_told(told, status), left_since(before, aside=aside))


@contextlib.contextmanager
def _frozen() -> Iterator[None]:
    """What there is by now is left out of searches for cycles: each would go through all modules, and in a forked
    process copy their memory."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _tidy(outcome: Outcome, left: Sequence[str]) -> Outcome:
    """The outcome, failed if anything was left behind."""
    if not left:
        return outcome
    line = f"left behind: {', '.join(left)}"
    if isinstance(outcome, Broken):
        return Broken(line, f"{line}\n{outcome.details}")
    failures = [*outcome.failures, line]
    return replace(outcome, failures=failures, row={**outcome.row, "failures": "; ".join(failures)})


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
