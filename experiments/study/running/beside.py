"""A point in real time, and one on the virtual clock in a process of its own, which gives way to what is measured."""

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

from gradbed.common.scratch import scratch_folder
from gradbed.common.signals import die_with_parent
from gradbed.experiments.engine.onlooker import Onlooker
from gradbed.experiments.fidelity.processes import LAST, catch_up, go_last
from gradbed.experiments.plotting.style import load_drawing
from gradbed.experiments.study.running.attempt import Outcome, as_plain, attempt
from gradbed.experiments.study.running.measure import PointOrder
from gradbed.experiments.study.running.sandboxed import INTERRUPTED, OneByOne, told_outcome

if TYPE_CHECKING:
    from multiprocessing.context import ForkProcess

    from gradbed.experiments.setup import NetworkSetup, PointTask
    from gradbed.experiments.testbeds.interface import Testbed


# ---- Processes that stand still while another measures ----


class Turns:
    """For processes that are given the same folder. By file locks: the kernel ends the turn of one that is killed.

    Who works holds one lock together with others who do. Who measures takes another first, which nobody passes from
    then on, and then waits for those that still work.
    """

    def __init__(self, folder: Path) -> None:
        self._entrance = folder / "entrance"
        self._machine = folder / "machine"

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Waits until nobody works."""
        with self._entrance.open("a+") as entrance, self._machine.open("a+") as machine:
            fcntl.lockf(entrance, fcntl.LOCK_EX)
            fcntl.lockf(machine, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def working(self) -> Iterator[Callable[[], None]]:
        """Waits while somebody measures. What it yields is to be called often: it gives way to who waits."""
        with self._entrance.open("a+") as entrance, self._machine.open("a+") as machine:

            def give_way() -> None:
                fcntl.lockf(machine, fcntl.LOCK_UN)
                fcntl.lockf(entrance, fcntl.LOCK_SH)
                fcntl.lockf(machine, fcntl.LOCK_SH)
                fcntl.lockf(entrance, fcntl.LOCK_UN)

            give_way()
            yield give_way


# ---- Two points beside each other ----


_FORKING = multiprocessing.get_context("fork")

_EVERY_S = 0.01
"""To give way takes some system calls, and in small networks time goes on a hundred thousand times a second."""


class Beside:
    """The other point, and what a figure needs, take what time the processors have left while the network comes up,
    between what is measured, and while the network goes."""

    def __init__(self, virtual: PointOrder, real: PointOrder) -> None:
        self._virtual = virtual
        self._real = real

    def results(self, on_start: Callable[[PointOrder], None]) -> Iterator[tuple[PointOrder, Outcome]]:
        with scratch_folder("point") as folder:
            turns, told = Turns(folder), folder / "outcome.json"
            with _forked(self._virtual, told, turns) as process:
                onlooker = _Measures(turns)
                real = OneByOne([self._real], onlooker, aside=process.pid, meanwhile=lambda: _load_drawing(turns))
                yield from real.results(on_start)
                if process.pid is not None:
                    # It has been waited for by nobody: the pid is its own.
                    catch_up(process.pid)
                process.join()
                yield self._virtual, told_outcome(told, process.exitcode)


def _load_drawing(turns: Turns) -> None:
    """In a thread of its own."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LAST)
    with turns.working():
        load_drawing()


class _Measures(Onlooker):
    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def measuring(self) -> AbstractContextManager[None]:
        return self._turns.measuring()


class _GivesWay(Onlooker):
    """While time goes on in the network. Elsewhere it may hold what the other waits for, such as a program's lock."""

    def __init__(self, give_way: Callable[[], None]) -> None:
        self._give_way = give_way
        self._last_s = 0.0

    def network_is_up(self, testbed: Testbed, network: NetworkSetup, task: PointTask[Any], system: str) -> None:
        from gradbed.experiments.testbeds.virtual_testbed import VirtualTestbed

        assert isinstance(testbed, VirtualTestbed)
        testbed.look_often(self._look)

    def _look(self) -> None:
        if (now_s := time.monotonic()) >= self._last_s + _EVERY_S:
            self._give_way()
            self._last_s = now_s


@contextlib.contextmanager
def _forked(order: PointOrder, told: Path, turns: Turns) -> Iterator[ForkProcess]:
    """A process that runs a point, and writes the outcome to a file. Forked: what it needs is loaded here."""
    # Ctrl-C waits until both know how to deal with it.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    process = _FORKING.Process(target=_tell, args=(order, told, turns, mask, os.getpid()))
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


def _tell(order: PointOrder, told: Path, turns: Turns, mask: set[signal.Signals], parent_pid: int) -> None:
    die_with_parent(parent_pid)
    gc.freeze()
    go_last()
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        with turns.working() as give_way:
            outcome = attempt(order, onlooker=_GivesWay(give_way))
        told.write_text(json.dumps(as_plain(outcome)), encoding="utf-8")
    except KeyboardInterrupt:
        # It may come twice: from the terminal, and from the parent.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.exit(INTERRUPTED)
