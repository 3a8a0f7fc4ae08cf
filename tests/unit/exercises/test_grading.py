"""gradbed exercise grade: every student has a row, whatever is in the folder."""

from __future__ import annotations

import csv
import os
import time
from pathlib import Path

import pytest

from gradbed.cli.commands.exercise import EXERCISES
from gradbed.experiments.exercises.checks import Grade, grade, submissions
from gradbed.experiments.exercises.exercise import exercises
from gradbed.switch.stf import isolated
from tests.conftest import GradbedHere
from tests.waiting import wait_until

KNOWN = exercises(EXERCISES)
STARTER = (EXERCISES / "forward" / "starter" / "forward.p4").read_text()
SOLUTION = (EXERCISES / "forward" / "solution" / "forward.p4").read_text()
SECRET = "what another student has written"


def submit(folder: Path, program: str) -> None:
    KNOWN["forward"].start(folder)
    (folder / "forward.p4").write_text(program)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Grade]:
    """By student."""
    place = tmp_path_factory.mktemp("class")
    (place / "secret.p4").write_text(f"{SECRET}\n")
    submit(place / "ada", SOLUTION)
    submit(place / "ben" / "my forwarding", STARTER)
    submit(place / "cyd", "this is no program")
    (place / "dan").mkdir()
    (place / "dan" / "notes.txt").write_text("I was ill")
    submit(place / "eve", f'#include "{place / "secret.p4"}"\n{SOLUTION}')
    # A packet that is worked on again and again, without end.
    again = "            routes.apply();\n            resubmit_preserving_field_list(0);"
    submit(place / "fay", SOLUTION.replace("            routes.apply();", again))
    # More state than a student's solution may take.
    huge = "".join(f"    register<bit<64>>(268435456) huge_{n};\n" for n in range(4))
    used = "".join(f"            huge_{n}.write(0, 1);\n" for n in range(4))
    gil = SOLUTION.replace("    action drop()", f"{huge}    action drop()")
    submit(place / "gil", gil.replace("            routes.apply();", f"{used}            routes.apply();"))
    return {each.student: each for each in grade(submissions(place, KNOWN), jobs=2, time_limit_s=120)}


@pytest.mark.parametrize(
    ("student", "result", "reason"),
    [
        ("ada", "passed", ""),
        ("ben", "failed", "packets: a packet with a route: its port, MAC addresses, TTL and checksum: nothing left"),
        ("cyd", "failed", "it compiles: forward.p4:1:"),
        ("dan", "missing", "no program of an exercise"),
        ("eve", "failed", "forward.p4 includes "),
        ("fay", "failed", "round"),
        ("gil", "failed", ""),
    ],
)
def test_each_student_has_a_row_with_a_reason(
    student: str, result: str, reason: str, graded: dict[str, Grade]
) -> None:
    row = graded[student]
    assert row.result == result and reason in row.reason, row
    assert bool(row.reason) == (result != "passed") and "\n" not in row.reason
    assert SECRET not in row.reason


def test_all_checks_of_a_solution_count(graded: dict[str, Grade]) -> None:
    assert (graded["ada"].passed, graded["ada"].checks) == (2, 2)
    assert (graded["ben"].passed, graded["ben"].checks) == (0, 2)


def hang(marker: str) -> None:
    """As a C compiler of a solution may: in a child, which would outlive its parent."""
    child = os.fork()
    if child == 0:
        Path(marker).write_text(str(os.getpid()))
    time.sleep(600)


def test_what_hangs_ends_with_all_that_it_has_started(tmp_path: Path) -> None:
    marker = tmp_path / "child"
    run = isolated._start(hang, str(marker), 600)
    wait_until(lambda: marker.exists() and marker.read_text() != "")
    ended: isolated.Ended[str, None] = isolated._end(run, False, 3)
    assert ended.value is None and ended.how == "took longer than 3 s"
    wait_until(lambda: not alive(int(marker.read_text())))


def alive(process: int) -> bool:
    """Not yet ended; what waits for its parent to hear of its end has."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_table_and_the_same_as_csv(gradbed_here: GradbedHere, tmp_path: Path) -> None:
    submit(tmp_path / "class" / "ada", "this is no program")
    KNOWN["count"].start(tmp_path / "class" / "ada" / "count")
    said = gradbed_here("exercise", "grade", str(tmp_path / "class"), "--exercise", "forward")
    assert said.status == 0 and "ada" in said.out and "forward" in said.out and "count" not in said.out
    (row,) = csv.DictReader((tmp_path / "class" / "grades.csv").open())
    assert (row["student"], row["exercise"], row["result"]) == ("ada", "forward", "failed")
    assert row["reason"].startswith("it compiles: forward.p4:1:")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no folder nowhere"),
        (["empty"], "empty has no students' folders"),
        (["class", "--csv", "nowhere/x.csv"], "cannot write nowhere/x.csv: No such file"),
    ],
)
def test_what_cannot_be_graded_is_one_line(
    arguments: list[str], message: str, gradbed_here: GradbedHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("class/dan").mkdir(parents=True)
    ended = gradbed_here("exercise", "grade", *arguments)
    assert ended.status == 2 and message in ended.err.splitlines()[-1]
