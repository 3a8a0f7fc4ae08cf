"""Grade a class's folder: every student's solutions are checked, each in a process of its own with limits."""

from __future__ import annotations

import csv
import resource
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gradbed.common.errors import UserError, unforeseen
from gradbed.experiments.exercises.checks import check_solution
from gradbed.experiments.exercises.exercise import Exercise, found_in
from gradbed.switch.stf.isolated import each_in_own_process

IMPORTS = ("gradbed.experiments.exercises.checks", "gradbed.experiments.runtimes.virtual")
MEMORY_BYTES = 6 << 30
FILE_BYTES = 1 << 30
CPU_S_PER_SECOND = 2
"""CPU time per second of the time limit: a solution may use two processors."""


@dataclass(frozen=True)
class Submission:
    """A student's solution."""

    student: str
    exercise: Exercise | None
    """The exercise; None: the student's folder has no program of one."""
    folder: Path


@dataclass(frozen=True)
class Grade:
    """The grade of a submission."""

    student: str
    exercise: str
    result: str
    passed: int
    """Number of checks that passed."""
    checks: int
    reason: str = ""
    """One line about the first check that failed."""


@dataclass(frozen=True)
class _Job:
    submission: Submission
    time_limit_s: float


def submissions(class_folder: Path, known: Mapping[str, Exercise], only: Exercise | None = None) -> list[Submission]:
    """Return the submissions of a class.

    Each student has a folder with a program in it, or in folders of exercises.

    Raises:
        UserError: there is none.
    """
    if not class_folder.is_dir():
        raise UserError(f"there is no folder {class_folder}")
    found: list[Submission] = []
    for student in sorted(path for path in class_folder.iterdir() if path.is_dir() and path.name[0] != "."):
        own = list(_of_student(student, known))
        if only is not None:
            own = [each for each in own if each.exercise == only]
        found += own or [Submission(student.name, None, student)]
    if not found:
        raise UserError(f"{class_folder} has no students' folders")
    return found


def _of_student(student: Path, known: Mapping[str, Exercise]) -> Iterator[Submission]:
    try:
        places = [student, *sorted(path for path in student.iterdir() if path.is_dir() and not path.is_symlink())]
    except OSError:
        return
    for place in places:
        try:
            exercise = found_in(place, known)
            if exercise is not None and (place / exercise.program).is_file():
                yield Submission(student.name, exercise, place)
        except OSError:
            continue


def grade(found: Sequence[Submission], *, jobs: int, time_limit_s: float) -> Iterator[Grade]:
    """Yield grades in the order in which the submissions end.

    A solution that crashes or takes too long has failed, and the others go on.
    """
    whole = [each for each in found if each.exercise is not None]
    for each in found:
        if each.exercise is None:
            yield Grade(each.student, "", "missing", 0, 0, "no program of an exercise")
    tasks = [_Job(each, time_limit_s) for each in whole]
    calls = each_in_own_process(_grade_one, tasks, jobs=jobs, time_limit_s=time_limit_s, imports=IMPORTS)
    for ended in calls:
        submission = ended.argument.submission
        assert submission.exercise is not None
        name, checks = submission.exercise.name, len(submission.exercise.checks)
        yield ended.value or Grade(submission.student, name, "failed", 0, checks, ended.how)


def _grade_one(job: _Job) -> Grade:
    _limit(job.time_limit_s)
    exercise = job.submission.exercise
    assert exercise is not None
    checks, passed, reason = len(exercise.checks), 0, ""
    try:
        for checked in check_solution(exercise, job.submission.folder):
            if checked.finding is None:
                passed += 1
            else:
                reason = reason or f"{checked.name}: {checked.finding.what}"
    except (MemoryError, OSError, RuntimeError, ValueError) as error:
        reason = reason or f"it cannot be run: {unforeseen(error)[:200]}"
    result = "passed" if passed == checks else "failed"
    return Grade(job.submission.student, exercise.name, result, passed, checks, reason)


def _limit(time_limit_s: float) -> None:
    """Limit this process and what it starts: no core files, no huge files, and no more memory than a check takes."""
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, int(CPU_S_PER_SECOND * time_limit_s) + 1),
    ):
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))


def check_place(path: Path) -> None:
    """Raise UserError if grades cannot be written there; called before the work, which is long."""
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


def write_grades(path: Path, grades: Sequence[Grade]) -> None:
    """Write grades as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(Grade.__dataclass_fields__))
        writer.writeheader()
        writer.writerows(map(asdict, grades))
