"""Run all checks of an exercise on one solution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from gradbed.common.errors import UserError
from gradbed.common.scratch import scratch_folder
from gradbed.experiments.exercises.bench import check_conversation
from gradbed.experiments.exercises.exercise import SUFFIXES, Exercise
from gradbed.experiments.exercises.finding import CheckOutcome, SolutionFinding
from gradbed.experiments.exercises.packets import check_packets
from gradbed.experiments.exercises.subject import Solution, copied
from gradbed.experiments.exercises.traffic import check_traffic
from gradbed.experiments.exercises.watch import labelled


class Check(Protocol):
    def __call__(self, subject: Solution, file: Path, /) -> SolutionFinding | None: ...


KINDS: Mapping[str, Check] = dict(zip(SUFFIXES, (check_packets, check_traffic, check_conversation), strict=True))


def check_solution(exercise: Exercise, folder: Path) -> Iterator[CheckOutcome]:
    """Yield the outcome of each check, in order; none but the first of a program that does not compile.

    The folder is not changed.
    """
    with scratch_folder("exercise") as scratch:
        try:
            subject = copied(folder, exercise.program, scratch / "solution")
            subject.built  # noqa: B018
        except UserError as error:
            # With compilers the line of the source, and where in it, come below.
            what, *source = str(error).replace(f"{scratch / 'solution'}/", "").splitlines()
            yield CheckOutcome(
                "it compiles",
                SolutionFinding(what, tuple(labelled("there", [line for line in source if line.strip()]))),
            )
            return
        for file in exercise.checks:
            name = file.stem.partition("_")[2].replace("_", " ")
            try:
                found = KINDS[file.suffix](subject, file)
            except UserError as error:
                found = SolutionFinding(subject.words(error))
            yield CheckOutcome(name, found)
