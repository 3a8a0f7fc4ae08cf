"""gradbed up as a person sees it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

from tests.command import ROOT

PATIENCE_S = 120.0


class Prompt:
    """gradbed up as a process: lines in, and what it says as it comes."""

    def __init__(self, *arguments: str, folder: Path) -> None:
        self.said = ""
        self._new = threading.Condition()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gradbed", "up", "--rest-port", "0", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def _read(self) -> None:
        assert self._process.stdout is not None
        while letter := self._process.stdout.read(1):
            with self._new:
                self.said += letter
                self._new.notify_all()

    def say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def wait_for(self, text: str) -> str:
        """What was said up to that text, which is then forgotten."""
        with self._new:
            found = self._new.wait_for(lambda: text in self.said, PATIENCE_S)
            assert found, f"{text!r} was not said:\n{self.said}"
            before, _, self.said = self.said.partition(text)
        return before

    def close(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            return self._process.wait(PATIENCE_S)
        finally:
            self._process.kill()
