"""The jobs of all systems of a network: numbers, state, and the journal of both."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from gradbed.common.errors import UserError
from gradbed.common.problems import first_problem
from gradbed.controller.planning.multicast import MAX_JOB

# ---- The journal: what a controller must not forget, in a file that a successor reads ----


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
        """Return the journal, or None if there is no file yet.

        Raises:
            UserError: It cannot be read, or is no journal.
        """
        try:
            return JournalContents.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserError(f"cannot read the journal {self.path}: {error.strerror}") from None
        except ValidationError as error:
            raise self.is_none(first_problem(error)) from None

    def is_none(self, problem: str) -> UserError:
        """Return the error for a file that is no journal of this controller's."""
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


# ---- Jobs ----


class UnknownJob(UserError):
    """The system has no job of this number now."""


@dataclass(frozen=True)
class Job:
    """A job that runs. state: of its system's type (controller/core/service.py)."""

    number: int
    system: str
    state: Any


class Jobs:
    """The jobs that run, by number, in order of their numbers.

    Numbers count up from first_job, for all systems together, and are never given out twice, since a switch may
    still hold something of a job that is gone. journal: where jobs are written down; those that it holds already are
    taken over. state_types: by system. UserError if the journal has a job of another system's, or none of its type.
    """

    def __init__(
        self, state_types: Mapping[str, type[BaseModel]], first_job: int = 1, journal: Journal | None = None
    ) -> None:
        self._journal = journal
        self._next_job = first_job
        # Replaced, never changed, so that readers need no lock.
        self._jobs: dict[int, Job] = {}
        recorded = journal.read() if journal is not None else None
        if journal is not None and recorded is not None:
            self._next_job = max(first_job, recorded.next_job)
            self._jobs = {each.number: _restored(journal, state_types, each) for each in recorded.jobs}

    def all(self) -> list[Job]:
        return list(self._jobs.values())

    def of(self, system: str) -> list[Job]:
        return [job for job in self._jobs.values() if job.system == system]

    def get(self, system: str, number: int) -> Job:
        """UnknownJob if the system has none of this number."""
        job = self._jobs.get(number)
        if job is None or job.system != system:
            raise UnknownJob(f"there is no job {number}" if job is None else f"job {number} is one of {job.system}")
        return job

    @property
    def next_number(self) -> int:
        """The number that the next job will have; UserError if there is none left."""
        if self._next_job > MAX_JOB:
            raise UserError(f"no job number left: {MAX_JOB} jobs were given one, restart the controller")
        return self._next_job

    def take_number(self) -> None:
        """Write down that next_number is given out, before any switch has it: a successor must not give it again."""
        self._next_job += 1
        self._write_down(self._jobs)

    def write_down(self) -> None:
        self._write_down(self._jobs)

    def add(self, job: Job) -> None:
        self._keep({**self._jobs, job.number: job})

    def remove(self, number: int) -> None:
        self._keep({other: job for other, job in self._jobs.items() if other != number})

    def _keep(self, jobs: dict[int, Job]) -> None:
        """Write the jobs down; if that fails, go back to those before."""
        self._write_down(jobs)
        self._jobs = jobs

    def _write_down(self, jobs: Mapping[int, Job]) -> None:
        if self._journal is not None:
            written = tuple(
                JournalledJob(number=job.number, system=job.system, state=job.state.model_dump(mode="json"))
                for job in jobs.values()
            )
            self._journal.write(JournalContents(next_job=self._next_job, jobs=written))


def _restored(journal: Journal, state_types: Mapping[str, type[BaseModel]], job: JournalledJob) -> Job:
    if job.system not in state_types:
        raise UserError(
            f"{journal.path} has job {job.number} of {job.system}, which this controller does not serve: "
            "remove the journal to start afresh"
        )
    try:
        return Job(job.number, job.system, state_types[job.system].model_validate(job.state))
    except ValidationError as error:
        raise journal.is_none(f"job {job.number}: {first_problem(error)}") from None
