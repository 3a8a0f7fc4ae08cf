"""A student's folder: its exercise, and how far it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.modules import COMMAND
from gradbed.common.store import digest_of
from gradbed.experiments.exercises.exercise import Exercise

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
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}: {COMMAND} exercise start NAME makes one")
    found = found_in(folder, known)
    if found is None:
        programs = [each.name for each in known.values() if (folder / each.program).is_file()]
        if programs:
            raise UserError(f"{folder} has programs of {' and '.join(programs)}: keep each in a folder of its own")
        raise UserError(f"{folder} has no exercise's program: {COMMAND} exercise start NAME makes a folder with one")
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
