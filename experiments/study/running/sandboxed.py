"""Points in real time, each in a sandbox of its own, as root, which leaves nothing behind."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from gradbed.common.json_lines import ended
from gradbed.common.scratch import scratch_folder
from gradbed.experiments.engine.onlooker import NOBODY, Onlooker
from gradbed.experiments.study.running.attempt import Broken, Outcome, as_plain, attempt, from_plain
from gradbed.experiments.study.running.leftovers import belongings, left_since, own_orphans
from gradbed.experiments.study.running.measure import PointOrder

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
