"""BMv2's programs: where they are, how all of them are started, and its Thrift command line, simple_switch_CLI, for
what BMv2's P4Runtime server does not do.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from gradbed.common.errors import UserError

PRIORITY_QUEUES = "--priority-queues=8"
"""Behind `--`: of standard_metadata.priority. With its default of 1, BMv2 drops packets that have any. BMv2 1.15."""

WAYS = (
    "take p4lang's package p4lang-bmv2 (Ubuntu), `WITH_BMV2=1 vagrant up`, or a build of your own that is in PATH "
    "or that GRADBED_BMV2 names (docs/conformance.md)"
)
"""How people come by them."""


def find_simple_switch_grpc() -> str:
    """Return its path: GRADBED_BMV2, else in PATH. UserError if it is not there."""
    wanted = os.environ.get("GRADBED_BMV2", "simple_switch_grpc")
    found = shutil.which(wanted)
    if found is None:
        raise UserError(f"BMv2's {wanted} is not installed: {WAYS}; or drop `--switch bmv2`")
    return found


def find_simple_switch() -> tuple[str, str] | None:
    """Return the paths of simple_switch and its command line: beside GRADBED_BMV2, else in PATH; None if one is
    missing."""
    bmv2 = os.environ.get("GRADBED_BMV2")
    path = str(Path(bmv2).parent) if bmv2 and os.sep in bmv2 else None
    switch, shell = shutil.which("simple_switch", path=path), shutil.which("simple_switch_CLI", path=path)
    return (switch, shell) if switch and shell else None


def require_simple_switch() -> tuple[str, str]:
    """Find it as find_simple_switch does; UserError if one is not there."""
    found = find_simple_switch()
    if found is None:
        raise UserError(
            f"BMv2's simple_switch and simple_switch_CLI are not installed beside simple_switch_grpc: {WAYS}"
        )
    return found


# ---- simple_switch_CLI ----


THRIFT_MOST = (1 << 63) - 1
"""The largest number with which a cell of a register is written; when it is read, it stands for all larger ones."""

_PROMPT = b"RuntimeCmd: "


class Bmv2Refuses(Exception):
    """A command; the text is BMv2's, in one line."""


class Bmv2Ended(Exception):
    """The command line has ended; the text has its last words."""


class Shell:
    """simple_switch_CLI at a running switch, one command after the other. Bmv2Ended if it ends."""

    def __init__(self, path: str, thrift_port: int) -> None:
        self._process = subprocess.Popen(
            [path, "--thrift-port", str(thrift_port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._answer()

    def run(self, *words: object) -> str:
        """Run a command and return the answer. Bmv2Refuses with its words if it refuses the command."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
            self._process.stdin.flush()
        answer = self._answer()
        if re.search(r"^(Error|Invalid)\b", answer, re.MULTILINE):
            raise Bmv2Refuses(f"BMv2: {' '.join(answer.split())}")
        return answer

    def register(self, name: str, index: int | None = None) -> list[int]:
        """Return every cell of a register array, or one; THRIFT_MOST for what is as large or larger."""
        answer = self.run("register_read", name, *([] if index is None else [index]))
        return [int(cell) for cell in answer.rsplit("=", 1)[1].split(",")]

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _answer(self) -> str:
        """Read up to the next prompt."""
        assert self._process.stdout is not None
        answer = b""
        while not answer.endswith(_PROMPT):
            piece = os.read(self._process.stdout.fileno(), 4096)
            if not piece:
                lines = answer.decode(errors="replace").split("\n")
                raise Bmv2Ended(f"BMv2's command line ended: {' '.join(lines[-2:]).strip()}")
            answer += piece
        return answer[: -len(_PROMPT)].decode(errors="replace")
