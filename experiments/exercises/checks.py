"""Checks of a solution: by packets of an STF file, by traffic of a study, or by a conversation (bench.py)."""

from __future__ import annotations

import csv
import re
import resource
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from gradbed.common.errors import UserError, unforeseen
from gradbed.common.resources import scratch_folder
from gradbed.experiments.engine.trial import run_trial
from gradbed.experiments.exercises.bench import check_conversation
from gradbed.experiments.exercises.exercise import SUFFIXES, Exercise, found_in
from gradbed.experiments.exercises.solution import (
    CheckOutcome,
    Detail,
    Solution,
    SolutionFinding,
    WatchedSwitch,
    copied,
    frame_text,
    labelled,
    outputs_text,
)
from gradbed.experiments.phases import TrialResult
from gradbed.experiments.scale import Scale
from gradbed.experiments.setup import TrialTask
from gradbed.experiments.study.loading import load_study
from gradbed.switch.bmv2_json.model import ProgramModel
from gradbed.switch.insight.traced_switch import Passage
from gradbed.switch.stf import read_stf, run_script
from gradbed.switch.stf.isolated import each_in_own_process
from gradbed.switch.stf.runner import difference, run_on
from gradbed.switch.stf.statements import CheckCounter, Expect, NoPacket, Packet, RegisterRead, Script, StfStatement

# ---- By packets ----


def check_packets(subject: Solution, test: Path) -> SolutionFinding | None:
    """Return the first failure; None: there is none."""
    script = read_stf(test)
    failures = run_script(subject.built, script).failures
    if not failures:
        return None
    told = [failure.removeprefix(f"{test}:").partition(": ") for failure in failures]
    line, said = min((int(number), said) for number, _, said in told)
    watched = _Watched(subject, script)
    with watched.watch:
        try:
            run_on(watched, script)
        except UserError as error:  # it goes round in circles
            return SolutionFinding(f"{_about_line(test, line)}: {error}", watched.watch.details())
        return watched.finding(test, line, said)


class _Watched:
    """A gradbed.switch.stf.target.Target that records what became of each packet."""

    def __init__(self, subject: Solution, script: Script) -> None:
        self._script = script
        self.watch = WatchedSwitch(subject, next(p for p in range(510, -1, -1) if p not in script.ports))
        self._outputs: list[tuple[int, bytes]] = []
        self._passages: list[tuple[Packet, Passage]] = []

    @property
    def model(self) -> ProgramModel:
        return self.watch.model

    def apply(self, statement: StfStatement) -> None:
        self.watch.switch.target.apply(statement)

    def send(self, packet: Packet) -> None:
        passage = self.watch.send(packet.port, packet.frame)
        self._passages.append((packet, passage))
        self._outputs += passage.outputs

    def drain(self) -> list[tuple[int, bytes]]:
        outputs, self._outputs = self._outputs, []
        return outputs

    def finding(self, test: Path, line: int, said: str) -> SolutionFinding:
        """Return the finding for the first failure, whose line and text are those of the runner."""
        for packet, passage in self._passages:
            wrong = self._difference(packet, passage)
            if wrong is not None:
                return SolutionFinding(f"{_about_line(test, packet.line)}: {wrong}", self._details(packet, passage))
        before = [(packet, passage) for packet, passage in self._passages if packet.line <= line]
        failed = next((each for each in self._script.statements if each.line == line), None)
        # A command that does not fit the program is no matter of packets.
        if not before or not isinstance(failed, (Expect, NoPacket, RegisterRead, CheckCounter)):
            return SolutionFinding(f"{_about_line(test, line)}: {said}")
        return SolutionFinding(f"{_about_line(test, line)}: {said}", self._details(*before[-1]))

    def _details(self, packet: Packet, passage: Passage) -> tuple[Detail, ...]:
        return (
            Detail("packet", f"by port {packet.port}: {frame_text(packet.frame)}"),
            Detail("expected", _expected_text(self._expected(packet))),
            Detail("came out", outputs_text(passage.outputs)),
            *self.watch.details((packet.port, packet.frame, passage)),
        )

    def _expected(self, packet: Packet) -> list[Expect]:
        """Return the expectations that follow the packet in the file, up to the next packet."""
        found: list[Expect] = []
        for statement in self._script.statements:
            if statement.line > packet.line and isinstance(statement, Packet):
                break
            if statement.line > packet.line and isinstance(statement, Expect):
                found.append(statement)
        return found

    def _difference(self, packet: Packet, passage: Passage) -> str | None:
        """Return how the packet's outputs differ from what follows it in the file."""
        expected = self._expected(packet)
        ports = self._script.ports
        for port in sorted({expect.port for expect in expected}):
            came = [frame for out, frame in passage.outputs if out == port]
            wanted = [expect for expect in expected if expect.port == port]
            for expect, frame in zip(wanted, came):  # noqa: B905
                if not expect.describes(frame):
                    return f"port {port}: {difference(self.model, expect, frame).partition('; expected')[0]}"
            if len(came) < len(wanted):
                return f"nothing left by port {port}" if not came else f"too few packets left by port {port}"
            if len(came) > len(wanted):
                return f"too many packets left by port {port}"
        wanted_ports = {expect.port for expect in expected}
        strict = not expected and any(isinstance(statement, NoPacket) for statement in self._script.statements)
        for port, _ in passage.outputs:
            if port not in wanted_ports and (port in ports or strict):
                return f"a packet left by port {port}"
        return None


def _expected_text(expected: Sequence[Expect]) -> str:
    return "; ".join(f"by port {e.port}: {_digits(e)}" for e in expected) or "no packet"


def _digits(expect: Expect) -> str:
    """Return the digits as in the file, with Ethernet's fields apart."""
    if expect.digits is None:
        return "any packet"
    digits = expect.digits
    parts = [digits[:12], digits[12:24], digits[24:28], digits[28:]]
    return " ".join(part for part in parts if part) + ("" if expect.exact else " ...")


def _about_line(test: Path, line: int) -> str:
    """Return the comment above a line of the file."""
    lines = test.read_text(encoding="utf-8").splitlines()[:line]
    comments = [each.removeprefix("# ") for each in lines if each.startswith("# ")]
    return comments[-1] if comments else test.stem


# ---- By traffic ----


SHOWN = ("sent_packets", "received_packets", "duplicates", "reordered", "misdelivered")


def check_traffic(subject: Solution, study: Path) -> SolutionFinding | None:
    """Return the first failure of a trial, and what may be why; None: there is none."""
    about = _about_study(study)
    work = subject.folder
    place = work / study.name
    shutil.copyfile(study, place)
    try:
        loaded = load_study(place)
        for trial in loaded.trials:
            task = TrialTask(trial.configuration, trial.seed, Scale(), work)
            result = run_trial(loaded.system, task)
            if result.failures:
                return SolutionFinding(f"{about}: {result.failures[0]}", _details(result))
    except UserError as error:
        return SolutionFinding(f"{about}: {re.sub(rf'^{re.escape(study.name)}:[0-9]+: ', '', subject.words(error))}")
    finally:
        place.unlink()
    return None


def _details(result: TrialResult) -> tuple[Detail, ...]:
    numbers = ", ".join(
        f"{name.replace('_', ' ')} {value}" for name in SHOWN if (value := result.metrics.get(name)) is not None
    )
    lost = [row for row in result.tables["pairs"] if row.get("lost")]
    found = [Detail("came out", numbers)]
    if lost:
        first = lost[0]
        found.append(Detail("", f"of {len(lost)} pairs with losses the first: {first['from']} to {first['to']}"))
    return (*found, *labelled("hint", [str(row["note"]) for row in result.tables["notes"]]))


def _about_study(study: Path) -> str:
    first = study.read_text(encoding="utf-8").splitlines()[0]
    return first.removeprefix("# ") if first.startswith("# ") else study.stem


# ---- All checks ----


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


# ---- A class's folder ----


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
