"""Run trials in real time, each in a sandbox of its own, as root, and check that none leaks resources."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gradbed.common.json_lines import ended
from gradbed.common.resources import scratch_folder
from gradbed.experiments.engine.observer import NO_OBSERVER, TrialObserver
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.running.worker import (
    BrokenTrial,
    Outcome,
    outcome_from_json,
    outcome_to_json,
    run_task,
)

# ---- Leaked resources ----


_PR_SET_CHILD_SUBREAPER = 36  # <sys/prctl.h>

ZOMBIE = "Z"
"""State of a process that has ended. That its status was never asked for is the fault of this process, to which
orphans come (own_orphans)."""

TIMEOUT_S = 3.0
"""How long to wait for the kernel, which takes interfaces and killed processes away in its own time."""

_libc = ctypes.CDLL(None, use_errno=True)


def resources(folder: Path | None = None, ignored_pid: int | None = None) -> frozenset[str]:
    """Return, in words, the processes that this one and those below it started, and its open descriptors.

    Args:
        folder: The folder of temporary files, in a sandbox. Then those of gradbed count, too (scripts of PyTorch and
            what they load leave others), and so do the sandbox's interfaces and named network namespaces. Outside of
            a sandbox other programs make and remove such things at any time.
        ignored_pid: A process that does not count, nor what it starts.
    """
    gc.collect()
    own = (*_processes(ignored_pid), *_descriptors())
    if folder is None:
        return frozenset(own)
    files = (f"file {each}" for each in folder.glob("gradbed-*"))
    return frozenset((*own, *_namespaces(), *_interfaces(), *files))


@contextlib.contextmanager
def own_orphans() -> Iterator[None]:
    """Make this process, and not process 1, the parent of processes below it whose parent ends."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
    try:
        yield
    finally:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(0))


def leaked_since(before: frozenset[str], folder: Path | None = None, ignored_pid: int | None = None) -> list[str]:
    """Return the resources that there are now and were not then, after waiting for what is about to go."""
    deadline = time.monotonic() + TIMEOUT_S
    while (leaked := resources(folder, ignored_pid) - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    return sorted(leaked)


def _processes(ignored_pid: int | None) -> Iterator[str]:
    names, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            head, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
            state, parent = rest.split()[:2]  # proc_pid_stat(5)
            pid, name = head.split(" (", 1)
            if int(pid) == ignored_pid:
                continue
            parents[int(pid)] = int(parent)
            if state != ZOMBIE:
                names[int(pid)] = f"process {pid} ({name})"
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return (names[pid] for pid in below & names.keys() - {os.getpid()})


def _descriptors() -> Iterator[str]:
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # that of the folder itself has gone
            yield f"descriptor {each.name} ({os.readlink(each)})"


def _namespaces() -> Iterator[str]:
    """Yield the network namespaces that are mounted, as by ip-netns(8)."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        mounted, _, kind = line.partition(" - ")  # proc_pid_mountinfo(5)
        if kind.startswith("nsfs "):
            yield f"namespace {mounted.split()[4]}"


def _interfaces() -> Iterator[str]:
    return (f"interface {name}" for _, name in socket.if_nameindex())


# ---- Trials in sandboxes ----


INTERRUPTED = 130
TERMINATED = 128 + 15


class SandboxedExecutor:
    """Run each trial in a sandbox of its own, as root, as often as its task says; a single one shows its progress."""

    def __init__(
        self,
        tasks: Sequence[TrialTask],
        observer: TrialObserver = NO_OBSERVER,
        ignored_pid: int | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        self._tasks = tasks
        self._run = partial(run_sandboxed, observer=observer, ignored_pid=ignored_pid, meanwhile=meanwhile)

    def results(self, on_start: Callable[[TrialTask], None]) -> Iterator[tuple[TrialTask, Outcome]]:
        alone = len(self._tasks) == 1
        for task in self._tasks:
            if not alone:
                on_start(task)
            for _ in range(task.attempts):
                outcome = self._run(task, alone)
                if isinstance(outcome, BrokenTrial) or outcome.values["verdict"] == "valid":
                    break
            yield task, outcome


def run_sandboxed(
    task: TrialTask,
    bars: bool = False,
    observer: TrialObserver = NO_OBSERVER,
    ignored_pid: int | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> Outcome:
    """Run a trial in a sandbox of its own. It fails if it leaks anything, inside, where the sandbox would take it
    away, or outside.

    Args:
        task: What to run.
        bars: Show how far it is.
        observer: Receives callbacks while the trial runs, in the sandbox.
        ignored_pid: A process whose resources are not the trial's.
        meanwhile: As of run_in_sandbox.

    Raises:
        KeyboardInterrupt: It was interrupted.
    """
    from gradbed.common.sandbox import run_in_sandbox

    with scratch_folder("trial") as folder, own_orphans(), _frozen():
        file, temporary = folder / "outcome.json", folder / "tmp"
        temporary.mkdir()
        before = resources(ignored_pid=ignored_pid)

        def body() -> int:
            tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)
            with own_orphans():
                at_first = resources(temporary)
                outcome = _without_leaks(run_task(task, bars, observer), leaked_since(at_first, temporary))
            observer.on_trial_end()
            file.write_text(json.dumps(outcome_to_json(outcome)), encoding="utf-8")
            return 0

        status = run_in_sandbox(body, "gradbed run", meanwhile)
        if status in (INTERRUPTED, TERMINATED):
            raise KeyboardInterrupt
        return _without_leaks(read_outcome(file, status), leaked_since(before, ignored_pid=ignored_pid))


@contextlib.contextmanager
def _frozen() -> Iterator[None]:
    """Leave what there is by now out of searches for cycles: each would go through all modules, and in a forked
    process copy their memory."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _without_leaks(outcome: Outcome, leaked: Sequence[str]) -> Outcome:
    """Return the outcome, failed if anything was leaked."""
    if not leaked:
        return outcome
    line = f"left behind: {', '.join(leaked)}"
    if isinstance(outcome, BrokenTrial):
        if outcome.is_lost:
            return replace(outcome, details=f"{line}\n{outcome.details}")  # what its end leaves is not the reason
        return BrokenTrial(line, f"{line}\n{outcome.details}")
    failures = [*outcome.failures, line]
    return replace(outcome, failures=failures, values={**outcome.values, "failures": "; ".join(failures)})


def read_outcome(file: Path, status: int | None) -> Outcome:
    """Return the outcome that a process left in a file; status: how it exited."""
    if not file.exists():
        # As a shell has it, 128 and the signal's number.
        how = ended(status if status is None or status <= 128 else 128 - status)
        return BrokenTrial(f"the process of the run {how}", f"status {status}", is_lost=True)
    return outcome_from_json(json.loads(file.read_text(encoding="utf-8")))
