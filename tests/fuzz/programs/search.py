"""Many random programs, each on our switch and by the specification; and which constructs they had."""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from tests.fuzz.programs.case import FRAMES, Finding, case_of, judge, run, run_instrumented
from tests.fuzz.programs.constructs import CONSTRUCTS


@dataclass(frozen=True)
class Outcome:
    """Of one seed. constructs: how many frames reached a line with it; None where no probes were asked for, or the
    line has no code of its own."""

    seed: int
    finding: Finding | None
    constructs: dict[str, int | None]


@dataclass
class Coverage:
    """By construct: programs that have it, those of them that ran with probes, and frames that came by."""

    programs: Counter[str] = field(default_factory=Counter)
    probed: Counter[str] = field(default_factory=Counter)
    frames: Counter[str] = field(default_factory=Counter)

    def see(self, outcome: Outcome) -> None:
        for construct, frames in outcome.constructs.items():
            self.programs[construct] += 1
            if frames is not None:
                self.probed[construct] += 1
                self.frames[construct] += frames

    @property
    def missing(self) -> list[str]:
        return [construct for construct in CONSTRUCTS if not self.programs[construct]]

    def table(self) -> str:
        width = max(map(len, CONSTRUCTS))
        lines = [f"{'construct':{width}} {'programs':>9} {'executed':>9}"]
        for construct in CONSTRUCTS:
            executed = self.frames[construct] if self.probed[construct] else "-"
            lines.append(f"{construct:{width}} {self.programs[construct]:9} {executed:>9}")
        return "\n".join(lines)


def examine(seed: int, folder: Path, *, probes: bool, optimise: str = "-O0", frames: int = FRAMES) -> Outcome:
    """probes: also run the program as it is built for traces and coverage; it must do the same."""
    case, finding = judge(lambda: case_of(seed, folder, frames), optimise)
    if case is None:
        return Outcome(seed, finding, {})
    reached: Mapping[int, int] = {}
    if probes and finding is None:
        observed, reached = run_instrumented(case, folder)
        finding = observed.difference(run(case, optimise))
    constructs = {
        construct: max((reached[line] for line in lines if line in reached), default=None)
        for construct, lines in case.program.constructs.items()
    }
    return Outcome(seed, finding, constructs)


def search(
    seeds: Sequence[int], folder: Path, *, probes_every: int = 4, optimise: str = "-O0", frames: int = FRAMES
) -> Iterator[Outcome]:
    """In a process of its own: where that ends, the seed it was at is a finding."""

    cache = folder / "cache"

    def work(sender: Connection, rest: Sequence[int]) -> None:
        # Nobody runs these programs again: they are not to fill the user's cache.
        os.environ["GRADBED_CACHE"] = str(cache)
        for seed in rest:
            probes = probes_every > 0 and seed % probes_every == 0
            sender.send(examine(seed, folder, probes=probes, optimise=optimise, frames=frames))

    left = list(seeds)
    while left:
        batch, crashed = left[:BATCH], False
        receiver, worker = _start(work, batch)
        try:
            for seed in batch:
                try:
                    outcome = receiver.recv()
                except EOFError:
                    worker.join()
                    outcome = Outcome(seed, Finding("crashed", f"exit status {worker.exitcode}"), {})
                    crashed = True
                left.pop(0)
                yield outcome
                if crashed:
                    break
        finally:
            worker.kill()
            worker.join()
            for path in (*cache.glob("program-*"), *cache.glob("instrumented-*")):
                path.unlink()


BATCH = 50
"""Libraries stay loaded as long as their process lives."""


def _start(
    work: Callable[[Connection, Sequence[int]], None], seeds: Sequence[int]
) -> tuple[Connection, multiprocessing.process.BaseProcess]:
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=work, args=(sender, seeds))
    worker.start()
    sender.close()
    return receiver, worker
