"""An exercise, and a student's work on it.

An exercise is a folder with its description, starter code, hints, solution and checks:

exercise.yaml   title, minutes, topics, learnt, place
README.md       for the student, copied with the starter code; its commands are typed in the copy's folder
hints.md        a heading (##) for each hint, from the gentlest to the plainest
starter/        NAME.p4, and what else the student gets, such as entries.yaml
solution/       the files of starter/ that the solution changes
checks/         in the order of their names: .stf, .yaml (a study) and .py (a conversation), each with the lines of
                its first comment for those who fail it
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gradbed.common.errors import UserError, suggestion
from gradbed.common.modules import command_from
from gradbed.common.problems import first_problem
from gradbed.common.store import digest_of
from gradbed.common.yaml_numbers import bounded_loader

# ---- Exercises ----


Words = Annotated[str, Field(min_length=1)]


class ExerciseDescription(BaseModel):
    """Contents of exercise.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: Words
    minutes: int = Field(ge=1)
    """Time for a student who has done the exercises before it."""
    topics: tuple[Words, ...] = Field(min_length=1)
    learnt: Words
    place: int
    """Position in the list, from the first."""


@dataclass(frozen=True)
class Exercise:
    folder: Path
    description: ExerciseDescription

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def program(self) -> str:
        return f"{self.name}.p4"

    @cached_property
    def hints(self) -> tuple[str, ...]:
        text = (self.folder / "hints.md").read_text(encoding="utf-8")
        return tuple(part.strip() for part in re.split(r"^## .*$", text, flags=re.MULTILINE)[1:])

    @property
    def checks(self) -> tuple[Path, ...]:
        return tuple(sorted(file for file in (self.folder / "checks").iterdir() if file.suffix in SUFFIXES))

    @property
    def solution(self) -> tuple[Path, ...]:
        """Files that differ from the starter's."""
        return tuple(sorted((self.folder / "solution").iterdir()))

    def start(self, folder: Path) -> None:
        """Make the folder, with README and starter code.

        The commands of the README can be typed in the folder as they are.

        Raises:
            UserError: it exists or cannot be made.
        """
        try:
            folder.mkdir(parents=True)
            task = (self.folder / "README.md").read_text(encoding="utf-8")
            task = task.replace("./gradbed ", f"{command_from(folder)} ")
            (folder / "README.md").write_text(task, encoding="utf-8")
            for file in sorted((self.folder / "starter").iterdir()):
                shutil.copyfile(file, folder / file.name)
        except FileExistsError:
            raise UserError(f"{folder} is there already: choose another name") from None
        except OSError as error:
            raise UserError(f"cannot make {folder}: {error.strerror or error}") from None

    def solve(self, folder: Path) -> None:
        """Make the folder with the solution in place of the starter code."""
        self.start(folder)
        for file in self.solution:
            shutil.copyfile(file, folder / file.name)


SUFFIXES = (".stf", ".yaml", ".py")
"""Suffixes of checks."""


def exercises(root: Path) -> Mapping[str, Exercise]:
    """Return the exercises of a folder by name, in their order.

    Raises:
        UserError: a description is wrong.
    """
    found = [_read(file) for file in root.glob("*/exercise.yaml")]
    return {each.name: each for each in sorted(found, key=lambda each: (each.description.place, each.name))}


def named(name: str, known: Mapping[str, Exercise]) -> Exercise:
    """Return the exercise of that name.

    Raises:
        UserError: there is none.
    """
    if name not in known:
        raise UserError(f"there is no exercise {name!r}{suggestion(name, known)}")
    return known[name]


def _read(file: Path) -> Exercise:
    try:
        return Exercise(
            file.parent,
            ExerciseDescription.model_validate(yaml.load(file.read_text(encoding="utf-8"), Loader=bounded_loader())),
        )
    except (OSError, yaml.YAMLError) as error:
        raise UserError(f"cannot read {file}: {' '.join(str(error).split())}") from None
    except ValidationError as error:
        raise UserError(f"{file}: {first_problem(error)}") from None


# ---- A student's folder ----


RECORD = ".exercise.json"
"""File that `start`, `hint` and `check` leave in the folder; losing it loses no more than that."""


class WorkRecord(BaseModel):
    """Record of a student's work on an exercise."""

    model_config = ConfigDict(extra="ignore")

    exercise: str
    hints: int = 0
    """Number of hints that were shown."""
    passed: str | None = None
    """Digest of the files that passed last; None: none did."""


def exercise_of(folder: Path, known: Mapping[str, Exercise]) -> Exercise:
    """Return the folder's exercise, by its record or by the names of its programs.

    Raises:
        UserError: it is not clear.
    """
    command = command_from(Path())
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: {command} exercise start NAME makes one")
    found = found_in(folder, known)
    if found is None:
        programs = [each.name for each in known.values() if (folder / each.program).is_file()]
        if programs:
            raise UserError(f"{folder} has programs of {' and '.join(programs)}: keep each in a folder of its own")
        raise UserError(f"{folder} has no exercise's program: {command} exercise start NAME makes a folder with one")
    if not (folder / found.program).is_file():
        raise UserError(f"{folder} has no {found.program}")
    return found


def found_in(folder: Path, known: Mapping[str, Exercise]) -> Exercise | None:
    """Return the exercise of the folder, if it has one."""
    record = read_record(folder)
    if record is not None and record.exercise in known:
        return known[record.exercise]
    programs = [each for each in known.values() if (folder / each.program).is_file()]
    return programs[0] if len(programs) == 1 else None


def read_record(folder: Path) -> WorkRecord | None:
    """Return the record; None if there is none that can be read."""
    try:
        return WorkRecord.model_validate_json((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None


def write_record(folder: Path, record: WorkRecord) -> None:
    """Write the record.

    Raises:
        UserError: the folder cannot be written.
    """
    try:
        (folder / RECORD).write_text(json.dumps(record.model_dump()) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {folder / RECORD}: {error.strerror}") from None


def digest(folder: Path) -> str:
    """Return the digest of what a check looks at: programs and entries."""
    files = [path for path in sorted(folder.iterdir()) if path.suffix in (".p4", ".yaml") and path.is_file()]
    return digest_of((), files)


def progress(folder: Path, known: Mapping[str, Exercise]) -> Iterator[tuple[Exercise, Path, str]]:
    """Yield (exercise, folder, state) of a folder and of those in it.

    States are "passed", "changed since it passed" and "begun".
    """
    for place in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        try:
            exercise = found_in(place, known)
            if exercise is None or not (place / exercise.program).is_file():
                continue
            record = read_record(place)
            state = "begun"
            if record is not None and record.passed is not None:
                state = "passed" if record.passed == digest(place) else "changed since it passed"
        except OSError:
            continue  # a folder of another user
        yield exercise, place, state
