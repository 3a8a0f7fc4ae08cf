"""gradbed exercise: tasks with starter code, hints, and checks that are not in the student's folder."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gradbed.common.errors import UserError, say
from gradbed.common.modules import command_from

if TYPE_CHECKING:
    from gradbed.experiments.exercises.exercise import Exercise
    from gradbed.experiments.exercises.solution import CheckOutcome

EXERCISES = Path(__file__).resolve().parents[1] / "templates" / "exercises"
LABEL_COLUMNS = 11

app = typer.Typer(help="Exercises for courses.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of an exercise (gradbed exercise list).")]
Folder = Annotated[Path, typer.Argument(help="Folder with your solution.", show_default="this one")]


@app.command("list")
def list_() -> int:
    """List the exercises in their order, and how far those of this folder are."""
    from gradbed.experiments.exercises.exercise import progress

    known = _exercises()
    states: dict[str, str] = {}
    for exercise, folder, state in progress(Path(), known):
        said = state if folder == Path() else f"{state} ({folder}/)"
        if exercise.name not in states or state == "passed":
            states[exercise.name] = said
    width = max(map(len, known))
    for name, exercise in known.items():
        about = exercise.description
        said = f": {states[name]}" if name in states else ""
        say(f"{name:{width}}  {about.minutes} min  {about.title}{said}", sys.stdout, hang=width + 2)
    return 0


@app.command("start")
def start(
    name: Name,
    folder: Annotated[
        Path | None, typer.Argument(help="A new folder for the starter code.", show_default="named as the exercise")
    ] = None,
) -> int:
    """Make a folder with an exercise's task and starter code."""
    from gradbed.experiments.exercises.exercise import WorkRecord, write_record

    exercise = _named(name)
    place = folder or Path(name)
    exercise.start(place)
    write_record(place, WorkRecord(exercise=name))
    print(f"made {place}/: cd {shlex.quote(str(place))}, then read README.md")
    return 0


@app.command("check")
def check(folder: Folder = Path()) -> int:
    """Run the exercise's checks on your solution, and say what is wrong. Exit status 1 if one fails."""
    from gradbed.experiments.exercises.checks import check_solution
    from gradbed.experiments.exercises.exercise import WorkRecord, digest, exercise_of, read_record, write_record
    from gradbed.switch.compiler import compile_p4

    exercise = exercise_of(folder, _exercises())
    before = digest(folder)
    failed = 0
    for checked in check_solution(exercise, folder):
        _tell(checked)
        failed += checked.finding is not None
    record = read_record(folder) or WorkRecord(exercise=exercise.name)
    if not failed:
        write_record(folder, record.model_copy(update={"passed": before}))
        say("\nAll checks passed. README.md has questions to think about.", sys.stdout)
        for warning in compile_p4(folder / exercise.program).warnings:
            if warning.category == "unsupported":
                say(f"\n{warning}", sys.stdout)
        return 0
    if record.hints < len(exercise.hints):
        where = "" if folder == Path() else f" {shlex.quote(str(folder))}"
        say(f"\nA hint: {command_from(Path())} exercise hint{where}", sys.stdout)
    return 1


@app.command("hint")
def hint(
    folder: Folder = Path(),
    again: Annotated[bool, typer.Option("--again", help="Repeat the hints that you have had.")] = False,
) -> int:
    """Give the next hint. The later ones say more."""
    from gradbed.experiments.exercises.exercise import WorkRecord, exercise_of, read_record, write_record

    exercise = exercise_of(folder, _exercises())
    record = read_record(folder) or WorkRecord(exercise=exercise.name)
    hints = exercise.hints
    if again:
        if not record.hints:
            raise UserError("you have had no hint yet: leave --again away")
        shown = range(record.hints)
    elif record.hints >= len(hints):
        raise UserError(
            f"these were all {len(hints)} hints (--again repeats them): "
            f"{command_from(Path())} exercise solution {exercise.name}"
        )
    else:
        shown = range(record.hints, record.hints + 1)
        write_record(folder, record.model_copy(update={"hints": record.hints + 1}))
    for number in shown:
        say(f"Hint {number + 1} of {len(hints)}\n\n{hints[number]}\n", sys.stdout)
    return 0


@app.command("solution")
def solution(
    name: Name,
    folder: Annotated[
        Path | None, typer.Argument(help="A new folder for the whole solution.", show_default="printed")
    ] = None,
) -> int:
    """Print the files of an exercise's solution that differ from the starter code, or put all into a folder."""
    exercise = _named(name)
    if folder is not None:
        exercise.solve(folder)
        print(f"made {folder}/")
        return 0
    for file in exercise.solution:
        if len(exercise.solution) > 1:
            print(f"==> {file.name} <==")
        print(file.read_text(encoding="utf-8"), end="" if file == exercise.solution[-1] else "\n")
    return 0


@app.command("grade")
def grade(
    class_folder: Annotated[Path, typer.Argument(help="Folder with a folder for each student.")],
    exercise: Annotated[str | None, typer.Option(help="Only this exercise; default: all that are there.")] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="File for the table.", show_default="CLASS_FOLDER/grades.csv")
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of solutions graded in parallel.")] = 2,
    time_limit_s: Annotated[float, typer.Option(min=1, help="Time limit of one solution in seconds.")] = 120.0,
) -> int:
    """Check every student's solutions: a table, and the same as CSV. Exit status 0 whatever the results."""
    from gradbed.experiments.exercises.checks import check_place, submissions, write_grades
    from gradbed.experiments.exercises.checks import grade as grade_all
    from gradbed.experiments.tables.console import make_console, rows_table

    known = _exercises()
    found = submissions(class_folder, known, None if exercise is None else _named(exercise))
    place = csv or class_folder / "grades.csv"
    check_place(place)
    order = {(each.student, each.exercise.name if each.exercise else ""): n for n, each in enumerate(found)}
    grades = []
    for done in grade_all(found, jobs=jobs, time_limit_s=time_limit_s):
        grades.append(done)
        print(f"{len(grades)} of {len(found)}: {done.student} {done.exercise} {done.result}", file=sys.stderr)
    grades.sort(key=lambda each: order[each.student, each.exercise])
    write_grades(place, grades)
    columns = [
        ("student", lambda row: row.student),
        ("exercise", lambda row: row.exercise),
        ("result", lambda row: row.result),
        ("checks", lambda row: f"{row.passed} of {row.checks}"),
        ("reason", lambda row: row.reason),
    ]
    table = rows_table("", columns, grades, words=("student", "exercise", "result", "reason"))
    make_console().print(table)
    say(f"written: {place}", sys.stdout)
    return 0


def _exercises() -> Mapping[str, Exercise]:
    from gradbed.experiments.exercises.exercise import exercises

    return exercises(EXERCISES)


def _named(name: str) -> Exercise:
    from gradbed.experiments.exercises.exercise import named

    return named(name, _exercises())


def _tell(checked: CheckOutcome) -> None:
    """Print a line, and below it what helps to find the mistake."""
    finding = checked.finding
    head = "passed  " if finding is None else "FAILED  "
    say(head + (checked.name if finding is None else f"{checked.name}: {finding.what}"), sys.stdout, hang=8)
    for label, text in finding.details if finding is not None else ():
        say(f"        {label:{LABEL_COLUMNS}}{text}", sys.stdout, hang=LABEL_COLUMNS + 2)
