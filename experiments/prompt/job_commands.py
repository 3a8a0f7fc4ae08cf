"""The command `job`: training jobs in the background of the prompt, for systems whose phases are jobs."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from gradbed.common.errors import UserError
from gradbed.experiments.configuration.options import ModelOption, complaint, described
from gradbed.experiments.phases import Phase
from gradbed.experiments.prompt.base import BasePrompt, near, starting
from gradbed.experiments.runtimes.agents import Agents, Hosts

# ---- A job ----


POLL_S = 0.2

State = Literal["starts", "runs", "done", "stopped", "failed"]


class BackgroundJob:
    """A job that runs in a thread of its own, from its construction until it ends by itself or by `stop`.

    Its agents have a launcher of their own, so that whatever happens to them concerns no other job.
    """

    def __init__(
        self,
        number: int,
        phase: Phase,
        answer: Mapping[str, Any],
        folder: Path,
        hosts: Hosts,
        preload: Sequence[str],
        on_end: Callable[[], None],
    ) -> None:
        """Start the job.

        Args:
            number: the controller's.
            on_end: called in the job's thread when its agents have ended, however that came.
        """
        self.number = number
        self.phase = phase
        self.state: State = "starts"
        self.reason = ""
        """Why it failed."""
        self.specs = phase.agents([answer])
        self._folder, self._hosts, self._preload, self._on_end = folder, hosts, preload, on_end
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"job {number}", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()

    def stop(self) -> None:
        """Stop the job and return when its agents have ended."""
        self._stop.set()
        self._thread.join()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            try:
                self._work()
            finally:
                self._on_end()
        except (UserError, RuntimeError, OSError) as error:
            self.state, self.reason = "failed", " ".join(str(error).split())

    def _work(self) -> None:
        self._folder.mkdir()
        with Agents(self._folder, self._hosts, preload=self._preload) as agents:
            agents.start(self.specs)
            self.state = "runs"
            if not self.phase.waits:
                agents.begin()
            while not self.phase.complete and not self._stop.is_set():
                event = agents.event_within(POLL_S)
                more = None if event is None else self.phase.take(event)
                if more is not None:
                    agents.start(more)
                    agents.begin()
            agents.stop()
        self.state = "done" if self.phase.complete else "stopped"


# ---- The command ----


SUBCOMMANDS = ("start", "list", "stop", "wait")
BAR_WIDTH = 20
WAIT_S = 0.5


class JobCommands(BasePrompt):
    """The command `job`; a subclass defines the system's jobs."""

    job_options: Sequence[ModelOption] = ()

    def __init__(self, *arguments: Any) -> None:
        self._jobs: dict[int, BackgroundJob] = {}
        self._told: set[int] = set()
        super().__init__(*arguments)

    @abstractmethod
    def job_phase(self, given: dict[str, str]) -> Phase:
        """Return a phase of one job.

        Args:
            given: values of options by parameter, as they were typed.

        Raises:
            UserError: the options make no sense.
            ValidationError: likewise.
        """

    @abstractmethod
    def job_result(self, phase: Phase) -> str:
        """Return the result of a phase that is over, in one line."""

    def do_job(self, line: str) -> None:
        """Train in the background, as many jobs at once as hosts are free.
        Usage: job start [--OPTION VALUE ...]   on hosts that no other job uses; 'job options' lists the options
               job list                         all jobs, and how far they are
               job wait [NUMBER]                until the job, or every job, is over
               job stop NUMBER
        The end of a job is told before the next prompt."""
        subcommand, *words = self.words(line, 64) or [""]
        if subcommand == "start":
            self._start(words)
        elif subcommand == "options" and not words:
            self._list_options()
        elif subcommand == "list" and not words:
            self._list()
        elif subcommand == "wait" and len(words) <= 1:
            self._wait([self._job(word) for word in words] or list(self._jobs.values()))
        elif subcommand == "stop" and len(words) == 1:
            job = self._job(words[0])
            job.stop()
            self._tell(job)
        else:
            raise UserError("start [--OPTION VALUE ...], options, list, wait [NUMBER] or stop NUMBER; see help job")

    def complete_job(self, text: str, line: str, begin: int, end: int) -> list[str]:
        before = line[:begin].split()[1:]
        if not before:
            return starting(text, [*SUBCOMMANDS, "options"])
        if before[0] == "start":
            # readline takes what follows a "-" for a word of its own.
            typed = line[:end].split(" ")[-1]
            flags = starting(typed, [option.flag for option in self.job_options])
            return [flag[len(typed) - len(text) :] for flag in flags]
        return starting(text, [str(number) for number in self._jobs]) if before[0] in ("stop", "wait") else []

    def postcmd(self, stop: Any, line: str) -> Any:
        for job in self._jobs.values():
            if job.ended and job.number not in self._told:
                self._tell(job)
        return super().postcmd(stop, line)

    def close(self) -> None:
        for job in self._jobs.values():
            job.stop()
        super().close()

    def _start(self, words: Sequence[str]) -> None:
        try:
            phase = self.job_phase(values_of(words, self.job_options))
        except ValidationError as error:
            raise complaint(error, list(self.job_options)) from None
        (request,) = phase.own_requests
        answer = self.runtime.add_job(request)
        number = answer["job"]
        try:
            job = BackgroundJob(
                number,
                phase,
                answer,
                self.task.folder / f"job-{number}",
                self.runtime.network,
                self.runtime.preload,
                lambda: self.runtime.delete_job(number),
            )
        except BaseException:
            self.runtime.delete_job(number)
            raise
        self._jobs[number] = job
        self.say(f"job {number} starts on {', '.join(spec.host for spec in job.specs)}")

    def _job(self, word: str) -> BackgroundJob:
        if not word.isdigit() or int(word) not in self._jobs:
            known = ", ".join(map(str, self._jobs)) or "none"
            raise UserError(f"there is no job {word!r}; there are: {known}")
        return self._jobs[int(word)]

    def _wait(self, jobs: Sequence[BackgroundJob]) -> None:
        for job in jobs:
            while not job.ended:
                job.join(WAIT_S)

    def _list(self) -> None:
        for job in self._jobs.values():
            self._tell(job)
        others = [row for row in self.runtime.client.jobs() if row["job"] not in self._jobs]
        for row in others:
            self.say(f"job {row['job']} of {row['system']}: asked for at the REST interface")
        if not self._jobs and not others:
            self.say("no jobs; 'job start' starts one")

    def _tell(self, job: BackgroundJob) -> None:
        if job.ended:
            self._told.add(job.number)
        (progress,) = job.phase.progress()
        filled = BAR_WIDTH * progress.completed // max(1, progress.total)
        text = f"job {job.number} {job.state:<7} {'#' * filled}{'.' * (BAR_WIDTH - filled)}"
        text += f" {progress.completed}/{progress.total} {progress.label} {progress.note.strip()}".rstrip()
        if job.ended:
            text += f": {job.reason or self.job_result(job.phase)}"
        self.say(text)

    def _list_options(self) -> None:
        width = max(len(option.flag) for option in self.job_options)
        for option in self.job_options:
            self.say(f"  {option.flag:<{width}}  {described(option)}")


def values_of(words: Sequence[str], options: Sequence[ModelOption]) -> dict[str, str]:
    """Parse --OPTION VALUE or --OPTION=VALUE into values by parameter.

    Raises:
        UserError: an option is not known, or lacks its value.
    """
    by_flag = {option.flag: option for option in options}
    values: dict[str, str] = {}
    rest = list(words)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        if flag not in by_flag:
            raise UserError(f"there is no option {flag!r}{near(flag, by_flag, 'job options')}")
        if not equals:
            if not rest:
                raise UserError(f"{flag} needs a value: {by_flag[flag].help}")
            value = rest.pop(0)
        values[by_flag[flag].parameter] = value
    return values
