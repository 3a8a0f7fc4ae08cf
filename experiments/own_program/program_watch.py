"""Reloads a program and its entries when their files change, while the network goes on."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from gradbed.common.errors import UserError
from gradbed.controller.entries.document import EntriesError
from gradbed.experiments.programs import Program
from gradbed.experiments.setup import NetworkSetup, PointTask

if TYPE_CHECKING:
    from gradbed.experiments.testbeds.mininet_testbed import MininetTestbed

LOOK_EVERY_S = 0.25


class Reloadable(Protocol):
    """Whose files are looked at: gradbed.experiments.own_program.system.OwnProgramSystem."""

    def network(self, task: PointTask[Any], skip_invalid: bool = False) -> NetworkSetup:
        """skip_invalid: entries that do not fit are left out."""

    def entries_files(self, setup: NetworkSetup) -> set[Path]: ...


class ProgramWatch:
    """A context manager: looks at the files while it is entered, on a thread of its own.

    A program that does not compile, or a network that does not take it, is told in one line, and what runs goes on;
    entries that no longer fit it are told and left out.
    """

    def __init__(self, system: Reloadable, testbed: MininetTestbed, task: PointTask[Any]) -> None:
        self._system = system
        self._testbed = testbed
        self._task = task
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="program watch", daemon=True)

    def __enter__(self) -> ProgramWatch:
        self._files = self._state(self._system.network(self._task))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        seen = self._files
        while not self._ended.wait(LOOK_EVERY_S):
            before, seen = seen, {path: _changed_at(path) for path in self._files}
            # What is the same twice is written to its end.
            if seen == before and seen != self._files:
                self._files = seen
                self._reload()

    def _reload(self) -> None:
        try:
            setup = self._fitting()
            self._testbed.reload(setup)
        except UserError as error:
            _tell(f"{error.prefix}{error}")
            return
        except Exception as error:
            # Such as a controller that is gone. This thread has no caller to tell it to, and the next change may do.
            _tell(f"gradbed: not reloaded: {str(error).partition(chr(10))[0]}")
            return
        # What has changed since it was seen is another change.
        self._files = {path: self._files.get(path, now) for path, now in self._state(setup).items()}
        _tell("gradbed: reloaded")

    def _fitting(self) -> NetworkSetup:
        try:
            return self._system.network(self._task)
        except EntriesError as error:
            setup = self._system.network(self._task, skip_invalid=True)
            _tell(f"{error} (left out)")
            return setup

    def _state(self, setup: NetworkSetup) -> dict[Path, int]:
        """All files that matter, and when they were changed."""
        from gradbed.switch.compiler import files_of

        files = self._system.entries_files(setup)
        for program in setup.switches.values():
            if isinstance(program, Program):
                files |= {file.path for file in files_of(program.source, defines=program.macros)}
        return {path: _changed_at(path) for path in files}


def _changed_at(path: Path) -> int:
    """0: it is not there, as for a moment while an editor writes it anew."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
