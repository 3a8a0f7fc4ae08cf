"""A job that runs in the background: a phase of a system, with agents of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from gradbed.common.errors import UserError
from gradbed.experiments.phases import Phase
from gradbed.experiments.testbeds.agents import Agents, Hosts

POLL_S = 0.2

State = Literal["starts", "runs", "done", "stopped", "failed"]


class BackgroundJob:
    """Begins when it is made, in a thread of its own, and ends by itself or by `stop`.

    number: the controller's. on_end: called in the job's thread when its agents have ended, however that came. They
    have a launcher of their own, so that whatever happens to them concerns no other job.
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
        """Return when its agents have ended."""
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
