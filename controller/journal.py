"""What a controller must not forget: its jobs, in a file that a successor reads."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from controller.systems.aggregation.job_plan import Job
from switch.errors import UserError


class JournalContents(BaseModel):
    """next_job: the number of the next job; lower ones have been given out. jobs: those that are installed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    next_job: int
    jobs: tuple[Job, ...] = ()


class Journal:
    """A file that holds the last contents written, or those before: it is replaced, never changed."""

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
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "text"
            raise UserError(
                f"{self.path} is no journal of a controller ({place}: {first['msg']}): remove it to start afresh"
            ) from None

    def write(self, contents: JournalContents) -> None:
        """Return once the contents would outlast this process; UserError if they cannot be written."""
        draft = self.path.with_name(f"{self.path.name}.new")
        try:
            with draft.open("w") as file:
                file.write(contents.model_dump_json(indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
            draft.replace(self.path)
        except OSError as error:
            raise UserError(f"cannot write the journal {self.path}: {error.strerror}") from None
