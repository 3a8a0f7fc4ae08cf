"""What a controller must not forget: its jobs, in a file that a successor reads."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem


class JournalledJob(BaseModel):
    """state: of the type of the system's service, as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    system: str
    state: dict[str, Any]


class JournalContents(BaseModel):
    """next_job: the number of the next job; lower ones have been given out. jobs: those that are installed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    next_job: int
    jobs: tuple[JournalledJob, ...] = ()


class Journal:
    """A file that holds the last contents written, or those before: it is replaced, never changed.

    In the folder of a controller's term (term.py) it cannot be written any more once another one is in charge.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> JournalContents | None:
        """None if there is no file yet; UserError if it cannot be read or is no journal."""
        try:
            return JournalContents.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"cannot read the journal {self.path}: {error.strerror}") from None
        except ValidationError as error:
            raise self.is_none(first_problem(error)) from None

    def is_none(self, problem: str) -> UserError:
        """The error for a file that is no journal of this controller's."""
        return UserError(f"{self.path} is no journal of a controller ({problem}): remove it to start afresh")

    def write(self, contents: JournalContents) -> None:
        """Return once the contents would outlast this process. UserError if they cannot be written; the file is as
        it was then."""
        draft = self.path.with_name(f"{self.path.name}.new")
        try:
            # Another file each time: a predecessor may have its own open still.
            draft.unlink(missing_ok=True)
            with draft.open("x") as file:
                file.write(contents.model_dump_json(indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
        except OSError as error:
            # On a full disk its room is wanted.
            with contextlib.suppress(OSError):
                draft.unlink()
            raise UserError(f"cannot write the journal {self.path}: {error.strerror}") from None
