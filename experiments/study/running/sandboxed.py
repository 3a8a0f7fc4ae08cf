"""Points in real time, each in a sandbox of its own, as root, which leaves nothing behind."""

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
from gradbed.common.scratch import scratch_folder
from gradbed.experiments.engine.onlooker import NOBODY, Onlooker
from gradbed.experiments.study.running.attempt import Broken, Outcome, as_plain, attempt, from_plain
from gradbed.experiments.study.running.measure import PointOrder

# ---- What this process has of the machine ----


_PR_SET_CHILD_SUBREAPER = 36  # <sys/prctl.h>

ZOMBIE = "Z"
"""It has ended. That nobody has asked how is the fault of this process, to which orphans come (own_orphans)."""

PATIENCE_S = 3.0
"""The kernel takes interfaces and killed processes away in its own time."""

_libc = ctypes.CDLL(None, use_errno=True)


def belongings(folder: Path | None = None, aside: int | None = None) -> frozenset[str]:
    """In words: processes that this one or those below it started, and open descriptors (sockets, too).

    folder: where temporary files are, in a sandbox; then also those of gradbed (scripts of PyTorch and what they load
    leave others), and the sandbox's interfaces and the namespaces that were given a name there. Outside of one, other
    programs make and remove such things at any time. aside: a process that does not count, nor what it starts.
    """
    gc.collect()
    own = (*_processes(aside), *_descriptors())
    if folder is None:
        return frozenset(own)
    files = (f"file {each}" for each in folder.glob("gradbed-*"))
    return frozenset((*own, *_namespaces(), *_interfaces(), *files))


@contextlib.contextmanager
def own_orphans() -> Iterator[None]:
    """Processes below this one whose parent ends are this one's children meanwhile, not those of process 1."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
    try:
        yield
    finally:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(0))


def left_since(before: frozenset[str], folder: Path | None = None, aside: int | None = None) -> list[str]:
    """What is there now and was not then. Waits for what is about to go."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := belongings(folder, aside) - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    return sorted(left)


def _processes(aside: int | None) -> Iterator[str]:
    names, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            head, _, rest = (folder / "stat").read_text(errors="replace").rpartition(")")
            state, parent = rest.split()[:2]  # proc_pid_stat(5)
            pid, name = head.split(" (", 1)
            if int(pid) == aside:
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
    """Those that are mounted, as by ip-netns(8)."""
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        mounted, _, kind = line.partition(" - ")  # proc_pid_mountinfo(5)
        if kind.startswith("nsfs "):
            yield f"namespace {mounted.split()[4]}"


def _interfaces() -> Iterator[str]:
    return (f"interface {name}" for _, name in socket.if_nameindex())


# ---- Points in sandboxes ----


INTERRUPTED = 130
TERMINATED = 128 + 15


class OneByOne:
    """Each point in a sandbox of its own, as root, as often as its order says. A single one shows how far it is."""

    def __init__(
        self,
        orders: Sequence[PointOrder],
        onlooker: Onlooker = NOBODY,
        aside: int | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        self._orders = orders
        self._run = partial(run_sandboxed, onlooker=onlooker, aside=aside, meanwhile=meanwhile)

    def results(self, on_start: Callable[[PointOrder], None]) -> Iterator[tuple[PointOrder, Outcome]]:
        alone = len(self._orders) == 1
        for order in self._orders:
            if not alone:
                on_start(order)
            for _ in range(order.attempts):
                outcome = self._run(order, alone)
                if isinstance(outcome, Broken) or outcome.row["verdict"] == "valid":
                    break
            yield order, outcome


def run_sandboxed(
    order: PointOrder,
    bars: bool = False,
    onlooker: Onlooker = NOBODY,
    aside: int | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> Outcome:
    """One point in a sandbox of its own. KeyboardInterrupt if it was interrupted. It fails if anything is left
    behind, in the sandbox, which would take it away, or outside. aside: a process that does something else.
    meanwhile: as of run_in_sandbox."""
    from gradbed.common.sandbox import run_in_sandbox

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

        status = run_in_sandbox(body, "gradbed run", meanwhile)
        if status in (INTERRUPTED, TERMINATED):
            raise KeyboardInterrupt
        return _tidy(told_outcome(told, status), left_since(before, aside=aside))


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
        if outcome.is_lost:
            return replace(outcome, details=f"{line}\n{outcome.details}")  # what its end leaves is not the reason
        return Broken(line, f"{line}\n{outcome.details}")
    failures = [*outcome.failures, line]
    return replace(outcome, failures=failures, row={**outcome.row, "failures": "; ".join(failures)})


def told_outcome(told: Path, status: int | None) -> Outcome:
    if not told.exists():
        # As a shell has it, 128 and the signal's number.
        how = ended(status if status is None or status <= 128 else 128 - status)
        return Broken(f"the process of the run {how}", f"status {status}", is_lost=True)
    return from_plain(json.loads(told.read_text(encoding="utf-8")))
