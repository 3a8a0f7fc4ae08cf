"""An exercise: a folder with its description, starter code, hints, solution and checks.

exercise.yaml   title, minutes, topics, learnt, place
README.md       for the student, copied with the starter code; FOLDER in its commands is where to
hints.md        a heading (##) for each hint, from the gentlest to the plainest
starter/        NAME.p4, and what else the student gets, such as entries.yaml
solution/       the files of starter/ that the solution changes
checks/         in the order of their names: .stf, .yaml (a study) and .py (a conversation), each with the lines of
                its first comment for those who fail it
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem
from gradbed.common.suggestion import suggestion
from gradbed.common.templates import with_commands
from gradbed.common.yaml_numbers import bounded_loader

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

        Raises:
            UserError: it exists or cannot be made.
        """
        try:
            folder.mkdir(parents=True)
            task = (self.folder / "README.md").read_text(encoding="utf-8")
            (folder / "README.md").write_text(with_commands(task, folder), encoding="utf-8")
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
